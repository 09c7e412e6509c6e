//! What a tool knows about the call it serves.

use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Cancellation, budget and identity of one call.
#[derive(Clone, Debug, Default)]
pub struct ToolContext {
    /// Cancelled when the caller gave up or the run ended. A tool that starts work elsewhere must watch it.
    pub cancel: CancellationToken,
    /// Budget of the call. `None` leaves it to the tool.
    pub timeout: Option<Duration>,
    /// The id the model gave the call; absent outside a run.
    pub call_id: Option<String>,
}
