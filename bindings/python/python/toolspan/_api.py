"""The public API: toolkits, clients, streams and conversations. Every decision is the engine's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator, cast

from . import _engine
from ._base import ToolspanError, camel, lazy
from ._errors import ClosedError
from ._host import Handler, HostCall, is_async, to_json
from ._tools import AnyTool, Tool, ToolContext, as_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self, TypeAlias, Unpack

    from . import _models as models
    from ._models import (
        Adapted,
        ClientOptions,
        ContentPart,
        Counters,
        Event,
        McpTools,
        McpToolsOptions,
        Provider,
        RunOptions,
        RunResult,
        ServerStatus,
        ToolInfo,
        ToolkitOptions,
        ToolResult,
    )

    Prompt: TypeAlias = str | Sequence[ContentPart | Mapping[str, Any]]
else:
    models = lazy("_models")

#: Events of a stream taken at a time; the reader is at most this many ahead of what it has seen.
_ITEMS = 64


def create_toolkit(*, engine: _engine.Engine | None = None, **options: Unpack[ToolkitOptions]) -> Opening:
    """A toolkit: ``async with create_toolkit(...) as toolkit`` or ``toolkit = await create_toolkit(...)``.

    ``mcp_config`` is the path of a configuration file or its content as a dict, ``mcp_config_text`` its text;
    ``tools`` are functions and :class:`Tool` objects; ``disable_tools`` removes tools by final name;
    ``validate_arguments=False`` hands on arguments that do not fit a tool's schema; ``timeout_ms`` is a deadline for building
    it all. A server that fails is isolated, see :meth:`Toolkit.status`.
    """
    return Opening(engine or _engine.default(), dict(options))


async def list_mcp_tools(*, engine: _engine.Engine | None = None, **options: Unpack[McpToolsOptions]) -> McpTools:
    """Connects to every enabled server, lists its tools, disconnects (SPEC 3.6)."""
    args = _Owner(engine or _engine.default())._options(dict(options))
    return models.McpTools.from_json(await (engine or _engine.default()).perform("mcp.list", args))


def create_client(*, engine: _engine.Engine | None = None, **options: Unpack[ClientOptions]) -> Client:
    """A client of one endpoint and model; ``base_url``, ``style`` and ``model`` are required. No I/O happens here."""
    return Client(engine or _engine.default(), dict(options))


def counters(*, engine: _engine.Engine | None = None) -> Counters:
    """What is open in the library."""
    return models.Counters.from_json((engine or _engine.default()).call("counters"))


def version() -> str:
    """Version of the library."""
    return str(_engine.default().call("version")["version"])


class _Owner:
    """Something that holds functions of the program under numbers, as long as it lives."""

    def __init__(self, engine: _engine.Engine) -> None:
        self._engine = engine
        self._handlers: list[Handler] = []

    def _function(self, serve: Callable[[HostCall], Any], asynchronous: bool) -> int:
        handler = self._engine.handler(serve, asynchronous)
        self._handlers.append(handler)
        return handler.number

    def _hook(self, function: Any, name: str, read: Callable[[Any], Any] = lambda payload: payload) -> dict[str, int]:
        if not callable(function):
            raise TypeError(f"{name} must be a function, not {type(function).__name__}")

        def serve(call: HostCall) -> Any:
            value = function(read(call.payload))
            return _dropped(value) if call.kind == "hook.afterLLM" else value

        return {"handler": self._function(serve, is_async(function))}

    def _tool(self, value: AnyTool) -> dict[str, Any]:
        made = as_tool(value)
        declared = {"name": made.name, "description": made.description, "inputSchema": made.input_schema}
        if made.hints is not None:
            declared["hints"] = made.hints.to_json()
        asynchronous = is_async(made._function or made.handler)
        return {**declared, "handler": self._function(lambda call: _execute(made, call), asynchronous)}

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options in the contract's form: names in its case, functions as numbers, everything else as it is."""
        out: dict[str, Any] = {}
        for name, value in options.items():
            if name == "tools":
                if not isinstance(value, Iterable):
                    raise TypeError(f"tools must be a list of functions and Tool objects, not {type(value).__name__}")
                value = [self._tool(each) for each in value]
            elif name == "hooks" and value is not None:
                if not isinstance(value, Mapping):
                    raise TypeError(f"hooks must be a dict of functions, not {type(value).__name__}")
                value = {camel(k): self._hook(f, f"hooks.{k}") for k, f in value.items() if f is not None}
            elif name == "http_client" and value is not None:
                from ._http import HttpHost

                value = {"handler": self._function(HttpHost(value).serve, asynchronous=True)}
            elif name == "store" and hasattr(value, "save"):
                serve = _store(value)
                value = {"handler": self._function(serve, is_async(value.get) or is_async(value.save))}
            elif callable(value):
                value = self._hook(value, name, _READ.get(name, lambda payload: payload))
            elif isinstance(value, os.PathLike):
                value = os.fspath(value)
            elif isinstance(value, bytes):
                value = value.decode()
            out[camel(name)] = value
        return out


