//! Options as the host writes them. Defaults are the core's: what is absent here is not set there.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use toolspan::Hints;

/// Stands where an option takes a function of the host: the number under which the host finds it again.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handler {
    /// Chosen by the host; comes back as `handler` in every call of that function.
    pub handler: u64,
}

/// Options of a toolkit (SPEC 4.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolkitOptions {
    /// The program's own tools, after those of the servers.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// Final names of tools to leave out.
    #[serde(default)]
    pub disable_tools: Vec<String>,
    /// Deadline of the whole build, ms. Default: none.
    pub timeout_ms: Option<u64>,
}

/// A tool of the program (SPEC 6). Needs the kind `tool.execute`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSpec {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// For the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments. Default: an object without properties.
    #[serde(default)]
    pub input_schema: Map<String, Value>,
    /// Advisory hints.
    pub hints: Option<Hints>,
    /// The number under which the host finds the function.
    pub handler: u64,
}
