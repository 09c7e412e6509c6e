//! Large texts, kept from holding up everything else.
//!
//! A runtime with one worker thread goes from task to task without waking anybody, which is most of what makes a short
//! run fast. A megabyte of JSON, though, would keep every other run waiting while it is read. So whoever runs the library on
//! such a runtime wraps its tasks in [`allow`], and the worker's other tasks move to another thread for that long.

use std::future::Future;

/// From this size on the time that a text takes outweighs the change of threads.
const LARGE_BYTES: usize = 128 * 1024;

tokio::task_local! {
    static ALLOWED: ();
}

/// Runs a future that may step aside. It must be polled by a worker of a multi-thread runtime.
pub async fn allow<F: Future>(work: F) -> F::Output {
    ALLOWED.scope((), work).await
}

/// Works on so many bytes, aside where they are many and the task may.
pub fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes >= LARGE_BYTES && ALLOWED.try_with(|()| ()).is_ok() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_large_text_does_not_keep_the_other_tasks_of_the_only_worker_waiting() {
        let (tell, told) = mpsc::channel();
        let work = allow(async move {
            tokio::spawn(async move { tell.send("went on") });
            aside(LARGE_BYTES, || told.recv_timeout(Duration::from_secs(10)))
        });
        assert_eq!(tokio::spawn(work).await.unwrap(), Ok("went on"));
    }

    #[tokio::test]
    async fn without_permission_a_large_text_is_read_where_it_is() {
        assert_eq!(aside(LARGE_BYTES, || 4), 4);
    }
}
