//! The MCP configuration as written (SPEC 3.1): from a file, a value or text to one [`Declared`] per server.
//!
//! What is wrong with the document fails the whole; what is wrong with one server stays with that server, so that the
//! others are used. Nothing is expanded here: variables are looked up when a server is about to be used.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use super::fields::{Fields, Text};
use super::revision::Revision;
use crate::error::{Error, ErrorCode, Result};

/// Budget of each phase and of each call where the configuration says nothing.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest configuration file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Keys whose value can be the server map, in order of precedence.
const WRAPPERS: [&str; 3] = ["mcpServers", "servers", "mcp"];

/// Keys of a document without wrapper that are not servers.
const RESERVED: [&str; 4] = ["builtins", "agents", "a2a", "mcpServer"];

/// Keys of every server.
const COMMON_KEYS: [&str; 10] = [
    "type",
    "enabled",
    "disabled",
    "timeout",
    "protocolVersion",
    "tools",
    "expose",
    "dedupKey",
    "dedupPreferred",
    "required",
];

/// Keys of a child process.
const LOCAL_KEYS: [&str; 6] = ["command", "args", "environment", "env", "inheritEnv", "cwd"];

/// Keys of a server behind a URL.
const REMOTE_KEYS: [&str; 2] = ["url", "headers"];

const TYPE_IS_ONE_OF: &str =
    "must be one of local, stdio, remote, http, streamable-http, streamableHttp, sse";

/// A parsed MCP configuration. `Debug` shows the ids of the servers and nothing else.
#[derive(Clone, Default)]
pub struct McpConfig {
    pub(super) servers: BTreeMap<String, Declared>,
}

/// One server as declared.
#[derive(Clone)]
pub(super) struct Declared {
    /// Where it stands in the document, e.g. `mcpServers.search`.
    pub path: String,
    pub enabled: bool,
    pub required: bool,
    pub dedup_key: Option<String>,
    pub dedup_preferred: bool,
    /// The rest, or what is wrong with this server.
    pub server: Result<ServerConfig>,
}

/// How to reach a server and what to take from it; variables are not expanded yet.
#[derive(Clone)]
pub(super) struct ServerConfig {
    pub endpoint: EndpointConfig,
    pub timeout: Duration,
    pub revision: Revision,
    pub filter: Option<BTreeMap<String, bool>>,
    pub expose: Expose,
}

#[derive(Clone)]
pub(super) enum EndpointConfig {
    Local {
        /// Never empty.
        command: Vec<Text>,
        environment: BTreeMap<String, Text>,
        inherit: InheritEnv,
        cwd: Option<Text>,
    },
    Remote {
        url: Text,
        headers: Vec<(String, Text)>,
        transport: RemoteTransport,
    },
}

/// Which transport of a remote server is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteTransport {
    /// Streamable HTTP, then HTTP+SSE where SPEC 3.2 says so.
    Automatic,
    /// HTTP+SSE only.
    Sse,
}

/// What a child process gets of our environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InheritEnv {
    /// Everything but [`OWN_VARIABLES`](crate::client::key::OWN_VARIABLES): what an absent key means.
    AllButKeys,
    /// Everything: `"all"`.
    All,
    /// Nothing.
    None,
    /// These variables, where they are set.
    Only(Vec<String>),
}

/// Which names the tools of a server get (SPEC 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expose {
    /// `server_tool`.
    #[default]
    Prefixed,
    /// The name the server gave.
    Original,
}

