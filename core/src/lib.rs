//! A tool-using LLM agent in one core.
//!
//! A [`Toolkit`] collects tools from MCP servers and from the program; a [`Client`] runs a model with them. The
//! contract, key by key, is `SPEC.md` at the root of the repository; module documentation names its sections.
//!
//! The crate prints nothing, keeps no global state, and does its work on the tokio runtime of the caller.
#![forbid(unsafe_code)]

pub mod aside;
pub mod client;
mod clock;
pub mod counters;
pub mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod json;
pub mod log;
pub mod mcp;
pub mod metrics;
pub mod schema;
mod sse;
pub mod store;
pub mod style;
pub mod tool;
pub mod toolkit;

pub use client::{
    Client, ClientBuilder, Conversation, Event, EventStream, Limit, Prompt, RunResult, RunStatus,
    ToolCallRecord, Usage,
};
pub use counters::Counters;
pub use error::{Error, ErrorCode, Result};
pub use json::Json;
pub use log::{LogLevel, LogRecord};
pub use mcp::{McpConfig, ServerState, ServerStatus};
pub use metrics::{MetricEvent, Metrics};
pub use schema::Provider;
pub use store::{ConversationStore, FileStore, MemoryStore, Transcript};
pub use style::Style;
pub use tool::{Arguments, ContentPart, Hints, Source, Tool, ToolContext, ToolResult};
pub use toolkit::{McpInput, Toolkit, ToolkitBuilder};

/// Version of the crate, as sent to MCP servers and returned by every binding.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name under which the library presents itself to servers and in metrics.
pub const NAME: &str = "toolspan";
