//! Starts the fixtures program and asks it things; see `fixtures/README.md`.
#![allow(dead_code, reason = "every test crate uses its own part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use toolspan::log::{LogLevel, LogRecord, Logger};

/// A scenario in a fixtures process of its own.
pub struct Scenario {
    child: Child,
    http: reqwest::Client,
    base: String,
    servers: Value,
}

impl Scenario {
    /// Starts MCP servers from their scripts.
    pub async fn mcp(scripts: Value) -> Self {
        let mut child = Command::new(program())
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo build -p toolspan-fixtures comes first");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped"))
            .read_line(&mut line)
            .expect("the fixtures say where they are");
        let hello: Value = serde_json::from_str(&line).expect("the first line is JSON");
        let control = hello["control"].as_str().expect("control").to_owned();
        let http = toolspan::http::client(std::time::Duration::from_secs(10)).expect("a client");
        let mut scenario = Scenario {
            child,
            http,
            base: format!("{control}/scenarios"),
            servers: Value::Null,
        };
        let made = scenario.post("", json!({"mcp": scripts})).await;
        scenario.base = format!("{}/{}", scenario.base, made["id"].as_str().expect("id"));
        scenario.servers = made["mcp"].clone();
        scenario
    }

    pub fn url(&self, server: &str) -> String {
        self.servers[server]["url"]
            .as_str()
            .expect("url")
            .to_owned()
    }

    pub fn command(&self, server: &str) -> Value {
        self.servers[server]["command"].clone()
    }

    /// Returns once the condition holds; fails the test after ten seconds.
    pub async fn wait(&self, until: Value) {
        self.post("/wait", json!({"until": until})).await;
    }

    pub async fn open(&self, gate: &str) {
        self.post(&format!("/gates/{gate}"), json!({})).await;
    }

    pub async fn restart(&self, server: &str) {
        self.post(&format!("/restart/{server}"), json!({})).await;
    }

    /// What one server saw.
    pub async fn seen(&self, server: &str) -> Value {
        let answer = self.http.get(format!("{}/seen", self.base)).send().await;
        let text = answer.expect("seen").text().await.expect("seen");
        let seen: Value = serde_json::from_str(&text).expect("seen is JSON");
        seen["mcp"][server].clone()
    }

    /// The methods one server saw, in order.
    pub async fn methods(&self, server: &str) -> Vec<String> {
        let seen = self.seen(server).await;
        let messages = seen["messages"].as_array().expect("messages");
        messages
            .iter()
            .filter_map(|message| message["method"].as_str().map(str::to_owned))
            .collect()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self
            .http
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("the control answers");
        let status = answer.status();
        let text = answer.text().await.expect("the control answers");
        assert!(status.is_success(), "{path}: {status}: {text:.300}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        // Closing stdin ends it; waiting leaves no zombie behind.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    let here = std::env::current_exe().expect("a path");
    let target = here
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target directory");
    target.join(format!("toolspan-fixtures{}", std::env::consts::EXE_SUFFIX))
}

/// Log records that a test looks at afterwards.
#[derive(Clone, Default)]
pub struct Records(Arc<Mutex<Vec<LogRecord>>>);

impl Records {
    pub fn logger(&self) -> Logger {
        let records = self.0.clone();
        Logger::new(
            Arc::new(move |record| records.lock().expect("records").push(record)),
            LogLevel::Debug,
        )
    }

    pub fn messages(&self, level: LogLevel) -> Vec<String> {
        let records = self.0.lock().expect("records");
        records
            .iter()
            .filter(|record| record.level == level)
            .map(|record| record.message.clone())
            .collect()
    }

    /// Everything, as one text.
    pub fn text(&self) -> String {
        serde_json::to_string(&*self.0.lock().expect("records")).expect("records are JSON")
    }
}
