import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import * as esm from "toolspan";

const require = createRequire(import.meta.url);
const cjs = require("toolspan");
const text = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const declarations = text("index.d.ts") + text("errors.d.ts") + text("models.d.ts");

test("ESM and CommonJS give the same objects", () => {
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort());
  for (const name of Object.keys(cjs)) assert.equal(esm[name], cjs[name]);
});

test("everything that exists is declared, and the other way round", () => {
  const declared = [...declarations.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual([...new Set(declared)].sort(), Object.keys(cjs).sort());
});

test("every method is declared, and the other way round", () => {
  for (const name of ["Engine", "Toolkit", "Client", "Conversation"]) {
    const body = declarations.match(new RegExp(`^export class ${name} [^]*?^}`, "m"))?.[0] ?? declarations.match(new RegExp(`^export class ${name} {[^]*?^}`, "m"))[0];
    const declared = [...body.matchAll(/^ {2}(?:private )?(\w+)\(/gm)].map(([, method]) => method);
    assert.deepEqual([...new Set([...declared, "constructor"])].sort(), Object.getOwnPropertyNames(cjs[name].prototype).sort());
  }
});

test("every error code has a class that says so", () => {
  const codes = [...declarations.matchAll(/^export class (\w+) extends ToolspanError {\n  readonly code: "(\w+)"/gm)];
  const union = declarations.match(/export type ErrorCode =([^;]+);/)[1].match(/\w+/g);
  assert.deepEqual(codes.map(([, , code]) => code), union);
  for (const [, name, code] of codes) {
    const error = new cjs[name]({ code, message: "text", retryable: true, path: "a.b", httpStatus: 500 });
    assert.ok(error instanceof cjs.ToolspanError && error instanceof Error);
    assert.deepEqual([error.name, error.message, error.code, error.retryable, error.httpStatus], [name, `${code}: a.b: text`, code, true, 500]);
  }
});

test("the library's own chain of causes is kept", () => {
  const cause = [{ message: "outer", code: "mcp_error" }, { message: "inner" }];
  const error = new cjs.McpError({ code: "mcp_error", message: "text", retryable: false, cause });
  assert.deepEqual([error.cause.message, error.cause.code, error.cause.cause.message], ["outer", "mcp_error", "inner"]);
  assert.deepEqual(error.toJSON().cause, cause);
});

test("every option of the core is declared", () => {
  const { records, operations } = JSON.parse(text("../api-manifest.json"));
  const keys = (name) => {
    const body = declarations.match(new RegExp(`^export interface ${name} [^]*?^}`, "m"))[0];
    return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, key]) => key).sort();
  };
  const but = (list, ...less) => list.filter((key) => !less.includes(key)).sort();
  assert.deepEqual(keys("ClientOptions"), but(records.ClientOptions));
  assert.deepEqual(keys("ToolkitOptions"), but(records.ToolkitOptions));
  assert.deepEqual(keys("Hooks"), but(records.HookOptions));
  assert.deepEqual(keys("Tool"), but(records.ToolSpec));
  assert.deepEqual(keys("RunOptions"), but(operations["client.run"].args, "client", "prompt", "id"));
  assert.deepEqual(keys("ListOptions"), but(operations["mcp.list"].args, "mcpConfig", "mcpConfigText"));
  assert.deepEqual(but(keys("EngineOptions"), "logLevel"), but(records.EngineOptions, "hostCalls"));
});

test("every operation is called and every kind of host call is served", () => {
  const { hostCalls, operations } = JSON.parse(text("../api-manifest.json"));
  // The three closes share one line.
  const api = `${text("lib/api.js")} toolkit.close client.close conversation.close `;
  for (const operation of Object.keys(operations)) assert.match(api, new RegExp(`\\b${operation.replace(".", "\\.")}\\b`));
  const { SERVE, NOTIFY } = require("../lib/host.js");
  assert.deepEqual([...Object.keys(SERVE), ...Object.keys(NOTIFY)].sort(), [...hostCalls].sort());
});

test("no declaration says any", () => {
  assert.equal(/\bany\b/.test(declarations.replace(/\/\*\*[^]*?\*\/|\/\/.*/g, "")), false);
});

test("a strict program compiles, and its mistakes do not", () => {
  const tsc = spawnSync(process.execPath, [require.resolve("typescript/package.json").replace("package.json", "bin/tsc"), "-p", "types"], {
    cwd: new URL(".", import.meta.url),
    encoding: "utf8",
  });
  assert.equal(tsc.stdout + tsc.stderr, "");
  assert.equal(tsc.status, 0);
});
