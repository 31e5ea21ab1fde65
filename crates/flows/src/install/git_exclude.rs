//! Our run files kept out of git's sight, in `.git/info/exclude`: agents run `git add -A`, and later `stash`,
//! `reset --hard` or `clean`.
//!
//! Our lines are in one block at the head of the file: so nothing else changes, not even a missing last
//! line end, and a rule of the user's below still wins.

use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{StoreError, layout};
use std::path::{Path, PathBuf};

const OPENING: &[u8] = b"# plimsoll";
const CLOSING: &[u8] = b"# plimsoll end";

/// What a run writes into a project and must not be committed.
pub const RUN_FILES: &[&str] = &[
    ".claude/ralph-state.json",
    ".claude/ralph-state.json.lock",
    ".claude/handoffs/",
    ".claude/plimsoll/",
    ".claude/*.plimsoll-backup",
    ".claude/.*.plimsoll-draft",
    "/.*.plimsoll-draft",
];

/// The slash commands of one user in a project: they name a program by its path on this user's machine.
pub(crate) const SLASH_COMMANDS: [&str; 2] = [".claude/commands/ralph.md", ".claude/commands/handoff.md"];

/// What became of the exclude file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Excluded {
    /// Our lines were (or would be) written into this file.
    Written(PathBuf),
    /// They were there already.
    Already(PathBuf),
    /// The project is not in a git repository.
    NoRepository,
}

/// Lists the run files, and `extra` paths of the project, in the exclude file of the project's repository.
/// Lines that are there stay; a lost race with another session costs a line until the next call.
pub fn exclude_run_files(project: &Path, extra: &[&str]) -> Result<Excluded, StoreError> {
    let Some(place) = place_of(project) else { return Ok(Excluded::NoRepository) };
    let before = disk::read(&place.file)?.unwrap_or_default();
    let after = place.with_ours(&before, extra);
    if after == before {
        return Ok(Excluded::Already(place.file));
    }
    disk::sweep_drafts_of(&place.file);
    disk::replace(&place.file, &after, Durability::Lazy)?;
    Ok(Excluded::Written(place.file))
}

/// The exclude file that git reads for a project, and where the project is in the working tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExcludeFile {
    pub(crate) file: PathBuf,
    /// Empty, or the project's path below the working tree with a slash at its end.
    prefix: String,
}

/// Looks for the repository upwards, as git does; follows the `.git` file of a worktree or a submodule to a git folder,
/// and to nothing else.
pub(crate) fn place_of(project: &Path) -> Option<ExcludeFile> {
    let (tree, directory) = layout::repository(project)?;
    // A folder of that name that git has not made, or not yet.
    if !disk::exists(&directory.join("HEAD")) {
        return None;
    }
    let common = layout::common_folder(&directory)?;
    let below = project.strip_prefix(tree).ok()?;
    let prefix = below.iter().map(|name| format!("{}/", escaped(&name.to_string_lossy()))).collect();
    Some(ExcludeFile { file: common.join("info/exclude"), prefix })
}

/// The project's own ignore rules, which everybody has.
pub(crate) fn gitignore_of(project: &Path) -> ExcludeFile {
    ExcludeFile { file: project.join(".gitignore"), prefix: String::new() }
}

