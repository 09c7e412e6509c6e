//! Counts events and renders them in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use super::{LlmStatus, MetricEvent};
use crate::tool::Source;

/// Upper bounds of the buckets, in milliseconds and as text in seconds. A last one takes everything.
const BUCKETS: [(u64, &str); 10] = [
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1"),
    (2_500, "2.5"),
    (5_000, "5"),
    (10_000, "10"),
    (30_000, "30"),
    (60_000, "60"),
];

/// Totals of all events recorded so far.
///
/// A tool name that no tool has is counted as `unknown`: names come from the model, and each would be a new time series
/// for ever.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    llm_requests: Counter,
    llm_tokens: Counter,
    llm_duration: Histogram,
    tool_calls: Counter,
    tool_duration: Histogram,
    run_errors: Counter,
}

/// Keyed by the rendered labels, so that the order of series is that of their text.
type Counter = BTreeMap<String, u64>;
type Histogram = BTreeMap<String, Durations>;

#[derive(Debug, Default)]
struct Durations {
    /// How many fell in each bucket, not cumulated.
    counts: [u64; BUCKETS.len()],
    count: u64,
    // Whole milliseconds: sums of fractions would drift.
    sum_ms: u64,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Metrics::default()
    }

    /// Counts one event.
    pub fn record(&self, event: &MetricEvent) {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            MetricEvent::Llm {
                model,
                status,
                ms,
                prompt_tokens,
                completion_tokens,
            } => {
                let status = match status {
                    LlmStatus::Ok => "ok",
                    LlmStatus::Error => "error",
                };
                add(
                    &mut totals.llm_requests,
                    labels([("model", model), ("status", status)]),
                    1,
                );
                for (kind, tokens) in [("prompt", prompt_tokens), ("completion", completion_tokens)]
                {
                    add(&mut totals.llm_tokens, labels([("type", kind)]), *tokens);
                }
                observe(&mut totals.llm_duration, labels([("model", model)]), *ms);
            }
            MetricEvent::Tool {
                tool,
                source,
                is_error,
                ms,
            } => {
                let (tool, source) = match source {
                    Some(Source::Mcp) => (tool.as_str(), "mcp"),
                    Some(Source::Native) => (tool.as_str(), "native"),
                    None => ("unknown", "unknown"),
                };
                let is_error = if *is_error { "true" } else { "false" };
                add(
                    &mut totals.tool_calls,
                    labels([("tool", tool), ("source", source), ("is_error", is_error)]),
                    1,
                );
                observe(&mut totals.tool_duration, labels([("tool", tool)]), *ms);
            }
            MetricEvent::Run { model, error, .. } => {
                if error.is_some() {
                    add(&mut totals.run_errors, labels([("model", model)]), 1);
                }
            }
        }
    }

    /// The totals in the Prometheus text format 0.0.4. Families come in a fixed order and always with their head, series
    /// in the order of their labels, and the text ends with a newline.
    pub fn render(&self) -> String {
        let totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        counter(
            &mut out,
            "toolspan_llm_requests_total",
            "Total LLM requests.",
            &totals.llm_requests,
        );
        counter(
            &mut out,
            "toolspan_llm_tokens_total",
            "Total tokens, by type.",
            &totals.llm_tokens,
        );
        histogram(
            &mut out,
            "toolspan_llm_request_duration_seconds",
            "LLM request duration in seconds.",
            &totals.llm_duration,
        );
        counter(
            &mut out,
            "toolspan_tool_calls_total",
            "Total tool calls.",
            &totals.tool_calls,
        );
        histogram(
            &mut out,
            "toolspan_tool_duration_seconds",
            "Tool execution duration in seconds.",
            &totals.tool_duration,
        );
        counter(
            &mut out,
            "toolspan_run_errors_total",
            "Total run errors.",
            &totals.run_errors,
        );
        out
    }
}

fn add(counter: &mut Counter, labels: String, by: u64) {
    let total = counter.entry(labels).or_default();
    *total = total.saturating_add(by);
}

fn observe(histogram: &mut Histogram, labels: String, ms: u64) {
    let durations = histogram.entry(labels).or_default();
    if let Some(bucket) = BUCKETS.iter().position(|(bound, _)| ms <= *bound) {
        durations.counts[bucket] += 1;
    }
    durations.count += 1;
    durations.sum_ms = durations.sum_ms.saturating_add(ms);
}

