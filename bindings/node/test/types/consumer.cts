// The same types for CommonJS.
import toolspan = require("toolspan");

const client: toolspan.Client = toolspan.createClient({ baseUrl: "", style: "openai", model: "m" });
client.run("hi").then(({ text }) => text.length, (error: unknown) => error instanceof toolspan.TimeoutError);
