//! MCP over the pipes of a child process: one message a line.

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::codec::{decode, encode, failure};
use super::http::MAX_MESSAGE_BYTES;
use super::lines::{Line, Lines};
use super::process::Pipes;
use super::secrets::Secrets;
use crate::error::{Error, ErrorCode, Result};
use crate::log::{LogLevel, Logger};

/// Longest line of stderr that reaches the log whole.
const MAX_LOG_LINE_BYTES: usize = 8 * 1024;

/// How many of the latest lines of stderr are remembered, and how many characters of each.
const LAST_WORDS: usize = 10;
const LAST_WORDS_CHARS: usize = 200;

/// The message stream of a child. Dropping it closes the child's stdin.
pub(super) struct Pipe {
    /// Locked for one whole message.
    stdin: Mutex<ChildStdin>,
    incoming: Mutex<mpsc::Receiver<ServerJsonRpcMessage>>,
    /// Complete once its sender is gone.
    last_words: watch::Receiver<VecDeque<String>>,
    stop: CancellationToken,
}

impl Pipe {
    /// Takes over the pipes. The tasks behind it end with the child or with `stop`.
    pub fn new(
        pipes: Pipes,
        server: &str,
        secrets: Secrets,
        logger: &Logger,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Arc<Self> {
        let (read, incoming) = mpsc::channel(64);
        let voice = Voice {
            server: server.to_owned(),
            logger: logger.clone(),
        };
        tasks.spawn(until(
            stop.clone(),
            read_messages(pipes.stdout, read, voice.clone()),
        ));
        let (heard, last_words) = watch::channel(VecDeque::new());
        let draining = drain(pipes.stderr, secrets, voice, heard);
        tasks.spawn(until(stop.clone(), draining));
        Arc::new(Pipe {
            stdin: Mutex::new(pipes.stdin),
            incoming: Mutex::new(incoming),
            last_words,
            stop: stop.clone(),
        })
    }

    /// Writes one message. A child that does not read keeps it waiting until it ends.
    async fn write(&self, text: &str) -> std::io::Result<()> {
        let mut stdin = self.stdin.lock().await;
        stdin.write_all(text.as_bytes()).await?;
        stdin.flush().await
    }

    /// The latest lines of stderr of a child that has ended, in order and without secrets; waits for the rest of them, which
    /// `stop` cuts short.
    pub async fn last_words(&self) -> Vec<String> {
        let mut words = self.last_words.clone();
        while words.changed().await.is_ok() {}
        words.borrow().iter().cloned().collect()
    }
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn read_messages(
    stdout: ChildStdout,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    voice: Voice,
) {
    let reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut lines = Lines::new(reader, MAX_MESSAGE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        let message = match &line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => std::str::from_utf8(line)
                .ok()
                .and_then(|text| decode(text).ok()),
            Line::TooLong(start) => id_of(start).map(|id| {
                failure(
                    id,
                    format!(
                        "{}: the answer has more than {MAX_MESSAGE_BYTES} bytes",
                        ErrorCode::LimitExceeded
                    ),
                )
            }),
        };
        match message {
            Some(message) => {
                if messages.send(message).await.is_err() {
                    return;
                }
            }
            None => voice.warn("wrote a line to stdout that is not a message"),
        }
    }
}

/// The id of a message that is only there in part. Servers write it before the result.
fn id_of(start: &[u8]) -> Option<RequestId> {
    let start = &start[..start.len().min(256)];
    let text = String::from_utf8_lossy(start);
    let (_, after) = text.split_once("\"id\":")?;
    let end = after.find([',', '}'])?;
    serde_json::from_str(after[..end].trim()).ok()
}

/// What a child says is for the log; what it was given in confidence is not.
async fn drain(
    stderr: ChildStderr,
    secrets: Secrets,
    voice: Voice,
    heard: watch::Sender<VecDeque<String>>,
) {
    let mut lines = Lines::new(BufReader::new(stderr), MAX_LOG_LINE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        let cut = matches!(line, Line::TooLong(_));
        let (Line::Whole(line) | Line::TooLong(line)) = line;
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            let text = secrets.scrub(&text, cut);
            heard.send_modify(|words| {
                if words.len() == LAST_WORDS {
                    words.pop_front();
                }
                words.push_back(text.trim().chars().take(LAST_WORDS_CHARS).collect());
            });
            voice.log(LogLevel::Info, text);
        }
    }
}

/// Logs in the name of one server.
#[derive(Clone)]
struct Voice {
    server: String,
    logger: Logger,
}

impl Voice {
    fn warn(&self, what: &str) {
        self.log(LogLevel::Warn, format!("MCP server {} {what}", self.server));
    }

    fn log(&self, level: LogLevel, message: String) {
        let server = [("server", self.server.clone().into())];
        self.logger.log(level, "mcp", || message, server);
    }
}

/// One session over a [`Pipe`].
pub(super) struct StdioTransport(Option<Arc<Pipe>>);

impl StdioTransport {
    pub fn new(pipe: Arc<Pipe>) -> Self {
        StdioTransport(Some(pipe))
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let pipe = self.0.clone();
        async move {
            let mut text = encode(&message).map_err(|e| {
                Error::new(ErrorCode::Internal, "a message could not be written").because_of(&e)
            })?;
            text.push('\n');
            let gone = || Error::new(ErrorCode::ProcessFailed, "the child process has ended");
            let pipe = pipe.ok_or_else(gone)?;
            tokio::select! {
                biased;
                () = pipe.stop.cancelled() => Err(gone()),
                written = pipe.write(&text) => written.map_err(|_| gone()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.0.as_ref()?.incoming.lock().await.recv().await
    }

    async fn close(&mut self) -> Result<()> {
        self.0 = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_message_cut_short_is_found() {
        let number = br#"{"jsonrpc":"2.0","id": 12 ,"result":{"content":"#;
        assert_eq!(id_of(number), Some(RequestId::Number(12)));
        let text = br#"{"id":"x-1","jsonrpc":"2.0","result":{"#;
        assert_eq!(id_of(text), Some(RequestId::String("x-1".into())));
        assert_eq!(id_of(br#"{"jsonrpc":"2.0","result":{"#), None);
    }
}
