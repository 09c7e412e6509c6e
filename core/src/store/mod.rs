//! Where conversations are kept between calls (SPEC 7.7).

mod file;
mod locks;
mod memory;
mod transcript;

pub use file::FileStore;
pub use locks::{IdGuard, IdLocks};
pub use memory::MemoryStore;
pub use transcript::{Revision, Transcript};

use async_trait::async_trait;

use crate::error::{Error, Result};

/// A place for transcripts. Reading after writing gives what was written; nothing else is promised, and nothing else
/// is needed: the client serialises the calls on one id with [`IdLocks`].
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// The transcript under this id, or `None` when there is none. Errors: `store_failed`, `invalid_argument`.
    async fn get(&self, id: &str) -> Result<Option<Transcript>>;

    /// Puts the transcript under this id, in place of what was there. A transcript that came out of
    /// [`get`](ConversationStore::get) of the same store may be refused with `store_conflict` when somebody else has
    /// written meanwhile. Errors: `store_failed`, `store_conflict`, `invalid_argument`.
    async fn save(&self, id: &str, transcript: Transcript) -> Result<()>;
}

/// Longest conversation id of the library's own stores, in bytes.
pub const MAX_ID_LEN: usize = 128;

/// Checks an id for the library's own stores: `[A-Za-z0-9._-]{1,128}`, but not `.` or `..`. Both check alike, so that a
/// program that moves from memory to files does not find out then.
pub fn check_id(id: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if (1..=MAX_ID_LEN).contains(&id.len()) && id.bytes().all(allowed) && id != "." && id != ".." {
        return Ok(());
    }
    Err(Error::argument(
        "id",
        format!(
            "a conversation id is 1 to {MAX_ID_LEN} characters out of A-Z a-z 0-9 . _ -, and neither \".\" nor \"..\""
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn ids_that_are_safe_file_names_pass() {
        for id in ["a", "user-1.chat_2", "...", &"x".repeat(128)] {
            assert_eq!(check_id(id), Ok(()), "{id}");
        }
    }

    #[test]
    fn ids_that_could_leave_the_directory_are_refused() {
        for id in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a b",
            "é",
            "a\0",
            &"x".repeat(129),
        ] {
            let error = check_id(id).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{id:?}");
            assert_eq!(error.record().path.as_deref(), Some("id"));
        }
    }
}
