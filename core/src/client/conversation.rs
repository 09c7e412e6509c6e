//! A conversation as a thing to hold (SPEC 7.7).

use std::hash::{BuildHasher, RandomState};

use super::Client;
use super::run::{Prompt, Run, StreamRun};
use super::session::in_style;
use crate::error::Result;
use crate::json::Json;
use crate::store::Transcript;
use crate::toolkit::Toolkit;

/// Prompts that share a memory. Cloning gives the same conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    client: Client,
    id: String,
    toolkit: Option<Toolkit>,
}

impl Conversation {
    pub(super) fn new(client: Client) -> Self {
        let number = RandomState::new().hash_one(std::time::SystemTime::now());
        Conversation {
            client,
            id: format!("conversation-{number:016x}"),
            toolkit: None,
        }
    }

    /// The id in the store. Default: a new one.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The tools of every prompt.
    #[must_use]
    pub fn toolkit(mut self, toolkit: &Toolkit) -> Self {
        self.toolkit = Some(toolkit.clone());
        self
    }

    /// The id in the store.
    pub fn conversation_id(&self) -> &str {
        &self.id
    }

    /// The next prompt; await it.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Run {
        let run = self.client.ask(prompt).id(&self.id);
        match &self.toolkit {
            Some(toolkit) => run.toolkit(toolkit),
            None => run,
        }
    }

    /// The next prompt, seen event by event.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> StreamRun {
        let run = self.client.stream(prompt).id(&self.id);
        match &self.toolkit {
            Some(toolkit) => run.toolkit(toolkit),
            None => run,
        }
    }

    /// What was said so far, in the dialect of the client.
    pub async fn messages(&self) -> Result<Vec<Json>> {
        let options = &self.client.0.options;
        match options.store.get(&self.id).await? {
            None => Ok(Vec::new()),
            Some(stored) => in_style(&stored, options.style),
        }
    }

    /// Forgets everything. Waits for a prompt that is running.
    pub async fn reset(&self) -> Result<()> {
        let inner = &self.client.0;
        let _lock = inner.locks.lock(&self.id).await;
        let empty = Transcript::new(Some(inner.options.style), Vec::new());
        inner.options.store.save(&self.id, empty).await
    }
}
