"""The same names without ``await``.

Calls run on an event loop of their own, on a daemon thread, so they work with or without a loop running in the
caller, from any number of threads, and from inside a sync tool. Ctrl-C cancels the call and raises at once.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Any, Coroutine, TypeVar

import toolspan as _async

from . import __all__ as __all__
from . import _engine

if TYPE_CHECKING:
    import asyncio

    from typing_extensions import Self, Unpack

    from . import (
        AbiMismatchError as AbiMismatchError,
    )
    from . import (
        Adapted as Adapted,
    )
    from . import (
        CancelledError as CancelledError,
    )
    from . import (
        ClosedError as ClosedError,
    )
    from . import (
        ConnectionFailedError as ConnectionFailedError,
    )
    from . import (
        ContentPart as ContentPart,
    )
    from . import (
        Counters as Counters,
    )
    from . import (
        DoneEvent as DoneEvent,
    )
    from . import (
        Engine as Engine,
    )
    from . import (
        Event as Event,
    )
    from . import (
        ForkedError as ForkedError,
    )
    from . import (
        Hints as Hints,
    )
    from . import (
        Hooks as Hooks,
    )
    from . import (
        HostFailedError as HostFailedError,
    )
    from . import (
        HttpRequest as HttpRequest,
    )
    from . import (
        HttpResponse as HttpResponse,
    )
    from . import (
        InternalError as InternalError,
    )
    from . import (
        InternalPanicError as InternalPanicError,
    )
    from . import (
        InvalidArgumentError as InvalidArgumentError,
    )
    from . import (
        InvalidConfigError as InvalidConfigError,
    )
    from . import (
        InvalidResponseError as InvalidResponseError,
    )
    from . import (
        LimitExceededError as LimitExceededError,
    )
    from . import (
        ListedTool as ListedTool,
    )
    from . import (
        McpError as McpError,
    )
    from . import (
        McpTools as McpTools,
    )
    from . import (
        NotFoundError as NotFoundError,
    )
    from . import (
        ProcessFailedError as ProcessFailedError,
    )
    from . import (
        ProviderRejectedError as ProviderRejectedError,
    )
    from . import (
        ProviderUnavailableError as ProviderUnavailableError,
    )
    from . import (
        RateLimitedError as RateLimitedError,
    )
    from . import (
        ReasoningEvent as ReasoningEvent,
    )
    from . import (
        RequiredServerFailedError as RequiredServerFailedError,
    )
    from . import (
        RunResult as RunResult,
    )
    from . import (
        ServerStatus as ServerStatus,
    )
    from . import (
        Store as Store,
    )
    from . import (
        StoreConflictError as StoreConflictError,
    )
    from . import (
        StoreFailedError as StoreFailedError,
    )
    from . import (
        StreamInterruptedError as StreamInterruptedError,
    )
    from . import (
        TextEvent as TextEvent,
    )
    from . import (
        Tool as Tool,
    )
    from . import (
        ToolCall as ToolCall,
    )
    from . import (
        ToolCallEvent as ToolCallEvent,
    )
    from . import (
        ToolContext as ToolContext,
    )
    from . import (
        ToolInfo as ToolInfo,
    )
    from . import (
        ToolResult as ToolResult,
    )
    from . import (
        ToolResultEvent as ToolResultEvent,
    )
    from . import (
        ToolspanError as ToolspanError,
    )
    from . import (
        UnauthorizedError as UnauthorizedError,
    )
    from . import (
        UnsupportedError as UnsupportedError,
    )
    from . import (
        Usage as Usage,
    )
    from . import (
        UsageEvent as UsageEvent,
    )
    from . import __version__ as __version__
    from . import (
        counters as counters,
    )
    from . import (
        tool as tool,
    )
    from . import (
        version as version,
    )
    from ._api import Prompt
    from ._models import ClientOptions, McpToolsOptions, Provider, RunOptions, ToolkitOptions
    from ._tools import AnyTool

T = TypeVar("T")


def create_toolkit(*, engine: _engine.Engine | None = None, **options: Unpack[ToolkitOptions]) -> Toolkit:
    """A toolkit: ``with create_toolkit(...) as toolkit``. Options as in :func:`toolspan.create_toolkit`."""
    return Toolkit(_run(_async.create_toolkit(engine=engine, **options)._open()))


def list_mcp_tools(*, engine: _engine.Engine | None = None, **options: Unpack[McpToolsOptions]) -> McpTools:
    """Connects to every enabled server, lists its tools, disconnects."""
    return _run(_async.list_mcp_tools(engine=engine, **options))


def create_client(*, engine: _engine.Engine | None = None, **options: Unpack[ClientOptions]) -> Client:
    """A client of one endpoint and model. Options as in :func:`toolspan.create_client`."""
    return Client(_async.create_client(engine=engine, **options))


class Toolkit:
    """An ordered set of tools and the connections behind them."""

    def __init__(self, toolkit: _async.Toolkit) -> None:
        self._toolkit = toolkit

    def tools(self) -> list[ToolInfo]:
        """Every tool, in order."""
        return self._toolkit.tools()

    def get(self, name: str) -> ToolInfo | None:
        """The tool of that final name."""
        return self._toolkit.get(name)

    def execute(self, name: str, args: Any = None, *, timeout_ms: int | None = None) -> ToolResult:
        """Executes one call."""
        return _run(self._toolkit.execute(name, args, timeout_ms=timeout_ms))

    def register(self, tool: AnyTool) -> bool:
        """Adds a tool; False when its name is taken."""
        return self._toolkit.register(tool)

    def status(self) -> dict[str, ServerStatus]:
        """State of every MCP server by id."""
        return self._toolkit.status()

    def adapt(self, provider: Provider) -> Adapted:
        """The declarations as a provider takes them, and what had to change."""
        return self._toolkit.adapt(provider)

    def close(self) -> None:
        """Ends connections and processes. Idempotent."""
        _run(self._toolkit.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """One endpoint, one model, and the options of a run."""

    def __init__(self, client: _async.Client) -> None:
        self._client = client

    def run(self, prompt: Prompt, *, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]) -> RunResult:
        """Sends the prompt and the tools, executes the calls the model asks for, until it answers."""
        return _run(self._client.run(prompt, toolkit=_inner(toolkit), **options))

    def stream(
        self, prompt: Prompt, *, id: str | None = None, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]
    ) -> Stream:
        """The same run, event by event: ``for event in client.stream(...)``; with ``id`` it has that memory."""
        return Stream(self._client.stream(prompt, id=id, toolkit=_inner(toolkit), **options))

    def ask(
        self, prompt: Prompt, *, id: str, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]
    ) -> RunResult:
        """The same run with the memory of conversation ``id``."""
        return _run(self._client.ask(prompt, id=id, toolkit=_inner(toolkit), **options))

    def conversation(self, *, id: str | None = None, toolkit: Toolkit | None = None) -> Conversation:
        """A conversation that remembers; under ``id`` in the store, or only here."""
        return Conversation(self._client.conversation(id=id, toolkit=_inner(toolkit)))

    def conversation_store(self) -> ConversationStore:
        """The very store this client uses."""
        return ConversationStore(self._client.conversation_store())

    def metrics(self) -> str:
        """Counters of this client in the Prometheus text format."""
        return self._client.metrics()

    def close(self) -> None:
        """Ends what is running. Idempotent."""
        _run(self._client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Stream:
    """The events of a run. Leaving the loop ends the run and its connection."""

    def __init__(self, stream: _async.Stream) -> None:
        self._stream = stream

    @property
    def result(self) -> RunResult | None:
        """The result, once the last event was read."""
        return self._stream.result

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while (event := self._stream._next_read()) is None:
            if self._stream._ended:
                raise StopIteration
            _run(self._stream._fetch())
        return event

    def close(self) -> None:
        """Ends the run unless it has ended."""
        self._stream._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Conversation:
    """A run after the other with one memory."""

    def __init__(self, conversation: _async.Conversation) -> None:
        self._conversation = conversation

    def send(self, prompt: Prompt) -> RunResult:
        """The next prompt."""
        return _run(self._conversation.send(prompt))

    def messages(self) -> list[dict[str, Any]]:
        """The transcript so far."""
        return _run(self._conversation.messages())

    def reset(self) -> None:
        """Forgets everything."""
        _run(self._conversation.reset())


class ConversationStore:
    """The store of a client, from outside."""

    def __init__(self, store: _async.ConversationStore) -> None:
        self._store = store

    def get(self, id: str) -> dict[str, Any] | None:
        """The transcript; ``None`` when there is none."""
        return _run(self._store.get(id))

    def save(self, id: str, messages: Any) -> None:
        """Replaces the transcript; a bare list of messages is accepted."""
        _run(self._store.save(id, messages))


def __getattr__(name: str) -> object:
    return getattr(_async, name)  # everything that does not wait is the same


def _inner(toolkit: Toolkit | None) -> _async.Toolkit | None:
    if toolkit is None:
        return None
    if not isinstance(toolkit, Toolkit):
        raise TypeError("toolkit is what create_toolkit of toolspan.sync gave")
    return toolkit._toolkit


_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_lock = threading.Lock()
_exiting = False


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine on the private loop, in the context of this thread, and waits."""
    import asyncio
    import concurrent.futures

    if threading.current_thread() is _thread:
        work.close()
        raise RuntimeError("toolspan.sync cannot be called from an async function that toolspan.sync runs; await there")
    if _exiting:
        work.close()
        raise _async.ClosedError("the interpreter is exiting")
    future = asyncio.run_coroutine_threadsafe(work, _private_loop())
    try:
        if os.name != "nt":
            return future.result()
        while not concurrent.futures.wait([future], 0.1).done:
            pass  # Windows does not interrupt a wait without an end
        return future.result()
    finally:
        future.cancel()
        if _exiting:  # only daemon threads are left, and they end here: nobody is there to be told
            threading.Event().wait()


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None:
            import asyncio

            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="toolspan-sync", daemon=True)
            _thread.start()
        return _loop


def _after_fork() -> None:
    global _loop, _thread, _lock
    _loop, _thread, _lock = None, None, threading.Lock()


def _at_exit() -> None:
    global _exiting
    _exiting = True
    if _loop is None or _thread is None:
        return
    import asyncio

    async def end(loop: asyncio.AbstractEventLoop) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=0.3)
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.stop()

    asyncio.run_coroutine_threadsafe(end(_loop), _loop)
    _thread.join(timeout=1.0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
