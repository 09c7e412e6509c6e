//! Tools of MCP servers (SPEC 3).
//!
//! Read `config` (what was written), `plan` (what follows from it, pure), `source` (all servers of a toolkit), `session`
//! (one server, over several connections if need be), then the transports.

mod call;
mod codec;
mod config;
mod connect;
mod connection;
mod expand;
mod fields;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handler;
mod http;
mod inventory;
mod lines;
mod list;
mod plan;
mod process;
mod reached;
mod result;
mod revision;
mod secrets;
mod session;
mod source;
mod sse;
mod stale;
mod status;
mod stdio;

pub use config::{DEFAULT_TIMEOUT, Expose, McpConfig};
pub use inventory::{Inventory, InventoryTool, ListOptions, list_mcp_tools};
pub(crate) use source::{LoadOptions, LoadedServer, McpSource, ServerTool};
pub use status::{ServerState, ServerStatus};
