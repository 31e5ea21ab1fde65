//! A git remote through which several machines share their work. Only fetches and pushes are supported.
//!
//! An agent can write the settings of the clone that it works in, and many git settings can run programs or
//! redirect a push: `core.sshCommand`, `remote.NAME.uploadpack`, `credential.helper`, hooks,
//! `url.X.pushInsteadOf`. Git commands that connect to the remote therefore never read them. They run in our own
//! repository ([`OwnRepository`]) in the user's state folder. The user's settings and variables apply (credential
//! helpers, ssh, proxies, certificates); settings of the clone do not. The remote's address is read from the
//! clone once, when a machine joins.

use crate::child::{self, ChildOptions};
use crate::git_output;
use crate::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use crate::{CommandOutcome, git};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The timeout for a fetch or a push.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum length of git's message in an error.
const MAX_REASON_CHARS: usize = 500;
/// Messages of git if an object fails `fsckObjects`: the first from `index-pack` and `unpack-objects`, the
/// second from `fetch` itself.
const FSCK_ERRORS: [&str; 2] = ["fsck error in ", "fsck failed"];
/// The maximum length of a rejected address in an error.
const MAX_ADDRESS_CHARS: usize = 200;

/// The error of an operation on the remote.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// The clone has no remote with this name.
    #[error("the clone has no remote `{0}`: name one of `git remote` with --remote")]
    NoRemote(String),
    /// Our own repository could not be created, or lacks a commit.
    #[error(transparent)]
    OwnRepository(#[from] PlimsollRepositoryError),
    /// A text could not be stored as an object.
    #[error("cannot keep a text in our own repository: {0}")]
    TextNotStored(String),
    /// An address for which git would start a `git-remote-NAME` program, or whose scheme git does not support.
    #[error(
        "machines cannot share the remote's address {0}: name it by https, http, ssh, git, file or a path with `git remote set-url` (for pushes with --push), or another remote with --remote"
    )]
    UnsupportedAddress(String),
    /// A setting leads to a transport that is not allowed.
    #[error(
        "git may not use the transport `{0}` here: see where `git config --get-regexp 'url.*insteadof'` leads, and what GIT_ALLOW_PROTOCOL names"
    )]
    ForbiddenTransport(String),
    /// The reference does not have the value that the push expects, or is being updated at this moment; usually another
    /// machine has pushed to it.
    #[error("it has moved since")]
    ReferenceMoved,
    /// The remote rejects the push.
    #[error("the remote rejects it: {0}")]
    Rejected(String),
    /// The remote lacks a reference.
    #[error("the remote has no {0}")]
    ReferenceMissing(String),
    /// The remote has objects that fail git's checks (`fsckObjects`); they were not pushed by Plimsoll.
    #[error("git rejects a commit of the remote, so nothing was fetched: {0}")]
    MalformedObjects(String),
    /// The remote cannot be reached, or denies access.
    #[error("the remote cannot be reached: {0}")]
    Unreachable(String),
    /// The caller canceled the operation.
    #[error("it was given up")]
    Canceled,
}

/// The expected value of a remote reference before a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushLease<'a> {
    /// Any value, because no other client writes the reference.
    AnyValue,
    /// The reference points to this object.
    Object(&'a ObjectId),
    /// The reference does not exist.
    Absent,
}

/// The id of a commit or of a stored text ([`Remote::store_text_as_local_blob`]).
pub type ObjectId = CommitId;

/// The update of one reference by a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceUpdate<'a> {
    /// The new value; `None` removes the reference.
    pub new_object: Option<&'a ObjectId>,
    /// The full name of the reference.
    pub reference: &'a str,
    /// The value that the reference must have before the push.
    pub lease: PushLease<'a>,
}

/// A remote of a clone.
#[derive(Debug, Clone)]
pub struct Remote {
    plimsoll_repository: PlimsollRepository,
    fetch_address: String,
    push_address: String,
}

impl Remote {
    /// Opens the remote with this name. `git_folder` is the git folder of our own repository, which is created if
    /// it does not exist.
    pub fn open(repository: &Path, name: &str, git_folder: &Path) -> Result<Remote, RemoteError> {
        let (fetch_address, push_address) = query_supported_remote_addresses(repository, name)?;
        let plimsoll_repository = PlimsollRepository::open_or_copy_from_clone(repository, git_folder)?;
        Ok(Remote { plimsoll_repository, fetch_address, push_address })
    }

