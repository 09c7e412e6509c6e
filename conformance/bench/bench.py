"""The scenario from Python, through the public API. See src/lib.rs for what it prints."""

import asyncio
import json
import os
import statistics
import time

from toolspan import create_client, create_toolkit


async def main() -> None:
    plan = json.loads(os.environ["BENCH"])
    config = {"mcpServers": {"calc": {"command": plan["command"]}}}
    async with create_toolkit(mcp_config=config) as toolkit:
        client = create_client(base_url=plan["baseUrl"], style="openai", model="bench")
        times = []
        for run in range(plan["warmUp"] + plan["runs"]):
            start = time.perf_counter()
            result = await client.run("What is 2 + 2, twice?", toolkit=toolkit)
            if run >= plan["warmUp"]:
                times.append((time.perf_counter() - start) * 1e6)
            assert len(result.tool_calls) == 2, result
    times.sort()
    print(json.dumps({"median_us": statistics.median(times), "p95_us": times[int(len(times) * 0.95)], "runs": len(times)}))


asyncio.run(main())
