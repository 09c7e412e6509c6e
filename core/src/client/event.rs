//! What a run tells while it runs (SPEC 7.5).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::result::{RunResult, Usage};
use crate::error::{Error, Result};
use crate::json::Json;

/// One event of a stream. `done` is the last; an error takes its place when the run fails.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A piece of the answer.
    Text {
        /// To be appended; never empty.
        delta: String,
    },
    /// A piece of what a reasoning model thinks. Not part of the answer.
    Reasoning {
        /// To be appended; never empty.
        delta: String,
    },
    /// The model calls a tool; its arguments are complete.
    ToolCall {
        /// Id of the call, equal in `tool_result` and in the transcript.
        id: String,
        /// Name of the tool.
        name: String,
        /// The arguments, a JSON object.
        #[schemars(with = "Map<String, Value>")]
        args: Json,
    },
    /// A call has ended. Results come in the order of the calls.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Text for the model.
        output: String,
        /// Whether the call failed.
        #[serde(rename = "isError")]
        is_error: bool,
        /// For the program, never sent to the model.
        // `default` is for the JSON Schema: what may be absent is not required.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// What one answer of the model cost: once per turn that the provider reports it for, not a running total.
    Usage {
        /// Tokens of that turn.
        usage: Usage,
    },
    /// The run has ended.
    Done {
        /// The same that `run` returns.
        result: Box<RunResult>,
    },
}

/// Where the loop puts events. Without a reader an event costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Emitter(Option<mpsc::Sender<Result<Event>>>);

impl Emitter {
    pub(crate) fn to(reader: mpsc::Sender<Result<Event>>) -> Self {
        Emitter(Some(reader))
    }

    /// Whether somebody listens, so that the answer is asked for as a stream.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until the reader leaves.
    pub(crate) async fn left(&self) {
        match &self.0 {
            None => std::future::pending().await,
            Some(reader) => reader.closed().await,
        }
    }

    /// Hands an event over and waits for room. A reader that left cancels the run.
    pub(crate) async fn emit(&self, event: impl FnOnce() -> Event) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(reader) => reader
                .send(Ok(event()))
                .await
                .map_err(|_| Error::cancelled()),
        }
    }
}
