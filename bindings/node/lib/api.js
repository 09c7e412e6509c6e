"use strict";

// What a program uses. Every decision is the engine's; here are names, promises, iterators and the ends of things.

const { AsyncResource } = require("node:async_hooks");
const { Engine: Pump, resultOf } = require("./engine.js");

/** What `Symbol.asyncDispose` is where the runtime has none yet; bundlers fall back to the same. */
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** `{pump, kind, number, handlers}` of each toolkit, client and conversation. */
const inside = new WeakMap();

/** Gives an object its counterpart in the engine, which is closed with it. */
function open(object, pump, kind, number, handlers) {
  inside.set(object, { pump, kind, number, handlers });
  pump.closeWhenCollected(object, `${kind}.close`, { [kind]: number }, handlers);
  return object;
}

/** Closes the counterpart, once; the promise is the same for every call. */
function close(object) {
  const self = inside.get(object);
  self.closing ??= self.pump.run(`${self.kind}.close`, { [self.kind]: self.number }).then(
    () => end(object, self),
    (error) => {
      // With the engine everything of it was closed.
      if (error.code !== "closed") throw error;
      end(object, self);
    },
  );
  return self.closing;
}

function end(object, { pump, handlers }) {
  pump.closed(object);
  pump.release(handlers);
}

/** The number of a toolkit, for a client of the same engine. */
function numberOf(toolkit, pump) {
  if (toolkit === undefined || toolkit === null) return undefined;
  const self = inside.get(toolkit);
  if (self?.kind !== "toolkit" || self.pump !== pump) {
    throw new TypeError("toolkit is what createToolkit of the same engine resolved to; did you forget to await it?");
  }
  return self.number;
}

/** Runs an operation on behalf of an object; what the program's own tools threw becomes the cause of their results. */
async function perform(object, op, { signal, toolkit, ...args }) {
  const { pump, kind, number } = inside.get(object);
  const all = { toolkit: numberOf(toolkit, pump), [kind]: number, ...args };
  const { ended, thrown } = pump.start(op, all, { signal, keep: [object, toolkit] });
  const result = resultOf(await ended);
  if (result?.isError && thrown.size > 0) because(result, thrown.values().next().value);
  for (const call of result?.toolCalls ?? []) if (call.isError && thrown.has(call.id)) because(call, thrown.get(call.id));
  return result;
}

function because(result, { thrown }) {
  Object.defineProperty(result, "cause", { value: thrown, configurable: true });
}

function now(object, op, args) {
  const { pump, kind, number } = inside.get(object);
  return pump.call(op, { [kind]: number, ...args });
}

class Toolkit {
  tools() {
    return now(this, "toolkit.tools").tools;
  }

  get(name) {
    return now(this, "toolkit.get", { name }).tool;
  }

  status() {
    return now(this, "toolkit.status").servers;
  }

  adapt(provider) {
    return now(this, "toolkit.adapt", { provider });
  }

  register(tool) {
    const { pump, handlers } = inside.get(this);
    const encoded = pump.encode(tool);
    const { registered } = now(this, "toolkit.register", { tool: encoded.options });
    if (registered) for (const [number, handler] of encoded.handlers) handlers.set(number, handler);
    else pump.release(encoded.handlers);
    return registered;
  }

  execute(name, args, options = {}) {
    return perform(this, "toolkit.execute", { ...options, name, args });
  }

  close() {
    return close(this);
  }

  [asyncDispose]() {
    return close(this);
  }
}

class Client {
  run(prompt, options) {
    return perform(this, "client.run", { ...options, prompt });
  }

  ask(prompt, options) {
    return perform(this, "client.ask", { ...options, prompt });
  }

  stream(prompt, { signal, toolkit, ...options } = {}) {
    const { pump, number } = inside.get(this);
    const args = { client: number, toolkit: numberOf(toolkit, pump), ...options, prompt };
    const context = new AsyncResource("toolspan");
    return new EventStream(pump, () => pump.start("client.stream", args, { signal, context, keep: [this, toolkit] }));
  }

