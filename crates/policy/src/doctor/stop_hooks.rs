//! Hooks of other programs at Stop. Another loop that answers there would continue a session that we end, or end one that we need.

use super::{Finding, Section};
use plimsoll_domain::text::{clip, counted, one_line};

/// Another program's hook at Stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopHook {
    /// The file that names it.
    pub file: String,
    /// The plugin that brings it, if one does.
    pub plugin: Option<String>,
    /// The command that it runs.
    pub command: String,
}

/// Plugins and commands of loops that keep a session going from a Stop hook have one of these in their names: Ralph loops, the loop of
/// cc-skills, and oh-my-claudecode.
const LOOP_MARKS: [&str; 8] = [
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
    fn is_loop(&self) -> bool {
        let plugin = self.plugin.as_deref().unwrap_or_default();
        let command_line = format!("{plugin} {}", self.command).to_lowercase();
        // A user or a folder may be named ralph, too, so this name counts only in the last part of a path.
        let mut files = command_line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        LOOP_MARKS.iter().any(|mark| command_line.contains(mark)) || files.any(|file| file.contains("ralph"))
    }

    fn finding(&self) -> Finding {
        let command = clip(&one_line(&self.command), 100);
        let finding = if self.is_loop() {
            let remove = match &self.plugin {
                Some(plugin) => format!("remove one of the two: `claude plugin disable {plugin}`"),
                None => "remove one of the two: take its Stop entry out of the file".to_owned(),
            };
            let what =
                format!("another loop runs at Stop and would conflict with our Stop hook: `{command}`");
            Finding::warning("loops.known", what, &remove)
        } else {
            let what = format!("another hook runs at Stop: `{command}`");
            let todo =
                "nothing, if it only observes; a hook that blocks or continues would conflict with the gate";
            Finding::note("loops.other_hook", what, todo)
        };
        finding.at(self.file.clone())
    }
}

pub(super) fn section(hooks: &[StopHook]) -> Section {
    let summary = match hooks.len() {
        0 => "no other hook runs at Stop".to_owned(),
        hooks => format!("{} of other programs at Stop", counted(hooks, "hook")),
    };
    Section::new("Other loops", summary, hooks.iter().map(StopHook::finding).collect())
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    #[test]
    fn a_loop_is_told_from_a_bell() {
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
        ] {
            assert_eq!(codes(&section(&[hook(plugin, command)])), [expected], "{command}");
        }
        let found = section(&[hook(Some(official), "stop-hook.sh")]);
        insta::assert_snapshot!(found.findings[0].todo, @"remove one of the two: `claude plugin disable ralph-loop@claude-plugins-official`");
        assert!(codes(&section(&[])).is_empty());
    }
}
