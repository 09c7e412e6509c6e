"""The Python column of the conformance suite: does what stdin says with the package's public API, answers on stdout."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import threading
import traceback
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bindings" / "python" / "python"))

import toolspan  # noqa: E402

calls: list[Any] = []
logs: list[Any] = []
metrics: list[Any] = []
objects: dict[int, Any] = {}
running: dict[int, asyncio.Task[None]] = {}


class Records(logging.Handler):
    """The program's view of the library's log."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower().replace("warning", "warn")
        line = {"level": level, "target": record.name.removeprefix("toolspan."), "message": record.getMessage()}
        fields = record.__dict__["toolspan"]
        logs.append({**line, "fields": fields} if fields else line)


logger = logging.getLogger("toolspan")
logger.setLevel(logging.DEBUG)
logger.propagate = False
logger.addHandler(Records())


def keep(value: Any) -> int:
    objects[len(objects) + 1] = value
    return len(objects)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z]+)", lambda found: "_" + found[1].lower(), name)


# The program's functions


class Host:
    """One function of the program, as the case describes it."""

    def __init__(self, number: int, kind: str, behaviour: dict[str, Any]) -> None:
        self.number, self.kind, self.behaviour = number, kind, behaviour
        self.count = 0

    def record(self, payload: Any, kind: str | None = None) -> None:
        calls.append({"handler": self.number, "kind": kind or self.kind, "payload": plain(payload)})

    async def __call__(self, payload: Any, *_: Any) -> Any:
        self.record(payload)
        return await self.behave(self.behaviour, payload)

    async def behave(self, behaviour: dict[str, Any], payload: Any) -> Any:
        match behaviour:
            case {"sequence": steps}:
                self.count += 1
                return await self.behave(steps[min(self.count, len(steps)) - 1], payload)
            case {"return": value}:
                return value
            case {"echo": True}:
                return payload
            case {"throw": text}:
                raise RuntimeError(text)
            case {"hang": True}:
                return await asyncio.Event().wait()
            case {"edit": how}:
                return edit(payload, **how)


class Store(Host):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: dict[str, Any] = {}

    async def get(self, id: str) -> Any:
        self.record({"id": id}, "store.get")
        return self.kept.get(id) if "store" in self.behaviour else await self.behave(self.behaviour, {"id": id})

    async def save(self, id: str, messages: Any) -> None:
        self.record({"id": id, "messages": messages}, "store.save")
        if "store" in self.behaviour:
            self.kept[id] = messages
        else:
            await self.behave(self.behaviour, {"id": id, "messages": messages})


class Http(Host):
    async def __call__(self, request: toolspan.HttpRequest, *_: Any) -> Any:  # type: ignore[override]
        self.record({"method": request.method, "url": request.url})
        headers = {**dict(request.headers), "x-injected": "1"}
        made = urllib.request.Request(request.url, request.body, headers, method=request.method)
        return await asyncio.to_thread(self.send, made)

    def send(self, request: urllib.request.Request) -> toolspan.HttpResponse:
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        body = iter(lambda: answer.read1(), b"")
        return toolspan.HttpResponse(answer.status, answer.headers.items(), body, answer.close)


class Metrics(Host):
    def __call__(self, payload: Any, *_: Any) -> None:  # type: ignore[override]
        self.record(payload)
        metrics.append(payload)


def edit(body: dict[str, Any], set: Any = (), drop: Any = (), appendToLastUser: str | None = None) -> Any:
    body.update(set)
    for key in drop:
        body.pop(key, None)
    if appendToLastUser is not None:
        last = [message for message in body["messages"] if message["role"] == "user"][-1]
        if isinstance(last["content"], str):
            last["content"] += appendToLastUser
        else:
            last["content"].append({"type": "text", "text": appendToLastUser})
    return body


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda model: model.to_json()))


def host(value: Any, handlers: dict[str, Any]) -> Any:
    """The function that stands behind `N` or `{"handler": N}`, if one does."""
    number = value["handler"] if isinstance(value, dict) and list(value) == ["handler"] else value
    found = handlers.get(str(number)) if isinstance(number, int) else None
    if found is None:
        return value
    kind = {"store": Store, "httpClient": Http, "onMetric": Metrics}.get(found["kind"], Host)
    return kind(number, found["kind"], found["behaviour"])


