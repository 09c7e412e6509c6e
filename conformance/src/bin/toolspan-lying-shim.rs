//! A shim for the runner's own tests: it knows one tool, and tells one kind of lie about it.
//!
//! `toolspan-lying-shim LANGUAGE LIE`; the lie `none` makes it an honest shim.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn main() {
    let mut args = std::env::args().skip(1);
    let language = args.next().unwrap_or_default();
    let lie = args.next().unwrap_or_default();
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    match lie.as_str() {
        "never-ready" => return lines.by_ref().for_each(drop),
        "unavailable" => return say(&json!({"unavailable": "the interpreter is too old"})),
        "other-language" => say(&json!({"ready": {"language": "klingon", "version": "0.1.0"}})),
        "dies-early" => {
            eprintln!("no such library");
            std::process::exit(3);
        }
        _ => say(&json!({"ready": {"language": language, "version": "0.1.0"}})),
    }
    let mut hanging = None;
    let mut asked = false;
    for line in lines.by_ref() {
        let request: Value = serde_json::from_str(&line).unwrap_or_default();
        let step = &request["step"];
        match (request["op"].as_str().unwrap_or_default(), lie.as_str()) {
            ("toolkit.execute", _) if request["args"]["name"] == "hang" => {
                hanging = Some(step.clone())
            }
            ("toolkit.execute", lie) => execute(step, &request, lie),
            ("toolkit.create", _) => say(&json!({"step": step, "ok": {"toolkit": 1}})),
            ("toolkit.close", "cannot-close") => {
                say(&json!({"step": step, "error": {"code": "internal", "message": "still busy"}}));
            }
            ("cancel", lie) => {
                say(&json!({"step": step, "ok": {}}));
                if lie != "ignores-cancel" {
                    let cancelled = json!({"code": "cancelled", "message": "cancelled"});
                    say(&json!({"step": hanging.take(), "error": cancelled}));
                }
            }
            ("version", _) => say(&json!({"step": step, "ok": {"version": "0.1.0"}})),
            ("host.calls", _) => {
                // The first call belongs to another case.
                let calls = json!([
                    {"handler": 999, "kind": "tool.execute", "payload": {}},
                    {"handler": 1, "kind": "tool.execute", "payload": {"x": 1}}
                ]);
                say(&json!({"step": step, "ok": calls}));
            }
            ("host.logs", "late") if !std::mem::replace(&mut asked, true) => {
                say(&json!({"step": step, "ok": []}));
            }
            ("host.logs", _) => {
                let records = json!([{"level": "info", "message": "hi"}, {"level": "warn", "message": "careful"}]);
                say(&json!({"step": step, "ok": records}));
            }
            _ => say(&json!({"step": step, "ok": {}})),
        }
    }
    match lie.as_str() {
        "ends-badly" => std::process::exit(7),
        "never-ends" => loop {
            std::thread::park();
        },
        _ => {}
    }
}

fn execute(step: &Value, request: &Value, lie: &str) {
    let output = request["args"]["args"].to_string();
    let honest = json!({"step": step, "ok": {"output": output, "isError": false}});
    match lie {
        "wrong-result" => say(&json!({"step": step, "ok": {"output": "42", "isError": false}})),
        "extra-key" => {
            say(&json!({"step": step, "ok": {"output": output, "isError": false, "note": null}}))
        }
        "other-spacing" => say(
            &json!({"step": step, "ok": {"output": output.replace(':', ": "), "isError": false}}),
        ),
        "error-instead" => {
            say(&json!({"step": step, "error": {"code": "internal", "message": "no"}}))
        }
        "no-answer" => eprintln!("thinking about it"),
        "dies" => {
            eprintln!("panicked at the disco");
            std::process::exit(101);
        }
        "prints" => println!("debug: executing"),
        "both" => say(&json!({"step": step, "ok": {}, "error": {}})),
        "twice" => {
            say(&honest);
            say(&honest);
        }
        _ => say(&honest),
    }
}

fn say(line: &Value) {
    let mut stdout = std::io::stdout().lock();
    // A runner that hung up needs no answer.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