    /// Returns our own repository, from which git connects to the remote.
    pub fn plimsoll_repository(&self) -> &PlimsollRepository {
        &self.plimsoll_repository
    }

    /// Returns the address without credentials.
    pub fn address_without_credentials(&self) -> String {
        strip_credentials_except_ssh_user(&self.fetch_address)
    }

    /// Fetches these refspecs, checks the fetched objects, and removes local references matched by the refspecs
    /// that the remote no longer has.
    pub fn fetch_with_object_checks_and_prune(
        &self,
        refspecs: &[&str],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), RemoteError> {
        // Commits of other machines are verified and merged here, so they are checked like commits of the clone
        // (`OwnRepository::fetch_and_verify_commit_from_clone`).
        let options = [
            "-c",
            "fetch.fsckObjects=true",
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            &self.fetch_address,
        ];
        let outcome = self.run_git_with_remote_access(&[&options[..], refspecs].concat(), should_cancel);
        if outcome.succeeded() {
            return Ok(());
        }
        if let Some(error) = parse_forbidden_transport(&outcome) {
            return Err(error);
        }
        let stderr_text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        match stderr_text.split_once("couldn't find remote ref ") {
            _ if outcome.was_canceled => Err(RemoteError::Canceled),
            _ if FSCK_ERRORS.iter().any(|fsck_error| stderr_text.contains(fsck_error)) => {
                Err(RemoteError::MalformedObjects(redacted_error_message(&outcome)))
            }
            Some((_, name)) => {
                Err(RemoteError::ReferenceMissing(name.lines().next().unwrap_or_default().trim().to_owned()))
            }
            None => Err(RemoteError::Unreachable(redacted_error_message(&outcome))),
        }
    }

    /// Pushes these references, each only if the remote still has the value in its lease. Without `--atomic`, the
    /// remote may accept some of them and reject others, which is an error.
    pub fn push_references_with_leases(
        &self,
        updates: &[ReferenceUpdate<'_>],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), RemoteError> {
        let lease_options = updates.iter().filter_map(|update| match update.lease {
            PushLease::AnyValue => None,
            PushLease::Object(commit) => Some(format!("--force-with-lease={}:{commit}", update.reference)),
            PushLease::Absent => Some(format!("--force-with-lease={}:", update.reference)),
        });
        let options = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"];
        let options = options.into_iter().map(str::to_owned).chain(lease_options);
        let refspec = |update: &ReferenceUpdate<'_>| {
            let force = if update.lease == PushLease::AnyValue { "+" } else { "" };
            format!("{force}{}:{}", update.new_object.map_or("", ObjectId::as_str), update.reference)
        };
        let target_arguments = ["--".to_owned(), self.push_address.clone()];
        let arguments: Vec<String> =
            options.chain(target_arguments).chain(updates.iter().map(refspec)).collect();
        let outcome = self.run_git_with_remote_access(
            &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            should_cancel,
        );
        if outcome.succeeded() {
            return Ok(());
        }
        if outcome.was_canceled {
            return Err(RemoteError::Canceled);
        }
        Err(parse_push_error(&outcome))
    }

    /// Checks with a dry run whether a push would succeed. The lease is not checked, and the remote's hooks do not
    /// run, so they may still reject the push.
    pub fn check_push_by_forced_dry_run(&self, update: ReferenceUpdate<'_>) -> Result<(), RemoteError> {
        let refspec = format!("+{}:{}", update.new_object.map_or("", ObjectId::as_str), update.reference);
        let options =
            ["push", "--dry-run", "--porcelain", "--no-verify", "--no-signed", "--", &self.push_address];
        let outcome = self.run_git_with_remote_access(&[&options[..], &[&refspec]].concat(), &|| false);
        if outcome.succeeded() { Ok(()) } else { Err(parse_push_error(&outcome)) }
    }

