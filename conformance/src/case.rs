//! A case as it stands in a file: one behaviour, written as data.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::host;
use crate::pattern::Pattern;

/// One behaviour of the contract, run in every language.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The behaviour, as one sentence.
    pub title: String,
    /// The section of SPEC.md that demands it, such as `3.4`.
    pub spec: String,
    /// Requirement ids this case pins, such as `S0-13`, `gap7`, `A3`.
    #[schemars(length(min = 1))]
    pub covers: Vec<String>,
    /// `raw`: the waist; `idiomatic`: the public API; `hostile`: the same in a process of its own.
    #[serde(default)]
    pub level: Level,
    /// Servers of the scenario, as `fixtures/README.md` describes them.
    #[serde(default)]
    pub fixtures: Fixtures,
    /// Variables of the shim process; needs `level: "hostile"`.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Files written to `${tmp}` before the first step; text as it stands, anything else as JSON.
    #[serde(default)]
    pub files: IndexMap<String, Value>,
    /// Gives the case a shim process of its own.
    #[serde(default)]
    pub alone: bool,
    /// What happens, in this order.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
    /// Path into the fixture's `seen` answer to the pattern that must hold there within two seconds after everything was closed.
    #[serde(default)]
    pub seen: IndexMap<String, Value>,
    /// All log records of level `warn` and `error` of the process, in order, as patterns.
    #[serde(default)]
    pub logs: Option<Vec<Value>>,
    /// What the shim process wrote to stderr until it ended, as a pattern.
    #[serde(default)]
    pub stderr: Option<Value>,
}

/// How close to the machine a case looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Drives the waist itself.
    Raw,
    /// Drives the public API.
    #[default]
    Idiomatic,
    /// Drives the public API in a fresh process with its own environment.
    Hostile,
}

/// The servers of a scenario.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixtures {
    /// MCP servers by name.
    #[serde(default)]
    pub mcp: IndexMap<String, Value>,
    /// Model endpoints by name.
    #[serde(default)]
    pub llm: IndexMap<String, Value>,
}

impl Fixtures {
    /// True when the case talks to nobody.
    pub fn is_empty(&self) -> bool {
        self.mcp.is_empty() && self.llm.is_empty()
    }
}

/// One operation and what must come of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// An operation of the shim, or a step the runner does itself.
    pub op: String,
    /// A name for the number, the value or the running step that comes of it.
    #[serde(default, rename = "as")]
    pub name: Option<String>,
    /// Arguments; `${...}`, `$name` and `{"$host": ...}` are replaced.
    #[serde(default = "empty_object")]
    pub args: Value,
    /// Lets the step run on; `await` gives its result.
    #[serde(default)]
    pub start: bool,
    /// Default: any success.
    #[serde(default)]
    pub expect: Option<Expect>,
    /// Milliseconds the step may take.
    #[serde(default)]
    pub within: Option<u64>,
    /// Milliseconds the step must take.
    #[serde(default, rename = "atLeast")]
    pub at_least: Option<u64>,
}

/// What must come of a step: `ok`, or `error` with or without `partial`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Pattern of the result.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub ok: Option<Value>,
    /// Pattern of the error record.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub error: Option<Value>,
    /// Pattern of what was delivered before the error.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub partial: Option<Value>,
}

/// A pattern may be `null`, which is not the same as no pattern.
fn present<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Operations that a shim answers (`conformance/README.md`, "The shim").
const SHIM_OPS: &[&str] = &[
    "toolkit.create",
    "toolkit.tools",
    "toolkit.status",
    "toolkit.get",
    "toolkit.execute",
    "toolkit.register",
    "toolkit.adapt",
    "toolkit.close",
    "mcp.list",
    "client.create",
    "client.close",
    "client.run",
    "client.stream",
    "client.ask",
    "client.metrics",
    "conversation.create",
    "conversation.send",
    "conversation.messages",
    "conversation.reset",
    "store.get",
    "store.save",
    "counters",
    "version",
    "host.calls",
    "host.logs",
    "host.metrics",
    "host.reset",
];

