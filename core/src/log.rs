//! Log records handed to the host (SPEC 10). The library itself writes nowhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands where a secret stood, in records and in errors.
pub(crate) const REDACTED: &str = "«redacted»";

/// How serious a record is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for somebody who looks for a fault.
    Debug,
    /// What happens in normal operation.
    Info,
    /// Something was ignored, repaired or dropped.
    Warn,
    /// Something failed and nobody else is told.
    Error,
}

/// One record. Neither the message nor a field ever holds a secret, a header value or base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    /// Level.
    pub level: LogLevel,
    /// The part of the library, e.g. `mcp`, `toolkit`, `client`.
    pub target: String,
    /// One line for a person.
    pub message: String,
    /// What the line is about, for a program: server ids, tool names, counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, serde_json::Value>,
}

/// Where records go. Called from the library's tasks; must not block.
pub type LogSink = Arc<dyn Fn(LogRecord) + Send + Sync>;

/// A handle that parts of the library log through. Without a sink no message is written.
#[derive(Clone, Default)]
pub struct Logger {
    sink: Option<(LogSink, LogLevel)>,
}

impl Logger {
    /// Hands records of at least this level to the sink.
    pub fn new(sink: LogSink, least: LogLevel) -> Self {
        Logger {
            sink: Some((sink, least)),
        }
    }

    /// Whether a record of this level would reach anybody.
    pub fn enabled(&self, level: LogLevel) -> bool {
        self.sink.as_ref().is_some_and(|(_, least)| level >= *least)
    }

    /// Logs one record; `fields` are key-value pairs.
    pub fn log<const N: usize>(
        &self,
        level: LogLevel,
        target: &str,
        message: impl FnOnce() -> String,
        fields: [(&str, serde_json::Value); N],
    ) {
        if let Some((sink, least)) = &self.sink
            && level >= *least
        {
            let fields = fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
            sink(LogRecord {
                level,
                target: target.to_owned(),
                message: message(),
                fields,
            });
        }
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger")
            .field("least", &self.sink.as_ref().map(|s| s.1))
            .finish()
    }
}
