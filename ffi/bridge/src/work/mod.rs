//! The work behind the operations: reads arguments, calls the core, gives back results. Decides nothing.

pub(crate) mod client;
pub(crate) mod conversation;
mod host_hooks;
mod host_http;
mod host_store;
mod host_tool;
pub(crate) mod misc;
#[cfg(feature = "test-ops")]
pub(crate) mod test;
pub(crate) mod toolkit;
