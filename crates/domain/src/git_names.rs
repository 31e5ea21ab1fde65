//! Commit ids, branch names and repository paths that are passed to git. Values from files or databases are
//! parsed into these types on input, so that git never mistakes them for an option, another path or another
//! revision.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The full id of a commit: 40 hexadecimal digits (SHA-1) or 64 (SHA-256).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

/// An error: the text is not a full commit id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a commit id", crate::text::to_safe_single_line(&crate::text::truncate_end(.0, 80)))]
pub struct InvalidCommitId(pub String);

impl CommitId {
    /// Parses a full commit id, as git prints it.
    pub fn parse(text: &str) -> Result<CommitId, InvalidCommitId> {
        let is_lowercase_hex_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_lowercase_hex_digit) {
            return Ok(CommitId(text.to_owned()));
        }
        Err(InvalidCommitId(text.to_owned()))
    }

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

/// An error: the text is not a valid branch name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be the name of a branch (see `git check-ref-format --help`)", crate::text::to_safe_single_line(&crate::text::truncate_end(.0, 80)))]
pub struct InvalidBranchName(pub String);

impl BranchName {
    /// Parses a name by the rules of `git check-ref-format --branch`.
    pub fn parse(text: &str) -> Result<BranchName, InvalidBranchName> {
        let is_forbidden_byte = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
        let is_invalid_component = |component: &str| {
            component.is_empty() || component.starts_with('.') || component.ends_with(".lock")
        };
        let is_valid = !text.bytes().any(is_forbidden_byte)
            && !text.split('/').any(is_invalid_component)
            && !text.starts_with('-')
            && !text.ends_with('.')
            && !text.contains("..")
            && !text.contains("@{")
            && !matches!(text, "@" | "HEAD");
        if is_valid { Ok(BranchName(text.to_owned())) } else { Err(InvalidBranchName(text.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `refs/heads/NAME`.
    pub fn full_ref_name(&self) -> String {
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

/// A path in a repository: relative, without `..`, and not inside a `.git` folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// An error: the text is not a path in the repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a path in the repository", crate::text::to_safe_single_line(&crate::text::truncate_end(.0, 80)))]
pub struct InvalidRepoPath(pub String);

impl RepoPath {
    /// Parses a path with slashes.
    pub fn parse(text: &str) -> Result<RepoPath, InvalidRepoPath> {
        let is_invalid_component =
            |component: &str| matches!(component, "" | "." | "..") || component.eq_ignore_ascii_case(".git");
        if text.contains('\0') || text.split('/').any(is_invalid_component) {
            return Err(InvalidRepoPath(text.to_owned()));
        }
        Ok(RepoPath(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path as a literal git pathspec, so that no character in it is a pattern.
    pub fn to_literal_pathspec(&self) -> String {
        format!(":(literal){}", self.0)
    }

    /// Returns pathspecs that match all spellings of the path that could be the same file on a volume that ignores
    /// case. They may match more, so the caller compares the results with [`crate::file_names`].
    ///
    /// Git ignores the case of ASCII letters only. Letters of which Unicode has another spelling, and those that it
    /// composes with a mark, are therefore replaced by `*`.
    pub fn to_pathspecs_of_all_spellings(&self) -> Vec<String> {
        let mut pathspecs = vec![format!(":(icase,literal){}", self.0)];
        let mut pattern = String::new();
        let mut chars = self.0.chars().peekable();
        let mut has_wildcard = false;
        while let Some(character) = chars.next() {
            let is_before_other_letter =
                chars.peek().is_some_and(|next| !next.is_ascii()) && character != '/';
            let has_other_spelling = matches!(character, 's' | 'S' | 'k' | 'K') || !character.is_ascii();
            if has_other_spelling || is_before_other_letter {
                pattern.push('*');
                has_wildcard = true;
            } else {
                pattern.extend(matches!(character, '*' | '?' | '[' | '\\').then_some('\\'));
                pattern.push(character);
            }
        }
        if has_wildcard {
            // A pattern with `*` matches a folder, but not the files in it.
            pathspecs.push(format!(":(icase,glob){pattern}"));
            pathspecs.push(format!(":(icase,glob){pattern}/**"));
        }
        pathspecs
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
    fn only_a_full_id_is_a_commit_id() {
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
    fn only_a_path_inside_the_repository_is_a_repo_path() {
        for path in ["fix_plan.md", "a/b c.md", "-x", ":!a", "größer/x", ".github/x"] {
            assert_eq!(RepoPath::parse(path).map(String::from).as_deref(), Ok(path));
        }
        for path in
            ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", ".git/hooks/x", "a/.GIT/x", "a\0b", "a/"]
        {
            assert_eq!(RepoPath::parse(path), Err(InvalidRepoPath(path.to_owned())), "{path:?}");
        }
        assert_eq!(
            RepoPath::parse(":!a").map(|path| path.to_literal_pathspec()).as_deref(),
            Ok(":(literal):!a")
        );
        for (path, pattern) in [
            ("plan.md", None),
            ("a*b/[c]", None),
            ("Makefile", Some("Ma*efile")),
            ("tests/[a]*", Some("te*t*/\\[a]\\*")),
            ("gro\u{308}\u{df}e/x", Some("gr***e/x")),
            ("a/öl", Some("a/*l")),
        ] {
            let pathspecs = RepoPath::parse(path).unwrap().to_pathspecs_of_all_spellings();
            let expected = pattern
                .map(|pattern| [format!(":(icase,glob){pattern}"), format!(":(icase,glob){pattern}/**")]);
            assert_eq!(pathspecs[0], format!(":(icase,literal){path}"));
            assert_eq!(pathspecs[1..], expected.map(Vec::from).unwrap_or_default(), "{path}");
        }
    }

    #[test]
    fn only_a_name_that_git_accepts_is_a_branch_name() {
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
