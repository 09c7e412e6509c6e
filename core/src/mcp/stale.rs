//! Whether the list of a server's tools is still the one it has (SPEC 3.7).

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what the server said instead of keeping a flag: a list that nobody waited for to its end has told nothing, and what is said
/// while a list is under way concerns the next one.
#[derive(Default)]
pub(super) struct Stale {
    said: AtomicU64,
    heard: AtomicU64,
}

impl Stale {
    /// The server says that its tools are others now, or may be.
    pub fn set(&self) {
        self.said.fetch_add(1, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        self.said() != self.heard.load(Ordering::SeqCst)
    }

    /// How often the server has said so; for [`Stale::done`] after a list that began now.
    pub fn said(&self) -> u64 {
        self.said.load(Ordering::SeqCst)
    }

    pub fn done(&self, said: u64) {
        self.heard.store(said, Ordering::SeqCst);
    }
}
