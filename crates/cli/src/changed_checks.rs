//! Sentences about changed files: those that check the work, and protected ones.

use plimsoll_domain::RunState;
use plimsoll_domain::changed_check::ChangedCheck;
use plimsoll_domain::protected::describe_changes;
use plimsoll_domain::state::short_id;
use plimsoll_domain::text::{clip, counted, one_line};

/// The most files that a sentence names.
const FILES: usize = 5;
/// The most bytes of a path.
const PATH: usize = 120;

/// Returns a sentence that names the files with the size of the changes; none if the run changed no such file.
pub(crate) fn sentence(state: &RunState) -> Option<String> {
    let changed = &state.outcomes.changed_checks;
    let named: Vec<String> = changed.iter().take(FILES).map(words).collect();
    let rest = changed.len().saturating_sub(named.len());
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let (count, verb) = (counted(changed.len(), "file"), if changed.len() == 1 { "checks" } else { "check" });
    (!changed.is_empty())
        .then(|| format!("{count} that {verb} the work changed in this run: {}{more}", named.join(", ")))
}

/// Returns a sentence that names the changes of protected files; none if there are none.
pub(crate) fn protected_sentence(state: &RunState) -> Option<String> {
    let changes = &state.outcomes.changed_protected;
    (!changes.is_empty()).then(|| describe_changes(changes))
}

/// Returns the command that shows the changes; none if the run changed no such file.
pub(crate) fn command(state: &RunState) -> Option<String> {
    let changed = &state.outcomes.changed_checks;
    let base = short_id(state.at_start.head.as_deref()?);
    let branch = state.options.branch.as_deref().filter(|_| state.options.workers.is_some());
    let words = ["git", "diff", &base].into_iter().chain(branch).chain(["--"]);
    let paths = changed.iter().take(FILES).map(|changed| changed.path.as_str());
    if changed.is_empty() { None } else { shlex::try_join(words.chain(paths)).ok() }
}

fn words(changed: &ChangedCheck) -> String {
    let path = clip(&one_line(&changed.path), PATH);
    if changed.is_deleted {
        format!("{path} (deleted, {})", counted(changed.removed as usize, "line"))
    } else {
        format!("{path} (+{} -{})", changed.added, changed.removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_files_that_changed_are_named_without_their_control_characters() {
        let mut state = RunState::default();
        assert_eq!(protected_sentence(&state), None);
        state.outcomes.changed_protected = vec!["check.sh".into(), "tests/\u{1b}[2J".into()];
        assert_eq!(
            protected_sentence(&state).as_deref(),
            Some("2 protected files have changed since the run began: check.sh, tests/\\u{1b}[2J")
        );
        state.outcomes.changed_protected = (10..60).map(|number| format!("t/{number}")).collect();
        let sentence = protected_sentence(&state).unwrap_or_default();
        assert!(sentence.starts_with("at least 50 protected files"), "{sentence}");
        assert!(sentence.ends_with(": t/10, t/11, t/12, t/13, t/14 and 45 more"), "{sentence}");
    }

    #[test]
    fn changed_files_are_named_with_the_size_of_the_change_and_the_command_that_shows_it() {
        let mut state = RunState::default();
        assert_eq!((sentence(&state), command(&state)), (None, None));
        state.at_start.head = Some("0123456789abcdef".into());
        state.outcomes.changed_checks = vec![
            ChangedCheck { path: "tests/a b.py".into(), added: 3, removed: 10, is_deleted: false },
            ChangedCheck { path: "check.sh".into(), added: 0, removed: 1, is_deleted: true },
        ];
        assert_eq!(
            sentence(&state).as_deref(),
            Some(
                "2 files that check the work changed in this run: tests/a b.py (+3 -10), check.sh (deleted, 1 line)"
            )
        );
        assert_eq!(command(&state).as_deref(), Some("git diff 0123456 -- 'tests/a b.py' check.sh"));
        state.outcomes.changed_checks.truncate(1);
        assert!(sentence(&state).is_some_and(|words| words.starts_with("1 file that checks the work")));
        state.outcomes.changed_checks = vec![ChangedCheck::default(); 8];
        assert!(sentence(&state).is_some_and(|words| words.ends_with(" and 3 more")));
    }
}
