//! Two processes that share a folder of conversations (SPEC 7.7). The second one is this program again.

use serde_json::json;
use std::path::Path;
use std::process::Command;
use toolspan::{ConversationStore, ErrorCode, FileStore, Style, Transcript};

/// Set in the second process.
const FOLDER: &str = "TOOLSPAN_TEST_FOLDER";

fn says(text: &str) -> Transcript {
    let message = json!([{"role": "user", "content": text}]);
    let messages = serde_json::from_value(message).unwrap();
    Transcript::new(Some(Style::OpenAi), messages)
}

#[tokio::test]
async fn a_process_does_not_overwrite_what_another_saved_meanwhile() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let theirs = FileStore::new(folder);
        let read = theirs.get("x").await.unwrap().unwrap();
        let next = read.replaced(Style::OpenAi, says("theirs").messages);
        theirs.save("x", next).await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ours = FileStore::new(folder.path());
    ours.save("x", says("before")).await.unwrap();
    let read = ours.get("x").await.unwrap().unwrap();
    other_process(
        folder.path(),
        "a_process_does_not_overwrite_what_another_saved_meanwhile",
    );
    let late = read.replaced(Style::OpenAi, says("ours").messages);
    let error = ours.save("x", late).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreConflict);
    assert_eq!(ours.get("x").await.unwrap(), Some(says("theirs")));
}

/// Runs that test in a process of its own, which must have run it and succeeded.
fn other_process(folder: &Path, test: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", test])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
