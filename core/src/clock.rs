//! Moments in the future, however far a caller wants them, and limits of time.

use std::time::Duration;
use tokio::time::Instant;

use crate::error::{Error, Result};

/// Refuses a limit of nothing: it would not be none, and whether anything were in time would be chance.
pub(crate) fn positive(
    limit: Option<Duration>,
    refuse: impl FnOnce(&'static str) -> Error,
) -> Result<()> {
    match limit {
        Some(Duration::ZERO) => Err(refuse("must be positive")),
        _ => Ok(()),
    }
}

/// The moment `wait` after `from`; a far one where the clock has none.
pub(crate) fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait)
        .unwrap_or_else(|| from + Duration::from_secs(60 * 60 * 24 * 365))
}
