// The scenario from Node, through the public API. See src/lib.rs for what it prints.
import { createClient, createToolkit } from "../../bindings/node/index.mjs"

const plan = JSON.parse(process.env.BENCH)
const toolkit = await createToolkit({ mcpConfig: { mcpServers: { calc: { command: plan.command } } } })
const client = createClient({ baseUrl: plan.baseUrl, style: "openai", model: "bench" })
const times = []
for (let run = 0; run < plan.warmUp + plan.runs; run++) {
  const start = performance.now()
  const result = await client.run("What is 2 + 2, twice?", { toolkit })
  if (run >= plan.warmUp) times.push((performance.now() - start) * 1000)
  if (result.toolCalls.length !== 2) throw new Error(`${result.toolCalls.length} tool calls instead of 2`)
}
await toolkit.close()
times.sort((a, b) => a - b)
const at = (share) => times[Math.round((times.length - 1) * share)]
console.log(JSON.stringify({ median_us: at(0.5), p95_us: at(0.95), runs: times.length }))
