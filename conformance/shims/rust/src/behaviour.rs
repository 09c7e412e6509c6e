//! The host's functions: what the case says they do, done in Rust, and a record of every call.

use async_trait::async_trait;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolspan::http::{HttpRequest, HttpResponse, HttpTransport, ReqwestTransport};
use toolspan::log::{LogLevel, Logger};
use toolspan::metrics::{MetricEvent, MetricSink};
use toolspan::tool::{Execute, IntoToolResult};
use toolspan::{
    Arguments, ConversationStore, Error, ErrorCode, Json, ToolContext, ToolResult, Transcript,
};

type Result<T> = std::result::Result<T, Error>;

/// What the runner says about one number.
#[derive(Clone, Deserialize)]
pub struct Handler {
    behaviour: Behaviour,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Behaviour {
    Return(Value),
    Echo(IgnoredAny),
    Throw(String),
    Hang(IgnoredAny),
    Edit(Edit),
    Sequence(Vec<Behaviour>),
    Http(IgnoredAny),
    Store(IgnoredAny),
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Edit {
    set: Map<String, Value>,
    drop: Vec<String>,
    append_to_last_user: Option<String>,
}

#[derive(Default)]
pub struct Host {
    handlers: Mutex<HashMap<u64, Handler>>,
    calls: Mutex<Vec<Value>>,
    logs: Arc<Mutex<Vec<Value>>>,
    metrics: Arc<Mutex<Vec<Value>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    pub fn learn(&self, handlers: HashMap<u64, Handler>) {
        lock(&self.handlers).extend(handlers);
    }

    pub fn calls(&self) -> Value {
        lock(&self.calls).clone().into()
    }

    pub fn logs(&self) -> Value {
        lock(&self.logs).clone().into()
    }

    pub fn metrics(&self) -> Value {
        lock(&self.metrics).clone().into()
    }

    pub fn reset(&self) -> Value {
        lock(&self.calls).clear();
        lock(&self.logs).clear();
        lock(&self.metrics).clear();
        json!({})
    }

    pub fn logger(&self) -> Logger {
        let logs = self.logs.clone();
        Logger::new(
            Arc::new(move |record| lock(&logs).push(json!(record))),
            LogLevel::Debug,
        )
    }

    pub fn metric_sink(&self, _handler: u64) -> MetricSink {
        let metrics = self.metrics.clone();
        Arc::new(move |event: MetricEvent| lock(&metrics).push(json!(event)))
    }

    pub fn tool(self: &Arc<Self>, handler: u64) -> Arc<dyn Execute> {
        Arc::new(Function {
            host: self.clone(),
            handler,
        })
    }

    pub fn store(self: &Arc<Self>, handler: u64) -> Arc<dyn ConversationStore> {
        Arc::new(Store {
            host: self.clone(),
            handler,
            saved: Mutex::default(),
        })
    }

    pub fn transport(self: &Arc<Self>, handler: u64) -> Result<Arc<dyn HttpTransport>> {
        Ok(Arc::new(Transport {
            host: self.clone(),
            handler,
            inner: ReqwestTransport::new()?,
        }))
    }

    /// Records the call and does what the case says.
    async fn call(&self, handler: u64, kind: &str, payload: Value) -> Result<Value> {
        let nth = {
            let mut calls = lock(&self.calls);
            calls.push(json!({"handler": handler, "kind": kind, "payload": payload}));
            calls
                .iter()
                .filter(|call| call["handler"] == handler)
                .count()
                - 1
        };
        let behaviour = lock(&self.handlers)
            .get(&handler)
            .map(|h| h.behaviour.clone());
        let mut behaviour = behaviour
            .ok_or_else(|| Error::new(ErrorCode::NotFound, format!("no handler {handler}")))?;
        if let Behaviour::Sequence(all) = &behaviour {
            behaviour = all
                .get(nth)
                .or(all.last())
                .cloned()
                .unwrap_or(Behaviour::Return(Value::Null));
        }
        match behaviour {
            Behaviour::Return(value) => Ok(value),
            Behaviour::Throw(message) => Err(Error::new(ErrorCode::HostFailed, message)),
            Behaviour::Hang(_) => std::future::pending().await,
            Behaviour::Edit(edit) => Ok(edit.apply(payload)),
            Behaviour::Echo(_)
            | Behaviour::Http(_)
            | Behaviour::Store(_)
            | Behaviour::Sequence(_) => Ok(payload),
        }
    }

    /// A hook: its input as JSON in, its answer as a type out; null is the answer that changes nothing.
    pub async fn hook<I: Serialize, O: DeserializeOwned + Default>(
        &self,
        handler: u64,
        kind: &str,
        input: &I,
    ) -> Result<O> {
        match self.call(handler, kind, json!(input)).await? {
            Value::Null => Ok(O::default()),
            answer => {
                serde_json::from_value(answer).map_err(|e| Error::argument(kind, e.to_string()))
            }
        }
    }

    pub async fn body_transform(&self, handler: u64, body: Json) -> Result<Option<Json>> {
        let payload =
            serde_json::from_str(body.get()).map_err(|e| Error::argument("body", e.to_string()))?;
        match self.call(handler, "bodyTransform", payload).await? {
            Value::Null => Ok(None),
            body => toolspan::json::to_json(&body).map(Some),
        }
    }
}

impl Edit {
    fn apply(self, mut body: Value) -> Value {
        if let Some(map) = body.as_object_mut() {
            map.extend(self.set);
            for key in &self.drop {
                map.shift_remove(key);
            }
        }
        let messages = body["messages"].as_array_mut().into_iter().flatten();
        if let (Some(text), Some(last)) = (
            self.append_to_last_user,
            messages.rev().find(|m| m["role"] == "user"),
        ) {
            last["content"] =
                format!("{}{text}", last["content"].as_str().unwrap_or_default()).into();
        }
        body
    }
}

struct Function {
    host: Arc<Host>,
    handler: u64,
}

#[async_trait]
impl Execute for Function {
    async fn execute(&self, arguments: Arguments, _context: ToolContext) -> ToolResult {
        match self
            .host
            .call(self.handler, "tool.execute", arguments.to_value())
            .await
        {
            Ok(value) => value.into_tool_result(),
            Err(error) => ToolResult::error(error.record().message.clone()),
        }
    }
}

struct Store {
    host: Arc<Host>,
    handler: u64,
    saved: Mutex<HashMap<String, Transcript>>,
}

#[async_trait]
impl ConversationStore for Store {
    async fn get(&self, id: &str) -> Result<Option<Transcript>> {
        self.host
            .call(self.handler, "store.get", json!({"id": id}))
            .await
            .map_err(|e| store_failed("read", &e))?;
        Ok(lock(&self.saved).get(id).cloned())
    }

    async fn save(&self, id: &str, transcript: Transcript) -> Result<()> {
        self.host
            .call(
                self.handler,
                "store.save",
                json!({"id": id, "messages": transcript}),
            )
            .await
            .map_err(|e| store_failed("write", &e))?;
        lock(&self.saved).insert(id.to_owned(), transcript);
        Ok(())
    }
}

/// What the waist makes of a store that throws.
fn store_failed(what: &str, cause: &Error) -> Error {
    let message = format!("the host's store could not {what}");
    Error::new(ErrorCode::StoreFailed, message).because(cause)
}

struct Transport {
    host: Arc<Host>,
    handler: u64,
    inner: ReqwestTransport,
}

#[async_trait]
impl HttpTransport for Transport {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse> {
        self.host
            .call(
                self.handler,
                "httpClient",
                json!({"method": request.method, "url": request.url.as_str()}),
            )
            .await?;
        request.headers.push(("x-injected".into(), "1".into()));
        self.inner.send(request).await
    }
}
