//! Our plugin: whether it fits the programs and what else is installed, and what it does not bring.

use super::memory::DEPTH;
use super::{ClientFacts, Finding, Section};
use plimsoll_protocol::settings::FIRST_PLUGIN;

/// Our plugin, where it is switched on.
#[derive(Debug, Clone)]
pub struct PluginFacts {
    /// As the client knows it: `plimsoll@plimsoll`.
    pub name: String,
    /// Its manifest.
    pub manifest: String,
    /// Its version, by that.
    pub version: Option<String>,
    /// A list of servers that starts ours by other words, which makes two of it.
    pub other_server: Option<String>,
    /// How deep agents may nest; none if not stated.
    pub depth: Option<u64>,
}

/// How deep agents nest by default (observed on 2.1.329).
const USUAL_DEPTH: u64 = 3;

pub(super) fn section(facts: &PluginFacts, programs: &str, client: &ClientFacts) -> Section {
    let mut findings = Vec::new();
    let is_new_enough = || client.numbers().is_some_and(|version| version >= FIRST_PLUGIN);
    if client.path.is_some() && !is_new_enough() {
        let what = "this client silently drops all hooks of the plugin, so no session is measured";
        let todo =
            format!("update Claude Code; or `claude plugin disable {}` and `plimsoll init`", facts.name);
        findings.push(Finding::problem("plugin.old_client", what, &todo).at(facts.manifest.clone()));
    }
    if let Some(version) = facts.version.as_deref().filter(|version| *version != programs) {
        let what = format!("the plugin is {version}, and the programs are {programs}");
        let todo = format!(
            "`claude plugin update {}`, or install the programs of its version; then restart your sessions",
            facts.name
        );
        findings.push(Finding::warning("plugin.other_version", what, &todo).at(facts.manifest.clone()));
    }
    if let Some(list) = &facts.other_server {
        let what = "our server is configured here with another path than in the plugin: the client starts both, and the model has every tool twice";
        let todo = format!("`plimsoll uninstall --local`, or `claude plugin disable {}`", facts.name);
        findings.push(Finding::warning("plugin.two_servers", what, &todo).at(list.clone()));
    }
    let depth = facts.depth.unwrap_or(USUAL_DEPTH);
    if depth < DEPTH {
        let what =
            format!("agents nest only {depth} deep here, and so do frames; a plugin cannot change that");
        let todo = "set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH to 5 in your settings' env to allow more";
        findings.push(Finding::note("plugin.depth", what, todo));
    }
    let version = facts.version.as_deref().unwrap_or("of no version");
    Section::new("Plugin", format!("{} {version}", facts.name), findings)
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    /// What is changed, and the codes that follow.
    type Case = (fn(&mut PluginFacts), &'static [&'static str]);

    #[test]
    fn what_does_not_fit_the_plugin_is_named() {
        let cases: [Case; 5] = [
            (|_| (), &[]),
            (|facts| facts.version = Some("0.0.9".to_owned()), &["plugin.other_version"]),
            (|facts| facts.version = None, &[]),
            (|facts| facts.other_server = Some(".mcp.json".to_owned()), &["plugin.two_servers"]),
            (|facts| facts.depth = None, &["plugin.depth"]),
        ];
        for (change, expected) in cases {
            let mut facts = PluginFacts {
                name: "plimsoll@plimsoll".to_owned(),
                manifest: "plugin.json".to_owned(),
                version: Some("0.1.0".to_owned()),
                other_server: None,
                depth: Some(5),
            };
            change(&mut facts);
            let section = section(&facts, "0.1.0", &ClientFacts::default());
            assert_eq!(codes(&section), expected, "{section:?}");
            let old = ClientFacts {
                path: Some("claude".to_owned()),
                version: Some("2.1.101".to_owned()),
                ..ClientFacts::default()
            };
            let section = self::section(&facts, "0.1.0", &old);
            assert_eq!(codes(&section), [&["plugin.old_client"], expected].concat(), "{section:?}");
            let first = ClientFacts { version: Some("2.1.118".to_owned()), ..old };
            assert_eq!(codes(&self::section(&facts, "0.1.0", &first)), expected);
        }
    }
}
