//! HTTP as the rest of the core sees it: one request, one answer whose body is read piece by piece.
//!
//! [`HttpTransport`] is the seam where a host puts its own client for LLM requests (SPEC 7.1 `httpClient`);
//! [`ReqwestTransport`] is ours. MCP connections use [`client`] directly and are not injectable.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
pub use url::Url;

use crate::aside::aside;
use crate::error::{Error, ErrorCode, Result};

/// One request. `Debug` shows neither header values nor the body.
#[derive(Clone)]
pub struct HttpRequest {
    /// `POST` or `GET`.
    pub method: &'static str,
    /// Where it goes, with a host.
    pub url: Url,
    /// Header names in lower case, in the order to send.
    pub headers: Vec<(String, String)>,
    /// The body as it goes out.
    pub body: Bytes,
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("headers", &names)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// One answer. Dropping the body closes the connection.
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// Pieces of the body as they arrive.
    pub body: BoxStream<'static, Result<Bytes>>,
}

impl HttpResponse {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// Sends LLM requests. An error is `connection_failed` when nothing was answered, which is tried again, and whatever the
/// transport says otherwise. None carries a URL or a header.
#[async_trait]
pub trait HttpTransport: Send + Sync {
    /// Sends the request and returns when the status line and headers are there. Dropping the future aborts it.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse>;

    /// Whether the headers go out as they were given, so that nobody else can have added credentials. Default: unknown, which
    /// is `false`.
    fn keeps_headers(&self) -> bool {
        false
    }
}

/// Builds the HTTP client that this library uses everywhere: no redirect across origins, TLS by rustls with the system's
/// roots, or Mozilla's where the system has none.
pub fn client(connect_timeout: Duration) -> Result<reqwest::Client> {
    build(builder(&Tls::default())?.connect_timeout(connect_timeout))
}

/// The same, before it is built; without a limit on connecting.
pub(crate) fn builder(tls: &Tls) -> Result<reqwest::ClientBuilder> {
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls.config()?)
        .redirect(reqwest::redirect::Policy::custom(same_origin_only))
        .tcp_nodelay(true)
        .user_agent(concat!("toolspan/", env!("CARGO_PKG_VERSION"))))
}

/// Builds what [`builder`] began.
pub(crate) fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client> {
    builder.build().map_err(|e| {
        Error::new(ErrorCode::Internal, "the HTTP client could not be built")
            .because_of(&e.without_url())
    })
}

/// Headers may be credentials, so they stay on their origin; and a POST must stay one, which only 307 and 308 promise. Any
/// other redirect is an answer like every other.
fn same_origin_only(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt
        .previous()
        .last()
        .is_some_and(|from| from.origin() == attempt.url().origin());
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    if same && keeps_method && attempt.previous().len() <= 5 {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// TLS for several clients. Nearly all the time that a client takes to be made goes into reading the system's roots.
#[derive(Clone, Default)]
pub(crate) struct Tls(Arc<OnceLock<rustls::ClientConfig>>);

impl Tls {
    /// Made when it is first asked for.
    fn config(&self) -> Result<rustls::ClientConfig> {
        if let Some(config) = self.0.get() {
            return Ok(config.clone());
        }
        // Reads the system's roots, which takes milliseconds.
        let made = aside(usize::MAX, tls_config)?;
        Ok(self.0.get_or_init(|| made).clone())
    }
}

fn tls_config() -> Result<rustls::ClientConfig> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || {
        rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::new(ErrorCode::Internal, "TLS could not be set up").because_of(&e))
    };
    // A slim container has no certificate store; the verifier then refuses to exist.
    if let Ok(verified) = builder()?.with_platform_verifier() {
        return Ok(verified.with_no_client_auth());
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    Ok(builder()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// [`HttpTransport`] over reqwest with a pool of kept-alive connections.
#[derive(Clone, Debug)]
pub struct ReqwestTransport(reqwest::Client);

impl ReqwestTransport {
    /// A transport with its own pool.
    pub fn new() -> Result<Self> {
        client(Duration::from_secs(30)).map(ReqwestTransport)
    }
}

#[async_trait]
impl HttpTransport for ReqwestTransport {
    fn keeps_headers(&self) -> bool {
        true
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse> {
        let method = if request.method == "GET" {
            reqwest::Method::GET
        } else {
            reqwest::Method::POST
        };
        let mut builder = self.0.request(method, request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let answer = builder
            .body(request.body)
            .send()
            .await
            .map_err(connection_failed)?;
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let status = answer.status().as_u16();
        let body = answer
            .bytes_stream()
            .map(|piece| piece.map_err(connection_failed))
            .boxed();
        Ok(HttpResponse {
            status,
            headers,
            body,
        })
    }
}

/// What the lowest layer said, e.g. `Connection refused (os error 111)`.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut link = error;
    while let Some(source) = link.source() {
        link = source;
    }
    link.to_string()
}

/// A reqwest error without its URL, whose query may hold a key.
pub(crate) fn connection_failed(error: reqwest::Error) -> Error {
    let peer = error.url().and_then(|url| {
        Some(format!(
            "{}:{}",
            url.host_str()?,
            url.port_or_known_default()?
        ))
    });
    let error = error.without_url();
    if let (true, false, Some(peer)) = (error.is_connect(), error.is_timeout(), peer) {
        let message = format!("could not connect to {peer}: {}", innermost(&error));
        return Error::new(ErrorCode::ConnectionFailed, message).because_of(&error);
    }
    let what = if error.is_timeout() {
        "the connection timed out"
    } else if error.is_builder() {
        return Error::new(ErrorCode::InvalidConfig, "the request could not be built")
            .because_of(&error);
    } else {
        "the connection failed"
    };
    Error::new(ErrorCode::ConnectionFailed, what).because_of(&error)
}
