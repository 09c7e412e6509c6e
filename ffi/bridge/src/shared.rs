//! What the tasks of one engine share: the queue, the host, and the open objects.

use std::sync::Arc;

use crate::event;
use crate::handles::{Kind, Table};
use crate::host::{Host, HostCallKind, Kinds};
use crate::operation::{self, Operations};
use crate::queue::Queue;
use crate::streams::Streams;
use toolspan::log::Logger;
use toolspan::{Client, Conversation, Counters, LogLevel, Metrics, Toolkit};

pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) host: Arc<Host>,
    pub(crate) logger: Logger,
    pub(crate) counters: Counters,
    pub(crate) toolkits: Table<Toolkit>,
    pub(crate) clients: Table<Arc<OpenClient>>,
    pub(crate) conversations: Table<Conversation>,
    pub(crate) streams: Streams,
}

/// A client and what it counts.
pub(crate) struct OpenClient {
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
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
            clients: Table::new(Kind::Client),
            conversations: Table::new(Kind::Conversation),
            streams: Streams::default(),
        }
    }

    /// Closes what the operations opened and nobody closed.
    pub(crate) async fn close_objects(&self) {
        self.conversations.drain();
        for open in self.clients.drain() {
            open.client.close();
        }
        let toolkits = self.toolkits.drain();
        futures_util::future::join_all(toolkits.iter().map(Toolkit::close)).await;
    }

    /// Drops what could not be closed in time.
    pub(crate) fn abandon(&self) {
        self.conversations.drain();
        self.clients.drain();
        self.toolkits.drain();
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
