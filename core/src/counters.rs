//! How much is open (SPEC 4.3). Owned by whoever wants to know; toolkits are told where to count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Cells {
    toolkits: AtomicUsize,
    servers: AtomicUsize,
}

/// Open toolkits and connected MCP servers. Clones count in the same place.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Cells>);

impl Counters {
    /// Toolkits built and not yet closed or dropped.
    pub fn open_toolkits(&self) -> usize {
        self.0.toolkits.load(Ordering::Relaxed)
    }

    /// MCP servers with a live session.
    pub fn connected_servers(&self) -> usize {
        self.0.servers.load(Ordering::Relaxed)
    }

    pub(crate) fn toolkit(&self) -> Counted {
        Counted::new(self.clone(), |cells| &cells.toolkits)
    }

    pub(crate) fn server(&self) -> Counted {
        Counted::new(self.clone(), |cells| &cells.servers)
    }
}

/// One counted thing; dropping it counts down.
#[derive(Debug)]
pub(crate) struct Counted {
    counters: Counters,
    cell: fn(&Cells) -> &AtomicUsize,
}

impl Counted {
    fn new(counters: Counters, cell: fn(&Cells) -> &AtomicUsize) -> Self {
        cell(&counters.0).fetch_add(1, Ordering::Relaxed);
        Counted { counters, cell }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.cell)(&self.counters.0).fetch_sub(1, Ordering::Relaxed);
    }
}
