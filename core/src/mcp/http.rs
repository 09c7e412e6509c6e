//! Streamable HTTP: the requests behind the SDK's session logic.
//!
//! The SDK does not stop a request whose session is given up; here every request and every stream ends with `stop`.

use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use url::Url;

use super::codec::{decode, encode};
use super::sse::events;
use crate::error::{Error, ErrorCode};
use crate::http::connection_failed;

/// Largest message of a server, bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Largest body of a refusal that is looked at.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Failure = StreamableHttpError<Error>;

/// The requests of one session.
#[derive(Clone)]
pub(super) struct HttpClient {
    http: reqwest::Client,
    headers: Arc<HeaderMap>,
    stop: CancellationToken,
    misfit: Arc<OnceLock<Error>>,
    /// The SDK's tasks own clones of this client; whoever waits for them waits for this.
    _tracked: TaskTrackerToken,
}

impl HttpClient {
    pub fn new(
        http: reqwest::Client,
        headers: HeaderMap,
        stop: CancellationToken,
        tracked: TaskTrackerToken,
    ) -> Self {
        HttpClient {
            http,
            headers: Arc::new(headers),
            stop,
            misfit: Arc::default(),
            _tracked: tracked,
        }
    }

    /// Filled when the answer to `initialize` is one that a server of HTTP+SSE may give (SPEC 3.2).
    pub fn misfit(&self) -> Arc<OnceLock<Error>> {
        self.misfit.clone()
    }

    /// The transport for the SDK.
    pub fn transport(self, url: &Url) -> StreamableHttpClientTransport<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
        // How many calls run at a time is the client's business (SPEC 7.1).
        config.max_concurrent_requests = 1024;
        config.control_request_timeout = Duration::from_secs(2);
        StreamableHttpClientTransport::with_client(self, config)
    }

    /// Headers of one request: the configured ones, then what the protocol decides.
    fn request(
        &self,
        request: RequestBuilder,
        session: Option<Arc<str>>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let mut headers = (*self.headers).clone();
        headers.entry(ACCEPT).or_insert(BOTH);
        headers.entry(CONTENT_TYPE).or_insert(JSON);
        headers.extend(protocol);
        if let Some(Ok(session)) = session.map(|id| HeaderValue::from_str(&id)) {
            headers.insert(SESSION, session);
        }
        request.headers(headers)
    }

    async fn race<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(StreamableHttpError::TransportChannelClosed),
            done = work => Ok(done),
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        self.race(request.send())
            .await?
            .map_err(|e| Failure::Client(connection_failed(e)))
    }

    /// At most `limit` bytes of a body; `None` when there are more.
    async fn body(&self, answer: Response, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
        let mut body = answer.bytes_stream();
        let mut read = Vec::new();
        while let Some(piece) = self.race(body.next()).await? {
            let piece = piece.map_err(|e| Failure::Client(connection_failed(e)))?;
            if read.len() + piece.len() > limit {
                return Ok(None);
            }
            read.extend_from_slice(&piece);
        }
        Ok(Some(read))
    }

    /// Notes that this is not streamable HTTP, if the request was the one to tell by.
    fn misfits(&self, opening: bool, error: Error) -> Failure {
        if opening {
            let _ = self.misfit.set(error.clone());
        }
        Failure::Client(error)
    }

    /// The events of an answer, each as the SDK reads it.
    fn stream(&self, answer: Response, opening: bool) -> BoxedSseResponse {
        let body = answer.bytes_stream();
        let misfit = self.misfit.clone();
        let mut first = opening;
        events(body.take_until(self.stop.clone().cancelled_owned()))
            .map(move |event| {
                let mut event = event.map_err(|e| SseError::Body(Box::new(e)))?;
                let is_first = std::mem::take(&mut first);
                event.data = match event.data {
                    Some(data) if !data.trim().is_empty() => match readable(&data) {
                        Some(data) => Some(data),
                        // A server of HTTP+SSE that answers POST with its stream; nothing else will come.
                        None if is_first => {
                            let error = not_mcp();
                            let _ = misfit.set(error.clone());
                            return Err(SseError::Body(Box::new(error)));
                        }
                        None => None,
                    },
                    other => other,
                };
                Ok(event)
            })
            .boxed()
    }
}

/// A message as text that the SDK reads as [`decode`] means it.
fn readable(data: &str) -> Option<String> {
    serde_json::to_string(&decode(data).ok()?).ok()
}

