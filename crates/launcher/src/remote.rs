//! A git remote: branches there are looked up and moved with the user's own credentials. Nothing in the working tree changes, and
//! no hook of the repository runs: what is pushed was committed with them.

use crate::Outcome;
use crate::changes;
use crate::child::{self, Terms};
use crate::git;
use plimsoll_domain::text::{clip, one_line};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// A large push over a slow line; a remote that is not there is known much sooner.
const DEADLINE: Duration = Duration::from_secs(120);
/// How much of git's message is shown.
const LONGEST_REASON: usize = 600;

/// Why a remote did not do something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// The repository knows none of that name.
    #[error("there is no remote `{0}`: name one with --remote (git remote lists them)")]
    NoRemote(String),
    /// It, or git here, says no.
    #[error("git cannot {what} ({remote}): {why}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// The remote's name.
        remote: String,
        /// What was said.
        why: String,
    },
    /// It was ended at its deadline.
    #[error("git took longer than {} seconds to {what} ({remote})", DEADLINE.as_secs())]
    TookTooLong {
        /// What was asked of it.
        what: &'static str,
        /// The remote's name.
        remote: String,
    },
}

/// The address of a remote, as git uses it.
pub fn url(folder: &Path, remote: &str) -> Result<String, RemoteError> {
    let none = || RemoteError::NoRemote(one_line(remote));
    if remote.is_empty() || remote.starts_with('-') {
        return Err(none());
    }
    let outcome = git::git(folder, &["remote", "get-url", remote]);
    Some(git::text(&outcome)).filter(|url| outcome.succeeded() && !url.is_empty()).ok_or_else(none)
}

/// The end of a branch there; none if there is no such branch.
pub fn tip(folder: &Path, remote: &str, branch: &str) -> Result<Option<String>, RemoteError> {
    let name = reference(branch);
    let answer = ask(folder, "look up a branch", remote, &["ls-remote", "--quiet", remote, &name])?;
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    // The pattern also fits what has the name at its end.
    let found = answer.lines().filter_map(|line| line.split_once('\t')).find(|(_, known)| *known == name);
    Ok(found.map(|(commit, _)| commit.to_owned()))
}

/// The branches there whose names begin so.
pub fn branches_below(folder: &Path, remote: &str, start: &str) -> Result<Vec<String>, RemoteError> {
    let pattern = format!("refs/heads/{start}*");
    let answer = ask(folder, "look up branches", remote, &["ls-remote", "--quiet", remote, &pattern])?;
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    let names = answer.lines().filter_map(|line| line.split_once("\trefs/heads/"));
    Ok(names.map(|(_, name)| name.to_owned()).filter(|name| name.starts_with(start)).collect())
}

/// Gets the commits of a branch there. No branch here moves.
pub fn fetch(folder: &Path, remote: &str, branch: &str) -> Result<(), RemoteError> {
    let name = reference(branch);
    let arguments = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", remote, &name];
    ask(folder, "fetch a branch", remote, &arguments).map(drop)
}

/// Moves a branch there to a commit, if it is where it was seen; creates it if it was not there.
pub fn push(
    folder: &Path,
    remote: &str,
    branch: &str,
    from: Option<&str>,
    to: &str,
) -> Result<(), RemoteError> {
    let lease = format!("--force-with-lease={}:{}", reference(branch), from.unwrap_or_default());
    let what = format!("{to}:{}", reference(branch));
    ask(folder, "push a branch", remote, &[&PUSH[..], &[&lease, remote, &what]].concat()).map(drop)
}

/// Goes as far as a push of a commit as a new branch would, and pushes nothing. What the other side's hooks say is not known then.
pub fn may_push(folder: &Path, remote: &str, branch: &str, commit: &str) -> Result<(), RemoteError> {
    let what = format!("{commit}:{}", reference(branch));
    ask(folder, "push a branch", remote, &[&PUSH[..], &["--dry-run", remote, &what]].concat()).map(drop)
}

