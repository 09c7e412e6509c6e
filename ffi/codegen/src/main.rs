//! Writes what is generated in this repository, or says which of it is stale.
//!
//! `toolspan-codegen write` and `toolspan-codegen check`, from anywhere inside the repository. The one source is the
//! manifest of `ffi/bridge` (and, for the C header, `ffi/capi`; for the engine of Kotlin and Swift, the built library of
//! `ffi/uniffi`); every file here is a pure function of it, so two runs give the same bytes.

mod dotnet;
mod go;
mod header;
mod kotlin;
mod manifest;
mod markdown;
mod model;
mod node;
mod python;
mod swift;
mod text;
mod uniffi;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use model::Model;

/// A generated file, by its path from the root of the repository.
pub struct File {
    path: &'static str,
    content: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("toolspan-codegen: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if !matches!(mode.as_str(), "write" | "check") {
        return Err("usage: toolspan-codegen write|check".to_owned());
    }
    let root = root()?;
    let files = files(&root)?;
    let stale = stale(&root, &files);
    if mode == "check" && !stale.is_empty() {
        let names: Vec<&str> = stale.iter().map(|file| file.path).collect();
        return Err(format!(
            "stale, run `make gen` and commit: {}",
            names.join(", ")
        ));
    }
    for file in stale {
        let path = root.join(file.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        std::fs::write(&path, &file.content).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("wrote {}", file.path);
    }
    Ok(())
}

/// The files that are missing or say something else.
fn stale<'a>(root: &Path, files: &'a [File]) -> Vec<&'a File> {
    files
        .iter()
        .filter(|file| {
            std::fs::read_to_string(root.join(file.path)).ok().as_ref() != Some(&file.content)
        })
        .collect()
}

fn files(root: &Path) -> Result<Vec<File>, String> {
    let manifest = toolspan_bridge::manifest();
    let model = Model::read(&manifest)?;
    let spec = read(root, "SPEC.md")?;
    let mut files = vec![
        manifest::api(&model)?,
        markdown::spec(&model, &spec)?,
        python::abi(),
        python::errors(&model),
        python::models(&model)?,
        node::codes(&model),
        node::abi(),
        node::error_classes(&model),
        node::error_exports(&model),
        node::models(&model)?,
        go::abi(),
        go::codes(&model),
        go::models(&model)?,
        go::options(&model)?,
        swift::abi(),
        swift::codes(&model)?,
        swift::models(&model)?,
        swift::options(&model)?,
        kotlin::abi(),
        kotlin::errors(&model),
        kotlin::models(&model)?,
        kotlin::options(&model)?,
    ];
    let header = header::write(root)?;
    // A Go module holds all that it is compiled from.
    files.push(File {
        path: "bindings/go/toolspan.h",
        content: header.content.clone(),
    });
    files.push(header);
    files.extend(uniffi::engine(root)?);
    files.extend([
        dotnet::imports(root)?,
        dotnet::abi(),
        dotnet::errors(&model),
        dotnet::models(&model)?,
        dotnet::options(&model)?,
    ]);
    Ok(files)
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))
}

fn root() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|e| format!("no working directory: {e}"))?;
    here.ancestors()
        .find(|folder| folder.join("SPEC.md").is_file() && folder.join("ffi/bridge").is_dir())
        .map(Path::to_path_buf)
        .ok_or_else(|| "run this inside the repository".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_or_differs_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("same"), "text").unwrap();
        std::fs::write(folder.path().join("other"), "text\n").unwrap();
        let files = ["same", "other", "missing"].map(|path| File {
            path,
            content: "text".to_owned(),
        });
        let names: Vec<&str> = stale(folder.path(), &files)
            .iter()
            .map(|file| file.path)
            .collect();
        assert_eq!(names, ["other", "missing"]);
    }
}
