"""Checks every request that the cases send to a model endpoint against the types of the official packages.

usage: requests.py REQUESTS CASES

REQUESTS is what `toolspan-conformance run --requests` wrote. Prints one JSON object: per package the number of bodies and of
those it refuses, and the keys it does not know. The packages' types let unknown keys pass, as their endpoints do or do
not; here such a key is an error unless the case itself brings it, in `requestParams`, a hook or an answer that is replayed.
"""

import json
import sys
from functools import cache
from pathlib import Path

import anthropic.types
import openai.types.chat
from anthropic.types import MessageParam
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types.chat import ChatCompletionMessageParam
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming
from pydantic import ConfigDict, TypeAdapter, ValidationError

MESSAGE = {"anthropic": MessageParam, "openai": ChatCompletionMessageParam}
BODY = {
    ("anthropic", False): MessageCreateParamsNonStreaming,
    ("anthropic", True): MessageCreateParamsStreaming,
    ("openai", False): CompletionCreateParamsNonStreaming,
    ("openai", True): CompletionCreateParamsStreaming,
}


@cache
def adapter(kind):
    return TypeAdapter(kind)


def read_whole(value):
    """Lists validate when they are iterated, so what a package thinks of their items is known only then."""
    if isinstance(value, dict):
        for item in value.values():
            read_whole(item)
    elif not isinstance(value, (str, int, float, bool, type(None))):
        for item in value:
            read_whole(item)


def errors(kind, value):
    """What a type says against a value. Of a union's alternatives, the one that has least against it."""
    try:
        read_whole(adapter(kind).validate_python(value))
    except ValidationError as refusal:
        alternatives = {}
        for error in refusal.errors():
            named = [part for part in error["loc"] if isinstance(part, str) and part[:1].isupper()]
            alternatives.setdefault(named[0] if named else "", []).append(error)
        # One of another role or type is not what was meant, however little else it has against the value.
        return min(alternatives.values(), key=lambda found: (sum(e["type"] == "literal_error" for e in found), len(found)))
    return []


def all_errors(package, body):
    found = errors(BODY[package, body.get("stream") is True], body)
    for message in body.get("messages", []):
        found += errors(MESSAGE[package], message)
    return found


def close_types():
    """From now on a key that a type does not have is an error. Adapters made before stay open."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("anthropic.types", "openai.types")):
            for kind in vars(module).values():
                if isinstance(kind, type) and hasattr(kind, "__required_keys__"):
                    kind.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    adapter.cache_clear()


def told(error):
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


def main(requests, cases):
    sent = [json.loads(line) for line in Path(requests).read_text().splitlines()]
    for request in sent:
        last = request["path"].split("?")[0].rsplit("/", 1)[-1]
        request["package"] = {"messages": "anthropic", "completions": "openai"}[last]
        request["body"] = json.loads(request["body"])

    report = {package: {"bodies": 0, "refused": [], "foreign": {}} for package in MESSAGE}
    for request in sent:
        part = report[request["package"]]
        part["bodies"] += 1
        found = all_errors(request["package"], request["body"])
        if found:
            part["refused"].append({"case": request["case"], "errors": [told(error) for error in found]})

    close_types()
    for request in sent:
        part = report[request["package"]]
        text = (Path(cases) / f"{request['case']}.json").read_text()
        for error in all_errors(request["package"], request["body"]):
            key = str(error["loc"][-1])
            if error["type"] != "extra_forbidden" or f'"{key}"' not in text:
                part["refused"].append({"case": request["case"], "errors": [told(error)]})
            elif key not in part["foreign"].setdefault(request["case"], []):
                part["foreign"][request["case"]].append(key)
    json.dump(report, sys.stdout, indent=2)


main(*sys.argv[1:])
