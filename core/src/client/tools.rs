//! The tools of a turn: what the model is told about them, and the execution of its calls (SPEC 7.3, 7.4).

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::fmt::Write;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tokio::sync::Semaphore;

use super::Inner;
use super::event::Event;
use super::hooks::{AfterTool, BeforeTool};
use super::state::{Finished, State};
use super::turns::Cx;
use super::wire::Call;
use crate::error::Result;
use crate::json::{self, Json};
use crate::log::LogLevel;
use crate::metrics::MetricEvent;
use crate::schema::{self, Provider};
use crate::style::Style;
use crate::tool::{Arguments, Tool, ToolContext, ToolInfo, ToolResult};
use crate::toolkit::Toolkit;

/// Names that the message about an unknown tool lists.
const MAX_NAMES: usize = 100;

/// The declarations of one snapshot of a toolkit, compiled once.
pub(crate) struct Declared {
    pub tools: Arc<[Tool]>,
    /// One declaration per tool, in order.
    pub list: Vec<Json>,
    /// All of them as one list; `None` when there are none.
    pub joined: Option<Json>,
}

impl Declared {
    /// The declarations of a toolkit as it is now.
    pub(crate) fn of(inner: &Inner, toolkit: Option<&Toolkit>) -> Result<Arc<Declared>> {
        let tools = toolkit.map_or_else(|| Arc::from([]), Toolkit::tools);
        let cache = || {
            inner
                .declared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let cached = cache().clone();
        if let Some(declared) = cached
            && Arc::ptr_eq(&declared.tools, &tools)
        {
            return Ok(declared);
        }
        // Without the lock: compiling takes its time and logs to the program. Two runs may both do it; either result will do.
        let declared = Arc::new(Declared::compile(inner, tools)?);
        let before = cache().replace(declared.clone());
        drop(before);
        Ok(declared)
    }

    fn compile(inner: &Inner, tools: Arc<[Tool]>) -> Result<Declared> {
        let provider = match inner.options.style {
            Style::OpenAi => Provider::OpenAi,
            Style::Anthropic => Provider::Anthropic,
        };
        let infos: Vec<&ToolInfo> = tools.iter().map(Tool::info).collect();
        let compiled = schema::compile(provider, &infos);
        for loss in &compiled.losses {
            inner.options.logger.log(
                LogLevel::Debug,
                "client",
                || {
                    format!(
                        "{}: {} at {:?}: {}",
                        loss.tool, loss.keyword, loss.path, loss.detail
                    )
                },
                [("tool", loss.tool.as_str().into())],
            );
        }
        let list = compiled
            .tools
            .iter()
            .map(json::to_json)
            .collect::<Result<Vec<_>>>()?;
        Ok(Declared {
            joined: join(&list)?,
            tools,
            list,
        })
    }

    fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.info().name == name)
    }

    /// What the model reads when it calls a tool that does not exist.
    fn unknown(&self, name: &str) -> String {
        let mut text = format!("Unknown tool: {name}. ");
        if self.tools.is_empty() {
            text.push_str("There are no tools.");
            return text;
        }
        text.push_str("The tools are: ");
        let names: Vec<&str> = self.tools.iter().map(|t| t.info().name.as_str()).collect();
        text.push_str(&names[..names.len().min(MAX_NAMES)].join(", "));
        if names.len() > MAX_NAMES {
            let _ = write!(text, " and {} more", names.len() - MAX_NAMES);
        }
        text.push('.');
        text
    }
}

/// Declarations as one JSON list, or none: an empty list is not sent.
pub(crate) fn join(list: &[Json]) -> Result<Option<Json>> {
    if list.is_empty() {
        return Ok(None);
    }
    json::to_json(list).map(Some)
}

/// Executes the calls of the running turn at the same time, as many as allowed, and keeps each result in the state as soon as
/// it is there. Results are told in call order.
pub(super) async fn execute(
    cx: &Cx<'_>,
    state: &mut State,
    declared: &Declared,
    calls: &[Call],
) -> Result<()> {
    let turn = state.turns;
    for call in calls {
        let emitted = cx.emitter.emit(|| Event::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            args: given(call).json().clone(),
        });
        emitted.await?;
    }
    let room = Semaphore::new(cx.inner.options.max_tool_concurrency);
    let mut running: FuturesUnordered<_> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let room = &room;
            async move {
                // Never closed, so the permit is only missing in a world where it is not needed.
                let _permit = room.acquire().await.ok();
                (index, execute_one(cx, declared, call, turn).await)
            }
        })
        .collect();
    let mut told = 0;
    while let Some((index, finished)) = running.next().await {
        state.finish(index, finished?);
        while let Some(finished) = state.finished(told) {
            let call = &calls[told];
            let emitted = cx.emitter.emit(|| Event::ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                output: finished.result.output.clone(),
                is_error: finished.result.is_error,
                metadata: finished.result.metadata.clone(),
            });
            emitted.await?;
            told += 1;
        }
    }
    Ok(())
}

