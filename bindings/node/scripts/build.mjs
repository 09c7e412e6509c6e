// Builds the native half with plain cargo and puts it beside the package. `--release` for what users get.
import { spawnSync } from "node:child_process";
import { copyFileSync, renameSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cargo = spawnSync(
  "cargo",
  ["build", "-p", "toolspan-node", "--message-format=json-render-diagnostics", ...process.argv.slice(2)],
  { cwd: new URL("..", import.meta.url), stdio: ["ignore", "pipe", "inherit"], encoding: "utf8", maxBuffer: 2 ** 28 },
);
if (cargo.status !== 0) process.exit(cargo.status ?? 1);

const artifacts = cargo.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
const built = artifacts.find((a) => a.reason === "compiler-artifact" && a.target.name === "toolspan_node");
const library = built.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));

// A running program may have the old one mapped: replaced by name, never overwritten.
const target = fileURLToPath(new URL("../toolspan.node", import.meta.url));
copyFileSync(library, `${target}.new`);
renameSync(`${target}.new`, target);
console.log(`${library} -> ${target}`);
