"""Toolkits from Python: whose context a tool sees, what cancelling does, what happens to what a tool raises."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import sys
import threading
import time
from typing import Any

import pytest
import toolspan
from toolspan import Tool, ToolContext, ToolResult, counters, create_toolkit, tool

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def settled() -> None:
    """Until the engine works on nothing any more."""
    while counters().operations:
        await asyncio.sleep(0.001)


def test_awaited_or_entered_it_is_the_same_toolkit() -> None:
    async def main() -> None:
        toolkit = await create_toolkit(tools=[add])
        assert [t.name for t in toolkit.tools()] == ["add"]
        await toolkit.close()
        async with create_toolkit(tools=[add]) as toolkit:
            found = toolkit.get("add")
            assert found is not None and found.source == "native"
            assert toolkit.get("nope") is None
        assert counters().open_toolkits == 0

    asyncio.run(main())


def test_a_tool_returns_text_json_or_a_result() -> None:
    def text() -> str:
        return "plain"

    def data() -> dict[str, Any]:
        return {"z": 1, "a": [True, None]}

    def result() -> ToolResult:
        return ToolResult("bad", is_error=True, metadata={"k": 1})

    def nothing() -> None: ...

    async def main() -> None:
        async with create_toolkit(tools=[text, data, result, nothing]) as tk:
            assert (await tk.execute("text")).to_json() == {"output": "plain", "isError": False}
            assert (await tk.execute("data")).output == '{"z":1,"a":[true,null]}'
            assert (await tk.execute("result")).to_json() == {"output": "bad", "isError": True, "metadata": {"k": 1}}
            assert (await tk.execute("nothing")).output == ""

    asyncio.run(main())


def test_register_adds_once() -> None:
    async def main() -> None:
        async with create_toolkit() as tk:
            assert tk.register(add) is True
            assert tk.register(add) is False
            assert (await tk.execute("add", {"a": 1, "b": 2})).output == "3"

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_tool_sees_its_callers_context_and_no_other(kind: str) -> None:
    def name() -> str:
        seen = who.get()
        who.set("changed by the tool")
        return seen

    async def name_async() -> str:
        return name()

    async def call(tk: toolspan.Toolkit, me: str) -> tuple[str, str]:
        who.set(me)
        return (await tk.execute("name")).output, who.get()

    async def main() -> None:
        async with create_toolkit(tools=[tool(name="name")(name if kind == "sync" else name_async)]) as tk:
            seen = await asyncio.gather(*(call(tk, f"caller {i}") for i in range(20)))
        assert seen == [(f"caller {i}", f"caller {i}") for i in range(20)]

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_tool_raises_is_an_error_result_and_stays_itself(kind: str) -> None:
    def fail() -> None:
        raise LookupError("no such thing")

    async def fail_async() -> None:
        fail()

    async def main() -> None:
        async with create_toolkit(tools=[tool(name="fail")(fail if kind == "sync" else fail_async)]) as tk:
            result = await tk.execute("fail")
        assert (result.output, result.is_error) == ("no such thing", True)
        assert isinstance(result.exception, LookupError)
        assert result.exception.__traceback__ is not None

    asyncio.run(main())


@pytest.mark.parametrize(
    "value",
    [float("nan"), {1j}, [[]] and (lambda x: x.append(x) or x)([]), object()],
    ids=["nan", "complex", "cycle", "object"],
)
def test_what_is_not_json_is_an_error_of_the_tool(value: Any) -> None:
    def give() -> Any:
        return value

    async def main() -> None:
        async with create_toolkit(tools=[give]) as tk:
            result = await tk.execute("give")
        assert result.is_error and isinstance(result.exception, (TypeError, ValueError))

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    ["", "a\x00b", "ü€😀", "\u2028", "x" * 1_000_000, '"\\'],
    ids=["empty", "nul", "unicode", "separator", "large", "quotes"],
)
def test_text_survives_both_ways(text: str) -> None:
    def echo(text: str) -> str:
        return text

    async def main() -> None:
        async with create_toolkit(tools=[echo]) as tk:
            assert (await tk.execute("echo", {"text": text})).output == text

    asyncio.run(main())


def test_integers_beyond_64_bits_survive_both_ways() -> None:
    def echo(n: int) -> int:
        return n

    async def main() -> None:
        async with create_toolkit(tools=[echo]) as tk:
            for n in (2**53 + 1, 2**64 + 1, 10**5000):
                if n > 2**70:
                    result = await tk.execute("echo", '{"n": 1%s}' % ("0" * 5000))
                    assert result.is_error
                else:
                    assert (await tk.execute("echo", {"n": n})).output == str(n)

    asyncio.run(main())


def test_a_lone_surrogate_is_an_error_and_not_a_crash() -> None:
    def half() -> str:
        return "\ud800"

    async def main() -> None:
        async with create_toolkit(tools=[add, half]) as tk:
            with pytest.raises(toolspan.InvalidArgumentError):
                await tk.execute("\ud800")
            answer = await tk.execute("half")
            assert answer.is_error and isinstance(answer.exception, UnicodeEncodeError)
            assert (await tk.execute("add", {"a": 1, "b": 2})).output == "3"

    asyncio.run(main())


def test_arguments_nested_too_deep_are_an_error_and_not_a_crash() -> None:
    async def main() -> None:
        async with create_toolkit(tools=[add]) as tk:
            deep: Any = 1
            for _ in range(900):
                deep = [deep]
            with pytest.raises(toolspan.LimitExceededError):
                await tk.execute("add", {"a": deep, "b": 1})
            for _ in range(100_000):
                deep = [deep]
            with pytest.raises(RecursionError):
                await tk.execute("add", {"a": deep, "b": 1})
            while isinstance(deep, list):  # or the interpreter itself overflows when it frees it
                deep = deep.pop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"disable_toolz": []}, "disableToolz"),
        ({"timeout_ms": "soon"}, "timeoutMs"),
        ({"disable_tools": 3}, "disableTools"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], path: str) -> None:
    async def main() -> None:
        with pytest.raises(toolspan.InvalidConfigError) as caught:
            await create_toolkit(**options)
        assert caught.value.path == path
        assert str(caught.value).startswith(f"invalid_config: {path}: ")

    asyncio.run(main())


def test_something_that_is_no_tool_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="a tool is a function or a Tool, not int"):
            await create_toolkit(tools=[3])  # type: ignore[list-item]

    asyncio.run(main())


# Cancelling


def hanging() -> tuple[Tool, asyncio.Event, asyncio.Event]:
    """A tool that never ends by itself, and when it was started and cancelled."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    return tool(hang), started, cancelled


