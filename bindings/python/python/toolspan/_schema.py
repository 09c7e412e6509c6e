"""Functions as tools: the JSON Schema of a signature, and JSON arguments as the Python values it asks for."""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import datetime
import enum
import inspect
import json
import pathlib
import re
import types
import typing
import uuid
from typing import Any, Callable, Dict, Optional

from ._tools import Tool, ToolContext

Schema = Dict[str, Any]
# Turns a JSON value into what the annotation asks for; None stands for "as it is".
Convert = Optional[Callable[[Any], Any]]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}
_TEXT: dict[Any, tuple[str | None, Callable[[str], Any]]] = {
    datetime.datetime: ("date-time", lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))),
    datetime.date: ("date", datetime.date.fromisoformat),
    uuid.UUID: ("uuid", uuid.UUID),
    pathlib.Path: (None, pathlib.Path),
}
_LISTS = (list, set, frozenset, abc.Sequence, abc.Iterable, abc.Collection, abc.MutableSequence, abc.Set)
_DICTS = (dict, abc.Mapping, abc.MutableMapping)


def from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Schema | None = None,
    hints: Any = None,
) -> Tool:
    """The function as a :class:`Tool`. Its schema comes from the type hints, descriptions from the docstring.

    Raises ``TypeError`` when a parameter cannot be described; give ``input_schema`` then.
    """
    text, sections = _docstring(inspect.getdoc(function) or "")
    own_name = name or getattr(function, "__name__", None) or type(function).__name__
    about = text if description is None else description
    if input_schema is not None:
        return Tool(own_name, about, input_schema, _with_context(function, own_name), hints=hints, function=function)
    signature = inspect.signature(function)
    target = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        annotations = typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {own_name}: an annotation cannot be resolved: {error}") from error
    builder = _Builder(own_name)
    properties: dict[str, Any] = {}
    required: list[str] = []
    converts: dict[str, Callable[[Any], Any]] = {}
    context_name = None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {own_name}: parameter {parameter.name} cannot be passed by name")
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        annotation = annotations.get(parameter.name, parameter.annotation)
        if annotation is ToolContext:
            context_name = parameter.name
            continue
        schema, convert = builder.build(annotation, parameter.name)
        if parameter.name in sections and "description" not in schema:
            schema = {**schema, "description": sections[parameter.name]}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            schema = {**schema, **_default(parameter.default)}
        properties[parameter.name] = schema
        if convert is not None:
            converts[parameter.name] = convert

    schema = _object(properties, required)
    if builder.definitions:
        schema["$defs"] = builder.definitions

    def call(args: dict[str, Any], context: ToolContext) -> Any:
        values = {key: converts[key](value) if key in converts else value for key, value in args.items()}
        if context_name is not None:
            values[context_name] = context
        try:
            signature.bind(**values)
        except TypeError as error:
            raise TypeError(f"{own_name}: {error}") from None
        return function(**values)

    return Tool(own_name, about, schema, call, hints=hints, function=function)


def _with_context(function: Callable[..., Any], name: str) -> Callable[[dict[str, Any], ToolContext], Any]:
    """A function with an explicit schema takes its arguments by name."""

    def call(args: dict[str, Any], _context: ToolContext) -> Any:
        try:
            inspect.signature(function).bind(**args)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        return function(**args)

    return call


def _default(value: Any) -> Schema:
    if isinstance(value, enum.Enum):
        value = value.value
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return {}
    return {"default": value}


