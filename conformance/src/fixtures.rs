//! The fixtures process and its control API (`fixtures/README.md`).
//!
//! One request a connection over plain HTTP/1.1 on loopback: that needs no HTTP library, no TLS provider and no pool.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};

use crate::case;

/// A running fixtures process; it ends when this value is dropped.
#[derive(Debug)]
pub struct Server {
    control: Control,
    _stdin: ChildStdin,
    _child: Child,
}

/// The address of the control API.
#[derive(Debug, Clone)]
pub struct Control {
    address: String,
    limit: Duration,
}

/// A scenario and the addresses of its servers.
#[derive(Debug)]
pub struct Scenario {
    control: Control,
    id: String,
    /// `{id, mcp, llm}` as the fixtures answered.
    pub answer: Value,
}

impl Server {
    /// Starts `program serve` and waits at most `limit` for its address.
    pub async fn start(program: &Path, limit: Duration) -> Result<Self, String> {
        let fail = |text: String| format!("fixtures {}: {text}", program.display());
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                fail(format!(
                    "{error}; build it with `cargo build -p toolspan-fixtures`"
                ))
            })?;
        let stdin = child.stdin.take().ok_or_else(|| fail("no stdin".into()))?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| fail("no stdout".into()))?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(limit, lines.next_line())
            .await
            .map_err(|_| fail("said no address in time".into()))?
            .map_err(|error| fail(error.to_string()))?
            .ok_or_else(|| fail("ended at once".into()))?;
        // What it prints later goes nowhere, but a full pipe must not stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let hello: Value =
            serde_json::from_str(&line).map_err(|error| fail(format!("{error} in {line:?}")))?;
        let address = hello["control"]
            .as_str()
            .and_then(|url| url.strip_prefix("http://"))
            .ok_or_else(|| fail(format!("no address in {line:?}")))?
            .trim_end_matches('/')
            .to_owned();
        Ok(Self {
            control: Control { address, limit },
            _stdin: stdin,
            _child: child,
        })
    }

    /// The control API.
    pub fn control(&self) -> Control {
        self.control.clone()
    }
}

impl Control {
    /// Creates the servers of a case.
    pub async fn create(&self, fixtures: &case::Fixtures) -> Result<Scenario, String> {
        let body = json!({"mcp": fixtures.mcp, "llm": fixtures.llm});
        let answer = self.expect_ok("POST", "/scenarios", Some(&body)).await?;
        let id = match &answer["id"] {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return Err(format!("fixtures: a scenario without id: {answer}")),
        };
        Ok(Scenario {
            control: self.clone(),
            id,
            answer,
        })
    }

    async fn expect_ok(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        match self.request(method, path, body).await? {
            (200..=299, text) if text.is_empty() => Ok(Value::Null),
            (200..=299, text) => serde_json::from_str(&text)
                .map_err(|error| format!("fixtures: {error} in {text:?}")),
            (status, text) => Err(format!("fixtures: {method} {path}: {status} {text}")),
        }
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, String), String> {
        tokio::time::timeout(self.limit, self.exchange(method, path, body))
            .await
            .map_err(|_| {
                format!(
                    "fixtures: {method} {path}: no answer in {} ms",
                    self.limit.as_millis()
                )
            })?
            .map_err(|error| format!("fixtures: {method} {path}: {error}"))
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(u16, String)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        parse_answer(&answer).ok_or_else(|| std::io::Error::other("an answer that is not HTTP"))
    }
}

fn parse_answer(bytes: &[u8]) -> Option<(u16, String)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let chunked = head
        .lines()
        .any(|line| line.to_ascii_lowercase().replace(' ', "") == "transfer-encoding:chunked");
    let body = &bytes[end + 4..];
    let body = if chunked {
        dechunk(body)?
    } else {
        body.to_vec()
    };
    Some((status, String::from_utf8(body).ok()?))
}

fn dechunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = bytes.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..line])
            .ok()?
            .split(';')
            .next()?
            .trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let start = line + 2;
        body.extend_from_slice(bytes.get(start..start + size)?);
        bytes = bytes.get(start + size + 2..)?;
    }
}

impl Scenario {
    /// What the servers saw.
    pub async fn seen(&self) -> Result<Value, String> {
        self.control
            .expect_ok("GET", &format!("/scenarios/{}/seen", self.id), None)
            .await
    }

    /// Waits until a condition holds; the error says what is the case instead.
    pub async fn wait(&self, condition: &Value) -> Result<(), String> {
        let mut until = condition.clone();
        let limit = self.control.limit.as_millis();
        // A little less than our own patience, so that the answer that explains it arrives.
        let mut body = json!({"timeoutMs": limit * 9 / 10});
        if let Some(timeout) = until
            .as_object_mut()
            .and_then(|map| map.remove("timeoutMs"))
        {
            body["timeoutMs"] = timeout;
        }
        body["until"] = until;
        self.control
            .expect_ok("POST", &format!("/scenarios/{}/wait", self.id), Some(&body))
            .await
            .map(drop)
    }

    /// Opens a gate for good.
    pub async fn open_gate(&self, name: &str) -> Result<(), String> {
        self.control
            .expect_ok(
                "POST",
                &format!("/scenarios/{}/gates/{name}", self.id),
                None,
            )
            .await
            .map(drop)
    }

    /// Makes an MCP server forget its sessions.
    pub async fn restart(&self, name: &str) -> Result<(), String> {
        self.control
            .expect_ok(
                "POST",
                &format!("/scenarios/{}/restart/{name}", self.id),
                None,
            )
            .await
            .map(drop)
    }

    /// Ends the servers.
    pub async fn drop_servers(&self) -> Result<(), String> {
        self.control
            .expect_ok("DELETE", &format!("/scenarios/{}", self.id), None)
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_answer_is_read() {
        let bytes = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse_answer(bytes), Some((408, "{}".into())));
    }

    #[test]
    fn a_chunked_answer_is_read() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
        assert_eq!(parse_answer(bytes), Some((200, "{\"a\":1}".into())));
    }

    #[test]
    fn an_answer_cut_short_is_none() {
        assert_eq!(
            parse_answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{}"),
            None
        );
    }
}
