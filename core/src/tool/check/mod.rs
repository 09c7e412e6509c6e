//! Arguments held against the schema of their tool before it runs (SPEC 4.4).
//!
//! Schema and arguments both come from outside, so nothing here trusts them: no reference is fetched, a pattern that
//! backtracks is given up, and what would take too long is not checked.

mod cost;
mod repair;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use super::{Arguments, ToolInfo};
use crate::aside::aside;
use crate::log::{LogLevel, Logger};
use cost::{Costs, Size};

/// What one check may cost, in applications of one keyword to one value.
const MAX_COST: u64 = 20_000_000;

/// What listing the errors may cost: each of them is made before the first is seen. Beyond that only one is told.
const MAX_LISTING_COST: u64 = 500_000;

/// Values in the largest schema that is used at all.
const MAX_SCHEMA_VALUES: u64 = 100_000;

/// Compiling one value of a schema takes about as long as reading so many bytes.
const BYTES_PER_VALUE: u64 = 1_000;

/// Steps back after which a pattern counts as matching. Each may look at the whole rest of the text.
const MAX_BACKTRACKS: usize = 1_000;

/// Largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Errors that the model is told.
const MAX_ERRORS: usize = 10;

/// Longest text of one of them, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// The check of one tool. Compiled with the first call; a schema that cannot be compiled is not checked.
pub(super) struct Check {
    info: Arc<ToolInfo>,
    logger: Logger,
    compiled: OnceLock<Option<Compiled>>,
}

struct Compiled {
    schema: Value,
    validator: Validator,
    costs: Costs,
}

impl Check {
    pub(super) fn of(info: Arc<ToolInfo>, logger: Logger) -> Self {
        Check {
            info,
            logger,
            compiled: OnceLock::new(),
        }
    }

    /// The arguments as the tool gets them: as they came, or with values that the schema wants as objects and lists in the
    /// place of the texts that hold them. An error is what the model reads.
    pub(super) fn accept(&self, arguments: Arguments) -> Result<Arguments, String> {
        let Some(compiled) = self.compiled.get_or_init(|| self.compile()) else {
            return Ok(arguments);
        };
        let value = arguments.to_value();
        let Some(cost) = compiled.cost(&value) else {
            return Ok(self.too_long(arguments));
        };
        if compiled.fits(&value, cost) {
            return Ok(arguments);
        }
        let Some(repaired) = repair::repaired(&compiled.schema, &arguments) else {
            return compiled.complaint(&value, cost).map_or(Ok(arguments), Err);
        };
        let value = repaired.to_value();
        // What stood in a text may be deeper, and larger, than the text was.
        let Some(cost) = compiled.cost(&value) else {
            return Ok(self.too_long(arguments));
        };
        compiled.complaint(&value, cost).map_or(Ok(repaired), Err)
    }

    fn compile(&self) -> Option<Compiled> {
        if says_nothing(&self.info.input_schema) {
            return None;
        }
        let schema = Value::Object(self.info.input_schema.clone());
        let values = Size::of(&schema).values;
        if values > MAX_SCHEMA_VALUES {
            self.unchecked("the schema is too large");
            return None;
        }
        aside(bytes(values * BYTES_PER_VALUE), || self.build(schema))
    }

    fn build(&self, schema: Value) -> Option<Compiled> {
        let Some(costs) = Costs::of(&schema, MAX_COST) else {
            self.unchecked(
                "the schema refers to what is outside of it, or to itself without an end",
            );
            return None;
        };
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns);
        match options.build(&schema) {
            Ok(validator) => Some(Compiled {
                schema,
                validator,
                costs,
            }),
            Err(error) => {
                let why = cut(&error.to_string());
                self.unchecked(&format!("the schema cannot be compiled: {why}"));
                None
            }
        }
    }

    fn too_long(&self, arguments: Arguments) -> Arguments {
        self.unchecked("it would take too long");
        arguments
    }

    fn unchecked(&self, why: &str) {
        let name = self.info.name.as_str();
        self.logger.log(
            LogLevel::Debug,
            "toolkit",
            || format!("the arguments of {name} are not checked: {why}"),
            [("tool", name.into())],
        );
    }
}

impl Compiled {
    /// What checking the value costs at most; `None` when that is too much.
    fn cost(&self, value: &Value) -> Option<u64> {
        let size = Size::of(value);
        let cost = self.costs.at_depth(size.depth)?.saturating_mul(size.values);
        (cost <= MAX_COST).then_some(cost)
    }

    fn fits(&self, value: &Value, cost: u64) -> bool {
        aside(bytes(cost), || self.validator.is_valid(value))
    }

    /// What the model reads; nothing when nothing is certainly wrong.
    fn complaint(&self, value: &Value, cost: u64) -> Option<String> {
        aside(bytes(cost), || self.complain(value, cost))
    }

    fn complain(&self, value: &Value, cost: u64) -> Option<String> {
        let errors: Vec<ValidationError<'_>> = if cost <= MAX_LISTING_COST {
            self.validator.iter_errors(value).collect()
        } else {
            self.validator.validate(value).err().into_iter().collect()
        };
        let mut errors = errors.iter().filter(|error| decided(error.kind()));
        let first = errors.next()?;
        let mut text = "The arguments do not fit the schema of the tool:".to_owned();
        for error in std::iter::once(first).chain(errors.by_ref().take(MAX_ERRORS - 1)) {
            // Writing into a text does not fail.
            let _ = write!(text, "\n- {}: {}", place(error), self.reason(error));
        }
        match errors.count() {
            0 => {}
            more => {
                let _ = write!(text, "\n- and {more} more");
            }
        }
        text.push_str("\nThe tool was not called. Call it again with arguments that fit.");
        Some(text)
    }

    /// What is wrong and what was expected.
    fn reason(&self, error: &ValidationError<'_>) -> String {
        let whole = error.to_string();
        let mut reason = match whole.chars().nth(MAX_ERROR_CHARS) {
            None => whole,
            Some(_) => cut(&error.masked_with("the value").to_string()),
        };
        if matches!(
            error.kind(),
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. }
        ) && let Some(expected) = self.schema.pointer(error.schema_path().as_str())
        {
            let _ = write!(reason, "; expected one of {}", cut(&expected.to_string()));
        }
        reason
    }
}

