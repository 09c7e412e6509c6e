//! Engines by number. The only global state of the library, and it survives a fork.
//!
//! A forked child may find the parent's table locked by a thread that does not exist any more. So each process has a table of
//! its own, found by process id in a list that only grows, without a lock. Tables start at different generations: the parent's
//! numbers are never those of the child's engines.

use std::sync::OnceLock;
use toolspan_bridge::{Engine, Error, ErrorCode, Kind, Table, record};

struct Registry {
    process: u32,
    engines: Table<Engine>,
    next: OnceLock<Box<Registry>>,
}

static FIRST: OnceLock<Registry> = OnceLock::new();

impl Registry {
    fn new(process: u32) -> Self {
        Registry {
            process,
            engines: Table::starting_at(Kind::Engine, u64::from(process)),
            next: OnceLock::new(),
        }
    }
}

/// The table of this process, made if need be.
fn own() -> &'static Table<Engine> {
    let process = std::process::id();
    let mut registry = FIRST.get_or_init(|| Registry::new(process));
    while registry.process != process {
        registry = registry
            .next
            .get_or_init(|| Box::new(Registry::new(process)));
    }
    &registry.engines
}

/// Whether this process has ancestors that used the library.
fn forked() -> bool {
    FIRST
        .get()
        .is_some_and(|first| first.process != std::process::id())
}

/// Gives an engine its number. Errors are texts of records, here and below.
pub(crate) fn insert(engine: Engine) -> Result<u64, String> {
    own().insert(engine).map_err(|e| record(&e))
}

pub(crate) fn get(number: u64) -> Result<Engine, String> {
    own().get(number).map_err(|_| gone(number))
}

pub(crate) fn remove(number: u64) -> Result<Engine, String> {
    own().remove(number).map_err(|_| gone(number))
}

fn gone(number: u64) -> String {
    record(&if forked() {
        Error::new(
            ErrorCode::Forked,
            "the process was forked after this engine was created; create a new engine in the child",
        )
    } else {
        Error::new(
            ErrorCode::Closed,
            format!("there is no open engine {number}"),
        )
    })
}
