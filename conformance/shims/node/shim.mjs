// The Node column of the conformance suite: does what stdin says with the package's public API, answers on stdout.
import { createInterface } from "node:readline";
import { Engine, ToolspanError } from "../../../bindings/node/index.mjs";

const calls = [];
const logs = [];
const metrics = [];
/** Numbered toolkits, clients and conversations. */
const objects = new Map();
/** Steps under way, with what cancels them. */
const running = new Map();
let numbers = 0;

const engine = new Engine({ log: (record) => logs.push(record) });

function keep(object) {
  objects.set(++numbers, object);
  return numbers;
}

function known(number) {
  const object = objects.get(number);
  if (object === undefined) throw new Error(`the case names ${number}, which is nothing`);
  return object;
}

// The program's functions

/** What a behaviour does with what its function was given, where it means the same for every kind. */
function behave(behaviour, payload, state) {
  if ("sequence" in behaviour) {
    const list = behaviour.sequence;
    return behave(list[Math.min((state.count = (state.count ?? 0) + 1), list.length) - 1], payload, state);
  }
  if ("return" in behaviour) return behaviour.return;
  if ("echo" in behaviour) return payload;
  if ("throw" in behaviour) throw new Error(behaviour.throw);
  if ("hang" in behaviour) return new Promise(() => {});
  if ("edit" in behaviour) return edit(payload, behaviour.edit);
  throw new Error(`no such behaviour: ${JSON.stringify(behaviour)}`);
}

function edit(body, { set = {}, drop = [], appendToLastUser }) {
  const edited = { ...body, ...set };
  for (const key of drop) delete edited[key];
  if (appendToLastUser !== undefined) {
    const last = edited.messages.findLast((message) => message.role === "user");
    if (typeof last.content === "string") last.content += appendToLastUser;
    else last.content.push({ type: "text", text: appendToLastUser });
  }
  return edited;
}

/** The function, or the store, that stands behind a number of the case. */
function hostFunction(number, { kind, behaviour }) {
  const state = {};
  const record = (payload, as = kind) => calls.push({ handler: number, kind: as, payload: structuredCloneJson(payload) });
  if ("store" in behaviour) {
    const kept = new Map();
    return {
      get: (id) => (record({ id }, "store.get"), kept.get(id) ?? null),
      save: (id, messages) => (record({ id, messages }, "store.save"), void kept.set(id, messages)),
    };
  }
  if (kind === "store") {
    return {
      get: (id) => (record({ id }, "store.get"), behave(behaviour, { id }, state)),
      save: (id, messages) => (record({ id, messages }, "store.save"), behave(behaviour, { id, messages }, state)),
    };
  }
  if ("http" in behaviour) {
    return (url, init) => {
      record({ method: init.method, url });
      return fetch(url, { ...init, headers: [...init.headers, ["x-injected", "1"]] });
    };
  }
  return (payload) => {
    record(payload);
    if (kind === "onMetric") metrics.push(payload);
    return behave(behaviour, payload, state);
  };
}

const structuredCloneJson = (value) => JSON.parse(JSON.stringify(value));

/** Options with functions where the case has their numbers. */
function withFunctions(options, handlers) {
  const byNumber = new Map(Object.entries(handlers ?? {}).map(([n, entry]) => [Number(n), hostFunction(Number(n), entry)]));
  const put = (object, key) => {
    const number = object?.[key]?.handler ?? object?.[key];
    if (byNumber.has(number)) object[key] = byNumber.get(number);
  };
  for (const tool of Array.isArray(options?.tools) ? options.tools : []) put(tool, "handler");
  put(options, "handler");
  for (const key of Object.keys(options?.hooks ?? {})) put(options.hooks, key);
  for (const key of ["bodyTransform", "onError", "httpClient", "store", "onMetric"]) put(options, key);
  return options;
}

// The operations

/** Splits the arguments of a run: the object it is called on, the prompt, and the options. */
function runArgs({ client, toolkit, prompt, ...options }, signal) {
  return [known(client), prompt, { ...options, toolkit: toolkit === undefined ? undefined : known(toolkit), signal }];
}

