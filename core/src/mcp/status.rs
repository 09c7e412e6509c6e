//! What became of each server (SPEC 3.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorRecord};

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Its tools can be called.
    Connected,
    /// The configuration switches it off; it was not contacted.
    Disabled,
    /// It cannot be used; `reason` and `error` say why.
    Failed,
    /// Another server of the same `dedupKey` is used instead, `reason` names it; this one was not contacted.
    Deduplicated,
}

/// Status of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// Where it stands.
    pub state: ServerState,
    /// For a failed server the phase and what happened, e.g. `initialize: took longer than 30000 ms`; for a deduplicated
    /// one the id that is used instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a failed server failed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// How many tools a connected server listed, before filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
}

impl ServerStatus {
    pub(super) fn connected(tools: usize) -> Self {
        ServerStatus {
            tools: Some(tools),
            ..ServerStatus::of(ServerState::Connected)
        }
    }

    pub(super) fn disabled() -> Self {
        ServerStatus::of(ServerState::Disabled)
    }

    pub(super) fn deduplicated(kept: &str) -> Self {
        ServerStatus {
            reason: Some(kept.to_owned()),
            ..ServerStatus::of(ServerState::Deduplicated)
        }
    }

    pub(super) fn failed(error: &Error) -> Self {
        let record = error.record();
        let reason = match &record.path {
            Some(path) => format!("{path}: {}", record.message),
            None => record.message.clone(),
        };
        ServerStatus {
            reason: Some(reason),
            error: Some(record.clone()),
            ..ServerStatus::of(ServerState::Failed)
        }
    }

    fn of(state: ServerState) -> Self {
        ServerStatus {
            state,
            reason: None,
            error: None,
            tools: None,
        }
    }
}
