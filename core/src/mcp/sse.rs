//! Event streams, and the HTTP+SSE transport of the revision 2024-11-05: a GET stream brings messages and, first of all, the
//! URL to POST to.

use bytes::Bytes;
use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream_rmcp::Sse;
use std::borrow::Cow;
use std::future::Future;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::codec::{decode, encode};
use super::http::{MAX_MESSAGE_BYTES, refused};
use crate::error::{Error, ErrorCode, Result};
use crate::http::connection_failed;
use crate::log::{LogLevel, Logger};
use crate::sse::{Decoder, SseEvent};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The events of a body. One larger than [`MAX_MESSAGE_BYTES`] ends the stream with `limit_exceeded`.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> BoxStream<'static, Result<Sse>> {
    let begin = (body.fuse().boxed(), Decoder::new(MAX_MESSAGE_BYTES));
    try_unfold(begin, |(mut body, mut decoder)| async move {
        loop {
            if let Some(event) = decoder.next_event()?.map(owned) {
                return Ok(Some((event, (body, decoder))));
            }
            match body.next().await {
                Some(piece) => decoder.push(&piece.map_err(connection_failed)?)?,
                None => {
                    let last = decoder.finish()?.map(owned);
                    return Ok(last.map(|event| (event, (body, decoder))));
                }
            }
        }
    })
    .boxed()
}

fn owned(event: SseEvent<'_>) -> Sse {
    Sse {
        event: (!event.name.is_empty()).then(|| event.name.into_owned()),
        data: Some(event.data.into_owned()),
        id: event.id.map(Cow::into_owned),
        retry: event.retry,
    }
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