impl StreamableHttpClient for HttpClient {
    type Error = Error;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let text = encode(&message)?;
        let (id, opening) = match &message {
            JsonRpcMessage::Request(request) => (
                Some(request.id.clone()),
                matches!(request.request, ClientRequest::InitializeRequest(_)),
            ),
            _ => (None, false),
        };
        let has_session = session.is_some();
        let request = self
            .request(self.http.post(&*url), session, protocol)
            .body(text);
        let answer = self.send(request).await?;
        let status = answer.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Failure::SessionExpired);
        }
        if !status.is_success() {
            return self.refusal(answer, id, opening).await;
        }
        if id.is_none() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = header(&answer, &SESSION);
        match media_type(&answer).as_deref() {
            Some("text/event-stream") => Ok(StreamableHttpPostResponse::Sse(
                self.stream(answer, opening),
                session,
            )),
            Some("application/json") => {
                let body = self.body(answer, MAX_MESSAGE_BYTES).await?;
                let body = body.ok_or_else(|| Failure::Client(too_large()))?;
                let message = std::str::from_utf8(&body).ok().map(decode);
                match message {
                    Some(Ok(message)) => Ok(StreamableHttpPostResponse::Json(message, session)),
                    _ => Err(self.misfits(opening, not_mcp())),
                }
            }
            // The answer may come on the stream of the session.
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) && !opening => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            _ => Err(self.misfits(opening, not_mcp())),
        }
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, Failure> {
        let mut request = self.request(self.http.get(&*url), session, protocol);
        if let Some(Ok(id)) = last_event.map(|id| HeaderValue::from_str(&id)) {
            request = request.header(LAST_EVENT, id);
        }
        let answer = self.send(request).await?;
        if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(Failure::ServerDoesNotSupportSse);
        }
        if !answer.status().is_success() {
            return Err(Failure::Client(refused(answer.status())));
        }
        match media_type(&answer).as_deref() {
            Some("text/event-stream") => Ok(self.stream(answer, false)),
            _ => Err(Failure::ServerDoesNotSupportSse),
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = self.request(self.http.delete(&*url), Some(session), protocol);
        // Servers may refuse; the session is over for us either way.
        self.send(request).await.map(|_| ())
    }
}

impl HttpClient {
    /// An answer that is not a success: the JSON-RPC error in its body, or its status.
    async fn refusal(
        &self,
        answer: Response,
        id: Option<RequestId>,
        opening: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = answer.status();
        let error = refused(status);
        let unauthorized = error.code() == ErrorCode::Unauthorized;
        let failure = match status.is_client_error() && !unauthorized {
            true => self.misfits(opening, error),
            false => Failure::Client(error),
        };
        if unauthorized || media_type(&answer).as_deref() != Some("application/json") {
            return Err(failure);
        }
        let body = self
            .body(answer, MAX_REFUSAL_BYTES)
            .await?
            .unwrap_or_default();
        // Who refuses a request before reading it cannot name its id.
        match (rpc_error(&body), id) {
            (Some(error), Some(id)) => Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::error(error, Some(id)),
                None,
            )),
            _ => Err(failure),
        }
    }
}

fn rpc_error(body: &[u8]) -> Option<ErrorData> {
    #[derive(serde::Deserialize)]
    struct Reply {
        error: ErrorData,
    }
    serde_json::from_slice::<Reply>(body)
        .ok()
        .map(|reply| reply.error)
}

/// What an HTTP status that is not a success means.
pub(super) fn refused(status: StatusCode) -> Error {
    let number = status.as_u16();
    let (code, message) = match number {
        401 | 403 => (
            ErrorCode::Unauthorized,
            format!("the server refuses our credentials (HTTP {number})"),
        ),
        300..=399 => (
            ErrorCode::McpError,
            format!("the server answered HTTP {number}, a redirect that is not followed"),
        ),
        _ => (
            ErrorCode::McpError,
            format!("the server answered HTTP {number}"),
        ),
    };
    Error::new(code, message)
        .http_status(number)
        .retryable(number == 429 || number >= 500)
}

fn not_mcp() -> Error {
    Error::new(
        ErrorCode::InvalidResponse,
        "the server answered with something that is not MCP",
    )
}

fn too_large() -> Error {
    Error::new(
        ErrorCode::LimitExceeded,
        format!("the answer of the server has more than {MAX_MESSAGE_BYTES} bytes"),
    )
}

fn header(answer: &Response, name: &HeaderName) -> Option<String> {
    answer.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// The media type without parameters, in lower case.
fn media_type(answer: &Response) -> Option<String> {
    let value = header(answer, &CONTENT_TYPE)?;
    let media_type = value.split(';').next().unwrap_or_default();
    Some(media_type.trim().to_ascii_lowercase())
}
