import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { CLEAN, fixtures, run, start } from "./support.mjs";

let peers;
before(async () => (peers = await fixtures()));
after(() => peers.close());

const NEVER = `
  const tk = await createToolkit({ tools: [defineTool({ name: "never", description: "d", input: { type: "object" },
    run: () => { say("entered"); return new Promise(() => {}); } })] });
`;

const mcp = ({ command }) => JSON.stringify({ mcpServers: { srv: { command } } });

test("a program with an idle open engine ends by itself, and so do its servers", async (t) => {
  const scenario = await peers.scenario(t, { mcp: { srv: { transport: "stdio", tools: [{ name: "a" }], grandchild: true } } });
  const end = await run(`
    const tk = await createToolkit({ mcpConfig: ${mcp(scenario.mcp.srv)} });
    createClient({ baseUrl: "http://127.0.0.1:9", style: "openai", model: "m", apiKey: "k" });
    say(String(tk.tools().length));
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "1\n" });
  await scenario.wait({ mcp: "srv", processes: 0 });
});

test("a program stays alive while a call is pending", async (t) => {
  const scenario = await peers.scenario(t, {
    mcp: { srv: { transport: "http", tools: [{ name: "slow", does: { gate: "go", text: "late" } }] } },
  });
  const program = start(`
    const tk = await createToolkit({ mcpConfig: { mcpServers: { srv: { url: ${JSON.stringify(scenario.mcp.srv.url)} } } } });
    tk.execute("srv_slow").then(({ output }) => say(output));
    say("waiting");
  `);
  await program.said("waiting");
  await scenario.wait({ gate: "go" });
  await scenario.open("go");
  assert.deepEqual(await program.ended, { ...CLEAN, stdout: "waiting\nlate\n" });
});

test("what is no AbortSignal is refused, and nothing stays behind", async () => {
  const end = await run(`
    const client = createClient({ baseUrl: "http://127.0.0.1:9", style: "openai", model: "m", apiKey: "k" });
    await client.run("hi", { signal: new AbortController() }).catch((error) => say(String(error)));
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "TypeError: signal must be an AbortSignal\n" });
});

test("a failure that nobody awaits is an unhandled rejection like any other", async () => {
  const end = await run(`createToolkit({ nonsense: 1 })`);
  assert.equal(end.code, 1);
  assert.match(end.stderr, /InvalidConfigError: invalid_config: nonsense/);
});

test("process.exit during calls", async () => {
  for (let i = 0; i < 5; i++) {
    const end = await run(`${NEVER}
      for (let i = 0; i < 10; i++) tk.execute("never").catch(() => {});
      setInterval(() => tk.execute("never").catch(() => {}), 1);
      setTimeout(() => process.exit(3), 30);
    `);
    assert.deepEqual([end.code, end.signal, end.stderr], [3, null, ""]);
  }
});

test("a signal ends a program that waits", async () => {
  const program = start(`${NEVER} await tk.execute("never");`);
  await program.said("entered");
  program.kill("SIGTERM");
  assert.deepEqual(await program.ended, { stdout: "entered\n", stderr: "", code: null, signal: "SIGTERM" });
});

test("a handled signal can cancel the call", async () => {
  const program = start(`${NEVER}
    const controller = new AbortController();
    process.once("SIGINT", () => controller.abort(new Error("interrupted")));
    await tk.execute("never", {}, { signal: controller.signal }).catch((error) => say(error.cause.message));
  `);
  await program.said("entered");
  program.kill("SIGINT");
  assert.deepEqual(await program.ended, { ...CLEAN, stdout: "entered\ninterrupted\n" });
});

