"use strict";

// Finds the native half and makes sure that it belongs to this package.

const path = require("node:path");
const abi = require("./abi.js");
const { fromRecord } = require("./errors.js");

const file = process.env.TOOLSPAN_NATIVE_PATH || path.join(__dirname, "..", "toolspan.node");

function refuse(code, message, cause) {
  return fromRecord({ code, message, retryable: false }, cause);
}

function load() {
  let native;
  try {
    native = require(path.resolve(file));
  } catch (error) {
    const build = "build it with `npm run build`, or name another file in TOOLSPAN_NATIVE_PATH";
    const missing = error.code === "MODULE_NOT_FOUND";
    throw missing
      ? refuse("not_found", `the native library ${file} is not there for ${process.platform}-${process.arch}; ${build}`)
      : refuse("unsupported", `the native library ${file} does not load on ${process.platform}-${process.arch}`, error);
  }
  const found = { abiVersion: native.abiVersion?.(), schemaHash: native.schemaHash?.() };
  for (const [key, wanted] of Object.entries(abi)) {
    if (found[key] !== wanted) {
      throw refuse(
        "abi_mismatch",
        `the native library ${file} does not belong to this package: its ${key} is ${found[key]}, not ${wanted}; ` +
          "install both from the same version, or build the library again",
      );
    }
  }
  return native;
}

module.exports = { native: load() };
