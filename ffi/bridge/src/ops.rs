//! Arguments and results of the operations. The bindings' typed models are generated from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::options::{ToolSpec, ToolkitOptions};
use toolspan::tool::ToolInfo;

/// No arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// An empty result, `{}`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Empty {}

/// Result of `version`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Version {
    /// Semantic version of the library.
    pub version: &'static str,
}

/// Result of `counters`. All are 0 when everything was closed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Toolkits built and not closed.
    pub open_toolkits: usize,
    /// MCP servers with a live session.
    pub connected_servers: usize,
    /// Clients created and not closed.
    pub open_clients: usize,
    /// Running operations, without this one.
    pub operations: usize,
    /// Streams that have not ended.
    pub open_streams: usize,
}

/// A toolkit, by number.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitNumber {
    /// Number of the toolkit.
    pub toolkit: u64,
}

/// Arguments of `toolkit.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitCreate {
    /// Options.
    #[serde(default)]
    pub options: ToolkitOptions,
}

/// Result of `toolkit.tools`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tools {
    /// The tools, in order.
    pub tools: Vec<ToolInfo>,
}

/// Arguments of `toolkit.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitGet {
    /// Number of the toolkit.
    pub toolkit: u64,
    /// Final name of the tool.
    pub name: String,
}

/// Result of `toolkit.get`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MaybeTool {
    /// The tool, or null when there is none of that name.
    pub tool: Option<ToolInfo>,
}

/// Arguments of `toolkit.register`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitRegister {
    /// Number of the toolkit.
    pub toolkit: u64,
    /// The tool.
    pub tool: ToolSpec,
}

/// Result of `toolkit.register`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Registered {
    /// False when the name was taken; the first tool keeps it.
    pub registered: bool,
}

/// Arguments of `toolkit.execute`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolkitExecute {
    /// Number of the toolkit.
    pub toolkit: u64,
    /// Final name of the tool.
    pub name: String,
    /// The arguments: an object, or any of the shapes of SPEC 4.4. Default: `{}`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// Budget of the call, ms. Default: the tool's own.
    pub timeout_ms: Option<u64>,
}