def test_cancelling_the_task_cancels_the_tool_and_is_not_wrapped() -> None:
    async def main() -> None:
        hang, started, cancelled = hanging()
        async with create_toolkit(tools=[hang, add]) as tk:
            task = asyncio.create_task(tk.execute("hang"))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert type(caught.value) is asyncio.CancelledError
            assert counters().operations == 0
            await asyncio.wait_for(cancelled.wait(), 5)
            assert (await tk.execute("add", {"a": 1, "b": 2})).output == "3"

    asyncio.run(main())


def test_wait_for_stops_the_work() -> None:
    async def main() -> None:
        hang, started, cancelled = hanging()
        async with create_toolkit(tools=[hang]) as tk:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(tk.execute("hang"), 0.05)
            assert started.is_set()
            await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup is new in 3.11")
def test_a_failing_sibling_in_a_task_group_stops_the_work() -> None:
    async def main() -> None:
        hang, started, cancelled = hanging()
        async with create_toolkit(tools=[hang]) as tk:

            async def fail() -> None:
                await started.wait()
                raise KeyError("sibling")

            with pytest.raises(BaseExceptionGroup) as caught:
                async with asyncio.TaskGroup() as group:
                    group.create_task(tk.execute("hang"))
                    group.create_task(fail())
            assert [type(e) for e in caught.value.exceptions] == [KeyError]
            await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(main())


