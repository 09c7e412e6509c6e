//! The shim of the Rust column: drives the crate's public API as the runner says (`conformance/README.md`, "The shim").

mod behaviour;
#[macro_use]
mod options;

use behaviour::Host;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolspan::mcp::{ListOptions, list_mcp_tools};
use toolspan::{
    Client, Conversation, Counters, Error, ErrorCode, Provider, ToolContext, Toolkit, Transcript,
};

/// What a step gives back: the `ok` value, or the error and what was there before it.
type Outcome = Result<Value, (Error, Option<Value>)>;

#[derive(Deserialize)]
struct Step {
    step: u64,
    op: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    handlers: HashMap<u64, behaviour::Handler>,
}

/// A step that was started: how to cancel it, and its outcome once it has one.
struct Running {
    cancel: CancellationToken,
    outcome: watch::Receiver<Option<Outcome>>,
}

#[derive(Default)]
struct Objects {
    next: u64,
    toolkits: HashMap<u64, Toolkit>,
    clients: HashMap<u64, Client>,
    /// Still in `clients`, so that their use can be tried.
    closed_clients: HashSet<u64>,
    conversations: HashMap<u64, Conversation>,
    steps: HashMap<u64, Running>,
}

struct Shim {
    objects: Mutex<Objects>,
    host: Arc<Host>,
    counters: Counters,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime starts").block_on(async {
        say(&json!({"ready": {"language": "rust", "version": toolspan::VERSION}}));
        let shim = Arc::new(Shim {
            objects: Mutex::default(),
            host: Arc::default(),
            counters: Counters::default(),
        });
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let step: Step = serde_json::from_str(&line).expect("the runner speaks the protocol");
            shim.clone().start(step);
        }
    });
}

fn say(line: &Value) {
    println!("{line}");
}

impl Shim {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a step beside the others and says its outcome.
    fn start(self: Arc<Self>, step: Step) {
        self.host.learn(step.handlers);
        let cancel = CancellationToken::new();
        let (tell, outcome) = watch::channel(None);
        self.objects().steps.insert(
            step.step,
            Running {
                cancel: cancel.clone(),
                outcome,
            },
        );
        tokio::spawn(async move {
            let outcome = self.perform(&step.op, step.args, cancel).await;
            say(&match &outcome {
                Ok(value) => json!({"step": step.step, "ok": value}),
                Err((error, None)) => json!({"step": step.step, "error": error.record()}),
                Err((error, Some(partial))) => {
                    json!({"step": step.step, "error": error.record(), "partial": partial})
                }
            });
            tell.send_replace(Some(outcome));
        });
    }

    async fn perform(&self, op: &str, args: Value, cancel: CancellationToken) -> Outcome {
        match op {
            "await" => return self.outcome_of(&args).await,
            "client.stream" => return self.stream(&args, cancel).await,
            _ => {}
        }
        self.simple(op, args, cancel)
            .await
            .map_err(|error| (error, None))
    }

    async fn simple(
        &self,
        op: &str,
        args: Value,
        cancel: CancellationToken,
    ) -> Result<Value, Error> {
        Ok(match op {
            "version" => json!({"version": toolspan::VERSION}),
            "counters" => {
                let objects = self.objects();
                json!({"openToolkits": self.counters.open_toolkits(), "connectedServers": self.counters.connected_servers(),
                    "openClients": objects.clients.len() - objects.closed_clients.len(), "operations": 0, "openStreams": 0})
            }
            "cancel" => {
                let step = number(&args, "step")?;
                if let Some(running) = self.objects().steps.get(&step) {
                    running.cancel.cancel();
                }
                json!({})
            }
            "host.calls" => self.host.calls(),
            "host.logs" => self.host.logs(),
            "host.metrics" => self.host.metrics(),
            "host.reset" => self.host.reset(),
            "toolkit.create" => {
                let builder =
                    options::toolkit(&args["options"], &self.host)?.counters(self.counters.clone());
                let toolkit = builder.cancel(cancel).build().await?;
                let mut objects = self.objects();
                objects.next += 1;
                let id = objects.next;
                objects.toolkits.insert(id, toolkit);
                json!({"toolkit": id})
            }
            "toolkit.tools" => {
                let tools: Vec<_> = self
                    .toolkit(&args)?
                    .tools()
                    .iter()
                    .map(|tool| tool.info().clone())
                    .collect();
                json!({"tools": tools})
            }
            "toolkit.get" => {
                let tool = self.toolkit(&args)?.get(&text(&args, "name")?);
                json!({"tool": tool.map(|tool| tool.info().clone())})
            }
            "toolkit.status" => json!({"servers": self.toolkit(&args)?.status()}),
            "toolkit.register" => {
                let tool = options::tool(&args["tool"], "tool", &self.host)?;
                json!({"registered": self.toolkit(&args)?.register(tool)?})
            }
            "toolkit.adapt" => {
                let provider: Provider = serde_json::from_value(args["provider"].clone())
                    .map_err(|e| Error::argument("provider", e.to_string()))?;
                json!(self.toolkit(&args)?.adapt(provider))
            }
            "toolkit.execute" => {
                let raw = RawValue::from_string(args["args"].to_string()).map_err(internal)?;
                let context = ToolContext {
                    cancel,
                    timeout: millis(&args, "timeoutMs"),
                    call_id: None,
                };
                json!(
                    self.toolkit(&args)?
                        .execute_json(&text(&args, "name")?, Some(raw.into()), context)
                        .await?
                )
            }
            "toolkit.close" => {
                self.toolkit(&args)?.close().await;
                json!({})
            }
            "mcp.list" => {
                let config = options::mcp(&args)?
                    .unwrap_or_else(|| json!({}).into())
                    .read()?;
                let options = ListOptions {
                    cancel,
                    timeout: millis(&args, "timeoutMs"),
                    logger: self.host.logger(),
                };
                json!(list_mcp_tools(config, options).await?)
            }
            "client.create" => {
                let client = options::client(&args["options"], &self.host)?.build()?;
                let mut objects = self.objects();
                objects.next += 1;
                let id = objects.next;
                objects.clients.insert(id, client);
                json!({"client": id})
            }
            "client.close" => {
                self.client(&args)?.close();
                self.objects()
                    .closed_clients
                    .insert(number(&args, "client")?);
                json!({})
            }
            "client.metrics" => json!({"text": self.client(&args)?.metrics()}),
            "client.run" | "client.ask" => {
                let run = self
                    .client(&args)?
                    .run(options::prompt(&args)?)
                    .cancel(cancel);
                json!(run_options!(run, &args, self.optional_toolkit(&args)?).await?)
            }
            "conversation.create" => {
                let mut conversation = self.client(&args)?.conversation();
                if let Some(id) = args["id"].as_str() {
                    conversation = conversation.id(id);
                }
                if let Some(toolkit) = self.optional_toolkit(&args)? {
                    conversation = conversation.toolkit(&toolkit);
                }
                let mut objects = self.objects();
                objects.next += 1;
                let id = objects.next;
                objects.conversations.insert(id, conversation);
                json!({"conversation": id})
            }
            "conversation.send" => json!(
                self.conversation(&args)?
                    .send(options::prompt(&args)?)
                    .cancel(cancel)
                    .await?
            ),
            "conversation.messages" => {
                json!({"messages": self.conversation(&args)?.messages().await?})
            }
            "conversation.reset" => {
                self.conversation(&args)?.reset().await?;
                json!({})
            }
            "store.get" => {
                let store = self.client(&args)?.conversation_store();
                json!({"transcript": store.get(&text(&args, "id")?).await?})
            }
            "store.save" => {
                let store = self.client(&args)?.conversation_store();
                let transcript: Transcript = options::read(&args["messages"], "messages")?;
                store.save(&text(&args, "id")?, transcript).await?;
                json!({})
            }
            other => return Err(Error::argument("op", format!("unknown operation {other}"))),
        })
    }

