//! The build commands of the languages.

use std::collections::HashMap;
use std::path::PathBuf;

use tokio::sync::Mutex;

use crate::port::Port;

/// What has been built so far. Builds run one after the other, and one that two languages share runs once: they would write the
/// same files at the same time.
#[derive(Default)]
pub struct Builds(Mutex<HashMap<Command, Result<(), String>>>);

type Command = (Vec<String>, Option<PathBuf>);

impl Builds {
    /// Runs the build command of a language; the error ends with the last lines that it printed.
    pub async fn of(&self, port: &Port) -> Result<(), String> {
        let mut done = self.0.lock().await;
        let command = (port.build.clone(), port.cwd.clone());
        if let Some(outcome) = done.get(&command) {
            return outcome.clone();
        }
        let outcome = build(port).await;
        done.insert(command, outcome.clone());
        outcome
    }
}

async fn build(port: &Port) -> Result<(), String> {
    let Some((program, args)) = port.build.split_first() else {
        return Ok(());
    };
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .envs(&port.env)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    if let Some(cwd) = &port.cwd {
        command.current_dir(cwd);
    }
    let output = command
        .output()
        .await
        .map_err(|error| format!("build: {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = text.lines().rev().take(20).collect();
    Err(format!(
        "build: {}\n{}",
        output.status,
        tail.into_iter().rev().collect::<Vec<_>>().join("\n")
    ))
}