/// A folder's name, escaped for a git pattern.
fn escaped(name: &str) -> String {
    let special = |letter: char| matches!(letter, '\\' | '*' | '?' | '[');
    name.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

impl ExcludeFile {
    /// The file with our lines in it.
    pub(crate) fn with_ours(&self, text: &[u8], extra: &[&str]) -> Vec<u8> {
        let Block { before, lines, after } = Block::find(text);
        let mut lines = lines;
        for path in RUN_FILES.iter().chain(extra) {
            let line = self.line(path).into_bytes();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Block { before, lines, after }.render()
    }

    /// The file without our lines for these paths.
    pub(crate) fn without_lines(&self, text: &[u8], paths: &[&str]) -> Vec<u8> {
        let mut block = Block::find(text);
        let lines: Vec<Vec<u8>> = paths.iter().map(|path| self.line(path).into_bytes()).collect();
        block.lines.retain(|line| !lines.contains(line));
        block.render()
    }

    /// The file without the lines of this project: at the root of the working tree, without any of ours.
    pub(crate) fn without_ours(&self, text: &[u8]) -> Vec<u8> {
        let mut block = Block::find(text);
        let own = format!("/{}", self.prefix);
        block.lines.retain(|line| !self.prefix.is_empty() && !line.starts_with(own.as_bytes()));
        block.render()
    }

    /// A pattern without a slash before its end would match in every folder: it gets one in front.
    fn line(&self, path: &str) -> String {
        let anchored = path.trim_end_matches('/').contains('/');
        if self.prefix.is_empty() && anchored { path.to_owned() } else { format!("/{}{path}", self.prefix) }
    }
}

/// The file cut at our block, which is empty and at the head where there is none.
struct Block<'t> {
    before: &'t [u8],
    lines: Vec<Vec<u8>>,
    after: &'t [u8],
}

impl<'t> Block<'t> {
    fn find(text: &'t [u8]) -> Block<'t> {
        let mut start = None;
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let (from, word) = (at, line.trim_ascii_end());
            at += line.len();
            match start {
                _ if word == OPENING => start = Some((from, at)),
                Some((opening, inside)) if word == CLOSING => {
                    let lines = text[inside..from].split(|byte| *byte == b'\n');
                    let lines =
                        lines.map(|line| line.trim_ascii_end().to_vec()).filter(|line| !line.is_empty());
                    return Block { before: &text[..opening], lines: lines.collect(), after: &text[at..] };
                }
                _ => {}
            }
        }
        Block { before: &[], lines: Vec::new(), after: text }
    }

    fn render(&self) -> Vec<u8> {
        let mut text = self.before.to_vec();
        if !self.lines.is_empty() {
            let lines = self.lines.iter().map(Vec::as_slice);
            for line in std::iter::once(OPENING).chain(lines).chain([CLOSING]) {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
        text.extend_from_slice(self.after);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(prefix: &str) -> ExcludeFile {
        ExcludeFile { file: PathBuf::new(), prefix: prefix.to_owned() }
    }

    #[test]
    fn the_rest_of_the_file_keeps_its_bytes() {
        for text in
            ["", "*.log", "*.log\n", "# git\r\n\r\n*.log\r\n", "a\n\n\nb", "\u{e9}\n# plimsoll\nstray\n"]
        {
            for place in [place(""), place("sub/")] {
                let with = place.with_ours(text.as_bytes(), &["PROMPT.md"]);
                assert_eq!(place.with_ours(&with, &[]), with, "twice is a no-op");
                assert_eq!(place.without_ours(&with), text.as_bytes(), "{text:?}");
                assert_eq!(place.without_ours(text.as_bytes()), text.as_bytes());
            }
        }
        let not_utf8 = b"\xff\xfe*\n";
        assert_eq!(place("").without_ours(&place("").with_ours(not_utf8, &[])), not_utf8);
    }

    #[test]
    fn a_block_that_was_moved_is_kept_where_it_is() {
        let text = b"mine\n# plimsoll\n.claude/plimsoll/\n# plimsoll end\ntheirs";
        let with = String::from_utf8(place("").with_ours(text, &["PROMPT.md"])).unwrap();
        assert!(with.starts_with("mine\n# plimsoll\n.claude/plimsoll/\n"), "{with}");
        assert!(with.ends_with("\n/PROMPT.md\n# plimsoll end\ntheirs"), "{with}");
        assert_eq!(place("").without_ours(with.as_bytes()), b"mine\ntheirs");
    }

    #[test]
    fn single_lines_of_ours_are_removed_and_no_others() {
        let both = [place(""), place("sub/")]
            .iter()
            .fold(b"x\n".to_vec(), |text, place| place.with_ours(&text, &SLASH_COMMANDS));
        let rest = String::from_utf8(place("sub/").without_lines(&both, &SLASH_COMMANDS)).unwrap();
        assert!(!rest.contains("sub/.claude/commands") && rest.contains("sub/.claude/plimsoll/"), "{rest}");
        assert!(rest.contains("\n.claude/commands/ralph.md\n") && rest.ends_with("\nx\n"), "{rest}");
    }

    #[test]
    fn projects_of_one_repository_share_the_block() {
        let both = place("b[1]/").with_ours(&place("a/").with_ours(b"x\n", &[]), &[]);
        assert_eq!(place("b[1]/").without_ours(&both), place("a/").with_ours(b"x\n", &[]));
        assert_eq!(place("").without_ours(&both), b"x\n");
    }

    #[test]
    fn a_folder_name_is_never_taken_for_a_pattern() {
        assert_eq!(escaped("a[b]*?\\"), "a\\[b]\\*\\?\\\\");
    }
}
