"""Nothing of the core is missing here: the manifest of the waist against the package, by reflection."""

from __future__ import annotations

import json
from typing import Any

import pytest
import toolspan
from conftest import ROOT
from toolspan import _host, _models
from toolspan._base import camel

MANIFEST: dict[str, Any] = json.loads((ROOT / "bindings" / "api-manifest.json").read_text())
RECORDS: dict[str, list[str]] = MANIFEST["records"]


def names(record: Any) -> set[str]:
    """The contract's names of an option type's keys or a dataclass's fields."""
    return {camel(name) for name in record.__annotations__ if name not in ("exception", "NESTED", "TYPE")}


@pytest.mark.parametrize(
    ("record", "keys"),
    [
        (_models.ClientOptions, RECORDS["ClientOptions"]),
        (_models.ToolkitOptions, RECORDS["ToolkitOptions"]),
        (_models.McpToolsOptions, MANIFEST["operations"]["mcp.list"]["args"]),
        (_models.ToolInfo, RECORDS["ToolInfo"]),
        (_models.ServerStatus, RECORDS["ServerStatus"]),
        (_models.Counters, RECORDS["Counters"]),
        (_models.Adapted, RECORDS["Compiled"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_record_has_every_key(record: Any, keys: list[str]) -> None:
    assert names(record) == set(keys)


def test_every_error_code_has_a_class() -> None:
    classes = {
        code: toolspan.ToolspanError.from_json({"code": code, "message": "m"}) for code in MANIFEST["errorCodes"]
    }
    assert {code for code, error in classes.items() if type(error).code == code} == set(MANIFEST["errorCodes"])


def test_every_host_call_that_wants_an_answer_is_served() -> None:
    assert set(MANIFEST["hostCalls"]) - set(_host.KINDS) == {"http.close", "metric", "log"}


def test_every_operation_has_a_method() -> None:
    places = {
        "toolkit": toolspan.Toolkit,
        "client": toolspan.Client,
        "conversation": toolspan.Conversation,
        "store": toolspan.ConversationStore,
    }
    # What is a function or an iterator in Python, or belongs to the life of an object.
    elsewhere = {
        "version",
        "counters",
        "toolkit.create",
        "client.create",
        "conversation.create",
        "mcp.list",
        "stream.next",
    }
    missing = [
        op
        for op in MANIFEST["operations"]
        if op not in elsewhere | {"conversation.close"} and not hasattr(places[op.split(".")[0]], op.split(".")[1])
    ]
    assert missing == []


def test_the_sync_twin_has_the_same_names() -> None:
    from toolspan import sync

    assert [name for name in toolspan.__all__ if not hasattr(sync, name)] == []
    own = [toolspan.Toolkit, toolspan.Client, toolspan.Conversation, toolspan.ConversationStore]
    for made in own:
        public = {name for name in vars(made) if not name.startswith("_")}
        assert public == {name for name in vars(getattr(sync, made.__name__)) if not name.startswith("_")}


def test_an_error_keeps_its_record_and_can_be_pickled() -> None:
    import pickle

    record = {"code": "timeout", "message": "too slow", "retryable": True, "server": "s", "path": "a.b"}
    error = toolspan.ToolspanError.from_json(record)
    assert isinstance(error, toolspan.TimeoutError) and isinstance(error, TimeoutError)
    assert str(error) == "timeout: a.b: too slow"
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert (copy.to_json(), copy.server, copy.retryable, copy.http_status) == (record, "s", True, None)


def test_an_unknown_code_or_field_of_a_newer_library_is_no_failure() -> None:
    error = toolspan.ToolspanError.from_json({"code": "brand_new", "message": "m", "shiny": 1})
    assert (type(error), error.code, str(error)) == (toolspan.ToolspanError, "brand_new", "brand_new: m")
    assert toolspan.TextEvent.from_json({"type": "text", "delta": "x", "shiny": 1}) == toolspan.TextEvent("x")


def test_records_go_to_json_and_back() -> None:
    usage = {"promptTokens": 1, "completionTokens": 2, "totalTokens": 3, "cacheReadTokens": 0}
    call = {"id": "c", "name": "n", "args": {"snake_case": None}, "output": "", "isError": False}
    result = {
        "text": "", "messages": [{"role": "user", "some_key": 1}], "toolCalls": [call], "turns": 1, "usage": usage,
        "model": "m", "status": "incomplete", "limit": "maxTurns",
    }  # fmt: skip
    assert toolspan.RunResult.from_json(result).to_json() == result
    assert toolspan.DoneEvent.from_json({"result": result}).to_json() == {"type": "done", "result": result}
