//! Names that every provider accepts (SPEC 4.2).

use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Longest name that all providers take.
pub const MAX_LEN: usize = 64;

/// Every character outside `[A-Za-z0-9_-]` becomes one `_`.
pub fn sanitize(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// Whether a name may be used as it stands.
pub fn is_valid(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_LEN && sanitize(name) == name
}

/// The name that a tool of a server gets when nobody else wants it, and its identity. `bare` leaves the server out.
pub(crate) fn wish(server: &str, original: &str, bare: bool) -> (String, String) {
    let wish = if bare {
        sanitize(original)
    } else {
        format!("{}_{}", sanitize(server), sanitize(original))
    };
    (wish, format!("{server}/{original}"))
}

/// Hands out names: the first wish gets the plain name, a later equal wish a suffix made of its identity.
#[derive(Debug, Default)]
pub struct Namer {
    taken: HashSet<String>,
}

/// A name handed out.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Whether the plain name was taken, so that the suffix tells two tools apart.
    pub collided: bool,
}

impl Namer {
    /// Takes a name as it stands; false when somebody has it.
    pub fn claim(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }

    /// A name for `wish` that nobody has. `identity` is what makes the tool unique, e.g. `server/tool`; the same pair
    /// gives the same suffix on every run and in every language.
    pub fn assign(&mut self, wish: &str, identity: &str) -> Named {
        let mut plain = sanitize(wish);
        if plain.is_empty() {
            plain.push('_');
        }
        if plain.len() > MAX_LEN {
            plain = suffixed(&plain, identity);
        }
        if self.claim(&plain) {
            return Named {
                name: plain,
                collided: false,
            };
        }
        let mut salted = identity.to_owned();
        loop {
            let name = suffixed(&plain, &salted);
            if self.claim(&name) {
                return Named {
                    name,
                    collided: true,
                };
            }
            // The same identity twice (a server that lists one name twice), or a hash that met another.
            salted.push('+');
        }
    }
}

/// `name` cut to make room, `_`, and 8 hex digits of the identity. The name is ASCII, so any cut is a character's edge.
fn suffixed(name: &str, identity: &str) -> String {
    let digest = Sha256::digest(identity.as_bytes());
    let room = MAX_LEN - 9;
    let cut = &name[..name.len().min(room)];
    format!(
        "{cut}_{:02x}{:02x}{:02x}{:02x}",
        digest[0], digest[1], digest[2], digest[3]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_told_apart_by_its_identity() {
        let mut namer = Namer::default();
        let wish = "corporate-knowledge-base-production_search_documents_by_semantic_similarity";
        let first = namer.assign(
            wish,
            "corporate-knowledge-base-production/search_documents_by_semantic_similarity",
        );
        assert_eq!(
            first.name,
            "corporate-knowledge-base-production_search_documents_by_2eab8604"
        );
        assert!(!first.collided);
    }

    #[test]
    fn the_second_of_two_equal_names_gets_a_suffix() {
        let mut namer = Namer::default();
        assert_eq!(namer.assign("s_search.a", "s/search.a").name, "s_search_a");
        let second = namer.assign("s_search_a", "s/search_a");
        assert!(second.collided);
        assert_eq!(second.name.len(), "s_search_a".len() + 9);
    }
}
