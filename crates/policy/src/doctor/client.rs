//! Checks whether the client is installed, and its version.

use super::{Finding, Section};
use plimsoll_protocol::settings::{
    FIRST_EXEC_FORM_VERSION, FIRST_MODERN_VERSION, HookSupport, parse_version,
};

#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// The program that the user named with `--client`; `None` if the default is used.
    pub requested_program: Option<String>,
    /// The path of the program; `None` if it was not found.
    pub path: Option<String>,
    /// True if we run in WSL and the program runs in Windows.
    pub runs_in_windows: bool,
    /// True if this program is one for Windows.
    pub is_on_windows: bool,
    /// The output of `claude --version`.
    pub version_text: Option<String>,
}

impl ClientInfo {
    /// Returns the version as three numbers; `None` if the client reports no version.
    pub fn parsed_version(&self) -> Option<(u32, u32, u32)> {
        parse_version(self.version_text.as_deref()?)
    }

    /// Returns which hooks the client supports. If no client was found, assumes the newest.
    pub fn hook_support_assuming_modern_if_missing(&self) -> HookSupport {
        match (&self.path, &self.version_text) {
            (None, _) => HookSupport::Modern,
            (_, version) => {
                HookSupport::from_client_version_or_classic(version.as_deref().unwrap_or_default())
            }
        }
    }
}

pub(super) fn check_client_version(client: &ClientInfo) -> Section {
    let Some(path) = &client.path else {
        let finding = match &client.requested_program {
            Some(program) => Finding::problem(
                "client.missing",
                format!("`{program}` is not a program"),
                "name Claude Code's own program: `plimsoll doctor --client PATH`",
            ),
            None => Finding::problem(
                "client.missing",
                "`claude` is not on the PATH",
                "install Claude Code, or name it: `plimsoll doctor --client PATH`",
            ),
        };
        return Section::new("Client", "none", vec![finding]);
    };
    if client.runs_in_windows {
        let finding = Finding::problem(
            "client.windows",
            "this is Claude Code for Windows: it starts hooks in Windows, where our programs for Linux do not run",
            "install Claude Code in WSL, too, so that it comes first on the PATH: `npm install -g @anthropic-ai/claude-code`",
        );
        return Section::new("Client", "for Windows", vec![finding.with_path(path.clone())]);
    }
    let (Some(version_text), Some(_)) = (&client.version_text, client.parsed_version()) else {
        let finding = Finding::problem(
            "client.silent",
            "Claude Code does not report its version",
            "check the output of `claude --version`; until it works, `plimsoll init` writes the entries that every version understands",
        );
        return Section::new("Client", path.clone(), vec![finding.with_path(path.clone())]);
    };
    let short_version = version_text.split_whitespace().next().unwrap_or(version_text);
    if let Some(reason) = crate::client::unsupported_client_reason(version_text) {
        let finding = Finding::problem("client.too_old", reason, crate::client::UPDATE_ADVICE);
        return Section::new("Client", format!("Claude Code {short_version} ({path})"), vec![finding]);
    }
    let first_modern = crate::client::format_version(FIRST_MODERN_VERSION);
    let classic_warning = (client.hook_support_assuming_modern_if_missing() == HookSupport::Classic).then(|| {
        Finding::warning(
            "client.classic",
            format!(
                "Claude Code is older than {first_modern}: usage is measured after each tool, there is no working memory, and limits are recognized only from its output"
            ),
            crate::client::UPDATE_ADVICE,
        )
    });
    let starts_hooks_by_shell =
        client.parsed_version().is_some_and(|version| version < FIRST_EXEC_FORM_VERSION);
    let shell_warning = (client.is_on_windows && starts_hooks_by_shell).then(|| {
        let first_version = crate::client::format_version(FIRST_EXEC_FORM_VERSION);
        let message =
            format!("Claude Code is older than {first_version}: it starts each hook through Git Bash");
        Finding::warning("client.shell", message, crate::client::UPDATE_ADVICE)
    });
    Section::new(
        "Client",
        format!("Claude Code {short_version} ({path})"),
        classic_warning.into_iter().chain(shell_warning).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    #[test]
    fn a_client_is_missing_silent_too_old_classic_or_current() {
        for (path, version, expected) in [
            (None, None, vec!["client.missing"]),
            (Some("/bin/claude"), None, vec!["client.silent"]),
            (Some("/bin/claude"), Some("who knows"), vec!["client.silent"]),
            (Some("/bin/claude"), Some("1.0.84 (Claude Code)"), vec!["client.too_old"]),
            (Some("/bin/claude"), Some("1.0.128 (Claude Code)"), vec!["client.classic"]),
            (Some("/bin/claude"), Some("2.1.329 (Claude Code)"), vec![]),
        ] {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let section = check_client_version(&ClientInfo {
                path: owned(path),
                version_text: owned(version),
                ..ClientInfo::default()
            });
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
        for (version, expected) in [
            ("2.1.138 (Claude Code)", vec!["client.classic", "client.shell"]),
            ("2.1.139 (Claude Code)", vec!["client.classic"]),
            ("2.1.329 (Claude Code)", vec![]),
        ] {
            let section = check_client_version(&ClientInfo {
                path: Some(r"C:\npm\claude.exe".to_owned()),
                version_text: Some(version.to_owned()),
                is_on_windows: true,
                ..ClientInfo::default()
            });
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
        let section = check_client_version(&ClientInfo {
            path: Some("/mnt/c/npm/claude".to_owned()),
            version_text: Some("2.1.329 (Claude Code)".to_owned()),
            runs_in_windows: true,
            ..ClientInfo::default()
        });
        assert_eq!(finding_codes(&section), ["client.windows"]);
    }
}
