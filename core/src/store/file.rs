//! Conversations as files, one per id.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::transcript::State;
use super::{ConversationStore, Revision, Transcript, check_id};
use crate::error::{Error, ErrorCode, Result};

/// How long a save waits while another process saves in the same directory.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How often it looks.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// [`ConversationStore`] in a directory: `<dir>/<id>.json`.
///
/// A file is replaced as a whole (written beside it, flushed to the disk, renamed), so a reader and a crash see the old
/// state or the new one. Several processes may share a directory: a save that would undo somebody else's fails with
/// `store_conflict`, provided the file system has locks, and one that waits longer than 5 s for others to save fails with
/// `timeout`. On a file system that ignores case, ids that differ only in case
/// are the same conversation.
#[derive(Debug)]
pub struct FileStore {
    dir: PathBuf,
    /// Tells this process's temporary files apart.
    next: AtomicU64,
    lock_wait: Duration,
}

impl FileStore {
    /// A store in this directory, which is created with the first save.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        FileStore {
            dir: dir.into(),
            next: AtomicU64::new(0),
            lock_wait: LOCK_WAIT,
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }
}

#[async_trait]
impl ConversationStore for FileStore {
    async fn get(&self, id: &str) -> Result<Option<Transcript>> {
        check_id(id)?;
        let path = self.path(id);
        blocking(move || load(&path)).await
    }

    async fn save(&self, id: &str, transcript: Transcript) -> Result<()> {
        check_id(id)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let replacement = Replacement {
            dir: self.dir.clone(),
            path: self.path(id),
            // Not a conversation file: an id never gives a name without ".json" at its end.
            temporary: self
                .dir
                .join(format!(".{id}.{}.{number}.tmp", std::process::id())),
            text: transcript.to_json()?,
            from: transcript.revision,
            lock_wait: self.lock_wait,
        };
        // Runs to its end even when the caller leaves, so that no half-written file stays behind.
        blocking(move || replacement.run()).await
    }
}

/// One file about to be replaced.
struct Replacement {
    dir: PathBuf,
    path: PathBuf,
    temporary: PathBuf,
    text: String,
    from: Option<Revision>,
    lock_wait: Duration,
}

impl Replacement {
    fn run(self) -> Result<()> {
        create_private_dir(&self.dir).map_err(|e| failed("create", &self.dir, &e))?;
        let written = self.write_temporary();
        let result = match written {
            Ok(()) => self.replace(),
            Err(e) => Err(failed("write", &self.path, &e)),
        };
        if result.is_err() {
            // Best effort: the error that matters is the one above.
            let _ = fs::remove_file(&self.temporary);
        }
        result
    }

    fn write_temporary(&self) -> io::Result<()> {
        let mut file = create_private_file(&self.temporary)?;
        file.write_all(self.text.as_bytes())?;
        file.sync_all()
    }

    /// Compares and renames while no other process of ours does.
    fn replace(&self) -> Result<()> {
        let _lock = lock(&self.dir, self.lock_wait)?;
        if let Some(from) = self.from {
            let now = read(&self.path)?;
            let now = now.map_or(Revision(State::Nothing), |bytes| revision(&bytes));
            if now != from {
                let name = name(&self.path);
                return Err(Error::new(
                    ErrorCode::StoreConflict,
                    format!("{name} was changed by somebody else since it was read"),
                ));
            }
        }
        fs::rename(&self.temporary, &self.path).map_err(|e| failed("write", &self.path, &e))?;
        sync_dir(&self.dir).map_err(|e| failed("write", &self.path, &e))
    }
}

fn load(path: &Path) -> Result<Option<Transcript>> {
    let Some(bytes) = read(path)? else {
        return Ok(None);
    };
    let unreadable = |message: String| {
        Error::new(ErrorCode::StoreFailed, format!("{}: {message}", name(path))).retryable(false)
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| unreadable("the stored conversation is not UTF-8".to_owned()))?;
    let mut transcript =
        Transcript::from_json(text).map_err(|e| unreadable(e.into_record().message))?;
    transcript.revision = Some(revision(&bytes));
    Ok(Some(transcript))
}

/// The whole file; `None` when there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed("read", path, &e)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| failed("read", path, &e))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::new(
            ErrorCode::LimitExceeded,
            format!("{} is larger than {MAX_FILE_BYTES} bytes", name(path)),
        ));
    }
    Ok(Some(bytes))
}

fn revision(bytes: &[u8]) -> Revision {
    Revision(State::Digest(Sha256::digest(bytes).into()))
}

/// The lock of the directory, held until dropped; `None` where the file system has no locks. The operating system would wait
/// without end for a process that was stopped in the middle of a save, so this asks again and again instead.
fn lock(dir: &Path, wait: Duration) -> Result<Option<File>> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join(".lock"))
        .map_err(|e| failed("lock", dir, &e))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {
                return Ok(None);
            }
            Err(TryLockError::Error(e)) => return Err(failed("lock", dir, &e)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < wait => {
                std::thread::sleep(LOCK_POLL)
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorCode::Timeout,
                    format!("another process keeps {} locked", dir.display()),
                ));
            }
        }
    }
}