impl McpConfig {
    /// Reads a file. The error is `not_found`, `invalid_config`, or `limit_exceeded` for more than 16 MiB.
    pub fn from_path(path: &Path) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::config("mcpConfig", "the path is empty"));
        }
        let mut bytes = Vec::new();
        // Read rather than asked for its size: not everything that can be opened has one.
        let read =
            File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
        let read = read.map_err(|e| {
            let code = match e.kind() {
                std::io::ErrorKind::NotFound => ErrorCode::NotFound,
                _ => ErrorCode::InvalidConfig,
            };
            let message = format!(
                "the MCP configuration {} cannot be read: {e}",
                path.display()
            );
            Error::new(code, message).because_of(&e)
        })?;
        if read as u64 > MAX_FILE_BYTES {
            return Err(Error::new(
                ErrorCode::LimitExceeded,
                format!(
                    "the MCP configuration {} has more than {MAX_FILE_BYTES} bytes",
                    path.display()
                ),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::new(
                ErrorCode::InvalidConfig,
                format!("the MCP configuration {} is not UTF-8", path.display()),
            )
        })?;
        McpConfig::from_text(&text).map_err(|e| e.inside(&path.display().to_string()))
    }

    /// Parses the text of a JSON document; a byte order mark is skipped.
    pub fn from_text(text: &str) -> Result<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value = serde_json::from_str(text).map_err(|e| {
            Error::new(
                ErrorCode::InvalidConfig,
                format!("the MCP configuration is not JSON: {e}"),
            )
        })?;
        McpConfig::from_json(&value)
    }

    /// Takes a document that is already parsed.
    pub fn from_json(document: &Value) -> Result<Self> {
        let Value::Object(document) = document else {
            return Err(Error::new(
                ErrorCode::InvalidConfig,
                "the MCP configuration must be a JSON object",
            ));
        };
        let wrapper = WRAPPERS
            .iter()
            .find_map(|key| document.get(*key).map(|value| (*key, value)));
        let servers = match wrapper {
            Some((key, Value::Object(servers))) => declare_all(servers, &format!("{key}."), &[]),
            Some((key, _)) => return Err(Error::config(key, "must be an object of servers")),
            None => declare_all(document, "", &RESERVED),
        };
        Ok(McpConfig { servers })
    }

    /// Ids of all servers, disabled and faulty ones included, in code-point order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }
}

impl std::fmt::Debug for McpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

fn declare_all(
    servers: &Map<String, Value>,
    prefix: &str,
    skip: &[&str],
) -> BTreeMap<String, Declared> {
    servers
        .iter()
        .filter(|(id, _)| !skip.contains(&id.as_str()))
        .map(|(id, value)| {
            let path = format!("{prefix}{id}");
            (id.clone(), declare(value, path, id))
        })
        .collect()
}

/// Reads what decides about a server one by one, so that a fault in one key neither enables a disabled server nor makes a
/// required one optional.
fn declare(value: &Value, path: String, id: &str) -> Declared {
    let nothing = Map::new();
    let fields = Fields::new(value.as_object().unwrap_or(&nothing), &path);
    let flag = |key| fields.boolean(key).ok().flatten();
    let key = fields.string("dedupKey").ok().flatten();
    let server = if value.is_object() {
        server(&fields)
    } else {
        Err(Error::config(&path, "must be an object"))
    };
    Declared {
        enabled: flag("enabled").unwrap_or(true) && !flag("disabled").unwrap_or(false),
        required: flag("required").unwrap_or(false),
        dedup_key: key.filter(|key| !key.trim().is_empty()).map(str::to_owned),
        dedup_preferred: flag("dedupPreferred").unwrap_or(false),
        server: server.map_err(|e| e.server(id)),
        path,
    }
}

fn server(fields: &Fields<'_>) -> Result<ServerConfig> {
    fields.only(&[&COMMON_KEYS[..], &LOCAL_KEYS[..], &REMOTE_KEYS[..]].concat())?;
    for key in ["enabled", "disabled", "required", "dedupPreferred"] {
        fields.boolean(key)?;
    }
    fields.string("dedupKey")?;
    let timeout = match fields.number("timeout")? {
        // The cast saturates; nobody waits longer than that.
        Some(ms) if ms > 0.0 => Duration::from_millis(ms.ceil() as u64),
        _ => DEFAULT_TIMEOUT,
    };
    let filter = fields.named_booleans("tools")?;
    let expose = match fields.string("expose")? {
        None | Some("prefixed") => Expose::Prefixed,
        Some("original") => Expose::Original,
        Some(_) => return Err(fields.error("expose", "must be \"prefixed\" or \"original\"")),
    };
    let endpoint = endpoint(fields)?;
    Ok(ServerConfig {
        revision: revision(fields, &endpoint)?,
        endpoint,
        timeout,
        filter: filter.map(|filter| filter.into_iter().collect()),
        expose,
    })
}

