//! Runs the scenario from every language against the same peers, interleaved with the floor, and prints one table.
//!
//! Scenario: model call, two MCP stdio tool calls, model call; keep-alive upstream. "Own" is the median over the
//! floor's median of the same round; the printed value is the smallest of the rounds, which is the least disturbed.

use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;
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
    let mut plan = scenario(&peer)?;
    let programs: Vec<(&str, Vec<&str>)> = options.programs.iter().map(|p| split(p)).collect::<Fallible<_>>()?;

    // One short run of the library tells which bytes the floor has to move.
    let (_, pioneer) = programs.iter().find(|(name, _)| *name == "rust").ok_or("a program named rust")?;
    run(pioneer, &Plan { warm_up: 0, runs: 1, ..plan.clone() })?;
    plan.bodies = bodies(&peer)?;
    plan.warm_up = options.runs / 4;
    plan.runs = options.runs;

    let mut best: Vec<Option<(f64, Report)>> = vec![None; programs.len()];
    let mut floor = f64::INFINITY;
    for _ in 0..options.rounds {
        let mut base = 0.0;
        for (index, (_, command)) in programs.iter().enumerate() {
            let report = run(command, &plan)?;
            if index == 0 {
                base = report.median_us;
                floor = floor.min(base);
            }
            let own = report.median_us - base;
            if best[index].as_ref().is_none_or(|(least, _)| own < *least) {
                best[index] = Some((own, report));
            }
        }
    }
    print_table(&options, &programs, &best, floor)
}

fn split(program: &str) -> Fallible<(&str, Vec<&str>)> {
    let (name, command) = program.split_once('=').ok_or("a program is NAME=COMMAND")?;
    Ok((name, command.split(' ').collect()))
}

fn scenario(peer: &Peer) -> Fallible<Plan> {
    let add = json!({"name": "add", "description": "Add two integers", "does": {"text": "4"},
        "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}});
    let calls = json!([
        {"id": "call_1", "name": "calc_add", "args": {"a": 2, "b": 2}},
        {"id": "call_2", "name": "calc_add", "args": {"a": 2, "b": 2}},
    ]);
    let answer = peer.ask(
        "POST",
        "/scenarios",
        &json!({
            "mcp": {"calc": {"transport": "stdio", "tools": [add]}},
            "llm": {"model": {"style": "openai", "replies": [{"calls": calls}, {"text": "It is 4, twice."}], "then": "cycle"}},
        }),
    )?;
    let command = serde_json::from_value(answer["mcp"]["calc"]["command"].clone())?;
    let base_url = answer["llm"]["model"]["baseUrl"].as_str().ok_or("a base URL")?.to_owned();
    Ok(Plan { base_url, command, warm_up: 0, runs: 1, bodies: Vec::new() })
}

/// The two bodies of the run that was made.
fn bodies(peer: &Peer) -> Fallible<Vec<String>> {
    let seen = peer.ask("GET", "/scenarios/s1/seen", &Value::Null)?;
    let requests = seen["llm"]["model"]["requests"].as_array().ok_or("captured requests")?;
    Ok(requests.iter().filter_map(|r| r["body"].as_str()).map(str::to_owned).collect())
}

fn run(command: &[&str], plan: &Plan) -> Fallible<Report> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("BENCH", serde_json::to_string(plan)?)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().ok_or_else(|| format!("{} printed nothing", command.join(" ")))?;
    serde_json::from_str(line).map_err(|e| format!("{}: {e}: {line}", command.join(" ")).into())
}

fn print_table(
    options: &Options,
    programs: &[(&str, Vec<&str>)],
    best: &[Option<(f64, Report)>],
    floor: f64,
) -> Fallible<()> {
    println!("2 model calls + 2 MCP stdio tool calls, {} runs x {} rounds", options.runs, options.rounds);
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}", "program", "median ms", "p95 ms", "own ms", "budget");
    println!("{:<10} {:>10.3} {:>10} {:>10} {:>10}", programs[0].0, floor / 1000.0, "", "", "");
    for ((name, _), measured) in programs.iter().zip(best).skip(1) {
        let (own, report) = measured.as_ref().ok_or("a measured program")?;
        let budget = options.budgets.iter().find_map(|b| b.strip_prefix(&format!("{name}=")));
        let verdict = match budget.map(str::parse::<f64>).transpose()? {
            None => String::new(),
            Some(limit) if own / 1000.0 <= limit => format!("{limit:.2} ok"),
            Some(limit) => format!("{limit:.2} OVER"),
        };
        println!(
            "{:<10} {:>10.3} {:>10.3} {:>10.3} {:>10}",
            name,
            report.median_us / 1000.0,
            report.p95_us / 1000.0,
            own / 1000.0,
            verdict
        );
    }
    Ok(())
}
