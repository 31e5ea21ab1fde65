//! A git remote by which several machines share their work: what is fetched and what is pushed, and nothing else.
//!
//! An agent can write the settings of the clone that it works in, and many of git's name programs: `core.sshCommand`,
//! `remote.NAME.uploadpack`, `credential.helper`, hooks, `url.X.pushInsteadOf` to another place. So a git that speaks to the remote
//! never reads them. It works in a repository of ours ([`OwnRepository`]), among the user's state. The user's own settings and
//! variables hold (credential helpers, ssh, proxies, certificates); what is set in the clone alone does not. The remote's address is
//! read from the clone once, when a machine joins.

use crate::child::{self, Terms};
use crate::git_output;
use crate::own_repository::{OwnRepository, OwnRepositoryError};
use crate::{Outcome, git};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text::{clip, one_line};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// So long may a fetch or a push take.
const DEADLINE: Duration = Duration::from_secs(300);
/// How much of git's words is kept.
const LONGEST_REASON: usize = 500;
/// What git prints if an object does not pass `fsckObjects`: `index-pack` and `unpack-objects`, then `fetch` itself.
const FSCK_ERRORS: [&str; 2] = ["fsck error in ", "fsck failed"];
/// How much of a refused address is shown.
const LONGEST_ADDRESS: usize = 200;

/// Why something did not come about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// The clone names no such remote.
    #[error("the clone has no remote `{0}`: name one of `git remote` with --remote")]
    NoRemote(String),
    /// Our own repository could not be made, or does not have what is asked of it.
    #[error(transparent)]
    Own(#[from] OwnRepositoryError),
    /// A text could not be kept as an object.
    #[error("cannot keep a text in our own repository: {0}")]
    NotKept(String),
    /// An address for which git would start a program of its name, or of a kind that it does not know.
    #[error(
        "the remote's address {0} is none that machines can share: name it by https, http, ssh, git, file or a path with `git remote set-url` (for pushes with --push), or another remote with --remote"
    )]
    UnsupportedAddress(String),
    /// A setting leads to a transport that is not allowed.
    #[error(
        "git may not use the transport `{0}` here: see where `git config --get-regexp 'url.*insteadof'` leads, and what GIT_ALLOW_PROTOCOL names"
    )]
    ForbiddenTransport(String),
    /// It was pushed to meanwhile.
    #[error("it has moved meanwhile")]
    Moved,
    /// It does not take this.
    #[error("the remote rejects it: {0}")]
    Rejected(String),
    /// It has no such branch.
    #[error("the remote has no {0}")]
    Gone(String),
    /// It has objects that git's checks (`fsckObjects`) refuse: somebody pushed them without Plimsoll.
    #[error("the remote has a commit that git's checks refuse, so nothing is taken from there: {0}")]
    Malformed(String),
    /// It cannot be reached, or does not let us in.
    #[error("the remote cannot be reached: {0}")]
    Away(String),
    /// Nobody waits for it any more.
    #[error("it was given up")]
    GivenUp,
}

/// What may stand at a reference of the remote that is pushed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease<'a> {
    /// Anything: it is ours alone.
    Any,
    /// This object.
    At(&'a ObjectId),
    /// Nothing.
    Absent,
}

/// The id of a commit or of a text ([`Remote::keep_text`]).
pub type ObjectId = CommitId;

/// One reference to be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Push<'a> {
    /// What it shall be; none: removed.
    pub object: Option<&'a ObjectId>,
    /// Its whole name.
    pub reference: &'a str,
    /// What it has to be before.
    pub lease: Lease<'a>,
}

/// A remote of a clone.
#[derive(Debug, Clone)]
pub struct Remote {
    own: OwnRepository,
    address: String,
    push_address: String,
}

impl Remote {
    /// The remote of this name; `git_folder` is where our own repository is, or will be.
    pub fn open(repository: &Path, name: &str, git_folder: &Path) -> Result<Remote, RemoteError> {
        let (address, push_address) = addresses(repository, name)?;
        let own = OwnRepository::open(repository, git_folder)?;
        Ok(Remote { own, address, push_address })
    }

