//! The fixtures as seen by the core's tests: one program per test binary, one scenario per test.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use toolspan::tool::IntoToolResult;
use toolspan::{Client, ClientBuilder, Style, Tool, ToolContext, Toolkit};

/// A running program. It ends when this process does, because its stdin closes then.
struct Program {
    _child: Child,
    control: String,
}

fn control() -> &'static str {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let mut child = Command::new(program())
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        let hello: Value = serde_json::from_str(&line).unwrap();
        Program {
            _child: child,
            control: hello["control"].as_str().unwrap().to_owned(),
        }
    });
    &program.control
}

/// The program lies beside the folder of this test binary. Cargo does not build another package's program for a test, so
/// that is asked for here; it takes no time when there is nothing to do.
fn program() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "toolspan-fixtures"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success(), "the fixtures do not build");
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    folder.join("toolspan-fixtures")
}

/// Servers of one test.
pub struct Scenario {
    http: reqwest::Client,
    address: String,
    answer: Value,
}

impl Scenario {
    pub async fn new(script: Value) -> Self {
        let control = tokio::task::spawn_blocking(control).await.unwrap();
        // Without TLS there is nothing to choose a provider for.
        let http = toolspan::http::client(std::time::Duration::from_secs(10)).unwrap();
        let answer = http
            .post(format!("{control}/scenarios"))
            .body(script.to_string())
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(status, 200, "{answer}");
        let id = answer["id"].as_str().unwrap();
        Scenario {
            address: format!("{control}/scenarios/{id}"),
            http,
            answer,
        }
    }

    /// One upstream, `main`, that gives these replies.
    pub async fn llm(style: &str, replies: Value) -> Self {
        Scenario::new(json!({"llm": {"main": {"style": style, "replies": replies}}})).await
    }

    pub fn base_url(&self) -> &str {
        self.answer["llm"]["main"]["baseUrl"].as_str().unwrap()
    }

    /// A client of `main` that does not wait long between attempts.
    pub fn client(&self, style: Style) -> ClientBuilder {
        Client::builder(self.base_url(), style, "m")
            .api_key("sk-secret-key")
            .retry_base(std::time::Duration::from_millis(1))
    }

    pub async fn seen(&self) -> Value {
        let answer = self.http.get(format!("{}/seen", self.address));
        let answer = answer.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["llm"]["main"].clone()
    }

    /// The bodies that `main` got, as text.
    pub async fn bodies(&self) -> Vec<String> {
        let seen = self.seen().await;
        let requests = seen["requests"].as_array().unwrap();
        let body = |request: &Value| request["body"].as_str().unwrap().to_owned();
        requests.iter().map(body).collect()
    }

    /// The messages of the n-th body.
    pub async fn messages(&self, request: usize) -> Value {
        let body: Value = serde_json::from_str(&self.bodies().await[request]).unwrap();
        body["messages"].clone()
    }

    pub async fn wait(&self, until: Value) {
        let answer = self
            .http
            .post(format!("{}/wait", self.address))
            .body(json!({"until": until}).to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    }

    pub async fn open(&self, gate: &str) {
        let answer = self.http.post(format!("{}/gates/{gate}", self.address));
        assert_eq!(answer.send().await.unwrap().status(), 200);
    }
}

/// A tool that takes anything.
pub fn tool<F, Fut>(name: &str, function: F) -> Tool
where
    F: Fn(toolspan::Arguments, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
{
    let schema = json!({"type": "object", "properties": {}});
    Tool::new(name, "d", schema, function)
}

/// A tool that gives its arguments back.
pub fn echo(name: &str) -> Tool {
    tool(name, |args, _| async move { args.raw().get().to_owned() })
}

pub async fn toolkit(tools: impl IntoIterator<Item = Tool>) -> Toolkit {
    Toolkit::builder().tools(tools).build().await.unwrap()
}

/// JSON text as a value.
pub fn value<T: serde::Serialize>(of: &T) -> Value {
    serde_json::to_value(of).unwrap()
}
