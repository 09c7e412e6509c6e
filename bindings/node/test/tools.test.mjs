import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, test } from "node:test";
import { z } from "zod";
import { Engine, createToolkit, defineTool } from "../index.mjs";

const engine = new Engine();
after(() => engine.close());

const ANY = { type: "object", properties: {} };
const tool = (name, run, rest = {}) => defineTool({ name, description: name, input: ANY, run, ...rest });
const toolkit = (...tools) => engine.createToolkit({ tools });

test("what a tool returns becomes its output", async () => {
  const tk = await toolkit(
    tool("text", () => "plain"),
    tool("number", async () => 4),
    tool("object", () => ({ b: 1, a: [null] })),
    tool("nothing", () => {}),
    tool("result", () => ({ output: "no", isError: true, metadata: { n: 1 } })),
  );
  assert.deepEqual(await tk.execute("text"), { output: "plain", isError: false });
  assert.deepEqual(await tk.execute("number"), { output: "4", isError: false });
  assert.deepEqual(await tk.execute("object"), { output: '{"b":1,"a":[null]}', isError: false });
  assert.deepEqual(await tk.execute("nothing"), { output: "", isError: false });
  assert.deepEqual(await tk.execute("result"), { output: "no", isError: true, metadata: { n: 1 } });
});

test("what a tool throws is the text of an error result, and its cause", async () => {
  const original = new RangeError("too far");
  const tk = await toolkit(
    tool("throws", () => {
      throw original;
    }),
    tool("rejects", () => Promise.reject(original)),
    tool("text", () => {
      throw "only text";
    }),
    tool("nothing", () => {
      throw undefined;
    }),
    tool("textless", () => {
      throw { toString: null };
    }),
  );
  for (const name of ["throws", "rejects"]) {
    const result = await tk.execute(name);
    assert.deepEqual({ ...result }, { output: "too far", isError: true });
    assert.equal(result.cause, original);
  }
  const text = await tk.execute("text");
  assert.deepEqual([text.output, text.isError, text.cause], ["only text", true, "only text"]);
  assert.equal((await tk.execute("nothing")).output, "undefined");
  assert.equal((await tk.execute("textless")).output, "a value without text was thrown");
});

test("a value that JSON cannot hold is the tool's failure", async () => {
  const circle = {};
  circle.self = circle;
  const tk = await toolkit(
    tool("bigint", () => 1n),
    tool("circle", () => circle),
  );
  for (const name of ["bigint", "circle"]) {
    const result = await tk.execute(name);
    assert.equal(result.isError, true);
    assert.ok(result.cause instanceof TypeError);
  }
});

test("a tool is told its name and when nobody waits any more", async () => {
  const seen = {};
  const entered = new Promise((resolve) => (seen.enter = resolve));
  const tk = await toolkit(
    tool("waits", (args, context) => {
      seen.args = args;
      seen.name = context.name;
      seen.aborted = new Promise((resolve) => context.signal.addEventListener("abort", () => resolve(true)));
      seen.enter();
      return new Promise(() => {});
    }),
  );
  const controller = new AbortController();
  const running = tk.execute("waits", { q: 1 }, { signal: controller.signal });
  await entered;
  controller.abort(new Error("enough"));
  await assert.rejects(running, (error) => {
    assert.equal(error.code, "cancelled");
    assert.equal(error.name, "CancelledError");
    assert.equal(error.cause.message, "enough");
    return true;
  });
  assert.equal(await seen.aborted, true);
  assert.deepEqual([seen.args, seen.name], [{ q: 1 }, "waits"]);
  assert.equal(engine.counters().operations, 0);
});

test("a signal that was aborted before starts nothing", async () => {
  let calls = 0;
  const tk = await toolkit(tool("count", () => void calls++));
  await assert.rejects(tk.execute("count", {}, { signal: AbortSignal.abort("no") }), { code: "cancelled", cause: "no" });
  assert.deepEqual(await tk.execute("count"), { output: "", isError: false });
  assert.equal(calls, 1);
});

test("a long-lived signal keeps no listener of a finished call", async () => {
  const tk = await toolkit(tool("text", () => "t"));
  const { signal } = new AbortController();
  let listeners = 0;
  const [add, remove] = [signal.addEventListener, signal.removeEventListener];
  signal.addEventListener = (...args) => (listeners++, add.apply(signal, args));
  signal.removeEventListener = (...args) => (listeners--, remove.apply(signal, args));
  await tk.execute("text", {}, { signal });
  await assert.rejects(tk.execute("text", { big: 1n }, { signal }), TypeError);
  assert.equal(listeners, 0);
});

test("tools see the AsyncLocalStorage of their caller", async () => {
  const storage = new AsyncLocalStorage();
  const tk = await toolkit(
    tool("who", async () => {
      await null;
      return storage.getStore();
    }),
  );
  const call = (who) =>
    storage.run(who, async () => {
      const { output } = await tk.execute("who");
      return [output, storage.getStore()];
    });
  assert.deepEqual(await Promise.all(["ann", "bob", "cy"].map(call)), [
    ["ann", "ann"],
    ["bob", "bob"],
    ["cy", "cy"],
  ]);
});

test("a tool may call its own toolkit", async () => {
  const tk = await toolkit(
    tool("outer", async () => `<${(await tk.execute("inner")).output}>`),
    tool("inner", () => "x"),
  );
  assert.equal((await tk.execute("outer")).output, "<x>");
});

