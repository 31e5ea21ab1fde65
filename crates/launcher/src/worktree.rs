//! Worktrees of a parallel run: a folder of its own for each worker, and branches that move only from where they were seen. Results
//! are merged elsewhere ([`crate::merge_repository`]).
//!
//! Nothing here touches the folder that the user works in, or a branch that is checked out anywhere. A kill in the middle leaves a
//! folder under a name of ours, which [`remove`] takes away, and branches that are still there.

mod left;

pub(crate) use left::clear_locks_of;
pub use left::{clear_locks_since, take_over};

use crate::git::question;
use crate::git::{self, AllowedPrograms};
use crate::git_output;
use crate::own_repository::is_partial;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::text::clip_start;
use plimsoll_store::{Durability, StoreError, disk, layout};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;

/// A checkout of a large repository, with filters.
const CHECKOUT_DEADLINE: Duration = Duration::from_secs(300);
/// git creates this file of a worktree before it writes it, and names it in any language where it finds it empty.
const HALF_MADE: &str = "/commondir";
/// How often a worktree is tried that another git is just making, and how long that takes to pass.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);
/// How much of git's message is kept: the lines about conflicts are its last ones.
const LONGEST_REASON: usize = 2_000;

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorktreeError {
    /// Git refuses, or its hook.
    #[error("git {what}: {why}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        why: String,
    },
    /// It was ended at its deadline.
    #[error("git {0} took too long")]
    TookTooLong(&'static str),
}

/// A command of git that failed.
#[derive(Debug)]
struct CommandFailure {
    error: WorktreeError,
    /// True if another git was just making a worktree, so that the same command may succeed a moment later.
    is_beside_half_made: bool,
}

impl From<CommandFailure> for WorktreeError {
    fn from(failure: CommandFailure) -> WorktreeError {
        failure.error
    }
}

/// What came of putting a branch onto another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The new end of its commits.
    Onto(CommitId),
    /// There was nothing to put: the branch has no commit of its own, or the commit has them all.
    Nothing,
    /// It does not fit; the folder is as it was.
    Conflict {
        /// The files with conflicts.
        files: Vec<String>,
        /// What git said.
        words: String,
    },
}

/// Creates a worktree outside the working tree, on a new branch that begins at a commit. A kill may have left the branch without
/// its folder; one that has gone on is somebody's work.
pub fn add(
    repository: &Path,
    folder: &Path,
    branch: &BranchName,
    commit: &CommitId,
    allowed: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let place = folder.to_string_lossy();
    let (name, id) = (branch.as_str(), commit.as_str());
    beside_others(|| {
        let is_left = end_of(repository, branch).as_ref() == Some(commit);
        let arguments: &[&str] = if is_left {
            &["worktree", "add", "--quiet", &place, name]
        } else {
            &["worktree", "add", "--quiet", "--no-track", "-b", name, &place, id]
        };
        run_allowing(repository, "worktree add", arguments, allowed)
    })
}

/// Removes a worktree with everything in it, also one that a kill has left half made. Its branch stays.
pub fn remove(repository: &Path, folder: &Path) -> Result<(), WorktreeError> {
    let place = folder.to_string_lossy();
    // Twice: a locked one, too. A folder that git does not know is none of its worktrees.
    let arguments = ["worktree", "remove", "--force", "--force", &place];
    let removed = beside_others(|| run(repository, "worktree remove", &arguments));
    disk::look_anew(folder);
    if removed.is_ok() || disk::exists(folder) {
        return removed;
    }
    forget(repository, folder);
    Ok(())
}

/// Removes what git keeps of a worktree whose folder is gone. `git worktree prune` would look at the user's other worktrees, too,
/// and follow links.
fn forget(repository: &Path, folder: &Path) {
    let Some(common) = layout::git_folder_of(repository).and_then(|git| layout::common_folder(&git)) else {
        return;
    };
    let worktrees = common.join("worktrees");
    if disk::is_link(&worktrees) {
        return;
    }
    let place = folder.join(".git");
    for name in disk::names(&worktrees) {
        let entry = worktrees.join(name);
        let back = disk::read_text(&entry.join("gitdir")).ok().flatten().unwrap_or_default();
        let is_its = disk::is_folder_itself(&entry)
            && disk::canonical(Path::new(back.trim())) == disk::canonical(&place);
        if is_its {
            let _ = disk::remove_folder(&entry);
        }
    }
}

