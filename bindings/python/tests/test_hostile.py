"""What happens to the process: exit in every state, fork, Ctrl-C, dead loops. Each in a fresh interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import PACKAGE, fresh

PRELUDE = """
import asyncio, os, sys, threading, time
from toolspan import create_toolkit, counters, sync, tool
import toolspan

@tool
def add(a: int, b: int) -> int:
    return a + b

@tool
def block() -> None:
    threading.Event().wait()

@tool
async def hang() -> None:
    await asyncio.Event().wait()
"""


def program(body: str, *args: str, **env: str):  # type: ignore[no-untyped-def]
    return fresh(PRELUDE + textwrap.dedent(body), *args, **env)


EXITS = {
    "never used": "",
    "open toolkit": "tk = sync.create_toolkit(tools=[add]); tk.execute('add', {'a': 1, 'b': 2})",
    "open toolkit of a closed loop": """
        async def main():
            global tk
            tk = await create_toolkit(tools=[add])
            await tk.execute('add', {'a': 1, 'b': 2})
        asyncio.run(main())
        """,
    "running sync tool": """
        tk = sync.create_toolkit(tools=[block])
        threading.Thread(target=tk.execute, args=('block',), daemon=True).start()
        while not counters().operations: time.sleep(0.001)
        """,
    "running async tool": """
        tk = sync.create_toolkit(tools=[hang])
        threading.Thread(target=tk.execute, args=('hang',), daemon=True).start()
        while not counters().operations: time.sleep(0.001)
        """,
    "running async tool of asyncio.run": """
        async def main():
            tk = await create_toolkit(tools=[hang, block])
            for name in ('hang', 'block'):
                asyncio.ensure_future(tk.execute(name))
            while counters().operations < 2: await asyncio.sleep(0.001)
        asyncio.run(main())
        """,
    "completions landing": """
        def work():
            with sync.create_toolkit(tools=[add]) as tk:
                while True: tk.execute('add', {'a': 1, 'b': 2})
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
    "in an exception": """
        tk = sync.create_toolkit(tools=[add])
        def fail():
            try: raise SystemExit(0)
            finally: tk.execute('add', {'a': 1, 'b': 2}); started.append(time.monotonic())
        fail()
        """,
    "engine closed twice": """
        engine = toolspan.Engine()
        tk = sync.create_toolkit(engine=engine, tools=[add])
        engine.close(); engine.close()
        """,
}


@pytest.mark.parametrize("state", list(EXITS))
def test_the_interpreter_ends_cleanly(state: str) -> None:
    # The clock starts when the program is done, and stops after every hook but the interpreter's own.
    clock = "import atexit; started = []; atexit.register(lambda: print(time.monotonic() - started[0]))\n"
    ended = fresh(clock + PRELUDE + textwrap.dedent(EXITS[state]) + "\nstarted.append(time.monotonic())")
    assert (ended.code, ended.err) == (0, "")
    assert float(ended.out) < 2.0


def test_it_ends_cleanly_again_and_again() -> None:
    for _ in range(10):
        ended = program(EXITS["completions landing"])
        assert (ended.code, ended.err) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
class TestFork:
    def test_before_use_the_child_works(self) -> None:
        ended = program(
            """
            pid = os.fork()
            with sync.create_toolkit(tools=[add]) as tk:
                assert tk.execute('add', {'a': 1, 'b': 2}).output == '3'
            if pid: assert os.waitpid(pid, 0)[1] == 0
            """
        )
        assert (ended.code, ended.err) == (0, "")

    def test_after_use_the_childs_old_objects_say_so_and_new_ones_work(self) -> None:
        ended = program(
            """
            tk = sync.create_toolkit(tools=[add])
            assert tk.execute('add', {'a': 1, 'b': 2}).output == '3'
            pid = os.fork()
            if pid == 0:
                for use in (tk.tools, lambda: tk.execute('add', {'a': 1, 'b': 2})):
                    try: use()
                    except toolspan.ForkedError: pass
                    else: sys.exit(3)
                with sync.create_toolkit(tools=[add]) as fresh:
                    assert fresh.execute('add', {'a': 2, 'b': 2}).output == '4'
                del tk
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            assert tk.execute('add', {'a': 1, 'b': 3}).output == '4'
            """
        )
        assert (ended.code, ended.err) == (0, "")

    def test_multiprocessing_with_fork(self) -> None:
        ended = program(
            """
            import multiprocessing
            def work(n):
                with sync.create_toolkit(tools=[add]) as tk:
                    return tk.execute('add', {'a': n, 'b': 1}).output
            with sync.create_toolkit(tools=[add]) as tk:
                with multiprocessing.get_context('fork').Pool(2) as pool:
                    assert pool.map(work, [1, 2, 3]) == ['2', '3', '4']
            """
        )
        assert (ended.code, ended.err) == (0, "")

    def test_while_other_threads_work(self) -> None:
        ended = program(
            """
            # Warm first: the C library itself may lock up in the child of a fork that hits the start of a thread.
            warm = threading.Barrier(4)
            def work():
                with sync.create_toolkit(tools=[add]) as tk:
                    tk.execute('add', {'a': 1, 'b': 2})
                    warm.wait()
                    while True: tk.execute('add', {'a': 1, 'b': 2})
            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            warm.wait()
            for _ in range(10):
                time.sleep(0.01)
                pid = os.fork()
                if pid == 0:
                    with sync.create_toolkit(tools=[add]) as tk:
                        tk.execute('add', {'a': 1, 'b': 2})
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            """
        )
        assert (ended.code, ended.err) == (0, "")


