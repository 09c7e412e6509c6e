"""The pump: hands requests to the native engine and its events to whoever waits for them.

One daemon thread per engine polls without holding the GIL. It runs no code of the program: what belongs to an event
loop is handed over with one ``call_soon_threadsafe`` a batch, sync functions go to threads of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import functools
import importlib
import itertools
import json
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

try:
    import toolspan._toolspan as native
except ModuleNotFoundError as error:
    raise ImportError(
        "the native module toolspan._toolspan is not there; in a clone, build it with `make python`"
    ) from error

from ._abi import ABI_VERSION
from ._base import ToolspanError, camel, encode
from ._errors import ClosedError, InternalError, InvalidArgumentError
from ._host import KINDS, Handler, HostCall, Notice, Workers, failure, log

if TYPE_CHECKING:
    import asyncio

if native.ABI_VERSION != ABI_VERSION:
    raise ImportError(
        f"abi_mismatch: {native.__file__} speaks version {native.ABI_VERSION} and this package version {ABI_VERSION}; "
        "install toolspan again, or build the native module again"
    )

_CLOSE_AT_EXIT_MS = 500
_BATCH = 256


class Operation:
    """What waits for one operation: a future of a loop, in the context of the caller."""

    __slots__ = ("calls", "context", "failures", "future", "loop", "number", "result")

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.context = contextvars.copy_context()
        self.calls: dict[int, HostCall] = {}
        self.failures: dict[int, BaseException] = {}
        #: Also when the caller was cancelled before it could take it.
        self.result: Any = None


class Engine:
    """An instance of the library: its threads, toolkits and clients. Programs use the one that is made on demand."""

    def __init__(self, **options: Any) -> None:
        _import_the_rest()
        named = {camel(name): value for name, value in options.items()}
        self._native = _checked(lambda: native.Engine(encode({"hostCalls": KINDS, "log": "debug", **named})))
        self._pid = os.getpid()
        self._numbers = itertools.count(1)
        self._operations: dict[int, Operation] = {}
        # Owned by the toolkits and clients they were given to.
        self._handlers: weakref.WeakValueDictionary[int, Handler] = weakref.WeakValueDictionary()
        self.workers = Workers()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        _engines.add(self)

    def call(self, op: str, args: dict[str, Any] | None = None) -> Any:
        """An operation that needs no waiting."""
        request = _request(op, args or {})
        return json.loads(_checked(lambda: self._native.call(request)))

    def handler(self, function: Callable[[HostCall], Any], is_async: bool) -> Handler:
        """Gives a host function its number; it is known as long as the handler lives."""
        handler = Handler(next(self._numbers), function, is_async)
        self._handlers[handler.number] = handler
        return handler

    def start(self, op: str, args: dict[str, Any]) -> Operation:
        """Submits an operation from a coroutine of the running loop."""
        import asyncio

        request = _request(op, args)
        operation = Operation(next(self._numbers), asyncio.get_running_loop())
        self._start_pump()
        self._loop = operation.loop
        self._operations[operation.number] = operation
        try:
            _checked(lambda: self._native.submit(operation.number, request))
        except BaseException:
            self._operations.pop(operation.number, None)
            raise
        return operation

    async def perform(self, op: str, args: dict[str, Any]) -> Any:
        """Submits an operation and gives its result; leaving the wait cancels it."""
        return await self.finish(self.start(op, args))

    async def finish(self, operation: Operation) -> Any:
        """The result of an operation. Cancelled, it ends the operation and the program's tasks that work for it, and
        returns when the engine is done with it."""
        import asyncio

        try:
            return await operation.future
        except asyncio.CancelledError:
            if operation.number in self._operations and self._pid == os.getpid():
                ended = operation.future = operation.loop.create_future()
                self._abandon(operation)
                with contextlib.suppress(ToolspanError):
                    await ended
            raise
        finally:
            self._abandon(operation)

    def _abandon(self, operation: Operation) -> None:
        self.cancel(operation)
        for number, call in list(operation.calls.items()):
            # What is being saved still may be; the engine says when it waits no longer.
            if call.kind != "store.save":
                operation.calls.pop(number, None)
                call.cancel()

    def cancel(self, operation: Operation) -> None:
        """Cancels the operation unless it has ended."""
        if operation.number in self._operations and self._pid == os.getpid():
            self._native.cancel(operation.number)

    def discard(self, op: str, args: dict[str, Any]) -> None:
        """Submits an operation whose end nobody waits for; for finalizers, so it never raises."""
        if self._pid == os.getpid():
            try:
                self._native.submit(next(self._numbers), _request(op, args))
            except native.EngineError:
                pass  # closed: then what was to be discarded is gone

    def respond(self, call: int, reply: str) -> None:
        """Answers a host call."""
        try:
            self._native.respond(call, reply)
        except native.EngineError:
            pass  # closed, or nobody waits for it any more

    def close(self, timeout_ms: int = 5000) -> bool:
        """Ends everything that is open. False when that took longer than allowed and goes on in the background."""
        if self._pid != os.getpid():
            return True
        ended: bool = self._native.close(timeout_ms)
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1.0)
        return ended

    # From here on: the pump thread.

    def _start_pump(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._pump, name="toolspan-pump", daemon=True)
                    self._thread.start()

    def _pump(self) -> None:
        while (text := self._native.poll(60_000, _BATCH)) is not None:
            self._route(text)
        for operation in list(self._operations.values()):
            # Only a defect of the engine leaves one here: a close ends them all.
            self._hand_over(operation.loop, [(operation, {"type": "failed", "op": operation.number})])

    def _route(self, text: str) -> None:
        batches: dict[Any, list[tuple[Operation | None, dict[str, Any]]]] = {}
        for event in _events(text):
            operation = self._operations.get(event["op"])
            if event["type"] == "host_call" and event["call"] and self._serve(operation, event):
                continue
            loop = operation.loop if operation is not None else self._loop
            batches.setdefault(loop, []).append((operation, event))
        for loop, batch in batches.items():
            self._hand_over(loop, batch)

    def _hand_over(self, loop: Any, batch: list[tuple[Operation | None, dict[str, Any]]]) -> None:
        try:
            loop.call_soon_threadsafe(self._deliver, batch)
        except (RuntimeError, AttributeError):  # the loop is closed, or there never was one
            self._orphaned(batch)

    def _serve(self, operation: Operation | None, event: dict[str, Any]) -> bool:
        """Starts a sync host function on a thread; False when a loop has to run it."""
        handler = self._handlers.get(event["handler"])
        if operation is None or handler is None:
            self.respond(event["call"], failure(ClosedError("nothing of the program serves this call any more")))
            return True
        call = HostCall(self, operation, handler, event)
        operation.calls[call.number] = call
        if handler.is_async:
            return False
        try:
            self.workers.submit(call.serve)
        except RuntimeError as error:  # no thread to be had, or the interpreter is exiting
            self.respond(call.number, failure(error))
        return True

    def _orphaned(self, batch: list[tuple[Operation | None, dict[str, Any]]]) -> None:
        """Events for a loop that is closed: nobody waits, but the engine must not wait either."""
        for operation, event in batch:
            if event["type"] == "host_call":
                if event["call"]:
                    self.respond(event["call"], failure(ClosedError("the event loop is closed")))
                else:
                    with contextlib.suppress(RuntimeError):  # the interpreter is exiting
                        self.workers.submit(functools.partial(self._notify, event))
            elif operation is not None and event["type"] != "host_call_cancelled":
                self._operations.pop(operation.number, None)
            elif operation is not None and (call := operation.calls.pop(event["call"], None)):
                call.abandoned = True

    # From here on: the thread of the loop.

    def _deliver(self, batch: list[tuple[Operation | None, dict[str, Any]]]) -> None:
        for operation, event in batch:
            kind = event["type"]
            if kind == "host_call":
                if not event["call"]:
                    self._notify(event)
                elif operation is not None and (call := operation.calls.get(event["call"])):
                    call.start()
            elif operation is None:
                continue
            elif kind == "host_call_cancelled":
                if call := operation.calls.pop(event["call"], None):
                    call.cancel()
            else:
                self._operations.pop(operation.number, None)
                operation.result = event.get("result")
                if operation.future.done():
                    continue  # cancelled here; the caller knows already
                if kind == "done":
                    operation.future.set_result(event["result"])
                else:
                    operation.future.set_exception(error_of(event.get("error"), operation.failures))
                    operation.future.exception()  # who left a stream does not want to hear how it ended

    def _notify(self, event: dict[str, Any]) -> None:
        if event["kind"] == "log":
            log(event["payload"])
        elif handler := self._handlers.get(event["handler"]):
            try:
                if hasattr(done := handler.function(Notice(event)), "__await__"):
                    self._finish_later(done)
            except Exception:
                import logging

                logging.getLogger("toolspan.host").exception("a function of the program failed in %s", event["kind"])

    def _finish_later(self, work: Any) -> None:
        import asyncio

        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()  # its loop is closed, and with it whatever it was about
        else:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def error_of(record: dict[str, Any] | None, failures: dict[int, BaseException]) -> ToolspanError:
    """The exception of an error record; what the program's own function raised becomes its cause."""
    if record is None:
        return InternalError("the engine ended without an answer")
    error = ToolspanError.from_json(record)
    error.__cause__ = failures.get(record.get("hostCall", 0))
    return error