const PUSH: [&str; 5] = ["push", "--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"];

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn ask(folder: &Path, what: &'static str, remote: &str, arguments: &[&str]) -> Result<Outcome, RemoteError> {
    url(folder, remote)?;
    let outcome = child::run(git::reaching(folder, arguments), Terms::within(DEADLINE));
    let remote = remote.to_owned();
    match () {
        () if outcome.succeeded() => Ok(outcome),
        () if outcome.timed_out => Err(RemoteError::TookTooLong { what, remote }),
        () => Err(RemoteError::Refused { what, remote, why: said(&outcome) }),
    }
}

/// What git said, in a line and without what stands in an address before `@`.
fn said(outcome: &Outcome) -> String {
    let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let words = if errors.trim().is_empty() { changes::last_words(outcome) } else { errors };
    let words: Vec<String> = words.split_whitespace().map(without_credentials).collect();
    clip(&one_line(&words.join(" ")), LONGEST_REASON)
}

/// The address of a remote without what lets somebody in. A name before the host alone may be a token for the web, and is no secret
/// for ssh.
pub fn without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = user.split(':').next().unwrap_or_default();
    let is_ssh = scheme.trim_start_matches(['\'', '"', '(']).ends_with("ssh");
    let user = if is_ssh && !user.is_empty() { format!("{user}@") } else { String::new() };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{user}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_without_what_lets_somebody_in() {
        for (address, expected) in [
            ("https://ann:hunter2@example.com/x.git", "https://example.com/x.git"),
            ("https://ghp_hunter2@example.com/x.git", "https://example.com/x.git"),
            ("https://x-access-token:hunter2@example.com:8443/x", "https://example.com:8443/x"),
            ("https://ann:hun@ter2@example.com/x", "https://example.com/x"),
            ("https://example.com/x?token=hunter2", "https://example.com/x"),
            ("https://hunter2@example.com", "https://example.com"),
            ("ssh://git@example.com:22/x.git", "ssh://git@example.com:22/x.git"),
            ("ssh://git:hunter2@example.com/x.git", "ssh://git@example.com/x.git"),
            ("git@example.com:x.git", "git@example.com:x.git"),
            ("/srv/x.git", "/srv/x.git"),
            ("file:///srv/a@b.git", "file:///srv/a@b.git"),
            ("'https://ann:hunter2@example.com/x/':", "'https://example.com/x/':"),
        ] {
            assert_eq!(without_credentials(address), expected);
        }
    }

    fn git(folder: &Path, line: &str) {
        let name = "-c user.name=Test -c user.email=t@example.invalid -c init.defaultBranch=main";
        let outcome = crate::shell(&format!("git {name} {line}"), folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {outcome:?}");
    }

    #[test]
    fn a_branch_there_moves_only_from_where_it_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), "init -q --bare there.git");
        git(folder.path(), "init -q here");
        let here = folder.path().join("here");
        git(&here, "commit -q --allow-empty -m First");
        git(&here, "remote add origin ../there.git");
        let first = git::head(&here).unwrap();
        assert_eq!(tip(&here, "origin", "work"), Ok(None));
        assert_eq!(may_push(&here, "origin", "work", &first), Ok(()));
        assert_eq!(tip(&here, "origin", "work"), Ok(None));
        assert_eq!(push(&here, "origin", "work", None, &first), Ok(()));
        assert_eq!(tip(&here, "origin", "work"), Ok(Some(first.clone())));
        git(&here, "commit -q --allow-empty -m Second");
        let second = git::head(&here).unwrap();
        assert!(matches!(push(&here, "origin", "work", None, &second), Err(RemoteError::Refused { .. })));
        assert_eq!(push(&here, "origin", "work", Some(&first), &second), Ok(()));
        assert!(matches!(
            push(&here, "origin", "work", Some(&first), &first),
            Err(RemoteError::Refused { .. })
        ));
        assert_eq!(push(&here, "origin", "works/1", None, &first), Ok(()));
        assert_eq!(branches_below(&here, "origin", "works/"), Ok(vec!["works/1".to_owned()]));
        assert_eq!(fetch(&here, "origin", "work"), Ok(()));
        for odd in ["none", "-x", ""] {
            assert_eq!(tip(&here, odd, "work"), Err(RemoteError::NoRemote(odd.to_owned())));
        }
        git(&here, "remote add gone ../gone.git");
        assert!(matches!(tip(&here, "gone", "work"), Err(RemoteError::Refused { .. })));
    }
}
