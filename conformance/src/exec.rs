//! One case in one language.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::case::{Case, Expect, Step};
use crate::fixtures::Scenario;
use crate::host;
use crate::mask::{Mask, mask_durations};
use crate::pattern::Pattern;
use crate::shim::{Answer, Outcome, Shim};
use crate::subst::Scope;
use crate::text::{at_path, canonical, shorten};

/// Something a case showed that must be the same in every language.
#[derive(Debug, Clone, PartialEq)]
pub struct Exhibit {
    /// Where it comes from, such as `step 2 toolkit.tools`.
    pub label: String,
    /// Canonical JSON, or a captured body as it is; masked.
    pub text: String,
}

/// What a passed case shows: what is compared between languages, and what the model endpoints got.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// In the order of the case.
    pub exhibits: Vec<Exhibit>,
    /// In the order of arrival, endpoint by endpoint; as they were sent.
    pub requests: Vec<Request>,
}

/// A request that a model endpoint got.
#[derive(Debug, Clone)]
pub struct Request {
    /// The verb.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The body.
    pub body: String,
}

/// Why a case failed in a language.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The step, as `step 2 toolkit.tools`, or the part of the case.
    pub place: String,
    /// What is wrong, with the two texts where there are two.
    pub text: String,
}

impl Failure {
    /// A failure at `place`.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            text: text.into(),
        }
    }
}

/// How long `seen` may take to become true once everything was closed: a peer notices a closed socket a moment later. So long,
/// too, the program's sinks may take to hear what a result did not wait for.
const SETTLING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs the steps, closes what they left open, and looks at what the peers saw.
pub async fn run(
    case: &Case,
    shim: &Shim,
    scenario: Option<&Scenario>,
    scope: Scope,
    folder: &Path,
    limit: Duration,
) -> Result<Shown, Failure> {
    let mut mask = Mask::default();
    mask.add(&folder.to_string_lossy(), "tmp");
    if let Some(scenario) = scenario {
        mask.add_all("", &scenario.answer);
    }
    let mut run = Run {
        case,
        shim,
        scenario,
        scope,
        mask,
        limit,
        started: HashMap::new(),
        open: Vec::new(),
        handlers: HashMap::new(),
        shown: Shown::default(),
    };
    let steps = run.steps().await;
    let closing = run.close_all().await;
    steps?;
    closing?;
    run.afterwards().await?;
    Ok(run.shown)
}

struct Run<'a> {
    case: &'a Case,
    shim: &'a Shim,
    scenario: Option<&'a Scenario>,
    scope: Scope,
    mask: Mask,
    limit: Duration,
    /// Steps that run on, by name.
    started: HashMap<String, Started>,
    /// What must be closed at the end: the closing op, its argument, the number.
    open: Vec<(&'static str, &'static str, u64)>,
    /// Numbers of host functions in the process to their numbers in the case.
    handlers: HashMap<u64, usize>,
    shown: Shown,
}

/// A step that runs on.
struct Started {
    op: String,
    answer: Answer,
}