def _failed(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "error": ToolspanError.from_json(payload["error"])}


#: What a function is given, where that is not the payload as it comes.
_READ: dict[str, Callable[[Any], Any]] = {"body_transform": lambda payload: payload["body"], "on_error": _failed}


def _store(store: Any) -> Callable[[HostCall], Any]:
    def serve(call: HostCall) -> Any:
        payload = call.payload
        if call.kind == "store.get":
            return store.get(payload["id"])
        return _dropped(store.save(payload["id"], payload["transcript"]))

    return serve


def _dropped(value: Any) -> Any:
    """Of a function that is not asked anything: what it returns is nobody's business."""

    async def wait() -> None:
        await value

    return wait() if hasattr(value, "__await__") else None


def _execute(tool: Tool, call: HostCall) -> Any:
    payload = call.payload
    context = ToolContext(payload["name"], payload.get("callId"), payload.get("timeoutMs"), lambda: call.abandoned)
    value = tool.handler(payload["args"], context)
    if hasattr(value, "__await__"):
        return _awaited(value)
    return _tool_reply(value)


async def _awaited(value: Any) -> Any:
    return _tool_reply(await value)


def _tool_reply(value: Any) -> dict[str, Any]:
    return {"result": value.to_json()} if isinstance(value, models.ToolResult) else {"value": value}


class Opening:
    """A toolkit to be: await it, or enter it."""

    def __init__(self, engine: _engine.Engine, options: dict[str, Any]) -> None:
        self._engine = engine
        self._options = options
        self._toolkit: Toolkit | None = None

    def __await__(self) -> Generator[Any, None, Toolkit]:
        return self._open().__await__()

    async def _open(self) -> Toolkit:
        toolkit = Toolkit(self._engine)
        operation = self._engine.start("toolkit.create", {"options": toolkit._options(self._options)})
        try:
            await self._engine.finish(operation)
        finally:
            # Also when the cancellation came too late for the engine: then it is closed with `toolkit`.
            if operation.result is not None:
                toolkit._number = operation.result["toolkit"]
        return toolkit

    async def __aenter__(self) -> Toolkit:
        self._toolkit = await self._open()
        return self._toolkit

    async def __aexit__(self, *_: object) -> None:
        if self._toolkit is not None:
            await self._toolkit.close()