/// Steps that the runner does itself, or with the shim's `cancel`.
const RUNNER_OPS: &[&str] = &[
    "await",
    "cancel",
    "fixture.wait",
    "fixture.open",
    "fixture.restart",
    "fixture.seen",
    "delay",
];

/// Operations that see the whole process, not one case of it.
const PROCESS_WIDE_OPS: &[&str] = &["counters", "host.logs", "host.metrics", "host.reset"];

impl Case {
    /// True when the case must not share its shim process.
    pub fn needs_own_process(&self) -> bool {
        self.alone
            || self.level == Level::Hostile
            || !self.env.is_empty()
            || self.logs.is_some()
            || self.stderr.is_some()
            || self
                .steps
                .iter()
                .any(|step| PROCESS_WIDE_OPS.contains(&step.op.as_str()))
    }

    /// What is wrong with the case itself, beyond its shape.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.title.trim().is_empty() {
            problems.push("title is empty".into());
        }
        if self.covers.is_empty() || self.covers.iter().any(|id| id.trim().is_empty()) {
            problems.push("covers names no requirement".into());
        }
        if !self.env.is_empty() && self.level != Level::Hostile {
            problems.push("env needs level \"hostile\"".into());
        }
        if let Some(name) = self.files.keys().find(|name| !is_inside(name)) {
            problems.push(format!(
                "files: {name:?} is not a relative path below the folder of the case"
            ));
        }
        if self.steps.is_empty() {
            problems.push("steps is empty".into());
        }
        let mut names: Vec<&str> = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            problems.extend(
                step.problems(&names)
                    .into_iter()
                    .map(|text| format!("step {}: {text}", number + 1)),
            );
            names.extend(step.name.as_deref());
        }
        for (path, pattern) in &self.seen {
            if let Err(text) = Pattern::parse(pattern) {
                problems.push(format!("seen {path}: {text}"));
            }
        }
        for pattern in self.logs.iter().flatten().chain(&self.stderr) {
            if let Err(text) = Pattern::parse(pattern) {
                problems.push(format!("logs or stderr: {text}"));
            }
        }
        problems
    }
}

impl Step {
    fn problems(&self, names: &[&str]) -> Vec<String> {
        let mut problems = Vec::new();
        let op = self.op.as_str();
        if !SHIM_OPS.contains(&op) && !RUNNER_OPS.contains(&op) {
            problems.push(format!("unknown op {op:?}"));
        }
        if !self.args.is_object() {
            problems.push("args is not an object".into());
        }
        if self.start {
            if !SHIM_OPS.contains(&op) {
                problems.push(format!("{op:?} cannot be started"));
            }
            if self.name.is_none() {
                problems.push("a started step needs a name in \"as\"".into());
            }
            if self.expect.is_some() || self.within.is_some() || self.at_least.is_some() {
                problems.push("what a started step must give belongs to its await".into());
            }
        }
        for key in ["toolkit", "client", "conversation", "step"] {
            if let Some(Value::String(text)) = self.args.get(key) {
                let known = text
                    .strip_prefix('$')
                    .is_some_and(|name| names.contains(&name));
                if !known {
                    problems.push(format!("args.{key}: no earlier step is named {text:?}"));
                }
            }
        }
        if matches!(op, "await" | "cancel") && !self.args["step"].is_string() {
            problems.push(format!("{op} needs the name of a step"));
        }
        if let Err(text) = host::check(&self.args) {
            problems.push(text);
        }
        if let Some(expect) = &self.expect {
            match (&expect.ok, &expect.error, &expect.partial) {
                (Some(_), None, None) | (None, Some(_), _) => {}
                _ => problems.push("expect is either ok, or error with or without partial".into()),
            }
            for pattern in [&expect.ok, &expect.error, &expect.partial]
                .into_iter()
                .flatten()
            {
                if let Err(text) = Pattern::parse(pattern) {
                    problems.push(format!("expect: {text}"));
                }
            }
        }
        problems
    }
}

