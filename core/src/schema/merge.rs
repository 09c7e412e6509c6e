//! One schema out of several: references, `allOf`, and alternatives at the root.

use serde_json::{Map, Value, json};

use super::work::{Work, describe, plain_object, show_all};
use super::{Action, types};

/// Keywords that say something about a schema and restrict nothing.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "$comment",
    "$schema",
    "$id",
    "examples",
    "default",
    "deprecated",
    "$anchor",
];

/// Most forms that are spelled out for the model.
const MAX_FORMS: usize = 20;

/// A schema object without `$ref` and `allOf` of its own, saying the same. References that were followed stay in
/// `work.following`; the caller takes them off when it is done with the schema.
pub fn flatten(
    work: &mut Work,
    mut schema: Map<String, Value>,
    depth: usize,
) -> Map<String, Value> {
    while let Some(reference) = schema.shift_remove("$ref") {
        let Some(reference) = reference.as_str().map(str::to_owned) else {
            work.lose("$ref", Action::Dropped, "not a text");
            continue;
        };
        match work.inline(&reference) {
            Some(Value::Object(target)) => {
                work.lose("$ref", Action::Inlined, reference);
                intersect(work, &mut schema, target);
            }
            // `true` allows everything and adds nothing.
            Some(_) => work.lose("$ref", Action::Inlined, reference),
            None => {
                if work.following.contains(&reference) {
                    describe(
                        &mut schema,
                        &format!("Same form as the enclosing {}.", last_token(&reference)),
                    );
                }
                intersect(work, &mut schema, plain_object());
            }
        }
    }
    if let Some(all) = schema.shift_remove("allOf") {
        let parts = match all {
            Value::Array(parts) if depth > 0 => parts,
            _ => Vec::new(),
        };
        work.lose("allOf", Action::Merged, "all parts together");
        for part in parts {
            if let Value::Object(part) = part {
                let part = flatten(work, part, depth - 1);
                intersect(work, &mut schema, part);
            }
        }
    }
    schema
}

fn last_token(reference: &str) -> &str {
    match reference.rsplit(['/', '#']).next() {
        Some(name) if !name.is_empty() => name,
        _ => "object",
    }
}

/// Makes `schema` accept only what `other` accepts too. Where both say something about the same and neither can be
/// expressed in one keyword, `schema` is kept and the other is reported.
pub fn intersect(work: &mut Work, schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, theirs) in other {
        let Some(ours) = schema.get(&key).cloned() else {
            schema.insert(key, theirs);
            continue;
        };
        if ours == theirs {
            continue;
        }
        let joined = match key.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                both_maps(&ours, &theirs)
            }
            "required" => Some(union(&ours, &theirs)),
            "type" => both_types(&ours, &theirs),
            "enum" => both_enums(&ours, &theirs),
            "items" | "contains" | "propertyNames" | "not" => {
                Some(both(ours.clone(), theirs.clone()))
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                Some(further(&ours, &theirs, |a, b| a >= b))
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                Some(further(&ours, &theirs, |a, b| a <= b))
            }
            "anyOf" | "oneOf" | "allOf" => {
                // One list can stay where it is; a second one goes in as a further condition.
                push_all_of(schema, Map::from_iter([(key.clone(), theirs.clone())]));
                continue;
            }
            // The wider of the two: with the properties of both in one object, `false` would shut out half of them.
            "additionalProperties" | "unevaluatedProperties" => {
                schema.shift_remove(&key);
                continue;
            }
            _ if ANNOTATIONS.contains(&key.as_str()) => continue,
            _ => None,
        };
        match joined {
            Some(value) => {
                schema.insert(key, value);
            }
            None => work.lose(
                &key,
                Action::Dropped,
                "two schemas that apply together say different things; the first is kept",
            ),
        }
    }
}

fn push_all_of(schema: &mut Map<String, Value>, part: Map<String, Value>) {
    match schema.get_mut("allOf") {
        Some(Value::Array(parts)) => parts.push(Value::Object(part)),
        _ => {
            schema.insert("allOf".to_owned(), json!([part]));
        }
    }
}

/// One schema that accepts what both accept.
fn both(ours: Value, theirs: Value) -> Value {
    match (ours, theirs) {
        (ours, theirs) if ours == theirs => ours,
        (Value::Bool(true), other) | (other, Value::Bool(true)) => other,
        (Value::Object(mut ours), Value::Object(theirs)) => {
            let agree = theirs
                .iter()
                .all(|(key, value)| ours.get(key).is_none_or(|own| own == value) || is_text(key));
            if agree {
                for (key, value) in theirs {
                    ours.entry(key).or_insert(value);
                }
                Value::Object(ours)
            } else {
                json!({"allOf": [ours, theirs]})
            }
        }
        (ours, _) => ours,
    }
}

