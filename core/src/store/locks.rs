//! One call at a time on one conversation id (SPEC 7.7).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A lock per id. Whoever asks first gets it first; an id that nobody holds or waits for takes no memory.
#[derive(Clone, Debug, Default)]
pub struct IdLocks(Arc<Mutex<HashMap<String, Entry>>>);

#[derive(Debug, Default)]
struct Entry {
    lock: Arc<AsyncMutex<()>>,
    /// Holders and waiters.
    users: usize,
}

impl IdLocks {
    /// No locks.
    pub fn new() -> Self {
        IdLocks::default()
    }

    /// Waits until nobody else has the id. Dropping the future leaves the queue.
    pub async fn lock(&self, id: &str) -> IdGuard {
        let (lease, lock) = self.lease(id);
        IdGuard {
            _held: lock.lock_owned().await,
            _lease: lease,
        }
    }

    fn lease(&self, id: &str) -> (Lease, Arc<AsyncMutex<()>>) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = map.entry(id.to_owned()).or_default();
        entry.users += 1;
        let lease = Lease {
            locks: self.clone(),
            id: id.to_owned(),
        };
        (lease, entry.lock.clone())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Holds one id until dropped.
#[derive(Debug)]
#[must_use = "dropping the guard releases the id"]
pub struct IdGuard {
    // Released before the entry is given up.
    _held: OwnedMutexGuard<()>,
    _lease: Lease,
}

/// Counts one user of an entry, also while it waits, so that a cancelled waiter cleans up like a holder.
#[derive(Debug)]
struct Lease {
    locks: IdLocks,
    id: String,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut map = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = map.get_mut(&self.id) {
            entry.users -= 1;
            if entry.users == 0 {
                map.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::pin::pin;
    use std::task::Poll;

    #[tokio::test]
    async fn one_id_is_held_once_and_in_order() {
        let locks = IdLocks::new();
        let first = locks.lock("a").await;
        let mut second = pin!(locks.lock("a"));
        let mut third = pin!(locks.lock("a"));
        assert!(poll!(&mut second).is_pending());
        assert!(poll!(&mut third).is_pending());
        drop(first);
        assert!(poll!(&mut third).is_pending());
        let Poll::Ready(second) = poll!(&mut second) else {
            panic!("the first waiter is next")
        };
        assert!(poll!(&mut third).is_pending());
        drop(second);
        assert!(poll!(&mut third).is_ready());
    }

    #[tokio::test]
    async fn different_ids_do_not_wait_for_each_other() {
        let locks = IdLocks::new();
        let _a = locks.lock("a").await;
        assert!(poll!(pin!(locks.lock("b"))).is_ready());
    }

    #[tokio::test]
    async fn nothing_is_kept_for_ids_nobody_uses() {
        let locks = IdLocks::new();
        let held = locks.lock("a").await;
        {
            let mut waiting = pin!(locks.lock("a"));
            assert!(poll!(&mut waiting).is_pending());
        }
        assert_eq!(locks.len(), 1);
        drop(held);
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_last_cleans_up() {
        let locks = IdLocks::new();
        let held = locks.lock("a").await;
        {
            let mut waiting = pin!(locks.lock("a"));
            assert!(poll!(&mut waiting).is_pending());
            drop(held);
            assert_eq!(locks.len(), 1);
        }
        assert_eq!(locks.len(), 0);
    }
}