def _events(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # an integer longer than this interpreter reads
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 4000 else float(digits))


def _request(op: str, args: dict[str, Any]) -> str:
    return encode({"op": op, "args": args})


def _checked(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except native.EngineError as error:
        raise ToolspanError.from_json(json.loads(str(error))) from None
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"half a surrogate pair is no text: {error}") from None


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_default: Engine | None = None
_default_lock = threading.Lock()


def default() -> Engine:
    """The engine of this process; a forked child gets its own."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Engine()
        return _default


def _import_the_rest() -> None:
    """Imports what is imported late, at the latest before there are threads: an import that another thread is about
    to do would leave its lock taken in a forked child for good."""
    with _importing:
        for name in ("asyncio", "dataclasses", "datetime", "uuid", "toolspan._models"):
            importlib.import_module(name)


def _after_fork() -> None:
    global _default, _default_lock, _importing
    _inherited.extend(_engines)  # never freed: their threads are in the parent
    _engines.clear()
    _default, _default_lock, _importing = None, threading.Lock(), threading.Lock()


def _at_exit() -> None:
    for engine in list(_engines):
        engine.close(_CLOSE_AT_EXIT_MS)


_importing = threading.Lock()
_inherited: list[Engine] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _importing.acquire(),
        after_in_parent=lambda: _importing.release(),
        after_in_child=_after_fork,
    )
atexit.register(_at_exit)
