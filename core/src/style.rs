//! Which protocol an endpoint speaks (SPEC 7.1 `style`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wire dialect of an endpoint, and of the messages that a client shows and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Style {
    /// Chat Completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
}

impl Style {
    /// The text used in options, errors and stored transcripts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Style::OpenAi => "openai",
            Style::Anthropic => "anthropic",
        }
    }
}

impl std::fmt::Display for Style {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
