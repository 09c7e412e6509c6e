//! Options of a client after validation, and every default (SPEC 7.1).

use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::hooks::{BodyTransform, Hooks, OnError};
use crate::http::{HttpTransport, Url};
use crate::json::Json;
use crate::log::Logger;
use crate::metrics::MetricSink;
use crate::store::ConversationStore;
use crate::style::Style;

/// Defaults, in this one place. Bindings hold none.
pub mod defaults {
    use std::time::Duration;

    /// `maxTurns`
    pub const MAX_TURNS: u32 = 10;
    /// `maxToolConcurrency`
    pub const MAX_TOOL_CONCURRENCY: usize = 16;
    /// `maxToolOutputBytes`
    pub const MAX_TOOL_OUTPUT_BYTES: usize = 1024 * 1024;
    /// `retries`
    pub const RETRIES: u32 = 2;
    /// `retryBaseMs`
    pub const RETRY_BASE: Duration = Duration::from_millis(500);
    /// `maxRetryDelayMs`
    pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
    /// `firstByteTimeoutMs`
    pub const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(300);
    /// `idleTimeoutMs`
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
    /// `max_tokens` of an Anthropic-style body, which must have one.
    pub const ANTHROPIC_MAX_TOKENS: u32 = 4096;
}

/// When a failed request is tried again (SPEC 7.6).
#[derive(Clone, Debug)]
pub(crate) struct RetryPolicy {
    pub retries: u32,
    pub base: Duration,
    pub max_delay: Duration,
    /// Beside the built-in ones.
    pub statuses: BTreeSet<u16>,
}

/// What a client knows for its whole life.
pub(crate) struct Options {
    /// Where requests go, complete.
    pub endpoint: Url,
    pub style: Style,
    pub model: String,
    /// In the order to send, the credentials and the caller's headers included.
    pub headers: Vec<(String, String)>,
    /// Whether requests certainly carry no credentials.
    pub anonymous: bool,
    /// Texts that must never appear in an error.
    pub secrets: Vec<String>,
    pub system_prompt: Option<String>,
    pub max_turns: u32,
    pub max_tool_concurrency: usize,
    pub max_tool_output_bytes: usize,
    pub retry: RetryPolicy,
    pub timeout: Option<Duration>,
    pub first_byte_timeout: Duration,
    pub idle_timeout: Duration,
    pub request_params: IndexMap<String, Json>,
    pub body_transform: Option<BodyTransform>,
    pub hooks: Hooks,
    pub on_error: Option<OnError>,
    pub transport: Arc<dyn HttpTransport>,
    pub store: Arc<dyn ConversationStore>,
    pub on_metric: Option<MetricSink>,
    pub logger: Logger,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Client;

    /// Options of a client that is never run.
    pub(crate) fn options(style: Style) -> Options {
        let client = Client::builder("http://127.0.0.1:9", style, "m")
            .api_key("sk-secret-key")
            .build()
            .unwrap();
        std::sync::Arc::into_inner(client.0).unwrap().options
    }
}
