// A worker that is busy in a call when it is terminated.
import { parentPort } from "node:worker_threads";
import { createToolkit, defineTool } from "../index.mjs";

const input = { type: "object", properties: {} };
const toolkit = await createToolkit({
  tools: [
    defineTool({ name: "quick", description: "d", input, run: () => "q" }),
    defineTool({ name: "never", description: "d", input, run: () => (parentPort.postMessage("busy"), new Promise(() => {})) }),
  ],
});
const poke = () => toolkit.execute("quick").then(poke, () => {});
poke();
await toolkit.execute("never");