def a_tool(spec: dict[str, Any], handlers: dict[str, Any]) -> toolspan.Tool:
    hints = toolspan.Hints.from_json(spec["hints"]) if "hints" in spec else None
    about = spec["name"], spec.get("description", ""), spec.get("inputSchema", {})
    return toolspan.Tool(*about, host(spec["handler"], handlers), hints=hints)


def options(given: dict[str, Any], handlers: dict[str, Any]) -> dict[str, Any]:
    made = {snake(key): host(value, handlers) for key, value in given.items()}
    if "hooks" in made:
        made["hooks"] = {snake(key): host(value, handlers) for key, value in made["hooks"].items()}
    if "tools" in made:
        made["tools"] = [a_tool(spec, handlers) for spec in made["tools"]]
    return made


# The operations


#: Where the result of a method is one value of an object.
KEYS = {
    "toolkit.tools": "tools",
    "toolkit.status": "servers",
    "toolkit.get": "tool",
    "client.metrics": "text",
    "conversation.messages": "messages",
    "store.get": "transcript",
}


async def perform(op: str, args: dict[str, Any], handlers: dict[str, Any]) -> Any:
    noun, _, verb = op.partition(".")
    if "toolkit" in args and noun != "toolkit":
        args["toolkit"] = objects[args["toolkit"]]
    match op:
        case "toolkit.create":
            return {"toolkit": keep(await toolspan.create_toolkit(**options(args["options"], handlers)))}
        case "toolkit.register":
            return {"registered": objects[args["toolkit"]].register(a_tool(args["tool"], handlers))}
        case "mcp.list":
            return await toolspan.list_mcp_tools(**options(args, handlers))
        case "client.create":
            return {"client": keep(toolspan.create_client(**options(args["options"], handlers)))}
        case "client.stream":
            return await stream(objects[args.pop("client")], args)
        case "conversation.create":
            return {"conversation": keep(objects[args.pop("client")].conversation(**args))}
        case "counters":
            return toolspan.counters()
        case "version":
            return {"version": toolspan.version()}
        case "cancel":
            return (args["step"] in running and running[args["step"]].cancel(), {})[1]
        case "host.reset":
            return ([recorded.clear() for recorded in (calls, logs, metrics)], {})[1]
        case "host.calls" | "host.logs" | "host.metrics":
            return {"calls": calls, "logs": logs, "metrics": metrics}[verb]
    this = objects[args.pop("client")].conversation_store() if noun == "store" else objects[args.pop(noun)]
    result = getattr(this, verb)(**{snake(key): value for key, value in args.items()})
    if asyncio.iscoroutine(result):
        result = await result
    return {KEYS[op]: result} if op in KEYS else {} if result is None else result


class Partial(Exception):
    """Events that came before the error that is its cause."""


async def stream(client: toolspan.Client, args: dict[str, Any]) -> Any:
    events: list[Any] = []
    stop_after = args.pop("stopAfter", None)
    try:
        async for event in client.stream(args.pop("prompt"), **{snake(k): v for k, v in args.items()}):
            events.append(event)
            if len(events) == stop_after:
                break
    except (toolspan.ToolspanError, asyncio.CancelledError) as error:
        raise Partial(events) from error
    return {"events": events}


# The protocol


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(plain(line)) + "\n")
    sys.stdout.flush()


async def answer(step: int, op: str, args: dict[str, Any], handlers: dict[str, Any]) -> None:
    line: dict[str, Any] = {"step": step}
    try:
        line["ok"] = await perform(op, args, handlers)
    except Partial as partial:
        line.update(partial={"events": partial.args[0]}, error=record(partial.__cause__))
    except BaseException as error:  # every step is answered
        line["error"] = record(error)
    say(line)


def record(error: BaseException | None) -> Any:
    if isinstance(error, toolspan.ToolspanError):
        return error.to_json()
    if isinstance(error, asyncio.CancelledError):
        return {"code": "cancelled", "message": "the caller cancelled", "retryable": False}
    return {"code": "shim", "message": "".join(traceback.format_exception(error))}


async def main() -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def begin(request: dict[str, Any]) -> None:
        step = request["step"]
        running[step] = task = loop.create_task(
            answer(step, request["op"], request["args"], request.get("handlers", {}))
        )
        task.add_done_callback(lambda _: running.pop(step))

    def read() -> None:
        for text in sys.stdin:
            loop.call_soon_threadsafe(begin, json.loads(text))
        loop.call_soon_threadsafe(ended.set)

    say({"ready": {"language": "python", "version": toolspan.version()}})
    threading.Thread(target=read, daemon=True).start()
    await ended.wait()


asyncio.run(main())
