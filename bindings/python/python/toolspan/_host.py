"""What the program supplies: its functions by number, how they are run, and what they answer."""

from __future__ import annotations

import collections
import json
import threading
from typing import TYPE_CHECKING, Any, Callable, Protocol, TypedDict

from ._base import Model, encode

if TYPE_CHECKING:
    import asyncio

    from ._engine import Engine, Operation
    from ._http import HttpClient as HttpClient

Transform = Callable[[dict[str, Any]], Any]
ErrorHook = Callable[[dict[str, Any]], Any]
MetricSink = Callable[[dict[str, Any]], Any]
Hook = Callable[[dict[str, Any]], Any]


class Hooks(TypedDict, total=False):
    """Functions around model and tool calls (SPEC 7.4), sync or async. Each gets one dict and may return one."""

    before_llm: Hook
    after_llm: Hook
    before_tool: Hook
    after_tool: Hook


class Store(Protocol):
    """A conversation store of the program (SPEC 7.7); its methods may be coroutines."""

    def get(self, id: str, /) -> Any:
        """The stored transcript, ``{"version", "style", "messages"}`` or a list of messages; ``None`` without one."""

    def save(self, id: str, transcript: dict[str, Any], /) -> Any:
        """Keeps the transcript."""


#: Kinds of host calls that this binding answers.
KINDS = [
    "tool.execute",
    "hook.beforeLLM",
    "hook.afterLLM",
    "hook.beforeTool",
    "hook.afterTool",
    "bodyTransform",
    "onError",
    "store.get",
    "store.save",
    "http.send",
    "http.read",
]


class Handler:
    """A function of the program under the number the engine knows it by."""

    __slots__ = ("__weakref__", "function", "is_async", "number")

    def __init__(self, number: int, function: Callable[[Any], Any], is_async: bool) -> None:
        self.number = number
        self.function = function
        self.is_async = is_async


class Notice:
    """A host call that wants no answer."""

    def __init__(self, event: dict[str, Any]) -> None:
        self.kind: str = event["kind"]
        self.payload: Any = event["payload"]


class HostCall:
    """One call of a handler. It is answered once, also when the function raises or is cancelled."""

    __slots__ = ("_context", "abandoned", "engine", "handler", "kind", "number", "operation", "payload", "task")

    def __init__(self, engine: Engine, operation: Operation, handler: Handler, event: dict[str, Any]) -> None:
        self.engine = engine
        self.operation = operation
        self.handler = handler
        self.number: int = event["call"]
        self.kind: str = event["kind"]
        self.payload: Any = event["payload"]
        self.abandoned = False
        self.task: asyncio.Task[None] | None = None
        self._context = operation.context.copy()

    def serve(self) -> None:
        """Runs a sync function, on a worker thread, in the context of the caller."""
        try:
            value = self._context.run(self.handler.function, self)
            if hasattr(value, "__await__"):
                self.operation.loop.call_soon_threadsafe(self.start, value)
                return
        except BaseException as error:
            self._fail(error)
        else:
            self._succeed(value)

    def start(self, value: Any = None) -> None:
        """Runs an async function, or waits for what a sync one returned, as a task of the caller's loop."""
        if not self.abandoned:
            self.task = self._context.run(self.operation.loop.create_task, self._run(value))

    async def _run(self, value: Any) -> None:
        try:
            value = await (self.handler.function(self) if value is None else value)
        except Exception as error:
            self._fail(error)
        except BaseException as error:  # cancelled, or the loop is going down
            self._fail(error)
            raise
        else:
            self._succeed(value)

    def cancel(self) -> None:
        """The engine does not wait any more."""
        self.abandoned = True
        if self.task is not None:
            self.task.cancel()

    def in_thread(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Runs a sync function on a worker thread, from an async handler."""
        loop, context = self.operation.loop, self._context.copy()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if not future.done():
                future.set_exception(error) if error is not None else future.set_result(value)

        def work() -> None:
            value: Any = None
            failed: BaseException | None = None
            try:
                value = context.run(function)
            except StopIteration:
                failed = RuntimeError("StopIteration")
            except BaseException as error:
                failed = error
            try:
                loop.call_soon_threadsafe(settle, value, failed)
            except RuntimeError:
                pass  # the loop is closed and with it the task that waited

        self.engine.workers.submit(work)
        return future

    def _succeed(self, value: Any) -> None:
        try:
            self._answer(encode({"ok": value}, to_json))
        except Exception as error:  # not JSON, or not text
            self._fail(error)
        else:
            self.operation.calls.pop(self.number, None)

    def _fail(self, error: BaseException) -> None:
        # The engine carries the number; whoever gets the error record finds the exception again.
        self.operation.failures[self.number] = error
        if isinstance(self.payload, dict) and "callId" in self.payload:
            self.operation.failures[self.payload["callId"]] = error
        self.operation.calls.pop(self.number, None)
        self._answer(failure(error))

    def _answer(self, reply: str) -> None:
        # An abandoned call stays without an answer: while the engine is still taking the cancel in, a tool that ended because
        # of it would look like a tool that failed, and the run would go on.
        if not self.abandoned:
            self.engine.respond(self.number, reply)


def failure(error: BaseException) -> str:
    """The reply that says a function of the program failed."""
    return json.dumps({"error": {"message": str(error), "type": type(error).__name__}})


def to_json(value: Any) -> Any:
    """JSON of what programs commonly return: records, Pydantic models, dataclasses, enums, sets, dates and paths."""
    import dataclasses
    import datetime
    import enum
    import os
    import uuid

    if isinstance(value, Model):
        return value.to_json()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, os.PathLike)):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine."""
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function) or iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004


_LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}


def log(record: dict[str, Any]) -> None:
    """A record of the library under its logger ``toolspan.<target>``; ``record.toolspan`` has its fields."""
    import logging

    logger = logging.getLogger(f"toolspan.{record['target']}")
    logger.log(_LEVELS[record["level"]], "%s", record["message"], extra={"toolspan": record.get("fields", {})})


class Workers:
    """Threads for sync functions. As many as run at once, so nested calls cannot wait for each other; daemons, so a
    function that never returns does not keep the process alive."""

    _IDLE_SECONDS = 10.0

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._work: collections.deque[Callable[[], Any]] = collections.deque()
        self._idle = 0

    def submit(self, work: Callable[[], Any]) -> None:
        """Runs it soon."""
        with self._ready:
            self._work.append(work)
            if len(self._work) <= self._idle:
                self._ready.notify()
                return
        threading.Thread(target=self._serve, name="toolspan-tool", daemon=True).start()

    def _serve(self) -> None:
        while True:
            with self._ready:
                self._idle += 1
                self._ready.wait_for(lambda: self._work, self._IDLE_SECONDS)
                self._idle -= 1
                if not self._work:
                    return
                work = self._work.popleft()
            work()
            del work  # an idle thread holds nothing