  conversation({ toolkit, ...options } = {}) {
    const { pump } = inside.get(this);
    const { conversation } = now(this, "conversation.create", { toolkit: numberOf(toolkit, pump), ...options });
    const made = open(new Conversation(), pump, "conversation", conversation, new Map());
    Object.assign(inside.get(made), { client: this, toolkit });
    return made;
  }

  conversationStore() {
    return {
      get: async (id) => (await perform(this, "store.get", { id })).transcript,
      save: async (id, messages) => void (await perform(this, "store.save", { id, messages })),
    };
  }

  metrics() {
    return now(this, "client.metrics").text;
  }

  close() {
    return close(this);
  }

  [asyncDispose]() {
    return close(this);
  }
}

class Conversation {
  send(prompt, options) {
    return perform(this, "conversation.send", { ...options, prompt });
  }

  async messages() {
    return (await perform(this, "conversation.messages", {})).messages;
  }

  async reset() {
    await perform(this, "conversation.reset", {});
  }
}

/** The events of one run. It starts with the first `next`; leaving the loop, or `return`, ends it and its connection. */
class EventStream {
  #pump;
  #start;
  #operation;
  #events = this.#pull();

  constructor(pump, start) {
    this.#pump = pump;
    this.#start = start;
  }

  next() {
    return this.#events.next();
  }

  return() {
    this.#cancel();
    return this.#events.return();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  [asyncDispose]() {
    return this.return();
  }

  #cancel() {
    if (this.#operation) this.#pump.cancel(this.#operation.number);
  }

  async *#pull() {
    this.#operation = this.#start();
    const { number, ended } = this.#operation;
    for (let batch = { end: false }; !batch.end; ) {
      batch = await this.#pump.run("stream.next", { stream: number }).catch(async (error) => {
        // A stream that has ended is not known any more; how it ended says more than that.
        this.#cancel();
        resultOf(await ended);
        throw error;
      });
      yield* batch.items;
    }
    resultOf(await ended);
  }
}

/** Threads, toolkits, clients and logs of its own. Most programs use the functions below and never make one. */
class Engine {
  #pump;

  constructor(options) {
    this.#pump = new Pump(options);
  }

  async createToolkit({ signal, mcpConfig, ...rest } = {}) {
    const { options, handlers } = this.#pump.encode({ ...config(mcpConfig), ...rest });
    const { toolkit } = await this.#pump.run("toolkit.create", { options }, { signal, keep: handlers });
    return open(new Toolkit(), this.#pump, "toolkit", toolkit, handlers);
  }

  createClient({ store, ...rest } = {}) {
    const own = store !== null && typeof store === "object";
    const called = own ? (method, ...args) => store[method](...args) : store;
    const { options, handlers } = this.#pump.encode({ ...rest, store: called });
    const { client } = this.#pump.call("client.create", { options });
    return open(new Client(), this.#pump, "client", client, handlers);
  }

  async listMcpTools(mcpConfig, { signal, ...rest } = {}) {
    return this.#pump.run("mcp.list", { ...config(mcpConfig), ...rest }, { signal });
  }

  counters() {
    return this.#pump.call("counters");
  }

  version() {
    return this.#pump.call("version").version;
  }

  close(options) {
    return this.#pump.close(options);
  }

  async [asyncDispose]() {
    await this.close();
  }
}

/** A path and an object go as they are; bytes are the text of a document. */
function config(mcpConfig) {
  if (!(mcpConfig instanceof Uint8Array)) return { mcpConfig };
  return { mcpConfigText: new TextDecoder("utf-8", { fatal: true }).decode(mcpConfig) };
}

let shared;
const engine = () => (shared ??= new Engine());

module.exports = {
  Engine,
  Toolkit,
  Client,
  Conversation,
  createToolkit: async (options) => engine().createToolkit(options),
  createClient: (options) => engine().createClient(options),
  listMcpTools: async (mcpConfig, options) => engine().listMcpTools(mcpConfig, options),
  version: () => engine().version(),
};