/// Git looks at all worktrees, whatever is asked about one, and fails where another git is just making one.
fn beside_others(mut work: impl FnMut() -> Result<(), CommandFailure>) -> Result<(), WorktreeError> {
    for _ in 1..TRIES {
        match work() {
            Err(failure) if failure.is_beside_half_made => sleep(PAUSE),
            done => return done.map_err(WorktreeError::from),
        }
    }
    Ok(work()?)
}

/// Moves a branch from where it was seen, which is none for a new one. False if it is elsewhere by now. (To git an empty name is
/// a branch that is not there, with hashes of any length.)
pub fn move_branch(repository: &Path, name: &BranchName, from: Option<&CommitId>, to: &CommitId) -> bool {
    let from = from.map_or("", CommitId::as_str);
    let arguments =
        ["update-ref", "--no-deref", "-m", "plimsoll: landed", &name.reference(), to.as_str(), from];
    let moved = git::write(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_DEADLINE);
    moved.succeeded()
}

/// The commit that a branch ends at.
pub fn end_of(repository: &Path, name: &BranchName) -> Option<CommitId> {
    git::commit(repository, &name.reference())
}

/// True if a commit is another one, or among those before it. A commit that is not there is not.
pub fn contains(repository: &Path, end: &CommitId, commit: &CommitId) -> bool {
    git::git(repository, &["merge-base", "--is-ancestor", commit.as_str(), end.as_str()]).succeeded()
}

/// The files in a worktree that follow from a plan: what a session does with them must not keep git from switching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFiles {
    /// The session's copy of the user's plan, if that is in the repository.
    pub plan: Option<RepoPath>,
    /// The plan of the item's own run, which is in no commit of ours.
    pub item_plan: RepoPath,
}

impl PlanFiles {
    /// All of them.
    pub fn all(&self) -> Vec<RepoPath> {
        self.plan.iter().chain([&self.item_plan]).cloned().collect()
    }
}

/// Begins a new branch at a commit in a worktree that is there: its files that git ignores stay. Where the worktree has come further
/// than that commit, or the branch is there already and has gone on, somebody works on it, or beside it: everything stays as it is.
/// Before files move, the plan's are put back: their changes are kept elsewhere by then.
pub fn switch_new(
    folder: &Path,
    branch: &BranchName,
    commit: &CommitId,
    plan_files: &PlanFiles,
    allowed: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let now = git::git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    if git::text(&now) == branch.reference() {
        return Ok(());
    }
    match end_of(folder, branch) {
        Some(end) if end == *commit => {
            let arguments = ["switch", "--quiet", "--no-guess", branch.as_str()];
            switch_without_plans(folder, &arguments, plan_files, allowed)
        }
        Some(_) => Ok(()),
        None => {
            let mut arguments = vec!["switch", "--quiet", "--no-track", "--create", branch.as_str()];
            // A client that outlives its run commits until it is ended. git itself takes the end as it then is: named by us, it
            // would be the end of a moment ago, and what has been committed since would be gone from the worktree.
            if git::is_below_head(folder, commit) {
                return Ok(run_allowing(folder, "switch", &arguments, allowed)?);
            }
            arguments.push(commit.as_str());
            switch_without_plans(folder, &arguments, plan_files, allowed)
        }
    }
}

/// Switches after the changes of the plan's files are taken back. The item's own plan keeps its content, whether a session has
/// committed it or not. A kill before that is written again loses nothing: it is made anew, and its notes are kept elsewhere.
fn switch_without_plans(
    folder: &Path,
    arguments: &[&str],
    plan_files: &PlanFiles,
    allowed: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let item_plan = folder.join(plan_files.item_plan.as_str());
    let content = disk::read(&item_plan).ok().flatten();
    if is_in_head(folder, &plan_files.item_plan) || is_in_index(folder, &plan_files.item_plan) {
        take_back_changes(folder, &plan_files.item_plan, allowed)?;
    }
    if let Some(plan) = &plan_files.plan {
        take_back_changes(folder, plan, allowed)?;
    }
    run_allowing(folder, "switch", arguments, allowed)?;
    if let Some(content) = content.filter(|_| !disk::exists(&item_plan)) {
        let failed = |error: StoreError| WorktreeError::Refused { what: "switch", why: error.to_string() };
        disk::replace(&item_plan, &content, Durability::Lazy).map_err(failed)?;
    }
    Ok(())
}