    async fn outcome_of(&self, args: &Value) -> Outcome {
        let step = number(args, "step").map_err(|e| (e, None))?;
        let receiver = self
            .objects()
            .steps
            .get(&step)
            .map(|running| running.outcome.clone());
        let mut receiver = receiver.ok_or_else(|| (missing("step", step), None))?;
        match receiver.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Ok(Value::Null)),
            Err(_) => Err((missing("step", step), None)),
        }
    }

    /// Collects the events; `stopAfter` leaves the loop early.
    async fn stream(&self, args: &Value, cancel: CancellationToken) -> Outcome {
        let plain = |error| (error, None);
        let client = self.client(args).map_err(plain)?;
        let prompt = options::prompt(args).map_err(plain)?;
        let toolkit = self.optional_toolkit(args).map_err(plain)?;
        let run = client.stream(prompt).cancel(cancel);
        let run = (|| Ok(run_options!(run, args, toolkit)))().map_err(plain)?;
        let mut stream = run.start();
        let stop_after = args["stopAfter"].as_u64().unwrap_or(u64::MAX);
        let mut events: Vec<Value> = Vec::new();
        while (events.len() as u64) < stop_after
            && let Some(event) = StreamExt::next(&mut stream).await
        {
            match event {
                Ok(event) => events.push(json!(event)),
                Err(error) => return Err((error, Some(json!({"events": events})))),
            }
        }
        Ok(json!({"events": events}))
    }

    fn toolkit(&self, args: &Value) -> Result<Toolkit, Error> {
        let id = number(args, "toolkit")?;
        self.objects()
            .toolkits
            .get(&id)
            .cloned()
            .ok_or_else(|| missing("toolkit", id))
    }

    fn optional_toolkit(&self, args: &Value) -> Result<Option<Toolkit>, Error> {
        if args["toolkit"].is_null() {
            Ok(None)
        } else {
            self.toolkit(args).map(Some)
        }
    }

    fn client(&self, args: &Value) -> Result<Client, Error> {
        let id = number(args, "client")?;
        self.objects()
            .clients
            .get(&id)
            .cloned()
            .ok_or_else(|| missing("client", id))
    }

    fn conversation(&self, args: &Value) -> Result<Conversation, Error> {
        let id = number(args, "conversation")?;
        self.objects()
            .conversations
            .get(&id)
            .cloned()
            .ok_or_else(|| missing("conversation", id))
    }
}

fn missing(kind: &str, id: u64) -> Error {
    Error::new(ErrorCode::NotFound, format!("no {kind} {id}"))
}

fn internal(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, error.to_string())
}

fn number(args: &Value, key: &str) -> Result<u64, Error> {
    args[key]
        .as_u64()
        .ok_or_else(|| Error::argument(key, "a number is needed"))
}

fn text(args: &Value, key: &str) -> Result<String, Error> {
    args[key]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::argument(key, "a string is needed"))
}

fn millis(args: &Value, key: &str) -> Option<Duration> {
    args[key].as_u64().map(Duration::from_millis)
}