fn given(call: &Call) -> Arguments {
    call.args.clone().unwrap_or_else(|_| Arguments::empty())
}

/// One call with its hooks. An error is a hook's and ends the run; whatever the tool does is a result.
async fn execute_one(cx: &Cx<'_>, declared: &Declared, call: &Call, turn: u32) -> Result<Finished> {
    let hooks = &cx.inner.options.hooks;
    let tool = declared.get(&call.name);
    let started = Instant::now();
    let mut args = match accepted(tool, call) {
        Ok(args) => args,
        Err(complaint) => {
            let refused = Finished {
                args: given(call),
                result: ToolResult::error(complaint),
            };
            return Ok(measured(cx, tool, call, started, refused));
        }
    };
    if let Some(hook) = &hooks.before_tool {
        let change = hook.call(BeforeTool {
            name: call.name.clone(),
            args: args.json().clone(),
            id: call.id.clone(),
            turn,
            hints: tool.and_then(|tool| tool.info().hints),
        });
        let change = change.await?;
        if let Some(result) = change.result {
            let result = capped(cx, result);
            return Ok(Finished { args, result });
        }
        if let Some(changed) = change.args {
            args = Arguments::from_json(changed).unwrap_or(args);
        }
    }
    let started = Instant::now();
    let result = match tool {
        None => ToolResult::error(declared.unknown(&call.name)),
        Some(tool) => {
            let context = ToolContext {
                cancel: cx.cancel.clone(),
                timeout: None,
                call_id: Some(call.id.clone()),
            };
            tool.execute(args.clone(), context).await
        }
    };
    let mut finished = measured(cx, tool, call, started, Finished { args, result });
    if let Some(hook) = &hooks.after_tool {
        let change = hook.call(AfterTool {
            name: call.name.clone(),
            args: finished.args.json().clone(),
            result: finished.result.clone(),
            id: call.id.clone(),
            turn,
        });
        if let Some(result) = change.await?.result {
            finished.result = result;
        }
    }
    finished.result = capped(cx, finished.result);
    Ok(finished)
}

/// The arguments as the tool gets them, or what the model reads when it is not called.
fn accepted(tool: Option<&Tool>, call: &Call) -> Result<Arguments, String> {
    let args = call.args.clone().map_err(|bad| bad.to_string())?;
    match tool {
        None => Ok(args),
        Some(tool) => tool.accept(args),
    }
}

fn measured(
    cx: &Cx<'_>,
    tool: Option<&Tool>,
    call: &Call,
    started: Instant,
    finished: Finished,
) -> Finished {
    cx.inner.metric(MetricEvent::Tool {
        tool: call.name.clone(),
        source: tool.map(|tool| tool.info().source),
        is_error: finished.result.is_error,
        ms: super::turns::millis(started),
    });
    finished
}

fn capped(cx: &Cx<'_>, mut result: ToolResult) -> ToolResult {
    cap(&mut result.output, cx.inner.options.max_tool_output_bytes);
    result
}

/// Cuts text at a character's edge and says that it did.
fn cap(text: &mut String, most: usize) {
    let whole = text.len();
    if whole <= most {
        return;
    }
    let edge = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(edge.unwrap_or(0));
    let kept = text.len();
    let _ = write!(text, "\n[cut: {kept} of {whole} bytes are shown]");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::log::Logger;
    use serde_json::json;
    use std::sync::{Mutex, OnceLock};

    #[tokio::test]
    async fn no_lock_is_held_while_the_program_is_told_what_was_changed_in_a_schema() {
        let client: Arc<OnceLock<Client>> = Arc::default();
        let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
        let (asked, free) = (client.clone(), seen.clone());
        let sink = move |record: crate::log::LogRecord| {
            if record.level == LogLevel::Debug {
                let free_now = asked.get().is_some_and(|c| c.0.declared.try_lock().is_ok());
                free.lock().unwrap().push(free_now);
            }
        };
        let built = Client::builder("http://127.0.0.1:9", Style::OpenAi, "m")
            .logger(Logger::new(Arc::new(sink), LogLevel::Debug))
            .build()
            .unwrap();
        let client = client.get_or_init(|| built);
        let odd = json!({"properties": {"n": {"type": "INTEGER"}}});
        let tool = Tool::new("a", "", odd, |_, _| async {});
        let toolkit = Toolkit::builder().tool(tool).build().await.unwrap();
        let first = Declared::of(&client.0, Some(&toolkit)).unwrap();
        let second = Declared::of(&client.0, Some(&toolkit)).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(*seen.lock().unwrap(), [true]);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let mut text = "aä€".to_owned();
        cap(&mut text, 5);
        assert_eq!(text, "aä\n[cut: 3 of 6 bytes are shown]");
        let mut text = "aä€".to_owned();
        cap(&mut text, 6);
        assert_eq!(text, "aä€");
    }
}
