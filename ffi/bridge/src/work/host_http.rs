//! The host's HTTP client for the requests to the model (SPEC 7.1 `httpClient`).

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

use crate::host::{Host, HostCallKind};
use crate::operation;
use crate::options::Handler;
use toolspan::http::{HttpRequest, HttpResponse, HttpTransport};
use toolspan::{Error, ErrorCode};

/// # Errors
/// `invalid_argument` when the host does not answer the kinds of a client.
pub(crate) fn transport(
    host: &Arc<Host>,
    function: Handler,
) -> Result<Arc<dyn HttpTransport>, Error> {
    host.kinds.require(HostCallKind::HttpSend, "httpClient")?;
    host.kinds.require(HostCallKind::HttpRead, "httpClient")?;
    Ok(Arc::new(HostTransport {
        host: host.clone(),
        handler: function.handler,
    }))
}

struct HostTransport {
    host: Arc<Host>,
    handler: u64,
}

#[derive(Serialize)]
struct Send<'a> {
    method: &'a str,
    url: &'a str,
    headers: &'a [(String, String)],
    body: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    /// The whole body.
    body: Option<String>,
    /// Or the number under which the host hands it out.
    stream: Option<u64>,
}

#[derive(Serialize)]
struct Stream {
    stream: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Piece {
    Data(String),
    End(serde::de::IgnoredAny),
}

#[async_trait]
impl HttpTransport for HostTransport {
    async fn send(&self, request: HttpRequest) -> toolspan::Result<HttpResponse> {
        let payload = Send {
            method: request.method,
            url: request.url.as_str(),
            headers: &request.headers,
            // Bodies are JSON that the core wrote, so nothing is lost here.
            body: String::from_utf8_lossy(&request.body),
        };
        let op = operation::current();
        let answer: Result<Answer, Error> = self
            .host
            .ask(op, HostCallKind::HttpSend, self.handler, &payload)
            .await;
        let answer = answer.map_err(|e| failed(&e))?;
        let headers = answer
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let body = match (answer.body, answer.stream) {
            (Some(text), None) => stream::once(async { Ok(Bytes::from(text)) }).boxed(),
            (None, Some(number)) => Body::new(self, op, number).pieces(),
            _ => {
                return Err(Error::new(
                    ErrorCode::HostFailed,
                    "the answer to http.send has either a body or a stream",
                ));
            }
        };
        Ok(HttpResponse {
            status: answer.status,
            headers,
            body,
        })
    }
}

fn failed(cause: &Error) -> Error {
    Error::new(ErrorCode::ConnectionFailed, "the host's HTTP client failed").because(cause)
}

/// A body in the host. Dropped before its end, it tells the host that nobody reads it any more.
struct Body {
    host: Arc<Host>,
    handler: u64,
    op: u64,
    number: u64,
    ended: bool,
}

impl Body {
    fn new(transport: &HostTransport, op: u64, number: u64) -> Self {
        Body {
            host: transport.host.clone(),
            handler: transport.handler,
            op,
            number,
            ended: false,
        }
    }

    fn pieces(self) -> BoxStream<'static, toolspan::Result<Bytes>> {
        stream::unfold(self, |mut body| async {
            if body.ended {
                return None;
            }
            let piece = body.next().await.transpose()?;
            Some((piece, body))
        })
        .boxed()
    }

    async fn next(&mut self) -> toolspan::Result<Option<Bytes>> {
        let payload = Stream {
            stream: self.number,
        };
        let piece = self
            .host
            .ask(self.op, HostCallKind::HttpRead, self.handler, &payload)
            .await;
        // A body that failed has ended: the host knows already.
        self.ended = !matches!(piece, Ok(Piece::Data(_)));
        match piece.map_err(|e| failed(&e))? {
            Piece::End(_) => Ok(None),
            Piece::Data(data) => BASE64_STANDARD
                .decode(data)
                .map(|bytes| Some(bytes.into()))
                .map_err(|_| {
                    Error::new(
                        ErrorCode::HostFailed,
                        "a piece of a body in the answer to http.read is not base64",
                    )
                }),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !self.ended {
            let payload = Stream {
                stream: self.number,
            };
            self.host
                .tell(self.op, HostCallKind::HttpClose, self.handler, &payload);
        }
    }
}
