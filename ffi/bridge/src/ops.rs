//! Arguments and results of the operations. The bindings' typed models are generated from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use std::collections::BTreeMap;

use crate::options::{ClientOptions, McpConfig, ToolSpec, ToolkitOptions};
use toolspan::tool::ToolInfo;
use toolspan::{ContentPart, Event, Json, Provider, ServerStatus, Transcript};

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

/// Result of `toolkit.status`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Servers {
    /// What became of each MCP server, by id.
    pub servers: BTreeMap<String, ServerStatus>,
}

/// Arguments of `toolkit.adapt`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitAdapt {
    /// Number of the toolkit.
    pub toolkit: u64,
    /// Whose declarations to make.
    pub provider: Provider,
}

/// Arguments of `mcp.list`: one of the two configurations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpList {
    /// A file, or the document.
    pub mcp_config: Option<McpConfig>,
    /// The text of a document.
    pub mcp_config_text: Option<String>,
    /// Deadline of the whole listing, ms. Default: none.
    pub timeout_ms: Option<u64>,
}

/// Arguments of `client.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCreate {
    /// Options.
    pub options: ClientOptions,
}

/// A client, by number.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientNumber {
    /// Number of the client.
    pub client: u64,
}

/// What the user says: text, or parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected text or a list of content parts")]
pub enum Prompt {
    /// Text.
    Text(String),
    /// Content parts.
    Parts(Vec<ContentPart>),
}

/// Arguments of `client.run`, `client.ask` and `client.stream`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// Number of the client.
    pub client: u64,
    /// Number of the toolkit. Default: no tools.
    pub toolkit: Option<u64>,
    /// What the user says; may be empty when there is a history.
    pub prompt: Prompt,
    /// Messages before the prompt, in the dialect of the client. Not together with `id`.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub history: Vec<Json>,
    /// The conversation. `client.ask` needs it, `client.run` has none.
    pub id: Option<String>,
    /// Replaces the client's.
    pub system_prompt: Option<String>,
    /// Replaces the client's.
    pub model: Option<String>,
    /// Replaces the client's.
    pub max_turns: Option<u32>,
    /// Replaces the client's, ms.
    pub timeout_ms: Option<u64>,
}

/// Arguments of `stream.next`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamNext {
    /// Id of the operation `client.stream`.
    pub stream: u64,
    /// Most events to take, at least 1. Default: 64.
    pub max_items: Option<usize>,
    /// How long to wait for the first, ms. Default: as long as it takes.
    pub max_wait_ms: Option<u64>,
}

/// Result of `stream.next`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StreamItems {
    /// The events; empty when none came in time, or when the stream failed.
    pub items: Vec<Event>,
    /// Whether these were the last. The terminal event of the stream's operation came before this result and says how
    /// the run ended. Pulling again gives the same.
    pub end: bool,
}

/// Result of `client.metrics`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MetricsText {
    /// Prometheus text format.
    pub text: String,
}

/// Arguments of `conversation.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationCreate {
    /// Number of the client.
    pub client: u64,
    /// Number of the toolkit. Default: no tools.
    pub toolkit: Option<u64>,
    /// The id in the store. Default: a new one.
    pub id: Option<String>,
}

/// A conversation, by number.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationNumber {
    /// Number of the conversation.
    pub conversation: u64,
}

/// Arguments of `conversation.send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationSend {
    /// Number of the conversation.
    pub conversation: u64,
    /// What the user says.
    pub prompt: Prompt,
}

/// Result of `conversation.messages`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Messages {
    /// What was said so far, in the dialect of the client.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub messages: Vec<Json>,
}

/// Arguments of `store.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreGet {
    /// Number of the client whose store it is.
    pub client: u64,
    /// Id of the conversation.
    pub id: String,
}

/// Result of `store.get`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MaybeTranscript {
    /// The stored envelope, or null when there is none.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub transcript: Option<Transcript>,
}

/// Arguments of `store.save`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreSave {
    /// Number of the client whose store it is.
    pub client: u64,
    /// Id of the conversation.
    pub id: String,
    /// A list of messages in the dialect of the client, or an envelope.
    #[schemars(with = "serde_json::Value")]
    pub messages: Box<RawValue>,
}
