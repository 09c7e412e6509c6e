"use strict";

// The program's own `fetch` for requests to the model (SPEC 7.1 `httpClient`).

/** Bodies that are being read, by a number of ours. */
const bodies = new Map();
let last = 0;

/** Sends one request; the body of the answer is read piece by piece when it can be. */
async function send(fetch, { method, url, headers, body }, signal) {
  // A redirect is the engine's business: it knows which headers may go where.
  const response = await fetch(url, { method, headers, body, signal, redirect: "manual" });
  const answer = { status: response.status, headers: [...response.headers] };
  if (response.body == null) return { ...answer, body: await response.text() };
  const reader = response.body.getReader();
  if (signal.aborted) {
    await reader.cancel();
    throw signal.reason;
  }
  bodies.set(++last, reader);
  return { ...answer, stream: last };
}

/** The next piece of a body. One that ends or fails is not closed again. */
async function read(number) {
  let last = true;
  try {
    const { done, value } = await bodies.get(number).read();
    last = done;
    return done ? { end: true } : { data: Buffer.from(value).toString("base64") };
  } finally {
    if (last) bodies.delete(number);
  }
}

/** Nobody reads the body any more. */
async function close(number) {
  const reader = bodies.get(number);
  bodies.delete(number);
  await reader?.cancel();
}

module.exports = { send, read, close };
