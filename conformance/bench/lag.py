"""A stream of 10,000 deltas: how long the event loop was ever blocked, and how fast the deltas came."""

import asyncio
import sys
import time

from peer import scenario, words

from toolspan import TextEvent, create_client

DELTAS = 10_000


async def worst_lag(stop: asyncio.Event) -> float:
    worst = 0.0
    while not stop.is_set():
        start = time.perf_counter()
        await asyncio.sleep(0)
        worst = max(worst, time.perf_counter() - start)
    return worst


async def main(base_url: str) -> None:
    client = create_client(base_url=base_url, style="openai", model="bench")
    stop = asyncio.Event()
    watcher = asyncio.create_task(worst_lag(stop))
    start = time.perf_counter()
    deltas = 0
    async for event in client.stream("Count."):
        deltas += isinstance(event, TextEvent)
    seconds = time.perf_counter() - start
    stop.set()
    assert deltas == DELTAS, deltas
    print(
        f"python stream of {DELTAS} deltas: {deltas / seconds:,.0f} deltas/s, "
        f"loop blocked at most {await watcher * 1000:.1f} ms (budget 20 ms)"
    )


with scenario(sys.argv[1], words(DELTAS)) as addresses:
    asyncio.run(main(addresses["llm"]["model"]["baseUrl"]))
