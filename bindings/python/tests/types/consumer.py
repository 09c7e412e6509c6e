"""A strict consumer of the public types. Never run; mypy and pyright read it."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

import toolspan
from toolspan import (
    Client,
    Conversation,
    DoneEvent,
    Event,
    RateLimitedError,
    ReasoningEvent,
    RunResult,
    ServerStatus,
    TextEvent,
    Tool,
    ToolCallEvent,
    ToolContext,
    ToolInfo,
    Toolkit,
    ToolResult,
    ToolResultEvent,
    ToolspanError,
    UsageEvent,
    create_client,
    create_toolkit,
    sync,
    tool,
)
from typing_extensions import assert_type


@tool
def add(a: int, b: int) -> int:
    return a + b


@tool(name="later", description="Adds later")
async def add_later(a: int, b: int) -> int:
    return a + b


def explicit(args: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult(output=str(args), is_error=context.cancelled())


class Memory:
    def get(self, id: str, /) -> Any:
        return None

    async def save(self, id: str, transcript: dict[str, Any], /) -> None:
        return None


async def main() -> None:
    assert_type(add, Tool)
    client = create_client(
        base_url="http://x", style="openai", model="m", hooks={"before_llm": lambda given: None}, store=Memory()
    )
    assert_type(client, Client)
    async with create_toolkit(
        mcp_config={"mcpServers": {}}, tools=[add, add_later, Tool("e", "", {}, explicit), len], timeout_ms=5
    ) as toolkit:
        assert_type(toolkit, Toolkit)
        assert_type(toolkit.tools(), list[ToolInfo])
        assert_type(toolkit.get("x"), Optional[ToolInfo])
        assert_type(toolkit.status(), dict[str, ServerStatus])
        result = await client.run("hi", toolkit=toolkit, max_turns=2)
        assert_type(result, RunResult)
        assert_type(result.usage.total_tokens, int)
        async for event in client.stream("hi", toolkit=toolkit):
            print(told(event))
        conversation = client.conversation(toolkit=toolkit)
        assert_type(conversation, Conversation)
        assert_type(await conversation.send("hi"), RunResult)
    try:
        await client.ask("hi", id="x")
    except RateLimitedError as error:
        assert_type(error.retry_after_ms, Optional[int])
    except ToolspanError as error:
        assert_type(error.code, str)


def told(event: Event) -> str:
    # Without a last case: the union is closed, and a checker says when it grows.
    match event:
        case TextEvent(delta=delta) | ReasoningEvent(delta=delta):
            return delta
        case ToolCallEvent(name=name) | ToolResultEvent(name=name):
            return name
        case UsageEvent(usage=usage):
            return str(usage.prompt_tokens)
        case DoneEvent(result=result):
            return result.text


def blocking() -> None:
    with sync.create_toolkit(tools=[add]) as toolkit:
        assert_type(toolkit.execute("add", {"a": 1}), ToolResult)
        client = sync.create_client(base_url="http://x", style="anthropic", model="m")
        for event in client.stream("hi", toolkit=toolkit):
            assert_type(event, Event)
        assert_type(client.ask("hi", id="x"), RunResult)


def wrong() -> None:
    create_client(base_url="http://x", style="openia", model="m")  # type: ignore[arg-type]  # pyright: ignore
    create_client(base_url="http://x", style="openai", model="m", max_turnz=1)  # type: ignore[call-arg]  # pyright: ignore


print(toolspan.__version__, asyncio.iscoroutinefunction(main))
