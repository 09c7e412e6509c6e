"""What a function tells the model about itself, and what its arguments become."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
import uuid
from typing import Annotated, Any, Dict, List, Literal, Optional, Union

import pytest
from pydantic import BaseModel, Field
from toolspan import Hints, Tool, ToolContext, tool
from typing_extensions import NotRequired, TypedDict


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    """A place.

    Args:
        x: to the right
    """

    x: int
    y: int = 0


@dataclasses.dataclass
class Tree:
    label: str
    children: list[Tree] = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)


def properties(made: Tool) -> dict[str, Any]:
    return made.input_schema["properties"]


def call(made: Tool, **args: Any) -> Any:
    return made.handler(args, ToolContext(made.name))


def test_name_description_and_required_come_from_the_function() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add two integers."""
        return a + b

    assert (add.name, add.description) == ("add", "Add two integers.")
    assert add.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
    }


def test_a_decorated_function_can_still_be_called() -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    assert add(2, 3) == 5


def test_the_decorator_takes_name_description_and_hints() -> None:
    @tool(name="plus", description="Sums", hints=Hints(read_only=True, destructive=False, open_world=False))
    def add(a: int) -> int:
        """Ignored."""
        return a

    assert (add.name, add.description, add.hints and add.hints.read_only) == ("plus", "Sums", True)


def test_plain_types() -> None:
    def f(
        a: str, b: int, c: float, d: bool, e: None, f: Any, g, h: list[int], i: List[str], j: dict[str, float],
        k: Dict[str, Any], l: tuple[int, ...], m: tuple[int, str], n: set[str], o: list,
    ) -> None: ...  # fmt: skip

    assert properties(tool(f)) == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "number"},
        "d": {"type": "boolean"},
        "e": {"type": "null"},
        "f": {},
        "g": {},
        "h": {"type": "array", "items": {"type": "integer"}},
        "i": {"type": "array", "items": {"type": "string"}},
        "j": {"type": "object", "additionalProperties": {"type": "number"}},
        "k": {"type": "object", "additionalProperties": True},
        "l": {"type": "array", "items": {"type": "integer"}},
        "m": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "n": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "o": {"type": "array", "items": {}},
    }


def test_choices_and_alternatives() -> None:
    def f(
        a: Optional[int], b: int | str, c: Union[None, str], d: Literal["x", "y"], e: Literal[1, "one"], f: Colour
    ): ...

    null = {"type": "null"}
    assert properties(tool(f)) == {
        "a": {"anyOf": [{"type": "integer"}, null]},
        "b": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "c": {"anyOf": [null, {"type": "string"}]},
        "d": {"type": "string", "enum": ["x", "y"]},
        "e": {"enum": [1, "one"]},
        "f": {"type": "string", "enum": ["red", "blue"]},
    }


def test_dates_uuids_and_paths_are_text() -> None:
    @tool
    def f(day: datetime.date, at: datetime.datetime, id: uuid.UUID, path: pathlib.Path) -> tuple[Any, ...]:
        return day, at, id, path

    assert [p.get("format") for p in properties(f).values()] == ["date", "date-time", "uuid", None]
    number = "12345678-1234-5678-1234-567812345678"
    assert call(f, day="2026-01-02", at="2026-01-02T03:04:05Z", id=number, path="/tmp") == (
        datetime.date(2026, 1, 2),
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        uuid.UUID(number),
        pathlib.Path("/tmp"),
    )


def test_annotated_text_is_the_description_and_a_dict_adds_keywords() -> None:
    def f(a: Annotated[int, "how many"], b: Annotated[str, {"pattern": "^x"}]) -> None: ...

    assert properties(tool(f)) == {
        "a": {"type": "integer", "description": "how many"},
        "b": {"type": "string", "pattern": "^x"},
    }


