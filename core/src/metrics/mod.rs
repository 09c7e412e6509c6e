//! What happened, as events for the host and as Prometheus text (SPEC 10).

mod prometheus;

pub use prometheus::Metrics;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::error::ErrorCode;
use crate::tool::Source;

/// One thing that happened in a run. Times are whole milliseconds. Holds no text of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum MetricEvent {
    /// One request to the model, its retries included.
    Llm {
        /// The model as sent.
        model: String,
        /// How it ended.
        status: LlmStatus,
        /// From the request to the end of the answer.
        ms: u64,
        /// Input tokens, cached ones included; 0 when there was no answer.
        prompt_tokens: u64,
        /// Output tokens; 0 when there was no answer.
        completion_tokens: u64,
    },
    /// One tool call.
    Tool {
        /// The name the model used.
        tool: String,
        /// Where the tool comes from; absent when there is no tool of that name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Source>,
        /// Whether the result is an error.
        is_error: bool,
        /// How long it ran, hooks not included.
        ms: u64,
    },
    /// One run, also one that failed.
    Run {
        /// The model of the last turn.
        model: String,
        /// Requests to the model that were answered.
        turns: u32,
        /// Tool calls.
        tool_calls: u32,
        /// Tokens of all turns.
        total_tokens: u64,
        /// From start to end.
        ms: u64,
        /// Why it failed; absent when it gave a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorCode>,
    },
}

/// How a request to the model ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LlmStatus {
    /// With an answer.
    Ok,
    /// Without one.
    Error,
}

/// Where events go. Called from the library's tasks; must not block.
pub type MetricSink = Arc<dyn Fn(MetricEvent) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_names_its_type_and_omits_what_does_not_apply() {
        let tool = MetricEvent::Tool {
            tool: "nope".into(),
            source: None,
            is_error: true,
            ms: 0,
        };
        assert_eq!(
            serde_json::to_value(&tool).unwrap(),
            json!({"type": "tool", "tool": "nope", "isError": true, "ms": 0})
        );
        let run = MetricEvent::Run {
            model: "m".into(),
            turns: 1,
            tool_calls: 0,
            total_tokens: 7,
            ms: 12,
            error: Some(ErrorCode::Cancelled),
        };
        assert_eq!(
            serde_json::to_value(&run).unwrap(),
            json!({"type": "run", "model": "m", "turns": 1, "toolCalls": 0, "totalTokens": 7, "ms": 12, "error": "cancelled"})
        );
    }
}
