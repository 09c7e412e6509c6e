//! One shim process: requests out, answers in, in any order.

use std::collections::{HashMap, VecDeque};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};

use crate::port::Port;

/// What a step came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It succeeded with this value.
    Ok(Value),
    /// It failed with this record, after delivering `partial`.
    Error {
        /// The error record.
        error: Value,
        /// What was delivered before it.
        partial: Option<Value>,
    },
}

/// The answer to one step, or why there will be none.
pub type Answer = oneshot::Receiver<Result<Outcome, String>>;

/// Variables of the person who runs the suite that must not decide what a case does.
const HIDDEN_VARIABLES: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENROUTER_API_KEY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// A process that said it is ready.
#[derive(Debug)]
pub struct Shim {
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    shared: Arc<Shared>,
    next_step: AtomicU64,
    next_handler: AtomicU64,
    child: tokio::sync::Mutex<Child>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stderr: Mutex<VecDeque<u8>>,
    stderr_ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Result<Outcome, String>>>,
    /// Why no further answer counts, once that is so.
    broken: Option<String>,
    /// True once a case failed because of that.
    blamed: bool,
}

/// A lock that outlives a panic of another task: the data is a plain collection, never half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shim {
    /// Starts the process and waits at most `limit` until it is ready.
    ///
    /// The error is the reason why this language cannot run.
    pub async fn start(
        port: &Port,
        env: &IndexMap<String, String>,
        limit: Duration,
    ) -> Result<Self, String> {
        let (program, args) = port.command.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for name in HIDDEN_VARIABLES {
            command.env_remove(name);
        }
        command.envs(&port.env).envs(env);
        if let Some(cwd) = &port.cwd {
            command.current_dir(cwd);
        }
        let mut child = command
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("{program}: no pipes"));
        };
        let shared = Arc::new(Shared::default());
        tokio::spawn(drain(stderr, Arc::clone(&shared)));
        let mut lines = BufReader::new(stdout).lines();
        match tokio::time::timeout(limit, lines.next_line()).await {
            Ok(Ok(Some(line))) => check_ready(&line, &port.name)?,
            Ok(_) => {
                last_words(&shared).await;
                return Err(with_stderr("it ended before it was ready".into(), &shared));
            }
            Err(_) => {
                return Err(with_stderr(
                    format!("not ready after {} ms", limit.as_millis()),
                    &shared,
                ));
            }
        }
        tokio::spawn(read_answers(lines, Arc::clone(&shared)));
        Ok(Self {
            stdin: tokio::sync::Mutex::new(Some(stdin)),
            shared,
            next_step: AtomicU64::new(1),
            next_handler: AtomicU64::new(1),
            child: tokio::sync::Mutex::new(child),
        })
    }

    /// A number for a host function, unique in this process.
    pub fn handler_number(&self) -> u64 {
        self.next_handler.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a step; gives its number and where its answer will arrive.
    pub async fn send(
        &self,
        op: &str,
        args: &Value,
        handlers: Map<String, Value>,
    ) -> (u64, Answer) {
        let step = self.next_step.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = lock(&self.shared.state);
            if let Some(reason) = state.broken.clone() {
                state.blamed = true;
                let _ = sender.send(Err(reason));
                return (step, receiver);
            }
            state.waiting.insert(step, sender);
        }
        let mut line = json!({"step": step, "op": op, "args": args});
        if !handlers.is_empty() {
            line["handlers"] = Value::Object(handlers);
        }
        let mut stdin = self.stdin.lock().await;
        if let Some(stdin) = stdin.as_mut() {
            // A failure here means the process is gone; the reader says so with its last words.
            let _ = stdin.write_all(format!("{line}\n").as_bytes()).await;
        }
        (step, receiver)
    }

    /// Takes the process out of use because it failed a case: it gets no further one.
    pub fn condemn(&self, reason: &str) {
        lock(&self.shared.state)
            .broken
            .get_or_insert_with(|| reason.to_owned());
    }

    /// True when no further case may be given to it.
    pub fn is_broken(&self) -> bool {
        lock(&self.shared.state).broken.is_some()
    }

    /// What it last wrote to stderr.
    pub fn stderr(&self) -> String {
        stderr_text(&self.shared)
    }

    /// Closes its input and waits until it ended; the error says what was wrong with the end.
    pub async fn finish(&self, limit: Duration) -> Result<(), String> {
        let (broken, blamed) = {
            let state = lock(&self.shared.state);
            (state.broken.clone(), state.blamed)
        };
        self.stdin.lock().await.take();
        let mut child = self.child.lock().await;
        if let Some(reason) = broken {
            let _ = child.kill().await;
            return if blamed {
                Ok(())
            } else {
                Err(with_stderr(reason, &self.shared))
            };
        }
        let result = match tokio::time::timeout(limit, child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!(
                "the shim ended with {status} after its input closed"
            )),
            Ok(Err(error)) => Err(format!("the shim cannot be waited for: {error}")),
            Err(_) => {
                let _ = child.kill().await;
                Err(format!(
                    "the shim did not end within {} ms after its input closed",
                    limit.as_millis()
                ))
            }
        };
        last_words(&self.shared).await;
        result.map_err(|text| with_stderr(text, &self.shared))
    }
}