fn is_inside(name: &str) -> bool {
    !name.is_empty()
        && Path::new(name)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// A case with the name it is known by: `<folder>/<file stem>`.
#[derive(Debug, Clone)]
pub struct NamedCase {
    /// `<area>/<file stem>`.
    pub name: String,
    /// The folder the file lies in.
    pub area: String,
    /// The case itself.
    pub case: Case,
}

/// Reads every `.json` below `paths`, in order of name.
///
/// Every file that is not a sound case is told in the error, not only the first.
pub fn load(paths: &[PathBuf]) -> Result<Vec<NamedCase>, Vec<String>> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        if let Err(error) = collect(path, &mut files) {
            problems.push(format!("{}: {error}", path.display()));
        }
    }
    files.sort();
    files.dedup();
    let mut cases: Vec<NamedCase> = Vec::new();
    for file in files {
        match read(&file) {
            Ok(case) if cases.iter().any(|other| other.name == case.name) => {
                problems.push(format!(
                    "{}: a second case named {}",
                    file.display(),
                    case.name
                ));
            }
            Ok(case) => {
                let found = case.case.problems();
                problems.extend(
                    found
                        .into_iter()
                        .map(|text| format!("{}: {text}", case.name)),
                );
                cases.push(case);
            }
            Err(text) => problems.push(format!("{}: {text}", file.display())),
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    if problems.is_empty() {
        Ok(cases)
    } else {
        Err(problems)
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        std::fs::metadata(path)?;
        files.push(path.canonicalize()?);
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|ext| ext == "json") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<NamedCase, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut input = serde_json::Deserializer::from_str(&text);
    let case = serde_path_to_error::deserialize(&mut input).map_err(|error| error.to_string())?;
    input.end().map_err(|error| error.to_string())?;
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    let stem = file.file_stem().unwrap_or_default();
    let area = folder.to_string_lossy().into_owned();
    Ok(NamedCase {
        name: format!("{area}/{}", stem.to_string_lossy()),
        area,
        case,
    })
}

/// The JSON Schema of a case file, as it stands in `case.schema.json`.
pub fn schema_text() -> String {
    let schema = schemars::schema_for!(Case);
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(value: Value) -> Vec<String> {
        serde_json::from_value::<Case>(value).unwrap().problems()
    }

    #[test]
    fn the_schema_file_is_fresh() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("case.schema.json");
        let stored = std::fs::read_to_string(file).unwrap();
        assert_eq!(
            stored,
            schema_text(),
            "write it with `toolspan-conformance schema`"
        );
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let result = serde_json::from_value::<Case>(json!({
            "title": "t", "spec": "1", "covers": ["x"], "steps": [{"op": "version", "expects": {"ok": 1}}]
        }));
        assert!(
            result
                .unwrap_err()
                .to_string()
                .starts_with("unknown field `expects`")
        );
    }

    #[test]
    fn an_expectation_of_null_is_an_expectation() {
        let expect: Expect = serde_json::from_value(json!({"ok": null})).unwrap();
        assert_eq!(expect.ok, Some(Value::Null));
    }

    #[test]
    fn a_name_must_be_given_before_it_is_used() {
        let found = problems(json!({
            "title": "t", "spec": "1", "covers": ["x"],
            "steps": [{"op": "toolkit.tools", "args": {"toolkit": "$tk"}}, {"op": "toolkit.create", "as": "tk"}]
        }));
        assert_eq!(
            found,
            ["step 1: args.toolkit: no earlier step is named \"$tk\""]
        );
    }

    #[test]
    fn variables_need_a_process_of_their_own() {
        let found = problems(json!({
            "title": "t", "spec": "1", "covers": ["x"], "env": {"A": "b"}, "steps": [{"op": "version"}]
        }));
        assert_eq!(found, ["env needs level \"hostile\""]);
    }

    #[test]
    fn a_case_that_reads_counters_does_not_share_its_process() {
        let case: Case = serde_json::from_value(json!({
            "title": "t", "spec": "1", "covers": ["x"], "steps": [{"op": "counters"}]
        }))
        .unwrap();
        assert!(case.needs_own_process());
    }
}