    /// The repository of ours that speaks to it.
    pub fn own(&self) -> &OwnRepository {
        &self.own
    }

    /// Its address, without what would let somebody in.
    pub fn address(&self) -> String {
        without_credentials(&self.address)
    }

    /// Fetches what these refspecs name; what a pattern fetched before and the remote has no more is forgotten.
    pub fn fetch(&self, refspecs: &[&str], give_up: &dyn Fn() -> bool) -> Result<(), RemoteError> {
        // As for commits of the clone (`OwnRepository::take`): what another machine pushed is verified and merged here.
        let options = [
            "-c",
            "fetch.fsckObjects=true",
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            &self.address,
        ];
        let outcome = self.talk(&[&options[..], refspecs].concat(), give_up);
        if outcome.succeeded() {
            return Ok(());
        }
        if let Some(error) = forbidden_transport(&outcome) {
            return Err(error);
        }
        let words = String::from_utf8_lossy(&outcome.stderr).into_owned();
        match words.split_once("couldn't find remote ref ") {
            _ if outcome.given_up => Err(RemoteError::GivenUp),
            _ if FSCK_ERRORS.iter().any(|error| words.contains(error)) => {
                Err(RemoteError::Malformed(said(&outcome)))
            }
            Some((_, name)) => {
                Err(RemoteError::Gone(name.lines().next().unwrap_or_default().trim().to_owned()))
            }
            None => Err(RemoteError::Away(said(&outcome))),
        }
    }

    /// Pushes these references: all of them, or none if the remote can do that.
    pub fn push(&self, pushes: &[Push<'_>], give_up: &dyn Fn() -> bool) -> Result<(), RemoteError> {
        let leases = pushes.iter().filter_map(|push| match push.lease {
            Lease::Any => None,
            Lease::At(commit) => Some(format!("--force-with-lease={}:{commit}", push.reference)),
            Lease::Absent => Some(format!("--force-with-lease={}:", push.reference)),
        });
        let options = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"];
        let options = options.into_iter().map(str::to_owned).chain(leases);
        let refspec = |push: &Push<'_>| {
            let force = if push.lease == Lease::Any { "+" } else { "" };
            format!("{force}{}:{}", push.object.map_or("", ObjectId::as_str), push.reference)
        };
        let target = ["--".to_owned(), self.push_address.clone()];
        let arguments: Vec<String> = options.chain(target).chain(pushes.iter().map(refspec)).collect();
        let outcome = self.talk(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), give_up);
        if outcome.succeeded() {
            return Ok(());
        }
        if outcome.given_up {
            return Err(RemoteError::GivenUp);
        }
        Err(why_not_pushed(&outcome))
    }

    /// Goes as far as a push would, and pushes nothing. What the other side's hooks would say is not known then.
    pub fn may_push(&self, push: Push<'_>) -> Result<(), RemoteError> {
        let refspec = format!("+{}:{}", push.object.map_or("", ObjectId::as_str), push.reference);
        let options =
            ["push", "--dry-run", "--porcelain", "--no-verify", "--no-signed", "--", &self.push_address];
        let outcome = self.talk(&[&options[..], &[&refspec]].concat(), &|| false);
        if outcome.succeeded() { Ok(()) } else { Err(why_not_pushed(&outcome)) }
    }

    /// What a reference of our own repository is.
    pub fn seen(&self, reference: &str) -> Option<ObjectId> {
        let outcome = self.ask(&["rev-parse", "--verify", "--quiet", reference], None);
        outcome.succeeded().then(|| ObjectId::parse(&git::text(&outcome)).ok()).flatten()
    }

    /// The references of our own repository below a name, each with what it is.
    pub fn below(&self, name: &str) -> Vec<(String, ObjectId)> {
        let outcome = self.ask(&["for-each-ref", "--format=%(refname) %(objectname)", name], None);
        let listed = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let pair = |line: &str| {
            let (name, id) = line.split_once(' ')?;
            Some((name.to_owned(), ObjectId::parse(id).ok()?))
        };
        listed.lines().filter_map(pair).collect()
    }

    /// Keeps a text as an object; its id.
    pub fn keep_text(&self, text: &str) -> Result<ObjectId, RemoteError> {
        let outcome = self.ask(&["hash-object", "-w", "--stdin"], Some(text.as_bytes().to_vec()));
        match ObjectId::parse(&git::text(&outcome)) {
            Ok(id) if outcome.succeeded() => Ok(id),
            _ => Err(RemoteError::NotKept(said(&outcome))),
        }
    }

    /// The text of such an object; none if it is none, or is not there.
    pub fn text(&self, id: &ObjectId) -> Option<String> {
        let outcome = self.ask(&["cat-file", "blob", id.as_str()], None);
        outcome.succeeded().then(|| String::from_utf8_lossy(&outcome.stdout).into_owned())
    }

    fn ask(&self, arguments: &[&str], input: Option<Vec<u8>>) -> Outcome {
        self.own.ask_with(arguments, input)
    }

    fn talk(&self, arguments: &[&str], give_up: &dyn Fn() -> bool) -> Outcome {
        let clone = self.own.clone_root();
        let mut command = git::talking(self.own.git_folder(), clone, arguments);
        // It works in the clone, and starts ssh and credential helpers.
        git::search_outside_project(&mut command, clone);
        child::run(command, Terms { give_up, ..Terms::within(DEADLINE) })
    }
}

