//! The table "who may call whom" of `ARCHITECTURE.md`, held against `cargo metadata` and the sources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crates of this repository each crate may depend on. A crate that is not listed may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("toolspan", &[]),
    ("toolspan-bridge", &["toolspan"]),
    ("toolspan-capi", &["toolspan-bridge"]),
    ("toolspan-uniffi", &["toolspan-bridge"]),
    ("toolspan-codegen", &["toolspan-bridge"]),
    ("toolspan-python", &["toolspan-bridge"]),
    ("toolspan-node", &["toolspan-bridge"]),
    ("toolspan-fixtures", &[]),
    ("toolspan-conformance", &[]),
    ("toolspan-shim-rust", &["toolspan"]),
    ("toolspan-bench", &["toolspan"]),
    ("toolspan-suite-client", &["toolspan"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the workspace")
        .to_path_buf()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

#[test]
fn every_crate_uses_only_what_the_table_allows() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut broken = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let Some(may_use) = allowed.get(name) else {
            broken.push(format!("{name} is not in the table"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            if ours.contains(used) && used != name && !may_use.contains(&used) {
                broken.push(format!("{name} uses {used}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// What is shipped is built from the workspace, so nothing in it may open the private halves to the fuzzer.
#[test]
fn the_feature_for_fuzzing_is_on_nowhere() {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let by_default = &package["features"]["default"];
        if by_default.to_string().contains("fuzzing") {
            found.push(format!("{} by default", package["name"]));
        }
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["features"].to_string().contains("fuzzing") {
                found.push(format!("{} on {}", package["name"], dependency["name"]));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// Every Rust file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines of a source that contain `word` outside a comment.
fn lines_with(path: &Path, words: &[&str]) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a source is readable");
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines()
        .enumerate()
        .filter(|(_, line)| words.iter().any(|word| code(line).contains(word)))
        .map(|(number, line)| format!("{}:{}: {}", path.display(), number + 1, line.trim()))
        .collect()
}

#[test]
fn unsafe_code_lives_in_the_c_abi_alone() {
    let found: Vec<String> = [
        "core/src",
        "ffi/bridge/src",
        "ffi/uniffi/src",
        "ffi/codegen/src",
        "bindings/python/src",
        "bindings/node/src",
        "fixtures/src",
        "conformance/src",
    ]
    .iter()
    .flat_map(|folder| sources(&root().join(folder)))
    .flat_map(|path| lines_with(&path, &["unsafe {", "unsafe fn", "unsafe impl"]))
    .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_library_prints_nothing() {
    let found: Vec<String> = [
        "core/src",
        "ffi/bridge/src",
        "ffi/capi/src",
        "ffi/uniffi/src",
        "bindings/python/src",
        "bindings/node/src",
    ]
    .iter()
    .flat_map(|folder| sources(&root().join(folder)))
    .flat_map(|path| lines_with(&path, &["println!(", "eprintln!(", "print!(", "dbg!("]))
    .collect();
    assert_eq!(found, Vec::<String>::new());
}
