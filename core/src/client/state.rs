//! What a run has done so far (SPEC 2, 7.3). Whatever ends the run, this is what is left, and it is always in order: each
//! call in the transcript has exactly one result before anything is returned or saved.

use std::sync::Arc;

use super::result::{Limit, RunResult, RunStatus, ToolCallRecord, Usage};
use super::wire::{self, Answer, Call, CallIds, CallResult};
use crate::error::Result;
use crate::json::Json;
use crate::style::Style;
use crate::tool::{Arguments, ToolResult};

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Limit(Limit),
}

/// What stands in the transcript for a call that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The answer was cut, so its calls were never started.
    NotExecuted,
    /// The run ended while the call was running.
    Interrupted,
}

impl Unanswered {
    fn text(self) -> &'static str {
        match self {
            Unanswered::NotExecuted => {
                "Not executed: the answer was cut off by the output limit before the call was complete."
            }
            Unanswered::Interrupted => {
                "Interrupted: the run ended before this call did. It may have had effects."
            }
        }
    }
}

/// A call with its result.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What the tool got.
    pub args: Arguments,
    pub result: ToolResult,
}

/// The calls of the turn that is running.
struct OpenTurn {
    calls: Arc<[Call]>,
    finished: Vec<Option<Finished>>,
}

/// The state of one run.
pub(crate) struct State {
    style: Style,
    pub messages: Vec<Json>,
    pub ids: CallIds,
    pub turns: u32,
    pub usage: Usage,
    pub model: String,
    text: String,
    refusal: Option<String>,
    records: Vec<ToolCallRecord>,
    open: Option<OpenTurn>,
}

impl State {
    pub(crate) fn new(style: Style, messages: Vec<Json>, model: String) -> Self {
        State {
            style,
            ids: CallIds::after(&messages),
            messages,
            turns: 0,
            usage: Usage::default(),
            model,
            text: String::new(),
            refusal: None,
            records: Vec::new(),
            open: None,
        }
    }

    /// Takes an answer into the transcript; its calls wait for their results.
    pub(crate) fn answered(&mut self, answer: Answer) -> Arc<[Call]> {
        self.turns += 1;
        self.usage.add(answer.usage.unwrap_or_default());
        self.text = answer.text;
        self.refusal = answer.refusal;
        self.messages.extend(answer.message);
        let calls: Arc<[Call]> = answer.calls.into();
        if !calls.is_empty() {
            self.open = Some(OpenTurn {
                calls: calls.clone(),
                finished: calls.iter().map(|_| None).collect(),
            });
        }
        calls
    }

    /// Keeps the result of a call, in whatever order calls end.
    pub(crate) fn finish(&mut self, index: usize, finished: Finished) {
        if let Some(slot) = self
            .open
            .as_mut()
            .and_then(|open| open.finished.get_mut(index))
        {
            *slot = Some(finished);
        }
    }

    /// The result of a call of the running turn.
    pub(crate) fn finished(&self, index: usize) -> Option<&Finished> {
        self.open.as_ref()?.finished.get(index)?.as_ref()
    }

    /// Writes the results of the running turn into the transcript. Without a running turn there is nothing to do.
    pub(crate) fn close_turn(&mut self, unanswered: Unanswered) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let missing = ToolResult::error(unanswered.text());
        let results: Vec<CallResult<'_>> = open
            .calls
            .iter()
            .zip(&open.finished)
            .map(|(call, finished)| CallResult {
                id: &call.id,
                name: &call.name,
                result: finished.as_ref().map_or(&missing, |f| &f.result),
            })
            .collect();
        self.messages
            .extend(wire::result_messages(self.style, &results)?);
        for (call, finished) in open.calls.iter().zip(open.finished) {
            // What was never started is not an executed call.
            if finished.is_none() && unanswered == Unanswered::NotExecuted {
                continue;
            }
            let finished = finished.unwrap_or_else(|| Finished {
                args: call.args.clone().unwrap_or_else(|_| Arguments::empty()),
                result: missing.clone(),
            });
            self.records.push(ToolCallRecord {
                id: call.id.clone(),
                name: call.name.clone(),
                args: finished.args.json().clone(),
                output: finished.result.output,
                is_error: finished.result.is_error,
                metadata: finished.result.metadata,
            });
        }
        Ok(())
    }

    /// Calls executed so far.
    pub(crate) fn tool_calls(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn into_result(self, end: End, conversation_id: Option<String>) -> RunResult {
        let (status, limit) = match end {
            End::Done => (RunStatus::Done, None),
            End::Limit(limit) => (RunStatus::Incomplete, Some(limit)),
        };
        RunResult {
            text: self.text,
            messages: self.messages,
            tool_calls: self.records,
            turns: self.turns,
            usage: self.usage,
            model: self.model,
            status,
            limit,
            refusal: self.refusal,
            conversation_id,
        }
    }
}
