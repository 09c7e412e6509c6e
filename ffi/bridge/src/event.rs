//! Events as text. Results and payloads are JSON already, so an event is put together, never built as a value.

use serde::Serialize;
use toolspan::Error;
use toolspan::error::ErrorRecord;

/// How an operation ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The result's JSON.
    Done(String),
    Failed(Error),
    Cancelled,
}

pub(crate) fn terminal(op: u64, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(result) => format!(r#"{{"type":"done","op":{op},"result":{result}}}"#),
        Outcome::Failed(error) => {
            let error = record(error);
            format!(r#"{{"type":"failed","op":{op},"error":{error}}}"#)
        }
        Outcome::Cancelled => {
            let error = record(&Error::cancelled());
            format!(r#"{{"type":"cancelled","op":{op},"error":{error}}}"#)
        }
    }
}

pub(crate) fn host_call(call: u64, op: u64, kind: &str, handler: u64, payload: &str) -> String {
    format!(
        r#"{{"type":"host_call","call":{call},"op":{op},"kind":"{kind}","handler":{handler},"payload":{payload}}}"#
    )
}

pub(crate) fn host_call_cancelled(call: u64, op: u64) -> String {
    format!(r#"{{"type":"host_call_cancelled","call":{call},"op":{op}}}"#)
}

/// The JSON text of an error's record.
pub fn record(error: &Error) -> String {
    text(error.record())
}

fn text(record: &ErrorRecord) -> String {
    json(record).unwrap_or_else(|_| {
        // Only a map with keys that are not text could get here, and a record has none.
        r#"{"code":"internal","message":"an error could not be written","retryable":false}"#
            .to_owned()
    })
}

/// The JSON text of a value of ours.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|e| {
        Error::new(
            toolspan::ErrorCode::Internal,
            "a value could not be written as JSON",
        )
        .because_of(&e)
    })
}