/// What could be read in the same time: an application takes about as long as a byte.
fn bytes(cost: u64) -> usize {
    usize::try_from(cost).unwrap_or(usize::MAX)
}

/// Whether the schema takes any object, as that of a tool without arguments does.
fn says_nothing(schema: &serde_json::Map<String, Value>) -> bool {
    schema.iter().all(|(key, value)| match key.as_str() {
        "type" => value == "object",
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "title" | "description" | "$schema" => true,
        _ => false,
    })
}

/// Not so where a pattern was given up.
fn decided(kind: &ValidationErrorKind) -> bool {
    !matches!(
        kind,
        ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. }
    )
}

/// The path of the argument as one would write it, `ids[0].name`.
fn place(error: &ValidationError<'_>) -> String {
    let mut place = String::new();
    for segment in error.instance_path() {
        let _ = match segment {
            LocationSegment::Property(name) if place.is_empty() => write!(place, "{name}"),
            LocationSegment::Property(name) => write!(place, ".{name}"),
            LocationSegment::Index(index) => write!(place, "[{index}]"),
        };
    }
    match place.is_empty() {
        true => "the arguments".to_owned(),
        false => cut(&place),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_SCHEMA_VALUES;
    use crate::log::{LogLevel, Logger};
    use crate::tool::{Arguments, Tool};
    use serde_json::{Map, Value, json};
    use std::sync::{Arc, Mutex};

    /// A tool with that schema, and what its check logs.
    fn tool(schema: Value) -> (Tool, Arc<Mutex<Vec<String>>>) {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = said.clone();
        let logger = Logger::new(
            Arc::new(move |record: crate::log::LogRecord| {
                sink.lock().unwrap().push(record.message);
            }),
            LogLevel::Debug,
        );
        let tool = Tool::new("t", "", schema, |_, _| async {});
        (tool.checked(true, &logger), said)
    }

    fn taken(tool: &Tool, text: &str) -> String {
        let arguments = Arguments::from_text(text).unwrap();
        match tool.accept(arguments) {
            Ok(arguments) => arguments.raw().get().to_owned(),
            Err(complaint) => complaint,
        }
    }

    #[test]
    fn arguments_that_fit_keep_their_text() {
        let (tool, _) = tool(json!({"properties": {"z": {"type": "number"}}}));
        let text = "{\"z\": 1e2,  \"a\":12345678901234567890123}";
        assert_eq!(taken(&tool, text), text);
    }

    #[test]
    fn a_schema_that_is_too_large_is_not_compiled() {
        let wide: Map<String, Value> = (0..=MAX_SCHEMA_VALUES)
            .map(|n| (format!("p{n}"), json!({})))
            .collect();
        let (tool, said) = tool(json!({"properties": wide}));
        assert_eq!(taken(&tool, r#"{"p0":1}"#), r#"{"p0":1}"#);
        assert_eq!(
            *said.lock().unwrap(),
            ["the arguments of t are not checked: the schema is too large"]
        );
    }

    #[test]
    fn that_a_schema_is_not_checked_is_said_once() {
        let (tool, said) = tool(json!({"properties": {"q": {"type": "text"}}}));
        assert_eq!(taken(&tool, r#"{"q":1}"#), r#"{"q":1}"#);
        assert_eq!(taken(&tool, r#"{"q":2}"#), r#"{"q":2}"#);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1);
        assert!(
            said[0]
                .starts_with("the arguments of t are not checked: the schema cannot be compiled: "),
            "{said:?}"
        );
    }

    #[test]
    fn one_of_very_many_errors_is_told_without_making_the_others() {
        let (tool, _) = tool(json!({"properties": {"ids": {"items": {"type": "integer"}}}}));
        let many = vec!["x"; 200_000];
        let text = json!({"ids": many}).to_string();
        assert_eq!(
            taken(&tool, &text),
            "The arguments do not fit the schema of the tool:\n- ids[0]: \"x\" is not of type \"integer\"\n\
             The tool was not called. Call it again with arguments that fit."
        );
    }

    #[test]
    fn a_value_that_would_take_too_long_to_check_is_not_checked() {
        let twice =
            json!({"allOf": [{"items": {"$ref": "#/$defs/x"}}, {"items": {"$ref": "#/$defs/x"}}]});
        let schema = json!({
            "properties": {"q": {"$ref": "#/$defs/x"}, "list": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
            "$defs": {"x": twice},
        });
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        for text in [
            format!("{{\"q\":{deep}}}"),
            // Deep only once the text is replaced by what it holds.
            format!("{{\"list\":\"{deep}\"}}"),
        ] {
            let (tool, said) = tool(schema.clone());
            assert_eq!(taken(&tool, &text), text);
            assert_eq!(
                *said.lock().unwrap(),
                ["the arguments of t are not checked: it would take too long"]
            );
        }
    }
}