fn revision(fields: &Fields<'_>, endpoint: &EndpointConfig) -> Result<Revision> {
    const KEY: &str = "protocolVersion";
    let Some(name) = fields.string(KEY)? else {
        return Ok(Revision::Any);
    };
    let Some(revision) = Revision::named(name) else {
        let known: Vec<_> = Revision::names().collect();
        return Err(fields.error(KEY, &format!("must be one of {}", known.join(", "))));
    };
    let sse = matches!(
        endpoint,
        EndpointConfig::Remote {
            transport: RemoteTransport::Sse,
            ..
        }
    );
    if sse && !revision.has_initialize() {
        return Err(fields.error(KEY, "is a revision without HTTP+SSE"));
    }
    Ok(revision)
}

fn endpoint(fields: &Fields<'_>) -> Result<EndpointConfig> {
    match (fields.has("command"), fields.has("url")) {
        (true, true) => return Err(fields.error("url", "stands beside command; give one of them")),
        (false, false) => return Err(fields.error("command", "is missing, and so is url")),
        _ => {}
    }
    let declared = fields.string("type")?;
    let transport = match declared {
        None => None,
        Some("local" | "stdio") => {
            if !fields.has("command") {
                return Err(fields.error("command", "is missing from a server of this type"));
            }
            None
        }
        Some("remote" | "http" | "streamable-http" | "streamableHttp") => {
            Some(RemoteTransport::Automatic)
        }
        Some("sse") => Some(RemoteTransport::Sse),
        Some(_) => return Err(fields.error("type", TYPE_IS_ONE_OF)),
    };
    if fields.has("command") {
        if transport.is_some() {
            return Err(fields.error("url", "is missing from a server of this type"));
        }
        fields.none_of(&REMOTE_KEYS, "does not apply to a local server")?;
        local(fields)
    } else {
        fields.none_of(&LOCAL_KEYS, "does not apply to a remote server")?;
        remote(fields, transport.unwrap_or(RemoteTransport::Automatic))
    }
}

fn local(fields: &Fields<'_>) -> Result<EndpointConfig> {
    let args = fields.texts("args")?;
    let command = if fields.is_list("command") {
        if !args.is_empty() {
            return Err(fields.error("args", "goes with a command that is a string"));
        }
        fields.texts("command")?
    } else {
        let program = fields.text("command")?;
        program.into_iter().chain(args).collect()
    };
    if command.first().is_none_or(|program| program.raw.is_empty()) {
        return Err(fields.error("command", "is empty"));
    }
    let mut environment: BTreeMap<_, _> = fields.named_texts("env")?.into_iter().collect();
    environment.extend(fields.named_texts("environment")?);
    if let Some(name) = environment
        .keys()
        .find(|name| name.is_empty() || name.contains(['=', '\0']))
    {
        let key = format!("environment.{name}");
        return Err(fields.error(&key, "is not the name of a variable"));
    }
    Ok(EndpointConfig::Local {
        command,
        environment,
        inherit: inherit(fields)?,
        cwd: fields.text("cwd")?,
    })
}

fn inherit(fields: &Fields<'_>) -> Result<InheritEnv> {
    const KEY: &str = "inheritEnv";
    if fields.is_list(KEY) {
        let names = fields.texts(KEY)?.into_iter().map(|name| name.raw);
        return Ok(InheritEnv::Only(names.collect()));
    }
    match fields.string(KEY) {
        Ok(None) => Ok(InheritEnv::AllButKeys),
        Ok(Some("all")) => Ok(InheritEnv::All),
        Ok(Some("none")) => Ok(InheritEnv::None),
        _ => Err(fields.error(KEY, "must be \"all\", \"none\" or a list of names")),
    }
}

