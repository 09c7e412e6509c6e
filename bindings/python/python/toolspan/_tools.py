"""Tools of the program: the record the library gets, and the decorator that makes one of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Union, overload

if TYPE_CHECKING:
    from ._models import Hints


class ToolContext:
    """What a tool may know about the call it serves; ask for it with a parameter of this type.

    ``call_id`` is the id the model gave the call (``None`` outside a run), ``timeout_ms`` the budget of the call.
    A cancelled call cancels the task of an async tool; a sync tool that works long looks at ``cancelled()``.
    """

    __slots__ = ("call_id", "cancelled", "name", "timeout_ms")

    def __init__(
        self,
        name: str,
        call_id: str | None = None,
        timeout_ms: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self.call_id = call_id
        self.timeout_ms = timeout_ms
        self.cancelled = cancelled


class Tool:
    """A tool of the program (SPEC 6), with an explicit schema. ``@tool`` makes one of a function.

    ``handler(args, context)`` is sync or async. It returns text, a :class:`ToolResult`, or any JSON value; what it
    raises becomes an error result with the exception's message. A sync handler runs on a thread of its own.
    """

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        handler: Callable[[dict[str, Any], ToolContext], Any],
        *,
        hints: Hints | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.input_schema = input_schema
        self.handler = handler
        self.hints = hints
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the decorated function, as if it were not decorated."""
        if self._function is None:
            raise TypeError(f"tool {self.name} was not made of a function; call its handler")
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


AnyTool = Union[Tool, Callable[..., Any]]


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: dict[str, Any] | None = None,
    hints: Hints | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function: name, docstring and type hints are what the model is told.

    Understood are the JSON types, ``Optional``, ``Union``, ``Literal``, ``Enum``, lists, tuples, sets, dicts,
    ``Annotated[T, "description"]``, dataclasses, ``TypedDict``, dates, ``UUID``, ``Path`` and, when it is installed,
    everything of Pydantic. ``TypeError`` when a parameter cannot be described.
    """
    from ._schema import from_function

    if function is None:
        return lambda f: from_function(f, **options)
    return from_function(function, **options)


def as_tool(value: AnyTool) -> Tool:
    """A tool as it is, a function as a tool."""
    if isinstance(value, Tool):
        return value
    if callable(value):
        return tool(value)
    raise TypeError(f"a tool is a function or a Tool, not {type(value).__name__}")
