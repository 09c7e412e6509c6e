// A strict program that uses everything. It is compiled, never run.
import { z } from "zod";
import {
  type Event,
  type RunResult,
  type ToolResult,
  CancelledError,
  Client,
  Engine,
  RateLimitedError,
  ToolspanError,
  createClient,
  createToolkit,
  defineTool,
  listMcpTools,
  version,
  type ClientOptions,
  type ListOptions,
  type RunOptions,
  type ToolkitOptions,
} from "toolspan";
import type { OptionNames } from "../../models.js";

// Every option of the core has a type here, and no other.
type Same<A, B> = [A, B] extends [B, A] ? true : never;
type Own = "signal" | "client" | "prompt" | "id" | "mcpConfig" | "mcpConfigText";
const complete: [
  Same<keyof ClientOptions, OptionNames["client.create"]>,
  Same<Exclude<keyof ToolkitOptions, "signal">, OptionNames["toolkit.create"]>,
  Same<Exclude<keyof RunOptions, Own>, Exclude<OptionNames["client.run"], Own>>,
  Same<Exclude<keyof ListOptions, Own>, Exclude<OptionNames["mcp.list"], Own>>,
] = [true, true, true, true];
console.log(complete);

const add = defineTool({
  name: "add",
  description: "Add two integers",
  input: z.object({ a: z.int(), unit: z.string().default("m") }),
  run: ({ a, unit }, { signal }) => {
    const sum: number = a;
    const known: string = unit;
    signal.throwIfAborted();
    return `${sum} ${known}`;
  },
});
const typed = defineTool<{ q: string }>({ name: "t", input: { type: "object" }, run: async ({ q }) => q.length });
const loose = defineTool({ name: "l", inputSchema: { type: "object" }, run: ({ q }) => q ?? null });
// @ts-expect-error: the schema has no such key
defineTool({ name: "bad", input: z.object({ a: z.int() }), run: ({ b }) => b });

await using toolkit = await createToolkit({ mcpConfig: "./mcp.json", tools: [add, typed, loose], signal: AbortSignal.timeout(1) });
await createToolkit({ mcpConfig: { mcpServers: { s: { command: ["x"], env: { A: "b" }, tools: { a: true } } } } });
// @ts-expect-error: misspelt
await createToolkit({ mcpConfig: { mcpServers: { s: { comand: ["x"] } } } });

const client: Client = createClient({
  baseUrl: "https://api.example.com/v1",
  style: "anthropic",
  model: "m",
  requestParams: { temperature: 0.2 },
  httpClient: fetch,
  store: { get: async () => null, save: () => {} },
  bodyTransform: (body) => ({ ...body, seed: 1 }),
  hooks: {
    beforeLLM: ({ messages, turn }) => (turn > 1 ? { messages } : undefined),
    afterTool: ({ result }) => ({ result: { ...result, output: result.output.trim() } }),
  },
  onError: ({ error, attempt }) => (error instanceof RateLimitedError && attempt < 2 ? "retry" : "fail"),
  onMetric: (event) => (event.type === "llm" ? event.promptTokens : event.ms),
});
// @ts-expect-error: a client needs a model
createClient({ baseUrl: "", style: "openai" });
// @ts-expect-error: clients are made by createClient
new Client();

const result: RunResult = await client.run("hi", { toolkit, maxTurns: 3 });
if (result.status === "incomplete") {
  const limit: "maxTurns" | "maxTokens" | "timeout" = result.limit;
  console.log(limit);
}

function show(event: Event): string {
  switch (event.type) {
    case "text":
    case "reasoning":
      return event.delta;
    case "tool_call":
      return JSON.stringify(event.args);
    case "tool_result":
      return event.isError ? "" : event.output;
    case "usage":
      return String(event.usage.totalTokens);
    case "done":
      return event.result.text;
  }
}
for await (const event of client.stream([{ type: "text", text: "hi" }], { toolkit })) console.log(show(event));

await client.ask("hi", { id: "x" });
// @ts-expect-error: ask needs an id
await client.ask("hi", {});
const conversation = client.conversation({ toolkit });
console.log((await conversation.send("hi")).text, await conversation.messages());
const transcript = await client.conversationStore().get("x");
console.log(transcript?.messages.length);

const output: ToolResult = await toolkit.execute("add", { a: 1 });
console.log(output.cause, toolkit.status()["s"]?.state, toolkit.adapt("gemini").losses[0]?.keyword);

try {
  await listMcpTools(new Uint8Array());
} catch (error) {
  if (error instanceof CancelledError) {
    const code: "cancelled" = error.code;
    console.log(code);
  } else if (error instanceof ToolspanError) {
    console.log(error.code, error.retryAfterMs, error.toJSON().cause?.[0]?.message, error.cause);
  }
}

await using engine = new Engine({ log: ({ level, message }) => console.log(level, message), logLevel: "warn" });
console.log(engine.counters().openStreams, version());
