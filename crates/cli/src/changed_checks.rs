//! Sentences about changed files: files that check the work (such as tests), and protected files.

use plimsoll_domain::RunState;
use plimsoll_domain::changed_check::ChangedCheckFile;
use plimsoll_domain::protected::describe_protected_changes;
use plimsoll_domain::state::short_id;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

const MAX_NAMED_FILES: usize = 5;
const MAX_PATH_CHARS: usize = 120;

/// Returns a sentence that names the changed check files with the size of each change, or `None` if the run changed no such file.
pub(crate) fn changed_check_files_sentence(state: &RunState) -> Option<String> {
    let changed_files = &state.outcomes.changed_checks;
    let descriptions: Vec<String> =
        changed_files.iter().take(MAX_NAMED_FILES).map(format_path_with_line_counts).collect();
    let remaining_count = changed_files.len().saturating_sub(descriptions.len());
    let remaining_text =
        if remaining_count > 0 { format!(" and {remaining_count} more") } else { String::new() };
    let (count_text, verb) = (
        count_with_noun(changed_files.len(), "file"),
        if changed_files.len() == 1 { "checks" } else { "check" },
    );
    (!changed_files.is_empty()).then(|| {
        format!(
            "{count_text} that {verb} the work changed in this run: {}{remaining_text}",
            descriptions.join(", ")
        )
    })
}

/// Returns a sentence that names the changed protected files, or `None` if none changed.
pub(crate) fn changed_protected_sentence(state: &RunState) -> Option<String> {
    let changes = &state.outcomes.protected_changes;
    (!changes.is_empty()).then(|| describe_protected_changes(changes))
}

/// Returns the `git diff` command that shows the changes of check files since the run began. It names at most five files. Returns
/// `None` if no such file changed, or if the commit at the start of the run was not recorded.
pub(crate) fn git_diff_command_for_changed_check_files(state: &RunState) -> Option<String> {
    let changed_files = &state.outcomes.changed_checks;
    let base_commit = short_id(state.project_at_start.head_commit.as_deref()?);
    let branch = state.options.branch.as_deref().filter(|_| state.options.workers.is_some());
    let command_arguments = ["git", "diff", &base_commit].into_iter().chain(branch).chain(["--"]);
    let paths = changed_files.iter().take(MAX_NAMED_FILES).map(|file| file.path.as_str());
    if changed_files.is_empty() { None } else { shlex::try_join(command_arguments.chain(paths)).ok() }
}

fn format_path_with_line_counts(file: &ChangedCheckFile) -> String {
    let path = truncate_end(&to_safe_single_line(&file.path), MAX_PATH_CHARS);
    if file.is_deleted {
        format!("{path} (deleted, {})", count_with_noun(file.removed_line_count as usize, "line"))
    } else {
        format!("{path} (+{} -{})", file.added_line_count, file.removed_line_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_protected_files_are_named_with_control_characters_escaped() {
        let mut state = RunState::default();
        assert_eq!(changed_protected_sentence(&state), None);
        state.outcomes.protected_changes = vec!["check.sh".into(), "tests/\u{1b}[2J".into()];
        assert_eq!(
            changed_protected_sentence(&state).as_deref(),
            Some("2 protected files have changed since the run began: check.sh, tests/\\u{1b}[2J")
        );
        state.outcomes.protected_changes = (10..60).map(|number| format!("t/{number}")).collect();
        let sentence = changed_protected_sentence(&state).unwrap_or_default();
        assert!(sentence.starts_with("at least 50 protected files"), "{sentence}");
        assert!(sentence.ends_with(": t/10, t/11, t/12, t/13, t/14 and 45 more"), "{sentence}");
    }

    #[test]
    fn changed_checks_are_named_with_their_size_and_the_diff_command() {
        let mut state = RunState::default();
        assert_eq!(
            (changed_check_files_sentence(&state), git_diff_command_for_changed_check_files(&state)),
            (None, None)
        );
        state.project_at_start.head_commit = Some("0123456789abcdef".into());
        state.outcomes.changed_checks = vec![
            ChangedCheckFile {
                path: "tests/a b.py".into(),
                added_line_count: 3,
                removed_line_count: 10,
                is_deleted: false,
            },
            ChangedCheckFile {
                path: "check.sh".into(),
                added_line_count: 0,
                removed_line_count: 1,
                is_deleted: true,
            },
        ];
        assert_eq!(
            changed_check_files_sentence(&state).as_deref(),
            Some(
                "2 files that check the work changed in this run: tests/a b.py (+3 -10), check.sh (deleted, 1 line)"
            )
        );
        assert_eq!(
            git_diff_command_for_changed_check_files(&state).as_deref(),
            Some("git diff 0123456 -- 'tests/a b.py' check.sh")
        );
        state.outcomes.changed_checks.truncate(1);
        assert!(
            changed_check_files_sentence(&state)
                .is_some_and(|words| words.starts_with("1 file that checks the work"))
        );
        state.outcomes.changed_checks = vec![ChangedCheckFile::default(); 8];
        assert!(changed_check_files_sentence(&state).is_some_and(|words| words.ends_with(" and 3 more")));
    }
}
