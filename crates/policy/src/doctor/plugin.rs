//! Checks whether the plugin matches the installed programs and the client, and whether its server runs twice.

use super::memory::MAX_FRAME_DEPTH;
use super::{ClientInfo, Finding, Section};
use plimsoll_protocol::settings::FIRST_PLUGIN_VERSION;

/// Plimsoll's plugin, if it is enabled.
#[derive(Debug, Clone)]
pub struct PluginInfo {
    /// The client's name for the plugin: `plimsoll@plimsoll`.
    pub name: String,
    /// The path of its manifest.
    pub manifest_file: String,
    /// The version in the manifest.
    pub version: Option<String>,
    /// A file that also lists Plimsoll's MCP server, with a different command, so that it runs twice.
    pub other_server_list: Option<String>,
    /// How deep subagents may nest; `None` if not configured.
    pub nesting_limit: Option<u64>,
}

/// The client's default nesting limit (observed on 2.1.329).
const DEFAULT_NESTING_LIMIT: u64 = 3;

pub(super) fn check_plugin_versions_server_and_nesting(
    plugin: &PluginInfo,
    program_version: &str,
    client: &ClientInfo,
) -> Section {
    let mut findings = Vec::new();
    let client_supports_plugin =
        || client.parsed_version().is_some_and(|version| version >= FIRST_PLUGIN_VERSION);
    if client.path.is_some() && !client_supports_plugin() {
        let message = "the hooks of the plugin do nothing in this client, so no session is measured";
        let advice =
            format!("update Claude Code; or `claude plugin disable {}` and `plimsoll init`", plugin.name);
        findings.push(
            Finding::problem("plugin.old_client", message, &advice).with_path(plugin.manifest_file.clone()),
        );
    }
    if let Some(version) = plugin.version.as_deref().filter(|version| *version != program_version) {
        let message = format!("the plugin is {version}, and the programs are {program_version}");
        let advice = format!(
            "`claude plugin update {}`, or install the programs of its version; then restart your sessions",
            plugin.name
        );
        findings.push(
            Finding::warning("plugin.other_version", message, &advice)
                .with_path(plugin.manifest_file.clone()),
        );
    }
    if let Some(server_list) = &plugin.other_server_list {
        let message = "our server is configured here with another path than in the plugin: Claude Code starts both, and the model has every tool twice";
        let advice = format!("`plimsoll uninstall --local`, or `claude plugin disable {}`", plugin.name);
        findings
            .push(Finding::warning("plugin.two_servers", message, &advice).with_path(server_list.clone()));
    }
    let nesting_limit = plugin.nesting_limit.unwrap_or(DEFAULT_NESTING_LIMIT);
    if nesting_limit < MAX_FRAME_DEPTH {
        let message = format!(
            "agents nest only {nesting_limit} deep here, and so do frames; a plugin cannot change that"
        );
        let advice = "set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH to 5 in your settings' env to allow more";
        findings.push(Finding::note("plugin.depth", message, advice));
    }
    let version = plugin.version.as_deref().unwrap_or("of no version");
    Section::new("Plugin", format!("{} {version}", plugin.name), findings)
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    /// A change to the plugin information, and the codes of the expected findings.
    type Case = (fn(&mut PluginInfo), &'static [&'static str]);

    #[test]
    fn whatever_does_not_match_the_plugin_is_reported() {
        let cases: [Case; 5] = [
            (|_| (), &[]),
            (|facts| facts.version = Some("0.0.9".to_owned()), &["plugin.other_version"]),
            (|facts| facts.version = None, &[]),
            (|facts| facts.other_server_list = Some(".mcp.json".to_owned()), &["plugin.two_servers"]),
            (|facts| facts.nesting_limit = None, &["plugin.depth"]),
        ];
        for (change, expected) in cases {
            let mut facts = PluginInfo {
                name: "plimsoll@plimsoll".to_owned(),
                manifest_file: "plugin.json".to_owned(),
                version: Some("0.1.0".to_owned()),
                other_server_list: None,
                nesting_limit: Some(5),
            };
            change(&mut facts);
            let section = check_plugin_versions_server_and_nesting(&facts, "0.1.0", &ClientInfo::default());
            assert_eq!(finding_codes(&section), expected, "{section:?}");
            let old_client = ClientInfo {
                path: Some("claude".to_owned()),
                version_text: Some("2.1.138".to_owned()),
                ..ClientInfo::default()
            };
            let section = check_plugin_versions_server_and_nesting(&facts, "0.1.0", &old_client);
            assert_eq!(finding_codes(&section), [&["plugin.old_client"], expected].concat(), "{section:?}");
            let first_client = ClientInfo { version_text: Some("2.1.139".to_owned()), ..old_client };
            assert_eq!(
                finding_codes(&check_plugin_versions_server_and_nesting(&facts, "0.1.0", &first_client)),
                expected
            );
        }
    }
}
