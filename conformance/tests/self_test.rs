//! The runner tested with shims that lie: every lie must be found, and told in words that help.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A suite in a folder of its own.
struct Suite(tempfile::TempDir);

/// What the runner said.
struct Said {
    code: i32,
    text: String,
    errors: String,
}

impl Suite {
    /// Languages as pairs of name and lie.
    fn new(ports: &[(&str, &str)]) -> Self {
        let suite = Self(tempfile::tempdir().unwrap());
        let shim = env!("CARGO_BIN_EXE_toolspan-lying-shim");
        let ports: Vec<Value> = ports
            .iter()
            .map(|(name, lie)| json!({"name": name, "command": [shim, name, lie]}))
            .collect();
        suite.write("ports.json", &json!(ports));
        suite
    }

    fn write(&self, name: &str, value: &Value) {
        let file = self.0.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, value.to_string()).unwrap();
    }

    fn case(&self, name: &str, steps: Value) {
        self.write(
            &format!("cases/{name}.json"),
            &json!({"title": "t", "spec": "1", "covers": ["x"], "steps": steps}),
        );
    }

    /// The case most lies are about: a tool that gives its arguments back.
    fn echo(self) -> Self {
        self.case(
            "area/echo",
            json!([
                {"op": "toolkit.create", "as": "tk"},
                {"op": "toolkit.execute", "args": {"toolkit": "$tk", "name": "echo", "args": {"a": 1}},
                 "expect": {"ok": {"output": {"$json": {"a": 1}}, "isError": false}}}
            ]),
        );
        self
    }

    fn run(&self, args: &[&str]) -> Said {
        run(self.0.path(), args)
    }
}

