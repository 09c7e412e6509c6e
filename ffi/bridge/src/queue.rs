//! Events on their way to the host: a queue that is filled by the library's tasks and emptied by the host's pump.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::event;
use crate::host::HostCallKind;
use toolspan::{LogLevel, LogRecord};

/// Called when the queue turns non-empty. It must not block and should only tell the host's loop to poll.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Notifications (logs, metrics) kept for a host that does not poll. Everything else is bounded by what the host asked for.
const MAX_NOTIFICATIONS: usize = 8192;

#[derive(Default)]
struct State {
    events: VecDeque<String>,
    /// Of those, how many nobody waits for.
    notifications: usize,
    /// Notifications thrown away since the host last caught up.
    dropped: u64,
    closed: bool,
    wake: Option<Wake>,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    /// Adds an event. After [`Queue::close`] it goes nowhere.
    pub(crate) fn push(&self, event: String) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.events.push_back(event);
        self.announce(state);
    }

    /// Adds an event that may be dropped when the host does not keep up.
    pub(crate) fn notify(&self, event: String) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        if state.notifications >= MAX_NOTIFICATIONS {
            state.dropped += 1;
            return;
        }
        state.notifications += 1;
        state.events.push_back(event);
        self.announce(state);
    }

    /// Wakes one poller, and the host when the queue was empty; nothing is locked meanwhile.
    fn announce(&self, state: MutexGuard<'_, State>) {
        let wake = if state.events.len() == 1 {
            state.wake.clone()
        } else {
            None
        };
        drop(state);
        self.filled.notify_one();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Takes up to `max` events (0: all), waiting up to `timeout` for the first. `None` once closed and drained.
    pub(crate) fn poll(&self, timeout: Duration, max: usize) -> Option<String> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        while state.events.is_empty() && !state.closed {
            state = match deadline {
                None => self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Some("[]".to_owned());
                    }
                    self.filled
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        if state.events.is_empty() {
            return None;
        }
        let count = if max == 0 { usize::MAX } else { max }.min(state.events.len());
        let batch: Vec<String> = state.events.drain(..count).collect();
        if state.events.is_empty() {
            state.notifications = 0;
            if state.dropped > 0 {
                let lost = std::mem::take(&mut state.dropped);
                state.events.push_back(dropped(lost));
            }
        }
        drop(state);
        Some(join(&batch))
    }

    /// Lets pollers have what is there, and nothing after that.
    pub(crate) fn close(&self) {
        let wake = {
            let mut state = self.lock();
            state.closed = true;
            state.wake.take()
        };
        self.filled.notify_all();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Replaces the wake function; the new one is called at once when there is something to collect.
    pub(crate) fn set_wake(&self, wake: Option<Wake>) {
        let due = {
            let mut state = self.lock();
            state.wake = wake;
            if state.events.is_empty() && !state.closed {
                None
            } else {
                state.wake.clone()
            }
        };
        if let Some(wake) = due {
            wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(batch: &[String]) -> String {
    let bytes: usize = batch.iter().map(|event| event.len() + 1).sum();
    let mut text = String::with_capacity(bytes + 1);
    for event in batch {
        text.push(if text.is_empty() { '[' } else { ',' });
        text.push_str(event);
    }
    text.push(']');
    text
}

/// The record that tells the host what it missed.
fn dropped(count: u64) -> String {
    let record = LogRecord {
        level: LogLevel::Warn,
        target: "bridge".to_owned(),
        message: format!(
            "{count} log and metric events were dropped because nobody collected them"
        ),
        fields: [("dropped".to_owned(), count.into())].into(),
    };
    let payload = event::json(&record).unwrap_or_else(|_| "null".to_owned());
    event::host_call(0, 0, HostCallKind::Log.as_str(), 0, &payload)
}
