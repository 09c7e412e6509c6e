//! Conversations for as long as the process lives.

use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{ConversationStore, Transcript, check_id};
use crate::error::Result;

/// [`ConversationStore`] in memory. Grows with the number of ids.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<String, Transcript>>);

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }
}

#[async_trait]
impl ConversationStore for MemoryStore {
    async fn get(&self, id: &str) -> Result<Option<Transcript>> {
        check_id(id)?;
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(map.get(id).cloned())
    }

    async fn save(&self, id: &str, transcript: Transcript) -> Result<()> {
        check_id(id)?;
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(id.to_owned(), transcript);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[tokio::test]
    async fn gives_what_was_saved_last() {
        let store = MemoryStore::new();
        assert_eq!(store.get("a").await, Ok(None));
        let first = Transcript::new(None, vec![parse("{}").unwrap()]);
        store.save("a", first).await.unwrap();
        let second = Transcript::new(None, vec![parse(r#"{"n":2}"#).unwrap()]);
        store.save("a", second.clone()).await.unwrap();
        assert_eq!(store.get("a").await, Ok(Some(second)));
        assert_eq!(store.get("b").await, Ok(None));
    }
}
