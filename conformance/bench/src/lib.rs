//! What the programs of the benchmark share: how a run is timed and how the result is told.
//!
//! Every program, in every language, runs the same scenario against the same peers: model call, two MCP stdio tool
//! calls, model call. It prints one JSON line, [`Report`], and the driver compares the medians with the floor's.

pub mod peer;

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// One program's figures, microseconds per run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Half of the runs were faster.
    pub median_us: f64,
    /// One run in twenty was slower.
    pub p95_us: f64,
    /// Runs measured, after the warm-up.
    pub runs: usize,
}

/// Durations of the measured runs.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds the time since `start`.
    pub fn add(&mut self, start: Instant) {
        self.0.push(start.elapsed());
    }

    /// Median and 95th percentile.
    pub fn report(mut self) -> Report {
        self.0.sort_unstable();
        let at = |share: f64| {
            let index = ((self.0.len() as f64 - 1.0) * share).round() as usize;
            self.0.get(index).map_or(0.0, |d| d.as_secs_f64() * 1e6)
        };
        Report {
            median_us: at(0.5),
            p95_us: at(0.95),
            runs: self.0.len(),
        }
    }
}

/// What the driver tells a program: `BENCH` in its environment, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// OpenAI-style endpoint.
    pub base_url: String,
    /// Command of the stdio MCP server.
    pub command: Vec<String>,
    /// Runs before measuring.
    pub warm_up: usize,
    /// Runs to measure.
    pub runs: usize,
    /// Bodies of the two model calls, for the floor.
    #[serde(default)]
    pub bodies: Vec<String>,
}

impl Plan {
    /// Reads `BENCH`.
    ///
    /// # Errors
    /// When it is absent or not a plan.
    pub fn from_env() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(serde_json::from_str(&std::env::var("BENCH")?)?)
    }
}
