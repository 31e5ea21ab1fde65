//! Checks Stop hooks of other programs. Another loop that uses this hook could continue a session that Plimsoll
//! ends, or end a session that Plimsoll needs.

use super::{Finding, Section};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

/// A Stop hook of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopHook {
    /// The file that configures it.
    pub file: String,
    /// The plugin that provides it, if any.
    pub plugin: Option<String>,
    pub command: String,
}

/// Parts of the names of plugins and commands that keep a session running from a Stop hook: Ralph loops, the
/// loop of cc-skills, and oh-my-claudecode.
const LOOP_NAME_PARTS: [&str; 8] = [
    "ralph-wiggum",
    "ralph-loop",
    "ralph_loop",
    "prp-ralph",
    "loop-until-done",
    "oh-my-claudecode",
    "omc@",
    "persistent-mode",
];

impl StopHook {
    fn matches_known_loop_name(&self) -> bool {
        let plugin = self.plugin.as_deref().unwrap_or_default();
        let command_line = format!("{plugin} {}", self.command).to_lowercase();
        // A user or a folder may also be named ralph, so this name counts only in the last component of a path.
        let mut file_names =
            command_line.split_whitespace().map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word));
        LOOP_NAME_PARTS.iter().any(|name_part| command_line.contains(name_part))
            || file_names.any(|file_name| file_name.contains("ralph"))
    }

    fn to_warning_or_note(&self) -> Finding {
        let command = truncate_end(&to_safe_single_line(&self.command), 100);
        let finding = if self.matches_known_loop_name() {
            let advice = match &self.plugin {
                Some(plugin) => format!("remove one of the two: `claude plugin disable {plugin}`"),
                None => "remove one of the two: take its Stop entry out of the file".to_owned(),
            };
            let message =
                format!("another loop runs at Stop and would conflict with our Stop hook: `{command}`");
            Finding::warning("loops.known", message, &advice)
        } else {
            let message = format!("another hook runs at Stop: `{command}`");
            let advice =
                "nothing, if it only observes; a hook that blocks or continues would conflict with the gate";
            Finding::note("loops.other_hook", message, advice)
        };
        finding.with_path(self.file.clone())
    }
}

pub(super) fn check_stop_hooks_of_other_programs(hooks: &[StopHook]) -> Section {
    let summary = match hooks.len() {
        0 => "no other hook runs at Stop".to_owned(),
        count => format!("{} of other programs at Stop", count_with_noun(count, "hook")),
    };
    Section::new("Other loops", summary, hooks.iter().map(StopHook::to_warning_or_note).collect())
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    #[test]
    fn a_loop_is_distinguished_from_other_stop_hooks() {
        let hook = |plugin: Option<&str>, command: &str| StopHook {
            file: "settings.json".to_owned(),
            plugin: plugin.map(str::to_owned),
            command: command.to_owned(),
        };
        let official = "ralph-loop@claude-plugins-official";
        for (plugin, command, expected) in [
            (Some(official), "${CLAUDE_PLUGIN_ROOT}/hooks/stop-hook.sh", "loops.known"),
            (None, "node \"$HOME/.claude/hooks/persistent-mode.mjs\"", "loops.known"),
            (None, "bash .claude/hooks/ralph-stop.sh", "loops.known"),
            (None, "node ~/.claude/plugins/oh-my-claudecode/stop.mjs", "loops.known"),
            (None, "/home/ralph/bin/bell done.ogg", "loops.other_hook"),
            (None, r"C:\ralph\bell.exe done.ogg", "loops.other_hook"),
            (None, r"C:\tools\ralph.exe", "loops.known"),
        ] {
            assert_eq!(
                finding_codes(&check_stop_hooks_of_other_programs(&[hook(plugin, command)])),
                [expected],
                "{command}"
            );
        }
        let section = check_stop_hooks_of_other_programs(&[hook(Some(official), "stop-hook.sh")]);
        insta::assert_snapshot!(section.findings[0].advice, @"remove one of the two: `claude plugin disable ralph-loop@claude-plugins-official`");
        assert!(finding_codes(&check_stop_hooks_of_other_programs(&[])).is_empty());
    }
}
