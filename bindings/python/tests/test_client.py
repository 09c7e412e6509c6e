"""Clients from Python: runs, streams, hooks, memory, transports, against a scripted model."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import urllib.request
from typing import Any

import httpx
import pytest
import toolspan
from toolspan import (
    ContentPart,
    DoneEvent,
    Engine,
    HttpRequest,
    HttpResponse,
    TextEvent,
    ToolCallEvent,
    ToolResult,
    ToolResultEvent,
    UsageEvent,
    counters,
    create_client,
    create_toolkit,
    sync,
    tool,
)

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def calls(*names: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"id": f"c{i}", "name": name, "args": args} for i, name in enumerate(names)]}


def bodies(scene: Any) -> list[dict[str, Any]]:
    return [json.loads(request["body"]) for request in scene.seen()["llm"]["main"]["requests"]]


def test_a_run_calls_tools_and_gives_its_result(peers: Any) -> None:
    scene = peers(llm=[calls("add", a=2, b=3), {"text": "It is 5."}])

    async def main() -> None:
        async with create_toolkit(tools=[add]) as tk, create_client(**scene.client_options()) as client:
            result = await client.run("What is 2 + 3?", toolkit=tk)
        assert (result.text, result.status, result.turns, result.model) == ("It is 5.", "done", 2, "m")
        assert [(c.id, c.name, c.args, c.output, c.is_error) for c in result.tool_calls] == [
            ("c0", "add", {"a": 2, "b": 3}, "5", False)
        ]
        assert result.usage.total_tokens == 30
        assert set(result.to_json()) == {"text", "messages", "toolCalls", "turns", "usage", "model", "status"}
        assert result.to_json()["toolCalls"] == [
            {"id": "c0", "name": "add", "args": {"a": 2, "b": 3}, "output": "5", "isError": False}
        ]

    asyncio.run(main())


def test_options_of_a_run_and_parts_reach_the_wire(peers: Any) -> None:
    scene = peers(llm=[{"text": "ok"}])

    async def main() -> None:
        client = create_client(**scene.client_options(), request_params={"someKey": {"snake_key": 1}})
        await client.run(
            [ContentPart("text", text="look"), {"type": "text", "text": "here"}],
            system_prompt="be brief",
            model="other",
            history=[{"role": "user", "content": "before"}],
        )
        (body,) = await asyncio.to_thread(bodies, scene)
        assert body["model"] == "other"
        assert [m["role"] for m in body["messages"]] == ["system", "user", "user"]
        assert body["someKey"] == {"snake_key": 1}

    asyncio.run(main())


def test_events_can_be_matched(peers: Any) -> None:
    scene = peers(llm=[calls("add", a=2, b=3), {"text": "It is 5."}])

    async def main() -> None:
        said, seen = "", []
        async with create_toolkit(tools=[add]) as tk:
            stream = create_client(**scene.client_options()).stream("What is 2 + 3?", toolkit=tk)
            async for event in stream:
                match event:
                    case TextEvent(delta=delta):
                        said += delta
                    case ToolCallEvent(name=name, args=args):
                        seen.append((name, args))
                    case ToolResultEvent(output=output, is_error=False):
                        seen.append(output)
                    case UsageEvent(usage=usage):
                        seen.append(usage.total_tokens)
                    case DoneEvent(result=result):
                        seen.append(result.text)
        assert said == "It is 5."
        assert seen == [15, ("add", {"a": 2, "b": 3}), "5", 15, "It is 5."]
        assert stream.result is not None and stream.result.text == "It is 5."

    asyncio.run(main())


@pytest.mark.parametrize("way", ["break", "aclose", "with", "collected", "cancelled", "sync break"])
def test_leaving_a_stream_closes_its_connection(peers: Any, way: str, caplog: pytest.LogCaptureFixture) -> None:
    endless = {"sse": [{"data": {"choices": [{"index": 0, "delta": {"content": "x"}}]}}, {"hang": True}]}
    scene = peers(llm=[endless])
    client = create_client(**scene.client_options())

    async def main() -> None:
        stream = client.stream("hi")
        if way == "break":
            async for _ in stream:
                break
            del stream
        elif way == "aclose":
            await anext(stream)
            await stream.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        elif way == "with":
            async with stream:
                await anext(stream)
        elif way == "collected":
            await anext(stream)
            del stream
            gc.collect()
        else:

            async def read() -> None:
                async for _ in stream:
                    pass

            task = asyncio.create_task(read())
            await asyncio.to_thread(scene.wait, llm="main", requests=1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.to_thread(scene.wait, llm="main", connections=0)
        assert counters().open_streams == 0

    if way == "sync break":
        for event in sync.Client(client).stream("hi"):
            assert event == TextEvent("x")
            break
        scene.wait(llm="main", connections=0)
    else:
        asyncio.run(main())
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_cancelling_a_run_closes_its_connection(peers: Any) -> None:
    scene = peers(llm=[{"hang": True}])

    async def main() -> None:
        task = asyncio.create_task(create_client(**scene.client_options()).run("hi"))
        await asyncio.to_thread(scene.wait, llm="main", requests=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counters().operations == 0
        await asyncio.to_thread(scene.wait, llm="main", connections=0)

    asyncio.run(main())


def test_a_failure_is_an_exception_of_its_code(peers: Any) -> None:
    answer = {"status": 429, "headers": {"retry-after": "120"}, "json": {"error": {"message": "slow down"}}}
    scene = peers(llm={"main": {"style": "openai", "replies": [answer], "then": "repeat"}})

    async def main() -> None:
        client = create_client(**scene.client_options())
        with pytest.raises(toolspan.RateLimitedError) as caught:
            await client.run("hi")
        error = caught.value
        assert (error.code, error.retryable, error.http_status, error.provider) == ("rate_limited", True, 429, "openai")
        assert error.retry_after_ms == 120_000
        assert str(error).startswith("rate_limited: ")
        with pytest.raises(toolspan.ToolspanError):
            async for _ in client.stream("hi"):
                pass

    asyncio.run(main())


def test_a_wrong_option_is_named_when_the_client_is_created() -> None:
    with pytest.raises(toolspan.InvalidConfigError) as caught:
        create_client(base_url="http://x", style="openai", model="m", max_turnz=3)  # type: ignore[call-arg]
    assert caught.value.path == "maxTurnz"
    with pytest.raises(ValueError):
        create_client(base_url="http://x", style="openia", model="m")  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="hooks.before_llm must be a function, not int"):
        create_client(base_url="http://x", style="openai", model="m", hooks={"before_llm": 3})  # type: ignore[typeddict-item]


def test_a_toolkit_of_another_engine_or_twin_is_refused() -> None:
    async def main() -> None:
        engine, another = Engine(), Engine()
        client = create_client(engine=engine, base_url="http://x", style="openai", model="m")
        async with create_toolkit(engine=engine) as mine, create_toolkit(engine=another) as other:
            assert other._number == mine._number, "which is why it has to be refused"
            for wrong in (other, create_toolkit(), sync.create_toolkit()):
                with pytest.raises(TypeError, match="of the same engine"):
                    await client.run("hi", toolkit=wrong)  # type: ignore[arg-type]
                with pytest.raises(TypeError, match="of the same engine"):
                    client.conversation(toolkit=wrong)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match=r"toolspan\.sync"):
                sync.create_client(base_url="http://x", style="openai", model="m").run("hi", toolkit=mine)  # type: ignore[arg-type]
        engine.close()
        another.close()

    asyncio.run(main())


def test_what_is_no_prompt_is_said_to_be_none() -> None:
    with sync.create_client(base_url="http://x", style="openai", model="m") as client:
        for wrong in (5, None, {"type": "text", "text": "hi"}):
            with pytest.raises(toolspan.InvalidArgumentError, match="prompt: expected text or a list"):
                client.run(wrong)  # type: ignore[arg-type]


# The program's functions


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_hooks_see_and_change_a_run(peers: Any, kind: str) -> None:
    scene = peers(llm=[calls("add", a=1, b=1), {"text": "done"}])
    seen: list[tuple[str, str]] = []

    def before_llm(given: dict[str, Any]) -> Any:
        seen.append(("before_llm", who.get()))
        return {"model": f"m{given['turn']}"}

    def after_llm(given: dict[str, Any]) -> Any:
        seen.append(("after_llm", who.get()))
        return "what it returns is nobody's business"

    def before_tool(given: dict[str, Any]) -> Any:
        seen.append(("before_tool", who.get()))
        return {"args": {"a": 20, "b": 22}}

    def after_tool(given: dict[str, Any]) -> Any:
        seen.append(("after_tool", who.get()))
        return {"result": ToolResult(f"<{given['result']['output']}>")}

    def made(function: Any) -> Any:
        async def later(given: dict[str, Any]) -> Any:
            return function(given)

        return function if kind == "sync" else later

    async def main() -> None:
        who.set("me")
        client = create_client(
            **scene.client_options(),
            hooks={
                "before_llm": made(before_llm),
                "after_llm": made(after_llm),
                "before_tool": made(before_tool),
                "after_tool": made(after_tool),
            },
            body_transform=made(lambda body: {**body, "seed": 7}),
        )
        async with create_toolkit(tools=[add]) as tk:
            result = await client.run("hi", toolkit=tk)
        assert [c.output for c in result.tool_calls] == ["<42>"]
        sent = await asyncio.to_thread(bodies, scene)
        assert [(body["model"], body["seed"]) for body in sent] == [("m1", 7), ("m2", 7)]

    asyncio.run(main())
    order = ["before_llm", "after_llm", "before_tool", "after_tool", "before_llm", "after_llm"]
    assert seen == [(name, "me") for name in order]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_hook_raises_is_the_cause(peers: Any, kind: str) -> None:
    scene = peers(llm=[{"text": "ok"}])

    def fail(_: Any) -> Any:
        raise LookupError("mine")

    async def fail_later(_: Any) -> Any:
        raise LookupError("mine")

    async def main() -> None:
        hook = fail if kind == "sync" else fail_later
        client = create_client(**scene.client_options(), hooks={"before_llm": hook})
        with pytest.raises(toolspan.HostFailedError) as caught:
            await client.run("hi")
        assert isinstance(caught.value.__cause__, LookupError)
        assert str(caught.value.__cause__) == "mine"
        with pytest.raises(toolspan.HostFailedError) as caught:
            async for _ in client.stream("hi"):
                pass
        assert isinstance(caught.value.__cause__, LookupError)

    asyncio.run(main())


def test_what_a_tool_raises_is_with_its_call(peers: Any) -> None:
    scene = peers(llm=[calls("fail", "add", a=1, b=1), {"text": "sorry"}])

    def fail(a: int, b: int) -> None:
        raise LookupError("mine")

    async def main() -> None:
        async with create_toolkit(tools=[add, fail]) as tk:
            result = await create_client(**scene.client_options()).run("hi", toolkit=tk)
        first, second = result.tool_calls
        assert (first.is_error, first.output, type(first.exception)) == (True, "mine", LookupError)
        assert (second.is_error, second.exception) == (False, None)

    asyncio.run(main())


def test_on_error_is_given_the_exception_and_decides(peers: Any) -> None:
    scene = peers(llm=[{"status": 400, "json": {"error": {"message": "no"}}}, {"text": "ok"}])
    seen: list[Any] = []

    def decide(given: dict[str, Any]) -> str:
        seen.append((type(given["error"]), given["retryable"]))
        return "retry"

    async def main() -> None:
        client = create_client(**scene.client_options(), on_error=decide, retry_base_ms=1)
        assert (await client.run("hi")).text == "ok"

    asyncio.run(main())
    assert seen == [(toolspan.ProviderRejectedError, False)]


def test_metrics_are_handed_over_before_the_run_ends(peers: Any) -> None:
    scene = peers(llm=[{"text": "ok"}])
    events: list[dict[str, Any]] = []

    async def main() -> None:
        client = create_client(**scene.client_options(), on_metric=events.append)
        await client.run("hi")
        assert events
        assert "toolspan_" in client.metrics()

    asyncio.run(main())


def test_a_cancel_does_not_interrupt_the_store_that_is_saving(peers: Any) -> None:
    """The engine waits for what is being saved; the task that saves it must not be cancelled with the rest."""
    scene = peers(llm=[{"text": "1"}])
    kept: dict[str, Any] = {}

    class Store:
        async def get(self, id: str) -> Any:
            return None

        async def save(self, id: str, transcript: Any) -> None:
            saving.set()
            await go_on.wait()
            kept[id] = transcript

    saving, go_on = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        client = create_client(**scene.client_options(), store=Store())
        ask = asyncio.create_task(client.ask("hi", id="x"))
        await saving.wait()
        ask.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await ask
        assert len(kept["x"]["messages"]) == 2
        await client.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_store_of_the_program_is_asked(peers: Any, kind: str) -> None:
    scene = peers(llm=[{"text": "one"}, {"text": "two"}])
    kept: dict[str, Any] = {}

    class Sync:
        def get(self, id: str) -> Any:
            return kept.get(id)

        def save(self, id: str, transcript: Any) -> str:
            kept[id] = transcript
            return "saved"

    class Async:
        async def get(self, id: str) -> Any:
            return kept.get(id)

        async def save(self, id: str, transcript: Any) -> str:
            kept[id] = transcript
            return "saved"

    async def main() -> None:
        client = create_client(**scene.client_options(), store=Sync() if kind == "sync" else Async())
        assert (await client.ask("first", id="x")).text == "one"
        assert (await client.ask("second", id="x")).conversation_id == "x"
        assert [m["content"] for m in kept["x"]["messages"]] == ["first", "one", "second", "two"]
        assert await client.conversation_store().get("x") == kept["x"]

    asyncio.run(main())


def test_a_conversation_remembers_and_forgets(peers: Any) -> None:
    scene = peers(llm=[{"text": "zero"}, {"text": "one"}, {"text": "two"}])

    async def main() -> None:
        client = create_client(**scene.client_options())
        async for _ in client.stream("streamed", id="x"):
            pass
        assert len(await client.conversation(id="x").messages()) == 2
        conversation = client.conversation()
        await conversation.send("first")
        await conversation.send("second")
        assert len(await conversation.messages()) == 4
        await conversation.reset()
        assert await conversation.messages() == []

    asyncio.run(main())


# Transports


def by_urllib(request: HttpRequest) -> HttpResponse:
    made = urllib.request.Request(request.url, request.body, dict(request.headers), method=request.method)
    answer = urllib.request.urlopen(made)
    return HttpResponse(answer.status, answer.headers.items(), iter(answer.read1, b""), answer.close)


async def whole(request: HttpRequest) -> HttpResponse:
    answer = await asyncio.to_thread(by_urllib, request)
    return HttpResponse(answer.status, dict(answer.headers), b"".join(answer.body))


async def in_pieces(request: HttpRequest) -> HttpResponse:
    answer = await whole(request)

    async def pieces() -> Any:
        for byte in answer.body:
            yield bytes([byte])

    return HttpResponse(answer.status, answer.headers, pieces())


@pytest.mark.parametrize("transport", ["sync function", "async function", "async pieces", "httpx async", "httpx sync"])
def test_requests_go_through_the_programs_client(peers: Any, transport: str) -> None:
    scene = peers(llm=[{"text": "It is ü."}, {"text": "It is ü."}])

    async def use(http_client: Any) -> None:
        client = create_client(**scene.client_options(), http_client=http_client)
        assert (await client.run("hi")).text == "It is ü."
        said = [e.delta async for e in client.stream("hi") if isinstance(e, TextEvent)]
        assert "".join(said) == "It is ü."

    async def main() -> None:
        if transport == "httpx async":
            async with httpx.AsyncClient(headers={"x-mine": "1"}) as mine:
                await use(mine)
        elif transport == "httpx sync":
            with httpx.Client(headers={"x-mine": "1"}) as mine:
                await use(mine)
        else:
            functions = {"sync function": by_urllib, "async function": whole, "async pieces": in_pieces}
            await use(functions[transport])

    asyncio.run(main())
    if transport.startswith("httpx"):
        assert all(r["headers"]["x-mine"] == "1" for r in scene.seen()["llm"]["main"]["requests"])


def test_what_a_transport_raises_is_the_cause(peers: Any) -> None:
    scene = peers(llm=[])

    async def fail(_: HttpRequest) -> HttpResponse:
        raise LookupError("no network today")

    async def main() -> None:
        client = create_client(**scene.client_options(), http_client=fail, retries=0)
        with pytest.raises(toolspan.ToolspanError) as caught:
            await client.run("hi")
        assert isinstance(caught.value.__cause__, LookupError)

    asyncio.run(main())


# The sync twin


def test_the_sync_twin_does_the_same(peers: Any) -> None:
    scene = peers(llm=[calls("add", a=2, b=3), {"text": "five"}, {"text": "again five"}, {"text": "kept"}])
    with sync.create_toolkit(tools=[add]) as tk, sync.create_client(**scene.client_options()) as client:
        assert client.run("hi", toolkit=tk).tool_calls[0].output == "5"
        stream = client.stream("hi", toolkit=tk)
        assert "".join(e.delta for e in stream if isinstance(e, TextEvent)) == "again five"
        assert stream.result is not None and stream.result.status == "done"
        assert client.ask("hi", id="x").text == "kept"
        store = client.conversation_store()
        assert (store.get("x") or {})["version"] == 1
        store.save("y", [{"role": "user", "content": "hi"}])
        assert len((store.get("y") or {})["messages"]) == 1
        assert client.conversation(id="x").messages() == (store.get("x") or {})["messages"]
        with pytest.raises(toolspan.ToolspanError):
            client.run("no reply is left", toolkit=tk, timeout_ms=2000)


def test_mcp_servers_are_listed_and_used(peers: Any) -> None:
    scene = peers(mcp={"srv": {"transport": "http", "tools": [{"name": "echo", "does": {"echo": True}}]}})
    config = {"mcpServers": {"srv": {"url": scene.mcp["srv"]["url"]}, "off": {"command": ["x"], "disabled": True}}}

    async def main() -> None:
        listed = await toolspan.list_mcp_tools(mcp_config=config)
        assert [(t.name, t.exposed_name) for t in listed.tools["srv"]] == [("echo", "srv_echo")]
        async with create_toolkit(mcp_config_text=json.dumps(config).encode()) as tk:
            assert {id: s.state for id, s in tk.status().items()} == {"srv": "connected", "off": "disabled"}
            result = await tk.execute("srv_echo", {"z": 1, "a": "ü"})
            assert (result.output, result.metadata) == ('{"z":1,"a":"ü"}', {"server": "srv"})
            adapted = tk.adapt("anthropic")
            assert adapted.tools[0]["name"] == "srv_echo"

    asyncio.run(main())
