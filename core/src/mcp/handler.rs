//! Our side of a session: who we are, and what we answer when a server asks.

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Who waits for the progress of which request.
#[derive(Default)]
pub(super) struct Progress(Mutex<HashMap<ProgressToken, Arc<Notify>>>);

impl Progress {
    /// Wakes up with every progress report under this token, until it is dropped.
    pub fn watch(self: &Arc<Self>, token: ProgressToken) -> ProgressWatch {
        let notify = Arc::new(Notify::new());
        self.with(|watchers| watchers.insert(token.clone(), notify.clone()));
        ProgressWatch {
            progress: self.clone(),
            token,
            notify,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<ProgressToken, Arc<Notify>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct ProgressWatch {
    progress: Arc<Progress>,
    token: ProgressToken,
    notify: Arc<Notify>,
}

impl ProgressWatch {
    pub async fn reported(&self) {
        self.notify.notified().await;
    }
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.progress.with(|watchers| watchers.remove(&self.token));
    }
}

/// Serves one session. What is not overridden here the SDK answers: ping, and "method not found" for sampling and for
/// whatever we have never heard of. No capability is announced.
pub(super) struct Handler {
    pub progress: Arc<Progress>,
    /// The revision that is asked for.
    pub version: ProtocolVersion,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let ourselves = Implementation::new(crate::NAME, crate::VERSION);
        ClientConfig::new(ClientCapabilities::default(), ourselves)
            .with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "elicitation is not supported",
            None,
        ))
    }

    // The revisions that we speak still have it.
    #[expect(deprecated, reason = "servers of older revisions ask")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        // An empty list would say that there are roots to ask for.
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "roots are not supported",
            None,
        ))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let watcher = self
            .progress
            .with(|watchers| watchers.get(&params.progress_token).cloned());
        if let Some(watcher) = watcher {
            watcher.notify_one();
        }
    }
}
