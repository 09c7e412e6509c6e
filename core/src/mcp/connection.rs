//! One live session and everything that has to end with it.

use rmcp::model::{
    ErrorData, JsonRpcMessage, JsonRpcNotification, ServerNotification, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, RoleClient, RunningService, RxJsonRpcMessage, ServiceError,
    TxJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::{DynamicTransportError, Transport};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::handler::{Handler, Progress};
use super::process::Process;
use super::stale::Stale;
use crate::counters::{Counted, Counters};
use crate::error::{Error, ErrorCode, Result};

/// How long a polite goodbye to the session may take. What the child may take comes on top.
const GOODBYE: Duration = Duration::from_millis(800);

/// How long to wait for the exit status of a child whose pipes have closed.
const EXIT_STATUS: Duration = Duration::from_millis(250);

/// Ends a connection at once when it is dropped: requests, streams, tasks, and the child with its group.
pub(super) struct Ending {
    pub stop: CancellationToken,
    pub process: Option<Process>,
}

impl Ending {
    pub fn now(&self) {
        self.stop.cancel();
        if let Some(process) = &self.process {
            process.kill();
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.now();
    }
}

/// Whether a session lives. It ends when the SDK lets go of its transport.
#[derive(Default)]
pub(super) struct Life {
    ended: CancellationToken,
    counted: Mutex<Option<Counted>>,
}

impl Life {
    fn set_counted(&self, counted: Option<Counted>) {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = counted;
    }

    fn end(&self) {
        self.ended.cancel();
        self.set_counted(None);
    }
}

/// A transport that tells when it is let go, and of a changed list. The SDK hands a notification to a task of its own, so the
/// answer behind it may be there first; here they come in order.
pub(super) struct Watched<T> {
    inner: T,
    life: Arc<Life>,
    stale: Arc<Stale>,
    /// The SDK's task owns this transport; whoever waits for that task waits for this.
    _tracked: TaskTrackerToken,
}

impl<T> Watched<T> {
    pub fn new(inner: T, life: Arc<Life>, stale: Arc<Stale>, tracked: TaskTrackerToken) -> Self {
        Watched {
            inner,
            life,
            stale,
            _tracked: tracked,
        }
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.life.end();
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if let Some(JsonRpcMessage::Notification(JsonRpcNotification {
            notification: ServerNotification::ToolListChangedNotification(_),
            ..
        })) = &message
        {
            self.stale.set();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

/// A session that has been opened.
pub(super) struct Connection {
    pub peer: Peer<RoleClient>,
    pub progress: Arc<Progress>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    life: Arc<Life>,
    ending: Ending,
}

impl Connection {
    pub fn new(
        service: RunningService<RoleClient, Handler>,
        life: Arc<Life>,
        ending: Ending,
    ) -> Self {
        Connection {
            peer: service.peer().clone(),
            progress: service.service().progress.clone(),
            service: Mutex::new(Some(service)),
            life,
            ending,
        }
    }

    /// Counts this session for as long as it lives.
    pub fn count(&self, counters: &Counters) {
        if !self.has_ended() {
            self.life.set_counted(Some(counters.server()));
        }
        // It may have ended in between.
        if self.has_ended() {
            self.life.set_counted(None);
        }
    }

    /// Whether the server is a child of this process.
    pub fn is_local(&self) -> bool {
        self.ending.process.is_some()
    }

    pub fn has_ended(&self) -> bool {
        self.life.ended.is_cancelled()
            || self.ending.process.as_ref().is_some_and(Process::has_ended)
    }

    /// What a session that has ended, or is about to, ended with.
    pub async fn cause(&self) -> Error {
        match &self.ending.process {
            Some(process) => process_ended(process.exit_within(EXIT_STATUS).await),
            None => connection_closed(),
        }
    }

    /// The same for a session that ended a while ago.
    pub fn known_cause(&self) -> Error {
        match &self.ending.process {
            Some(process) => process_ended(process.exit()),
            None => connection_closed(),
        }
    }

    /// Ends the session politely, then whatever is left.
    pub async fn close(&self) {
        self.life.set_counted(None);
        let service = self
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut service) = service {
            // The only errors are a panic in the SDK and a late end; both leave what is ended below.
            let _ = service.close_with_timeout(GOODBYE).await;
        }
        if let Some(process) = &self.ending.process {
            process.end().await;
        }
        self.ending.now();
    }

    /// Ends the session now.
    pub fn abort(&self) {
        self.life.set_counted(None);
        self.ending.now();
    }
}

/// The error for a session whose transport just ended.
pub(super) fn connection_closed() -> Error {
    Error::new(
        ErrorCode::ConnectionFailed,
        "the server closed the connection",
    )
}

/// The error for a child that ended, or closed its output.
pub(super) fn process_ended(status: Option<String>) -> Error {
    let message = match status {
        Some(status) => format!("the process ended ({status})"),
        None => "the process closed its output".to_owned(),
    };
    Error::new(ErrorCode::ProcessFailed, message)
}

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The server answered with an error.
    Refused(ErrorData),
    /// The session has ended; the request may have been served.
    Ended,
    /// The session has ended, and the request was certainly not served: the child was gone before it could be written, or
    /// the server answered that it knows no such session.
    NotTaken(Error),
    /// Anything else.
    Other(Error),
}

impl From<ServiceError> for RequestError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(refusal) => RequestError::Refused(refusal),
            ServiceError::TransportClosed => RequestError::Ended,
            ServiceError::TransportSend(error) => match transport_error(&error) {
                Some(ours) if error.error.is::<Error>() && tells_not_taken(&ours) => {
                    RequestError::NotTaken(ours)
                }
                Some(ours) => RequestError::Other(ours),
                None => RequestError::Ended,
            },
            _ => RequestError::Other(Error::new(
                ErrorCode::McpError,
                "the server broke the protocol",
            )),
        }
    }
}

