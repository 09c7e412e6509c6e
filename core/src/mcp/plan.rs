//! Which servers are used and how, before anything is contacted (SPEC 3.1, 3.5). Pure: the environment is a parameter.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

use super::config::{
    Declared, EndpointConfig, Expose, InheritEnv, McpConfig, RemoteTransport, ServerConfig,
};
use super::expand::Lookup;
use super::fields::Text;
use super::revision::Revision;
use super::secrets::Secrets;
use crate::error::{Error, Result};

/// Headers that belong to the protocol.
const PROTOCOL_HEADERS: [&str; 3] = ["mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// What the servers are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To use their tools: duplicates are left out.
    Use,
    /// To show what there is: every enabled server.
    Inventory,
}

/// What happens to one server.
#[derive(Debug)]
pub(super) struct Step {
    pub required: bool,
    pub decision: Decision,
}

#[derive(Debug)]
pub(super) enum Decision {
    Disabled,
    /// The id that is kept.
    Deduplicated(String),
    /// The configuration of this server is wrong.
    Faulty(Error),
    Connect(Box<ServerPlan>),
}

/// A server ready to be contacted, its variables expanded.
#[derive(Clone)]
pub(super) struct ServerPlan {
    pub endpoint: Endpoint,
    pub timeout: Duration,
    pub revision: Revision,
    pub filter: Option<BTreeMap<String, bool>>,
    pub expose: Expose,
}

#[derive(Clone)]
pub(super) enum Endpoint {
    Local(LocalServer),
    Remote(RemoteServer),
}

/// A child process to start.
#[derive(Clone)]
pub(super) struct LocalServer {
    /// The program as it was written, for messages.
    pub shown: String,
    pub program: String,
    pub args: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub inherit: InheritEnv,
    pub cwd: Option<PathBuf>,
    /// What it is told by its environment, and what variables brought into its command.
    pub secrets: Secrets,
}

/// A URL to talk to.
#[derive(Clone)]
pub(super) struct RemoteServer {
    pub url: Url,
    pub headers: HeaderMap,
    pub transport: RemoteTransport,
}

