//! All cases in all languages, and the languages against each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use indexmap::IndexMap;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::build::Builds;
use crate::case::NamedCase;
use crate::exec::{self, Exhibit, Failure, Shown};
use crate::fixtures;
use crate::port::Port;
use crate::shim::Shim;
use crate::subst::Scope;

/// How to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cases at the same time in one language.
    pub jobs: usize,
    /// How long a step may be silent.
    pub limit: Duration,
    /// The fixtures program.
    pub fixtures: PathBuf,
    /// Run the build command of each language first.
    pub build: bool,
}

/// What became of a language.
#[derive(Debug)]
pub struct PortResult {
    /// Its name.
    pub name: String,
    /// Why it was not run, or how each case went, in the order of the cases.
    pub outcome: Result<Vec<CaseResult>, String>,
    /// What was wrong with the shim itself.
    pub problems: Vec<String>,
}

/// How one case went in one language.
pub type CaseResult = Result<Shown, Failure>;

/// The fixtures, started when the first case needs them.
struct Peers {
    program: PathBuf,
    limit: Duration,
    server: OnceCell<Result<fixtures::Server, String>>,
}

impl Peers {
    async fn control(&self) -> Result<fixtures::Control, String> {
        let start = || fixtures::Server::start(&self.program, self.limit);
        match self.server.get_or_init(start).await {
            Ok(server) => Ok(server.control()),
            Err(text) => Err(text.clone()),
        }
    }
}

/// Runs every case in every language, all languages at the same time.
pub async fn run(cases: &[NamedCase], ports: &[Port], settings: &Settings) -> Vec<PortResult> {
    let peers = Peers {
        program: settings.fixtures.clone(),
        limit: settings.limit,
        server: OnceCell::new(),
    };
    let builds = Builds::default();
    let languages = ports
        .iter()
        .map(|port| run_port(cases, port, settings, &peers, &builds));
    let mut results = futures_util::future::join_all(languages).await;
    compare(&mut results);
    results
}

async fn run_port(
    cases: &[NamedCase],
    port: &Port,
    settings: &Settings,
    peers: &Peers,
    builds: &Builds,
) -> PortResult {
    let language = match Language::prepare(port, settings, builds).await {
        Ok(language) => language,
        Err(reason) => {
            return PortResult {
                name: port.name.clone(),
                outcome: Err(reason),
                problems: Vec::new(),
            };
        }
    };
    let mut results: Vec<(usize, CaseResult)> = stream::iter(cases.iter().enumerate())
        .map(async |(index, case)| (index, language.run_case(case, peers).await))
        .buffer_unordered(settings.jobs.max(1))
        .collect()
        .await;
    results.sort_by_key(|(index, _)| *index);
    let problems = language.finish().await;
    let outcome = Ok(results.into_iter().map(|(_, result)| result).collect());
    PortResult {
        name: port.name.clone(),
        outcome,
        problems,
    }
}

/// A language whose shim can be started.
struct Language<'a> {
    port: &'a Port,
    limit: Duration,
    shared: Mutex<Arc<Shim>>,
    /// Processes that were replaced; kept because other cases may still run in them.
    replaced: Mutex<Vec<Arc<Shim>>>,
}

impl<'a> Language<'a> {
    /// Builds and starts; the error is why the language is not run.
    async fn prepare(port: &'a Port, settings: &Settings, builds: &Builds) -> Result<Self, String> {
        if let Some(program) = port.missing_program() {
            return Err(format!("{program} is not on PATH"));
        }
        if settings.build {
            builds.of(port).await?;
        }
        let shim = Shim::start(port, &IndexMap::new(), settings.limit).await?;
        Ok(Self {
            port,
            limit: settings.limit,
            shared: Mutex::new(Arc::new(shim)),
            replaced: Mutex::new(Vec::new()),
        })
    }

    /// The shared process, a new one when the last is out of use.
    async fn shared(&self) -> Result<Arc<Shim>, String> {
        let mut shared = self.shared.lock().await;
        if shared.is_broken() {
            let fresh = Arc::new(Shim::start(self.port, &IndexMap::new(), self.limit).await?);
            self.replaced
                .lock()
                .await
                .push(std::mem::replace(&mut *shared, fresh));
        }
        Ok(Arc::clone(&shared))
    }