/// `a="x",b="y"`, with the three escapes that the format has.
fn labels<const N: usize>(pairs: [(&str, &str); N]) -> String {
    let length = pairs.iter().map(|(key, value)| key.len() + value.len() + 4);
    let mut out = String::with_capacity(length.sum());
    for (key, value) in pairs {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(key);
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
    out.push('\n');
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    line(out, format_args!("# HELP {name} {help}"));
    line(out, format_args!("# TYPE {name} {kind}"));
}

fn counter(out: &mut String, name: &str, help: &str, series: &Counter) {
    head(out, name, help, "counter");
    for (labels, total) in series {
        line(out, format_args!("{name}{{{labels}}} {total}"));
    }
}

fn histogram(out: &mut String, name: &str, help: &str, series: &Histogram) {
    head(out, name, help, "histogram");
    for (labels, durations) in series {
        let mut cumulated = 0;
        for ((_, bound), count) in BUCKETS.iter().zip(durations.counts) {
            cumulated += count;
            line(
                out,
                format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {cumulated}"),
            );
        }
        let Durations { count, sum_ms, .. } = durations;
        line(
            out,
            format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}"),
        );
        #[allow(clippy::cast_precision_loss, reason = "exact up to 285 000 years")]
        let sum = *sum_ms as f64 / 1000.0;
        line(out, format_args!("{name}_sum{{{labels}}} {sum}"));
        line(out, format_args!("{name}_count{{{labels}}} {count}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn llm(
        model: &str,
        status: LlmStatus,
        ms: u64,
        prompt_tokens: u64,
        completion_tokens: u64,
    ) -> MetricEvent {
        MetricEvent::Llm {
            model: model.into(),
            status,
            ms,
            prompt_tokens,
            completion_tokens,
        }
    }

    fn tool(tool: &str, source: Option<Source>, is_error: bool, ms: u64) -> MetricEvent {
        MetricEvent::Tool {
            tool: tool.into(),
            source,
            is_error,
            ms,
        }
    }

    fn run(model: &str, error: Option<ErrorCode>) -> MetricEvent {
        MetricEvent::Run {
            model: model.into(),
            turns: 2,
            tool_calls: 1,
            total_tokens: 9,
            ms: 10,
            error,
        }
    }

    fn rendered(events: &[MetricEvent]) -> String {
        let metrics = Metrics::new();
        for event in events {
            metrics.record(event);
        }
        metrics.render()
    }

    const HEADS_ONLY: &str = "\
# HELP toolspan_llm_requests_total Total LLM requests.
# TYPE toolspan_llm_requests_total counter
# HELP toolspan_llm_tokens_total Total tokens, by type.
# TYPE toolspan_llm_tokens_total counter
# HELP toolspan_llm_request_duration_seconds LLM request duration in seconds.
# TYPE toolspan_llm_request_duration_seconds histogram
# HELP toolspan_tool_calls_total Total tool calls.
# TYPE toolspan_tool_calls_total counter
# HELP toolspan_tool_duration_seconds Tool execution duration in seconds.
# TYPE toolspan_tool_duration_seconds histogram
# HELP toolspan_run_errors_total Total run errors.
# TYPE toolspan_run_errors_total counter
";

    #[test]
    fn without_events_there_are_only_heads() {
        assert_eq!(rendered(&[]), HEADS_ONLY);
    }

    #[test]
    fn a_run_that_gives_a_result_adds_nothing() {
        assert_eq!(rendered(&[run("m", None)]), HEADS_ONLY);
    }

    #[test]
    fn every_event_is_counted_where_it_belongs() {
        let text = rendered(&[
            llm("m", LlmStatus::Ok, 50, 10, 3),
            llm("m", LlmStatus::Ok, 51, 20, 4),
            llm("m", LlmStatus::Error, 70_000, 0, 0),
            llm("a", LlmStatus::Ok, 1_000, 1, 1),
            tool("srv_x", Some(Source::Mcp), false, 200),
            tool("add", Some(Source::Native), false, 0),
            tool("add", Some(Source::Native), true, 100),
            run("m", Some(ErrorCode::RateLimited)),
            run("m", None),
        ]);
        assert_eq!(
            text,
            r#"# HELP toolspan_llm_requests_total Total LLM requests.
# TYPE toolspan_llm_requests_total counter
toolspan_llm_requests_total{model="a",status="ok"} 1
toolspan_llm_requests_total{model="m",status="error"} 1
toolspan_llm_requests_total{model="m",status="ok"} 2
# HELP toolspan_llm_tokens_total Total tokens, by type.
# TYPE toolspan_llm_tokens_total counter
toolspan_llm_tokens_total{type="completion"} 8
toolspan_llm_tokens_total{type="prompt"} 31
# HELP toolspan_llm_request_duration_seconds LLM request duration in seconds.
# TYPE toolspan_llm_request_duration_seconds histogram
toolspan_llm_request_duration_seconds_bucket{model="a",le="0.05"} 0
toolspan_llm_request_duration_seconds_bucket{model="a",le="0.1"} 0
toolspan_llm_request_duration_seconds_bucket{model="a",le="0.25"} 0
toolspan_llm_request_duration_seconds_bucket{model="a",le="0.5"} 0
toolspan_llm_request_duration_seconds_bucket{model="a",le="1"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="2.5"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="5"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="10"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="30"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="60"} 1
toolspan_llm_request_duration_seconds_bucket{model="a",le="+Inf"} 1
toolspan_llm_request_duration_seconds_sum{model="a"} 1
toolspan_llm_request_duration_seconds_count{model="a"} 1
toolspan_llm_request_duration_seconds_bucket{model="m",le="0.05"} 1
toolspan_llm_request_duration_seconds_bucket{model="m",le="0.1"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="0.25"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="0.5"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="1"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="2.5"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="5"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="10"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="30"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="60"} 2
toolspan_llm_request_duration_seconds_bucket{model="m",le="+Inf"} 3
toolspan_llm_request_duration_seconds_sum{model="m"} 70.101
toolspan_llm_request_duration_seconds_count{model="m"} 3
# HELP toolspan_tool_calls_total Total tool calls.
# TYPE toolspan_tool_calls_total counter
toolspan_tool_calls_total{tool="add",source="native",is_error="false"} 1
toolspan_tool_calls_total{tool="add",source="native",is_error="true"} 1
toolspan_tool_calls_total{tool="srv_x",source="mcp",is_error="false"} 1
# HELP toolspan_tool_duration_seconds Tool execution duration in seconds.
# TYPE toolspan_tool_duration_seconds histogram
toolspan_tool_duration_seconds_bucket{tool="add",le="0.05"} 1
toolspan_tool_duration_seconds_bucket{tool="add",le="0.1"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="0.25"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="0.5"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="1"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="2.5"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="5"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="10"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="30"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="60"} 2
toolspan_tool_duration_seconds_bucket{tool="add",le="+Inf"} 2
toolspan_tool_duration_seconds_sum{tool="add"} 0.1
toolspan_tool_duration_seconds_count{tool="add"} 2
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="0.05"} 0
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="0.1"} 0
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="0.25"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="0.5"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="1"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="2.5"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="5"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="10"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="30"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="60"} 1
toolspan_tool_duration_seconds_bucket{tool="srv_x",le="+Inf"} 1
toolspan_tool_duration_seconds_sum{tool="srv_x"} 0.2
toolspan_tool_duration_seconds_count{tool="srv_x"} 1
# HELP toolspan_run_errors_total Total run errors.
# TYPE toolspan_run_errors_total counter
toolspan_run_errors_total{model="m"} 1
"#
        );
    }

    #[test]
    fn label_values_are_escaped() {
        let text = rendered(&[run("a\\b\"c\nd", Some(ErrorCode::Internal))]);
        let last = text.lines().last();
        assert_eq!(
            last,
            Some(r#"toolspan_run_errors_total{model="a\\b\"c\nd"} 1"#)
        );
    }

    #[test]
    fn names_the_model_made_up_share_one_series() {
        let text = rendered(&[tool("x1", None, true, 0), tool("x2", None, true, 0)]);
        let calls: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("toolspan_tool_calls_total{"))
            .collect();
        assert_eq!(
            calls,
            [r#"toolspan_tool_calls_total{tool="unknown",source="unknown",is_error="true"} 2"#]
        );
    }
}
