//! The languages under test, as `ports.json` lists them, and the failures known for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;

/// One language and how to start its shim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// The name on the command line and in the report; the shim says the same.
    pub name: String,
    /// Program and arguments; `${bin}` is the folder of the runner's own executable.
    pub command: Vec<String>,
    /// Working directory, relative to the repository; default: the repository.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Variables for the shim; `${bin}` is replaced, `${root}` is the repository.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// What `--build` runs first, in the same directory.
    #[serde(default)]
    pub build: Vec<String>,
    /// Programs that must be on PATH for this language to be run at all.
    #[serde(default)]
    pub needs: Vec<String>,
}

impl Port {
    /// The first of `needs` that is not on PATH.
    pub fn missing_program(&self) -> Option<&str> {
        self.needs
            .iter()
            .map(String::as_str)
            .find(|program| !is_on_path(program))
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        folder.join(program).is_file()
            || (cfg!(windows)
                && ["exe", "cmd", "bat"]
                    .iter()
                    .any(|ext| folder.join(format!("{program}.{ext}")).is_file()))
    })
}

/// The folder that holds `ports.json`, `expected-failures.json` and `cases/`.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The folder itself.
    pub folder: PathBuf,
    /// The repository it lies in; commands start there.
    pub root: PathBuf,
    /// The folder of the runner's own executable.
    pub bin: PathBuf,
}

impl Suite {
    /// Opens the suite in `folder`, by default `conformance` below the current directory, else the one this program was built from.
    pub fn open(folder: Option<&Path>) -> Result<Self, String> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None if Path::new("conformance/ports.json").is_file() => PathBuf::from("conformance"),
            None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        };
        let folder = folder
            .canonicalize()
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let root = folder
            .parent()
            .map_or_else(|| folder.clone(), Path::to_owned);
        let exe = std::env::current_exe().map_err(|error| format!("own executable: {error}"))?;
        let bin = exe.parent().map_or_else(|| root.clone(), Path::to_owned);
        Ok(Self { folder, root, bin })
    }

    /// The languages of `ports.json`, with `${bin}` and `${root}` replaced.
    pub fn ports(&self) -> Result<Vec<Port>, String> {
        let file = self.folder.join("ports.json");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let mut ports: Vec<Port> =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        for port in &mut ports {
            for part in port
                .command
                .iter_mut()
                .chain(port.build.iter_mut())
                .chain(port.env.values_mut())
            {
                *part = part
                    .replace("${bin}", &self.bin.to_string_lossy())
                    .replace("${root}", &self.root.to_string_lossy());
            }
            if port.command.is_empty() {
                return Err(format!(
                    "{}: {}: command is empty",
                    file.display(),
                    port.name
                ));
            }
            port.cwd = Some(
                self.root
                    .join(port.cwd.as_deref().unwrap_or(Path::new("."))),
            );
        }
        Ok(ports)
    }

    /// Cases that are known to fail, per language.
    pub fn expected_failures(&self) -> Result<BTreeMap<String, Vec<String>>, String> {
        let file = self.folder.join("expected-failures.json");
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }
}
