// A stream of 10,000 deltas: how long the event loop was ever blocked, and how fast the deltas came.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { createClient } from "../../bindings/node/index.mjs"

const DELTAS = 10_000
const peer = spawn(process.argv[2], ["serve"], { stdio: ["pipe", "pipe", "inherit"] })
const [line] = await once(createInterface({ input: peer.stdout }), "line")
const text = Array.from({ length: DELTAS }, (_, n) => `w${n}`).join(" ")
const script = { llm: { model: { style: "openai", replies: [{ text }], then: "repeat" } } }
const answer = await fetch(`${JSON.parse(line).control}/scenarios`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(script) })
const { llm } = await answer.json()

const client = createClient({ baseUrl: llm.model.baseUrl, style: "openai", model: "bench" })
let worst = 0
let watching = true
let last = performance.now()
const watch = () => {
  const now = performance.now()
  worst = Math.max(worst, now - last)
  last = now
  if (watching) setImmediate(watch)
}
setImmediate(watch)
const start = performance.now()
let deltas = 0
for await (const event of client.stream("Count.")) if (event.type === "text") deltas++
const seconds = (performance.now() - start) / 1000
watching = false
if (deltas !== DELTAS) throw new Error(`${deltas} deltas`)
console.log(`node stream of ${DELTAS} deltas: ${Math.round(deltas / seconds).toLocaleString("en")} deltas/s, loop blocked at most ${worst.toFixed(1)} ms (budget 20 ms)`)
client.close()
peer.stdin.end()
