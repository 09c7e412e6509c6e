"""One worker thread against one per core: 200 streams at a time, and a small operation beside large answers."""

import asyncio
import os
import statistics
import sys
import time

from peer import scenario, words

from toolspan import Client, Engine, TextEvent, create_client

STREAMS, DELTAS = 200, 200
LARGE = "line of text\n" * 150_000
SECONDS = 3.0
SCRIPT = {
    "llm": {
        "words": words(DELTAS)["llm"]["model"],
        "large": {"style": "openai", "replies": [{"text": LARGE}], "then": "repeat"},
    }
}


async def streamed(client: Client) -> float:
    """Deltas a second over all streams."""

    async def one() -> int:
        return sum([isinstance(event, TextEvent) async for event in client.stream("Count.")])

    start = time.perf_counter()
    deltas = sum(await asyncio.gather(*(one() for _ in range(STREAMS))))
    assert deltas == STREAMS * DELTAS, deltas
    return deltas / (time.perf_counter() - start)


async def waited(client: Client, large_runs: int) -> list[float]:
    """Milliseconds of small operations while so many runs at a time get large answers."""
    store, times, ended = client.conversation_store(), [], False

    async def load() -> None:
        while not ended:
            # Past the models: the loop should wait for the engine and not for Python.
            await client._engine.perform("client.run", {"client": client._number, "prompt": "More."})

    runs = [asyncio.create_task(load()) for _ in range(large_runs)]
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        await store.get("nobody")
        times.append((time.perf_counter() - start) * 1000)
        await asyncio.sleep(0.002)
    ended = True
    await asyncio.gather(*runs)
    return sorted(times)


async def main(urls: dict) -> None:
    for workers in (1, min(os.cpu_count() or 1, 4)):
        engine = Engine(workers=workers)
        client = {n: create_client(engine=engine, base_url=u["baseUrl"], style="openai", model="m") for n, u in urls.items()}
        rate = await streamed(client["words"])
        alone = statistics.median(await waited(client["large"], 0))
        beside = await waited(client["large"], 2)
        print(
            f"workers {workers}: {rate:,.0f} deltas/s in {STREAMS} streams; a small operation takes {alone:.2f} ms alone, and beside "
            f"answers of {len(LARGE) // 1000} kB {statistics.median(beside):.2f} ms at median, {beside[int(len(beside) * 0.9)]:.1f} ms at p90"
        )
        engine.close()


with scenario(sys.argv[1], SCRIPT) as addresses:
    asyncio.run(main(addresses["llm"]))