/// What our own transports say of a message they could not hand over. Sessions of streamable HTTP are the SDK's.
fn tells_not_taken(error: &Error) -> bool {
    error.code() == ErrorCode::ProcessFailed || error.record().http_status == Some(404)
}

/// The outcome of a request as the SDK hands it over.
pub(super) type Answer =
    Result<Result<ServerResult, ServiceError>, tokio::sync::oneshot::error::RecvError>;

/// The result of a request.
pub(super) fn answered(answer: Answer) -> Result<ServerResult, RequestError> {
    match answer {
        Ok(answer) => answer.map_err(RequestError::from),
        Err(_) => Err(RequestError::Ended),
    }
}

/// What a transport of ours said; `None` when it is only that it has ended.
pub(super) fn transport_error(error: &DynamicTransportError) -> Option<Error> {
    let inner = error.error.as_ref();
    if let Some(error) = inner.downcast_ref::<Error>() {
        return Some(error.clone());
    }
    match inner.downcast_ref::<StreamableHttpError<Error>>()? {
        StreamableHttpError::Client(error) => Some(error.clone()),
        StreamableHttpError::SessionExpired => Some(Error::new(
            ErrorCode::McpError,
            "the server forgot the session, and the new one too",
        )),
        StreamableHttpError::ReinitializationFailed(refusal) => Some(Error::new(
            ErrorCode::McpError,
            format!("the server refuses a new session: {}", refusal.message),
        )),
        StreamableHttpError::SessionRecoveryTimeout => Some(Error::new(
            ErrorCode::ConnectionFailed,
            "the server gave no new session in time",
        )),
        StreamableHttpError::TransportChannelClosed => None,
        _ => Some(Error::new(
            ErrorCode::McpError,
            "the server broke the protocol",
        )),
    }
}

/// Why there is no session; `None` when the transport just ended.
pub(super) fn handshake_error(error: &ClientInitializeError) -> Option<Error> {
    let broken = |message: String| Some(Error::new(ErrorCode::McpError, message));
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error(error),
        ClientInitializeError::JsonRpcError(refusal) => {
            broken(format!("the server refuses: {}", refusal.message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            broken("the server speaks no revision of MCP that we know".to_owned())
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => None,
        _ => broken("the server broke the protocol".to_owned()),
    }
}
