//! Lines in `.git/info/exclude` and `.gitignore` that hide our run files from git, because agents run
//! `git add -A`, and later `stash`, `reset --hard` or `clean`.
//!
//! Our lines form one block at the top of the file. The other bytes do not change, not even a missing final
//! newline, and a later rule of the user takes precedence.

use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{StoreError, layout};
use std::path::{Path, PathBuf};

const BLOCK_START: &[u8] = b"# plimsoll";
const BLOCK_END: &[u8] = b"# plimsoll end";

/// Files that a run writes into a project and that must not be committed.
pub const RUN_FILES: &[&str] = &[
    ".claude/ralph-state.json",
    ".claude/ralph-state.json.lock",
    ".claude/handoffs/",
    ".claude/plimsoll/",
    ".claude/*.plimsoll-backup",
    ".claude/.*.plimsoll-draft",
    "/.*.plimsoll-draft",
];

/// One user's slash commands in a project. They name a program by its path on this user's machine, so they
/// must not be committed.
pub(crate) const SLASH_COMMAND_PATHS: [&str; 2] =
    [".claude/commands/ralph.md", ".claude/commands/handoff.md"];

/// The change that a plan or a call makes to an exclude file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExcludeOutcome {
    /// Our lines were (or would be) written into this file.
    Written(PathBuf),
    /// Our lines were already in this file.
    UpToDate(PathBuf),
    NoRepository,
}

/// Adds the run files and `extra_paths` to the exclude file of the project's repository. Existing lines are
/// kept. If another session writes at the same time, a line may be missing until the next call.
pub fn add_run_files_to_git_exclude(
    project: &Path,
    extra_paths: &[&str],
) -> Result<ExcludeOutcome, StoreError> {
    let Some(exclude_file) = find_exclude_file(project) else { return Ok(ExcludeOutcome::NoRepository) };
    let current_bytes = disk::read(&exclude_file.path)?.unwrap_or_default();
    let new_bytes = exclude_file.with_our_lines(&current_bytes, extra_paths);
    if new_bytes == current_bytes {
        return Ok(ExcludeOutcome::UpToDate(exclude_file.path));
    }
    disk::remove_leftover_temporary_files_of(&exclude_file.path);
    disk::replace(&exclude_file.path, &new_bytes, Durability::Lazy)?;
    Ok(ExcludeOutcome::Written(exclude_file.path))
}

/// An exclude file or `.gitignore` of a project, and the project's position in the working tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IgnoreFile {
    pub(crate) path: PathBuf,
    /// The project's path below the working tree with a final slash; empty at its root.
    project_prefix: String,
}

/// Finds the exclude file of the repository that contains the project, searching the parent folders as git
/// does. Follows the `.git` file of a worktree or submodule only to a git folder.
pub(crate) fn find_exclude_file(project: &Path) -> Option<IgnoreFile> {
    let (worktree, git_folder) = layout::find_repository(project)?;
    // Without `HEAD`, git has not created this `.git` folder, or not completely.
    if !disk::exists(&git_folder.join("HEAD")) {
        return None;
    }
    let shared_git_folder = layout::shared_git_folder(&git_folder)?;
    let path_in_worktree = project.strip_prefix(worktree).ok()?;
    let project_prefix = path_in_worktree
        .iter()
        .map(|name| format!("{}/", escape_for_git_pattern(&name.to_string_lossy())))
        .collect();
    Some(IgnoreFile { path: shared_git_folder.join("info/exclude"), project_prefix })
}

/// Returns the project's `.gitignore`, which is shared with the team.
pub(crate) fn gitignore_file(project: &Path) -> IgnoreFile {
    IgnoreFile { path: project.join(".gitignore"), project_prefix: String::new() }
}

fn escape_for_git_pattern(name: &str) -> String {
    let is_special = |character: char| matches!(character, '\\' | '*' | '?' | '[');
    name.chars()
        .flat_map(|character| is_special(character).then_some('\\').into_iter().chain([character]))
        .collect()
}

impl IgnoreFile {
    /// Returns the file's content with our lines for the run files and `extra_paths` added to our block.
    pub(crate) fn with_our_lines(&self, text: &[u8], extra_paths: &[&str]) -> Vec<u8> {
        let ParsedIgnoreText { text_before_block: before, our_lines: lines, text_after_block: after } =
            ParsedIgnoreText::parse(text);
        let mut lines = lines;
        for path in RUN_FILES.iter().chain(extra_paths) {
            let line = self.anchored_pattern_for_path(path).into_bytes();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        ParsedIgnoreText { text_before_block: before, our_lines: lines, text_after_block: after }.render()
    }

    /// Returns the file's content without the lines of our block for these paths.
    pub(crate) fn without_lines_for_paths(&self, text: &[u8], paths: &[&str]) -> Vec<u8> {
        let mut parsed_text = ParsedIgnoreText::parse(text);
        let lines: Vec<Vec<u8>> =
            paths.iter().map(|path| self.anchored_pattern_for_path(path).into_bytes()).collect();
        parsed_text.our_lines.retain(|line| !lines.contains(line));
        parsed_text.render()
    }

    /// Returns the file's content without this project's lines in our block. For a project at the root of the
    /// working tree, removes all lines of our block.
    pub(crate) fn without_project_lines_or_all_at_root(&self, text: &[u8]) -> Vec<u8> {
        let mut parsed_text = ParsedIgnoreText::parse(text);
        let project_pattern_prefix = format!("/{}", self.project_prefix);
        parsed_text.our_lines.retain(|line| {
            !self.project_prefix.is_empty() && !line.starts_with(project_pattern_prefix.as_bytes())
        });
        parsed_text.render()
    }

    /// Returns the git pattern for a path in the project. A pattern without an inner slash would match in
    /// every folder, so it is anchored with a leading slash.
    fn anchored_pattern_for_path(&self, path: &str) -> String {
        let has_inner_slash = path.trim_end_matches('/').contains('/');
        if self.project_prefix.is_empty() && has_inner_slash {
            path.to_owned()
        } else {
            format!("/{}{path}", self.project_prefix)
        }
    }
}

/// The text of an ignore file, split at our block. Without a block, all of it is in `text_after_block`.
struct ParsedIgnoreText<'t> {
    text_before_block: &'t [u8],
    our_lines: Vec<Vec<u8>>,
    text_after_block: &'t [u8],
}

