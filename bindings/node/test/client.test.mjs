import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, before, test } from "node:test";
import { Engine, ToolspanError, defineTool } from "../index.mjs";
import { fixtures, oneCall, upstream } from "./support.mjs";

let peers;
const engine = new Engine();
before(async () => (peers = await fixtures()));
after(async () => {
  await engine.close();
  await peers.close();
});

const ANY = { type: "object", properties: {} };
const tool = (name, run) => defineTool({ name, description: name, input: ANY, run });
const says = (text, rest = {}) => ({ llm: { main: { style: "openai", replies: [{ text }], ...rest } } });

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

test("a run calls the program's tool and gives the answer", async (t) => {
  const scenario = await peers.scenario(t, { llm: oneCall("add", { a: 1, b: 2 }, "three") });
  const client = engine.createClient(upstream(scenario));
  const toolkit = await engine.createToolkit({ tools: [tool("add", ({ a, b }) => a + b)] });
  const result = await client.run("1 + 2?", { toolkit });
  assert.deepEqual([result.text, result.status, result.turns, result.model], ["three", "done", 2, "m"]);
  assert.deepEqual(result.toolCalls, [{ id: "c1", name: "add", args: { a: 1, b: 2 }, output: "3", isError: false }]);
  assert.deepEqual(result.messages.map((message) => message.role), ["user", "assistant", "tool", "assistant"]);
  assert.deepEqual(result.usage, { promptTokens: 20, completionTokens: 10, totalTokens: 30 });
});

test("what a tool threw in a run is the cause of its result", async (t) => {
  const original = new RangeError("too far");
  const scenario = await peers.scenario(t, { llm: oneCall("fails", {}, "sorry") });
  const client = engine.createClient(upstream(scenario));
  const toolkit = await engine.createToolkit({ tools: [tool("fails", () => Promise.reject(original))] });
  const { text, toolCalls } = await client.run("go", { toolkit });
  assert.equal(text, "sorry");
  assert.deepEqual([toolCalls[0].output, toolCalls[0].isError], ["too far", true]);
  assert.equal(toolCalls[0].cause, original);
});

test("a tool may run the client that called it", async (t) => {
  const scenario = await peers.scenario(t, { llm: { ...oneCall("ask", {}, "outer"), sub: { style: "openai", replies: [{ text: "inner" }] } } });
  const sub = engine.createClient(upstream(scenario, "sub"));
  const client = engine.createClient(upstream(scenario));
  const toolkit = await engine.createToolkit({ tools: [tool("ask", async () => (await sub.run("?")).text)] });
  const { text, toolCalls } = await client.run("go", { toolkit });
  assert.deepEqual([text, toolCalls[0].output], ["outer", "inner"]);
});

test("a stream gives the events of the run", async (t) => {
  const scenario = await peers.scenario(t, { llm: oneCall("add", { a: 1 }, "so be it") });
  const client = engine.createClient(upstream(scenario));
  const toolkit = await engine.createToolkit({ tools: [tool("add", () => "2")] });
  const events = await all(client.stream("go", { toolkit }));
  assert.deepEqual(
    events.filter(({ type }) => type === "tool_call" || type === "tool_result"),
    [
      { type: "tool_call", id: "c1", name: "add", args: { a: 1 } },
      { type: "tool_result", id: "c1", name: "add", output: "2", isError: false },
    ],
  );
  assert.equal(events.map(({ type, delta }) => (type === "text" ? delta : "")).join(""), "so be it");
  assert.equal(events.at(-1).type, "done");
  assert.equal(events.at(-1).result.text, "so be it");
});

test("a stream starts with its first event and keeps the context it was made in", async (t) => {
  const storage = new AsyncLocalStorage();
  const scenario = await peers.scenario(t, { llm: oneCall("who") });
  const client = engine.createClient(upstream(scenario));
  const toolkit = await engine.createToolkit({ tools: [tool("who", () => storage.getStore())] });
  const stream = storage.run("ann", () => client.stream("go", { toolkit }));
  assert.equal((await scenario.seen()).llm.main.requests.length, 0);
  assert.equal(engine.counters().operations, 0);
  const events = await storage.run("bob", () => all(stream));
  assert.equal(events.find(({ type }) => type === "tool_result").output, "ann");
});

