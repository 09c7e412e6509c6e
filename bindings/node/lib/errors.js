"use strict";

// One base class, a subclass per code. The list of codes is data (codes.js), written by the core.

const codes = require("./codes.js");

/** What every failure of this package is. Its properties are those of the error record (SPEC 8). */
class ToolspanError extends Error {
  #record;

  /**
   * @param {import("../index.js").ErrorRecord} record what the core said
   * @param {unknown} [cause] the program's own exception, or the reason of its AbortSignal
   */
  constructor(record, cause) {
    const at = record.path === undefined ? "" : `${record.path}: `;
    super(`${record.code}: ${at}${record.message}`, cause === undefined ? undefined : { cause });
    this.#record = record;
    const { message: _text, cause: chain, hostCall: _call, ...properties } = record;
    Object.assign(this, properties);
    if (cause === undefined && chain?.length) this.cause = chainOf(chain);
  }

  /** The record, as JSON has it. */
  toJSON() {
    return this.#record;
  }
}
Object.defineProperty(ToolspanError.prototype, "name", { value: "ToolspanError", configurable: true, writable: true });

/** @type {Record<string, typeof ToolspanError>} */
const classes = {};
for (const name of Object.values(codes)) {
  classes[name] = { [name]: class extends ToolspanError {} }[name];
  Object.defineProperty(classes[name].prototype, "name", { value: name, configurable: true, writable: true });
}

/** The core's chain of causes as nested errors, outermost first. */
function chainOf(chain) {
  return chain.reduceRight((cause, link) => {
    const error = new Error(link.message, cause && { cause });
    return link.code === undefined ? error : Object.assign(error, { code: link.code });
  }, undefined);
}

/** The error of a record. A code of a newer core gets the base class. */
function fromRecord(record, cause) {
  return new (classes[codes[record.code]] ?? ToolspanError)(record, cause);
}

/** The record in what the native half threw: its text, or, for a defect, one that says so. */
function recordOf(thrown) {
  try {
    return JSON.parse(thrown.message);
  } catch {
    return { code: "internal", message: String(thrown?.message), retryable: false };
  }
}

module.exports = { ToolspanError, classes, fromRecord, recordOf };
