//! Moments in the future, however far a caller wants them.

use std::time::Duration;
use tokio::time::Instant;

/// The moment `wait` after `from`; a far one where the clock has none.
pub(crate) fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait)
        .unwrap_or_else(|| from + Duration::from_secs(60 * 60 * 24 * 365))
}
