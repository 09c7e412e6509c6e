//! Event streams, and the HTTP+SSE transport of the revision 2024-11-05: a GET stream brings messages and, first of all, the
//! URL to POST to.

use bytes::Bytes;
use futures_util::stream::{BoxStream, once};
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::{Sse, SseByteStream};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::codec::{decode, encode};
use super::http::{MAX_MESSAGE_BYTES, refused};
use crate::error::{Error, ErrorCode, Result};
use crate::http::connection_failed;
use crate::log::{LogLevel, Logger};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The events of a body. One larger than [`MAX_MESSAGE_BYTES`] ends the stream with `limit_exceeded`.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> BoxStream<'static, Result<Sse>> {
    let since_event = Arc::new(AtomicUsize::new(0));
    let received = since_event.clone();
    let bounded = body
        .map(|piece| piece.map_err(connection_failed))
        // Some servers end without the blank line that finishes the last event.
        .chain(once(async { Ok(Bytes::from_static(b"\n\n")) }))
        .map(move |piece| {
            let piece = piece?;
            let total = received.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
            if total > MAX_MESSAGE_BYTES {
                return Err(Error::new(
                    ErrorCode::LimitExceeded,
                    format!("an event of the server has more than {MAX_MESSAGE_BYTES} bytes"),
                ));
            }
            Ok(piece)
        });
    SseByteStream::new(bounded.boxed())
        .map(move |event| {
            since_event.store(0, Ordering::Relaxed);
            event.map_err(|error| match error {
                sse_stream::Error::Body(cause) => match cause.downcast::<Error>() {
                    Ok(ours) => *ours,
                    Err(_) => broken(),
                },
                _ => broken(),
            })
        })
        .boxed()
}

fn broken() -> Error {
    Error::new(
        ErrorCode::InvalidResponse,
        "the event stream of the server cannot be read",
    )
}

/// A connection over HTTP+SSE.
pub(super) struct SseTransport {
    http: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    events: BoxStream<'static, Result<Sse>>,
    stop: CancellationToken,
    server: String,
    logger: Logger,
}

impl SseTransport {
    /// Opens the stream and waits for the endpoint. It must have the origin of the URL: the headers may be credentials.
    pub async fn open(
        http: reqwest::Client,
        url: &Url,
        headers: HeaderMap,
        stop: CancellationToken,
        server: String,
        logger: Logger,
    ) -> Result<Self> {
        let mut request = headers.clone();
        request.insert(ACCEPT, EVENT_STREAM);
        let answer = http
            .get(url.clone())
            .headers(request)
            .send()
            .await
            .map_err(connection_failed)?;
        if !answer.status().is_success() {
            return Err(refused(answer.status()));
        }
        let base = answer.url().clone();
        let body = answer.bytes_stream();
        let mut events = events(body.take_until(stop.clone().cancelled_owned()));
        let endpoint = loop {
            match events.next().await.transpose()? {
                Some(Sse {
                    event: Some(name),
                    data: Some(data),
                    ..
                }) if name == "endpoint" => break endpoint(&base, &data)?,
                Some(_) => {}
                None => {
                    return Err(Error::new(
                        ErrorCode::McpError,
                        "the event stream of the server ended without naming an endpoint",
                    ));
                }
            }
        };
        Ok(SseTransport {
            http,
            endpoint,
            headers,
            events,
            stop,
            server,
            logger,
        })
    }
}

/// The URL to POST to, relative to that of the stream.
fn endpoint(stream: &Url, named: &str) -> Result<Url> {
    let endpoint = stream.join(named.trim()).map_err(|_| {
        Error::new(
            ErrorCode::McpError,
            "the server named an endpoint that is not a URL",
        )
    })?;
    if endpoint.origin() != stream.origin() {
        return Err(Error::new(
            ErrorCode::McpError,
            "the server named an endpoint of another origin",
        ));
    }
    Ok(endpoint)
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        let request = self.http.post(self.endpoint.clone()).headers(headers);
        let stop = self.stop.clone();
        async move {
            let text = encode(&message).map_err(|e| {
                Error::new(ErrorCode::Internal, "a message could not be written").because_of(&e)
            })?;
            let answer = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Error::new(ErrorCode::Closed, "the connection is closed")),
                answer = request.body(text).send() => answer.map_err(connection_failed)?,
            };
            match answer.status().is_success() {
                true => Ok(()),
                false => Err(refused(answer.status())),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => {
                    self.warn(error.to_string());
                    return None;
                }
            };
            if let Some(message) = self.message(event) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<()> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}

impl SseTransport {
    fn message(&self, event: Sse) -> Option<ServerJsonRpcMessage> {
        let data = event.data.filter(|data| !data.trim().is_empty())?;
        let is_message = event
            .event
            .is_none_or(|name| name.is_empty() || name == "message");
        if !is_message {
            return None;
        }
        let message = decode(&data).ok();
        if message.is_none() {
            self.warn("an event is not a message".to_owned());
        }
        message
    }

    fn warn(&self, what: String) {
        self.logger.log(
            LogLevel::Warn,
            "mcp",
            || format!("MCP server {}: {what}", self.server),
            [("server", self.server.clone().into())],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_relative_to_its_stream() {
        let stream = Url::parse("http://h:1/a/sse?x=1").unwrap();
        let url = |named| endpoint(&stream, named).map(String::from);
        assert_eq!(url("/msg?s=1").unwrap(), "http://h:1/msg?s=1");
        assert_eq!(url("msg").unwrap(), "http://h:1/a/msg");
        assert_eq!(url("http://h:1/m").unwrap(), "http://h:1/m");
    }

    #[test]
    fn an_endpoint_elsewhere_is_refused() {
        let stream = Url::parse("https://h/sse").unwrap();
        for named in ["http://h/msg", "https://h:444/msg", "//other/msg"] {
            let refused = endpoint(&stream, named).unwrap_err();
            assert_eq!(
                refused.record().message,
                "the server named an endpoint of another origin"
            );
        }
    }
}
