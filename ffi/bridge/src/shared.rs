//! What the tasks of one engine share: the queue, the host, and the open objects.

use std::sync::{Arc, OnceLock};

use crate::event;
use crate::handles::{Kind, Table};
use crate::host::{Host, HostCallKind, Kinds};
use crate::operation::{self, Operations};
use crate::queue::Queue;
use crate::streams::Streams;
use toolspan::http::{HttpTransport, ReqwestTransport};
use toolspan::log::Logger;
use toolspan::{Client, Conversation, Counters, Error, LogLevel, Toolkit};

pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) host: Arc<Host>,
    pub(crate) logger: Logger,
    pub(crate) counters: Counters,
    pub(crate) toolkits: Table<Toolkit>,
    pub(crate) clients: Table<Client>,
    pub(crate) conversations: Table<Conversation>,
    pub(crate) streams: Streams,
    /// Made with the first client that uses it.
    transport: OnceLock<ReqwestTransport>,
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
            transport: OnceLock::new(),
        }
    }

    /// The connections to model endpoints, one pool for all clients: a program that makes a client for each request still
    /// keeps its connections, and does not run out of sockets when it closes none.
    pub(crate) fn transport(&self) -> Result<Arc<dyn HttpTransport>, Error> {
        let transport = match self.transport.get() {
            Some(transport) => transport,
            // Two first clients at once both make one; one of them is kept.
            None => {
                let made = ReqwestTransport::new()?;
                self.transport.get_or_init(|| made)
            }
        };
        Ok(Arc::new(transport.clone()))
    }

    /// Closes what the operations opened and nobody closed.
    pub(crate) async fn close_objects(&self) {
        self.conversations.drain();
        for client in self.clients.drain() {
            client.close();
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