test("a zod schema describes and checks the arguments", async () => {
  const input = z.object({ a: z.int(), unit: z.string().default("m") });
  const length = defineTool({ name: "length", description: "d", input, run: ({ a, unit }) => `${a + 1} ${unit}` });
  const { inputSchema } = length;
  assert.equal(inputSchema.type, "object");
  assert.deepEqual(Object.keys(inputSchema.properties), ["a", "unit"]);
  assert.deepEqual(inputSchema.required, ["a"]);
  const tk = await toolkit(length);
  assert.deepEqual(await tk.execute("length", { a: 1 }), { output: "2 m", isError: false });
  const refused = await tk.execute("length", { a: "one" });
  assert.equal(refused.isError, true);
  assert.match(refused.output, /\n- a: "one" is not of type "integer"\n/);
  const unchecked = await engine.createToolkit({ tools: [length], validateArguments: false });
  assert.match((await unchecked.execute("length", { a: "one" })).output, /^Invalid arguments\. a: /);
});

test("a validator that does not describe itself needs a schema beside it", () => {
  const silent = { "~standard": { version: 1, vendor: "silent", validate: (value) => ({ value }) } };
  const definition = { name: "t", description: "d", input: silent, run: () => "" };
  assert.throws(() => defineTool(definition), { name: "TypeError", message: /silent schemas .* give inputSchema/ });
  assert.equal(defineTool({ ...definition, inputSchema: ANY }).inputSchema, ANY);
});

test("tools are listed, found and registered", async () => {
  const tk = await toolkit(tool("first", () => "1"));
  const first = { name: "first", description: "first", inputSchema: ANY, source: "native" };
  assert.deepEqual(tk.tools(), [first]);
  assert.deepEqual(tk.get("first"), first);
  assert.equal(tk.get("second"), null);
  assert.equal(tk.register(tool("second", () => "2")), true);
  assert.equal(tk.register(tool("first", () => "other")), false);
  assert.equal((await tk.execute("second")).output, "2");
  assert.equal((await tk.execute("first")).output, "1");
  assert.equal((await tk.execute("third")).output, "Unknown tool: third");
});

test("an option that does not exist is an error that names it", async () => {
  await assert.rejects(engine.createToolkit({ tols: [] }), (error) => {
    assert.ok(error instanceof Error);
    assert.deepEqual([error.name, error.code, error.path, error.retryable], ["InvalidConfigError", "invalid_config", "tols", false]);
    assert.match(error.message, /^invalid_config: tols: /);
    assert.match(error.stack, /tools\.test\.mjs/);
    assert.equal(error.toJSON().code, "invalid_config");
    return true;
  });
  assert.throws(() => new Engine({ workers: 0 }), { code: "invalid_argument", path: "workers" });
});

test("closing is idempotent, and what is closed is gone", async () => {
  const own = new Engine();
  const tk = await own.createToolkit({ tools: [tool("text", () => "t")] });
  assert.equal(own.counters().openToolkits, 1);
  await Promise.all([tk.close(), tk.close()]);
  await tk.close();
  assert.equal(own.counters().openToolkits, 0);
  assert.throws(() => tk.tools(), { code: "closed" });
  await assert.rejects(tk.execute("text"), { code: "closed" });
  assert.deepEqual([await own.close(), await own.close()], [true, true]);
});

test("two engines do not know each other's toolkits", async () => {
  const other = new Engine();
  const tk = await other.createToolkit({ tools: [tool("text", () => "t")] });
  assert.equal(other.counters().openToolkits, 1);
  const client = engine.createClient({ baseUrl: "http://127.0.0.1:9", style: "openai", model: "m", apiKey: "k" });
  await assert.rejects(async () => client.run("hi", { toolkit: tk }), TypeError);
  await assert.rejects(async () => client.run("hi", { toolkit: createToolkit() }), /did you forget to await/);
  assert.equal(await other.close(), true);
  await assert.rejects(tk.execute("text"), { code: "closed" });
  await tk.close();
});

test("close ends what runs with closed, and nothing comes after it", async () => {
  const own = new Engine();
  let enter;
  const entered = new Promise((resolve) => (enter = resolve));
  let aborted = false;
  const tk = await own.createToolkit({
    tools: [
      tool("never", (_args, { signal }) => {
        signal.addEventListener("abort", () => (aborted = true));
        enter();
        return new Promise(() => {});
      }),
    ],
  });
  const running = assert.rejects(tk.execute("never"), { name: "ClosedError", code: "closed" });
  await entered;
  assert.equal(await own.close(), true);
  await running;
  assert.equal(aborted, true);
  assert.throws(() => own.counters(), { code: "closed" });
});

test("large, deep and unusual texts pass or are refused, never lost", async () => {
  const tk = await toolkit(tool("echo", (args) => args));
  const round = async (args) => JSON.parse((await tk.execute("echo", args)).output);
  const big = { text: "x".repeat(4 * 1024 * 1024) };
  assert.deepEqual(await round(big), big);
  const odd = { nul: "\0", emoji: "😀", order: { b: 1, a: 2 }, half: 0.1 };
  assert.deepEqual(await round(odd), odd);
  let deep = {};
  for (let i = 0; i < 500; i++) deep = { deep };
  await assert.rejects(tk.execute("echo", deep), { code: "limit_exceeded" });
});

test("ten thousand calls leave nothing behind", async () => {
  const tk = await toolkit(tool("text", () => "t"));
  for (let i = 0; i < 100; i++) {
    const results = await Promise.all(Array.from({ length: 100 }, () => tk.execute("text")));
    assert.equal(results.every((result) => result.output === "t"), true);
  }
  assert.equal(engine.counters().operations, 0);
});
