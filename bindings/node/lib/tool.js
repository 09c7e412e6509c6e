"use strict";

// Tools of the program. The schema of the arguments comes from JSON Schema or from a validator of the Standard Schema family.

const DIALECT = { target: "draft-2020-12" };

/**
 * Makes a tool of a function: `{name, description, inputSchema, hints, handler}` (SPEC 6).
 * @param {import("../index.js").ToolDefinition<import("../index.js").ToolInput>} definition
 */
function defineTool({ name, description, input, inputSchema, hints, run }) {
  if (typeof run !== "function") throw new TypeError(`tool ${name}: run is a function of the arguments`);
  const standard = input?.["~standard"];
  return Object.freeze({
    name,
    description,
    inputSchema: inputSchema ?? (standard ? jsonSchema(name, input, standard) : input),
    hints,
    handler: standard ? async (args, context) => run(await validated(standard, args), context) : run,
  });
}

/** The JSON Schema of what goes into a validator. */
function jsonSchema(name, input, standard) {
  const schema =
    standard.jsonSchema?.input(DIALECT) ?? input.toJSONSchema?.(DIALECT) ?? input.toJsonSchema?.(DIALECT);
  if (schema === undefined) {
    throw new TypeError(
      `tool ${name}: ${standard.vendor} schemas do not describe themselves as JSON Schema; give inputSchema as well`,
    );
  }
  const { $schema: _dialect, ...rest } = schema;
  return rest;
}

/** The arguments as the validator gives them on; what is wrong with them is said to the model. */
async function validated(standard, args) {
  const { issues, value } = await standard.validate(args);
  if (!issues) return value;
  throw new TypeError(`Invalid arguments. ${issues.map(line).join("; ")}`);
}

function line({ path, message }) {
  const at = path?.map((segment) => String(segment?.key ?? segment)).join(".");
  return at ? `${at}: ${message}` : message;
}

module.exports = { defineTool };
