//! One `tools/call`: its budget, its progress, and what the server is told when we stop waiting.

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use super::codec::{RawArguments, result_text};
use super::connection::{Connection, RequestError, answered};
use crate::clock::later;
use crate::error::{Error, ErrorCode};
use crate::tool::Arguments;

/// How long a call may take in all: ten times what it may be silent (SPEC 3.7). The caller's own limit is the caller's to
/// keep: two clocks for one limit would make it chance which of them tells.
fn total(silence: Duration) -> Duration {
    silence.saturating_mul(10)
}

/// Calls a tool by its original name, which may be silent for so long; the answer is the text of the result. However this ends without an answer, the
/// server is told.
pub(super) async fn call_tool(
    connection: &Connection,
    tool: &str,
    arguments: &Arguments,
    silence: Duration,
    tasks: &TaskTracker,
) -> Result<String, RequestError> {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    // What is sent is the text below; the typed ones are for the SDK, which makes HTTP headers of those that a schema annotates.
    if !connection.is_local() {
        let map: Map<String, Value> = arguments.parse().unwrap_or_default();
        params = params.with_arguments(map);
    }
    let mut request = CallToolRequest::new(params);
    request
        .extensions
        .insert(RawArguments(arguments.json().clone()));
    let handle = connection
        .peer
        .send_request_with_option(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        )
        .await?;
    let progress = connection.progress.watch(handle.progress_token.clone());
    let mut waiting = Waiting {
        handle: Some(handle),
        tasks,
    };
    let answer = within(silence, waiting.answer(), || progress.reported()).await;
    let result = answer.map_err(RequestError::Other)??;
    result_text(result).map_err(|_| RequestError::Ended)
}

/// Waits as long as silence and total allow; every report of progress ends a silence.
async fn within<T, P: Future<Output = ()>>(
    silence: Duration,
    answer: impl Future<Output = T>,
    report: impl Fn() -> P,
) -> Result<T, Error> {
    let started = Instant::now();
    let end = later(started, total(silence));
    let mut silent_until = later(started, silence);
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            () = report() => silent_until = later(Instant::now(), silence),
            () = sleep_until(silent_until.min(end)) => {
                return Err(ran_out(silence, silent_until < end));
            }
        }
    }
}

fn ran_out(silence: Duration, silent: bool) -> Error {
    let message = if silent {
        let ms = silence.as_millis();
        format!("the call took longer than {ms} ms without progress")
    } else {
        format!(
            "the call took longer than {} ms",
            total(silence).as_millis()
        )
    };
    Error::new(ErrorCode::Timeout, message)
}

/// A request without an answer yet. Dropped in that state, it tells the server that nobody waits any more.
struct Waiting<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    tasks: &'a TaskTracker,
}

impl Waiting<'_> {
    async fn answer(&mut self) -> Result<rmcp::model::ServerResult, RequestError> {
        let Some(handle) = &mut self.handle else {
            return Err(RequestError::Ended);
        };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        answered(answer)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Nobody waits for the notice to arrive. Without a runtime there is no session to tell either.
        if let (Some(handle), Ok(runtime)) =
            (self.handle.take(), tokio::runtime::Handle::try_current())
        {
            let notice = handle.cancel(Some("the caller stopped waiting".to_owned()));
            self.tasks.spawn_on(
                async {
                    // A session that cannot carry it has ended.
                    let _ = notice.await;
                },
                &runtime,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    /// Waits for an answer after `answer` seconds with a report every `report` seconds, and says how long that took.
    async fn waited(answer: u64, report: u64) -> (Result<(), String>, Duration) {
        let silence = Duration::from_secs(10);
        let started = Instant::now();
        let answer = sleep(Duration::from_secs(answer));
        let outcome = within(silence, answer, || sleep(Duration::from_secs(report))).await;
        (
            outcome.map_err(|e| e.record().message.clone()),
            started.elapsed(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_may_be_silent_for_its_budget_and_no_longer() {
        let seconds = Duration::from_secs;
        assert_eq!(waited(9, 1000).await, (Ok(()), seconds(9)));
        let message = "the call took longer than 10000 ms without progress";
        assert_eq!(waited(11, 1000).await, (Err(message.into()), seconds(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_keeps_a_call_alive_up_to_ten_times_its_budget() {
        let seconds = Duration::from_secs;
        assert_eq!(waited(99, 9).await, (Ok(()), seconds(99)));
        let message = "the call took longer than 100000 ms";
        assert_eq!(waited(101, 9).await, (Err(message.into()), seconds(100)));
    }

    #[test]
    fn a_call_may_take_ten_times_its_silence() {
        assert_eq!(total(Duration::from_secs(2)), Duration::from_secs(20));
        assert_eq!(total(Duration::MAX), Duration::MAX);
    }
}
