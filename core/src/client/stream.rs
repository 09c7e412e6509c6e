//! A run as a stream of events (SPEC 7.5).

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::event::{Emitter, Event};
use super::result::RunResult;
use crate::error::{Error, ErrorCode, Result};

/// Events that may wait for their reader. A full channel stops the reading of the socket.
const CAPACITY: usize = 64;

/// The events of a run, `done` last. An error is the last item. Dropping the stream ends the run like a cancel: the socket is
/// closed, tools are told to stop, finished turns of a conversation are saved (SPEC 7.7).
#[must_use = "a stream does nothing for anybody who does not read it"]
pub struct EventStream {
    events: mpsc::Receiver<Result<Event>>,
    /// Let go when the stream is dropped: the run sees that its reader has left, and ends by itself.
    run: Option<JoinHandle<()>>,
}

impl EventStream {
    pub(super) fn start<F, Fut>(run: F) -> Self
    where
        F: FnOnce(Emitter) -> Fut,
        Fut: Future<Output = Result<RunResult>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(CAPACITY);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            let error = Error::new(
                ErrorCode::Internal,
                "a stream needs a tokio runtime to run on",
            );
            // The channel is new, so there is room.
            let _ = sender.try_send(Err(error));
            return EventStream { events, run: None };
        };
        let future = run(Emitter::to(sender.clone()));
        let task = runtime.spawn(async move {
            if let Err(error) = future.await {
                // Fails only when nobody reads any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        EventStream {
            events,
            run: Some(task),
        }
    }

    /// The run and its events apart: the events stop coming when the future is not polled, and a failure of the run is
    /// the future's result only. The future waits while [`CAPACITY`] events wait for their reader.
    pub(super) fn split<F, Fut>(run: F) -> (BoxFuture<'static, Result<RunResult>>, Self)
    where
        F: FnOnce(Emitter) -> Fut,
        Fut: Future<Output = Result<RunResult>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(CAPACITY);
        let run = run(Emitter::to(sender)).boxed();
        (run, EventStream { events, run: None })
    }

    /// The next event if it is there already.
    pub fn try_next(&mut self) -> Option<Result<Event>> {
        self.events.try_recv().ok()
    }

    /// The next event, `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        StreamExt::next(self).await
    }
}

impl Stream for EventStream {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.events.poll_recv(cx) {
            Poll::Ready(None) => {}
            ready_or_pending => return ready_or_pending,
        }
        // The run has let go of its end. When it did so by panicking, its reader must not take that for an end.
        let Some(run) = &mut self.run else {
            return Poll::Ready(None);
        };
        match run.poll_unpin(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ended) => {
                self.run = None;
                Poll::Ready(
                    ended
                        .err()
                        .filter(|e| e.is_panic())
                        .map(|_| Err(Error::new(ErrorCode::InternalPanic, "the run panicked"))),
                )
            }
        }
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
