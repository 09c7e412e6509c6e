"use strict";

// The program's functions as the engine calls them: one entry per kind of host call.

const { fromRecord } = require("./errors.js");
const http = require("./http.js");

/** Kinds that want an answer, each `(target, payload, signal) => answer`. */
const SERVE = {
  "tool.execute": async (run, { args, ...about }, signal) => toolAnswer(await run(args, { ...about, signal })),
  "hook.beforeLLM": (hook, payload, signal) => hook(payload, { signal }),
  "hook.afterLLM": async (hook, payload, signal) => void (await hook(payload, { signal })),
  "hook.beforeTool": (hook, payload, signal) => hook(payload, { signal }),
  "hook.afterTool": (hook, payload, signal) => hook(payload, { signal }),
  bodyTransform: (transform, { body }, signal) => transform(body, { signal }),
  onError: (decide, payload, signal) => decide({ ...payload, error: fromRecord(payload.error) }, { signal }),
  "store.get": (store, { id }) => store("get", id),
  "store.save": async (store, { id, transcript }) => void (await store("save", id, transcript)),
  "http.send": http.send,
  "http.read": (_send, { stream }) => http.read(stream),
};

/** Kinds that want none. */
const NOTIFY = {
  metric: (sink, event) => sink(event),
  log: (sink, record) => sink(record),
  "http.close": (_send, { stream }) => http.close(stream),
};

/** Runs the function of the program that a host call is for. */
async function serve(kind, target, payload, signal) {
  if (target === undefined) throw new Error("nothing of the program serves this call any more");
  return SERVE[kind](target, payload, signal);
}

/** Hands the program something that wants no answer. What its function throws has nowhere to go and ends here. */
async function notify(kind, target, payload) {
  try {
    await NOTIFY[kind]?.(target, payload);
  } catch {
    // A sink that fails must not end the process, and the engine does not wait for it.
  }
}

/** What a tool returned, as the engine takes it. */
function toolAnswer(value = null) {
  const isResult = typeof value?.output === "string" && typeof value.isError === "boolean";
  return isResult ? { result: value } : { value };
}

/** The reply that says a function of the program failed, whatever it threw. */
function failure(thrown) {
  let message, type;
  try {
    message = String(thrown instanceof Error ? thrown.message : thrown);
    type = String(thrown?.name ?? typeof thrown);
  } catch {
    message = "a value without text was thrown";
  }
  return JSON.stringify({ error: { message, type } });
}

module.exports = { SERVE, NOTIFY, serve, notify, failure };