fn is_text(key: &str) -> bool {
    matches!(key, "title" | "description")
}

fn both_maps(ours: &Value, theirs: &Value) -> Option<Value> {
    let (Value::Object(ours), Value::Object(theirs)) = (ours, theirs) else {
        return None;
    };
    let mut joined = ours.clone();
    for (name, schema) in theirs {
        let value = match ours.get(name) {
            Some(own) => both(own.clone(), schema.clone()),
            None => schema.clone(),
        };
        joined.insert(name.clone(), value);
    }
    Some(Value::Object(joined))
}

fn both_types(ours: &Value, theirs: &Value) -> Option<Value> {
    let names = |value: &Value| types::of(&Map::from_iter([("type".to_owned(), value.clone())]));
    let (ours, theirs) = (names(ours)?, names(theirs)?);
    let common: Vec<&str> = ours
        .iter()
        .filter_map(|own| {
            if theirs.iter().any(|their| types::fits(own, their)) {
                Some(*own)
            } else {
                theirs.iter().find(|their| types::fits(their, own)).copied()
            }
        })
        .collect();
    match common.as_slice() {
        [] => None,
        [one] => Some(json!(one)),
        many => Some(json!(many)),
    }
}

fn both_enums(ours: &Value, theirs: &Value) -> Option<Value> {
    let (Value::Array(ours), Value::Array(theirs)) = (ours, theirs) else {
        return None;
    };
    let common: Vec<_> = ours
        .iter()
        .filter(|v| theirs.contains(v))
        .cloned()
        .collect();
    (!common.is_empty()).then_some(Value::Array(common))
}

fn union(ours: &Value, theirs: &Value) -> Value {
    let mut all = ours.as_array().cloned().unwrap_or_default();
    for value in theirs.as_array().into_iter().flatten() {
        if !all.contains(value) {
            all.push(value.clone());
        }
    }
    Value::Array(all)
}

fn further(ours: &Value, theirs: &Value, keep: fn(f64, f64) -> bool) -> Value {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(a), Some(b)) if keep(a, b) => ours.clone(),
        (None, None) => ours.clone(),
        (Some(_), None) => ours.clone(),
        _ => theirs.clone(),
    }
}

/// The arguments of a tool are one object, and providers want it without alternatives at the root. The properties of
/// all alternatives are offered together, required is only what every alternative requires, and the description of the
/// tool says which go together.
pub fn fold_alternatives(work: &mut Work, root: &mut Map<String, Value>, keyword: &str) {
    if let Some(note) = fold(work, root, keyword) {
        work.tell(&note);
    }
}

/// Does that and gives what there is to tell.
fn fold(work: &mut Work, root: &mut Map<String, Value>, keyword: &str) -> Option<String> {
    let Value::Array(branches) = root.shift_remove(keyword)? else {
        work.lose(keyword, Action::Dropped, "not a list of schemas");
        return None;
    };
    let mut forms = Vec::new();
    for (index, branch) in branches.into_iter().enumerate() {
        let followed = work.following.len();
        let form = work.at(&[&keyword, &index], |work| form(work, branch));
        work.following.truncate(followed);
        if let Some(form) = form {
            forms.push(form);
        }
    }
    if forms.len() == 1 {
        work.lose(keyword, Action::Merged, "only one form is an object");
        let form = forms.remove(0);
        intersect(work, root, form);
        return None;
    }
    if forms.is_empty() {
        work.lose(keyword, Action::Dropped, "no form is an object");
        return None;
    }
    work.lose(
        keyword,
        Action::Merged,
        "the properties of all forms are offered together; the description of the tool says which belong together",
    );
    let common = common_required(&forms);
    let note = note(keyword, &forms, &common);
    let required = union(root.get("required").unwrap_or(&Value::Null), &json!(common));
    if required.as_array().is_some_and(|names| !names.is_empty()) {
        root.insert("required".to_owned(), required);
    }
    let mut properties = match root.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut names: Vec<&String> = Vec::new();
    for name in forms.iter().filter_map(properties_of).flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let offered: Vec<&Value> = forms
            .iter()
            .filter_map(|form| properties_of(form)?.get(name))
            .collect();
        let everywhere = offered.len() == forms.len();
        let any = any_of(offered);
        let value = match properties.get(name) {
            // A form that does not mention it leaves it as the root has it.
            Some(own) if !everywhere => own.clone(),
            Some(own) => both(own.clone(), any),
            None => any,
        };
        properties.insert(name.clone(), value);
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    note
}

