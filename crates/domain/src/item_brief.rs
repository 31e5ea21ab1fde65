//! The brief for the run of a single item, written by the run of the whole plan: the other workers, the
//! verify commands, and why earlier work on the item was sent back.

use crate::text::{to_line_for_backticks, truncate_middle};
use serde::{Deserialize, Serialize};

/// The maximum characters of a diff or an output in a brief. A session can read the complete text in a file.
const MAX_TEXT_CHARS: usize = 3_000;
/// The maximum characters of a file name or a command.
const MAX_NAME_CHARS: usize = 200;
/// The maximum number of files that a prompt names.
const MAX_NAMED_FILES: usize = 10;

/// The brief for the run of a single item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemBrief {
    /// The plan that all workers share, relative to the project.
    #[serde(rename = "plan")]
    pub plan_path: String,
    pub worker_count: usize,
    /// The commands that verify the work before it is merged.
    #[serde(rename = "verify")]
    pub verify_commands: Vec<String>,
    /// The verify commands that already fail without this work.
    #[serde(rename = "failing")]
    pub failing_commands: Vec<String>,
    /// Why earlier work on the item was sent back; `None` if there was none.
    #[serde(rename = "returned")]
    pub returned_work: Option<ReturnedWork>,
}

/// Earlier work on an item that was sent back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReturnedWork {
    #[serde(rename = "reason")]
    pub return_reason: ReturnReason,
    /// The commit on which the work was based.
    #[serde(rename = "base")]
    pub base_commit: String,
    /// The last commit, or the branch, of the work.
    #[serde(rename = "end")]
    pub end_revision: String,
    /// The files in which it conflicts with merged work.
    #[serde(rename = "files")]
    pub conflict_files: Vec<String>,
    /// The output of git, of a verify command, or of the item's own run.
    pub output: String,
    /// The diff of the work itself.
    pub own_diff: String,
    /// The diff of what others have meanwhile merged into `conflict_files`.
    pub merged_diff: String,
}

/// Why work on an item was sent back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
    /// It conflicts with what others have meanwhile merged.
    Conflict,
    /// Combined with what others have merged, a verify command fails.
    FailedCheck,
    /// Git refused the work.
    RefusedByGit,
    /// The item's run ended before the item was done.
    #[default]
    Unfinished,
}

impl ReturnedWork {
    /// Returns a copy with diffs and output shortened for a prompt.
    pub fn clip_for_prompt(&self) -> ReturnedWork {
        let clip = |text: &str| truncate_middle(text.trim_end(), MAX_TEXT_CHARS);
        ReturnedWork {
            output: clip(&self.output),
            own_diff: clip(&self.own_diff),
            merged_diff: clip(&self.merged_diff),
            ..self.clone()
        }
    }

    /// Returns the conflicting files as a comma-separated list for a sentence.
    pub fn list_conflict_files(&self) -> String {
        let quote_name = |file: &String| format!("`{}`", to_line_for_backticks(file, MAX_NAME_CHARS));
        let quoted_names: Vec<String> =
            self.conflict_files.iter().take(MAX_NAMED_FILES).map(quote_name).collect();
        let omitted_count = self.conflict_files.len().saturating_sub(quoted_names.len());
        let omitted_text =
            if omitted_count > 0 { format!(" and {omitted_count} more") } else { String::new() };
        format!("{}{omitted_text}", quoted_names.join(", "))
    }

    /// Returns the commit range for git, or an empty string if it is unknown.
    pub fn safe_commit_range_or_empty(&self) -> String {
        // Only harmless characters, because the session is asked to use the range on a command line.
        let is_safe_character =
            |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
        let is_safe_revision =
            |text: &str| !text.is_empty() && !text.starts_with('-') && text.chars().all(is_safe_character);
        if is_safe_revision(&self.base_commit)
            && is_safe_revision(&self.end_revision)
            && self.base_commit != self.end_revision
        {
            format!("{}..{}", self.base_commit, self.end_revision)
        } else {
            String::new()
        }
    }

    /// Renders the reason, the commit range, the output and both diffs as a Markdown file for the next session.
    pub fn render_return_reason_and_diffs(&self) -> String {
        let reason_text = match self.return_reason {
            ReturnReason::Conflict => {
                format!("It conflicts with changes merged since, in: {}", self.list_conflict_files())
            }
            ReturnReason::FailedCheck => {
                "With the changes merged since, a check fails. This worktree has both.".to_owned()
            }
            ReturnReason::RefusedByGit => "git could not apply it to the merged state.".to_owned(),
            ReturnReason::Unfinished => "The item's run ended before the item was done.".to_owned(),
        };
        let commits_text = match self.safe_commit_range_or_empty() {
            range if range.is_empty() => String::new(),
            range => format!("\n\nThe earlier commits on this item: `git log -p {range}`"),
        };
        let sections = [
            ("Output", &self.output),
            ("The earlier work on this item", &self.own_diff),
            ("Changes merged into these files since it began", &self.merged_diff),
        ];
        let sections: String = sections
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(title, text)| format!("\n## {title}\n\n{}\n", text.trim_end()))
            .collect();
        format!("# Why this work was not merged\n\n{reason_text}{commits_text}\n{sections}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_returned_only_if_git_reads_it_as_one() {
        for (base, end, expected) in [
            ("a1b2", "plimsoll/fix_plan-1/2/1", "a1b2..plimsoll/fix_plan-1/2/1"),
            ("a1b2", "", ""),
            ("", "c3d4", ""),
            ("a1b2", "a1b2", ""),
            ("--output=x", "c3d4", ""),
            ("a1b2", "c3d4`; rm", ""),
            ("a1b2", "c3d4;curl${IFS}x|sh", ""),
            ("a1 b2", "c3d4", ""),
        ] {
            let work = ReturnedWork {
                base_commit: base.into(),
                end_revision: end.into(),
                ..ReturnedWork::default()
            };
            assert_eq!(work.safe_commit_range_or_empty(), expected, "{base} {end}");
        }
    }

    #[test]
    fn a_brief_has_a_part_of_a_long_diff_and_the_file_all_of_it() {
        let work = ReturnedWork {
            return_reason: ReturnReason::Conflict,
            conflict_files: (0..12).map(|number| format!("src/{number}.rs")).collect(),
            own_diff: "+line\n".repeat(5_000),
            output: "CONFLICT (content)".into(),
            ..ReturnedWork::default()
        };
        assert!(work.clip_for_prompt().own_diff.len() <= MAX_TEXT_CHARS + 100);
        let file = work.render_return_reason_and_diffs();
        assert!(file.len() > 25_000 && file.contains("\n## Output\n\nCONFLICT (content)\n"), "{file}");
        assert!(!file.contains("What others have merged since"), "an empty section is left out");
        assert!(
            work.list_conflict_files().ends_with("`src/9.rs` and 2 more"),
            "{}",
            work.list_conflict_files()
        );
    }
}