impl Run<'_> {
    async fn steps(&mut self) -> Result<(), Failure> {
        for (index, step) in self.case.steps.iter().enumerate() {
            let place = format!("step {} {}", index + 1, step.op);
            self.step(step, &place)
                .await
                .map_err(|text| Failure::new(place, text))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step, place: &str) -> Result<(), String> {
        let mut args = self.scope.fill(&step.args)?;
        let begin = Instant::now();
        let mut op = step.op.clone();
        let outcome = match step.op.as_str() {
            "await" => {
                let name = step.args["step"]
                    .as_str()
                    .unwrap_or_default()
                    .trim_start_matches('$');
                let started = self
                    .started
                    .remove(name)
                    .ok_or_else(|| format!("{name}: not running"))?;
                op = started.op;
                self.answer(started.answer, step.within).await?
            }
            "delay" => {
                let ms = args["ms"].as_u64().ok_or("ms is missing")?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                return Ok(());
            }
            fixture if fixture.starts_with("fixture.") => self.fixture(fixture, &args).await?,
            shim_op => {
                let mut fresh = Vec::new();
                let handlers = host::extract(&mut args, &mut || {
                    fresh.push(self.shim.handler_number());
                    fresh[fresh.len() - 1]
                })?;
                for number in fresh {
                    let local = self.handlers.len() + 1;
                    self.handlers.insert(number, local);
                }
                let (number, answer) = self.shim.send(shim_op, &args, handlers).await;
                if step.start {
                    let name = step.name.clone().unwrap_or_default();
                    self.scope.names.insert(name.clone(), number.into());
                    self.started.insert(name, Started { op, answer });
                    return Ok(());
                }
                let outcome = self.answer(answer, step.within).await?;
                match shim_op {
                    "host.logs" | "host.metrics" => self.told(step, &args, outcome).await?,
                    _ => outcome,
                }
            }
        };
        let took = begin.elapsed().as_millis();
        self.keep_track(&op, &args, &outcome);
        let outcome = match outcome {
            Outcome::Ok(value) if op == "host.calls" => Outcome::Ok(self.own_calls(value)),
            other => other,
        };
        judge(&outcome, self.expectation(step)?)?;
        if let Some(within) = step.within.filter(|within| took > u128::from(*within)) {
            return Err(format!("took {took} ms, allowed are {within} ms"));
        }
        if let Some(at_least) = step
            .at_least
            .filter(|at_least| took < u128::from(*at_least))
        {
            return Err(format!("took {took} ms, at least {at_least} ms are right"));
        }
        self.remember(step, place, outcome);
        Ok(())
    }

    /// What a program's sinks were told. No result waits for them, so they are looked at until it fits, as `seen` is.
    async fn told(
        &self,
        step: &Step,
        args: &Value,
        mut outcome: Outcome,
    ) -> Result<Outcome, String> {
        let deadline = Instant::now() + SETTLING;
        while judge(&outcome, self.expectation(step)?).is_err() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_AGAIN).await;
            let (_, answer) = self.shim.send(&step.op, args, Map::new()).await;
            outcome = self.answer(answer, step.within).await?;
        }
        Ok(outcome)
    }

    /// The expectation of a step with its references replaced; default: any success.
    fn expectation(&self, step: &Step) -> Result<Option<Expect>, String> {
        let fill = |pattern: &Option<Value>| {
            pattern
                .as_ref()
                .map(|pattern| self.scope.fill(pattern))
                .transpose()
        };
        step.expect
            .as_ref()
            .map(|expect| {
                Ok(Expect {
                    ok: fill(&expect.ok)?,
                    error: fill(&expect.error)?,
                    partial: fill(&expect.partial)?,
                })
            })
            .transpose()
    }

    async fn answer(&self, answer: Answer, within: Option<u64>) -> Result<Outcome, String> {
        let limit = self.limit.max(Duration::from_millis(within.unwrap_or(0)));
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("the shim died".into()),
            Err(_) => {
                self.shim
                    .condemn("the shim left a step of another case without an answer");
                let stderr = self.shim.stderr();
                Err(format!(
                    "no answer in {} ms\n  stderr: {}",
                    limit.as_millis(),
                    stderr.trim_end()
                ))
            }
        }
    }

    async fn fixture(&self, op: &str, args: &Value) -> Result<Outcome, String> {
        let scenario = self.scenario.ok_or("the case has no fixtures")?;
        let text = |key: &str| {
            args[key]
                .as_str()
                .ok_or_else(|| format!("{key} is missing"))
        };
        match op {
            "fixture.wait" => scenario.wait(args).await?,
            "fixture.open" => scenario.open_gate(text("gate")?).await?,
            "fixture.restart" => scenario.restart(text("mcp")?).await?,
            _ => {
                let path = text("path")?;
                let seen = scenario.seen().await?;
                return match at_path(&seen, path) {
                    Some(value) => Ok(Outcome::Ok(value.clone())),
                    None => Err(format!(
                        "nothing at {path} in {}",
                        shorten(&canonical(&seen))
                    )),
                };
            }
        }
        Ok(Outcome::Ok(json!({})))
    }

    /// Notes what this step opened or closed.
    fn keep_track(&mut self, op: &str, args: &Value, outcome: &Outcome) {
        let Outcome::Ok(value) = outcome else { return };
        for (kind, creates, closes) in [
            ("toolkit", "toolkit.create", "toolkit.close"),
            ("client", "client.create", "client.close"),
        ] {
            if op == creates {
                self.open
                    .extend(value[kind].as_u64().map(|number| (closes, kind, number)));
            } else if op == closes {
                let closed = args[kind].as_u64();
                self.open
                    .retain(|(op, _, number)| *op != closes || Some(*number) != closed);
            }
        }
    }

    /// The calls of this case's own host functions, under the numbers they have in the case.
    fn own_calls(&self, calls: Value) -> Value {
        let Value::Array(calls) = calls else {
            return calls;
        };
        let own = calls.into_iter().filter_map(|mut call| {
            let local = *self.handlers.get(&call["handler"].as_u64()?)?;
            call["handler"] = local.into();
            Some(call)
        });
        Value::Array(own.collect())
    }

    /// Stores what `as` names and what the other languages must show too.
    fn remember(&mut self, step: &Step, place: &str, outcome: Outcome) {
        let shown = match (&outcome, step.op.as_str()) {
            // Servers log in the order they answer.
            (_, "host.logs") => None,
            (Outcome::Ok(value), "client.metrics") => value["text"]
                .as_str()
                .map(|text| json!({"text": mask_durations(text)})),
            (Outcome::Ok(value), _) => Some(json!({"ok": value})),
            // How much was there before an error is a matter of time, unless the case says how much.
            (Outcome::Error { error, partial }, _) => {
                let expected = step.expect.as_ref().and_then(|e| e.partial.as_ref());
                Some(json!({"error": error, "partial": expected.and(partial.as_ref())}))
            }
        };
        if let Some(shown) = shown {
            let text = canonical(&self.mask.value(&shown));
            self.shown.exhibits.push(Exhibit {
                label: place.to_owned(),
                text,
            });
        }
        if let (Some(name), Outcome::Ok(value)) = (&step.name, outcome) {
            let number = ["toolkit", "client", "conversation"]
                .iter()
                .find_map(|kind| value.get(kind))
                .cloned();
            self.scope
                .names
                .insert(name.clone(), number.unwrap_or(value));
        }
    }

    /// Ends what the steps left running and open.
    async fn close_all(&mut self) -> Result<(), Failure> {
        let running: Vec<_> = self.started.drain().collect();
        for (name, started) in running {
            let place = format!("end of started step {name}");
            let fail = |text: String| Failure::new(&place, text);
            let cancel = json!({"step": self.scope.names.get(&name)});
            let (_, cancelled) = self.shim.send("cancel", &cancel, Map::new()).await;
            self.answer(cancelled, None).await.map_err(fail)?;
            let outcome = self.answer(started.answer, None).await.map_err(fail)?;
            self.keep_track(&started.op, &Value::Null, &outcome);
        }
        for (op, kind, number) in std::mem::take(&mut self.open).into_iter().rev() {
            let place = format!("{op} at the end");
            let (_, answer) = self.shim.send(op, &json!({kind: number}), Map::new()).await;
            match self.answer(answer, None).await {
                Ok(Outcome::Ok(_)) => {}
                Ok(Outcome::Error { error, .. }) => {
                    return Err(Failure::new(place, canonical(&error)));
                }
                Err(text) => return Err(Failure::new(place, text)),
            }
        }
        Ok(())
    }

    /// Looks at what the peers saw and at the log.
    async fn afterwards(&mut self) -> Result<(), Failure> {
        if let Some(scenario) = self.scenario {
            let seen = self.settled(scenario).await?;
            for path in self.case.seen.keys() {
                let value = at_path(&seen, path).map(|value| self.mask.value(value));
                let text = value.map_or_else(|| "nothing".into(), |value| canonical(&value));
                self.shown.exhibits.push(Exhibit {
                    label: format!("seen {path}"),
                    text,
                });
            }
            self.show_requests(&seen);
        }
        if let Some(wanted) = &self.case.logs {
            let place = "logs";
            let wanted = self
                .scope
                .fill(&Value::Array(wanted.clone()))
                .map_err(|text| Failure::new(place, text))?;
            let deadline = Instant::now() + SETTLING;
            let loud = loop {
                let loud = self
                    .loud_records()
                    .await
                    .map_err(|text| Failure::new(place, text))?;
                let expect = Expect {
                    ok: Some(wanted.clone()),
                    ..Expect::default()
                };
                match judge(&Outcome::Ok(loud.clone()), Some(expect)) {
                    Ok(()) => break loud,
                    Err(text) if Instant::now() >= deadline => {
                        return Err(Failure::new(place, text));
                    }
                    Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
                }
            };
            self.shown.exhibits.push(Exhibit {
                label: place.into(),
                text: canonical(&self.mask.value(&loud)),
            });
        }
        Ok(())
    }

    /// What the fixtures saw, once every path of `seen` fits or the time to settle is over.
    async fn settled(&self, scenario: &Scenario) -> Result<Value, Failure> {
        let mut patterns = Vec::new();
        for (path, pattern) in &self.case.seen {
            let pattern = self
                .scope
                .fill(pattern)
                .and_then(|pattern| Pattern::parse(&pattern));
            patterns.push((
                path,
                pattern.map_err(|text| Failure::new(format!("seen {path}"), text))?,
            ));
        }
        let deadline = Instant::now() + SETTLING;
        loop {
            let seen = scenario
                .seen()
                .await
                .map_err(|text| Failure::new("seen", text))?;
            let wrong = patterns.iter().find_map(|(path, pattern)| {
                let mismatch = pattern.check(at_path(&seen, path)).err()?;
                Some(Failure::new(format!("seen {path}"), mismatch.to_string()))
            });
            match wrong {
                None => return Ok(seen),
                Some(failure) if Instant::now() >= deadline => return Err(failure),
                Some(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// The records of level `warn` and `error`.
    async fn loud_records(&self) -> Result<Value, String> {
        let (_, answer) = self.shim.send("host.logs", &json!({}), Map::new()).await;
        let Outcome::Ok(Value::Array(records)) = self.answer(answer, None).await? else {
            return Err("host.logs gave no list".into());
        };
        let loud = |record: &Value| matches!(record["level"].as_str(), Some("warn" | "error"));
        Ok(Value::Array(records.into_iter().filter(loud).collect()))
    }

    /// Every request a model endpoint got, byte for byte.
    fn show_requests(&mut self, seen: &Value) {
        let mut requests = Vec::new();
        for (name, llm) in seen["llm"].as_object().into_iter().flatten() {
            for request in llm["requests"].as_array().into_iter().flatten() {
                let part = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
                let request = Request {
                    method: part("method"),
                    path: part("path"),
                    body: part("body"),
                };
                let Request { method, path, body } = &request;
                let text = self.mask.text(&format!("{method} {path} {body}"));
                requests.push((name.clone(), text));
                self.shown.requests.push(request);
            }
        }
        // Steps that run at the same time reach the endpoint in any order.
        if self.case.steps.iter().any(|step| step.start) {
            requests.sort();
        }
        for (index, (name, text)) in requests.into_iter().enumerate() {
            self.shown.exhibits.push(Exhibit {
                label: format!("request {} to {name}", index + 1),
                text,
            });
        }
    }
}

fn judge(outcome: &Outcome, expect: Option<Expect>) -> Result<(), String> {
    let expect = expect.unwrap_or_default();
    let compare = |pattern: &Value, value: Option<&Value>, what: &str| {
        let mismatch = Pattern::parse(pattern)?.check(value).err();
        match mismatch {
            None => Ok(()),
            Some(mismatch) => Err(format!(
                "{what}{mismatch}\n  expected: {}\n  actual:   {}",
                shorten(&canonical(pattern)),
                value.map_or_else(|| "nothing".into(), |value| shorten(&canonical(value)))
            )),
        }
    };
    match (outcome, &expect.ok, &expect.error) {
        (Outcome::Ok(value), Some(pattern), _) => compare(pattern, Some(value), "ok "),
        (Outcome::Ok(_), None, None) => Ok(()),
        (Outcome::Ok(value), None, Some(pattern)) => Err(format!(
            "succeeded instead of failing\n  expected: error {}\n  actual:   {}",
            shorten(&canonical(pattern)),
            shorten(&canonical(value))
        )),
        (Outcome::Error { error, partial }, _, Some(pattern)) => {
            compare(pattern, Some(error), "error ")?;
            match &expect.partial {
                Some(pattern) => compare(pattern, partial.as_ref(), "partial "),
                None => Ok(()),
            }
        }
        (Outcome::Error { error, .. }, wanted, None) => Err(format!(
            "failed\n  expected: {}\n  actual:   error {}",
            wanted.as_ref().map_or_else(
                || "any success".into(),
                |wanted| shorten(&canonical(wanted))
            ),
            shorten(&canonical(error))
        )),
    }
}