impl std::fmt::Debug for ServerPlan {
    /// Commands, URLs and headers may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerPlan")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Decides about every server, by id. Fails only where the servers contradict each other.
pub(super) fn plan(
    config: &McpConfig,
    purpose: Purpose,
    lookup: Lookup<'_>,
) -> Result<BTreeMap<String, Step>> {
    let kept = match purpose {
        Purpose::Use => kept_by_key(&config.servers)?,
        Purpose::Inventory => BTreeMap::new(),
    };
    let decide = |id: &String, declared: &Declared| {
        if !declared.enabled {
            return Decision::Disabled;
        }
        let winner = declared.dedup_key.as_ref().and_then(|key| kept.get(key));
        if let Some(winner) = winner.filter(|winner| *winner != id) {
            return Decision::Deduplicated(winner.clone());
        }
        let ready = declared.server.clone().and_then(|server| {
            expand_server(server, &declared.path, lookup).map_err(|e| e.server(id.as_str()))
        });
        match ready {
            Ok(server) => Decision::Connect(Box::new(server)),
            Err(error) => Decision::Faulty(error),
        }
    };
    Ok(config
        .servers
        .iter()
        .map(|(id, declared)| {
            let step = Step {
                required: declared.required,
                decision: decide(id, declared),
            };
            (id.clone(), step)
        })
        .collect())
}

/// Which server is kept for each key: the preferred one, else the first by id. A faulty server keeps its place: whose
/// credentials are used must not depend on what happens to work.
fn kept_by_key(servers: &BTreeMap<String, Declared>) -> Result<BTreeMap<String, String>> {
    let mut kept: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for (id, declared) in servers.iter().filter(|(_, declared)| declared.enabled) {
        let path = || format!("{}.dedupPreferred", declared.path);
        let preferred = declared.dedup_preferred;
        let Some(key) = &declared.dedup_key else {
            if preferred {
                return Err(Error::config(path(), "needs a dedupKey").server(id.as_str()));
            }
            continue;
        };
        match kept.get(key) {
            Some((other, true)) if preferred => {
                let message = format!("{other} is preferred for the same dedupKey already");
                return Err(Error::config(path(), message).server(id.as_str()));
            }
            Some(_) if !preferred => {}
            _ => {
                kept.insert(key.clone(), (id.clone(), preferred));
            }
        }
    }
    Ok(kept.into_iter().map(|(key, (id, _))| (key, id)).collect())
}

fn expand_server(server: ServerConfig, path: &str, lookup: Lookup<'_>) -> Result<ServerPlan> {
    let endpoint = match server.endpoint {
        EndpointConfig::Local {
            command,
            environment,
            inherit,
            cwd,
        } => {
            let found = RefCell::new(Vec::new());
            let noting = |name: &str| {
                let value = lookup(name);
                found.borrow_mut().extend(value.clone());
                value
            };
            let shown = command.first().map(|program| program.raw.clone());
            let mut command = expand_all(&command, &noting)?.into_iter();
            let environment: BTreeMap<_, _> = environment
                .into_iter()
                .map(|(name, value)| Ok((name, plain(&value, &noting)?)))
                .collect::<Result<_>>()?;
            let told = environment.values().cloned();
            let secrets = Secrets::new(found.take().into_iter().chain(told));
            let program = command.next().filter(|program| !program.is_empty());
            Endpoint::Local(LocalServer {
                shown: shown.unwrap_or_default(),
                program: program
                    .ok_or_else(|| Error::config(format!("{path}.command"), "is empty"))?,
                args: command.collect(),
                environment,
                inherit,
                cwd: cwd
                    .map(|cwd| plain(&cwd, lookup).map(PathBuf::from))
                    .transpose()?,
                secrets,
            })
        }
        EndpointConfig::Remote {
            url,
            headers,
            transport,
        } => Endpoint::Remote(RemoteServer {
            url: expand_url(&url, lookup)?,
            headers: expand_headers(headers, lookup)?,
            transport,
        }),
    };
    Ok(ServerPlan {
        endpoint,
        timeout: server.timeout,
        revision: server.revision,
        filter: server.filter,
        expose: server.expose,
    })
}

fn expand_all(texts: &[Text], lookup: Lookup<'_>) -> Result<Vec<String>> {
    texts.iter().map(|text| plain(text, lookup)).collect()
}

/// Text for the operating system, which takes no NUL.
fn plain(text: &Text, lookup: Lookup<'_>) -> Result<String> {
    let value = text.expand(lookup)?;
    if value.contains('\0') {
        return Err(Error::config(&text.path, "contains a NUL character"));
    }
    Ok(value)
}

fn expand_url(text: &Text, lookup: Lookup<'_>) -> Result<Url> {
    let url = Url::parse(text.expand(lookup)?.trim())
        .map_err(|e| Error::config(&text.path, format!("is not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::config(
            &text.path,
            "must begin with http:// or https://",
        ));
    }
    Ok(url)
}

fn expand_headers(headers: Vec<(String, Text)>, lookup: Lookup<'_>) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, text) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Error::config(&text.path, "is not the name of a header"))?;
        if PROTOCOL_HEADERS.contains(&name.as_str()) {
            return Err(Error::config(&text.path, "belongs to the protocol"));
        }
        let mut value = HeaderValue::from_str(text.expand(lookup)?.trim())
            .map_err(|_| Error::config(&text.path, "has a character no header can hold"))?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn lookup(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("SECRET".into()),
            "BREAK" => Some("SECRET\nX: y".into()),
            _ => None,
        }
    }

    fn planned(servers: Value) -> Result<BTreeMap<String, Step>> {
        let config = McpConfig::from_json(&json!({"mcpServers": servers}))?;
        plan(&config, Purpose::Use, &lookup)
    }

    fn one(server: Value) -> Decision {
        planned(json!({"s": server}))
            .unwrap()
            .remove("s")
            .unwrap()
            .decision
    }