/// The remote's addresses, to fetch from and to push to.
fn addresses(repository: &Path, name: &str) -> Result<(String, String), RemoteError> {
    let none = || RemoteError::NoRemote(name.to_owned());
    if name.starts_with('-') {
        return Err(none());
    }
    let ask = |arguments: &[&str]| {
        let outcome = git::git(repository, arguments);
        let address = git::text(&outcome);
        (outcome.succeeded() && !address.is_empty()).then_some(address).ok_or_else(none)
    };
    let fetches = check_address(ask(&["remote", "get-url", name])?)?;
    Ok((fetches, check_address(ask(&["remote", "get-url", "--push", name])?)?))
}

/// The schemes of the addresses that git itself speaks. For every other one, and for `NAME::ADDRESS`, it starts
/// `git-remote-NAME` from its folder or the PATH, and some of these never end (`git-remote-fd`).
const SCHEMES: [&str; 7] = ["https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"];

/// Refuses addresses for which git would start another program. Paths and `HOST:PATH` have no scheme.
fn check_address(address: String) -> Result<String, RemoteError> {
    let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&letter);
    let (scheme, rest) = address.split_at(address.find(|letter| !is_scheme(letter)).unwrap_or(address.len()));
    let is_supported = !rest.starts_with("::")
        && (!rest.starts_with("://") || SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()));
    if is_supported {
        return Ok(address);
    }
    let shown = match (rest.strip_prefix("::"), rest.contains("://")) {
        // What stands before an `@` may be a password there, too.
        (Some(place), false) => format!("{scheme}::{}", place.rsplit('@').next().unwrap_or_default()),
        _ => without_credentials(&address),
    };
    Err(RemoteError::UnsupportedAddress(clip(&one_line(&shown), LONGEST_ADDRESS)))
}

/// The transport that git was not allowed to use, by its words.
fn forbidden_transport(outcome: &Outcome) -> Option<RemoteError> {
    let words = String::from_utf8_lossy(&outcome.stderr);
    let (_, rest) = words.split_once("transport '")?;
    let (name, _) = rest.split_once("' not allowed")?;
    Some(RemoteError::ForbiddenTransport(clip(&one_line(name), LONGEST_ADDRESS)))
}

/// An address without a user's name and password before the host; a name alone stays.
pub fn without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        // The name of ssh's user belongs to the address. That of a web address may be a token.
        Some((user, host)) if scheme.ends_with("ssh") => {
            format!("{}@{host}", user.split(':').next().unwrap_or_default())
        }
        Some((_, host)) => host.to_owned(),
        None => host.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

