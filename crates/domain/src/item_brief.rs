//! What the run of a single item is told by the run of the whole plan: that it is one of several workers, what its work is
//! verified with, and why earlier work on the item was sent back.

use crate::text::{clip_middle, one_line_of_code};
use serde::{Deserialize, Serialize};

/// The most bytes of a diff or of an output that a brief holds. A session reads the rest in a file.
const MAX_TEXT_BYTES: usize = 3_000;
/// The most bytes of a file's name or of a command.
const MAX_NAME_BYTES: usize = 200;
/// The most files that a prompt names.
const MAX_FILES: usize = 10;

/// What the run of a single item is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemBrief {
    /// The plan that all workers share, relative to the project.
    pub plan: String,
    /// The number of workers on this machine.
    pub worker_count: usize,
    /// The commands that the work is verified with before it is merged.
    pub verify: Vec<String>,
    /// Those of them that do not pass yet without this work.
    pub failing: Vec<String>,
    /// Why earlier work on the item was sent back; none if there was no such work.
    pub returned: Option<ReturnedWork>,
}

/// Earlier work on an item that was sent back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReturnedWork {
    /// Why it was sent back.
    pub reason: ReturnReason,
    /// The commit at which it began.
    pub base: String,
    /// The commit or the branch at which it ended.
    pub end: String,
    /// The files in which it conflicts with what is merged.
    pub files: Vec<String>,
    /// What git, a verify command or the item's own run said.
    pub output: String,
    /// The diff of the work itself.
    pub own_diff: String,
    /// The diff of what others have merged into `files` meanwhile.
    pub merged_diff: String,
}

/// Why work on an item was sent back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
    /// It conflicts with what others have merged meanwhile.
    Conflict,
    /// Put together with what others have merged, a verify command fails.
    FailedCheck,
    /// Git does not take it.
    RefusedByGit,
    /// The item's run ended before the item was done.
    #[default]
    Unfinished,
}

impl ReturnedWork {
    /// Returns the same with diffs and output short enough for a prompt.
    pub fn clipped(&self) -> ReturnedWork {
        let clip = |text: &str| clip_middle(text.trim_end(), MAX_TEXT_BYTES);
        ReturnedWork {
            output: clip(&self.output),
            own_diff: clip(&self.own_diff),
            merged_diff: clip(&self.merged_diff),
            ..self.clone()
        }
    }

    /// Returns the files in which it conflicts, for a sentence.
    pub fn named_files(&self) -> String {
        let quoted = |file: &String| format!("`{}`", one_line_of_code(file, MAX_NAME_BYTES));
        let named: Vec<String> = self.files.iter().take(MAX_FILES).map(quoted).collect();
        let rest = self.files.len().saturating_sub(named.len());
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }

    /// Returns the range of its commits for git, or an empty text where that is unknown.
    pub fn range(&self) -> String {
        // The session is told to use it on a command line.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
        let is_name = |text: &str| !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain);
        if is_name(&self.base) && is_name(&self.end) && self.base != self.end {
            format!("{}..{}", self.base, self.end)
        } else {
            String::new()
        }
    }

    /// Renders everything that is known of it as a Markdown file, for a session to read.
    pub fn render(&self) -> String {
        let what = match self.reason {
            ReturnReason::Conflict => {
                format!("It conflicts with what has been merged meanwhile, in: {}", self.named_files())
            }
            ReturnReason::FailedCheck => {
                "Put together with what others have merged meanwhile, it fails. This worktree has both."
                    .to_owned()
            }
            ReturnReason::RefusedByGit => "Git does not take it.".to_owned(),
            ReturnReason::Unfinished => "The item's run ended before the item was done.".to_owned(),
        };
        let commits = match self.range() {
            range if range.is_empty() => String::new(),
            range => format!("\n\nThe earlier commits on this item: `git log -p {range}`"),
        };
        let sections = [
            ("What was said", &self.output),
            ("The earlier work on this item", &self.own_diff),
            ("What others have merged since it began, in these files", &self.merged_diff),
        ];
        let sections: String = sections
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(title, text)| format!("\n## {title}\n\n{}\n", text.trim_end()))
            .collect();
        format!("# Why this work was not merged\n\n{what}{commits}\n{sections}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_named_only_where_git_takes_it_for_one() {
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
            let work = ReturnedWork { base: base.into(), end: end.into(), ..ReturnedWork::default() };
            assert_eq!(work.range(), expected, "{base} {end}");
        }
    }

    #[test]
    fn a_brief_holds_a_part_of_a_long_diff_and_the_file_all_of_it() {
        let work = ReturnedWork {
            reason: ReturnReason::Conflict,
            files: (0..12).map(|number| format!("src/{number}.rs")).collect(),
            own_diff: "+line\n".repeat(5_000),
            output: "CONFLICT (content)".into(),
            ..ReturnedWork::default()
        };
        assert!(work.clipped().own_diff.len() <= MAX_TEXT_BYTES + 100);
        let file = work.render();
        assert!(file.len() > 25_000 && file.contains("\n## What was said\n\nCONFLICT (content)\n"), "{file}");
        assert!(!file.contains("What others have merged since"), "an empty section is left out");
        assert!(work.named_files().ends_with("`src/9.rs` and 2 more"), "{}", work.named_files());
    }
}
