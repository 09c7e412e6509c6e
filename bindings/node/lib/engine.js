"use strict";

// The pump: promises by operation number, the program's functions by handler number, events drained on the event loop.

const { AsyncResource } = require("node:async_hooks");
const { fromRecord, recordOf } = require("./errors.js");
const { SERVE, serve, notify, failure } = require("./host.js");
const { native } = require("./native.js");

// The longest a timer can be set; it exists to keep the process alive and never fires in practice.
const FOREVER_MS = 2 ** 31 - 1;
// Engines with pending operations, which must not be collected, and the timer that keeps the process alive as long as there
// are any. Making one timer per operation costs as much as all else that is done for it in JavaScript.
const busy = new Set();
let alive;
const CLOSE_MS = 5000;
const CANCELLED = { code: "cancelled", message: "the caller cancelled", retryable: false };

/** An instance of the library: its threads, its toolkits and clients. */
class Engine {
  #native;
  #numbers = 0;
  #pending = new Map();
  // Owned by the toolkits and clients they were given to.
  #handlers = new Map();
  #log;
  #dropped = new FinalizationRegistry(({ op, args, handlers }) => this.#discard(op, args, handlers));

  /** @param {import("../index.js").EngineOptions} [options] */
  constructor({ log, logLevel, ...options } = {}) {
    this.#log = log;
    const self = new WeakRef(this);
    try {
      this.#native = new native.Engine(
        JSON.stringify({ hostCalls: Object.keys(SERVE), log: logLevel ?? (log && "debug"), ...options }),
        () => self.deref()?.#drain(),
      );
    } catch (error) {
      throw fromRecord(recordOf(error));
    }
  }

  /** An operation that needs no waiting. */
  call(op, args = {}) {
    try {
      return JSON.parse(this.#native.call(JSON.stringify({ op, args })));
    } catch (error) {
      throw fromRecord(recordOf(error));
    }
  }

  /**
   * Starts an operation and returns its number, a promise of its outcome for `resultOf` (`ended`, never rejected), and what
   * the program's functions threw meanwhile, by number of the host call and id of the tool call (`thrown`). The context
   * (AsyncLocalStorage) of those functions is the one of this call, or `context`; `keep` is not collected before the end.
   */
  start(op, args, { signal, context, keep } = {}) {
    const number = ++this.#numbers;
    const thrown = new Map();
    const ended = new Promise((resolve) => {
      if (signal?.aborted) return resolve({ error: CANCELLED, cause: signal.reason });
      // Of any realm; before anything is kept, or the process would wait for what never starts.
      if (signal && typeof signal.addEventListener !== "function") throw new TypeError("signal must be an AbortSignal");
      const request = JSON.stringify({ op, args });
      const operation = {
        resolve,
        signal,
        keep,
        thrown,
        calls: new Map(),
        context: context ?? new AsyncResource("toolspan"),
        abort: () => this.#native.cancel(number),
      };
      this.#pending.set(number, operation);
      if (this.#pending.size === 1) begin(this);
      signal?.addEventListener("abort", operation.abort, { once: true });
      try {
        this.#native.submit(number, request);
      } catch (error) {
        this.#forget(number, operation);
        resolve({ error: recordOf(error) });
      }
    });
    return { number, ended, thrown };
  }

  /** Starts an operation and gives its result. */
  async run(op, args, options) {
    return resultOf(await this.start(op, args, options).ended);
  }

  /** Cancels the operation of that number, which may have ended. */
  cancel(number) {
    this.#native.cancel(number);
  }

  /**
   * Options with a number in the place of each function, and the functions by number. Whoever holds the map keeps the
   * functions known.
   */
  encode(options) {
    const handlers = new Map();
    const text = JSON.stringify(options, (key, value) => {
      if (typeof value !== "function") return value;
      const handler = ++this.#numbers;
      handlers.set(handler, value);
      this.#handlers.set(handler, new WeakRef(value));
      return key === "handler" ? handler : { handler };
    });
    return { options: JSON.parse(text ?? "null"), handlers };
  }

  /** Forgets functions that `encode` numbered. */
  release(handlers) {
    for (const number of handlers.keys()) this.#handlers.delete(number);
  }

  /** When `object` is collected, its counterpart is closed: a net for programs that forget, no more. */
  closeWhenCollected(object, op, args, handlers) {
    this.#dropped.register(object, { op, args, handlers: [...handlers.keys()] }, object);
  }

  /** The program closed `object` itself. */
  closed(object) {
    this.#dropped.unregister(object);
  }

  /** Ends everything that is open; false when that took longer than `timeoutMs` and goes on in the background. */
  async close({ timeoutMs = CLOSE_MS } = {}) {
    const ended = await this.#native.close(timeoutMs);
    this.#drain();
    return ended;
  }

  #discard(op, args, handlers) {
    for (const number of handlers) this.#handlers.delete(number);
    try {
      this.#native.submit(++this.#numbers, JSON.stringify({ op, args }));
    } catch {
      // The engine is closed, and everything of it.
    }
  }

  // Called by the native wake function: nothing may be thrown from here.
  #drain() {
    for (let text; (text = this.#native.poll()) !== null && text !== "[]"; ) {
      for (const event of JSON.parse(text)) this.#deliver(event);
    }
  }

  #deliver(event) {
    const operation = this.#pending.get(event.op);
    switch (event.type) {
      case "host_call":
        if (event.call === 0) this.#notify(event, operation);
        else this.#serve(event, operation);
        return;
      case "host_call_cancelled":
        operation?.calls.get(event.call)?.abort();
        operation?.calls.delete(event.call);
        return;
    }
    if (operation === undefined) return;
    this.#forget(event.op, operation);
    const own = operation.thrown.get(event.error?.hostCall);
    const reason = event.type === "cancelled" ? operation.signal?.reason : undefined;
    operation.resolve({ result: event.result, error: event.error, cause: own ? own.thrown : reason });
  }

  #forget(number, operation) {
    this.#pending.delete(number);
    operation.signal?.removeEventListener("abort", operation.abort);
    if (this.#pending.size === 0) rest(this);
  }

  #notify({ kind, handler, payload }, operation) {
    const target = kind === "log" ? this.#log : this.#handlers.get(handler)?.deref();
    inContext(operation, () => notify(kind, target, payload));
  }

  #serve({ call, kind, handler, payload }, operation) {
    const target = this.#handlers.get(handler)?.deref();
    const controller = new AbortController();
    operation?.calls.set(call, controller);
    inContext(operation, async () => {
      let reply;
      try {
        const value = await serve(kind, target, payload, controller.signal);
        reply = JSON.stringify({ ok: value ?? null });
      } catch (thrown) {
        operation?.thrown.set(call, { thrown });
        operation?.thrown.set(payload?.callId, { thrown });
        reply = failure(thrown);
      }
      operation?.calls.delete(call);
      if (controller.signal.aborted) return;
      try {
        this.#native.respond(call, reply);
      } catch {
        // Nobody waits for it any more, or the engine could not read it and has failed the call.
      }
    });
  }
}

/** The engine has operations: neither it nor the process may end. */
function begin(engine) {
  busy.add(engine);
  alive ??= setInterval(() => {}, FOREVER_MS);
  alive.ref();
}

/** The engine has none any more. */
function rest(engine) {
  busy.delete(engine);
  if (busy.size === 0) alive.unref();
}

/**
 * The result of an operation, or its error. The error is made here, where the caller awaits, so that its stack shows who
 * called and not the pump.
 */
function resultOf({ result, error, cause }) {
  if (error) throw fromRecord(error, cause);
  return result;
}

function inContext(operation, work) {
  return operation === undefined ? work() : operation.context.runInAsyncScope(work);
}

module.exports = { Engine, resultOf };