/// By what git prints of each reference: `!`, the reference, and the reason in brackets.
fn why_not_pushed(outcome: &Outcome) -> RemoteError {
    if let Some(error) = forbidden_transport(outcome) {
        return error;
    }
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let refused: Vec<&str> = printed.lines().filter(|line| line.starts_with('!')).collect();
    let Some(first) = refused.first() else { return RemoteError::Away(said(outcome)) };
    // The last four are what a server says that was asked by two at the same moment.
    let moved = [
        "stale info",
        "fetch first",
        "non-fast-forward",
        "cannot lock ref",
        "failed to update ref",
        "failed to lock",
        "incorrect old value",
    ];
    if refused.iter().all(|line| moved.iter().any(|words| line.contains(words))) {
        return RemoteError::Moved;
    }
    // What a hook there has printed says more than git's own line.
    let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let told: Vec<&str> =
        errors.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
    let reason = first.rsplit('\t').next().unwrap_or_default();
    let words = format!("{reason} {}", told.join(" "));
    RemoteError::Rejected(clip(&one_line(words.trim()), LONGEST_REASON))
}

fn said(outcome: &Outcome) -> String {
    if outcome.timed_out {
        return format!("git took longer than {} s", DEADLINE.as_secs());
    }
    let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let words = if errors.trim().is_empty() { git_output::last_words(outcome) } else { errors };
    // git names addresses, and a user's name and password may stand in one.
    let words: Vec<String> = words.split_whitespace().map(without_credentials).collect();
    clip(&one_line(&words.join(" ")), LONGEST_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(folder: &Path, line: &str) {
        let outcome = crate::shell(line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {outcome:?}");
    }

    /// A bare repository with a commit on `main`, and a clone of it.
    fn stage() -> (tempfile::TempDir, std::path::PathBuf, Remote) {
        let folder = tempfile::tempdir().unwrap();
        shell(
            folder.path(),
            "git init -q --bare -b main bare.git && git clone -q bare.git clone 2>&1 && cd clone && git checkout -q -b main && \
             git config user.name T && git config user.email t@example.invalid && git commit -q --allow-empty -m First && \
             git push -q origin main",
        );
        let clone = folder.path().join("clone");
        let remote = Remote::open(&clone, "origin", &folder.path().join("state/remote.git")).unwrap();
        (folder, clone, remote)
    }

    fn never() -> bool {
        false
    }

    #[test]
    fn what_one_pushes_another_fetches_and_only_from_where_it_was_seen() {
        let (folder, clone, remote) = stage();
        let first = git::head(&clone).unwrap();
        shell(&clone, "git commit -q --allow-empty -m Second");
        let second = git::head(&clone).unwrap();
        remote.own().take(&second).unwrap();
        let push = |object, lease| Push { object, reference: "refs/heads/plimsoll/night", lease };
        assert_eq!(remote.push(&[push(Some(&first), Lease::Absent)], &never), Ok(()));
        assert_eq!(remote.push(&[push(Some(&second), Lease::Absent)], &never), Err(RemoteError::Moved));
        assert_eq!(remote.push(&[push(Some(&second), Lease::At(&second))], &never), Err(RemoteError::Moved));
        assert_eq!(remote.push(&[push(Some(&second), Lease::At(&first))], &never), Ok(()));
        shell(folder.path(), "git clone -q bare.git other");
        let other = folder.path().join("other");
        let theirs = Remote::open(&other, "origin", &folder.path().join("theirs.git")).unwrap();
        let spec = "+refs/heads/plimsoll/night:refs/plimsoll/night/target";
        assert_eq!(theirs.fetch(&[spec], &never), Ok(()));
        assert_eq!(theirs.seen("refs/plimsoll/night/target"), Some(second.clone()));
        theirs.own().show_in_clone("refs/plimsoll/night/target", &second).unwrap();
        assert!(
            git::is_below_head(&other, &first) && git::commit(&other, "refs/plimsoll/night/target").is_some()
        );
        let gone = theirs.fetch(&["refs/heads/none:refs/none"], &never);
        assert_eq!(gone, Err(RemoteError::Gone("refs/heads/none".to_owned())));
        let text = theirs.keep_text("notes\n").unwrap();
        let note =
            Push { object: Some(&text), reference: "refs/plimsoll/night/1/1/notes", lease: Lease::Any };
        assert_eq!(theirs.push(&[note], &never), Ok(()));
        assert_eq!(remote.fetch(&["+refs/plimsoll/night/*:refs/plimsoll/night/*"], &never), Ok(()));
        let below = remote.below("refs/plimsoll/night");
        assert_eq!(below, [("refs/plimsoll/night/1/1/notes".to_owned(), text.clone())]);
        assert_eq!(remote.text(&text).as_deref(), Some("notes\n"));
        assert_eq!(remote.push(&[Push { object: None, ..note }], &never), Ok(()));
        let again = Remote::open(&clone, "origin", &folder.path().join("state/remote.git")).unwrap();
        assert_eq!(again.fetch(&[spec], &never), Ok(()));
    }

    #[test]
    fn objects_that_do_not_pass_gits_checks_are_not_fetched() {
        for (what, make) in [
            (
                "a submodule's address that is an option",
                "printf '[submodule \"x\"]\\n path = x\\n url = --upload-pack=./evil\\n' > .gitmodules && git add -A && \
                 git commit -qm Evil && git rev-parse HEAD",
            ),
            (
                "a folder with a name that is git's own",
                "printf '040000 tree %s\\t.git\\n' $(git rev-parse 'HEAD^{tree}') | git mktree > tree && \
                 git commit-tree -p HEAD -m Evil $(cat tree)",
            ),
        ] {
            let (_folder, clone, remote) = stage();
            // Another machine pushes without our checks.
            shell(&clone, &format!("evil=$({make}) && git push -q origin $evil:refs/heads/evil"));
            let evil = git::commit(&clone, "refs/remotes/origin/evil").unwrap();
            let fetched = remote.fetch(&["+refs/heads/*:refs/all/*"], &never);
            assert!(matches!(&fetched, Err(RemoteError::Malformed(_))), "{what}: {fetched:?}");
            assert!(!remote.own().has(&evil) && remote.below("refs/all").is_empty(), "{what}");
            shell(&clone, "git push -q origin :evil");
            assert_eq!(remote.fetch(&["+refs/heads/*:refs/all/*"], &never), Ok(()), "{what}");
        }
    }

    #[test]
    fn what_an_agent_sets_in_the_clone_starts_nothing_and_leads_nowhere_else() {
        let (folder, clone, remote) = stage();
        let trap = folder.path().join("trap");
        let program = format!("touch {}; false", trap.display());
        shell(
            &clone,
            &format!(
                "git init -q --bare ../evil.git; for name in core.sshCommand core.gitProxy remote.origin.uploadpack \
                 remote.origin.receivepack core.alternateRefsCommand core.fsmonitor credential.helper; do \
                 git config $name '{program}'; done; git config url.../evil.git.pushInsteadOf ../bare.git; \
                 for name in pre-push reference-transaction; do printf '#!/bin/sh\\n{program}\\n' > .git/hooks/$name; \
                 chmod +x .git/hooks/$name; done"
            ),
        );
        let head = git::head(&clone).unwrap();
        let push = Push { object: Some(&head), reference: "refs/heads/new", lease: Lease::Absent };
        assert_eq!(remote.push(&[push], &never), Ok(()));
        assert_eq!(remote.fetch(&["+refs/heads/*:refs/all/*"], &never), Ok(()));
        remote.own().show_in_clone("refs/plimsoll/x", &head).unwrap();
        assert_eq!(remote.below("refs/all").len(), 2, "it came to the remote of before");
        assert!(!trap.exists());
    }

    #[test]
    fn addresses_that_start_a_program_are_refused_before_git_is_started() {
        let (folder, clone, _) = stage();
        for (address, shown) in [
            ("ext::touch trap", "ext::touch trap"),
            ("fd::17", "fd::17"),
            ("foo::user:secret@host/x", "foo::host/x"),
            ("foo::https://user:secret@host/x", "foo::https://host/x"),
            ("foo://user:secret@host/x", "foo://host/x"),
            ("transport-helper://x", "transport-helper://x"),
            ("ftp://host/x", "ftp://host/x"),
            ("codecommit::us-east-1://repository", "codecommit::us-east-1://repository"),
        ] {
            for key in ["url", "pushurl"] {
                shell(
                    &clone,
                    &format!(
                        "git config remote.led.url ../bare.git; git config remote.led.{key} '{address}'"
                    ),
                );
                let refused = Remote::open(&clone, "led", &folder.path().join("led.git"));
                let expected = RemoteError::UnsupportedAddress(shown.to_owned());
                assert_eq!(refused.err(), Some(expected), "{key} {address}");
                shell(&clone, "git config --remove-section remote.led");
            }
        }
        assert!(!clone.join("trap").exists() && !folder.path().join("led.git").exists());
        for address in [
            "https://host/x",
            "HTTPS://host/x",
            "http://host/x",
            "ssh://user@host/x",
            "git+ssh://host/x",
            "git://host/x",
            "file:///x",
            "host:x",
            "user@host:x/y::z",
            "/x/y::z",
            "./a::b",
            "../bare.git",
            "[::1]:x",
            "bare",
        ] {
            assert_eq!(check_address(address.to_owned()), Ok(address.to_owned()));
        }
    }

    #[test]
    fn no_setting_of_the_users_leads_to_another_transport() {
        let (folder, clone, _) = stage();
        // The user's settings are read from the environment, which a test does not change: its own repository has them instead.
        for (address, name) in [("fd::17", "fd"), ("ext::touch trap", "ext"), ("foo://x", "foo")] {
            let place = folder.path().join(format!("{name}.git"));
            let remote = Remote::open(&clone, "origin", &place).unwrap();
            let bare = remote.address();
            // Without objects of its own it is no repository for a git that is asked here.
            shell(
                &place,
                &format!(
                    "git config --file config 'url.{address}.insteadOf' '{bare}' && git config --file config protocol.allow always \
                     && git config --file config protocol.{name}.allow always"
                ),
            );
            let began = std::time::Instant::now();
            let head = git::head(&clone).unwrap();
            let push = Push { object: Some(&head), reference: "refs/heads/new", lease: Lease::Absent };
            let expected = Err(RemoteError::ForbiddenTransport(name.to_owned()));
            assert_eq!(remote.fetch(&["main:x"], &never), expected, "{address}");
            assert_eq!(remote.push(&[push], &never), expected, "{address}");
            assert_eq!(remote.may_push(push), expected, "{address}");
            assert!(began.elapsed() < Duration::from_secs(60), "nothing hangs");
        }
        assert!(!clone.join("trap").exists());
    }

    #[test]
    fn a_remote_that_rejects_or_is_gone_says_so_in_its_own_words() {
        let (folder, clone, remote) = stage();
        let hook = folder.path().join("bare.git/hooks/pre-receive");
        shell(
            folder.path(),
            &format!(
                "printf '#!/bin/sh\\necho no pushes at night\\nexit 1\\n' > {0} && chmod +x {0}",
                hook.display()
            ),
        );
        let head = git::head(&clone).unwrap();
        let push = Push { object: Some(&head), reference: "refs/heads/new", lease: Lease::Absent };
        assert_eq!(remote.may_push(push), Ok(()), "a hook there is not asked");
        let refused = remote.push(&[push], &never);
        assert!(
            matches!(&refused, Err(RemoteError::Rejected(why)) if why.contains("pre-receive hook declined") && why.contains("no pushes at night")),
            "{refused:?}"
        );
        std::fs::rename(folder.path().join("bare.git"), folder.path().join("away.git")).unwrap();
        assert!(matches!(remote.push(&[push], &never), Err(RemoteError::Away(_))));
        assert!(matches!(remote.may_push(push), Err(RemoteError::Away(_))));
        assert!(matches!(remote.fetch(&["main:x"], &never), Err(RemoteError::Away(_))));
        let none = Remote::open(&clone, "upstream", &folder.path().join("x.git"));
        assert!(matches!(none, Err(RemoteError::NoRemote(_))), "{none:?}");
    }

    #[test]
    fn an_address_is_kept_without_what_lets_somebody_in() {
        for (address, kept) in [
            ("https://user:secret@host/a/b.git", "https://host/a/b.git"),
            ("https://token@host/a@b", "https://host/a@b"),
            ("ssh://git:x@host:22/a", "ssh://git@host:22/a"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_credentials(address), kept);
        }
    }
}
