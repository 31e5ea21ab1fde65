//! Other loops beside us: who else answers at Stop would make a session continue that we end, or end one that we need.

use super::{Finding, Section};
use plimsoll_domain::text::{clip, counted, one_line};

/// Another program's hook at Stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopHook {
    /// The file that names it.
    pub file: String,
    /// The plugin that brings it, if one does.
    pub plugin: Option<String>,
    /// What it runs.
    pub command: String,
}

/// What else is there.
#[derive(Debug, Clone, Default)]
pub struct LoopFacts {
    /// Hooks at Stop that are not ours.
    pub hooks: Vec<StopHook>,
    /// Those of the known state files that are in the project.
    pub state_files: Vec<String>,
}

struct Loop {
    name: &'static str,
    /// What its hook's command or its plugin's name holds.
    marks: &'static [&'static str],
    /// What is in the project while it is at work.
    state_files: &'static [&'static str],
}

/// Loops that keep a session going from a Stop hook; the more special mark first.
const LOOPS: [Loop; 4] = [
    Loop {
        name: "oh-my-claudecode",
        marks: &["oh-my-claudecode", "persistent-mode", "omc@"],
        state_files: &[
            ".omc/state/ralph-state.json",
            ".omc/state/ultrawork-state.json",
            ".omc/state/autopilot-state.json",
        ],
    },
    Loop { name: "the ralph of cc-skills", marks: &["loop-until-done"], state_files: &[] },
    Loop { name: "PRP Ralph", marks: &["prp-ralph"], state_files: &[".claude/prp-ralph.state.md"] },
    Loop {
        name: "Ralph Loop (ralph-wiggum)",
        marks: &["ralph-wiggum", "ralph-loop", "ralph_loop"],
        state_files: &[".claude/ralph-loop.local.md"],
    },
];

/// What is in a project while another loop is at work there.
pub const KNOWN_STATE_FILES: [&str; 5] = [
    ".omc/state/ralph-state.json",
    ".omc/state/ultrawork-state.json",
    ".omc/state/autopilot-state.json",
    ".claude/prp-ralph.state.md",
    ".claude/ralph-loop.local.md",
];

impl StopHook {
    fn known(&self) -> Option<&'static Loop> {
        let plugin = self.plugin.as_deref().unwrap_or_default();
        let command_line = format!("{plugin} {}", self.command).to_lowercase();
        let marked = LOOPS.iter().find(|one| one.marks.iter().any(|mark| command_line.contains(mark)));
        // A script may be named so; a user may be, too.
        let mut files = command_line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        marked.or_else(|| if files.any(|file| file.contains("ralph")) { LOOPS.last() } else { None })
    }
}

pub(super) fn section(facts: &LoopFacts) -> Section {
    let mut findings: Vec<Finding> = facts.hooks.iter().map(|hook| finding(facts, hook)).collect();
    findings.extend(facts.state_files.iter().filter_map(|file| left_behind(facts, file)));
    let summary = match facts.hooks.len() {
        0 => "no other hook runs at Stop".to_owned(),
        hooks => format!("{} of other programs at Stop", counted(hooks, "hook")),
    };
    Section::new("Other loops", summary, findings)
}

fn finding(facts: &LoopFacts, hook: &StopHook) -> Finding {
    let command = clip(&one_line(&hook.command), 100);
    let Some(known) = hook.known() else {
        let what = format!("another hook runs at Stop: `{command}`");
        let todo =
            "nothing, if it only observes; a hook that blocks or continues would conflict with the gate";
        return Finding::note("loops.other_hook", what, todo).at(hook.file.clone());
    };
    let remove = match &hook.plugin {
        Some(plugin) => format!("remove one of the two: `claude plugin disable {plugin}`"),
        None => "remove one of the two: take its Stop entry out of the file".to_owned(),
    };
    let at_work = facts.state_files.iter().find(|file| known.state_files.contains(&file.as_str()));
    match at_work {
        Some(file) => {
            let what = format!(
                "{} is active in this project ({file}) and would conflict with our Stop hook",
                known.name
            );
            let todo = format!("end it (delete {file}), or {remove}");
            Finding::problem("loops.at_work", what, &todo).at(hook.file.clone())
        }
        None => {
            let what =
                format!("{} is installed (`{command}`) and would conflict with our Stop hook", known.name);
            Finding::warning("loops.known", what, &remove).at(hook.file.clone())
        }
    }
}

/// A loop's state without its hook: it does nothing, until its hook is back.
fn left_behind(facts: &LoopFacts, file: &str) -> Option<Finding> {
    let owner = LOOPS.iter().find(|one| one.state_files.contains(&file))?;
    let has_hook = facts.hooks.iter().filter_map(StopHook::known).any(|known| known.name == owner.name);
    (!has_hook).then(|| {
        let what = format!("{} has left its state here; its hook was not found", owner.name);
        Finding::note("loops.left_behind", what, "delete the file if that loop is over").at(file)
    })
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn look(hooks: &[(Option<&str>, &str)], state_files: &[&str]) -> Section {
        let hook = |(plugin, command): &(Option<&str>, &str)| StopHook {
            file: "settings.json".to_owned(),
            plugin: plugin.map(str::to_owned),
            command: (*command).to_owned(),
        };
        section(&LoopFacts {
            hooks: hooks.iter().map(hook).collect(),
            state_files: state_files.iter().map(|file| (*file).to_owned()).collect(),
        })
    }

    #[test]
    fn every_state_file_that_is_looked_for_belongs_to_a_loop() {
        let known: Vec<&str> = LOOPS.iter().flat_map(|one| one.state_files).copied().collect();
        assert_eq!(known, KNOWN_STATE_FILES);
    }

    #[test]
    fn a_known_loop_is_told_from_a_bell() {
        let ralph = (Some("ralph-loop@claude-plugins-official"), "${CLAUDE_PLUGIN_ROOT}/hooks/stop-hook.sh");
        let omc = (None, "node \"$HOME/.claude/hooks/persistent-mode.mjs\"");
        let own = (None, "bash .claude/hooks/ralph-stop.sh");
        let bell = (None, "/home/ralph/bin/bell done.ogg");
        for (hooks, files, expected) in [
            (&[][..], &[][..], &[][..]),
            (&[bell], &[], &["loops.other_hook"]),
            (&[ralph], &[], &["loops.known"]),
            (&[own], &[], &["loops.known"]),
            (&[ralph, bell], &[".claude/ralph-loop.local.md"], &["loops.at_work", "loops.other_hook"]),
            (&[omc], &[".omc/state/ralph-state.json"], &["loops.at_work"]),
            (&[omc], &[".claude/ralph-loop.local.md"], &["loops.known", "loops.left_behind"]),
            (&[], &[".claude/ralph-loop.local.md"], &["loops.left_behind"]),
        ] {
            let section = look(hooks, files);
            assert_eq!(codes(&section), expected, "{section:#?}");
        }
        let section = look(&[ralph, omc], &[]);
        assert!(section.findings[0].what.contains("ralph-wiggum"), "{section:?}");
        assert!(
            section.findings[0].todo.contains("claude plugin disable ralph-loop@claude-plugins-official")
        );
        assert!(section.findings[1].what.contains("oh-my-claudecode"), "{section:?}");
    }
}
