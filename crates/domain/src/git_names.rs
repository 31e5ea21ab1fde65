//! What git is told by name: commits and branches. A value from a file or a database is parsed into these where it is read, so
//! that git never takes it for an option, a path or another revision.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The full id of a commit: 40 hexadecimal digits (SHA-1) or 64 (SHA-256).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

/// Text that is no full id of a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a commit id", crate::text::one_line(&crate::text::clip(.0, 80)))]
pub struct InvalidCommitId(pub String);

impl CommitId {
    /// Parses the id that git prints.
    pub fn parse(text: &str) -> Result<CommitId, InvalidCommitId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_digit) {
            return Ok(CommitId(text.to_owned()));
        }
        Err(InvalidCommitId(text.to_owned()))
    }

    /// The id as git knows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CommitId {
    type Error = InvalidCommitId;

    fn try_from(text: String) -> Result<CommitId, InvalidCommitId> {
        CommitId::parse(&text)
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> String {
        id.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The name of a branch, without `refs/heads/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchName(String);

/// Text that cannot be the name of a branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be the name of a branch (see `git check-ref-format --help`)", crate::text::one_line(&crate::text::clip(.0, 80)))]
pub struct InvalidBranchName(pub String);

impl BranchName {
    /// Parses a name by the rules of `git check-ref-format --branch`.
    pub fn parse(text: &str) -> Result<BranchName, InvalidBranchName> {
        let is_bad_byte = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
        let is_bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
        let is_valid = !text.bytes().any(is_bad_byte)
            && !text.split('/').any(is_bad_part)
            && !text.starts_with('-')
            && !text.ends_with('.')
            && !text.contains("..")
            && !text.contains("@{")
            && !matches!(text, "@" | "HEAD");
        if is_valid { Ok(BranchName(text.to_owned())) } else { Err(InvalidBranchName(text.to_owned())) }
    }

    /// The name as git prints it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `refs/heads/NAME`
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl TryFrom<String> for BranchName {
    type Error = InvalidBranchName;

    fn try_from(text: String) -> Result<BranchName, InvalidBranchName> {
        BranchName::parse(&text)
    }
}

impl From<BranchName> for String {
    fn from(name: BranchName) -> String {
        name.0
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A path of a repository: relative, without `..`, and not into a git folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// Text that is no path of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a path in the repository", crate::text::one_line(&crate::text::clip(.0, 80)))]
pub struct InvalidRepoPath(pub String);

impl RepoPath {
    /// Parses a path with slashes.
    pub fn parse(text: &str) -> Result<RepoPath, InvalidRepoPath> {
        let is_bad_part = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
        if text.contains('\0') || text.split('/').any(is_bad_part) {
            return Err(InvalidRepoPath(text.to_owned()));
        }
        Ok(RepoPath(text.to_owned()))
    }

    /// The path with slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as git takes it behind `--`, whatever characters it has.
    pub fn pathspec(&self) -> String {
        format!(":(literal){}", self.0)
    }
}

impl TryFrom<String> for RepoPath {
    type Error = InvalidRepoPath;

    fn try_from(text: String) -> Result<RepoPath, InvalidRepoPath> {
        RepoPath::parse(&text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> String {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_id_is_a_commit() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(CommitId::parse(id).map(String::from).as_deref(), Ok(id));
        assert!(CommitId::parse(&format!("{id}{}", &id[..24])).is_ok());
        for text in [
            "",
            "HEAD",
            "--output=/victim/x",
            "012345",
            &id.to_uppercase(),
            &format!("{id} "),
            &format!("-{}", &id[1..]),
        ] {
            assert_eq!(CommitId::parse(text), Err(InvalidCommitId(text.to_owned())));
        }
        assert!(serde_json::from_str::<CommitId>("\"--output=x\"").is_err());
    }

    #[test]
    fn only_a_path_that_stays_in_the_repository_is_one() {
        for path in ["fix_plan.md", "a/b c.md", "-x", ":!a", "größer/x", ".github/x"] {
            assert_eq!(RepoPath::parse(path).map(String::from).as_deref(), Ok(path));
        }
        for path in
            ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", ".git/hooks/x", "a/.GIT/x", "a\0b", "a/"]
        {
            assert_eq!(RepoPath::parse(path), Err(InvalidRepoPath(path.to_owned())), "{path:?}");
        }
        assert_eq!(RepoPath::parse(":!a").map(|path| path.pathspec()).as_deref(), Ok(":(literal):!a"));
    }

    #[test]
    fn only_what_git_takes_as_a_branch_is_one() {
        for name in ["night", "night/run-3", "größer", "a@b", "plimsoll-items/a/1/2"] {
            assert_eq!(BranchName::parse(name).map(String::from).as_deref(), Ok(name));
        }
        for name in [
            "", "-x", "--orphan", "a b", "a..b", "a~1", "@{-1}", "@", "HEAD", "a.lock", "a\nb", "a:b", "/a",
            "a/", "a//b", ".a", "a/.b", "a.lock/b", "a.", "a?b", "a[b", "a\\b", "a\u{7f}",
        ] {
            assert_eq!(BranchName::parse(name), Err(InvalidBranchName(name.to_owned())), "{name:?}");
        }
    }
}