class Toolkit(_Owner):
    """An ordered set of tools and the connections behind them. Made by :func:`create_toolkit`."""

    _number: int | None = None

    def tools(self) -> list[ToolInfo]:
        """Every tool, in order."""
        return [models.ToolInfo.from_json(tool) for tool in self._call("toolkit.tools")["tools"]]

    def get(self, name: str) -> ToolInfo | None:
        """The tool of that final name."""
        tool = self._call("toolkit.get", name=name)["tool"]
        return None if tool is None else models.ToolInfo.from_json(tool)

    async def execute(self, name: str, args: Any = None, *, timeout_ms: int | None = None) -> ToolResult:
        """Executes one call. ``args`` is a dict or JSON text. What fails is a result with ``is_error``; if one of the
        program's own tools raised, ``exception`` has it."""
        more = {} if timeout_ms is None else {"timeoutMs": timeout_ms}
        operation = self._engine.start("toolkit.execute", {**self._ref(), "name": name, "args": args, **more})
        result = models.ToolResult.from_json(await self._engine.finish(operation))
        if result.is_error and operation.failures:
            result.exception = next(iter(operation.failures.values()))
        return result

    def register(self, tool: AnyTool) -> bool:
        """Adds a tool; False when its name is taken."""
        return bool(self._call("toolkit.register", tool=self._tool(tool))["registered"])

    def status(self) -> dict[str, ServerStatus]:
        """State of every MCP server by id."""
        servers = self._call("toolkit.status")["servers"]
        return {id: models.ServerStatus.from_json(status) for id, status in servers.items()}

    def adapt(self, provider: Provider) -> Adapted:
        """The declarations as a provider takes them, and what had to change."""
        return models.Adapted.from_json(self._call("toolkit.adapt", provider=provider))

    async def close(self) -> None:
        """Ends connections and processes. Idempotent."""
        number, self._number = self._number, None
        if number is not None:
            await self._engine.perform("toolkit.close", {"toolkit": number})

    def _ref(self) -> dict[str, Any]:
        if self._number is None:
            raise ClosedError("the toolkit is closed")
        return {"toolkit": self._number}

    def _call(self, op: str, **args: Any) -> Any:
        return self._engine.call(op, {**self._ref(), **args})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if self._number is not None:
            self._engine.discard("toolkit.close", {"toolkit": self._number})


class Client(_Owner):
    """One endpoint, one model, and the options of a run. Made by :func:`create_client`."""

    _number: int | None = None

    def __init__(self, engine: _engine.Engine, options: dict[str, Any]) -> None:
        super().__init__(engine)
        self._number = engine.call("client.create", {"options": self._options(options)})["client"]

    async def run(self, prompt: Prompt, *, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]) -> RunResult:
        """Sends the prompt and the tools, executes the calls the model asks for, until it answers (SPEC 7.3)."""
        return await self._run("client.run", self._args(prompt, toolkit, dict(options)))

    def stream(
        self, prompt: Prompt, *, id: str | None = None, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]
    ) -> Stream:
        """The same run, event by event: ``async for event in client.stream(...)``; with ``id`` it has that memory."""
        args = self._args(prompt, toolkit, dict(options))
        return Stream(self, toolkit, args if id is None else {**args, "id": id})

    async def ask(
        self, prompt: Prompt, *, id: str, toolkit: Toolkit | None = None, **options: Unpack[RunOptions]
    ) -> RunResult:
        """The same run with the memory of conversation ``id``."""
        return await self._run("client.ask", {**self._args(prompt, toolkit, dict(options)), "id": id})

    def conversation(self, *, id: str | None = None, toolkit: Toolkit | None = None) -> Conversation:
        """A conversation that remembers; under ``id`` in the store, or only here."""
        args = {**self._ref(), **self._toolkit_ref(toolkit)}
        args = args if id is None else {**args, "id": id}
        return Conversation(self, toolkit, self._engine.call("conversation.create", args)["conversation"])

    def conversation_store(self) -> ConversationStore:
        """The very store this client uses."""
        return ConversationStore(self)

    def metrics(self) -> str:
        """Counters of this client in the Prometheus text format."""
        return str(self._engine.call("client.metrics", self._ref())["text"])

    async def close(self) -> None:
        """Ends what is running. Idempotent."""
        number, self._number = self._number, None
        if number is not None:
            await self._engine.perform("client.close", {"client": number})

    async def _run(self, op: str, args: dict[str, Any]) -> RunResult:
        operation = self._engine.start(op, args)
        return _result(await self._engine.finish(operation), operation.failures)

    def _args(self, prompt: Prompt, toolkit: Toolkit | None, options: dict[str, Any]) -> dict[str, Any]:
        args = {**self._ref(), "prompt": _prompt(prompt)}
        args.update(self._toolkit_ref(toolkit))
        return {**args, **{camel(name): value for name, value in options.items()}}

    def _toolkit_ref(self, toolkit: Toolkit | None) -> dict[str, Any]:
        if toolkit is None:
            return {}
        # Numbers are an engine's own: under another engine's, the call would reach some other toolkit.
        if not isinstance(toolkit, Toolkit) or toolkit._engine is not self._engine:
            raise TypeError(
                "toolkit is what create_toolkit of the same engine gave; did you forget to await or enter it?"
            )
        return toolkit._ref()

    def _ref(self) -> dict[str, Any]:
        if self._number is None:
            raise ClosedError("the client is closed")
        return {"client": self._number}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if self._number is not None:
            self._engine.discard("client.close", {"client": self._number})


