//! Options as the host writes them. Defaults are the core's: what is absent here is not set there.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use toolspan::{Hints, Json, Style};

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
    /// MCP servers: a file, or the document.
    pub mcp_config: Option<McpConfig>,
    /// MCP servers: the text of a document. Not together with `mcpConfig`.
    pub mcp_config_text: Option<String>,
    /// The program's own tools, after those of the servers.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// Final names of tools to leave out.
    #[serde(default)]
    pub disable_tools: Vec<String>,
    /// Whether arguments are checked against the tool's schema before it runs. Default: true.
    pub validate_arguments: Option<bool>,
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

/// `mcpConfig`: the path of an `mcp.json`, or the document itself (SPEC 3.1).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the path of a file, or an object")]
pub enum McpConfig {
    /// The path of a file.
    Path(String),
    /// The document.
    Document(Map<String, Value>),
}

/// Options of a client (SPEC 7.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientOptions {
    /// The endpoint, `http` or `https`.
    #[schemars(required)]
    pub base_url: Option<String>,
    /// The dialect it speaks.
    #[schemars(required)]
    pub style: Option<Style>,
    /// The model, sent as it stands.
    #[schemars(required)]
    pub model: Option<String>,
    /// The key.
    pub api_key: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Extra headers; they win over ours.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub headers: IndexMap<String, String>,
    /// Default: none.
    pub system_prompt: Option<String>,
    /// Turns of a run, at least 1.
    pub max_turns: Option<u32>,
    /// Calls of one turn that run at the same time, at least 1.
    pub max_tool_concurrency: Option<usize>,
    /// Longer text of a tool is cut, bytes.
    pub max_tool_output_bytes: Option<usize>,
    /// Further attempts of one request.
    pub retries: Option<u32>,
    /// Delay before the first further attempt, ms; it doubles each time.
    pub retry_base_ms: Option<u64>,
    /// Longest delay a provider may ask for, ms.
    pub max_retry_delay_ms: Option<u64>,
    /// HTTP statuses to retry beside the built-in ones.
    #[serde(default)]
    pub retryable_statuses: Vec<u16>,
    /// Deadline of a run, ms. Default: none.
    pub timeout_ms: Option<u64>,
    /// Silence allowed before an answer begins, ms.
    pub first_byte_timeout_ms: Option<u64>,
    /// Silence allowed between two pieces of an answer, ms.
    pub idle_timeout_ms: Option<u64>,
    /// Merged into every body after our keys, in this order.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    pub request_params: IndexMap<String, Json>,
    /// Sees and may replace the whole body, last. Kind `bodyTransform`.
    pub body_transform: Option<Handler>,
    /// Steps into a run.
    #[serde(default)]
    pub hooks: HookOptions,
    /// Decides about failed requests. Kind `onError`.
    pub on_error: Option<Handler>,
    /// Sends the requests in our place. Kinds `http.send`, `http.read`, `http.close`.
    pub http_client: Option<Handler>,
    /// Where conversations are kept. Default: `memory`.
    pub store: Option<StoreOption>,
    /// Receives metric events. Kind `metric`.
    pub on_metric: Option<Handler>,
}

/// Functions of the host that see every turn and every call (SPEC 7.4).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookOptions {
    /// Before a request. Kind `hook.beforeLLM`.
    #[serde(rename = "beforeLLM")]
    pub before_llm: Option<Handler>,
    /// After an answer. Kind `hook.afterLLM`.
    #[serde(rename = "afterLLM")]
    pub after_llm: Option<Handler>,
    /// Before a call. Kind `hook.beforeTool`.
    #[serde(rename = "beforeTool")]
    pub before_tool: Option<Handler>,
    /// After a call. Kind `hook.afterTool`.
    #[serde(rename = "afterTool")]
    pub after_tool: Option<Handler>,
}

/// Where conversations are kept (SPEC 7.7).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected \"memory\", \"file:DIR\" or {\"handler\": N}"
)]
pub enum StoreOption {
    /// `memory` or `file:DIR`.
    Named(String),
    /// The host's own. Kinds `store.get`, `store.save`.
    Host(Handler),
}
