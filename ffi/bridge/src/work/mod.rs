//! The work behind the operations: reads arguments, calls the core, gives back results. Decides nothing.

mod host_tool;
pub(crate) mod misc;
#[cfg(feature = "test-ops")]
pub(crate) mod test;
pub(crate) mod toolkit;