    async fn run_case(&self, named: &NamedCase, peers: &Peers) -> CaseResult {
        let case = &named.case;
        let setup = |text: String| Failure::new("setup", text);
        let scenario = if case.fixtures.is_empty() {
            None
        } else {
            let control = peers.control().await.map_err(setup)?;
            Some(control.create(&case.fixtures).await.map_err(setup)?)
        };
        let result = async {
            let folder = tempfile::tempdir().map_err(|error| setup(error.to_string()))?;
            let scope = scope(
                scenario.as_ref().map(|scenario| &scenario.answer),
                folder.path(),
            );
            write_files(&case.files, &scope, folder.path()).map_err(setup)?;
            if case.needs_own_process() {
                let mut env = IndexMap::new();
                for (name, value) in &case.env {
                    if let Value::String(value) = scope.fill(&json!(value)).map_err(setup)? {
                        env.insert(name.clone(), value);
                    }
                }
                let shim = Shim::start(self.port, &env, self.limit)
                    .await
                    .map_err(setup)?;
                let result = exec::run(
                    case,
                    &shim,
                    scenario.as_ref(),
                    scope,
                    folder.path(),
                    self.limit,
                )
                .await;
                let end = shim.finish(self.limit).await;
                let mut shown = result?;
                end.map_err(|text| Failure::new("end of the process", text))?;
                if let Some(pattern) = &case.stderr {
                    check_stderr(pattern, &shim)?;
                }
                shown
                    .exhibits
                    .extend(case.stderr.is_some().then(|| Exhibit {
                        label: "stderr".into(),
                        text: shim.stderr(),
                    }));
                Ok(shown)
            } else {
                let shim = self.shared().await.map_err(setup)?;
                exec::run(
                    case,
                    &shim,
                    scenario.as_ref(),
                    scope,
                    folder.path(),
                    self.limit,
                )
                .await
            }
        }
        .await;
        if let Some(scenario) = scenario {
            let dropped = scenario.drop_servers().await;
            if result.is_ok() {
                dropped.map_err(|text| Failure::new("end of the fixtures", text))?;
            }
        }
        result
    }

    /// Ends every process; gives what was wrong with the ends.
    async fn finish(self) -> Vec<String> {
        let mut problems = Vec::new();
        let shared = self.shared.into_inner();
        for shim in self.replaced.into_inner().into_iter().chain([shared]) {
            problems.extend(shim.finish(self.limit).await.err());
        }
        problems
    }
}

fn check_stderr(pattern: &Value, shim: &Shim) -> Result<(), Failure> {
    let fail = |text: String| Failure::new("stderr", text);
    let pattern = crate::pattern::Pattern::parse(pattern).map_err(fail)?;
    pattern
        .check(Some(&shim.stderr().into()))
        .map_err(|mismatch| fail(mismatch.to_string()))
}

fn scope(answer: Option<&Value>, folder: &Path) -> Scope {
    let part = |key: &str| {
        answer
            .and_then(|answer| answer.get(key))
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    let mut places =
        json!({"mcp": part("mcp"), "llm": part("llm"), "tmp": folder.to_string_lossy()});
    for server in places["mcp"]
        .as_object_mut()
        .into_iter()
        .flat_map(|servers| servers.values_mut())
    {
        if let Some((program, args)) = server["command"]
            .as_array()
            .and_then(|command| command.split_first())
        {
            (server["program"], server["args"]) = (program.clone(), args.into());
        }
    }
    Scope {
        places,
        ..Scope::default()
    }
}

fn write_files(
    files: &IndexMap<String, Value>,
    scope: &Scope,
    folder: &Path,
) -> Result<(), String> {
    for (name, content) in files {
        let text = match scope.fill(content)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let file = folder.join(name);
        let written = file
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&file, text));
        written.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// Fails a case in every language that shows something else than the first language that passed it.
fn compare(results: &mut [PortResult]) {
    let cases = results
        .iter()
        .filter_map(|port| port.outcome.as_ref().ok())
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    for case in 0..cases {
        let mut first: Option<(String, Vec<Exhibit>)> = None;
        for port in results.iter_mut() {
            let Ok(outcome) = &mut port.outcome else {
                continue;
            };
            let Ok(Shown { exhibits, .. }) = &outcome[case] else {
                continue;
            };
            match &first {
                None => first = Some((port.name.clone(), exhibits.clone())),
                Some((name, wanted)) => {
                    if let Some(failure) = difference(name, wanted, &port.name, exhibits) {
                        outcome[case] = Err(failure);
                    }
                }
            }
        }
    }
}

fn difference(first: &str, wanted: &[Exhibit], second: &str, found: &[Exhibit]) -> Option<Failure> {
    let width = first.len().max(second.len()) + 1;
    let two = |a: &str, b: &str| {
        format!(
            "the languages differ\n  {:width$} {a}\n  {:width$} {b}",
            format!("{first}:"),
            format!("{second}:")
        )
    };
    if let Some((a, b)) = wanted.iter().zip(found).find(|(a, b)| a != b) {
        if a.label != b.label {
            return Some(Failure::new("shown values", two(&a.label, &b.label)));
        }
        return Some(Failure::new(&a.label, two(&a.text, &b.text)));
    }
    let (a, b) = (wanted.get(found.len()), found.get(wanted.len()));
    let extra = a.or(b)?;
    let nothing = "nothing".to_owned();
    let text =
        |side: Option<&Exhibit>| side.map_or(nothing.clone(), |exhibit| exhibit.text.clone());
    Some(Failure::new(&extra.label, two(&text(a), &text(b))))
}
