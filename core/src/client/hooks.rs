//! The places where a program steps into a run (SPEC 7.1 `bodyTransform`, `onError`; 7.4 hooks).
//!
//! Every slot holds one async function. What it is given is serialisable, what it may answer is deserialisable, so a
//! binding forwards both as they are. An error it returns ends the run.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::future::Future;
use std::sync::Arc;

use crate::error::{ErrorCode, ErrorRecord, Result};
use crate::json::Json;
use crate::tool::{Hints, ToolResult};

/// An async function of the program, under the name of its option.
pub struct Hook<I, O> {
    name: &'static str,
    function: Function<I, O>,
}

type Function<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, Result<O>> + Send + Sync>;

impl<I, O> Hook<I, O> {
    pub(super) fn new<F, Fut>(name: &'static str, function: F) -> Self
    where
        F: Fn(I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        Hook {
            name,
            function: Arc::new(move |input| Box::pin(function(input))),
        }
    }

    /// Calls the function. What the program throws says which of its functions threw.
    pub(super) async fn call(&self, input: I) -> Result<O> {
        (self.function)(input).await.map_err(|error| {
            if error.code() != ErrorCode::HostFailed {
                return error;
            }
            let mut record = error.into_record();
            record.message = match record.message.trim() {
                "" => format!("{} failed", self.name),
                why => format!("{} failed: {why}", self.name),
            };
            record.into()
        })
    }
}

impl<I, O> Clone for Hook<I, O> {
    fn clone(&self) -> Self {
        Hook {
            name: self.name,
            function: self.function.clone(),
        }
    }
}

/// The four hooks of a run.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub before_llm: Option<Hook<BeforeLlm, LlmChange>>,
    pub after_llm: Option<Hook<AfterLlm, ()>>,
    pub before_tool: Option<Hook<BeforeTool, ToolChange>>,
    pub after_tool: Option<Hook<AfterTool, ResultChange>>,
}

/// Sees the whole request body and may replace all of it; `None` leaves it as it is.
pub type BodyTransform = Hook<Json, Option<Json>>;

/// Decides about a failed request.
pub type OnError = Hook<RequestFailure, ErrorDecision>;

/// What `beforeLLM` is given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeLlm {
    /// The transcript so far, in the dialect of the client.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub messages: Vec<Json>,
    /// The tool declarations in the provider's shape.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub tools: Vec<Json>,
    /// The model of this turn.
    pub model: String,
    /// The turn, from 1.
    pub turn: u32,
}

/// What `beforeLLM` may answer.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LlmChange {
    /// Replaces the transcript for good.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub messages: Option<Vec<Json>>,
    /// Replaces the declarations of this turn; an empty list sends none.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub tools: Option<Vec<Json>>,
    /// Replaces the model of this turn.
    pub model: Option<String>,
}

/// What `afterLLM` is given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AfterLlm {
    /// The provider's answer; of a stream `{"streamed":true,"message":...}` with the reassembled assistant message.
    #[schemars(with = "Map<String, Value>")]
    pub response: Json,
    /// The model of this turn.
    pub model: String,
    /// The turn, from 1.
    pub turn: u32,
}

/// What `beforeTool` is given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeTool {
    /// Name of the tool.
    pub name: String,
    /// The arguments, a JSON object.
    #[schemars(with = "Map<String, Value>")]
    pub args: Json,
    /// Id of the call.
    pub id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// What the tool says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
}

/// What `beforeTool` may answer. `result` wins over `args`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolChange {
    /// The result; the tool is not executed and `afterTool` not called.
    pub result: Option<ToolResult>,
    /// Other arguments for the tool.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub args: Option<Json>,
}

/// What `afterTool` is given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AfterTool {
    /// Name of the tool.
    pub name: String,
    /// The arguments the tool got.
    #[schemars(with = "Map<String, Value>")]
    pub args: Json,
    /// Its result.
    pub result: ToolResult,
    /// Id of the call.
    pub id: String,
    /// The turn, from 1.
    pub turn: u32,
}

/// What `afterTool` may answer.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResultChange {
    /// Replaces the result.
    pub result: Option<ToolResult>,
}

/// What `onError` is given. Not asked about a cancel, nor after a part of the answer was delivered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestFailure {
    /// The failure.
    pub error: ErrorRecord,
    /// Number of the failed attempt, from 0.
    pub attempt: u32,
    /// Whether it would be tried again without the hook.
    pub retryable: bool,
}

/// What `onError` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErrorDecision {
    /// No opinion: the rule of SPEC 7.6 decides.
    #[default]
    Default,
    /// Try again, as long as `retries` allows.
    Retry,
    /// Fail now.
    Fail,
}
