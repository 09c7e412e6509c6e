//! The host's conversation store (SPEC 7.7).

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::host::{Host, HostCallKind};
use crate::operation;
use crate::options::Handler;
use toolspan::{ConversationStore, Error, ErrorCode, Transcript};

/// # Errors
/// `invalid_argument` when the host does not answer the kinds of a store.
pub(crate) fn store(
    host: &Arc<Host>,
    function: Handler,
) -> Result<Arc<dyn ConversationStore>, Error> {
    host.kinds.require(HostCallKind::StoreGet, "store")?;
    host.kinds.require(HostCallKind::StoreSave, "store")?;
    Ok(Arc::new(HostStore {
        host: host.clone(),
        handler: function.handler,
    }))
}

struct HostStore {
    host: Arc<Host>,
    handler: u64,
}

#[derive(Serialize)]
struct Get<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct Save<'a> {
    id: &'a str,
    transcript: &'a Transcript,
}

#[async_trait]
impl ConversationStore for HostStore {
    async fn get(&self, id: &str) -> toolspan::Result<Option<Transcript>> {
        let op = operation::current();
        let answer: Result<Box<RawValue>, Error> = self
            .host
            .ask(op, HostCallKind::StoreGet, self.handler, &Get { id })
            .await;
        let stored = answer.map_err(|e| failed("read", &e))?;
        match stored.get() {
            "null" => Ok(None),
            text => Transcript::from_json(text).map(Some),
        }
    }

    async fn save(&self, id: &str, transcript: Transcript) -> toolspan::Result<()> {
        let op = operation::current();
        let payload = Save {
            id,
            transcript: &transcript,
        };
        let answer: Result<serde::de::IgnoredAny, Error> = self
            .host
            .ask(op, HostCallKind::StoreSave, self.handler, &payload)
            .await;
        answer.map(|_| ()).map_err(|e| failed("write", &e))
    }
}

fn failed(what: &str, cause: &Error) -> Error {
    Error::new(
        ErrorCode::StoreFailed,
        format!("the host's store could not {what}"),
    )
    .because(cause)
}