fn remote(fields: &Fields<'_>, transport: RemoteTransport) -> Result<EndpointConfig> {
    let Some(url) = fields.text("url")? else {
        return Err(fields.error("url", "is missing"));
    };
    Ok(EndpointConfig::Remote {
        url,
        headers: fields.named_texts("headers")?,
        transport,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(document: Value) -> Vec<String> {
        let config = McpConfig::from_json(&document).unwrap();
        config.ids().map(str::to_owned).collect()
    }

    fn server(server: Value) -> Declared {
        let config = McpConfig::from_json(&json!({"mcpServers": {"s": server}})).unwrap();
        config.servers["s"].clone()
    }

    /// Path and message of what is wrong with a server.
    fn fault(declaration: Value) -> (String, String) {
        let error = server(declaration).server.err().expect("a fault");
        assert_eq!(error.code(), ErrorCode::InvalidConfig);
        assert_eq!(error.record().server.as_deref(), Some("s"));
        let record = error.into_record();
        (record.path.unwrap_or_default(), record.message)
    }

    fn endpoint_of(declaration: Value) -> EndpointConfig {
        server(declaration).server.unwrap().endpoint
    }

    #[test]
    fn the_first_wrapper_key_holds_the_servers() {
        let s = json!({"url": "http://h"});
        assert_eq!(
            ids(json!({"mcp": {"c": s}, "servers": {"b": s}, "mcpServers": {"a": s}})),
            ["a"]
        );
        assert_eq!(ids(json!({"mcp": {"c": s}, "servers": {"b": s}})), ["b"]);
        assert_eq!(ids(json!({"inputs": [], "mcp": {"c": s}})), ["c"]);
    }

    #[test]
    fn a_document_without_wrapper_is_the_map_less_reserved_keys() {
        let document =
            json!({"b": {}, "a": {}, "builtins": {}, "agents": {}, "a2a": {}, "mcpServer": {}});
        assert_eq!(ids(document), ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_with_the_document_fails_it() {
        let error = McpConfig::from_text("{\"mcpServers\": [}").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidConfig);
        assert_eq!(
            error.record().message,
            "the MCP configuration is not JSON: expected value at line 1 column 17"
        );
        let error = McpConfig::from_text("[]").unwrap_err();
        assert_eq!(
            error.record().message,
            "the MCP configuration must be a JSON object"
        );
        let error = McpConfig::from_json(&json!({"servers": []})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_config: servers: must be an object of servers"
        );
        let error = McpConfig::from_path(Path::new("no/such/mcp.json")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound);
        assert_eq!(
            error.record().message,
            "the MCP configuration no/such/mcp.json cannot be read: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_file_has_a_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = McpConfig::from_path(file.path()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LimitExceeded);
        file.as_file().set_len(MAX_FILE_BYTES).unwrap();
        // As many zero bytes are read, and are no JSON.
        let error = McpConfig::from_path(file.path()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidConfig);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert!(McpConfig::from_text("\u{feff}{}").is_ok());
    }

    #[test]
    fn a_fault_of_a_server_stays_with_it_and_names_the_key() {
        let at = |path: &str, message: &str| (path.to_owned(), message.to_owned());
        assert_eq!(fault(json!(7)), at("mcpServers.s", "must be an object"));
        assert_eq!(
            fault(json!({"url": "http://h", "timout": 5})),
            at("mcpServers.s.timout", "is not a key of a server")
        );
        assert_eq!(
            fault(json!({"url": "http://h", "timeout": "5"})),
            at("mcpServers.s.timeout", "must be a number")
        );
        assert_eq!(
            fault(json!({"url": "http://h", "tools": {"a": 1}})),
            at("mcpServers.s.tools.a", "must be true or false")
        );
        assert_eq!(
            fault(json!({"url": "http://h", "headers": {"X": 1}})),
            at("mcpServers.s.headers.X", "must be a string")
        );
        assert_eq!(
            fault(json!({"command": ["a", 2]})),
            at("mcpServers.s.command[1]", "must be a string")
        );
        assert_eq!(
            fault(json!({"command": []})),
            at("mcpServers.s.command", "is empty")
        );
        assert_eq!(
            fault(json!({"command": ["a"], "args": ["b"]})),
            at("mcpServers.s.args", "goes with a command that is a string")
        );
        assert_eq!(
            fault(json!({"command": "a", "url": "http://h"})),
            at(
                "mcpServers.s.url",
                "stands beside command; give one of them"
            )
        );
        assert_eq!(
            fault(json!({})),
            at("mcpServers.s.command", "is missing, and so is url")
        );
        assert_eq!(
            fault(json!({"url": "http://h", "env": {}})),
            at("mcpServers.s.env", "does not apply to a remote server")
        );
        assert_eq!(
            fault(json!({"command": "a", "headers": {}})),
            at("mcpServers.s.headers", "does not apply to a local server")
        );
        assert_eq!(
            fault(json!({"command": "a", "type": "sse"})),
            at("mcpServers.s.url", "is missing from a server of this type")
        );
        assert_eq!(
            fault(json!({"url": "http://h", "type": "stdio"})),
            at(
                "mcpServers.s.command",
                "is missing from a server of this type"
            )
        );
        assert_eq!(
            fault(json!({"url": "http://h", "type": "websocket"})),
            at("mcpServers.s.type", TYPE_IS_ONE_OF)
        );
        assert_eq!(
            fault(json!({"command": "a", "inheritEnv": "some"})),
            at(
                "mcpServers.s.inheritEnv",
                "must be \"all\", \"none\" or a list of names"
            )
        );
        assert_eq!(
            fault(json!({"url": "http://h", "expose": "raw"})),
            at(
                "mcpServers.s.expose",
                "must be \"prefixed\" or \"original\""
            )
        );
    }

    #[test]
    fn a_fault_elsewhere_neither_enables_a_server_nor_makes_it_optional() {
        let declared = server(json!({"url": 5, "disabled": true, "required": true}));
        assert!(!declared.enabled && declared.required && declared.server.is_err());
    }

    #[test]
    fn a_command_is_a_list_or_a_string_with_args() {
        for declaration in [
            json!({"command": ["npx", "-y", "pkg"]}),
            json!({"type": "local", "command": "npx", "args": ["-y", "pkg"]}),
        ] {
            let EndpointConfig::Local { command, .. } = endpoint_of(declaration) else {
                panic!("not local");
            };
            let words: Vec<_> = command.iter().map(|word| word.raw.as_str()).collect();
            assert_eq!(words, ["npx", "-y", "pkg"]);
        }
    }

    #[test]
    fn every_spelling_of_a_remote_type_is_known() {
        let transport = |kind: &str| match endpoint_of(json!({"url": "http://h", "type": kind})) {
            EndpointConfig::Remote { transport, .. } => transport,
            EndpointConfig::Local { .. } => panic!("not remote"),
        };
        for kind in ["remote", "http", "streamable-http", "streamableHttp"] {
            assert_eq!(transport(kind), RemoteTransport::Automatic, "{kind}");
        }
        assert_eq!(transport("sse"), RemoteTransport::Sse);
    }

    #[test]
    fn a_timeout_that_is_not_positive_means_the_default() {
        let timeout = |ms: Value| {
            server(json!({"url": "http://h", "timeout": ms}))
                .server
                .unwrap()
                .timeout
        };
        assert_eq!(timeout(json!(1500)), Duration::from_millis(1500));
        for ms in [json!(0), json!(-5), json!(null)] {
            assert_eq!(timeout(ms), Duration::from_secs(30));
        }
    }

    #[test]
    fn a_value_never_shows_in_an_error() {
        for declaration in [
            json!({"url": ["SECRET"]}),
            json!({"url": "http://h", "headers": {"A": ["SECRET"]}}),
            json!({"url": "http://h", "timeout": "SECRET"}),
            json!({"url": "http://h", "type": "SECRET"}),
            json!({"command": "a", "inheritEnv": "SECRET"}),
            json!({"command": "a", "env": {"A": ["SECRET"]}}),
        ] {
            let error = server(declaration).server.err().expect("a fault");
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
    }
}