/// One alternative as an object without references and alternatives of its own; `None` when it is not an object.
fn form(work: &mut Work, branch: Value) -> Option<Map<String, Value>> {
    let Value::Object(branch) = branch else {
        work.lose("", Action::Dropped, "not a form of an object");
        return None;
    };
    let mut form = flatten(work, branch, super::work::MAX_DEPTH);
    if types::of(&form).is_some_and(|types| !types.contains(&"object")) {
        work.lose(
            "type",
            Action::Dropped,
            "arguments are an object; this form is none",
        );
        return None;
    }
    // Alternatives inside an alternative: their properties count, who goes with whom is told once only.
    for keyword in ["anyOf", "oneOf"] {
        if form.contains_key(keyword) && work.following.len() < super::work::MAX_DEPTH {
            fold(work, &mut form, keyword);
        }
    }
    Some(form)
}

fn properties_of(form: &Map<String, Value>) -> Option<&Map<String, Value>> {
    form.get("properties")?.as_object()
}

fn required_of(form: &Map<String, Value>) -> Vec<&str> {
    let names = form.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn common_required(forms: &[Map<String, Value>]) -> Vec<String> {
    let Some((first, rest)) = forms.split_first() else {
        return Vec::new();
    };
    required_of(first)
        .into_iter()
        .filter(|name| rest.iter().all(|form| required_of(form).contains(name)))
        .map(str::to_owned)
        .collect()
}

/// Which arguments belong together; `None` when the forms differ in nothing that could be told.
fn note(keyword: &str, forms: &[Map<String, Value>], common: &[String]) -> Option<String> {
    let labels: Vec<String> = forms.iter().map(|form| label(form, common)).collect();
    if labels.iter().all(|label| *label == labels[0]) {
        return None;
    }
    let how = if keyword == "oneOf" {
        "exactly one"
    } else {
        "at least one"
    };
    let more = if labels.len() > MAX_FORMS {
        "; …"
    } else {
        ""
    };
    let listed = labels[..labels.len().min(MAX_FORMS)].join("; ");
    Some(format!(
        "Give {how} of these sets of arguments: {listed}{more}."
    ))
}

fn label(form: &Map<String, Value>, common: &[String]) -> String {
    let required = required_of(form);
    let constant = |name: &str| {
        properties_of(form)?
            .get(name)?
            .get("const")
            .map(Value::to_string)
    };
    let mut parts: Vec<String> = Vec::new();
    for name in &required {
        match constant(name) {
            Some(value) => parts.push(format!("{name}={value}")),
            None if !common.iter().any(|c| c == name) => parts.push((*name).to_owned()),
            None => {}
        }
    }
    if parts.is_empty() {
        let optional = properties_of(form).into_iter().flat_map(Map::keys);
        parts.extend(
            optional
                .filter(|name| !required.contains(&name.as_str()))
                .map(|name| format!("{name} (optional)")),
        );
    }
    if parts.is_empty() {
        "nothing else".to_owned()
    } else {
        format!("({})", parts.join(", "))
    }
}

/// One schema that accepts what any of these accepts. Alternatives that differ in their fixed values only become one
/// `enum`.
pub fn any_of(offered: Vec<&Value>) -> Value {
    let mut distinct: Vec<&Value> = Vec::new();
    for schema in offered {
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    match distinct.as_slice() {
        [] => json!(true),
        [one] => (*one).clone(),
        many => one_enum(many).unwrap_or_else(|| json!({"anyOf": many})),
    }
}

fn one_enum(schemas: &[&Value]) -> Option<Value> {
    let mut common: Option<Map<String, Value>> = None;
    let mut values: Vec<Value> = Vec::new();
    let mut texts: Vec<(String, String)> = Vec::new();
    for schema in schemas {
        let mut schema = schema.as_object()?.clone();
        let own = match (schema.shift_remove("const"), schema.shift_remove("enum")) {
            (Some(value), None) => vec![value],
            (None, Some(Value::Array(values))) => values,
            _ => return None,
        };
        let (title, description) = (
            schema.shift_remove("title"),
            schema.shift_remove("description"),
        );
        if let Some(text) = description.or(title).as_ref().and_then(Value::as_str) {
            texts.push((show_all(&own), text.to_owned()));
        }
        match &common {
            None => common = Some(schema),
            Some(first) if *first == schema => {}
            Some(_) => return None,
        }
        for value in own {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let mut merged = common?;
    merged.insert("enum".to_owned(), Value::Array(values));
    let alike = texts.len() == schemas.len() && texts.iter().all(|(_, text)| *text == texts[0].1);
    let text = if alike {
        texts.swap_remove(0).1
    } else {
        let told: Vec<String> = texts
            .iter()
            .map(|(of, text)| format!("{of}: {text}"))
            .collect();
        told.join("; ")
    };
    if !text.is_empty() {
        merged.insert("description".to_owned(), text.into());
    }
    Some(Value::Object(merged))
}
