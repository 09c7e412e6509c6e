//! The one error type and the closed list of its codes (SPEC 8).
//!
//! A code says what a program can do about a failure; the message says what a person can do. Nothing outside this
//! file adds a code, and nobody parses a message: the languages' exception classes and constants and the table in
//! `SPEC.md` are generated from [`ErrorCode::ALL`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $retryable:literal;)+) => {
        /// What went wrong, as a closed list. The text form is stable and equal in every language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $text)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the table in `SPEC.md`.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant),+];

            /// The stable text of the code, e.g. `invalid_config`.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text),+ }
            }

            /// Whether trying the same thing again can help, unless the error itself says otherwise.
            pub const fn retryable(self) -> bool {
                match self { $(ErrorCode::$variant => $retryable),+ }
            }

            /// One line for documentation: what the code means.
            pub const fn describe(self) -> &'static str {
                match self { $(ErrorCode::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

codes! {
    /// An argument of a call is missing, unknown or of the wrong shape; `path` names it.
    InvalidArgument = "invalid_argument", false;
    /// A configuration or an option is wrong; `path` names it.
    InvalidConfig = "invalid_config", false;
    /// A toolkit, client, stream, file or server of that name or number does not exist.
    NotFound = "not_found", false;
    /// The caller cancelled.
    Cancelled = "cancelled", false;
    /// A deadline or a budget of time ran out.
    Timeout = "timeout", true;
    /// The toolkit, client or engine was closed.
    Closed = "closed", false;
    /// The process was forked after the engine started; create a new engine in the child.
    Forked = "forked", false;
    /// An MCP server marked `required` could not be used; `server` names it, the cause says why.
    RequiredServerFailed = "required_server_failed", false;
    /// A peer could not be reached, or closed the connection before it answered.
    ConnectionFailed = "connection_failed", true;
    /// A child process could not be started, or ended.
    ProcessFailed = "process_failed", false;
    /// A peer wants other credentials (HTTP 401 or 403).
    Unauthorized = "unauthorized", false;
    /// The provider refused the request (another HTTP 4xx, or an error event that says so).
    ProviderRejected = "provider_rejected", false;
    /// The provider asks to wait longer than allowed, or retries ran out on HTTP 429; see `retryAfterMs`.
    RateLimited = "rate_limited", true;
    /// The provider failed or is overloaded (HTTP 5xx, or an error event that says so) and retries ran out.
    ProviderUnavailable = "provider_unavailable", true;
    /// An answer is not what the protocol promises.
    InvalidResponse = "invalid_response", false;
    /// A stream ended without its terminal marker.
    StreamInterrupted = "stream_interrupted", true;
    /// Something from outside is larger or deeper than allowed.
    LimitExceeded = "limit_exceeded", false;
    /// An MCP server answered with an error, or broke the protocol.
    McpError = "mcp_error", false;
    /// A function of the host failed; the host has the original.
    HostFailed = "host_failed", false;
    /// A conversation store could not read or write.
    StoreFailed = "store_failed", true;
    /// The stored conversation was changed by somebody else meanwhile.
    StoreConflict = "store_conflict", true;
    /// What was asked is not possible with this provider, style or platform.
    Unsupported = "unsupported", false;
    /// Library and binding do not fit together.
    AbiMismatch = "abi_mismatch", false;
    /// A defect of this library.
    Internal = "internal", false;
    /// A panic inside this library, caught at the boundary.
    InternalPanic = "internal_panic", false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One link of the chain that led to an error, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What that layer said. Never contains a secret.
    pub message: String,
    /// The code, where the layer is ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

/// What every failure looks like in every language (SPEC 8). Absent keys mean "does not apply".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorRecord {
    /// The code.
    pub code: ErrorCode,
    /// What happened and what to do about it, without the code. Never contains a secret.
    pub message: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// How long to wait before that, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// HTTP status of the answer that caused this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Style of the endpoint, `openai` or `anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Id of the MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where in the input, e.g. `mcpServers.search.headers.Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The provider's own error object, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// Number of the host call whose failure this is; the host finds its own exception under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_call: Option<u64>,
    /// The chain below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<Cause>,
}

/// An error: an [`ErrorRecord`] behind one pointer, so that results stay small.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<ErrorRecord>);

impl Error {
    /// An error with this code and message and nothing else.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error(Box::new(ErrorRecord {
            code,
            message: message.into(),
            retryable: code.retryable(),
            retry_after_ms: None,
            http_status: None,
            provider: None,
            server: None,
            tool: None,
            path: None,
            details: None,
            host_call: None,
            cause: Vec::new(),
        }))
    }

    /// `cancelled`, as everywhere.
    pub fn cancelled() -> Self {
        Error::new(ErrorCode::Cancelled, "the caller cancelled")
    }

    /// `timeout` of the named thing after this long.
    pub fn timeout(what: &str, after: Duration) -> Self {
        Error::new(
            ErrorCode::Timeout,
            format!("{what} took longer than {} ms", after.as_millis()),
        )
    }

    /// `invalid_config` at a path.
    pub fn config(path: impl Into<String>, message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InvalidConfig, message).at(path)
    }

    /// `invalid_argument` at a path.
    pub fn argument(path: impl Into<String>, message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InvalidArgument, message).at(path)
    }

    /// Sets where in the input the error is.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.0.path = Some(path.into());
        self
    }

    /// Names what the whole error is about, e.g. a file, before its message.
    #[must_use]
    pub fn inside(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Sets the MCP server.
    #[must_use]
    pub fn server(mut self, id: impl Into<String>) -> Self {
        self.0.server = Some(id.into());
        self
    }

    /// Sets the tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.0.tool = Some(name.into());
        self
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn http_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// Sets the style of the endpoint.
    #[must_use]
    pub fn provider(mut self, style: impl Into<String>) -> Self {
        self.0.provider = Some(style.into());
        self
    }

    /// Sets whether trying again can help.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Sets how long to wait before trying again.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the provider's error object. The caller has redacted it.
    #[must_use]
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Sets the host call whose failure this is.
    #[must_use]
    pub fn host_call(mut self, call: u64) -> Self {
        self.0.host_call = Some(call);
        self
    }

    /// Puts another error below this one, with its own chain.
    #[must_use]
    pub fn because(mut self, cause: &Error) -> Self {
        self.0.cause.push(Cause {
            message: cause.0.message.clone(),
            code: Some(cause.0.code),
        });
        self.0.cause.extend(cause.0.cause.iter().cloned());
        if self.0.host_call.is_none() {
            self.0.host_call = cause.0.host_call;
        }
        self
    }

    /// Puts a foreign error below this one, with its sources. The caller knows that its text holds no secret.
    #[must_use]
    pub fn because_of(mut self, cause: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(cause);
        while let Some(link) = next {
            self.0.cause.push(Cause {
                message: link.to_string(),
                code: None,
            });
            next = link.source();
        }
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The record, as every language sees it.
    pub fn record(&self) -> &ErrorRecord {
        &self.0
    }

    /// The record by value.
    pub fn into_record(self) -> ErrorRecord {
        *self.0
    }
}

impl From<ErrorRecord> for Error {
    fn from(record: ErrorRecord) -> Self {
        Error(Box::new(record))
    }
}

impl fmt::Display for Error {
    /// `code: path: message`, what an exception's text is in every language.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.0.code)?;
        if let Some(path) = &self.0.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
