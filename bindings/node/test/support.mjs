// The peers every test talks to, and programs of their own for what can only be seen from outside.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../../target", import.meta.url));
const FIXTURES = process.env.TOOLSPAN_FIXTURES ?? `${TARGET}/debug/toolspan-fixtures`;

/** The fixtures' control: scenarios are made, asked, waited for, and dropped with the test. */
export async function fixtures() {
  const child = spawn(FIXTURES, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child, "spawn").catch((error) => {
    throw new Error(`${error.message}; build it with \`cargo build -p toolspan-fixtures\``);
  });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { control } = JSON.parse(line);

  async function ask(method, path, body) {
    const answer = await fetch(control + path, { method, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`fixtures: ${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  return {
    /** A scenario that lives as long as the test `t`. */
    async scenario(t, script) {
      const { id, ...servers } = await ask("POST", "/scenarios", script);
      t.after(() => ask("DELETE", `/scenarios/${id}`));
      return {
        ...servers,
        seen: () => ask("GET", `/scenarios/${id}/seen`),
        wait: (until) => ask("POST", `/scenarios/${id}/wait`, { until }),
        open: (gate) => ask("POST", `/scenarios/${id}/gates/${gate}`),
      };
    },
    async close() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

/** Client options for an upstream of a scenario. */
export function upstream(scenario, name = "main", style = "openai") {
  return { baseUrl: scenario.llm[name].baseUrl, style, model: "m", apiKey: "k" };
}

/** An upstream that asks for one call of `name` and then says `text`. */
export function oneCall(name, args = {}, text = "done") {
  return { main: { style: "openai", replies: [{ calls: [{ id: "c1", name, args }] }, { text }] } };
}

const PRELUDE = `
  import * as toolspan from ${JSON.stringify(new URL("../index.mjs", import.meta.url).href)};
  const { createToolkit, createClient, defineTool, Engine } = toolspan;
  const say = (text) => process.stdout.write(text + "\\n");
`;

/** Starts a program of its own; its text is the body of a module that has imported the package. */
export function start(program, { flags = [], env = {} } = {}) {
  const child = spawn(process.execPath, [...flags, "--input-type=module", "-e", PRELUDE + program], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const result = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
  const ended = once(child, "close").then(([code, signal]) => ({ ...result, code, signal }));
  return {
    ended,
    kill: (signal) => child.kill(signal),
    /** Resolves once the program has said this line. */
    said: (line) =>
      new Promise((resolve, reject) => {
        const look = () => result.stdout.split("\n").includes(line) && resolve();
        child.stdout.on("data", look);
        ended.then((end) => reject(new Error(`the program ended first: ${JSON.stringify(end)}`)));
        look();
      }),
  };
}

/** Runs such a program to its end. */
export function run(program, options) {
  return start(program, options).ended;
}

/** How a program ends that has nothing to complain about. */
export const CLEAN = { stderr: "", code: 0, signal: null };