impl<'t> ParsedIgnoreText<'t> {
    fn parse(text: &'t [u8]) -> ParsedIgnoreText<'t> {
        let mut block_position = None;
        let mut offset = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let (line_start, trimmed_line) = (offset, line.trim_ascii_end());
            offset += line.len();
            match block_position {
                _ if trimmed_line == BLOCK_START => block_position = Some((line_start, offset)),
                Some((block_start, lines_start)) if trimmed_line == BLOCK_END => {
                    let lines = text[lines_start..line_start].split(|byte| *byte == b'\n');
                    let lines =
                        lines.map(|line| line.trim_ascii_end().to_vec()).filter(|line| !line.is_empty());
                    return ParsedIgnoreText {
                        text_before_block: &text[..block_start],
                        our_lines: lines.collect(),
                        text_after_block: &text[offset..],
                    };
                }
                _ => {}
            }
        }
        ParsedIgnoreText { text_before_block: &[], our_lines: Vec::new(), text_after_block: text }
    }

    fn render(&self) -> Vec<u8> {
        let mut text = self.text_before_block.to_vec();
        if !self.our_lines.is_empty() {
            let lines = self.our_lines.iter().map(Vec::as_slice);
            for line in std::iter::once(BLOCK_START).chain(lines).chain([BLOCK_END]) {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
        text.extend_from_slice(self.text_after_block);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with_prefix(prefix: &str) -> IgnoreFile {
        IgnoreFile { path: PathBuf::new(), project_prefix: prefix.to_owned() }
    }

    #[test]
    fn the_rest_of_the_file_keeps_its_bytes() {
        for text in
            ["", "*.log", "*.log\n", "# git\r\n\r\n*.log\r\n", "a\n\n\nb", "\u{e9}\n# plimsoll\nstray\n"]
        {
            for exclude_file in [file_with_prefix(""), file_with_prefix("sub/")] {
                let with_lines = exclude_file.with_our_lines(text.as_bytes(), &["PROMPT.md"]);
                assert_eq!(exclude_file.with_our_lines(&with_lines, &[]), with_lines, "twice is a no-op");
                assert_eq!(
                    exclude_file.without_project_lines_or_all_at_root(&with_lines),
                    text.as_bytes(),
                    "{text:?}"
                );
                assert_eq!(
                    exclude_file.without_project_lines_or_all_at_root(text.as_bytes()),
                    text.as_bytes()
                );
            }
        }
        let not_utf8 = b"\xff\xfe*\n";
        assert_eq!(
            file_with_prefix("")
                .without_project_lines_or_all_at_root(&file_with_prefix("").with_our_lines(not_utf8, &[])),
            not_utf8
        );
    }

    #[test]
    fn a_moved_block_stays_where_it_is() {
        let text = b"mine\n# plimsoll\n.claude/plimsoll/\n# plimsoll end\ntheirs";
        let with_lines =
            String::from_utf8(file_with_prefix("").with_our_lines(text, &["PROMPT.md"])).unwrap();
        assert!(with_lines.starts_with("mine\n# plimsoll\n.claude/plimsoll/\n"), "{with_lines}");
        assert!(with_lines.ends_with("\n/PROMPT.md\n# plimsoll end\ntheirs"), "{with_lines}");
        assert_eq!(
            file_with_prefix("").without_project_lines_or_all_at_root(with_lines.as_bytes()),
            b"mine\ntheirs"
        );
    }

    #[test]
    fn only_our_lines_for_the_given_paths_are_removed() {
        let shared_text = [file_with_prefix(""), file_with_prefix("sub/")]
            .iter()
            .fold(b"x\n".to_vec(), |text, exclude_file| {
                exclude_file.with_our_lines(&text, &SLASH_COMMAND_PATHS)
            });
        let remaining_text = String::from_utf8(
            file_with_prefix("sub/").without_lines_for_paths(&shared_text, &SLASH_COMMAND_PATHS),
        )
        .unwrap();
        assert!(
            !remaining_text.contains("sub/.claude/commands")
                && remaining_text.contains("sub/.claude/plimsoll/"),
            "{remaining_text}"
        );
        assert!(
            remaining_text.contains("\n.claude/commands/ralph.md\n") && remaining_text.ends_with("\nx\n"),
            "{remaining_text}"
        );
    }

    #[test]
    fn projects_of_one_repository_share_the_block() {
        let shared_text = file_with_prefix("b[1]/")
            .with_our_lines(&file_with_prefix("a/").with_our_lines(b"x\n", &[]), &[]);
        assert_eq!(
            file_with_prefix("b[1]/").without_project_lines_or_all_at_root(&shared_text),
            file_with_prefix("a/").with_our_lines(b"x\n", &[])
        );
        assert_eq!(file_with_prefix("").without_project_lines_or_all_at_root(&shared_text), b"x\n");
    }

    #[test]
    fn folder_names_are_escaped_in_patterns() {
        assert_eq!(escape_for_git_pattern("a[b]*?\\"), "a\\[b]\\*\\?\\\\");
    }
}