/// Makes a file as HEAD has it. One that HEAD does not have is removed: another commit may have it.
fn take_back_changes(folder: &Path, file: &RepoPath, allowed: AllowedPrograms) -> Result<(), WorktreeError> {
    let name = file.pathspec();
    if is_in_head(folder, file) {
        // Also one that a session told git to overlook: the switch would refuse to write over it.
        let arguments = ["checkout", "--quiet", "--ignore-skip-worktree-bits", "HEAD", "--", &name];
        return Ok(run_allowing(folder, "checkout", &arguments, allowed)?);
    }
    if is_in_index(folder, file) {
        run_allowing(folder, "rm", &["rm", "--quiet", "--force", "--cached", "-r", "--", &name], allowed)?;
    }
    // One that cannot be removed, such as a folder, is in the way only of a commit that has a file there: git says so.
    let _ = disk::remove(&folder.join(file.as_str()));
    Ok(())
}

fn is_in_head(folder: &Path, file: &RepoPath) -> bool {
    git::git(folder, &["cat-file", "-e", &format!("HEAD:{}", file.as_str())]).succeeded()
}

fn is_in_index(folder: &Path, file: &RepoPath) -> bool {
    !git::tracked(folder, std::slice::from_ref(file)).is_empty()
}

/// Removes a branch that ends where it is said to end.
pub fn remove_branch(repository: &Path, name: &BranchName, end: &CommitId) {
    let arguments = ["update-ref", "--no-deref", "-d", &name.reference(), end.as_str()];
    let _ = git::write(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_DEADLINE);
}

/// What makes git show another history or other contents in this clone than any other clone has. Verified is what a clone has.
pub fn local_views(repository: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if !git::text(&git::git(repository, &["for-each-ref", "--count=1", "refs/replace"])).is_empty() {
        found.push(
            "objects of this clone are replaced, so git shows others than were verified: git replace --list names them, git replace -d ID removes one"
                .to_owned(),
        );
    }
    let common = layout::git_folder_of(repository).and_then(|git| layout::common_folder(&git));
    for name in ["info/grafts", "shallow", "objects/info/alternates"] {
        if common.as_ref().is_some_and(|common| disk::size(&common.join(name)).is_some_and(|size| size > 0)) {
            found.push(format!(".git/{name} changes what git shows in this clone; a clone of it has another history or fewer objects"));
        }
    }
    found
}

/// Moves the branch that is checked out forward to a commit, with its files. Git refuses where anything is in the way.
pub fn fast_forward(folder: &Path, commit: &CommitId, allowed: AllowedPrograms) -> Result<(), WorktreeError> {
    let arguments = ["merge", "--quiet", "--ff-only", "--no-autostash", commit.as_str()];
    Ok(run_allowing(folder, "merge", &arguments, allowed)?)
}

/// What keeps a repository from being worked on in worktrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// Its history is cut off.
    Shallow,
    /// It has submodules, which are in no worktree.
    Submodules,
    /// It fetches objects only when they are needed: they cannot be copied.
    Partial,
}

/// The first thing that keeps this repository from it.
pub fn unfit(repository: &Path) -> Option<Unfit> {
    let answer = git::git(repository, &["rev-parse", "--is-shallow-repository"]);
    if git::text(&answer) == "true" {
        return Some(Unfit::Shallow);
    }
    if is_partial(repository) {
        return Some(Unfit::Partial);
    }
    let has_submodules = git::is_tracked(repository, ".gitmodules");
    has_submodules.then_some(Unfit::Submodules)
}