fn run(suite: &Path, args: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_toolspan-conformance"))
        .args(["--suite".as_ref(), suite.as_os_str()])
        .args(args)
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap(),
        text: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the echo case with one lying language; the report must hold `wanted` and count one failure.
#[track_caller]
fn assert_found(lie: &str, wanted: &str) {
    let said = Suite::new(&[("liar", lie)])
        .echo()
        .run(&["run", "--step-limit-ms", "700"]);
    assert!(
        said.text.contains(wanted),
        "{wanted:?} is not in\n{}",
        said.text
    );
    assert_eq!(
        said.text.lines().last(),
        Some("0 passed, 1 failed"),
        "{}",
        said.text
    );
    assert_eq!(said.code, 1);
}

/// The same for a lie about the process, which leaves its cases passed.
#[track_caller]
fn assert_blamed(lie: &str, wanted: &str) {
    let suite = Suite::new(&[("liar", lie)]);
    suite.case("area/version", json!([{"op": "version"}]));
    let said = suite.run(&["run", "--step-limit-ms", "700"]);
    assert!(
        said.text.contains(wanted),
        "{wanted:?} is not in\n{}",
        said.text
    );
    assert_eq!(
        said.text.lines().last(),
        Some("1 passed, 1 failed"),
        "{}",
        said.text
    );
    assert_eq!(said.code, 1);
}

#[test]
fn two_honest_languages_pass() {
    let said = Suite::new(&[("alpha", "none"), ("beta", "none")])
        .echo()
        .run(&["run", "--require-all"]);
    assert_eq!(
        said.text,
        "area    alpha     beta\n\
         area      1/1      1/1\n\
         \n\
         2 passed, 0 failed\n"
    );
    assert_eq!(said.code, 0);
}

#[test]
fn a_wrong_result_is_found() {
    assert_found(
        "wrong-result",
        "FAIL area/echo [liar] step 2 toolkit.execute\n  \
         ok $.output as JSON: expected an object, got 42\n    \
         expected: {\"isError\":false,\"output\":{\"$json\":{\"a\":1}}}\n    \
         actual:   {\"isError\":false,\"output\":\"42\"}\n",
    );
}

#[test]
fn an_extra_key_is_found() {
    assert_found("extra-key", "ok $.note: expected no such key, got null");
}

#[test]
fn an_error_instead_of_a_result_is_found() {
    assert_found(
        "error-instead",
        "actual:   error {\"code\":\"internal\",\"message\":\"no\"}",
    );
}

#[test]
fn a_missing_answer_is_found() {
    assert_found(
        "no-answer",
        "no answer in 700 ms\n    stderr: thinking about it",
    );
}

#[test]
fn a_death_is_found_with_its_last_words() {
    assert_found("dies", "the shim died\n    stderr: panicked at the disco");
}

#[test]
fn a_line_that_is_no_answer_is_found() {
    assert_found(
        "prints",
        "the shim broke the protocol: a line that is not an object: debug: executing",
    );
}

#[test]
fn an_answer_that_is_both_is_found() {
    assert_found(
        "both",
        "the shim broke the protocol: neither or both of ok and error",
    );
}

#[test]
fn a_second_answer_is_found() {
    let said = Suite::new(&[("liar", "twice")]).echo().run(&["run"]);
    assert!(
        said.text
            .contains("the shim broke the protocol: an answer nobody waits for"),
        "{}",
        said.text
    );
    assert_eq!(said.code, 1);
}

#[test]
fn a_toolkit_that_cannot_be_closed_is_found() {
    assert_found(
        "cannot-close",
        "FAIL area/echo [liar] toolkit.close at the end\n  {\"code\":\"internal\"",
    );
}

#[test]
fn a_bad_exit_code_is_found() {
    assert_blamed(
        "ends-badly",
        "FAIL liar: the shim ended with exit status: 7 after its input closed",
    );
}

#[test]
fn a_shim_that_does_not_end_is_found() {
    assert_blamed(
        "never-ends",
        "FAIL liar: the shim did not end within 700 ms after its input closed",
    );
}

#[test]
fn a_difference_between_languages_is_found_where_the_case_is_loose() {
    let said = Suite::new(&[("alpha", "none"), ("beta", "other-spacing")])
        .echo()
        .run(&["run"]);
    let wanted = "FAIL area/echo [beta] step 2 toolkit.execute\n  the languages differ\n    \
         alpha: {\"ok\":{\"isError\":false,\"output\":\"{\\\"a\\\":1}\"}}\n    \
         beta:  {\"ok\":{\"isError\":false,\"output\":\"{\\\"a\\\": 1}\"}}\n";
    assert!(said.text.contains(wanted), "{}", said.text);
    assert_eq!(said.text.lines().last(), Some("1 passed, 1 failed"));
}

#[test]
fn a_shim_that_is_never_ready_is_not_run() {
    let suite = Suite::new(&[("alpha", "none"), ("liar", "never-ready")]).echo();
    let said = suite.run(&["run", "--step-limit-ms", "700"]);
    assert!(
        said.text.contains("liar: not run: not ready after 700 ms"),
        "{}",
        said.text
    );
    assert_eq!(said.text.lines().last(), Some("1 passed, 0 failed"));
    assert_eq!(said.code, 0);
}

#[test]
fn a_language_that_is_not_run_fails_when_all_are_required() {
    let suite = Suite::new(&[("alpha", "none"), ("liar", "unavailable")]).echo();
    let said = suite.run(&["run", "--require-all"]);
    assert!(
        said.text
            .contains("FAIL liar: not run: the interpreter is too old"),
        "{}",
        said.text
    );
    assert_eq!(said.text.lines().last(), Some("1 passed, 1 failed"));
    assert_eq!(said.code, 1);
}

#[test]
fn a_language_that_is_not_run_fails_when_it_was_named() {
    let suite = Suite::new(&[("alpha", "none"), ("liar", "other-language")]).echo();
    let said = suite.run(&["run", "--ports", "liar"]);
    assert!(
        said.text
            .contains("FAIL liar: not run: it says it is the shim of klingon"),
        "{}",
        said.text
    );
    assert_eq!(said.text.lines().last(), Some("0 passed, 1 failed"));
}

#[test]
fn a_language_that_needs_a_missing_program_is_not_run() {
    let suite = Suite::new(&[]).echo();
    suite.write(
        "ports.json",
        &json!([{"name": "cobol", "command": ["x"], "needs": ["no-such-program-here"]}]),
    );
    let said = suite.run(&["run"]);
    assert!(
        said.text
            .contains("cobol: not run: no-such-program-here is not on PATH"),
        "{}",
        said.text
    );
    assert!(
        said.text.contains("FAIL no language was run"),
        "{}",
        said.text
    );
    assert_eq!(said.code, 1);
}

#[test]
fn a_death_before_ready_is_the_reason_for_not_running() {
    let said = Suite::new(&[("liar", "dies-early")]).echo().run(&["run"]);
    assert!(
        said.text
            .contains("liar: not run: it ended before it was ready\n  stderr: no such library"),
        "{}",
        said.text
    );
}

#[test]
fn an_unknown_language_is_an_error() {
    let said = Suite::new(&[("alpha", "none")])
        .echo()
        .run(&["run", "--ports", "beta"]);
    assert_eq!(
        said.errors,
        "no port \"beta\" in ports.json; it lists alpha\n"
    );
    assert_eq!(said.code, 2);
}

#[test]
fn after_a_death_the_next_case_gets_a_new_process() {
    let suite = Suite::new(&[("liar", "dies")]).echo();
    suite.case(
        "area/later",
        json!([{"op": "version", "expect": {"ok": {"version": "0.1.0"}}}]),
    );
    let said = suite.run(&["run", "--jobs", "1"]);
    assert_eq!(
        said.text.lines().last(),
        Some("1 passed, 1 failed"),
        "{}",
        said.text
    );
}

#[test]
fn an_expected_failure_is_no_failure() {
    let suite = Suite::new(&[("liar", "wrong-result")]).echo();
    suite.write("expected-failures.json", &json!({"liar": ["area/echo"]}));
    let said = suite.run(&["run"]);
    assert!(
        said.text.contains("known failure: area/echo [liar]"),
        "{}",
        said.text
    );
    assert_eq!(said.text.lines().last(), Some("0 passed, 0 failed"));
    assert_eq!(said.code, 0);
}

#[test]
fn a_stale_expected_failure_is_a_failure() {
    let suite = Suite::new(&[("alpha", "none")]).echo();
    suite.write("expected-failures.json", &json!({"alpha": ["area/echo"]}));
    let said = suite.run(&["run"]);
    assert!(
        said.text
            .contains("FAIL area/echo [alpha] is listed in expected-failures.json and passes"),
        "{}",
        said.text
    );
    assert_eq!(said.code, 1);
}

#[test]
fn an_expected_failure_of_no_case_is_a_failure() {
    let suite = Suite::new(&[("alpha", "none")]).echo();
    suite.write("expected-failures.json", &json!({"alpha": ["area/gone"]}));
    let said = suite.run(&["run"]);
    assert!(
        said.text.contains(
            "FAIL area/gone [alpha] is listed in expected-failures.json and no case has that name"
        ),
        "{}",
        said.text
    );
}

#[test]
fn a_started_step_can_be_cancelled_and_awaited() {
    let suite = Suite::new(&[("alpha", "none")]);
    suite.case(
        "area/cancel",
        json!([
            {"op": "toolkit.execute", "as": "x", "start": true, "args": {"name": "hang"}},
            {"op": "cancel", "args": {"step": "$x"}},
            {"op": "await", "args": {"step": "$x"}, "within": 5000,
             "expect": {"error": {"code": "cancelled", "message": "cancelled"}}}
        ]),
    );
    assert_eq!(
        suite.run(&["run"]).text.lines().last(),
        Some("1 passed, 0 failed")
    );
}

#[test]
fn a_step_left_running_must_end_when_it_is_cancelled() {
    let suite = Suite::new(&[("liar", "ignores-cancel")]);
    suite.case(
        "area/left",
        json!([{"op": "toolkit.execute", "as": "x", "start": true, "args": {"name": "hang"}}]),
    );
    let said = suite.run(&["run", "--step-limit-ms", "700"]);
    assert!(
        said.text
            .contains("FAIL area/left [liar] end of started step x\n  no answer in 700 ms"),
        "{}",
        said.text
    );
}

#[test]
fn a_case_sees_the_calls_of_its_own_functions_only() {
    let suite = Suite::new(&[("alpha", "none")]);
    let tool = json!({"name": "t", "handler": {"$host": {"echo": true}}});
    suite.case(
        "area/calls",
        json!([
            {"op": "toolkit.create", "args": {"options": {"tools": [tool]}}},
            {"op": "host.calls", "expect": {"ok": [{"handler": 1, "kind": "tool.execute", "payload": {"x": 1}}]}}
        ]),
    );
    let said = suite.run(&["run"]);
    assert_eq!(
        said.text.lines().last(),
        Some("1 passed, 0 failed"),
        "{}",
        said.text
    );
}

#[test]
fn an_unexpected_warning_is_a_failure() {
    let suite = Suite::new(&[("alpha", "none")]);
    suite.write(
        "cases/area/logs.json",
        &json!({"title": "t", "spec": "1", "covers": ["x"], "steps": [{"op": "version"}], "logs": []}),
    );
    let said = suite.run(&["run"]);
    assert!(
        said.text
            .contains("FAIL area/logs [alpha] logs\n  ok $[0]: expected the end of the list"),
        "{}",
        said.text
    );
}

#[test]
fn what_a_sink_hears_late_is_waited_for() {
    let suite = Suite::new(&[("alpha", "late")]);
    let records =
        json!([{"level": "info", "message": "hi"}, {"level": "warn", "message": "careful"}]);
    suite.case(
        "area/step",
        json!([{"op": "host.logs", "args": {}, "expect": {"ok": records}}]),
    );
    suite.write(
        "cases/area/whole.json",
        &json!({"title": "t", "spec": "1", "covers": ["x"], "steps": [{"op": "version"}], "logs": [{"level": "warn", "message": "careful"}]}),
    );
    let said = suite.run(&["run"]);
    assert_eq!(
        said.text.lines().last(),
        Some("2 passed, 0 failed"),
        "{}",
        said.text
    );
}

#[test]
fn a_malformed_case_stops_everything() {
    let suite = Suite::new(&[("alpha", "none")]).echo();
    suite.write(
        "cases/area/bad.json",
        &json!({"title": "t", "spec": "1", "covers": ["x"], "steps": [{"op": "verison"}]}),
    );
    let said = suite.run(&["run"]);
    assert_eq!(said.errors, "area/bad: step 1: unknown op \"verison\"\n");
    assert_eq!(said.code, 2);
}

#[test]
fn check_finds_a_section_the_contract_does_not_have() {
    let repository = tempfile::tempdir().unwrap();
    std::fs::write(
        repository.path().join("SPEC.md"),
        "# C\n## 1. Words\n### 3.4 Filters\n",
    )
    .unwrap();
    let folder = repository.path().join("conformance");
    for (name, section) in [("good", "3.4"), ("bad", "3.5")] {
        let file = folder.join(format!("cases/area/{name}.json"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let case =
            json!({"title": "t", "spec": section, "covers": ["x"], "steps": [{"op": "version"}]});
        std::fs::write(file, case.to_string()).unwrap();
    }
    let said = run(&folder, &["check"]);
    assert_eq!(
        said.text,
        "area/bad: SPEC.md has no section 3.5\n2 cases checked\n"
    );
    assert_eq!(said.code, 1);
}

#[test]
fn the_page_of_a_run_is_true_and_an_edited_one_is_not() {
    let suite = Suite::new(&[
        ("alpha", "none"),
        ("liar", "wrong-result"),
        ("none", "unavailable"),
    ])
    .echo();
    let page = suite.0.path().join("parity.md");
    let file = page.to_str().unwrap();
    suite.run(&["parity", "--out", file]);
    let written = std::fs::read_to_string(&page).unwrap();
    let (_, table) = written.split_once("| area |").unwrap();
    assert_eq!(
        table,
        " alpha | liar | none |\n|---|---|---|---|\n| area | 1/1 | 0/1 | not run |\n"
    );
    let said = suite.run(&["run", "--ports", "alpha", "--page", file]);
    assert_eq!((said.code, said.errors.as_str()), (0, ""), "{}", said.text);

    std::fs::write(&page, written.replace("1/1", "2/2")).unwrap();
    let said = suite.run(&["run", "--ports", "alpha", "--page", file]);
    assert_eq!(said.code, 1);
    let wanted = "FAIL the parity page: area [alpha] says 2/2, it is 1/1; `make parity` writes it";
    assert!(said.text.contains(wanted), "{}", said.text);
}

#[test]
fn the_cases_of_the_tree_are_sound() {
    let said = run(Path::new(env!("CARGO_MANIFEST_DIR")), &["check"]);
    assert_eq!(said.code, 0, "{}{}", said.text, said.errors);
}
