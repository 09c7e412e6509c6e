//! The moment an HTTP client has a connection, TLS included. It ends the phase *connect* (SPEC 3.2), which a request by
//! itself does not tell from waiting for the answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;
use tower_service::Service;

/// Told by a client built with it as `connector_layer`.
#[derive(Clone, Default)]
pub(super) struct Reached(CancellationToken);

impl Reached {
    /// Returns once there has been a connection.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }

    pub fn is_reached(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl<S> Layer<S> for Reached {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector {
            inner,
            reached: self.clone(),
        }
    }
}

/// A connector that tells.
#[derive(Clone)]
pub(super) struct Connector<S> {
    inner: S,
    reached: Reached,
}

impl<S, R> Service<R> for Connector<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.inner.call(request);
        let reached = self.reached.clone();
        Box::pin(async move {
            let connected = connecting.await?;
            reached.0.cancel();
            Ok(connected)
        })
    }
}
