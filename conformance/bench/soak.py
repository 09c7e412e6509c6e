"""Runs, cancelled runs and abandoned streams in one process: counters go back to zero and memory stays flat."""

import asyncio
import gc
import os
import sys

from peer import scenario

from toolspan import counters, create_client, create_toolkit, tool

RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
SCRIPT = {
    "llm": {
        "plain": {
            "style": "openai",
            "replies": [{"calls": [{"id": "c", "name": "add", "args": {"a": 2, "b": 2}}]}, {"text": "4"}],
            "then": "cycle",
        },
        "hangs": {"style": "openai", "replies": [{"hang": True}], "then": "repeat"},
        "talks": {"style": "anthropic", "replies": [{"text": "word " * 500}], "then": "repeat"},
    }
}


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def resident_kb() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


async def main(addresses: dict) -> None:
    urls = {name: server["baseUrl"] for name, server in addresses["llm"].items()}
    plain = create_client(base_url=urls["plain"], style="openai", model="soak")
    hangs = create_client(base_url=urls["hangs"], style="openai", model="soak")
    talks = create_client(base_url=urls["talks"], style="anthropic", model="soak")
    memory = []
    async with create_toolkit(tools=[add]) as toolkit:
        for run in range(RUNS):
            await plain.run("What is 2 + 2?", toolkit=toolkit)
            task = asyncio.create_task(hangs.run("Never."))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            async for _ in talks.stream("Talk."):
                break
            if run % (RUNS // 10) == RUNS // 10 - 1:
                gc.collect()
                memory.append(resident_kb())
    for client in (plain, hangs, talks):
        await client.close()
    left = counters().to_json()
    print(f"soak of {RUNS} runs, cancelled runs and abandoned streams: resident {' '.join(f'{kb // 1024}' for kb in memory)} MB")
    print(f"left open: {left}")
    assert not any(left.values()), left
    assert memory[-1] < memory[1] * 1.1, "memory grows"


with scenario(sys.argv[1], SCRIPT) as addresses:
    asyncio.run(main(addresses))