def _prompt(prompt: Any) -> Any:
    if isinstance(prompt, (str, Mapping)) or not isinstance(prompt, Iterable):
        return prompt  # the engine says what is wrong with it
    return [part if isinstance(part, dict) else to_json(part) for part in prompt]


def _result(raw: dict[str, Any], failures: Mapping[Any, BaseException]) -> RunResult:
    result = models.RunResult.from_json(raw)
    for call in result.tool_calls:
        call.exception = failures.get(call.id)
    return result


class Stream:
    """The events of a run. It starts with the first ``async for``; leaving the loop ends the run and its connection."""

    #: The result, once the last event was read.
    result: RunResult | None = None

    def __init__(self, client: Client, toolkit: Toolkit | None, args: dict[str, Any]) -> None:
        self._keep = client, toolkit  # they hold the functions of the program
        self._engine = client._engine
        self._args = args
        self._operation: _engine.Operation | None = None
        self._items: Iterator[dict[str, Any]] = iter(())
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while (event := self._next_read()) is None:
            if self._ended:
                raise StopAsyncIteration
            await self._fetch()
        return event

    async def _fetch(self) -> None:
        if self._operation is None:
            self._operation = self._engine.start("client.stream", self._args)
        operation = self._operation
        try:
            more = {"stream": operation.number, "maxItems": _ITEMS}
            batch = await self._engine.perform("stream.next", more)
            self._items = iter(batch["items"])
            if batch["end"]:
                self._ended = True
                await operation.future
        except ToolspanError:
            self._ended = True
            # Why the stream ended says more than that it has.
            if operation.future.done():
                await operation.future
            raise
        except BaseException:
            await self.aclose()
            raise

    def _next_read(self) -> Event | None:
        """The next event that was fetched already; ``None`` without one."""
        for item in self._items:
            if kind := models.EVENTS.get(item["type"]):
                event: Any = kind.from_json(item)
                if isinstance(event, models.DoneEvent):
                    self.result = event.result
                return cast("Event", event)
        return None

    async def aclose(self) -> None:
        """Ends the run unless it has ended."""
        self._close()

    def _close(self) -> None:
        self._ended = True
        self._items = iter(())
        if self._operation is not None:
            self._engine.cancel(self._operation)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._close()


class Conversation:
    """A run after the other with one memory. Made by :meth:`Client.conversation`."""

    def __init__(self, client: Client, toolkit: Toolkit | None, number: int) -> None:
        self._client = client
        self._keep = toolkit  # it holds the functions of the program
        self._args = {"conversation": number}

    async def send(self, prompt: Prompt) -> RunResult:
        """The next prompt."""
        return await self._client._run("conversation.send", {**self._args, "prompt": _prompt(prompt)})

    async def messages(self) -> list[dict[str, Any]]:
        """The transcript so far."""
        messages: list[dict[str, Any]] = (await self._perform("conversation.messages"))["messages"]
        return messages

    async def reset(self) -> None:
        """Forgets everything."""
        await self._perform("conversation.reset")

    async def _perform(self, op: str) -> Any:
        return await self._client._engine.perform(op, self._args)

    def __del__(self) -> None:
        self._client._engine.discard("conversation.close", self._args)


class ConversationStore:
    """The store of a client, from outside. Made by :meth:`Client.conversation_store`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, id: str) -> dict[str, Any] | None:
        """The transcript ``{"version", "style", "messages"}``; ``None`` when there is none."""
        answer = await self._client._engine.perform("store.get", {**self._client._ref(), "id": id})
        transcript: dict[str, Any] | None = answer["transcript"]
        return transcript

    async def save(self, id: str, messages: Any) -> None:
        """Replaces the transcript; a bare list of messages is accepted."""
        await self._client._engine.perform("store.save", {**self._client._ref(), "id": id, "messages": messages})
