//! What a person reads: the table, the failures, the count.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::case::NamedCase;
use crate::page::Page;
use crate::run::PortResult;

/// The run, judged.
#[derive(Debug)]
pub struct Verdict {
    /// The report as text; its last line is `N passed, N failed`.
    pub text: String,
    /// Area by language.
    pub page: Page,
    /// True when each requested language ran and nothing failed.
    pub good: bool,
}

/// What counts as a failure beside a case.
#[derive(Debug, Default)]
pub struct Rules {
    /// A language that cannot run is a failure.
    pub must_run: Vec<String>,
    /// Cases that are known to fail, per language.
    pub expected_failures: BTreeMap<String, Vec<String>>,
    /// The committed page, which has to be true.
    pub page: Option<Page>,
    /// True when all cases of the suite were run: an entry that names none of them is stale.
    pub whole_suite: bool,
}

#[derive(Default, Clone, Copy)]
struct Tally {
    passed: usize,
    total: usize,
}

/// Judges a run.
pub fn judge(cases: &[NamedCase], ports: &[PortResult], rules: &Rules) -> Verdict {
    let mut passed = 0;
    let mut failures = Vec::new();
    let mut known = Vec::new();
    let mut table: BTreeMap<&str, Vec<Option<Tally>>> = BTreeMap::new();
    for (column, port) in ports.iter().enumerate() {
        let expected = rules
            .expected_failures
            .get(&port.name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let results = match &port.outcome {
            Err(reason) => {
                if rules.must_run.contains(&port.name) {
                    failures.push(format!("{}: not run: {reason}", port.name));
                }
                continue;
            }
            Ok(results) => results,
        };
        if results.is_empty() {
            failures.push(format!("{}: no case was executed", port.name));
        }
        failures.extend(
            port.problems
                .iter()
                .map(|problem| format!("{}: {problem}", port.name)),
        );
        for (case, result) in cases.iter().zip(results) {
            let tally = table
                .entry(&case.area)
                .or_insert_with(|| vec![None; ports.len()])[column]
                .get_or_insert_with(Tally::default);
            tally.total += 1;
            let is_expected = expected.contains(&case.name);
            match result {
                Ok(_) if is_expected => failures.push(format!(
                    "{} [{}] is listed in expected-failures.json and passes; remove the entry",
                    case.name, port.name
                )),
                Ok(_) => {
                    passed += 1;
                    tally.passed += 1;
                }
                Err(_) if is_expected => known.push(format!("{} [{}]", case.name, port.name)),
                Err(failure) => failures.push(format!(
                    "{} [{}] {}\n  {}",
                    case.name,
                    port.name,
                    failure.place,
                    failure.text.replace('\n', "\n  ")
                )),
            }
        }
    }
    if rules.whole_suite {
        for (port, names) in &rules.expected_failures {
            for name in names
                .iter()
                .filter(|name| !cases.iter().any(|case| case.name == **name))
            {
                failures.push(format!(
                    "{name} [{port}] is listed in expected-failures.json and no case has that name"
                ));
            }
        }
    }
    let page = page(ports, &table);
    if let Some(committed) = &rules.page {
        let ran = |name: &str| {
            ports
                .iter()
                .any(|port| port.name == name && port.outcome.is_ok())
        };
        let untrue = committed.untrue(&page, ran);
        failures.extend(
            untrue
                .iter()
                .map(|text| format!("the parity page: {text}; `make parity` writes it")),
        );
    }
    let ran_any = ports.iter().any(|port| {
        port.outcome
            .as_ref()
            .is_ok_and(|results| !results.is_empty())
    });
    if !ran_any && failures.is_empty() {
        failures.push("no language was run".into());
    }
    let mut text = plain_table(ports, &table);
    for port in ports {
        if let Err(reason) = &port.outcome {
            let _ = writeln!(text, "{}: not run: {reason}", port.name);
        }
    }
    for name in &known {
        let _ = writeln!(text, "known failure: {name}");
    }
    for failure in &failures {
        let _ = writeln!(text, "\nFAIL {failure}");
    }
    let _ = write!(text, "\n{passed} passed, {} failed", failures.len());
    Verdict {
        text,
        page,
        good: failures.is_empty(),
    }
}

fn cell(tally: Option<Tally>, port: &PortResult) -> String {
    match tally {
        Some(tally) => format!("{}/{}", tally.passed, tally.total),
        None if port.outcome.is_err() => "not run".into(),
        None => "0/0".into(),
    }
}

fn plain_table(ports: &[PortResult], table: &BTreeMap<&str, Vec<Option<Tally>>>) -> String {
    let first = table
        .keys()
        .map(|area| area.len())
        .chain([4])
        .max()
        .unwrap_or(4);
    let mut text = format!("{:first$}", "area");
    let width = |port: &PortResult| port.name.len().max(7);
    for port in ports {
        let _ = write!(text, "  {:>width$}", port.name, width = width(port));
    }
    text.push('\n');
    for (area, row) in table {
        let _ = write!(text, "{area:first$}");
        for (tally, port) in row.iter().zip(ports) {
            let _ = write!(
                text,
                "  {:>width$}",
                cell(*tally, port),
                width = width(port)
            );
        }
        text.push('\n');
    }
    text
}

fn page(ports: &[PortResult], table: &BTreeMap<&str, Vec<Option<Tally>>>) -> Page {
    let row = |tallies: &[Option<Tally>]| {
        let cells = tallies.iter().zip(ports);
        cells.map(|(tally, port)| cell(*tally, port)).collect()
    };
    Page {
        languages: ports.iter().map(|port| port.name.clone()).collect(),
        areas: table
            .iter()
            .map(|(area, tallies)| ((*area).to_owned(), row(tallies)))
            .collect(),
    }
}