@pytest.mark.parametrize(
    "doc",
    [
        "Does it.\n\n    Args:\n        a: the first,\n            in two lines\n        b (str, optional): the second\n\n    Returns:\n        nothing: at all\n    ",
        "Does it.\n\n    Parameters\n    ----------\n    a : int\n        the first,\n        in two lines\n    b\n        the second\n\n    Returns\n    -------\n    None\n    ",
        "Does it.\n\n    :param a: the first,\n        in two lines\n    :param str b: the second\n    :returns: nothing\n    ",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_the_docstring_describes_the_parameters(doc: str) -> None:
    def f(a: int, b: str = "") -> None: ...

    f.__doc__ = doc
    made = tool(f)
    assert made.description == "Does it."
    assert properties(made) == {
        "a": {"type": "integer", "description": "the first, in two lines"},
        "b": {"type": "string", "description": "the second", "default": ""},
    }


def test_a_dataclass_is_an_object_and_is_made() -> None:
    @tool
    def f(at: Point, more: list[Point]) -> Any:
        return at, more

    assert properties(f)["at"] == {
        "type": "object",
        "properties": {"x": {"type": "integer", "description": "to the right"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
        "description": "A place.",
    }
    assert call(f, at={"x": 1.0}, more=[{"x": 2, "y": 3}]) == (Point(1, 0), [Point(2, 3)])


def test_a_type_that_contains_itself_is_a_definition() -> None:
    @tool
    def f(tree: Tree) -> Any:
        return tree

    assert properties(f)["tree"] == {"$ref": "#/$defs/Tree"}
    assert f.input_schema["$defs"]["Tree"]["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Tree"},
    }
    assert call(f, tree={"label": "a", "children": [{"label": "b"}]}) == Tree("a", [Tree("b")])


def test_a_typed_dict_is_an_object_with_its_optional_keys() -> None:
    @tool
    def f(movie: Movie) -> Any:
        return movie

    assert properties(f)["movie"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["title"],
    }
    assert call(f, movie={"title": "M"}) == {"title": "M"}


def test_enums_sets_and_optional_values_are_made() -> None:
    @tool
    def f(colour: Colour, tags: set[str], at: Optional[Point] = None) -> Any:
        return colour, tags, at

    assert call(f, colour="red", tags=["a", "a"]) == (Colour.RED, {"a"}, None)
    assert call(f, colour="red", tags=[], at=None) == (Colour.RED, set(), None)
    assert call(f, colour="red", tags=[], at={"x": 1}) == (Colour.RED, set(), Point(1))


def test_pydantic_describes_and_validates() -> None:
    @tool
    def f(person: Person, count: Annotated[int, Field(gt=0, description="how many")] = 1) -> Any:
        return person, count

    assert properties(f)["count"] == {
        "type": "integer", "exclusiveMinimum": 0, "description": "how many", "default": 1,
    }  # fmt: skip
    assert properties(f)["person"]["properties"]["age"] == {"type": "integer", "minimum": 0, "title": "Age"}
    assert call(f, person={"name": "A", "age": 3}) == (Person(name="A", age=3), 1)
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        call(f, person={"name": "A", "age": -1})


def test_a_context_parameter_is_filled_in_and_not_told() -> None:
    @tool
    def f(a: int, context: ToolContext) -> Any:
        return a, context.call_id

    assert list(properties(f)) == ["a"]
    assert f.handler({"a": 1}, ToolContext("f", call_id="c1")) == (1, "c1")


def test_wrong_arguments_say_which() -> None:
    @tool
    def f(a: int) -> Any:
        return a

    with pytest.raises(TypeError, match="f: missing a required argument: 'a'"):
        call(f)
    with pytest.raises(TypeError, match="f: got an unexpected keyword argument 'z'"):
        call(f, a=1, z=2)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda a, /: a, "parameter a cannot be passed by name"),
        (lambda *a: a, "parameter a cannot be passed by name"),
    ],
)
def test_a_signature_without_names_is_refused(function: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        tool(function)


def test_a_type_without_schema_is_refused_with_its_place() -> None:
    def f(items: list[complex]) -> None: ...

    with pytest.raises(TypeError, match=r"tool f: items\[\]: <class 'complex'> has no JSON Schema"):
        tool(f)


def test_an_explicit_schema_wins() -> None:
    schema = {"type": "object", "properties": {"z": {"type": "string"}}}

    @tool(input_schema=schema)
    def f(**anything: complex) -> Any:
        return anything

    assert f.input_schema is schema
    assert call(f, z="1") == {"z": "1"}


def test_methods_and_callable_objects_are_tools_too() -> None:
    class Counter:
        def bump(self, by: int) -> int:
            return by + 1

        def __call__(self, by: int) -> int:
            return by + 2

    assert tool(Counter().bump).input_schema["required"] == ["by"]
    assert call(tool(Counter()), by=1) == 3
    assert tool(Counter()).name == "Counter"