    /// Returns the object of a reference in our own repository.
    pub fn object_of_local_reference(&self, reference: &str) -> Option<ObjectId> {
        let outcome = self.run_offline_git_with_input(&["rev-parse", "--verify", "--quiet", reference], None);
        outcome.succeeded().then(|| ObjectId::parse(&git::trimmed_stdout(&outcome)).ok()).flatten()
    }

    /// Returns the references of our own repository whose names begin with a path, and their objects.
    pub fn local_references_below(&self, name_prefix: &str) -> Vec<(String, ObjectId)> {
        let outcome = self.run_offline_git_with_input(
            &["for-each-ref", "--format=%(refname) %(objectname)", name_prefix],
            None,
        );
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let parse_reference = |line: &str| {
            let (name, id) = line.split_once(' ')?;
            Some((name.to_owned(), ObjectId::parse(id).ok()?))
        };
        output.lines().filter_map(parse_reference).collect()
    }

    /// Stores a text as an object of our own repository and returns its id.
    pub fn store_text_as_local_blob(&self, text: &str) -> Result<ObjectId, RemoteError> {
        let outcome = self
            .run_offline_git_with_input(&["hash-object", "-w", "--stdin"], Some(text.as_bytes().to_vec()));
        match ObjectId::parse(&git::trimmed_stdout(&outcome)) {
            Ok(id) if outcome.succeeded() => Ok(id),
            _ => Err(RemoteError::TextNotStored(redacted_error_message(&outcome))),
        }
    }

    /// Returns the text of an object in our own repository; `None` if the object does not exist or is not a blob.
    pub fn read_local_blob_as_text(&self, id: &ObjectId) -> Option<String> {
        let outcome = self.run_offline_git_with_input(&["cat-file", "blob", id.as_str()], None);
        outcome.succeeded().then(|| String::from_utf8_lossy(&outcome.stdout).into_owned())
    }

    fn run_offline_git_with_input(&self, arguments: &[&str], input: Option<Vec<u8>>) -> CommandOutcome {
        self.plimsoll_repository.run_offline_git_with_input(arguments, input)
    }

    fn run_git_with_remote_access(
        &self,
        arguments: &[&str],
        should_cancel: &dyn Fn() -> bool,
    ) -> CommandOutcome {
        let clone_folder = self.plimsoll_repository.clone_root();
        let mut command =
            git::build_remote_git_command(self.plimsoll_repository.git_folder(), clone_folder, arguments);
        // The command runs in the clone, and starts ssh and credential helpers.
        git::remove_project_folders_from_search_path(&mut command, clone_folder);
        child::run(command, ChildOptions { should_cancel, ..ChildOptions::with_timeout(REMOTE_TIMEOUT) })
    }
}

/// Returns the addresses of a remote for fetching and for pushing. Returns an error if one is missing or
/// unsupported.
fn query_supported_remote_addresses(repository: &Path, name: &str) -> Result<(String, String), RemoteError> {
    let no_remote_error = || RemoteError::NoRemote(name.to_owned());
    if name.starts_with('-') {
        return Err(no_remote_error());
    }
    let query_address = |arguments: &[&str]| {
        let outcome = git::run_query(repository, arguments);
        let address = git::trimmed_stdout(&outcome);
        (outcome.succeeded() && !address.is_empty()).then_some(address).ok_or_else(no_remote_error)
    };
    let fetch_address = require_supported_address(query_address(&["remote", "get-url", name])?)?;
    Ok((fetch_address, require_supported_address(query_address(&["remote", "get-url", "--push", name])?)?))
}

/// The schemes that git itself supports. For every other scheme, and for `NAME::ADDRESS`, git starts
/// `git-remote-NAME` from its folder or the PATH, and some of these programs never end (`git-remote-fd`).
const SUPPORTED_SCHEMES: [&str; 7] = ["https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"];

/// Rejects addresses for which git would start another program. Paths and `HOST:PATH` have no scheme.
fn require_supported_address(address: String) -> Result<String, RemoteError> {
    let is_scheme_character =
        |character: char| character.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&character);
    let (scheme, after_scheme) =
        address.split_at(address.find(|character| !is_scheme_character(character)).unwrap_or(address.len()));
    let is_supported = !after_scheme.starts_with("::")
        && (!after_scheme.starts_with("://")
            || SUPPORTED_SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()));
    if is_supported {
        return Ok(address);
    }
    let displayed_address = match (after_scheme.strip_prefix("::"), after_scheme.contains("://")) {
        // The part before an `@` may be a password in this form, too.
        (Some(target), false) => format!("{scheme}::{}", target.rsplit('@').next().unwrap_or_default()),
        _ => strip_credentials_except_ssh_user(&address),
    };
    Err(RemoteError::UnsupportedAddress(truncate_end(
        &to_safe_single_line(&displayed_address),
        MAX_ADDRESS_CHARS,
    )))
}

