//! An agent in one screen: an MCP server, a tool of our own, a streamed answer.
//!
//! `make demo` runs it against a scripted model and a real MCP server; with `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` set
//! it asks the real endpoint.

use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use toolspan::{Arguments, Client, Event, Style, Tool, Toolkit};

const PROMPT: &str = "What is the weather in Chicago, and how many days are left until the picnic on 2026-12-24? Today is 2026-11-30.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let days_between = Tool::new(
        "days_between",
        "Number of days from one date to another",
        json!({
            "type": "object",
            "properties": {"from": {"type": "string", "format": "date"}, "to": {"type": "string", "format": "date"}},
            "required": ["from", "to"],
        }),
        |arguments, _| async move { days(&arguments) },
    );
    let toolkit = Toolkit::builder()
        .mcp_config(std::env::var("DEMO_MCP")?)
        .tool(days_between)
        .build()
        .await?;
    let client = client()?;

    let mut events = client.stream(PROMPT).toolkit(&toolkit).start();
    let mut out = std::io::stdout();
    writeln!(out, "\x1b[1m> {PROMPT}\x1b[0m\n")?;
    while let Some(event) = events.next().await {
        match event? {
            Event::Text { delta } => write!(out, "{delta}")?,
            Event::ToolCall { name, args, .. } => {
                writeln!(out, "\x1b[36m  * {name} {}\x1b[0m", args.get())?
            }
            Event::ToolResult { output, .. } => writeln!(out, "\x1b[90m    {output}\x1b[0m")?,
            Event::Done { result } => {
                writeln!(
                    out,
                    "\n\n\x1b[90m{} turns, {} tokens\x1b[0m",
                    result.turns, result.usage.total_tokens
                )?;
                if let Ok(path) = std::env::var("DEMO_TRANSCRIPT") {
                    std::fs::write(path, serde_json::to_string_pretty(&result.messages)?)?;
                }
            }
            _ => {}
        }
        out.flush()?;
    }
    toolkit.close().await;
    Ok(())
}

/// The real endpoint when there is a key for it, the scripted one otherwise.
fn client() -> Result<Client, Box<dyn std::error::Error>> {
    let builder = if std::env::var("ANTHROPIC_API_KEY").is_ok() {
        Client::builder(
            "https://api.anthropic.com",
            Style::Anthropic,
            "claude-sonnet-4-5",
        )
    } else if std::env::var("OPENAI_API_KEY").is_ok() {
        Client::builder("https://api.openai.com/v1", Style::OpenAi, "gpt-5-mini")
    } else {
        Client::builder(std::env::var("DEMO_MODEL")?, Style::OpenAi, "scripted")
    };
    Ok(builder.build()?)
}

#[derive(Deserialize)]
struct Span {
    from: String,
    to: String,
}

fn days(arguments: &Arguments) -> Result<String, Box<dyn std::error::Error>> {
    let span: Span = arguments.parse()?;
    Ok((day_number(&span.to)? - day_number(&span.from)?).to_string())
}

/// Days since a fixed day of the Gregorian calendar.
fn day_number(date: &str) -> Result<i64, Box<dyn std::error::Error>> {
    let mut fields = date.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || {
        fields
            .next()
            .ok_or("a date looks like 2026-12-24")?
            .map_err(|e| format!("{date}: {e}"))
    };
    let (year, month, day) = (next()?, next()?, next()?);
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    Ok(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}
