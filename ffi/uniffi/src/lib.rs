//! The engine for Kotlin and Swift: one object over `toolspan-bridge`, and nothing else.
//!
//! Everything typed, asynchronous and idiomatic is written in the language, over these methods. No method takes a function of
//! the host, so no thread of the library ever enters the host's runtime.

use std::sync::Arc;
use std::time::Duration;
use toolspan_bridge as bridge;

uniffi::setup_scaffolding!("toolspan");

/// Why something was not accepted.
#[derive(Debug, PartialEq, Eq, uniffi::Error)]
pub enum Refusal {
    /// The library refused.
    Refused {
        /// JSON of the error record.
        record: String,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Refusal::Refused { record } = self;
        f.write_str(record)
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(record: String) -> Self {
        Refusal::Refused { record }
    }
}

/// Version of methods, operations and events.
#[uniffi::export]
pub fn abi_version() -> u32 {
    bridge::ABI_VERSION
}

/// Hash of all operations, options and results; generated types fit one hash.
#[uniffi::export]
pub fn schema_hash() -> u64 {
    bridge::schema_hash()
}

/// Operations in, events out; see `toolspan-bridge`. Texts are JSON.
#[derive(uniffi::Object)]
pub struct Engine(bridge::Engine);

#[uniffi::export]
impl Engine {
    /// Creates an engine from `{"hostCalls": [KIND...], "log": LEVEL?, "workers": N?}`.
    #[uniffi::constructor]
    pub fn new(options: &str) -> Result<Arc<Self>, Refusal> {
        Ok(Arc::new(Engine(bridge::Engine::new(options)?)))
    }

    /// Does an operation that takes no time.
    pub fn call(&self, request: &str) -> Result<String, Refusal> {
        Ok(self.0.call(request)?)
    }

    /// Starts an operation under an id that is not 0 and not running.
    pub fn submit(&self, op_id: u64, request: &str) -> Result<(), Refusal> {
        Ok(self.0.submit(op_id, request)?)
    }

    /// Blocks up to `timeout_ms` for events and gives at most `max` (0: all) as a JSON array; null once the engine is closed
    /// and everything was collected. For a thread of its own.
    pub fn poll(&self, timeout_ms: u64, max: u32) -> Option<String> {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        self.0.poll(Duration::from_millis(timeout_ms), max)
    }

    /// Answers a host call.
    pub fn respond(&self, call_id: u64, reply: &str) -> Result<(), Refusal> {
        Ok(self.0.respond(call_id, reply)?)
    }

    /// Asks a running operation to stop.
    pub fn cancel(&self, op_id: u64) {
        self.0.cancel(op_id);
    }

    /// Ends everything, waiting up to `timeout_ms`; false when something had to be abandoned.
    pub fn close(&self, timeout_ms: u64) -> bool {
        self.0.close(Duration::from_millis(timeout_ms))
    }

    /// Closes without waiting. A finalizer may call this; it does not block.
    pub fn abandon(&self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_goes_in_and_its_event_comes_out() -> Result<(), Refusal> {
        let engine = Engine::new("{}")?;
        engine.submit(1, r#"{"op":"version"}"#)?;
        let events = engine.poll(u64::MAX, 0);
        let expected = format!(
            r#"[{{"type":"done","op":1,"result":{{"version":"{}"}}}}]"#,
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(events, Some(expected));
        assert!(engine.close(u64::MAX));
        assert_eq!(engine.poll(u64::MAX, 0), None);
        Ok(())
    }

    #[test]
    fn a_refusal_carries_the_record() {
        let refused = Engine::new("{}").and_then(|engine| engine.call("{"));
        let Err(Refusal::Refused { record }) = refused else {
            panic!("it was accepted")
        };
        assert!(
            record.starts_with(r#"{"code":"invalid_argument","#),
            "{record}"
        );
    }
}