/// The files below a folder that git ignores and that the patterns of a file name, from the folder on.
pub fn ignored_by(folder: &Path, patterns: &Path) -> Vec<String> {
    let option = format!("--exclude-from={}", patterns.display());
    let named = git::git(folder, &["ls-files", "-z", "--others", "--ignored", &option]);
    if !named.succeeded() || named.stdout.is_empty() {
        return Vec::new();
    }
    let limit = TimeLimit::within(CHECKOUT_DEADLINE);
    let ignored = question::answer(folder, &["check-ignore", "-z", "--stdin"], Some(named.stdout), limit);
    let ignored = ignored.unwrap_or_default();
    git_output::names(&ignored).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn run(folder: &Path, what: &'static str, arguments: &[&str]) -> Result<(), CommandFailure> {
    run_allowing(folder, what, arguments, AllowedPrograms::TrustedDrivers)
}

fn run_allowing(
    folder: &Path,
    what: &'static str,
    arguments: &[&str],
    allowed: AllowedPrograms,
) -> Result<(), CommandFailure> {
    let outcome = git::write(folder, allowed, arguments, CHECKOUT_DEADLINE);
    if outcome.succeeded() {
        return Ok(());
    }
    if outcome.timed_out {
        return Err(CommandFailure { error: WorktreeError::TookTooLong(what), is_beside_half_made: false });
    }
    let why = said(&outcome);
    let is_beside_half_made = why.contains(HALF_MADE);
    Err(CommandFailure { error: WorktreeError::Refused { what, why }, is_beside_half_made })
}

pub(crate) fn said(outcome: &crate::Outcome) -> String {
    let both =
        format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    let words = if both.trim().is_empty() { git_output::last_words(outcome) } else { both };
    clip_start(words.trim(), LONGEST_REASON)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A commit that is in no repository.
    const NONE: &str = "0000000000000000000000000000000000000000";

    pub(crate) fn branch(name: &str) -> BranchName {
        BranchName::parse(name).unwrap()
    }

    /// Adds a worktree on a branch as a run does.
    pub(crate) fn add_worktree(
        repository: &Path,
        folder: &Path,
        name: &str,
        commit: &CommitId,
    ) -> Result<(), WorktreeError> {
        add(repository, folder, &branch(name), commit, AllowedPrograms::TrustedDrivers)
    }

    pub(crate) fn shell(folder: &Path, line: &str) {
        let outcome = crate::shell(line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {outcome:?}");
    }

    /// A repository with a first commit, and beside it a place for worktrees.
    pub(crate) fn stage() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("main tree");
        std::fs::create_dir(&repository).unwrap();
        shell(
            &repository,
            "git init -q -b main && git config user.name T && git config user.email t@example.invalid && \
             printf '1\\n2\\n3\\n4\\n5\\n' > a.txt && git add -A && git commit -qm First",
        );
        (folder, repository)
    }

    pub(crate) fn commit(folder: &Path, change: &str) -> CommitId {
        shell(folder, &format!("{change} && git add -A && git commit -qm '{}'", change.replace('\'', "")));
        git::head(folder).unwrap()
    }

    #[test]
    fn a_clone_that_lacks_objects_or_history_is_unfit() {
        let (folder, repository) = stage();
        assert_eq!(unfit(&repository), None);
        shell(
            &repository,
            "git config uploadpack.allowFilter true; git commit -q --allow-empty -m Second; \
             git clone -q --no-local --filter=blob:none . ../partial; git clone -q --no-local --depth=1 . ../shallow",
        );
        assert_eq!(unfit(&folder.path().join("partial")), Some(Unfit::Partial));
        assert_eq!(unfit(&folder.path().join("shallow")), Some(Unfit::Shallow));
    }

    #[test]
    fn a_worktree_that_was_left_half_made_is_removed_and_made_again() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add_worktree(&repository, &place, "p/1/1", &first).unwrap();
        let taken = add_worktree(&repository, &place, "p/1/2", &first);
        assert!(matches!(taken, Err(WorktreeError::Refused { .. })), "{taken:?}");
        shell(&repository, "git worktree lock ../one");
        std::fs::remove_dir_all(&place).unwrap();
        remove(&repository, &place).unwrap();
        add_worktree(&repository, &place, "p/1/2", &first).unwrap();
        assert!(place.join("a.txt").exists());
        let unknown =
            add_worktree(&repository, &folder.path().join("two"), "p/1/9", &CommitId::parse(NONE).unwrap());
        assert!(matches!(unknown, Err(WorktreeError::Refused { .. })), "{unknown:?}");
    }

    #[test]
    fn a_worktree_that_another_git_is_just_making_is_waited_for() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add_worktree(&repository, &place, "p/1/1", &first).unwrap();
        let other = repository.join(".git/worktrees/other");
        std::fs::create_dir(&other).unwrap();
        std::fs::copy(repository.join(".git/worktrees/one/HEAD"), other.join("HEAD")).unwrap();
        let its_place = folder.path().join("other/.git");
        std::fs::write(other.join("gitdir"), format!("{}\n", its_place.display())).unwrap();
        std::fs::write(other.join("commondir"), "").unwrap();
        let arguments = ["worktree", "remove", "--force", "--force", &place.to_string_lossy()];
        let refused = run(&repository, "worktree remove", &arguments);
        assert!(matches!(&refused, Err(failure) if failure.is_beside_half_made), "{refused:?}");
        std::thread::scope(|scope| {
            let removed = scope.spawn(|| remove(&repository, &place));
            sleep(PAUSE * 3);
            std::fs::write(other.join("commondir"), "../..\n").unwrap();
            removed.join().unwrap().unwrap();
        });
        assert!(!place.exists());
    }

    #[test]
    fn what_was_committed_since_a_commit_was_named_is_in_the_branch_that_begins_there() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add_worktree(&repository, &place, "p/1/1", &first).unwrap();
        let later = commit(&place, "sed -i 1s/1/one/ a.txt");
        shell(&place, "sed -i 2s/2/two/ a.txt");
        switch(&place, "p/1/2", &first);
        assert_eq!((git::head(&place), end_of(&place, &branch("p/1/2"))), (Some(later.clone()), Some(later)));
        let text = std::fs::read_to_string(place.join("a.txt")).unwrap();
        assert!(text.starts_with("one\ntwo\n"), "{text}");
        // Work that was put onto others' begins where it was put.
        shell(&place, "git checkout --quiet a.txt");
        let tip = commit(&repository, "sed -i 5s/5/five/ a.txt");
        switch(&place, "p/1/3", &tip);
        assert_eq!(git::head(&place), Some(tip));
    }

    fn switch(place: &Path, name: &str, commit: &CommitId) {
        let file = |name: &str| RepoPath::parse(name).unwrap();
        let plan_files = PlanFiles { plan: Some(file("docs/[plan].md")), item_plan: file("item.md") };
        switch_new(place, &branch(name), commit, &plan_files, AllowedPrograms::TrustedDrivers).unwrap();
    }

    #[test]
    fn whatever_a_session_does_with_the_plan_its_worktree_can_be_switched() {
        let (folder, repository) = stage();
        let first = commit(&repository, "mkdir docs; echo plan > 'docs/[plan].md'; echo p > docs/p.md");
        let tip = commit(&repository, "echo more >> 'docs/[plan].md'; echo other > docs/p.md");
        let own = "echo own > item.md; git add -f item.md; git commit -qm Own; echo more >> item.md;";
        for (number, edit) in [
            "git rm -q --cached item.md",
            "git rm -q --cached item.md; git commit -qm Untracked; git add -f item.md",
            "echo mine >> docs/[[]plan].md",
            "echo mine >> docs/[[]plan].md; git add -A",
            "git update-index --skip-worktree 'docs/[plan].md'; echo mine >> docs/[[]plan].md",
            "git update-index --assume-unchanged 'docs/[plan].md'; echo mine >> docs/[[]plan].md",
            "rm docs/[[]plan].md",
            "git rm -q --cached 'docs/[plan].md'",
            "git rm -q --cached 'docs/[plan].md'; git commit -qm Gone",
            "git rm -q 'docs/[plan].md'; git commit -qm Gone; echo mine > docs/[[]plan].md; git add -A",
            "git mv 'docs/[plan].md' plan.md; git commit -qm Moved; ln -s ../a.txt docs/[[]plan].md",
        ]
        .into_iter()
        .enumerate()
        {
            let place = folder.path().join(number.to_string());
            add_worktree(&repository, &place, &format!("p/{number}/1"), &first).unwrap();
            shell(&place, &format!("{own} {edit}"));
            switch(&place, &format!("p/{number}/2"), &tip);
            let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
            assert_eq!(git::head(&place).as_ref(), Some(&tip), "{edit}");
            assert_eq!(read("item.md"), "own\nmore\n", "{edit}");
            // What a session hides from git stays hidden: it blocks nothing.
            let is_hidden = edit.contains("skip-worktree");
            assert!(is_hidden || read("docs/[plan].md") == "plan\nmore\n", "{edit}");
            assert_eq!(read("docs/p.md"), "other\n", "{edit}");
        }
    }
}
