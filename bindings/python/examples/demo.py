"""An agent in one screen: an MCP server, a tool of our own, a streamed answer. `make demo` runs it."""

import asyncio
import json
import os
from datetime import date

from toolspan import Client, DoneEvent, TextEvent, Tool, ToolCallEvent, ToolContext, ToolResultEvent, create_client, create_toolkit

PROMPT = (
    "What is the weather in Chicago, and how many days are left until the picnic on 2026-12-24? Today is 2026-11-30."
)


def days(args: dict[str, str], _context: ToolContext) -> int:
    return (date.fromisoformat(args["to"]) - date.fromisoformat(args["from"])).days


# `from` is a keyword, so this tool brings its schema; see the README for tools made from type hints.
days_between = Tool(
    name="days_between",
    description="Number of days from one date to another",
    input_schema={
        "type": "object",
        "properties": {"from": {"type": "string", "format": "date"}, "to": {"type": "string", "format": "date"}},
        "required": ["from", "to"],
    },
    handler=days,
)


def client() -> Client:
    """The real endpoint when there is a key for it, the scripted one otherwise."""
    if "ANTHROPIC_API_KEY" in os.environ:
        return create_client(base_url="https://api.anthropic.com", style="anthropic", model="claude-sonnet-4-5")
    if "OPENAI_API_KEY" in os.environ:
        return create_client(base_url="https://api.openai.com/v1", style="openai", model="gpt-5-mini")
    return create_client(base_url=os.environ["DEMO_MODEL"], style="openai", model="scripted")


async def main() -> None:
    async with create_toolkit(mcp_config=os.environ["DEMO_MCP"], tools=[days_between]) as toolkit:
        print(f"\033[1m> {PROMPT}\033[0m\n")
        async for event in client().stream(PROMPT, toolkit=toolkit):
            match event:
                case TextEvent(delta=delta):
                    print(delta, end="", flush=True)
                case ToolCallEvent(name=name, args=args):
                    print(f"\033[36m  * {name} {json.dumps(args, separators=(',', ':'))}\033[0m")
                case ToolResultEvent(output=output):
                    print(f"\033[90m    {output}\033[0m")
                case DoneEvent(result=result):
                    print(f"\n\n\033[90m{result.turns} turns, {result.usage.total_tokens} tokens\033[0m")
                    if "DEMO_TRANSCRIPT" in os.environ:
                        with open(os.environ["DEMO_TRANSCRIPT"], "w", encoding="utf-8") as file:
                            json.dump(result.messages, file, indent=2)


asyncio.run(main())
