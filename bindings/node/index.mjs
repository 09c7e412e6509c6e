// The same objects as `require("toolspan")`: one engine, and `instanceof` holds whichever way they were loaded.
import toolspan from "./index.js";

export const {
  Client,
  Conversation,
  Engine,
  Toolkit,
  ToolspanError,
  createClient,
  createToolkit,
  defineTool,
  listMcpTools,
  version,
} = toolspan;
export * from "./errors.mjs";
