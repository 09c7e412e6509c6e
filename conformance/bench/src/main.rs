//! Runs the scenario from every language against the same peers, interleaved with the floor, and prints one table.
//!
//! Scenario: model call, two MCP stdio tool calls, model call; keep-alive upstream. Of each program the round with the
//! smallest median counts, which is the least disturbed one; "own" is that median less the floor's.

use clap::Parser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use toolspan_bench::peer::{Fallible, Peer};
use toolspan_bench::{Plan, Report};

/// Compares languages with the floor.
#[derive(Parser)]
struct Options {
    /// The fixtures program.
    #[arg(long)]
    fixtures: PathBuf,
    /// Programs as NAME=COMMAND (split at spaces); the first is the floor.
    #[arg(long = "program", required = true)]
    programs: Vec<String>,
    /// Allowed own overhead in milliseconds, as NAME=MS.
    #[arg(long = "budget")]
    budgets: Vec<String>,
    /// Runs measured per program and round.
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

fn main() -> Fallible<()> {
    let options = Options::parse();
    let peer = Peer::start(&options.fixtures)?;
    let command = mcp_server(&options.fixtures)?;
    let (id, pioneering) = scenario(&peer, &command, true)?;
    // What a peer writes down costs it more than the work; nothing of the measured runs is kept.
    let (_, mut plan) = scenario(&peer, &command, false)?;
    let programs: Vec<(&str, Vec<&str>)> = options
        .programs
        .iter()
        .map(|p| split(p))
        .collect::<Fallible<_>>()?;

    // One short run of the library tells which bytes the floor has to move.
    let (_, pioneer) = programs
        .iter()
        .find(|(name, _)| *name == "rust")
        .ok_or("a program named rust")?;
    run(pioneer, &pioneering)?;
    plan.bodies = bodies(&peer, &id)?;
    plan.warm_up = options.runs / 4;
    plan.runs = options.runs;

    let mut best: Vec<Option<Report>> = vec![None; programs.len()];
    for _ in 0..options.rounds {
        for (best, (_, command)) in best.iter_mut().zip(&programs) {
            let report = run(command, &plan)?;
            if best
                .as_ref()
                .is_none_or(|least| report.median_us < least.median_us)
            {
                *best = Some(report);
            }
        }
    }
    print_table(
        &options,
        &programs,
        &best
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or("at least one round")?,
    )
}

fn split(program: &str) -> Fallible<(&str, Vec<&str>)> {
    let (name, command) = program.split_once('=').ok_or("a program is NAME=COMMAND")?;
    Ok((name, command.split(' ').collect()))
}

/// The command of a stdio MCP server with one tool, which talks to nobody else.
fn mcp_server(fixtures: &Path) -> Fallible<Vec<String>> {
    let add = json!({"name": "add", "description": "Add two integers", "does": {"text": "4"},
        "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}});
    let script = fixtures.with_file_name("bench-mcp.json");
    std::fs::write(
        &script,
        json!({"transport": "stdio", "tools": [add]}).to_string(),
    )?;
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or("a path in UTF-8");
    Ok(vec![
        text(fixtures)?,
        "mcp".into(),
        "--script".into(),
        text(&script)?,
    ])
}

/// The id of a new scenario, and what the programs need to know of it.
fn scenario(peer: &Peer, command: &[String], record: bool) -> Fallible<(String, Plan)> {
    let calls = json!([
        {"id": "call_1", "name": "calc_add", "args": {"a": 2, "b": 2}},
        {"id": "call_2", "name": "calc_add", "args": {"a": 2, "b": 2}},
    ]);
    let replies = json!([{"calls": calls}, {"text": "It is 4, twice."}]);
    let model = json!({"style": "openai", "replies": replies, "then": "cycle", "record": record});
    let answer = peer.ask("POST", "/scenarios", &json!({"llm": {"model": model}}))?;
    let base_url = answer["llm"]["model"]["baseUrl"]
        .as_str()
        .ok_or("a base URL")?
        .to_owned();
    let id = answer["id"].as_str().ok_or("an id")?.to_owned();
    Ok((
        id,
        Plan {
            base_url,
            command: command.to_vec(),
            warm_up: 0,
            runs: 1,
            bodies: Vec::new(),
        },
    ))
}

/// The two bodies of the run that was made.
fn bodies(peer: &Peer, id: &str) -> Fallible<Vec<String>> {
    let seen = peer.ask("GET", &format!("/scenarios/{id}/seen"), &Value::Null)?;
    let requests = seen["llm"]["model"]["requests"]
        .as_array()
        .ok_or("captured requests")?;
    Ok(requests
        .iter()
        .filter_map(|r| r["body"].as_str())
        .map(str::to_owned)
        .collect())
}

fn run(command: &[&str], plan: &Plan) -> Fallible<Report> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("BENCH", serde_json::to_string(plan)?)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text
        .lines()
        .last()
        .ok_or_else(|| format!("{} printed nothing", command.join(" ")))?;
    serde_json::from_str(line).map_err(|e| format!("{}: {e}: {line}", command.join(" ")).into())
}

fn print_table(options: &Options, programs: &[(&str, Vec<&str>)], best: &[Report]) -> Fallible<()> {
    println!(
        "2 model calls + 2 MCP stdio tool calls, {} runs x {} rounds",
        options.runs, options.rounds
    );
    println!(
        "{:<10} {:>10} {:>10} {:>10} {:>12}",
        "program", "median ms", "p95 ms", "own ms", "budget ms"
    );
    let floor = best[0].median_us;
    for ((name, _), report) in programs.iter().zip(best) {
        let own = (report.median_us - floor) / 1000.0;
        let budget = options
            .budgets
            .iter()
            .find_map(|b| b.strip_prefix(&format!("{name}=")));
        let verdict = match budget.map(str::parse::<f64>).transpose()? {
            None => String::new(),
            Some(limit) if own <= limit => format!("{limit:.2} ok"),
            Some(limit) => format!("{limit:.2} OVER"),
        };
        let (median, p95) = (report.median_us / 1000.0, report.p95_us / 1000.0);
        println!("{name:<10} {median:>10.3} {p95:>10.3} {own:>10.3} {verdict:>12}");
    }
    Ok(())
}
