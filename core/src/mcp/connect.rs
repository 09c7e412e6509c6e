//! From a plan to a live session (SPEC 3.2), each phase within its own budget.

use rmcp::service::{
    ClientInitializeError, RoleClient, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use serde_json::json;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::RemoteTransport;
use super::connection::{
    Connection, Ending, Life, Watched, connection_closed, handshake_error, process_ended,
};
use super::handler::{Handler, Progress};
use super::http::HttpClient;
use super::list::{ListedTool, list_tools};
use super::plan::{Endpoint, LocalServer, RemoteServer, ServerPlan};
use super::process::Process;
use super::reached::Reached;
use super::revision::{Opening, Revision};
use super::sse::SseTransport;
use super::stale::Stale;
use super::stdio::{Pipe, StdioTransport};
use crate::counters::Counters;
use crate::error::{Error, ErrorCode, Result};
use crate::http::{self, Tls};
use crate::log::Logger;

/// What every connection of one server has in common.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub server: String,
    pub logger: Logger,
    pub counters: Counters,
    /// Of all servers of one configuration.
    pub tls: Tls,
    /// Whether its tools may be others than when they were listed.
    pub stale: Arc<Stale>,
    /// Every task of ours, and a token in every task of the SDK.
    pub tasks: TaskTracker,
}

type Running = RunningService<RoleClient, Handler>;

/// Opens a session and lists its tools. Dropping the future ends whatever it had opened.
pub(super) async fn connect(
    around: &Surroundings,
    plan: &ServerPlan,
) -> Result<(Connection, Vec<ListedTool>)> {
    let connection = open(around, plan).await?;
    let tools = list(around, plan, &connection).await?;
    connection.count(&around.counters);
    Ok((connection, tools))
}

/// Lists the tools of a session.
pub(super) async fn list(
    around: &Surroundings,
    plan: &ServerPlan,
    connection: &Connection,
) -> Result<Vec<ListedTool>> {
    let listing = list_tools(connection, &around.server, &around.logger);
    phase("list", plan.timeout, listing).await
}

/// Opens a session.
pub(super) async fn open(around: &Surroundings, plan: &ServerPlan) -> Result<Connection> {
    let stop = CancellationToken::new();
    match &plan.endpoint {
        Endpoint::Local(server) => local(around, server, plan, stop).await,
        Endpoint::Remote(server) => remote(around, server, plan, stop).await,
    }
}

/// Runs a phase within its budget; its errors begin with its name.
async fn phase<T>(
    name: &str,
    budget: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(budget, work).await {
        Ok(done) => done.map_err(|error| within(name, error)),
        Err(_) => Err(Error::timeout(name, budget)),
    }
}

fn within(phase: &str, error: Error) -> Error {
    let mut record = error.into_record();
    // The innermost cause is what a person needs ("connection refused"), so it stands in the message too.
    record.message = match record.cause.last() {
        Some(cause) if record.message.ends_with(&cause.message) => {
            format!("{phase}: {}", record.message)
        }
        Some(cause) => format!("{phase}: {} ({})", record.message, cause.message),
        None => format!("{phase}: {}", record.message),
    };
    record.into()
}

async fn local(
    around: &Surroundings,
    server: &LocalServer,
    plan: &ServerPlan,
    stop: CancellationToken,
) -> Result<Connection> {
    let (process, pipes) =
        Process::start(server, stop.clone(), &around.tasks).map_err(|e| within("connect", e))?;
    let ending = Ending {
        stop,
        process: Some(process),
    };
    let pipe = Pipe::new(
        pipes,
        &around.server,
        server.secrets.clone(),
        &around.logger,
        &ending.stop,
        &around.tasks,
    );
    let (first, second) = plan.revision.openings();
    let greeting = async {
        let shake = |opening| {
            let transport = StdioTransport::new(pipe.clone());
            handshake(around, &ending.stop, transport, opening)
        };
        match (shake(first).await, second) {
            (Err(refusal @ ClientInitializeError::JsonRpcError(_)), Some(second)) => {
                shake(second).await.map_err(|_| refusal)
            }
            (outcome, _) => outcome,
        }
    };
    let greeted = phase("initialize", plan.timeout, async {
        match greeting.await {
            Ok(greeted) => Ok(greeted),
            Err(error) => match (handshake_error(&error), &ending.process) {
                // Whether writing or reading noticed first is chance; what happened is that the process ended.
                (found, Some(process))
                    if found
                        .as_ref()
                        .is_none_or(|e| e.code() == ErrorCode::ProcessFailed) =>
                {
                    let status = process.exit_within(Duration::from_millis(250)).await;
                    Err(with_last_words(
                        process_ended(status),
                        pipe.last_words().await,
                    ))
                }
                (error, _) => Err(error.unwrap_or_else(connection_closed)),
            },
        }
    });
    let (service, life) = greeted.await?;
    Ok(Connection::new(service, life, ending))
}