fn check_ready(line: &str, name: &str) -> Result<(), String> {
    let hello: Value =
        serde_json::from_str(line).map_err(|_| format!("its first line is not JSON: {line:?}"))?;
    if let Some(reason) = hello["unavailable"].as_str() {
        return Err(reason.to_owned());
    }
    match hello["ready"]["language"].as_str() {
        Some(language) if language == name => Ok(()),
        Some(language) => Err(format!("it says it is the shim of {language}")),
        None => Err(format!(
            "its first line is neither ready nor unavailable: {line:?}"
        )),
    }
}

async fn read_answers(mut lines: Lines<BufReader<ChildStdout>>, shared: Arc<Shared>) {
    let reason = loop {
        match lines.next_line().await {
            Ok(Some(line)) => {
                if let Err(reason) = take_answer(&line, &shared) {
                    break reason;
                }
            }
            Ok(None) => {
                last_words(&shared).await;
                break "the shim died".to_owned();
            }
            Err(error) => break format!("the shim's output cannot be read: {error}"),
        }
    };
    let mut state = lock(&shared.state);
    let reason = state.broken.get_or_insert(reason).clone();
    let waiting: Vec<_> = state.waiting.drain().collect();
    state.blamed |= !waiting.is_empty();
    drop(state);
    for (_, sender) in waiting {
        let _ = sender.send(Err(with_stderr(reason.clone(), &shared)));
    }
}

/// Hands an answer to whoever waits for it; the error is a breach of the protocol, after which nothing can be believed.
fn take_answer(line: &str, shared: &Shared) -> Result<(), String> {
    let breach = |text: &str| format!("the shim broke the protocol: {text}: {line}");
    let Ok(Value::Object(mut answer)) = serde_json::from_str(line) else {
        return Err(breach("a line that is not an object"));
    };
    let step = answer
        .remove("step")
        .and_then(|step| step.as_u64())
        .ok_or_else(|| breach("no step"))?;
    let outcome = match (answer.remove("ok"), answer.remove("error")) {
        (Some(value), None) => Outcome::Ok(value),
        (None, Some(error)) => Outcome::Error {
            error,
            partial: answer.remove("partial"),
        },
        _ => return Err(breach("neither or both of ok and error")),
    };
    if let Some(key) = answer.keys().next() {
        return Err(breach(&format!("unknown key {key:?}")));
    }
    let sender = lock(&shared.state).waiting.remove(&step);
    let sender = sender.ok_or_else(|| breach("an answer nobody waits for"))?;
    // The case may have given up on it.
    let _ = sender.send(Ok(outcome));
    Ok(())
}

const STDERR_KEPT: usize = 8 * 1024;

async fn drain(mut stderr: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = lock(&shared.stderr);
        kept.extend(&buffer[..count]);
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }
    shared.stderr_ended.send_replace(true);
}

/// Waits until stderr ended, or not much longer: a grandchild may hold the pipe open.
async fn last_words(shared: &Shared) {
    let mut ended = shared.stderr_ended.subscribe();
    let _ = tokio::time::timeout(Duration::from_secs(1), ended.wait_for(|ended| *ended)).await;
}

fn stderr_text(shared: &Shared) -> String {
    let kept: Vec<u8> = lock(&shared.stderr).iter().copied().collect();
    String::from_utf8_lossy(&kept).into_owned()
}

fn with_stderr(reason: String, shared: &Shared) -> String {
    match stderr_text(shared).trim_end() {
        "" => reason,
        text => format!("{reason}\n  stderr: {}", text.replace('\n', "\n          ")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Port {
        serde_json::from_value(json!({"name": "sh", "command": ["sh", "-c", script]})).unwrap()
    }

    #[tokio::test]
    async fn a_death_no_case_suffered_from_is_told_at_the_end() {
        let port = shell(r#"echo '{"ready": {"language": "sh", "version": "0"}}'; echo bye >&2"#);
        let limit = Duration::from_secs(10);
        let shim = Shim::start(&port, &IndexMap::new(), limit).await.unwrap();
        while !shim.is_broken() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            shim.finish(limit).await,
            Err("the shim died\n  stderr: bye".into())
        );
    }
}