def test_loops_come_and_go() -> None:
    ended = program(
        """
        async def one():
            async with create_toolkit(tools=[add, hang]) as tk:
                pending = asyncio.ensure_future(tk.execute('hang'))
                pending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                return (await tk.execute('add', {'a': 1, 'b': 2})).output
        for _ in range(30):
            assert asyncio.run(one()) == '3'
        """
    )
    assert (ended.code, ended.err) == (0, "")


def test_a_loop_closed_with_work_in_flight_hurts_nobody() -> None:
    ended = program(
        """
        loop = asyncio.new_event_loop()
        tk = loop.run_until_complete(create_toolkit(tools=[add, block])._open())
        task = loop.create_task(tk.execute('block'))
        while not counters().operations:
            loop.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False
        loop.close()
        toolspan._engine.default().cancel  # the engine is unharmed:
        async def again():
            async with create_toolkit(tools=[add]) as other:
                return (await other.execute('add', {'a': 1, 'b': 2})).output
        assert asyncio.run(again()) == '3'
        """
    )
    assert (ended.code, ended.err) == (0, "")


def interrupted(body: str) -> tuple[int, str, float]:
    """Runs a program that says `ready`, interrupts it, and gives code, stderr and how long the end took."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(body)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    return process.returncode, err, time.monotonic() - started


def test_ctrl_c_in_a_sync_call_is_quick() -> None:
    code, err, seconds = interrupted(
        """
        @tool
        async def slow() -> None:
            print('ready', flush=True)
            await asyncio.sleep(60)
        with sync.create_toolkit(tools=[slow]) as tk:
            try: tk.execute('slow')
            except KeyboardInterrupt: sys.exit(7)
        """
    )
    assert (code, err) == (7, "")
    assert seconds < 2.0


def test_ctrl_c_during_a_sync_tool_is_quick() -> None:
    code, err, seconds = interrupted(
        """
        @tool
        def slow() -> None:
            print('ready', flush=True)
            time.sleep(60)
        try: sync.create_toolkit(tools=[slow]).execute('slow')
        except KeyboardInterrupt: sys.exit(7)
        """
    )
    assert (code, err) == (7, "")
    assert seconds < 2.0


def test_ctrl_c_in_asyncio_run_is_quick() -> None:
    code, err, seconds = interrupted(
        """
        @tool
        def slow() -> None:
            print('ready', flush=True)
            time.sleep(60)
        async def main():
            async with create_toolkit(tools=[slow]) as tk:
                await tk.execute('slow')
        try: asyncio.run(main())
        except KeyboardInterrupt: sys.exit(7)
        """
    )
    assert (code, err) == (7, "")
    assert seconds < 2.0


def test_the_sync_api_works_where_a_loop_runs_and_inside_a_sync_tool() -> None:
    ended = program(
        """
        @tool
        def nested(n: int) -> str:
            return tk.execute('add', {'a': n, 'b': 1}).output if n < 60 else 'deep'
        @tool
        def deeper(n: int) -> str:
            return tk.execute('deeper', {'n': n + 1}).output if n < 60 else 'deep'
        tk = sync.create_toolkit(tools=[add, nested, deeper])
        async def main():
            return tk.execute('nested', {'n': 1}).output
        assert asyncio.run(main()) == '2'
        assert tk.execute('deeper', {'n': 0}).output == 'deep'
        """
    )
    assert (ended.code, ended.err) == (0, "")


def test_the_sync_api_inside_its_own_async_tool_is_refused_and_does_not_hang() -> None:
    ended = program(
        """
        @tool
        async def wrong() -> str:
            return tk.execute('add', {'a': 1, 'b': 1}).output
        tk = sync.create_toolkit(tools=[add, wrong])
        result = tk.execute('wrong')
        assert result.is_error and type(result.exception) is RuntimeError
        """
    )
    assert (ended.code, ended.err) == (0, "")


def test_logging_at_debug_from_many_threads_does_not_lock_up() -> None:
    ended = program(
        """
        import logging, io
        logging.basicConfig(level=logging.DEBUG, stream=io.StringIO())
        @tool
        def fail(): raise ValueError('x')
        def work():
            with sync.create_toolkit(tools=[fail]) as tk:
                for _ in range(50):
                    tk.execute('fail'); logging.getLogger('mine').debug('between')
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    assert (ended.code, ended.err) == (0, "")


def test_importing_starts_nothing() -> None:
    ended = fresh(
        """
        import sys, threading
        import toolspan, toolspan.sync
        assert threading.active_count() == 1
        heavy = {"asyncio", "logging", "dataclasses", "inspect", "pydantic", "concurrent.futures"} & set(sys.modules)
        assert not heavy, heavy
        """
    )
    assert (ended.code, ended.err) == (0, "")


SECOND_INTERPRETER = """
import sys, toolspan
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = "import sys; sys.path[:] = PATH\\ntry: import toolspan\\nexcept ImportError: print('refused', flush=True)"
other = interpreters.create()
interpreters.run_string(other, code.replace("PATH", repr(sys.path)))
interpreters.destroy(other)
"""


def test_a_second_interpreter_gets_an_import_error() -> None:
    ended = fresh(SECOND_INTERPRETER)
    assert (ended.code, ended.err, ended.out) == (0, "", "refused\n")
