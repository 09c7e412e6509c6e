//! The fixtures program, started and asked over its control API.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Why the peer could not be used.
pub type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// A running `toolspan-fixtures serve`; ends with this value.
pub struct Peer {
    child: Child,
    host: String,
}

impl Peer {
    /// Starts the program and reads its address.
    ///
    /// # Errors
    /// When it does not start or does not say where it is.
    pub fn start(program: &Path) -> Fallible<Self> {
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("stdout")?).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)?;
        let control = told["control"].as_str().ok_or("a control address")?;
        Ok(Peer {
            child,
            host: control.trim_start_matches("http://").to_owned(),
        })
    }

    /// One request to the control API.
    ///
    /// # Errors
    /// When the answer is not 2xx JSON.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Fallible<Value> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.host)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("an HTTP answer")?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(format!(
                "{method} {path}: {} {body}",
                head.lines().next().unwrap_or_default()
            )
            .into());
        }
        if body.is_empty() {
            Ok(Value::Null)
        } else {
            Ok(serde_json::from_str(body)?)
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Closing its stdin asks it to end; a peer that does not is not left behind.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
