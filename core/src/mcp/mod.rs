//! Tools of MCP servers (SPEC 3).
//!
//! Read `config` (what was written), `plan` (what follows from it, pure), `source` (all servers of a toolkit), `session`
//! (one server, over several connections if need be), then the transports.

#![allow(dead_code, reason = "the transports are being built")]

mod config;
mod connect;
mod expand;
mod fields;
mod inventory;
mod plan;
mod source;
mod status;

pub use config::{DEFAULT_TIMEOUT, Expose, McpConfig};
pub use inventory::{Inventory, InventoryTool, ListOptions, list_mcp_tools};
pub use plan::API_KEY_VARIABLES;
#[allow(unused_imports, reason = "used by the toolkit")]
pub(crate) use source::{LoadOptions, LoadedServer, McpSource, ServerTool};
pub use status::{ServerState, ServerStatus};
