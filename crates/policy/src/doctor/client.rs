//! The client: there, and which one.

use super::{Finding, Section};
use plimsoll_protocol::settings::{FIRST_MODERN, HookSupport, parse_version};

/// The client.
#[derive(Debug, Clone, Default)]
pub struct ClientFacts {
    /// The client that the user asked for; none if nobody named one.
    pub named: Option<String>,
    /// Where it was found; none if it was not.
    pub path: Option<String>,
    /// What it says of itself.
    pub version: Option<String>,
}

impl ClientFacts {
    /// The three numbers of its version.
    pub fn numbers(&self) -> Option<(u32, u32, u32)> {
        parse_version(self.version.as_deref()?)
    }

    /// Which of our templates it understands. Without a client, the newest.
    pub fn era(&self) -> HookSupport {
        match (&self.path, &self.version) {
            (None, _) => HookSupport::Modern,
            (_, version) => HookSupport::of_client(version.as_deref().unwrap_or_default()),
        }
    }
}

pub(super) fn section(facts: &ClientFacts) -> Section {
    let Some(path) = &facts.path else {
        let finding = match &facts.named {
            Some(named) => Finding::problem(
                "client.missing",
                format!("`{named}` is not a program"),
                "name the client's own program: `plimsoll doctor --client PATH`",
            ),
            None => Finding::problem(
                "client.missing",
                "`claude` is not on the PATH",
                "install Claude Code, or name it: `plimsoll doctor --client PATH`",
            ),
        };
        return Section::new("Client", "none", vec![finding]);
    };
    let (Some(version), Some(_)) = (&facts.version, facts.numbers()) else {
        let finding = Finding::problem(
            "client.silent",
            "the client does not report its version",
            "check the output of `claude --version`; until then `plimsoll init` writes the entries that every version understands",
        );
        return Section::new("Client", path.clone(), vec![finding.at(path.clone())]);
    };
    let short = version.split_whitespace().next().unwrap_or(version);
    if let Some(words) = crate::client::too_old(version) {
        let finding = Finding::problem("client.too_old", words, crate::client::UPDATE);
        return Section::new("Client", format!("Claude Code {short} ({path})"), vec![finding]);
    }
    let first = crate::client::dotted(FIRST_MODERN);
    let classic = (facts.era() == HookSupport::Classic).then(|| {
        Finding::warning(
            "client.classic",
            format!(
                "the client is older than {first}: usage is measured after each tool, there is no working memory, and limits are recognised only from its output"
            ),
            crate::client::UPDATE,
        )
    });
    Section::new("Client", format!("Claude Code {short} ({path})"), classic.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    #[test]
    fn a_client_is_missing_silent_old_or_well() {
        for (path, version, expected) in [
            (None, None, vec!["client.missing"]),
            (Some("/bin/claude"), None, vec!["client.silent"]),
            (Some("/bin/claude"), Some("who knows"), vec!["client.silent"]),
            (Some("/bin/claude"), Some("1.0.84 (Claude Code)"), vec!["client.too_old"]),
            (Some("/bin/claude"), Some("1.0.128 (Claude Code)"), vec!["client.classic"]),
            (Some("/bin/claude"), Some("2.1.329 (Claude Code)"), vec![]),
        ] {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let section =
                section(&ClientFacts { path: own(path), version: own(version), ..ClientFacts::default() });
            assert_eq!(codes(&section), expected, "{section:?}");
        }
    }
}
