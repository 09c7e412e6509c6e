//! What a call gives back (SPEC 2, 6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ContentPart;

/// Result of one call. An expected failure is `is_error`, for the model to act on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolResult {
    /// Text for the model; may be empty.
    pub output: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Content that is not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ContentPart>,
    /// For the program, never sent to the model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl ToolResult {
    /// A success with this text.
    pub fn text(output: impl Into<String>) -> Self {
        ToolResult {
            output: output.into(),
            ..ToolResult::default()
        }
    }

    /// A failure with this text.
    pub fn error(output: impl Into<String>) -> Self {
        ToolResult {
            output: output.into(),
            is_error: true,
            ..ToolResult::default()
        }
    }
}

/// What a native tool may return: text, a [`ToolResult`], JSON (its compact text), or a `Result` of one of these.
pub trait IntoToolResult {
    /// The result of the call.
    fn into_tool_result(self) -> ToolResult;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> ToolResult {
        self
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::default()
    }
}

impl IntoToolResult for Value {
    /// Text as it stands; null as no text; anything else as compact JSON.
    fn into_tool_result(self) -> ToolResult {
        match self {
            Value::String(text) => ToolResult::text(text),
            Value::Null => ToolResult::default(),
            other => ToolResult::text(other.to_string()),
        }
    }
}

impl<T: IntoToolResult, E: std::fmt::Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> ToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => ToolResult::error(error.to_string()),
        }
    }
}
