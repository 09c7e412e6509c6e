//! A child process and everything it started, ended together (SPEC 3.2, 3.8).

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::InheritEnv;
use super::plan::LocalServer;
use crate::client::key::OWN_VARIABLES;
use crate::error::{Error, ErrorCode, Result};

/// How long a child may take to end once its stdin is closed, once it got SIGTERM, and once it was killed.
const GRACE_EOF: Duration = Duration::from_millis(800);
const GRACE_TERM: Duration = Duration::from_millis(500);
const GRACE_KILL: Duration = Duration::from_millis(500);

/// How long what is left in the pipes of a child that ended is waited for.
const DRAIN: Duration = Duration::from_millis(200);

/// A running child. Dropping it kills the whole group.
pub(super) struct Process {
    group: Group,
    kill: CancellationToken,
    /// How it ended, e.g. `exit status: 1`.
    exit: watch::Receiver<Option<String>>,
}

/// The pipes of a child.
pub(super) struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl Process {
    /// Starts a child in a group of its own. `stop` is cancelled soon after its end, when its pipes are drained.
    pub fn start(
        server: &LocalServer,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<(Self, Pipes)> {
        let failed = |cause: &dyn std::fmt::Display| {
            let program = &server.shown;
            Error::new(
                ErrorCode::ProcessFailed,
                format!("the program {program} cannot be started: {cause}"),
            )
        };
        let mut command = CommandWrap::from(command(server));
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        command.wrap(KillOnDrop);
        let mut child = command.spawn().map_err(|e| match &server.cwd {
            // The system blames the program for it.
            Some(cwd) if e.kind() == std::io::ErrorKind::NotFound && !cwd.is_dir() => failed(
                &format_args!("the working directory {} does not exist", cwd.display()),
            ),
            _ => failed(&e),
        })?;
        let group = Group::of(&*child);
        let pipes = (
            child.stdin().take(),
            child.stdout().take(),
            child.stderr().take(),
        );
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(&"it has no pipes"));
        };
        let kill = CancellationToken::new();
        let (ended, exit) = watch::channel(None);
        tasks.spawn(supervise(child, group, kill.clone(), ended, stop));
        let process = Process { group, kill, exit };
        let pipes = Pipes {
            stdin,
            stdout,
            stderr,
        };
        Ok((process, pipes))
    }

    /// How the child ended, waiting at most `limit` for it.
    pub async fn exit_within(&self, limit: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some);
        match tokio::time::timeout(limit, ended).await {
            Ok(Ok(exit)) => exit.clone(),
            // Nobody supervises it any more: the runtime is going down.
            Ok(Err(_)) => Some("killed".to_owned()),
            Err(_) => None,
        }
    }

    /// How the child ended, if it has.
    pub fn exit(&self) -> Option<String> {
        self.exit.borrow().clone()
    }

    /// Whether the child has ended, asked of the system: the news of it may still be under way.
    pub fn has_ended(&self) -> bool {
        self.exit.borrow().is_some() || self.group.leader_has_ended()
    }

    /// Ends a child whose stdin was closed: it may go by itself, is asked to, is killed. Takes two seconds at most.
    pub async fn end(&self) {
        if self.exit_within(GRACE_EOF).await.is_some() {
            return;
        }
        if self.group.terminate() && self.exit_within(GRACE_TERM).await.is_some() {
            return;
        }
        self.kill();
        self.exit_within(GRACE_KILL).await;
    }

    /// Kills the whole group, now.
    pub fn kill(&self) {
        if self.exit.borrow().is_none() {
            self.group.kill();
        }
        self.kill.cancel();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn supervise(
    mut child: Box<dyn ChildWrapper>,
    group: Group,
    kill: CancellationToken,
    ended: watch::Sender<Option<String>>,
    stop: CancellationToken,
) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = kill.cancelled() => {
            // It may have ended meanwhile, which is as good.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    // Who leads the group is gone; what it started must not outlive it.
    group.kill();
    ended.send_replace(Some(match status {
        Ok(status) => status.to_string(),
        Err(_) => "killed".to_owned(),
    }));
    let _ = tokio::time::timeout(DRAIN, stop.cancelled()).await;
    stop.cancel();
}

/// The process group of a child. Elsewhere than on Unix the job object does its work.
#[derive(Clone, Copy)]
struct Group {
    #[cfg(unix)]
    id: Option<nix::unistd::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &dyn ChildWrapper) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group {
            id: id.map(nix::unistd::Pid::from_raw),
        }
    }

    fn terminate(self) -> bool {
        self.signal(nix::sys::signal::Signal::SIGTERM)
    }

    fn kill(self) {
        self.signal(nix::sys::signal::Signal::SIGKILL);
    }

    fn signal(self, signal: nix::sys::signal::Signal) -> bool {
        self.id
            .is_some_and(|id| nix::sys::signal::killpg(id, signal).is_ok())
    }

    #[cfg(target_os = "linux")]
    fn leader_has_ended(self) -> bool {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        // Without reaping: that is the supervisor's part.
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        self.id
            .is_none_or(|id| waitid(Id::Pid(id), look) != Ok(WaitStatus::StillAlive))
    }

    #[cfg(not(target_os = "linux"))]
    fn leader_has_ended(self) -> bool {
        false
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &dyn ChildWrapper) -> Self {
        Group {}
    }

    fn terminate(self) -> bool {
        false
    }

    fn kill(self) {}

    fn leader_has_ended(self) -> bool {
        false
    }
}

fn command(server: &LocalServer) -> Command {
    let mut command = Command::new(program(server));
    command
        .args(&server.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match &server.inherit {
        InheritEnv::All => {}
        InheritEnv::AllButKeys => {
            for (name, _) in OWN_VARIABLES {
                command.env_remove(name);
            }
        }
        InheritEnv::None => {
            command.env_clear();
        }
        InheritEnv::Only(names) => {
            command.env_clear();
            let set = |name: &String| std::env::var_os(name).map(|value| (name.clone(), value));
            command.envs(names.iter().filter_map(set));
        }
    }
    command.envs(&server.environment);
    if let Some(cwd) = &server.cwd {
        command.current_dir(cwd);
    }
    command
}

#[cfg(not(windows))]
fn program(server: &LocalServer) -> std::path::PathBuf {
    server.program.clone().into()
}

/// Windows starts only `.exe` by its bare name, while `npx` and its like are `.cmd` files.
#[cfg(windows)]
fn program(server: &LocalServer) -> std::path::PathBuf {
    let own = server
        .environment
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    let path = match own {
        Some((_, path)) => path.into(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    };
    let bare = std::path::Path::new(&server.program);
    if bare.components().count() == 1 && bare.extension().is_none() {
        for directory in std::env::split_paths(&path) {
            for extension in ["exe", "cmd", "bat"] {
                let candidate = directory.join(bare).with_extension(extension);
                if candidate.is_file() {
                    return candidate;
                }
            }
        }
    }
    bare.to_owned()
}
