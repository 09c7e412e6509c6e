"""What generated models and errors are made of: names in local case, JSON in and out."""

from __future__ import annotations

import functools
import json
from typing import Any, Callable, ClassVar, Mapping, TypeVar

M = TypeVar("M", bound="Model")


@functools.lru_cache(maxsize=1024)
def camel(name: str) -> str:
    """``max_turns`` as the contract spells it, ``maxTurns``; ``before_llm`` is ``beforeLLM``."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join("LLM" if part == "llm" else part[:1].upper() + part[1:] for part in rest)


def encode(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """The text that crosses to the engine: compact, for a body that the program rewrote is sent as it stands."""
    return _encoder(default).encode(value)


@functools.lru_cache(maxsize=8)
def _encoder(default: Callable[[Any], Any] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)


class Model:
    """A record of the contract as a dataclass. ``NESTED`` says how the fields that hold other records are read."""

    __slots__ = ()
    NESTED: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    # The tag that tells an event or a part from others; not a field.
    TYPE: ClassVar[str | None] = None

    @classmethod
    def from_json(cls: type[M], data: Mapping[str, Any]) -> M:
        """From the contract's JSON. Keys this version does not know are ignored."""
        values = {}
        for name in cls.__dataclass_fields__:  # type: ignore[attr-defined]
            key = camel(name)
            if key in data:
                value, nested = data[key], cls.NESTED.get(name)
                values[name] = value if nested is None or value is None else nested(value)
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The contract's JSON, key by key; a field that is ``None`` is absent there."""
        out: dict[str, Any] = {} if self.TYPE is None else {"type": self.TYPE}
        for name, field in self.__dataclass_fields__.items():  # type: ignore[attr-defined]
            value = getattr(self, name)
            if (value is None and field.default is None) or "local" in field.metadata:
                continue
            if name in self.NESTED and value is not None:
                value = _each(lambda item: item.to_json(), value)
            out[camel(name)] = value
        return out


def _each(convert: Callable[[Any], Any], value: Any) -> Any:
    """A record, or records in lists and by key."""
    if isinstance(value, list):
        return [_each(convert, item) for item in value]
    if isinstance(value, dict):
        return {key: _each(convert, item) for key, item in value.items()}
    return convert(value)


def list_of(model: type[Model]) -> Callable[[Any], Any]:
    """Reads a list of records."""
    return lambda items: [model.from_json(item) for item in items]


def map_of(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reads an object whose values are what ``read`` reads."""
    return lambda items: {key: read(item) for key, item in items.items()}


class ToolspanError(Exception):
    """Base of every error of this library; there is a subclass for each code (SPEC 8).

    The exception that a tool, hook or store of yours raised is its ``__cause__``.
    """

    #: What a program can do about it; one of a closed list.
    code: str = "internal"

    def __init__(self, message: str, **record: Any) -> None:
        self._record: dict[str, Any] = {"code": self.code, "message": message, "retryable": False, **record}
        path = self._record.get("path")
        text = f"{path}: {message}" if path else message
        self.code = self._record["code"]
        # An OSError among the bases would otherwise take the arguments apart.
        self.args = (f"{self.code}: {text}",)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ToolspanError:
        """The exception of the record's code; a code this version does not know gives the base class."""
        from ._errors import BY_CODE

        rest = {key: value for key, value in record.items() if key != "message"}
        return BY_CODE.get(record.get("code", ""), ToolspanError)(record.get("message", ""), **rest)

    def to_json(self) -> dict[str, Any]:
        """The error record of the contract."""
        return dict(self._record)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Any:
        return ToolspanError.from_json, (self._record,)

    @property
    def message(self) -> str:
        """What happened and what to do about it, without the code."""
        return str(self._record["message"])

    @property
    def retryable(self) -> bool:
        """Whether trying the same thing again can help."""
        return bool(self._record["retryable"])

    @property
    def retry_after_ms(self) -> int | None:
        """How long to wait before that."""
        return self._record.get("retryAfterMs")

    @property
    def http_status(self) -> int | None:
        """HTTP status of the answer that caused this."""
        return self._record.get("httpStatus")

    @property
    def provider(self) -> str | None:
        """Style of the endpoint."""
        return self._record.get("provider")

    @property
    def server(self) -> str | None:
        """Id of the MCP server."""
        return self._record.get("server")

    @property
    def tool(self) -> str | None:
        """Name of the tool."""
        return self._record.get("tool")

    @property
    def path(self) -> str | None:
        """Where in the input, such as ``mcpServers.search.url``."""
        return self._record.get("path")

    @property
    def details(self) -> Any:
        """The provider's own error object, redacted."""
        return self._record.get("details")

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The chain below, outermost first: ``{"message", "code"?}``."""
        return list(self._record.get("cause", ()))


class lazy:
    """A module of this package that is imported when it is first used: dataclasses alone take 20 ms to set up."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        from importlib import import_module

        value = getattr(import_module(f"toolspan.{self._module}"), name)
        setattr(self, name, value)
        return value