const OPS = {
  "toolkit.create": async ({ options }, signal, handlers) => ({
    toolkit: keep(await engine.createToolkit({ ...withFunctions(options, handlers), signal })),
  }),
  "toolkit.tools": ({ toolkit }) => ({ tools: known(toolkit).tools() }),
  "toolkit.status": ({ toolkit }) => ({ servers: known(toolkit).status() }),
  "toolkit.get": ({ toolkit, name }) => ({ tool: known(toolkit).get(name) }),
  "toolkit.execute": ({ toolkit, name, args, timeoutMs }, signal) =>
    known(toolkit).execute(name, args, { timeoutMs, signal }),
  "toolkit.register": ({ toolkit, tool }, _signal, handlers) => ({
    registered: known(toolkit).register(withFunctions(tool, handlers)),
  }),
  "toolkit.adapt": ({ toolkit, provider }) => known(toolkit).adapt(provider),
  "toolkit.close": async ({ toolkit }) => (await known(toolkit).close(), {}),
  "mcp.list": ({ mcpConfig, mcpConfigText, ...options }, signal) =>
    engine.listMcpTools(mcpConfigText === undefined ? mcpConfig : new TextEncoder().encode(mcpConfigText), { ...options, signal }),
  "client.create": ({ options }, _signal, handlers) => ({
    client: keep(engine.createClient(withFunctions(options, handlers))),
  }),
  "client.close": async ({ client }) => (await known(client).close(), {}),
  "client.run": (args, signal) => {
    const [client, prompt, options] = runArgs(args, signal);
    return client.run(prompt, options);
  },
  "client.ask": (args, signal) => {
    const [client, prompt, options] = runArgs(args, signal);
    return client.ask(prompt, options);
  },
  "client.stream": async ({ stopAfter = Infinity, ...args }, signal) => {
    const [client, prompt, options] = runArgs(args, signal);
    const events = [];
    try {
      for await (const event of client.stream(prompt, options)) {
        events.push(event);
        if (events.length >= stopAfter) break;
      }
    } catch (error) {
      throw Object.assign(error, { partial: { events } });
    }
    return { events };
  },
  "conversation.create": ({ client, toolkit, id }) => ({
    conversation: keep(known(client).conversation({ id, toolkit: toolkit === undefined ? undefined : known(toolkit) })),
  }),
  "conversation.send": ({ conversation, prompt }, signal) => known(conversation).send(prompt, { signal }),
  "conversation.messages": async ({ conversation }) => ({ messages: await known(conversation).messages() }),
  "conversation.reset": async ({ conversation }) => (await known(conversation).reset(), {}),
  "store.get": async ({ client, id }) => ({ transcript: await known(client).conversationStore().get(id) }),
  "store.save": async ({ client, id, messages }) => (await known(client).conversationStore().save(id, messages), {}),
  "client.metrics": ({ client }) => ({ text: known(client).metrics() }),
  counters: () => engine.counters(),
  version: () => ({ version: engine.version() }),
  cancel: ({ step }) => (running.get(step)?.abort(), {}),
  "host.calls": () => calls,
  "host.logs": () => logs,
  "host.metrics": () => metrics,
  "host.reset": () => {
    for (const list of [calls, logs, metrics]) list.length = 0;
    return {};
  },
};

// The protocol

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function perform({ step, op, args, handlers }) {
  const controller = new AbortController();
  running.set(step, controller);
  try {
    if (!(op in OPS)) throw new Error(`no such operation: ${op}`);
    say({ step, ok: (await OPS[op](args, controller.signal, handlers)) ?? null });
  } catch (error) {
    const record = error instanceof ToolspanError ? error.toJSON() : { code: "shim", message: String(error?.stack ?? error) };
    say({ step, error: record, partial: error?.partial });
  } finally {
    running.delete(step);
  }
}

say({ ready: { language: "node", version: engine.version() } });
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) perform(JSON.parse(line));
}
await engine.close();
