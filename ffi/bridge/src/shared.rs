//! What the tasks of one engine share: the queue, the host, and the open objects.

use std::sync::Arc;

use crate::event;
use crate::handles::{Kind, Table};
use crate::host::{Host, HostCallKind, Kinds};
use crate::operation::{self, Operations};
use crate::queue::Queue;
use toolspan::log::Logger;
use toolspan::toolkit::Toolkit;
use toolspan::{Counters, LogLevel};

pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) host: Arc<Host>,
    pub(crate) logger: Logger,
    pub(crate) counters: Counters,
    pub(crate) toolkits: Table<Toolkit>,
}

impl Shared {
    pub(crate) fn new(kinds: Kinds, log: Option<LogLevel>) -> Self {
        let queue = Arc::new(Queue::default());
        let logger = logger(&queue, log);
        Shared {
            operations: Arc::new(Operations::new(queue.clone())),
            host: Arc::new(Host::new(kinds, queue.clone(), logger.clone())),
            queue,
            logger,
            counters: Counters::default(),
            toolkits: Table::new(Kind::Toolkit),
        }
    }

    /// Closes what the operations opened and nobody closed.
    pub(crate) async fn close_objects(&self) {
        let toolkits = self.toolkits.drain();
        futures_util::future::join_all(toolkits.iter().map(Toolkit::close)).await;
    }

    /// Drops what could not be closed in time.
    pub(crate) fn abandon(&self) {
        drop(self.toolkits.drain());
    }
}

/// A logger whose records become events.
fn logger(queue: &Arc<Queue>, least: Option<LogLevel>) -> Logger {
    let Some(least) = least else {
        return Logger::default();
    };
    let queue = queue.clone();
    let sink = move |record| {
        if let Ok(payload) = event::json(&record) {
            let op = operation::current();
            queue.notify(event::host_call(
                0,
                op,
                HostCallKind::Log.as_str(),
                0,
                &payload,
            ));
        }
    };
    Logger::new(Arc::new(sink), least)
}
