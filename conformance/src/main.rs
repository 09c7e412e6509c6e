//! `toolspan-conformance`: one suite of cases, run in every language and compared (see `conformance/README.md`).

mod build;
mod case;
mod exec;
mod fixtures;
mod host;
mod mask;
mod page;
mod pattern;
mod port;
mod report;
mod requests;
mod run;
mod shim;
mod subst;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::case::NamedCase;
use crate::port::{Port, Suite};
use crate::report::Rules;

/// Runs the cases of the contract in every language and compares the results.
#[derive(Debug, Parser)]
#[command(name = "toolspan-conformance")]
struct Cli {
    /// The folder with ports.json, expected-failures.json and cases/.
    #[arg(long, global = true)]
    suite: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs cases; the last line is `N passed, N failed`.
    Run {
        #[command(flatten)]
        run: RunArgs,
        /// The committed page that `parity` wrote: a failure where it is not true any more.
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Runs cases and writes the page area by language as Markdown.
    Parity {
        #[command(flatten)]
        run: RunArgs,
        /// The file to write.
        #[arg(long)]
        out: PathBuf,
    },
    /// Prints every case: name, section, what it covers, title.
    List(Selection),
    /// Checks every case file without running it.
    Check {
        #[command(flatten)]
        selection: Selection,
        /// Has this fixtures program start the servers of every case, to check their scripts too.
        #[arg(long)]
        fixtures: Option<PathBuf>,
    },
    /// Prints the JSON Schema of a case file.
    Schema,
}

#[derive(Debug, Args)]
struct Selection {
    /// Files and folders of cases, also from outside the suite; default: all of the suite.
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    cases: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    selection: Selection,
    /// Languages to run, each of which must run; default: all of ports.json.
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    ports: Vec<String>,
    /// Cases at the same time in one language.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// A language that cannot run is a failure.
    #[arg(long)]
    require_all: bool,
    /// Run the build command of each language first.
    #[arg(long)]
    build: bool,
    /// The fixtures program; default: beside this one.
    #[arg(long)]
    fixtures: Option<PathBuf>,
    /// How long a step may be silent, in milliseconds.
    #[arg(long, default_value_t = 20_000)]
    step_limit_ms: u64,
    /// Writes what the cases of the first language sent to model endpoints here, one JSON object a line.
    #[arg(long)]
    requests: Option<PathBuf>,
}

impl Selection {
    fn load(&self, suite: &Suite) -> Result<Vec<NamedCase>, String> {
        let paths = if self.cases.is_empty() {
            vec![suite.folder.join("cases")]
        } else {
            self.cases.clone()
        };
        let cases = case::load(&paths).map_err(|problems| problems.join("\n"))?;
        if cases.is_empty() {
            Err("no case was found".into())
        } else {
            Ok(cases)
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(cli: Cli) -> Result<bool, String> {
    if let Command::Schema = cli.command {
        print!("{}", case::schema_text());
        return Ok(true);
    }
    let suite = Suite::open(cli.suite.as_deref())?;
    match cli.command {
        Command::Run { run, page } => {
            let page = page.map(|file| {
                let text = std::fs::read_to_string(&file);
                let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
                Ok::<_, String>(page::Page::read(&text))
            });
            let verdict = execute(&suite, &run, page.transpose()?)?;
            println!("{}", verdict.text);
            Ok(verdict.good)
        }
        Command::Parity { run, out } => {
            let verdict = execute(&suite, &run, None)?;
            std::fs::write(&out, verdict.page.render())
                .map_err(|error| format!("{}: {error}", out.display()))?;
            println!("{}", verdict.text);
            Ok(verdict.good)
        }
        Command::List(selection) => {
            for case in selection.load(&suite)? {
                println!(
                    "{}\t{}\t{}\t{}",
                    case.name,
                    case.case.spec,
                    case.case.covers.join(" "),
                    case.case.title
                );
            }
            Ok(true)
        }
        Command::Check {
            selection,
            fixtures,
        } => check(&suite, &selection, fixtures.as_deref()),
        Command::Schema => Ok(true),
    }
}

fn execute(
    suite: &Suite,
    args: &RunArgs,
    page: Option<page::Page>,
) -> Result<report::Verdict, String> {
    let cases = args.selection.load(suite)?;
    let ports = choose(suite.ports()?, &args.ports)?;
    let fixtures = format!("toolspan-fixtures{}", std::env::consts::EXE_SUFFIX);
    let settings = run::Settings {
        jobs: args.jobs,
        limit: Duration::from_millis(args.step_limit_ms),
        fixtures: args
            .fixtures
            .clone()
            .unwrap_or_else(|| suite.bin.join(fixtures)),
        build: args.build,
    };
    let must_run = if args.require_all {
        ports.iter().map(|port| port.name.clone()).collect()
    } else {
        args.ports.clone()
    };
    let rules = Rules {
        must_run,
        expected_failures: suite.expected_failures()?,
        page,
        whole_suite: args.selection.cases.is_empty(),
    };
    let results = runtime()?.block_on(run::run(&cases, &ports, &settings));
    if let Some(file) = &args.requests {
        requests::write(file, &cases, &results)?;
    }
    Ok(report::judge(&cases, &results, &rules))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

fn choose(ports: Vec<Port>, wanted: &[String]) -> Result<Vec<Port>, String> {
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !ports.iter().any(|port| port.name == **name))
    {
        let known: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        return Err(format!(
            "no port {unknown:?} in ports.json; it lists {}",
            known.join(", ")
        ));
    }
    Ok(ports
        .into_iter()
        .filter(|port| wanted.is_empty() || wanted.contains(&port.name))
        .collect())
}

/// The shape was checked while loading; here it is the section of the contract.
fn check(suite: &Suite, selection: &Selection, fixtures: Option<&Path>) -> Result<bool, String> {
    let cases = selection.load(suite)?;
    let file = suite.root.join("SPEC.md");
    let contract =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let sections: Vec<&str> = contract.lines().filter_map(section_number).collect();
    let mut good = true;
    for case in &cases {
        if !sections.contains(&case.case.spec.as_str()) {
            println!("{}: SPEC.md has no section {}", case.name, case.case.spec);
            good = false;
        }
    }
    if let Some(program) = fixtures {
        for problem in runtime()?.block_on(refused_scripts(&cases, program))? {
            println!("{problem}");
            good = false;
        }
    }
    println!("{} cases checked", cases.len());
    Ok(good)
}

/// The cases whose servers the fixtures program refuses to start, with its reason.
async fn refused_scripts(cases: &[NamedCase], program: &Path) -> Result<Vec<String>, String> {
    let limit = Duration::from_secs(20);
    let server = fixtures::Server::start(program, limit).await?;
    let mut problems = Vec::new();
    for case in cases.iter().filter(|case| !case.case.fixtures.is_empty()) {
        match server.control().create(&case.case.fixtures).await {
            Ok(scenario) => scenario.drop_servers().await?,
            Err(text) => problems.push(format!("{}: {text}", case.name)),
        }
    }
    Ok(problems)
}

/// `3.4` of the heading `### 3.4 Filters`, `3` of `## 3. MCP servers`.
fn section_number(line: &str) -> Option<&str> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim_start();
    let number = heading.split_whitespace().next()?.trim_end_matches('.');
    number
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(number)
}