test("leaving the loop closes the socket", async (t) => {
  const sse = [{ data: { choices: [{ index: 0, delta: { content: "a" } }] } }, { hang: true }];
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ sse }] } } });
  const client = engine.createClient(upstream(scenario));
  for await (const event of client.stream("go")) {
    assert.deepEqual(event, { type: "text", delta: "a" });
    break;
  }
  await scenario.wait({ llm: "main", connections: 0 });
  assert.deepEqual(await client.stream("again").return(), { value: undefined, done: true });
});

test("return ends a stream that waits for its next event", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ hang: true }] } } });
  const stream = engine.createClient(upstream(scenario)).stream("go");
  const waiting = assert.rejects(stream.next(), { code: "cancelled" });
  await scenario.wait({ llm: "main", requests: 1 });
  assert.deepEqual(await stream.return(), { value: undefined, done: true });
  await waiting;
  await scenario.wait({ llm: "main", connections: 0 });
});

test("a stream that is cut fails after the events that came", async (t) => {
  const sse = [{ data: { choices: [{ index: 0, delta: { content: "a" } }] } }, { cut: true }];
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ sse }] } } });
  const stream = engine.createClient({ ...upstream(scenario), retries: 0 }).stream("go");
  assert.deepEqual(await stream.next(), { value: { type: "text", delta: "a" }, done: false });
  await assert.rejects(stream.next(), (error) => error instanceof ToolspanError && error.code === "stream_interrupted");
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
});

test("a reader that stops reading stops the sender", async (t) => {
  const piece = JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(65536) } }] });
  const sse = [...Array.from({ length: 400 }, () => piece), "[DONE]"];
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ sse }] } } });
  const client = engine.createClient({ ...upstream(scenario), retries: 0 });
  const stream = client.stream("go");
  assert.equal((await stream.next()).value.type, "text");
  const before = process.memoryUsage().rss;
  const { promise, resolve } = deferred();
  setTimeout(resolve, 300);
  await promise;
  // 26 MB are on their way; what the reader did not ask for stays in the sender.
  assert.ok(process.memoryUsage().rss - before < 20 * 1024 * 1024);
  await stream.return();
  await scenario.wait({ llm: "main", connections: 0 });
});

function deferred() {
  let resolve;
  return { promise: new Promise((r) => (resolve = r)), resolve };
}

test("abort ends the request, and the client goes on", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ hang: true }, { text: "next" }] } } });
  const client = engine.createClient(upstream(scenario));
  const controller = new AbortController();
  const running = client.run("go", { signal: controller.signal });
  await scenario.wait({ llm: "main", requests: 1 });
  controller.abort();
  await assert.rejects(running, (error) => error.name === "CancelledError" && error.cause.name === "AbortError");
  await scenario.wait({ llm: "main", connections: 0 });
  assert.equal((await client.run("go")).text, "next");
});

test("abort reaches the program's tool and the MCP server", async (t) => {
  const scenario = await peers.scenario(t, {
    mcp: { srv: { transport: "http", tools: [{ name: "slow", does: { hang: true } }] } },
    llm: { main: { style: "openai", replies: [{ calls: [{ id: "a", name: "srv_slow", args: {} }, { id: "b", name: "own", args: {} }] }] } },
  });
  const entered = deferred();
  const aborted = deferred();
  const toolkit = await engine.createToolkit({
    mcpConfig: { mcpServers: { srv: { url: scenario.mcp.srv.url } } },
    tools: [
      tool("own", (_args, { signal }) => {
        signal.addEventListener("abort", aborted.resolve);
        entered.resolve();
        return new Promise(() => {});
      }),
    ],
  });
  assert.equal(toolkit.status().srv.state, "connected");
  const controller = new AbortController();
  const running = engine.createClient(upstream(scenario)).run("go", { toolkit, signal: controller.signal });
  await entered.promise;
  await scenario.wait({ mcp: "srv", method: "tools/call" });
  controller.abort();
  await assert.rejects(running, { code: "cancelled" });
  await aborted.promise;
  await scenario.wait({ mcp: "srv", method: "notifications/cancelled" });
  await toolkit.close();
});