class _Builder:
    """Schema and conversion of annotations, built in one walk so that they cannot disagree."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.definitions: dict[str, Schema] = {}
        self._open: dict[Any, dict[str, Any]] = {}

    def build(self, hint: Any, path: str) -> tuple[Schema, Convert]:
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:  # first, for it may not even be hashable
            return self._annotated(hint, parts, path)
        if hint in _PLAIN:
            return dict(_PLAIN[hint]), None
        if hint is int:
            return {"type": "integer"}, _integer
        if hint in _TEXT:
            fmt, parse = _TEXT[hint]
            return ({"type": "string", "format": fmt} if fmt else {"type": "string"}), parse
        if hasattr(hint, "__supertype__"):
            return self.build(hint.__supertype__, path)
        if isinstance(hint, typing.TypeVar):
            return self.build(hint.__bound__ or Any, path)
        if hasattr(hint, "__value__") and type(hint).__name__ == "TypeAliasType":
            return self.build(hint.__value__, path)
        if _is_pydantic(hint):
            return self._pydantic(hint)
        if _presence(hint):
            return self.build(parts[0], path)
        if origin is typing.Literal:
            return _choices([p.value if isinstance(p, enum.Enum) else p for p in parts]), None
        if origin is typing.Union or origin is getattr(types, "UnionType", None):
            return self._union(parts, path)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return _choices([member.value for member in hint]), hint
        container = origin or hint
        if container is tuple and parts and parts[-1] is not Ellipsis:
            return self._tuple(parts, path)
        if container in _LISTS or container is tuple:
            return self._list(container, parts, path)
        if container in _DICTS:
            return self._dict(parts, path)
        if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "__required_keys__")):
            return self._named(hint, path)
        raise TypeError(
            f"tool {self.tool}: {path}: {hint!r} has no JSON Schema here; annotate it otherwise or give input_schema"
        )

    def _annotated(self, hint: Any, parts: tuple[Any, ...], path: str) -> tuple[Schema, Convert]:
        if any(type(note).__module__.partition(".")[0] in ("pydantic", "annotated_types") for note in parts[1:]):
            return self._pydantic(hint)
        schema, convert = self.build(parts[0], path)
        for note in parts[1:]:
            if isinstance(note, str):
                schema = {**schema, "description": note}
            elif isinstance(note, dict):
                schema = {**schema, **note}
        return schema, convert

    def _pydantic(self, hint: Any) -> tuple[Schema, Convert]:
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(hint)
        schema = adapter.json_schema()
        self.definitions.update(schema.pop("$defs", {}))
        return schema, adapter.validate_python

    def _union(self, parts: tuple[Any, ...], path: str) -> tuple[Schema, Convert]:
        built = [self.build(part, path) for part in parts]
        converts = [convert for _, convert in built if convert is not None]
        schema: Schema = {"anyOf": [schema for schema, _ in built]}
        if not converts:
            return schema, None

        def convert(value: Any) -> Any:
            if value is None:
                return None
            for attempt in converts:
                try:
                    return attempt(value)
                except Exception:  # the next member of the union may fit
                    continue
            return value

        return schema, convert

    def _list(self, container: Any, parts: tuple[Any, ...], path: str) -> tuple[Schema, Convert]:
        items, each = self.build(parts[0] if parts else Any, f"{path}[]")
        schema: Schema = {"type": "array", "items": items}
        make: Callable[[Any], Any] = list
        if container in (set, frozenset, abc.Set):
            schema["uniqueItems"] = True
            make = frozenset if container is frozenset else set
        elif container is tuple:
            make = tuple
        if each is not None:
            return schema, lambda value: make(each(item) for item in value)
        return schema, (None if make is list else make)

    def _tuple(self, parts: tuple[Any, ...], path: str) -> tuple[Schema, Convert]:
        built = [self.build(part, f"{path}[{i}]") for i, part in enumerate(parts)]
        schema = {
            "type": "array",
            "prefixItems": [schema for schema, _ in built],
            "minItems": len(parts),
            "maxItems": len(parts),
        }
        converts = [convert for _, convert in built]
        return schema, lambda value: tuple(c(v) if c else v for c, v in zip(converts, value, strict=False))

    def _dict(self, parts: tuple[Any, ...], path: str) -> tuple[Schema, Convert]:
        if parts and parts[0] is not str:
            raise TypeError(f"tool {self.tool}: {path}: the keys of a JSON object are text, not {parts[0]!r}")
        values, each = self.build(parts[1] if parts else Any, f"{path}.*")
        schema: Schema = {"type": "object", "additionalProperties": values or True}
        return schema, None if each is None else lambda value: {key: each(item) for key, item in value.items()}

    def _named(self, hint: Any, path: str) -> tuple[Schema, Convert]:
        """A dataclass or TypedDict: in place, or under ``$defs`` when it contains itself."""
        if hint in self._open:
            self._open[hint]["recursive"] = True
            state = self._open[hint]
            return {"$ref": f"#/$defs/{hint.__name__}"}, lambda value: state["convert"](value)
        state = self._open[hint] = {"recursive": False}
        title: str = hint.__name__
        hints = typing.get_type_hints(hint, include_extras=True)
        text, sections = _docstring(inspect.getdoc(hint) or "") if hint.__doc__ else ("", {})
        properties: dict[str, Any] = {}
        converts: dict[str, Callable[[Any], Any]] = {}
        if dataclasses.is_dataclass(hint):
            fields: dict[str, Any] = {f.name: f for f in dataclasses.fields(hint) if f.init}
            missing = dataclasses.MISSING
            required = [n for n, f in fields.items() if f.default is missing and f.default_factory is missing]
            defaults = {n: _default(f.default) for n, f in fields.items() if f.default is not missing}
            if text.startswith(f"{title}("):  # the text dataclasses write themselves
                text = ""
        else:
            fields = dict.fromkeys(hints)
            # `__required_keys__` alone is wrong where annotations are text.
            required = [
                n
                for n in fields
                if (_presence(hints[n]) or ("", "Required")[n in hint.__required_keys__]) == "Required"
            ]
            defaults = {}
        for name in fields:
            schema, convert = self.build(hints[name], f"{path}.{name}")
            if name in sections and "description" not in schema:
                schema = {**schema, "description": sections[name]}
            properties[name] = {**schema, **defaults.get(name, {})}
            if convert is not None:
                converts[name] = convert
        schema = _object(properties, required)
        if text:
            schema["description"] = text

        def make(value: Any) -> Any:
            values = {k: converts[k](v) if k in converts else v for k, v in value.items()}
            return hint(**values)

        state["convert"] = make
        del self._open[hint]
        if state["recursive"]:
            self.definitions[title] = schema
            schema = {"$ref": f"#/$defs/{title}"}
        return schema, make


def _object(properties: dict[str, Any], required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _integer(value: Any) -> Any:
    # JSON does not tell 2.0 from 2, and some models write the former.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choices(values: list[Any]) -> Schema:
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    kinds = {names.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _presence(hint: Any) -> str:
    """``Required`` or ``NotRequired`` when that is what the annotation says."""
    name = getattr(typing.get_origin(hint), "_name", "")
    return name if name in ("Required", "NotRequired") else ""


def _is_pydantic(hint: Any) -> bool:
    return isinstance(hint, type) and (
        hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__pydantic_fields__")
    )


_HEADING = re.compile(
    r"(args|arguments|parameters|params|attributes|returns?|raises|yields|examples?|notes?)\s*:?\s*$", re.I
)
_TAKES = ("arg", "par", "att")


def _docstring(doc: str) -> tuple[str, dict[str, str]]:
    """The prose of a docstring, and what it says about each parameter (Google, NumPy or Sphinx style)."""
    prose: list[str] = []
    about: dict[str, list[str]] = {}
    section, current, indent = "", None, None
    lines = doc.splitlines()
    for number, line in enumerate(lines):
        bare = line.strip()
        field = re.match(r":(?:param|parameter|arg)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)", bare)
        if field:
            section, current, indent = "sphinx", field[1], None
            about[current] = [field[2]]
            continue
        if bare.startswith(":") and re.match(r":\w+[^:]*:", bare):
            section, current = "other", None
            continue
        if set(bare) == {"-"} and section:
            continue
        underlined = number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}
        if not line[:1].isspace() and _HEADING.match(bare) and (bare.endswith(":") or underlined):
            section = "params" if bare.lower().startswith(_TAKES) else "other"
            current, indent = None, None
            continue
        if not section:
            prose.append(line)
        elif section == "params" and bare:
            depth = len(line) - len(line.lstrip())
            indent = depth if indent is None else indent
            google = re.match(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s+(.*)", bare)
            numpy = re.match(r"\*{0,2}(\w+)\s*(?::.*)?$", bare) if indent == 0 else None
            if depth <= indent and numpy:
                current = numpy[1]
                about[current] = []
            elif depth <= indent and google:
                current = google[1]
                about[current] = [google[2]]
            elif current and depth > indent:
                about[current].append(bare)
        elif section == "sphinx" and bare and current:
            about[current].append(bare)
    return "\n".join(prose).strip(), {name: " ".join(text).strip() for name, text in about.items() if any(text)}
