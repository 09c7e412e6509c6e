//! The floor: the bytes of one run and nothing else. Blocking sockets and pipes, no JSON, no TLS, no runtime.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use toolspan_bench::{Plan, Times};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let plan = Plan::from_env()?;
    let mut model = Model::connect(&plan)?;
    let mut server = Server::start(&plan.command)?;
    let mut times = Times::default();
    for run in 0..plan.warm_up + plan.runs {
        let start = Instant::now();
        model.post(0)?;
        server.two_calls()?;
        model.post(1)?;
        if run >= plan.warm_up {
            times.add(start);
        }
    }
    println!("{}", serde_json::to_string(&times.report())?);
    server.child.kill()?;
    server.child.wait()?;
    Ok(())
}

/// One kept-alive connection and two prepared requests.
struct Model {
    stream: BufReader<TcpStream>,
    requests: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Model {
    fn connect(plan: &Plan) -> Fallible<Self> {
        let host = plan.base_url.trim_start_matches("http://");
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        let request = |body: &String| {
            format!("POST /chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        Ok(Model {
            stream: BufReader::new(stream),
            requests: plan.bodies.iter().map(request).collect(),
            body: Vec::new(),
        })
    }

    /// Sends a request and reads the answer to its last byte.
    fn post(&mut self, index: usize) -> Fallible<()> {
        self.stream.get_mut().write_all(&self.requests[index])?;
        let mut length = None;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err("the model closed the connection".into());
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>()?);
            }
            if line == "\r\n" {
                break;
            }
        }
        self.body.resize(length.ok_or("a content length")?, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(())
    }
}

/// The MCP server and its pipes.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: String,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":2}}}"#;

impl Server {
    fn start(command: &[String]) -> Fallible<Self> {
        let (program, arguments) = command.split_first().ok_or("a command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().ok_or("stdin")?;
        let from = BufReader::new(child.stdout.take().ok_or("stdout")?);
        let mut server = Server {
            child,
            to,
            from,
            line: String::new(),
        };
        server.send(INITIALIZE)?;
        server.read()?;
        server.send(INITIALIZED)?;
        Ok(server)
    }

    fn two_calls(&mut self) -> Fallible<()> {
        self.send(CALL)?;
        self.send(CALL)?;
        self.read()?;
        self.read()
    }

    fn send(&mut self, message: &str) -> Fallible<()> {
        self.to.write_all(format!("{message}\n").as_bytes())?;
        Ok(())
    }

    fn read(&mut self) -> Fallible<()> {
        self.line.clear();
        if self.from.read_line(&mut self.line)? == 0 {
            Err("the server ended".into())
        } else {
            Ok(())
        }
    }
}