/// A child that ends at once mostly says why.
fn with_last_words(error: Error, words: Vec<String>) -> Error {
    let Some(last) = words.last() else {
        return error;
    };
    let mut record = error.into_record();
    record.message = format!("{}: {last}", record.message);
    record.details = Some(json!({ "stderr": words }));
    record.into()
}

async fn remote(
    around: &Surroundings,
    server: &RemoteServer,
    plan: &ServerPlan,
    stop: CancellationToken,
) -> Result<Connection> {
    let timeout = plan.timeout;
    let reached = Reached::default();
    let builder = http::builder(&around.tls)?.connector_layer(reached.clone());
    let http = http::build(builder)?;
    let ending = Ending {
        stop,
        process: None,
    };
    let (service, life) = match server.transport {
        RemoteTransport::Sse => {
            let transport = phase("connect", timeout, sse(around, server, &http, &ending)).await?;
            let greeting = greet_sse(around, transport, &plan.revision, &ending);
            phase("initialize", timeout, greeting).await?
        }
        RemoteTransport::Automatic => {
            let greeting = greet_http(around, server, &plan.revision, &http, &ending);
            tokio::pin!(greeting);
            let connecting = async {
                tokio::select! {
                    biased;
                    done = &mut greeting => Some(done),
                    () = reached.wait() => None,
                }
            };
            match tokio::time::timeout(timeout, connecting).await {
                Err(_) => return Err(Error::timeout("connect", timeout)),
                Ok(Some(done)) => {
                    let name = if reached.is_reached() {
                        "initialize"
                    } else {
                        "connect"
                    };
                    done.map_err(|error| within(name, error))?
                }
                Ok(None) => phase("initialize", timeout, greeting).await?,
            }
        }
    };
    Ok(Connection::new(service, life, ending))
}

/// Streamable HTTP with `initialize`; without, where that is refused; HTTP+SSE, where it is something else.
async fn greet_http(
    around: &Surroundings,
    server: &RemoteServer,
    revision: &Revision,
    http: &reqwest::Client,
    ending: &Ending,
) -> Result<(Running, Arc<Life>)> {
    let client = || {
        HttpClient::new(
            http.clone(),
            server.headers.clone(),
            ending.stop.child_token(),
            around.tasks.token(),
        )
    };
    let first = client();
    let misfit = first.misfit();
    let transport = first.transport(&server.url);
    let (opening, next) = revision.openings();
    let refusal = match handshake(around, &ending.stop, transport, opening).await {
        Ok(greeted) => return Ok(greeted),
        Err(refusal) => refusal,
    };
    if let (ClientInitializeError::JsonRpcError(_), Some(next)) = (&refusal, next) {
        let transport = client().transport(&server.url);
        let greeted = handshake(around, &ending.stop, transport, next).await;
        if let Ok(greeted) = greeted {
            return Ok(greeted);
        }
    }
    let misfit = misfit.get().cloned();
    let error = handshake_error(&refusal)
        .or_else(|| misfit.clone())
        .unwrap_or_else(connection_closed);
    if misfit.is_none() {
        return Err(error);
    }
    let fallback = match sse(around, server, http, ending).await {
        Ok(transport) => greet_sse(around, transport, revision, ending).await,
        Err(error) => Err(error),
    };
    fallback.map_err(|second| {
        let mut record = error.into_record();
        let second = &second.record().message;
        record.message = format!("{}; over HTTP+SSE: {second}", record.message);
        record.into()
    })
}

async fn sse(
    around: &Surroundings,
    server: &RemoteServer,
    http: &reqwest::Client,
    ending: &Ending,
) -> Result<SseTransport> {
    SseTransport::open(
        http.clone(),
        &server.url,
        server.headers.clone(),
        ending.stop.clone(),
        around.server.clone(),
        around.logger.clone(),
    )
    .await
}

async fn greet_sse(
    around: &Surroundings,
    transport: SseTransport,
    revision: &Revision,
    ending: &Ending,
) -> Result<(Running, Arc<Life>)> {
    let (opening, _) = revision.openings();
    handshake(around, &ending.stop, transport, opening)
        .await
        .map_err(|e| handshake_error(&e).unwrap_or_else(connection_closed))
}

async fn handshake<T>(
    around: &Surroundings,
    stop: &CancellationToken,
    transport: T,
    opening: Opening,
) -> Result<(Running, Arc<Life>), ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
{
    let life = Arc::new(Life::default());
    let handler = Handler {
        progress: Arc::new(Progress::default()),
        version: opening.version().clone(),
    };
    let transport = Watched::new(
        transport,
        life.clone(),
        around.stale.clone(),
        around.tasks.token(),
    );
    // A token of its own: the SDK cancels it when it says goodbye, which must not stop the requests of the goodbye.
    let (lifecycle, stop) = (opening.lifecycle(), stop.child_token());
    let running = serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, stop).await?;
    Ok((running, life))
}