test("what a hook throws ends the run and is the cause of its error", async (t) => {
  const scenario = await peers.scenario(t, says("unsaid"));
  const original = new SyntaxError("not today");
  const hooks = {
    beforeLLM: () => {
      throw original;
    },
  };
  const client = engine.createClient({ ...upstream(scenario), hooks });
  const refused = (error) => error.code === "host_failed" && error.cause === original;
  await assert.rejects(client.run("go"), refused);
  await assert.rejects(all(client.stream("go")), refused);
  assert.equal((await scenario.seen()).llm.main.requests.length, 0);
});

test("hooks and bodyTransform see and change a run", async (t) => {
  const scenario = await peers.scenario(t, { llm: oneCall("echo", { q: 1 }) });
  const seen = [];
  const client = engine.createClient({
    ...upstream(scenario),
    hooks: {
      beforeLLM: ({ turn }) => void seen.push(`before ${turn}`),
      afterLLM: async ({ turn }) => void seen.push(`after ${turn}`),
      beforeTool: ({ args }) => ({ args: { ...args, more: true } }),
      afterTool: ({ result }) => ({ result: { ...result, output: `${result.output}!` } }),
    },
    bodyTransform: (body) => ({ ...body, seed: 7 }),
  });
  const toolkit = await engine.createToolkit({ tools: [tool("echo", (args) => args)] });
  const { toolCalls } = await client.run("go", { toolkit });
  assert.equal(toolCalls[0].output, '{"q":1,"more":true}!');
  assert.deepEqual(seen, ["before 1", "after 1", "before 2", "after 2"]);
  const { requests } = (await scenario.seen()).llm.main;
  assert.deepEqual(requests.map(({ body }) => JSON.parse(body).seed), [7, 7]);
});

test("onError is given the error and decides", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ status: 503, json: {} }] } } });
  const seen = [];
  const client = engine.createClient({ ...upstream(scenario), onError: (failure) => (seen.push(failure), "fail") });
  await assert.rejects(client.run("go"), { name: "ProviderUnavailableError", httpStatus: 503 });
  assert.equal(seen.length, 1);
  assert.ok(seen[0].error instanceof ToolspanError);
  assert.equal(seen[0].error.httpStatus, 503);
  assert.equal(seen[0].retryable, true);
});

test("fetch can send the requests, piece by piece", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ text: "one two" }, { text: "three four", chunkBytes: 7 }] } } });
  let requests = 0;
  const httpClient = (url, init) => (requests++, fetch(url, init));
  const client = engine.createClient({ ...upstream(scenario), httpClient });
  assert.equal((await client.run("go")).text, "one two");
  assert.equal((await all(client.stream("go"))).at(-1).result.text, "three four");
  assert.equal(requests, 2);
});

test("a failing httpClient is the cause of a connection error", async (t) => {
  const original = new TypeError("no route");
  const client = engine.createClient({ baseUrl: "http://127.0.0.1:9/v1", style: "openai", model: "m", apiKey: "k", retries: 0, httpClient: () => Promise.reject(original) });
  await assert.rejects(client.run("go"), (error) => error.code === "connection_failed" && error.cause === original);
});

test("leaving a stream cancels the body of the program's fetch", async (t) => {
  const cancelled = deferred();
  const httpClient = async () => ({
    status: 200,
    headers: [["content-type", "text/event-stream"]],
    body: new ReadableStream({
      start: (controller) =>
        controller.enqueue(new TextEncoder().encode('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')),
      cancel: cancelled.resolve,
    }),
  });
  const client = engine.createClient({ baseUrl: "http://127.0.0.1:9/v1", style: "openai", model: "m", apiKey: "k", httpClient });
  for await (const event of client.stream("go")) {
    assert.equal(event.delta, "a");
    break;
  }
  await cancelled.promise;
});

