//! Streams between the run that fills them and the host that pulls (SPEC 7.5).
//!
//! The operation `client.stream` drives the run and stays open; `stream.next` takes what is there. The run waits when
//! enough events wait for their reader, and so the socket does. The operation ends when its reader has seen the end, so that
//! its terminal event never overtakes the events before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::operation::Operation;
use toolspan::{Error, Event, EventStream};

/// Events that one `stream.next` takes unless it says otherwise.
pub(crate) const DEFAULT_ITEMS: usize = 64;

/// One stream, from the moment its operation was accepted.
pub(crate) struct OpenStream {
    /// Set when the run starts.
    events: OnceLock<AsyncMutex<EventStream>>,
    /// Cancelled when `events` is set.
    started: CancellationToken,
    operation: Arc<Operation>,
    /// The reader has seen the end.
    read: CancellationToken,
}

/// What a reader gets.
pub(crate) struct Pulled {
    pub(crate) items: Vec<Event>,
    /// Nothing comes after these; the terminal event of the stream's operation is in the queue.
    pub(crate) end: bool,
}

impl Pulled {
    pub(crate) fn nothing(end: bool) -> Self {
        Pulled {
            items: Vec::new(),
            end,
        }
    }
}

impl OpenStream {
    /// Waits for the first event, then takes what else is there.
    pub(crate) async fn pull(&self, most: usize, wait: Option<Duration>) -> Result<Pulled, Error> {
        let first = async {
            tokio::select! {
                biased;
                () = self.started.cancelled() => {}
                // It ended without having started.
                () = self.operation.ended.cancelled() => return None,
            }
            let mut events = self.events.get()?.lock().await;
            let first = events.next().await;
            Some((first, events))
        };
        let first = match wait {
            None => first.await,
            Some(limit) => match tokio::time::timeout(limit, first).await {
                Ok(first) => first,
                Err(_) => return Ok(Pulled::nothing(false)),
            },
        };
        let Some((mut next, mut events)) = first else {
            return Ok(Pulled::nothing(true));
        };
        let mut items = Vec::new();
        while let Some(event) = next {
            items.push(event?);
            next = if items.len() < most {
                events.try_next()
            } else {
                None
            };
        }
        drop(events);
        let end = items.is_empty() || matches!(items.last(), Some(Event::Done { .. }));
        if end {
            self.read.cancel();
            self.operation.ended.cancelled().await;
        }
        Ok(Pulled { items, end })
    }

    /// Makes the events readable.
    pub(crate) fn start(&self, events: EventStream) {
        // An operation starts one run, so this is the first.
        let _ = self.events.set(AsyncMutex::new(events));
        self.started.cancel();
    }

    /// Waits until the reader has seen the end.
    pub(crate) async fn read_to_end(&self) {
        self.read.cancelled().await;
    }
}

/// The open streams, by the id of their operation.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<u64, Arc<OpenStream>>>>);

impl Streams {
    /// Makes room for the stream of an operation, so that a reader may come before the run has started. The room is gone
    /// when the guard is dropped.
    pub(crate) fn open(&self, operation: Arc<Operation>) -> StreamGuard {
        let stream = Arc::new(OpenStream {
            events: OnceLock::new(),
            started: CancellationToken::new(),
            operation,
            read: CancellationToken::new(),
        });
        self.lock().insert(stream.operation.id, stream.clone());
        StreamGuard {
            streams: self.clone(),
            stream,
        }
    }

    /// The stream of that operation; `None` when it has ended or never was one.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<OpenStream>> {
        self.lock().get(&id).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<OpenStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a stream readable.
pub(crate) struct StreamGuard {
    streams: Streams,
    stream: Arc<OpenStream>,
}

impl std::ops::Deref for StreamGuard {
    type Target = OpenStream;

    fn deref(&self) -> &OpenStream {
        &self.stream
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.stream.operation.id);
    }
}
