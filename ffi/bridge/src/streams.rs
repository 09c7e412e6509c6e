//! Streams between the run that fills them and the host that pulls (SPEC 7.5).
//!
//! The operation `client.stream` drives the run and stays open; `stream.next` takes what is there. The run waits when
//! enough events wait for their reader, and so the socket does. The operation ends when its reader has seen the end, so that
//! its terminal event never overtakes the events before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::operation::Operation;
use toolspan::{Error, ErrorCode, Event, EventStream};

/// Events that one `stream.next` takes unless it says otherwise.
pub(crate) const DEFAULT_ITEMS: usize = 64;

/// One open stream.
pub(crate) struct OpenStream {
    events: AsyncMutex<EventStream>,
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

impl OpenStream {
    /// Waits for the first event, then takes what else is there.
    pub(crate) async fn pull(&self, most: usize, wait: Option<Duration>) -> Result<Pulled, Error> {
        let mut events = self.events.lock().await;
        let first = match wait {
            None => events.next().await,
            Some(limit) => match tokio::time::timeout(limit, events.next()).await {
                Ok(first) => first,
                Err(_) => {
                    return Ok(Pulled {
                        items: Vec::new(),
                        end: false,
                    });
                }
            },
        };
        let mut items = Vec::new();
        let mut next = first;
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

    /// Waits until the reader has seen the end.
    pub(crate) async fn read_to_end(&self) {
        self.read.cancelled().await;
    }
}

/// The open streams, by the id of their operation.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<u64, Arc<OpenStream>>>);

impl Streams {
    /// Makes a stream readable until the guard is dropped.
    pub(crate) fn open(&self, operation: Arc<Operation>, events: EventStream) -> OpenGuard<'_> {
        let stream = Arc::new(OpenStream {
            events: AsyncMutex::new(events),
            operation,
            read: CancellationToken::new(),
        });
        self.lock().insert(stream.operation.id, stream.clone());
        OpenGuard {
            streams: self,
            stream,
        }
    }

    /// # Errors
    /// `not_found` when that operation is no open stream: its terminal event, if it had one, says how it ended.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<OpenStream>, Error> {
        self.lock().get(&id).cloned().ok_or_else(|| {
            Error::new(
                ErrorCode::NotFound,
                format!("operation {id} is no open stream"),
            )
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<OpenStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a stream readable.
pub(crate) struct OpenGuard<'a> {
    streams: &'a Streams,
    pub(crate) stream: Arc<OpenStream>,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.stream.operation.id);
    }
}