test("ask remembers in the program's own store", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ text: "1" }, { text: "2" }] } } });
  class Store {
    kept = new Map();
    get(id) {
      return this.kept.get(id);
    }
    async save(id, transcript) {
      this.kept.set(id, transcript);
    }
  }
  const store = new Store();
  const client = engine.createClient({ ...upstream(scenario), store });
  assert.equal((await client.ask("one", { id: "x" })).conversationId, "x");
  assert.equal((await client.ask("two", { id: "x" })).messages.length, 4);
  assert.deepEqual([store.kept.get("x").version, store.kept.get("x").messages.length], [1, 4]);
  const accessor = client.conversationStore();
  assert.equal((await accessor.get("x")).messages.length, 4);
  assert.equal(await accessor.get("y"), null);
  await accessor.save("y", [{ role: "user", content: "hi" }]);
  assert.equal(store.kept.get("y").messages.length, 1);
});

test("a store that fails is the cause of the error", async (t) => {
  const original = new Error("disk is full");
  const scenario = await peers.scenario(t, says("unsaid"));
  const store = { get: () => Promise.reject(original), save: () => {} };
  const client = engine.createClient({ ...upstream(scenario), store });
  await assert.rejects(client.ask("go", { id: "x" }), (error) => error.name === "StoreFailedError" && error.cause === original);
});

test("a conversation goes on until it is reset", async (t) => {
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ text: "1" }, { text: "2" }] } } });
  const conversation = engine.createClient(upstream(scenario)).conversation();
  assert.equal((await conversation.send("one")).text, "1");
  assert.equal((await conversation.send("two")).text, "2");
  assert.equal((await conversation.messages()).length, 4);
  await conversation.reset();
  assert.deepEqual(await conversation.messages(), []);
});

test("metrics and logs reach the program, and a sink that throws harms nobody", async (t) => {
  const scenario = await peers.scenario(t, says("ok", { then: "repeat" }));
  const logs = [];
  const own = new Engine({ log: (record) => logs.push(record) });
  const events = [];
  const client = own.createClient({
    ...upstream(scenario),
    onMetric: (event) => {
      events.push(event.type);
      throw new Error("full");
    },
  });
  assert.equal((await client.run("go")).text, "ok");
  assert.equal((await client.run("go")).text, "ok");
  assert.match(client.metrics(), /^# HELP toolspan_/);
  const toolkit = await own.createToolkit({ tools: [tool("a", () => "")] });
  assert.equal(toolkit.register(tool("a", () => "")), false);
  await own.close();
  assert.deepEqual(events, ["llm", "run", "llm", "run"]);
  assert.ok(logs.some(({ level, target }) => level === "warn" && target === "toolkit"));
});

test("the inventory of a configuration", async (t) => {
  const scenario = await peers.scenario(t, { mcp: { srv: { transport: "stdio", tools: [{ name: "a" }] } } });
  const document = { mcpServers: { srv: { command: scenario.mcp.srv.command, tools: {} } } };
  const inventory = await engine.listMcpTools(document);
  assert.deepEqual(inventory.tools.srv.map(({ name, exposedName }) => [name, exposedName]), [["a", "srv_a"]]);
  assert.deepEqual(inventory.status.srv, { state: "connected", tools: 1 });
  const bytes = new TextEncoder().encode(JSON.stringify(document));
  assert.deepEqual(await engine.listMcpTools(bytes), inventory);
});

test("abort ends the build of a toolkit at once", async (t) => {
  const scenario = await peers.scenario(t, { mcp: { srv: { transport: "http", hang: ["initialize"] } } });
  const controller = new AbortController();
  const building = engine.createToolkit({ mcpConfig: { mcpServers: { srv: { url: scenario.mcp.srv.url } } }, signal: controller.signal });
  await scenario.wait({ mcp: "srv", method: "initialize" });
  controller.abort();
  await assert.rejects(building, { code: "cancelled" });
  await scenario.wait({ mcp: "srv", connections: 0 });
});

test("the event loop keeps turning under a fast stream", async (t) => {
  const piece = JSON.stringify({ choices: [{ index: 0, delta: { content: "word " } }] });
  const sse = [...Array.from({ length: 20_000 }, () => piece), JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), "[DONE]"];
  const scenario = await peers.scenario(t, { llm: { main: { style: "openai", replies: [{ sse }] } } });
  let turns = 0;
  const beat = setInterval(() => turns++, 1);
  const events = await all(engine.createClient(upstream(scenario)).stream("go"));
  clearInterval(beat);
  assert.equal(events.filter(({ type }) => type === "text").length, 20_000);
  assert.ok(turns > 20, `${turns} turns`);
});