/// Makes the rename itself survive a power cut. Directories cannot be flushed everywhere.
#[cfg(unix)]
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(not(unix))]
fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// Conversations are for their owner only.
#[cfg(unix)]
fn create_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

#[cfg(not(unix))]
fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(unix)]
fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

#[cfg(not(unix))]
fn create_private_file(path: &Path) -> io::Result<File> {
    File::create(path)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorCode::StoreFailed,
        format!("could not {what} {}", path.display()),
    )
    .because_of(error)
}

/// The name of a file, for messages that need no more.
fn name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// File work off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorCode::Internal,
            "the work on a conversation file did not finish",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use crate::style::Style;

    fn say(text: &str) -> Transcript {
        Transcript::new(
            Some(Style::OpenAi),
            vec![parse(&format!(r#"{{"role":"user","content":"{text}"}}"#)).unwrap()],
        )
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_conversation_is_one_file_with_an_envelope() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path().join("deep/er"));
        assert_eq!(store.get("a").await, Ok(None));
        store.save("a", say("hi")).await.unwrap();
        assert_eq!(
            fs::read_to_string(store.dir().join("a.json")).unwrap(),
            r#"{"version":1,"style":"openai","messages":[{"role":"user","content":"hi"}]}"#
        );
        assert_eq!(names(store.dir()), [".lock", "a.json"]);
        assert_eq!(store.get("a").await, Ok(Some(say("hi"))));
    }

    #[tokio::test]
    async fn a_save_over_somebody_elses_change_is_a_conflict() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (FileStore::new(dir.path()), FileStore::new(dir.path()));
        ours.save("a", say("one")).await.unwrap();
        let read = ours.get("a").await.unwrap().unwrap();
        theirs.save("a", say("two")).await.unwrap();
        let stale = read.replaced(Style::OpenAi, say("one more").messages);
        let error = ours.save("a", stale).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreConflict);
        assert_eq!(
            error.record().message,
            "a.json was changed by somebody else since it was read"
        );
        assert_eq!(ours.get("a").await, Ok(Some(say("two"))));
        assert_eq!(names(dir.path()), [".lock", "a.json"]);
    }

    #[tokio::test]
    async fn two_beginnings_of_one_conversation_are_a_conflict() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (FileStore::new(dir.path()), FileStore::new(dir.path()));
        let first = |text| Transcript::first(Style::OpenAi, say(text).messages);
        theirs.save("a", first("theirs")).await.unwrap();
        let error = ours.save("a", first("ours")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreConflict);
        assert_eq!(ours.get("a").await, Ok(Some(say("theirs"))));
    }

    #[tokio::test]
    async fn a_save_over_a_deleted_file_is_a_conflict() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path());
        store.save("a", say("one")).await.unwrap();
        let read = store.get("a").await.unwrap().unwrap();
        fs::remove_file(dir.path().join("a.json")).unwrap();
        let error = store.save("a", read).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreConflict);
    }

    #[tokio::test]
    async fn a_save_over_what_was_read_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path());
        store.save("a", say("one")).await.unwrap();
        let read = store.get("a").await.unwrap().unwrap();
        let next = read.replaced(Style::OpenAi, say("two").messages);
        store.save("a", next).await.unwrap();
        assert_eq!(store.get("a").await, Ok(Some(say("two"))));
    }

    #[tokio::test]
    async fn a_save_does_not_wait_for_ever_for_somebody_else_s() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = FileStore::new(dir.path());
        store.lock_wait = Duration::from_millis(50);
        store.save("a", say("one")).await.unwrap();
        let held = lock(dir.path(), Duration::ZERO).unwrap();
        let error = store.save("a", say("two")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Timeout);
        assert_eq!(
            error.record().message,
            format!("another process keeps {} locked", dir.path().display())
        );
        assert_eq!(names(dir.path()), [".lock", "a.json"]);
        drop(held);
        store.save("a", say("two")).await.unwrap();
        assert_eq!(store.get("a").await, Ok(Some(say("two"))));
    }

    #[tokio::test]
    async fn a_damaged_file_is_named_and_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json"), r#"{"version":"hunter2"}"#).unwrap();
        let error = FileStore::new(dir.path()).get("a").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreFailed);
        assert_eq!(
            error.record().message,
            "a.json: the stored conversation is not a transcript (line 1, column 20)"
        );
        assert!(!error.record().retryable);
    }

    #[tokio::test]
    async fn an_id_that_is_a_path_never_reaches_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path().join("store"));
        let error = store.save("../a", say("hi")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path().join("store"));
        store.save("a", say("hi")).await.unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(dir.path().join("store")), 0o700);
        assert_eq!(mode(dir.path().join("store/a.json")), 0o600);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("file");
        fs::write(&blocked, "").unwrap();
        let store = FileStore::new(blocked.join("store"));
        let error = store.save("a", say("hi")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreFailed);
        assert_eq!(
            error.record().message,
            format!("could not create {}", store.dir().display())
        );
        assert_eq!(error.record().cause.len(), 1);
    }
}
