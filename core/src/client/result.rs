//! What a run gives back (SPEC 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::Json;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The model answered.
    Done,
    /// A limit ended the run; see [`RunResult::limit`].
    Incomplete,
}

/// What ended an incomplete run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// `maxTurns` turns were used up.
    MaxTurns,
    /// The model's answer was cut off by its output limit.
    MaxTokens,
    /// `timeoutMs` ran out.
    Timeout,
}

/// Tokens. Providers that report none give zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All input, cached input included.
    pub prompt_tokens: u64,
    /// Output, reasoning included.
    pub completion_tokens: u64,
    /// The provider's total, else the sum of both.
    pub total_tokens: u64,
    /// Input served from the provider's cache; absent when the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input written to the provider's cache; absent when the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

impl Usage {
    pub(crate) fn add(&mut self, other: Usage) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
    }
}

/// One executed call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRecord {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments the tool got, a JSON object.
    #[schemars(with = "Map<String, Value>")]
    pub args: Json,
    /// Text the model got.
    pub output: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// For the program, never sent to the model.
    // `default` is for the JSON Schema: what may be absent is not required.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Text of the last answer; may be empty.
    pub text: String,
    /// The whole transcript, history and prompt included, in the dialect of the client, message by message as it was
    /// received or sent.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub messages: Vec<Json>,
    /// Executed calls in call order.
    pub tool_calls: Vec<ToolCallRecord>,
    /// Turns used.
    pub turns: u32,
    /// Tokens of all turns.
    pub usage: Usage,
    /// The model of the last request.
    pub model: String,
    /// How the run ended.
    pub status: RunStatus,
    /// What ended an incomplete run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Why the model refused to answer, in its words, possibly none. Absent when it did not refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The conversation this run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}