def test_cancelling_tells_a_sync_tool() -> None:
    async def main() -> None:
        started, told = threading.Event(), threading.Event()

        def work(context: ToolContext) -> None:
            started.set()
            while not context.cancelled():
                time.sleep(0.001)
            told.set()

        async with create_toolkit(tools=[work]) as tk:
            task = asyncio.create_task(tk.execute("work"))
            await asyncio.to_thread(started.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(told.wait, 5)

    asyncio.run(main())


def test_cancelling_before_during_and_after_is_harmless() -> None:
    async def main() -> None:
        async with create_toolkit(tools=[add]) as tk:
            for delay in range(60):
                task = asyncio.create_task(tk.execute("add", {"a": delay, "b": 1}))
                for _ in range(delay % 6):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled() or task.result().output == str(delay + 1)
            assert (await tk.execute("add", {"a": 1, "b": 2})).output == "3"
            await settled()

    asyncio.run(main())


def test_a_build_cancelled_at_any_moment_leaves_nothing_open() -> None:
    async def main() -> None:
        for delay in range(200):
            task = asyncio.ensure_future(create_toolkit(tools=[add])._open())
            for _ in range(delay % 20):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                await task.result().close()
        del task
        gc.collect()
        while counters().open_toolkits or counters().operations:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_cancelled_build_leaves_nothing_open(peers: Any) -> None:
    scene = peers(mcp={"slow": {"transport": "http", "hang": ["initialize"]}})

    async def main() -> None:
        config = {"mcpServers": {"slow": {"url": scene.mcp["slow"]["url"]}}}
        task = asyncio.ensure_future(create_toolkit(mcp_config=config)._open())
        await asyncio.to_thread(scene.wait, mcp="slow", method="initialize", count=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(scene.wait, mcp="slow", connections=0)
        assert counters().open_toolkits == 0

    asyncio.run(main())


# Threads, loops, engines


def test_a_tool_may_call_the_library_again() -> None:
    async def main() -> None:
        tk: toolspan.Toolkit

        async def twice(n: int) -> str:
            return (await tk.execute("add", {"a": n, "b": n})).output

        async with create_toolkit(tools=[add, twice]) as tk:
            assert (await tk.execute("twice", {"n": 4})).output == "8"

    asyncio.run(main())


def test_every_loop_gets_its_own_replies() -> None:
    answers: dict[int, list[str]] = {}

    async def main(i: int) -> None:
        async with create_toolkit(tools=[add]) as tk:
            answers[i] = [(await tk.execute("add", {"a": i, "b": k})).output for k in range(20)]

    threads = [threading.Thread(target=lambda i=i: asyncio.run(main(i))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {i: [str(i + k) for k in range(20)] for i in range(8)}


def test_two_engines_do_not_know_each_other() -> None:
    async def main() -> None:
        one, two = toolspan.Engine(), toolspan.Engine(workers=1)
        tk = await create_toolkit(engine=one, tools=[add])
        assert (counters(engine=one).open_toolkits, counters(engine=two).open_toolkits) == (1, 0)
        two.close()
        assert (await tk.execute("add", {"a": 1, "b": 2})).output == "3"
        one.close()
        with pytest.raises(toolspan.ClosedError):
            await tk.execute("add", {"a": 1, "b": 2})

    asyncio.run(main())


def test_closing_the_engine_ends_what_runs() -> None:
    async def main() -> None:
        engine = toolspan.Engine()
        hang, started, cancelled = hanging()
        tk = await create_toolkit(engine=engine, tools=[hang])
        task = asyncio.create_task(tk.execute("hang"))
        await started.wait()
        assert await asyncio.to_thread(engine.close, 5000) is True
        with pytest.raises(toolspan.ClosedError):
            await task
        await asyncio.wait_for(cancelled.wait(), 5)
        assert engine.close() is True

    asyncio.run(main())


def test_closing_twice_and_using_after_is_an_error_and_no_crash() -> None:
    async def main() -> None:
        tk = await create_toolkit(tools=[add])
        await asyncio.gather(*(tk.close() for _ in range(5)))
        with pytest.raises(toolspan.ClosedError):
            tk.tools()

    asyncio.run(main())


def test_a_dropped_toolkit_is_closed() -> None:
    async def main() -> None:
        tk = await create_toolkit(tools=[add])
        assert counters().open_toolkits == 1
        del tk
        while counters().open_toolkits:
            await asyncio.sleep(0.001)

    asyncio.run(main())


def test_nothing_accumulates() -> None:
    async def load(tk: toolspan.Toolkit) -> None:
        for _ in range(20):
            await asyncio.gather(*(tk.execute("add", {"a": 1, "b": 2}) for _ in range(50)))
            cancelled = [asyncio.create_task(tk.execute("add", {"a": 1, "b": 2})) for _ in range(50)]
            await asyncio.sleep(0)
            for task in cancelled:
                task.cancel()
            await asyncio.wait(cancelled)

    async def main() -> None:
        engine = toolspan.Engine()
        async with create_toolkit(engine=engine, tools=[add]) as tk:
            await load(tk)
            while counters(engine=engine).operations or engine._operations:
                await asyncio.sleep(0.001)
            assert len(engine._handlers) == 1
        del tk
        gc.collect()
        assert len(engine._handlers) == 0
        engine.close()

    asyncio.run(main())


def test_the_loop_keeps_turning_while_a_thread_holds_the_gil() -> None:
    async def main() -> None:
        stop = threading.Event()

        def burn() -> None:
            while not stop.is_set():
                sum(range(500))

        worst = 0.0

        async def watch() -> None:
            nonlocal worst
            while not stop.is_set():
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                worst = max(worst, time.perf_counter() - before)

        async with create_toolkit(tools=[add]) as tk:
            thread = threading.Thread(target=burn)
            thread.start()
            watcher = asyncio.create_task(watch())
            for _ in range(100):
                await tk.execute("add", {"a": 1, "b": 2})
            stop.set()
            await watcher
            thread.join()
        # The interpreter switches threads every 5 ms; a loop that waited for the engine would stand for longer.
        assert worst < 0.25

    asyncio.run(main())


# Logs


def test_log_records_are_there_before_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise LookupError("secret of the tool")

    async def main() -> None:
        with caplog.at_level(logging.DEBUG, logger="toolspan"):
            async with create_toolkit(tools=[add, fail]) as tk:
                tk.register(add)
                await tk.execute("fail")
                records = [r for r in caplog.records if r.name.startswith("toolspan.")]
        assert [(r.name, r.levelname) for r in records] == [
            ("toolspan.toolkit", "WARNING"),
            ("toolspan.bridge", "DEBUG"),
        ]
        assert records[1].toolspan["type"] == "LookupError"  # type: ignore[attr-defined]

    asyncio.run(main())