    fn fault(server: Value) -> String {
        match one(server) {
            Decision::Faulty(error) => {
                assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
                error.to_string()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unset_variable_is_a_fault_of_its_server_at_its_place() {
        assert_eq!(
            fault(json!({"url": "http://h", "headers": {"Authorization": "Bearer ${NONE}"}})),
            "invalid_config: mcpServers.s.headers.Authorization: the variable NONE is not set"
        );
        assert_eq!(
            fault(json!({"command": "a", "args": ["x", "${NONE}"]})),
            "invalid_config: mcpServers.s.args[1]: the variable NONE is not set"
        );
    }

    #[test]
    fn a_disabled_server_needs_no_variables() {
        let decision = one(json!({"url": "${NONE}", "enabled": false}));
        assert!(matches!(decision, Decision::Disabled), "{decision:?}");
    }

    #[test]
    fn a_value_that_does_not_fit_is_a_fault_that_does_not_show_it() {
        assert_eq!(
            fault(json!({"url": "ftp://h/${TOKEN}"})),
            "invalid_config: mcpServers.s.url: must begin with http:// or https://"
        );
        assert_eq!(
            fault(json!({"url": "${TOKEN}"})),
            "invalid_config: mcpServers.s.url: is not a URL: relative URL without a base"
        );
        assert_eq!(
            fault(json!({"url": "http://h", "headers": {"X": "${BREAK}"}})),
            "invalid_config: mcpServers.s.headers.X: has a character no header can hold"
        );
        assert_eq!(
            fault(json!({"url": "http://h", "headers": {"Mcp-Session-Id": "x"}})),
            "invalid_config: mcpServers.s.headers.Mcp-Session-Id: belongs to the protocol"
        );
        assert_eq!(
            fault(json!({"command": "${EMPTY:-}"})),
            "invalid_config: mcpServers.s.command: is empty"
        );
    }

    #[test]
    fn what_variables_bring_to_a_child_is_secret_alone_and_in_its_place() {
        let declared = json!({"command": ["a", "--key=${TOKEN}"], "env": {"A": "Basic ${TOKEN}", "B": "plainly"}});
        let Decision::Connect(plan) = one(declared) else {
            panic!("a fault");
        };
        let Endpoint::Local(server) = plan.endpoint else {
            panic!("not local");
        };
        let said = "--key=SECRET, Basic SECRET, plainly";
        assert_eq!(
            server.secrets.scrub(said, false),
            "--key=«redacted», «redacted», «redacted»"
        );
    }

    #[test]
    fn a_plan_shows_no_secret() {
        let plan = one(json!({"url": "http://h?k=${TOKEN}", "headers": {"A": "${TOKEN}"}}));
        assert!(matches!(plan, Decision::Connect(_)));
        assert!(!format!("{plan:?}").contains("SECRET"));
    }

    /// What happens to each server, in order of id: `use`, or the id that is used instead.
    fn choice(servers: Value) -> Vec<String> {
        let steps = planned(servers).unwrap();
        let shown = |step: Step| match step.decision {
            Decision::Connect(_) => "use".to_owned(),
            Decision::Deduplicated(kept) => kept,
            Decision::Disabled => "off".to_owned(),
            Decision::Faulty(_) => "faulty".to_owned(),
        };
        steps.into_values().map(shown).collect()
    }

    fn keyed(key: &str, more: Value) -> Value {
        let mut server = json!({"url": "http://h", "dedupKey": key});
        server
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server
    }

    #[test]
    fn of_one_key_the_preferred_is_kept_else_the_smallest_id() {
        let none = json!({});
        assert_eq!(
            choice(
                json!({"b": keyed("k", none.clone()), "a": keyed("k", none.clone()), "Z": keyed("k", none.clone())})
            ),
            ["use", "Z", "Z"]
        );
        assert_eq!(
            choice(
                json!({"a": keyed("k", none.clone()), "b": keyed("k", json!({"dedupPreferred": true}))})
            ),
            ["b", "use"]
        );
        assert_eq!(
            choice(
                json!({"a": keyed("k", none.clone()), "b": keyed(" k", none.clone()), "c": keyed(" ", none.clone()), "d": keyed(" ", none)})
            ),
            ["use", "use", "use", "use"]
        );
    }

    #[test]
    fn a_disabled_server_is_in_no_group_and_a_faulty_one_keeps_its_place() {
        assert_eq!(
            choice(json!({"a": keyed("k", json!({"disabled": true})), "b": keyed("k", json!({}))})),
            ["off", "use"]
        );
        assert_eq!(
            choice(json!({"a": keyed("k", json!({"timout": 1})), "b": keyed("k", json!({}))})),
            ["faulty", "a"]
        );
    }

    #[test]
    fn servers_that_contradict_each_other_fail_the_whole() {
        let preferred = json!({"dedupPreferred": true});
        let error = planned(
            json!({"a": keyed("k", preferred.clone()), "b": keyed("k", preferred.clone())}),
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "invalid_config: mcpServers.b.dedupPreferred: a is preferred for the same dedupKey already"
        );
        let error = planned(json!({"a": keyed(" ", preferred)}));
        assert_eq!(
            error.unwrap_err().to_string(),
            "invalid_config: mcpServers.a.dedupPreferred: needs a dedupKey"
        );
    }

    #[test]
    fn an_inventory_knows_no_duplicates() {
        let config = McpConfig::from_json(&json!({
            "a": keyed("k", json!({"dedupPreferred": true})), "b": keyed("k", json!({"dedupPreferred": true}))}))
        .unwrap();
        let steps = plan(&config, Purpose::Inventory, &lookup).unwrap();
        assert!(
            steps
                .values()
                .all(|step| matches!(step.decision, Decision::Connect(_)))
        );
    }
}