/// Returns the error for a forbidden transport if git reported one.
fn parse_forbidden_transport(outcome: &CommandOutcome) -> Option<RemoteError> {
    let stderr_text = String::from_utf8_lossy(&outcome.stderr);
    let (_, remaining_text) = stderr_text.split_once("transport '")?;
    let (name, _) = remaining_text.split_once("' not allowed")?;
    Some(RemoteError::ForbiddenTransport(truncate_end(&to_safe_single_line(name), MAX_ADDRESS_CHARS)))
}

/// Returns the name of the clone's remote that has this address without credentials, or `None`. `origin` is preferred.
pub fn remote_name_of_address(repository: &Path, address: &str) -> Option<String> {
    let outcome = git::run_query(repository, &["remote"]);
    let mut names: Vec<String> =
        String::from_utf8_lossy(&outcome.stdout).lines().map(str::to_owned).collect();
    names.sort_by_key(|name| name != "origin");
    names.into_iter().find(|name| {
        query_supported_remote_addresses(repository, name)
            .is_ok_and(|(fetch_address, _)| strip_credentials_except_ssh_user(&fetch_address) == address)
    })
}

/// Removes the user name and password from an address. Keeps the user name of an ssh address.
pub fn strip_credentials_except_ssh_user(address: &str) -> String {
    let Some((scheme, after_scheme)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = after_scheme.split_at(after_scheme.find('/').unwrap_or(after_scheme.len()));
    let host = match authority.rsplit_once('@') {
        // An ssh address needs its user name, but the user name of a web address may be a token.
        Some((user, host)) if scheme.ends_with("ssh") => {
            format!("{}@{host}", user.split(':').next().unwrap_or_default())
        }
        Some((_, host)) => host.to_owned(),
        None => authority.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

/// Returns the error of a failed push. For each rejected reference, git prints a line with `!`, the reference,
/// and the reason in parentheses.
fn parse_push_error(outcome: &CommandOutcome) -> RemoteError {
    if let Some(error) = parse_forbidden_transport(outcome) {
        return error;
    }
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let rejected_lines: Vec<&str> = output.lines().filter(|line| line.starts_with('!')).collect();
    let Some(first_rejected_line) = rejected_lines.first() else {
        return RemoteError::Unreachable(redacted_error_message(outcome));
    };
    // A server sends one of the last four messages if two clients push at the same moment.
    let moved_reference_messages = [
        "stale info",
        "fetch first",
        "non-fast-forward",
        "cannot lock ref",
        "failed to update ref",
        "failed to lock",
        "incorrect old value",
    ];
    if rejected_lines.iter().all(|line| moved_reference_messages.iter().any(|message| line.contains(message)))
    {
        return RemoteError::ReferenceMoved;
    }
    // The output of a remote hook is more specific than git's own line.
    let stderr_text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let remote_messages: Vec<&str> =
        stderr_text.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
    let reason = first_rejected_line.rsplit('\t').next().unwrap_or_default();
    let message = format!("{reason} {}", remote_messages.join(" "));
    RemoteError::Rejected(truncate_end(&to_safe_single_line(message.trim()), MAX_REASON_CHARS))
}

fn redacted_error_message(outcome: &CommandOutcome) -> String {
    if outcome.timed_out {
        return format!("git took longer than {} s", REMOTE_TIMEOUT.as_secs());
    }
    let stderr_text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let message = if stderr_text.trim().is_empty() {
        git_output::fatal_message_or_last_output_line(outcome)
    } else {
        stderr_text
    };
    // Git's messages contain addresses, which may contain a user's name and password.
    let redacted_words: Vec<String> =
        message.split_whitespace().map(strip_credentials_except_ssh_user).collect();
    truncate_end(&to_safe_single_line(&redacted_words.join(" ")), MAX_REASON_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(folder: &Path, command_line: &str) {
        let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{command_line}: {outcome:?}");
    }

    /// Creates a bare repository with a commit on `main`, and a clone of it.
    fn create_remote_and_clone() -> (tempfile::TempDir, std::path::PathBuf, Remote) {
        let folder = tempfile::tempdir().unwrap();
        run_shell(
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
    fn a_push_is_fetched_elsewhere_and_is_refused_if_the_reference_moved() {
        let (folder, clone, remote) = create_remote_and_clone();
        let first_commit = git::head_commit(&clone).unwrap();
        run_shell(&clone, "git commit -q --allow-empty -m Second");
        let second_commit = git::head_commit(&clone).unwrap();
        remote.plimsoll_repository().fetch_and_verify_commit_from_clone(&second_commit).unwrap();
        let update = |object, lease| ReferenceUpdate {
            new_object: object,
            reference: "refs/heads/plimsoll/night",
            lease,
        };
        assert_eq!(
            remote.push_references_with_leases(&[update(Some(&first_commit), PushLease::Absent)], &never),
            Ok(())
        );
        assert_eq!(
            remote.push_references_with_leases(&[update(Some(&second_commit), PushLease::Absent)], &never),
            Err(RemoteError::ReferenceMoved)
        );
        assert_eq!(
            remote.push_references_with_leases(
                &[update(Some(&second_commit), PushLease::Object(&second_commit))],
                &never
            ),
            Err(RemoteError::ReferenceMoved)
        );
        assert_eq!(
            remote.push_references_with_leases(
                &[update(Some(&second_commit), PushLease::Object(&first_commit))],
                &never
            ),
            Ok(())
        );
        run_shell(folder.path(), "git clone -q bare.git other");
        let other_clone = folder.path().join("other");
        let other_remote = Remote::open(&other_clone, "origin", &folder.path().join("theirs.git")).unwrap();
        let refspec = "+refs/heads/plimsoll/night:refs/plimsoll/night/target";
        assert_eq!(other_remote.fetch_with_object_checks_and_prune(&[refspec], &never), Ok(()));
        assert_eq!(
            other_remote.object_of_local_reference("refs/plimsoll/night/target"),
            Some(second_commit.clone())
        );
        other_remote
            .plimsoll_repository()
            .transfer_commit_and_set_clone_reference("refs/plimsoll/night/target", &second_commit)
            .unwrap();
        assert!(
            git::is_head_or_ancestor(&other_clone, &first_commit)
                && git::object_id_of_revision(&other_clone, "refs/plimsoll/night/target").is_some()
        );
        let result = other_remote.fetch_with_object_checks_and_prune(&["refs/heads/none:refs/none"], &never);
        assert_eq!(result, Err(RemoteError::ReferenceMissing("refs/heads/none".to_owned())));
        let text_id = other_remote.store_text_as_local_blob("notes\n").unwrap();
        let note_update = ReferenceUpdate {
            new_object: Some(&text_id),
            reference: "refs/plimsoll/night/1/1/notes",
            lease: PushLease::AnyValue,
        };
        assert_eq!(other_remote.push_references_with_leases(&[note_update], &never), Ok(()));
        assert_eq!(
            remote.fetch_with_object_checks_and_prune(
                &["+refs/plimsoll/night/*:refs/plimsoll/night/*"],
                &never
            ),
            Ok(())
        );
        let references = remote.local_references_below("refs/plimsoll/night");
        assert_eq!(references, [("refs/plimsoll/night/1/1/notes".to_owned(), text_id.clone())]);
        assert_eq!(remote.read_local_blob_as_text(&text_id).as_deref(), Some("notes\n"));
        assert_eq!(
            remote
                .push_references_with_leases(&[ReferenceUpdate { new_object: None, ..note_update }], &never),
            Ok(())
        );
        let reopened_remote =
            Remote::open(&clone, "origin", &folder.path().join("state/remote.git")).unwrap();
        assert_eq!(reopened_remote.fetch_with_object_checks_and_prune(&[refspec], &never), Ok(()));
    }

    #[test]
    fn commits_since_the_start_include_it_and_nothing_before() {
        let (_folder, clone, remote) = create_remote_and_clone();
        let commit = |name: &str| {
            run_shell(&clone, &format!("git commit -q --allow-empty -m {name}"));
            let commit = git::head_commit(&clone).unwrap();
            remote.plimsoll_repository().fetch_and_verify_commit_from_clone(&commit).unwrap();
            commit
        };
        let [before, start, second, third] = ["before", "start", "second", "third"].map(commit);
        run_shell(&clone, &format!("git checkout -q --detach {before}"));
        let side = commit("side");
        let list = |start: &CommitId, tip: &CommitId| {
            remote.plimsoll_repository().list_start_and_later_commits(start, tip).unwrap()
        };
        assert_eq!(list(&start, &third), [start.clone(), second.clone(), third].into());
        assert_eq!(list(&start, &start), [start.clone()].into());
        // A branch that was moved to another history does not contain the start commit.
        assert_eq!(list(&start, &side), [side].into());
        let missing_commit = CommitId::parse(&format!("{:040x}", 1)).unwrap();
        for (start, tip) in [(&missing_commit, &second), (&start, &missing_commit)] {
            let result = remote.plimsoll_repository().list_start_and_later_commits(start, tip);
            assert!(matches!(result, Err(PlimsollRepositoryError::CannotListCommits { .. })), "{result:?}");
        }
    }

    #[test]
    fn objects_that_fail_gits_checks_are_not_fetched() {
        for (description, create_commit) in [
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
            let (_folder, clone, remote) = create_remote_and_clone();
            // Another machine pushes without our checks.
            run_shell(
                &clone,
                &format!("evil=$({create_commit}) && git push -q origin $evil:refs/heads/evil"),
            );
            let evil = git::object_id_of_revision(&clone, "refs/remotes/origin/evil").unwrap();
            let result = remote.fetch_with_object_checks_and_prune(&["+refs/heads/*:refs/all/*"], &never);
            assert!(matches!(&result, Err(RemoteError::MalformedObjects(_))), "{description}: {result:?}");
            assert!(
                !remote.plimsoll_repository().has_commit(&evil)
                    && remote.local_references_below("refs/all").is_empty(),
                "{description}"
            );
            run_shell(&clone, "git push -q origin :evil");
            assert_eq!(
                remote.fetch_with_object_checks_and_prune(&["+refs/heads/*:refs/all/*"], &never),
                Ok(()),
                "{description}"
            );
        }
    }

    #[test]
    fn settings_that_an_agent_writes_into_the_clone_have_no_effect() {
        let (folder, clone, remote) = create_remote_and_clone();
        let marker_file = folder.path().join("trap");
        let program = format!("touch {}; false", marker_file.display());
        run_shell(
            &clone,
            &format!(
                "git init -q --bare ../evil.git; for name in core.sshCommand core.gitProxy remote.origin.uploadpack \
                 remote.origin.receivepack core.alternateRefsCommand core.fsmonitor credential.helper; do \
                 git config $name '{program}'; done; git config url.../evil.git.pushInsteadOf ../bare.git; \
                 for name in pre-push reference-transaction; do printf '#!/bin/sh\\n{program}\\n' > .git/hooks/$name; \
                 chmod +x .git/hooks/$name; done"
            ),
        );
        let head = git::head_commit(&clone).unwrap();
        let update = ReferenceUpdate {
            new_object: Some(&head),
            reference: "refs/heads/new",
            lease: PushLease::Absent,
        };
        assert_eq!(remote.push_references_with_leases(&[update], &never), Ok(()));
        assert_eq!(remote.fetch_with_object_checks_and_prune(&["+refs/heads/*:refs/all/*"], &never), Ok(()));
        remote
            .plimsoll_repository()
            .transfer_commit_and_set_clone_reference("refs/plimsoll/x", &head)
            .unwrap();
        assert_eq!(remote.local_references_below("refs/all").len(), 2, "it came to the remote of before");
        assert!(!marker_file.exists());
    }

    #[test]
    fn addresses_that_would_start_a_program_are_refused_before_git_starts() {
        let (folder, clone, _) = create_remote_and_clone();
        for (address, displayed_address) in [
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
                run_shell(
                    &clone,
                    &format!(
                        "git config remote.led.url ../bare.git; git config remote.led.{key} '{address}'"
                    ),
                );
                let result = Remote::open(&clone, "led", &folder.path().join("led.git"));
                let expected = RemoteError::UnsupportedAddress(displayed_address.to_owned());
                assert_eq!(result.err(), Some(expected), "{key} {address}");
                run_shell(&clone, "git config --remove-section remote.led");
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
            assert_eq!(require_supported_address(address.to_owned()), Ok(address.to_owned()));
        }
    }

    #[test]
    fn no_setting_of_the_users_leads_to_another_transport() {
        let (folder, clone, _) = create_remote_and_clone();
        // The user's settings are read from the environment, which a test does not change. The remote's own
        // repository has the settings instead.
        for (address, name) in [("fd::17", "fd"), ("ext::touch trap", "ext"), ("foo://x", "foo")] {
            let git_folder = folder.path().join(format!("{name}.git"));
            let remote = Remote::open(&clone, "origin", &git_folder).unwrap();
            let bare = remote.address_without_credentials();
            // Without objects of its own it is no repository for the git that `run_shell` runs.
            run_shell(
                &git_folder,
                &format!(
                    "git config --file config 'url.{address}.insteadOf' '{bare}' && git config --file config protocol.allow always \
                     && git config --file config protocol.{name}.allow always"
                ),
            );
            let started_at = std::time::Instant::now();
            let head = git::head_commit(&clone).unwrap();
            let update = ReferenceUpdate {
                new_object: Some(&head),
                reference: "refs/heads/new",
                lease: PushLease::Absent,
            };
            let expected = Err(RemoteError::ForbiddenTransport(name.to_owned()));
            assert_eq!(remote.fetch_with_object_checks_and_prune(&["main:x"], &never), expected, "{address}");
            assert_eq!(remote.push_references_with_leases(&[update], &never), expected, "{address}");
            assert_eq!(remote.check_push_by_forced_dry_run(update), expected, "{address}");
            assert!(started_at.elapsed() < Duration::from_secs(60), "nothing hangs");
        }
        assert!(!clone.join("trap").exists());
    }

    #[test]
    fn a_rejecting_and_a_missing_remote_are_reported_with_gits_message() {
        let (folder, clone, remote) = create_remote_and_clone();
        let hook = folder.path().join("bare.git/hooks/pre-receive");
        run_shell(
            folder.path(),
            &format!(
                "printf '#!/bin/sh\\necho no pushes at night\\nexit 1\\n' > {0} && chmod +x {0}",
                hook.display()
            ),
        );
        let head = git::head_commit(&clone).unwrap();
        let update = ReferenceUpdate {
            new_object: Some(&head),
            reference: "refs/heads/new",
            lease: PushLease::Absent,
        };
        assert_eq!(remote.check_push_by_forced_dry_run(update), Ok(()), "a hook there is not asked");
        let result = remote.push_references_with_leases(&[update], &never);
        assert!(
            matches!(&result, Err(RemoteError::Rejected(why)) if why.contains("pre-receive hook declined") && why.contains("no pushes at night")),
            "{result:?}"
        );
        std::fs::rename(folder.path().join("bare.git"), folder.path().join("away.git")).unwrap();
        assert!(matches!(
            remote.push_references_with_leases(&[update], &never),
            Err(RemoteError::Unreachable(_))
        ));
        assert!(matches!(remote.check_push_by_forced_dry_run(update), Err(RemoteError::Unreachable(_))));
        assert!(matches!(
            remote.fetch_with_object_checks_and_prune(&["main:x"], &never),
            Err(RemoteError::Unreachable(_))
        ));
        let result = Remote::open(&clone, "upstream", &folder.path().join("x.git"));
        assert!(matches!(result, Err(RemoteError::NoRemote(_))), "{result:?}");
    }

    #[test]
    fn credentials_are_removed_from_an_address() {
        for (address, expected) in [
            ("https://user:secret@host/a/b.git", "https://host/a/b.git"),
            ("https://token@host/a@b", "https://host/a@b"),
            ("ssh://git:x@host:22/a", "ssh://git@host:22/a"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(strip_credentials_except_ssh_user(address), expected);
        }
    }
}