test("no tool can raise an uncaught exception", async () => {
  const end = await run(`
    process.on("uncaughtException", (error) => say("uncaught " + error));
    const tools = {
      sync: () => { throw new Error("a"); },
      rejects: async () => { throw new Error("b"); },
      nothing: () => { throw undefined; },
      thenable: () => ({ then() { throw new Error("c"); } }),
      twice: () => ({ then(resolve) { resolve("d"); throw new Error("late"); } }),
      getter: () => ({ get output() { throw new Error("e"); } }),
    };
    const tk = await createToolkit({ tools: Object.entries(tools).map(([name, run]) => defineTool({ name, description: "d", input: { type: "object" }, run })) });
    for (const name of Object.keys(tools)) say((await tk.execute(name)).output);
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "a\nb\nundefined\nc\nd\ne\n" });
});

test("garbage collection takes nothing that is in use, and closes what is not", async (t) => {
  const scenario = await peers.scenario(t, { mcp: { srv: { transport: "stdio", tools: [{ name: "a" }] } } });
  const program = start(
    `
    const engine = new Engine();
    const collect = async () => { for (let i = 0; i < 10; i++) { gc(); await new Promise(setImmediate); } };
    async function inUse() {
      const tk = await engine.createToolkit({ tools: [defineTool({ name: "slow", description: "d", input: { type: "object" },
        run: async () => { await collect(); return "done"; } })] });
      return tk.execute("slow");
    }
    say((await inUse()).output);
    await (async () => void (await engine.createToolkit({ mcpConfig: ${mcp(scenario.mcp.srv)} })))();
    const beat = setInterval(() => {}, 1000);
    while (engine.counters().openToolkits > 0) await collect();
    clearInterval(beat);
    say("collected");
  `,
    { flags: ["--expose-gc"] },
  );
  await program.said("collected");
  await scenario.wait({ mcp: "srv", processes: 0 });
  assert.deepEqual(await program.ended, { ...CLEAN, stdout: "done\ncollected\n" });
});

test("an engine that is dropped is collected", async () => {
  const end = await run(
    `
    const dropped = await (async () => {
      const log = () => {};
      await new Engine({ log }).createToolkit();
      return new WeakRef(log); // which only the engine has
    })();
    for (let i = 0; i < 50 && dropped.deref(); i++) { await new Promise(setImmediate); gc(); }
    say(String(dropped.deref()));
  `,
    { flags: ["--expose-gc"] },
  );
  assert.deepEqual(end, { ...CLEAN, stdout: "undefined\n" });
});

test("workers have engines of their own, and may be terminated in a call", async () => {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const end = await run(`
    import { Worker } from "node:worker_threads";
    import { once } from "node:events";
    for (let round = 0; round < 5; round++) {
      const workers = Array.from({ length: 4 }, () => new Worker(${JSON.stringify(worker)}, { execArgv: [] }));
      await Promise.all(workers.map((worker) => once(worker, "message")));
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
    const tk = await createToolkit({ tools: [defineTool({ name: "t", description: "d", input: { type: "object" }, run: () => "main" })] });
    say((await tk.execute("t")).output);
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "main\n" });
});

test("close during many calls ends them all in time", async () => {
  const end = await run(`
    const engine = new Engine();
    const tk = await engine.createToolkit({ tools: [defineTool({ name: "never", description: "d", input: { type: "object" }, run: () => new Promise(() => {}) })] });
    const calls = Array.from({ length: 500 }, () => tk.execute("never").catch((error) => error.code));
    const closed = engine.close({ timeoutMs: 3000 });
    const codes = new Set(await Promise.all(calls));
    say([...codes].join() + " " + (await closed));
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "closed true\n" });
});

test("close does not block the event loop", async (t) => {
  const scenario = await peers.scenario(t, {
    mcp: { srv: { transport: "stdio", tools: [{ name: "a" }], ignoreEof: true, ignoreTerm: true } },
  });
  const end = await run(`
    const engine = new Engine();
    await engine.createToolkit({ mcpConfig: ${mcp(scenario.mcp.srv)} });
    let turns = 0;
    const beat = setInterval(() => turns++, 5);
    await engine.close({ timeoutMs: 300 });
    clearInterval(beat);
    say(String(turns > 5));
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "true\n" });
});

test("a library that is missing, or is not ours, is refused with a reason", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "toolspan-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const loaded = (path) =>
    run(``, { env: { TOOLSPAN_NATIVE_PATH: path } }).then(({ code, stderr }) => {
      assert.equal(code, 1);
      return stderr;
    });
  assert.match(await loaded(join(folder, "none.node")), /NotFoundError: not_found: .*none\.node is not there/);
  writeFileSync(join(folder, "text.node"), "not a library");
  assert.match(await loaded(join(folder, "text.node")), /UnsupportedError: unsupported: .*text\.node does not load/);
  writeFileSync(join(folder, "old.js"), "exports.abiVersion = () => 0");
  assert.match(await loaded(join(folder, "old.js")), /AbiMismatchError: abi_mismatch: .*abiVersion is 0, not 1/);
});

test("two copies of the library live in one process", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "toolspan-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const copy = join(folder, "copy.node");
  copyFileSync(fileURLToPath(new URL("../toolspan.node", import.meta.url)), copy);
  const end = await run(`
    import { createRequire } from "node:module";
    const require = createRequire(${JSON.stringify(import.meta.url)});
    const first = new Engine();
    process.env.TOOLSPAN_NATIVE_PATH = ${JSON.stringify(copy)};
    for (const key of Object.keys(require.cache)) delete require.cache[key];
    const second = new (require("../index.js").Engine)();
    await second.createToolkit();
    say(JSON.stringify([first.counters().openToolkits, second.counters().openToolkits]));
    await first.close();
    await second.close();
  `);
  assert.deepEqual(end, { ...CLEAN, stdout: "[0,1]\n" });
});
