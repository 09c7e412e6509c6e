// An agent in one screen: an MCP server, a tool of our own, a streamed answer. `make demo` runs it.
import { writeFileSync } from "node:fs"
import { createClient, createToolkit, defineTool } from "../index.mjs"

const PROMPT = "What is the weather in Chicago, and how many days are left until the picnic on 2026-12-24? Today is 2026-11-30."

const daysBetween = defineTool({
  name: "days_between",
  description: "Number of days from one date to another",
  inputSchema: {
    type: "object",
    properties: { from: { type: "string", format: "date" }, to: { type: "string", format: "date" } },
    required: ["from", "to"],
  },
  run: ({ from, to }) => (Date.parse(to) - Date.parse(from)) / 86_400_000,
})

/** The real endpoint when there is a key for it, the scripted one otherwise. */
function client() {
  if (process.env.ANTHROPIC_API_KEY) return createClient({ baseUrl: "https://api.anthropic.com", style: "anthropic", model: "claude-sonnet-4-5" })
  if (process.env.OPENAI_API_KEY) return createClient({ baseUrl: "https://api.openai.com/v1", style: "openai", model: "gpt-5-mini" })
  return createClient({ baseUrl: process.env.DEMO_MODEL, style: "openai", model: "scripted" })
}

const toolkit = await createToolkit({ mcpConfig: process.env.DEMO_MCP, tools: [daysBetween] })
console.log(`\x1b[1m> ${PROMPT}\x1b[0m\n`)
for await (const event of client().stream(PROMPT, { toolkit })) {
  if (event.type === "text") process.stdout.write(event.delta)
  else if (event.type === "tool_call") console.log(`\x1b[36m  * ${event.name} ${JSON.stringify(event.args)}\x1b[0m`)
  else if (event.type === "tool_result") console.log(`\x1b[90m    ${event.output}\x1b[0m`)
  else if (event.type === "done") {
    console.log(`\n\n\x1b[90m${event.result.turns} turns, ${event.result.usage.totalTokens} tokens\x1b[0m`)
    if (process.env.DEMO_TRANSCRIPT) writeFileSync(process.env.DEMO_TRANSCRIPT, JSON.stringify(event.result.messages, null, 2))
  }
}
await toolkit.close()
