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

recorded: dict[str, list[Any]] = {"calls": [], "logs": [], "metrics": []}
objects: dict[int, Any] = {}
running: dict[int, asyncio.Task[None]] = {}


class Records(logging.Handler):
    """The program's view of the library's log."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower().replace("warning", "warn")
        line = {"level": level, "target": record.name.removeprefix("toolspan."), "message": record.getMessage()}
        fields = record.__dict__["toolspan"]
        recorded["logs"].append({**line, "fields": fields} if fields else line)


logging.getLogger("toolspan").setLevel(logging.DEBUG)
logging.getLogger("toolspan").addHandler(Records())


def keep(value: Any) -> int:
    objects[len(objects) + 1] = value
    return len(objects)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z]+)", lambda found: "_" + found[1].lower(), name)


class Host:
    """One function of the program, as the case describes it."""

    def __init__(self, number: int, kind: str, behaviour: dict[str, Any]) -> None:
        self.number, self.kind, self.behaviour = number, kind, behaviour
        self.count, self.kept = 0, {}

    def record(self, payload: Any, kind: str | None = None) -> None:
        recorded["calls"].append({"handler": self.number, "kind": kind or self.kind, "payload": plain(payload)})

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
    async def get(self, id: str) -> Any:
        return await self.use("store.get", {"id": id})

    async def save(self, id: str, messages: Any) -> Any:
        return await self.use("store.save", {"id": id, "messages": messages})

    async def use(self, kind: str, payload: Any) -> Any:
        self.record(payload, kind)
        if "store" not in self.behaviour:
            return await self.behave(self.behaviour, payload)
        if "messages" in payload:
            self.kept[payload["id"]] = payload["messages"]
        return self.kept.get(payload["id"])


class Http(Host):
    async def __call__(self, request: toolspan.HttpRequest, *_: Any) -> Any:  # type: ignore[override]
        self.record({"method": request.method, "url": request.url})
        headers = {**dict(request.headers), "x-injected": "1"}
        return await asyncio.to_thread(self.send, urllib.request.Request(request.url, request.body, headers))

    def send(self, request: urllib.request.Request) -> toolspan.HttpResponse:
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        return toolspan.HttpResponse(answer.status, answer.headers.items(), iter(answer.read1, b""), answer.close)


class Metrics(Host):
    def __call__(self, payload: Any, *_: Any) -> None:  # type: ignore[override]
        self.record(payload)
        recorded["metrics"].append(payload)


def edit(body: dict[str, Any], set: Any = (), drop: Any = (), appendToLastUser: str | None = None) -> Any:
    body.update(set)
    for key in drop:
        body.pop(key, None)
    if appendToLastUser is not None:
        last = [message for message in body["messages"] if message["role"] == "user"][-1]
        more = appendToLastUser if isinstance(last["content"], str) else [{"type": "text", "text": appendToLastUser}]
        last["content"] += more
    return body


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda model: model.to_json()))


def host(value: Any, handlers: dict[str, Any]) -> Any:
    """The function that stands behind `{"handler": N}`; any other value as it is."""
    if not isinstance(value, dict) or list(value) != ["handler"] or str(value["handler"]) not in handlers:
        return value
    found = handlers[str(value["handler"])]
    kind = {"store": Store, "httpClient": Http, "onMetric": Metrics}.get(found["kind"], Host)
    return kind(value["handler"], found["kind"], found["behaviour"])


def a_tool(spec: dict[str, Any], handlers: dict[str, Any]) -> toolspan.Tool:
    hints = toolspan.Hints.from_json(spec["hints"]) if "hints" in spec else None
    about = spec["name"], spec.get("description", ""), spec.get("inputSchema", {})
    return toolspan.Tool(*about, host({"handler": spec["handler"]}, handlers), hints=hints)


def options(given: dict[str, Any], handlers: dict[str, Any]) -> dict[str, Any]:
    made = {snake(key): host(value, handlers) for key, value in given.items()}
    if "hooks" in made:
        made["hooks"] = {snake(key): host(value, handlers) for key, value in made["hooks"].items()}
    if "tools" in made:
        made["tools"] = [a_tool(spec, handlers) for spec in made["tools"]]
    return made


#: Where the result of a method is one value of an object.
KEYS = {
    "toolkit.tools": "tools", "toolkit.status": "servers", "toolkit.get": "tool",
    "client.metrics": "text", "conversation.messages": "messages", "store.get": "transcript",
}  # fmt: skip


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
        case "counters" | "version":
            return toolspan.counters() if op == "counters" else {"version": toolspan.version()}
        case "cancel":
            return (args["step"] in running and running[args["step"]].cancel(), {})[1]
        case "host.reset":
            return ([records.clear() for records in recorded.values()], {})[1]
        case "host.calls" | "host.logs" | "host.metrics":
            return recorded[verb]
    this = objects[args.pop("client")].conversation_store() if noun == "store" else objects[args.pop(noun)]
    result = getattr(this, verb)(**{snake(key): value for key, value in args.items()})
    if asyncio.iscoroutine(result):
        result = await result
    return {KEYS[op]: result} if op in KEYS else {} if result is None else result


class Partial(Exception): ...  # events that came before the error that is its cause


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


def say(line: dict[str, Any]) -> None:
    print(json.dumps(plain(line)), flush=True)


async def answer(step: int, op: str, args: dict[str, Any], handlers: dict[str, Any] | None = None) -> None:
    line: dict[str, Any] = {"step": step}
    try:
        line["ok"] = await perform(op, args, handlers or {})
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
        running[request["step"]] = task = loop.create_task(answer(**request))
        task.add_done_callback(lambda _: running.pop(request["step"]))

    def read() -> None:
        for text in sys.stdin:
            loop.call_soon_threadsafe(begin, json.loads(text))
        loop.call_soon_threadsafe(ended.set)

    say({"ready": {"language": "python", "version": toolspan.version()}})
    threading.Thread(target=read, daemon=True).start()
    await ended.wait()


asyncio.run(main())
