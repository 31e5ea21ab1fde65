//! Where the results of a parallel run are merged and verified: a repository of ours with one working tree, outside of everything
//! that a session may write. What is verified there is what a clone of the merged branch would have.

use crate::Outcome;
use crate::child::{self, Terms};
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::own_repository::{OwnRepository, OwnRepositoryError};
use crate::worktree::{Rebased, WorktreeError, clear_locks_of, said};
use plimsoll_domain::digest::sha256;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::text::clip;
use plimsoll_store::{Durability, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
#[cfg(test)]
use std::time::SystemTime;

/// A checkout of a large repository, with filters.
const CHECKOUT_DEADLINE: Duration = Duration::from_secs(300);
/// As many commits as one item has.
const REBASE_DEADLINE: Duration = Duration::from_secs(300);
/// Questions to our own repository.
const QUESTION_DEADLINE: Duration = Duration::from_secs(60);
/// A git-lfs pointer has some 130 bytes.
const MAX_POINTER_BYTES: u64 = 300;
/// All small files of a large repository.
const MAX_POINTERS_BYTES: usize = 256 * 1024 * 1024;
/// Where the folder says that `--setup` has run in the working tree.
const READY: &str = "plimsoll-ready";

/// A repository of ours with a working tree.
#[derive(Debug, Clone)]
pub struct MergeRepository {
    own: OwnRepository,
    work_tree: PathBuf,
    allowed: AllowedPrograms,
}

impl MergeRepository {
    /// A working tree for a repository of ours. What an earlier process left in it is taken over.
    pub fn open(
        own: OwnRepository,
        work_tree: &Path,
        allowed: AllowedPrograms,
    ) -> Result<MergeRepository, WorktreeError> {
        let merge = MergeRepository { own, work_tree: work_tree.to_owned(), allowed };
        let failed = |error: StoreError| WorktreeError::Refused { what: "config", why: error.to_string() };
        merge.own.set("core.bare", "false")?;
        disk::create_folder(work_tree).map_err(failed)?;
        // As in the git folder of a worktree: it proves that this working tree belongs to the repository.
        let back = format!("{}\n", work_tree.join(".git").display());
        disk::replace(&merge.own.git_folder().join("gitdir"), back.as_bytes(), Durability::Lazy)
            .map_err(failed)?;
        clear_locks_of(merge.own.git_folder(), work_tree);
        Ok(merge)
    }

    /// The repository without its working tree.
    pub fn own(&self) -> &OwnRepository {
        &self.own
    }

    /// The working tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Whether [`MergeRepository::mark_ready`] was called for this working tree.
    pub fn is_ready(&self) -> bool {
        disk::read_text(&self.own.git_folder().join(READY)).ok().flatten().as_deref()
            == self.work_tree.to_str()
    }

    /// Notes that the working tree needs no more preparation.
    pub fn mark_ready(&self) -> Result<(), StoreError> {
        let words = self.work_tree.to_string_lossy();
        disk::replace(&self.own.git_folder().join(READY), words.as_bytes(), Durability::Lazy)
    }

    /// Removes the working tree, and with `whole` the repository, too.
    pub fn remove(&self, whole: bool) -> Result<(), StoreError> {
        let _ = disk::remove(&self.own.git_folder().join(READY));
        disk::remove_folder(&self.work_tree)?;
        if whole { disk::remove_folder(self.own.git_folder()) } else { Ok(()) }
    }

    /// Checks a commit out. Files that git ignores stay: what `--setup` made is among them.
    pub fn check_out(&self, commit: &CommitId) -> Result<(), WorktreeError> {
        self.abort();
        self.lead_to_repository()?;
        self.bring_large_files(commit);
        self.run("checkout", &["checkout", "--quiet", "--force", "--detach", commit.as_str()])
    }

    /// Verify commands may ask git, which finds the repository by this file. Our own commands do not read it.
    fn lead_to_repository(&self) -> Result<(), WorktreeError> {
        let text = format!("gitdir: {}\n", self.own.git_folder().display());
        let file = self.work_tree.join(".git");
        if disk::read_text(&file).ok().flatten().as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        disk::replace(&file, text.as_bytes(), Durability::Lazy)
            .map_err(|error| WorktreeError::Refused { what: "checkout", why: error.to_string() })
    }

    /// Puts the commits that an end has beyond a commit onto another one.
    pub fn rebase(
        &self,
        end: &CommitId,
        beyond: &CommitId,
        onto: &CommitId,
    ) -> Result<Rebased, WorktreeError> {
        self.check_out(end)?;
        let range = format!("{beyond}..{end}");
        let count = self.read(&["rev-list", "--count", &range, "--"]);
        if !count.succeeded() {
            return Err(WorktreeError::Refused { what: "rev-list", why: said(&count) });
        }
        if git::text(&count) == "0" {
            return Ok(Rebased::Nothing);
        }
        let arguments = [
            "rebase",
            "--quiet",
            "--no-autostash",
            "--no-autosquash",
            "--onto",
            onto.as_str(),
            beyond.as_str(),
        ];
        let outcome = self.write(&arguments, REBASE_DEADLINE);
        if outcome.succeeded() {
            let end = self.head()?;
            return Ok(if end == *onto { Rebased::Nothing } else { Rebased::Onto(end) });
        }
        let files = self.unmerged();
        self.abort();
        if outcome.timed_out {
            return Err(WorktreeError::TookTooLong("rebase"));
        }
        // Without a conflict it is something that no session can repair in its branch.
        if files.is_empty() {
            return Err(WorktreeError::Refused { what: "rebase", why: said(&outcome) });
        }
        Ok(Rebased::Conflict { files, words: said(&outcome) })
    }

    /// The files with conflicts: of each its stages, with the path behind a tab.
    fn unmerged(&self) -> Vec<String> {
        let listed = self.read(&["ls-files", "--unmerged", "-z"]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut files: Vec<String> =
            listed.split('\0').filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect();
        files.dedup();
        files
    }

    /// Ends a rebase that was left in its middle.
    fn abort(&self) {
        let folder = self.own.git_folder();
        if ["rebase-merge", "rebase-apply"].iter().any(|name| disk::exists(&folder.join(name))) {
            let _ = self.write(&["rebase", "--abort"], REBASE_DEADLINE);
        }
    }

    /// The commit that is checked out.
    pub fn head(&self) -> Result<CommitId, WorktreeError> {
        let outcome = self.read(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        CommitId::parse(&git::text(&outcome))
            .map_err(|error| WorktreeError::Refused { what: "rev-parse", why: error.to_string() })
    }

    /// Commits one file as it is in the working tree; returns the new end.
    pub fn commit_file(&self, file: &RepoPath, message: &str) -> Result<CommitId, WorktreeError> {
        let file = file.pathspec();
        self.run("commit", &["commit", "--quiet", "-m", message, "--only", "--", &file])?;
        self.head()
    }

    /// Adds one file as it is in the working tree to the commit that is checked out, with another message; returns the new end.
    pub fn amend_with_file(&self, file: &RepoPath, message: &str) -> Result<CommitId, WorktreeError> {
        let file = file.pathspec();
        let arguments =
            ["commit", "--quiet", "--amend", "--cleanup=whitespace", "-m", message, "--only", "--", &file];
        self.run("commit", &arguments)?;
        self.head()
    }

    /// Returns the files that differ between two commits.
    pub fn changed_files(&self, from: &CommitId, to: &CommitId) -> Vec<String> {
        let question = ["diff", "--name-only", "-z", "--no-renames", from.as_str(), to.as_str(), "--"];
        let listed = self.read(&question).stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The message of the commit that is checked out.
    pub fn message(&self) -> String {
        git::text(&self.read(&[
            "log",
            "-n1",
            "--no-color",
            "--no-show-signature",
            "--format=%B",
            "HEAD",
            "--",
        ]))
    }

    /// The tree of a commit.
    pub fn tree(&self, commit: &CommitId) -> Result<CommitId, WorktreeError> {
        let outcome = self.read(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")]);
        CommitId::parse(&git::text(&outcome))
            .map_err(|error| WorktreeError::Refused { what: "rev-parse", why: error.to_string() })
    }

    /// Gives a commit another message, and the branch's end with it; returns the new end. The tree stays the same, whatever a
    /// verify command has staged.
    pub fn reword(&self, end: &CommitId, message: &str) -> Result<CommitId, WorktreeError> {
        if self.head()? != *end {
            self.check_out(end)?;
        }
        let arguments = [
            "commit",
            "--quiet",
            "--amend",
            "--only",
            "--allow-empty",
            "--cleanup=whitespace",
            "-m",
            message,
        ];
        self.run("commit", &arguments)?;
        let reworded = self.head()?;
        if self.tree(&reworded)? != self.tree(end)? {
            let why = format!("the commit {reworded} has other files than {end}");
            return Err(WorktreeError::Refused { what: "commit", why });
        }
        Ok(reworded)
    }

    /// Whether a commit is another one, or among those before it. A commit that is not there is not.
    pub fn contains(&self, end: &CommitId, commit: &CommitId) -> bool {
        self.own.contains(end, commit)
    }

    /// What differs between two commits, in some files or in all, as text; at most so many characters from its beginning.
    pub fn difference(&self, from: &CommitId, to: &CommitId, files: &[String], most: usize) -> String {
        let question = ["diff", "--no-color", from.as_str(), to.as_str(), "--"];
        let files: Vec<String> = files.iter().map(|file| format!(":(literal){file}")).collect();
        let question: Vec<&str> = question.into_iter().chain(files.iter().map(String::as_str)).collect();
        clip(&String::from_utf8_lossy(&self.read(&question).stdout), most)
    }

    /// Copies the contents of git-lfs files that a commit needs from the clone, each compared with its id: a checkout takes them
    /// from our own folder. What the clone does not have stays a pointer.
    fn bring_large_files(&self, commit: &CommitId) {
        let has_attribute = self.own.ask(&[
            "grep",
            "--quiet",
            "--fixed-strings",
            "filter=lfs",
            commit.as_str(),
            "--",
            ":(glob)**/.gitattributes",
        ]);
        if !has_attribute.succeeded() {
            return;
        }
        for id in self.large_files(commit) {
            let below: PathBuf = ["lfs", "objects", &id[..2], &id[2..4], &id].iter().collect();
            let to = self.own.git_folder().join(&below);
            if disk::exists(&to) {
                continue;
            }
            let bytes = disk::read(&self.own.clone_git().join(&below)).ok().flatten();
            if let Some(bytes) = bytes.filter(|bytes| sha256(&[bytes]) == id) {
                let _ = disk::replace(&to, &bytes, Durability::Lazy);
            }
        }
    }

    /// The ids of the contents to which pointers of a commit lead.
    fn large_files(&self, commit: &CommitId) -> BTreeSet<String> {
        let listed = self.own.ask(&["ls-tree", "-r", "-l", "-z", commit.as_str()]);
        let is_small = |fields: &Vec<&str>| {
            fields
                .get(3)
                .and_then(|size| size.parse::<u64>().ok())
                .is_some_and(|size| size <= MAX_POINTER_BYTES)
        };
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        // `100644 blob ID    SIZE`, a tab, the path.
        let entries = listed.split('\0').filter_map(|entry| entry.split_once('\t'));
        let blobs = entries.map(|(entry, _)| entry.split_whitespace().collect::<Vec<_>>()).filter(is_small);
        let ids: Vec<String> = blobs.filter_map(|fields| fields.get(2).map(|id| (*id).to_owned())).collect();
        let input = Some((ids.join("\n") + "\n").into_bytes());
        let command =
            git::own_command(Some(self.own.git_folder()), self.own.git_folder(), &["cat-file", "--batch"]);
        let terms = Terms { input, most_output: MAX_POINTERS_BYTES, ..Terms::within(QUESTION_DEADLINE) };
        let contents = String::from_utf8_lossy(&child::run(command, terms).stdout).into_owned();
        let pointers = contents.lines().filter_map(|line| line.strip_prefix("oid sha256:"));
        let is_id = |id: &&str| id.len() == 64 && CommitId::parse(id).is_ok();
        pointers.filter(is_id).map(str::to_owned).collect()
    }

    fn run(&self, what: &'static str, arguments: &[&str]) -> Result<(), WorktreeError> {
        let outcome = self.write(arguments, CHECKOUT_DEADLINE);
        match () {
            () if outcome.succeeded() => Ok(()),
            () if outcome.timed_out => Err(WorktreeError::TookTooLong(what)),
            () => Err(WorktreeError::Refused { what, why: said(&outcome) }),
        }
    }

    fn write(&self, arguments: &[&str], deadline: Duration) -> Outcome {
        // The git folder of a linked worktree, or a separate one, says nothing of where the project's files are.
        let places = [self.work_tree.as_path(), self.own.clone_git(), self.own.clone_root()];
        match GitWriter::for_own_repository(self.own.git_folder(), &self.work_tree, &places, self.allowed) {
            Ok(writer) => writer.run(arguments, deadline),
            Err(outcome) => git::not_started(&outcome),
        }
    }

    fn read(&self, arguments: &[&str]) -> Outcome {
        let command = git::own_reading_command(self.own.git_folder(), &self.work_tree, arguments);
        child::run(command, Terms::within(QUESTION_DEADLINE))
    }
}

impl From<OwnRepositoryError> for WorktreeError {
    fn from(error: OwnRepositoryError) -> WorktreeError {
        WorktreeError::Refused { what: "fetch", why: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, branch, commit, shell, stage};
    use crate::worktree::{end_of, move_branch};

    /// A repository with a first commit, and a repository of ours that was copied from it.
    fn merge_stage() -> (tempfile::TempDir, PathBuf, MergeRepository, CommitId) {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let merge = open(&folder, &repository);
        merge.check_out(&first).unwrap();
        (folder, repository, merge, first)
    }

    fn open(folder: &tempfile::TempDir, repository: &Path) -> MergeRepository {
        let own = OwnRepository::open(repository, &folder.path().join("merge.git")).unwrap();
        MergeRepository::open(own, &folder.path().join("merge"), AllowedPrograms::TrustedDrivers).unwrap()
    }

    /// Commits in a worktree of its own, and takes the commit over.
    fn work(
        stage: &(tempfile::TempDir, PathBuf, MergeRepository, CommitId),
        name: &str,
        change: &str,
    ) -> CommitId {
        let (folder, repository, merge, first) = stage;
        let place = folder.path().join(name);
        if !place.exists() {
            add_worktree(repository, &place, &format!("p/{name}/1"), first).unwrap();
        }
        let made = commit(&place, change);
        merge.own().take(&made).unwrap();
        made
    }

    fn onto(rebased: Result<Rebased, WorktreeError>) -> CommitId {
        match rebased {
            Ok(Rebased::Onto(end)) => end,
            other => panic!("{other:?}"),
        }
    }

    fn text(merge: &MergeRepository, file: &str) -> String {
        std::fs::read_to_string(merge.work_tree().join(file)).unwrap()
    }

    #[test]
    fn two_branches_are_merged_one_after_the_other_and_nothing_of_the_users_moves() {
        let stage = merge_stage();
        let one = work(&stage, "one", "sed -i 1s/1/one/ a.txt");
        let two = work(&stage, "two", "sed -i 5s/5/five/ a.txt");
        let (_folder, repository, merge, first) = &stage;
        std::fs::write(repository.join("a.txt"), "the user's\n").unwrap();
        let one = onto(merge.rebase(&one, first, first));
        let both = onto(merge.rebase(&two, first, &one));
        assert_eq!(text(merge, "a.txt"), "one\n2\n3\n4\nfive\n");
        let target = branch("plimsoll/p");
        assert!(!move_branch(repository, &target, None, &both), "the clone does not have it yet");
        merge.own().give(&both).unwrap();
        assert!(move_branch(repository, &target, None, &one));
        assert!(!move_branch(repository, &target, None, &both), "it is there by now");
        assert!(!move_branch(repository, &target, Some(first), &both), "it has moved");
        assert!(move_branch(repository, &target, Some(&one), &both));
        assert_eq!(end_of(repository, &target), Some(both.clone()));
        assert!(merge.contains(&both, &one) && !merge.contains(&one, &both));
        assert_eq!(merge.rebase(&one, first, &both).unwrap(), Rebased::Nothing, "it is in already");
        assert_eq!(merge.rebase(&one, &one, &both).unwrap(), Rebased::Nothing, "it has nothing");
        assert_eq!(std::fs::read_to_string(repository.join("a.txt")).unwrap(), "the user's\n");
        assert_eq!(git::head(repository).as_ref(), Some(first));
        merge.own().check_clone_since(SystemTime::UNIX_EPOCH).unwrap();
        merge.remove(true).unwrap();
        assert!(!merge.work_tree().exists() && !merge.own().git_folder().exists());
    }

    #[test]
    fn what_conflicts_is_named_and_leaves_nothing_behind() {
        let stage = merge_stage();
        work(&stage, "one", "sed -i 1s/1/one/ a.txt");
        let end = work(&stage, "one", "sed -i 2s/2/two/ a.txt");
        let tip = work(&stage, "tip", "sed -i 2s/2/zwei/ a.txt");
        let (folder, repository, merge, first) = &stage;
        let found = merge.rebase(&end, first, &tip).unwrap();
        assert!(
            matches!(&found, Rebased::Conflict { files, words } if files == &["a.txt"] && words.contains("a.txt")),
            "{found:?}"
        );
        // Whatever a kill leaves in the middle of one, the next begins anew.
        let line = format!("git checkout -q {end} && git rebase -q --onto {tip} {first}");
        let killed = crate::shell(&line, merge.work_tree(), Duration::from_secs(20));
        assert!(!killed.succeeded());
        std::fs::write(merge.own().git_folder().join("index.lock"), "half").unwrap();
        let merge = open(folder, repository);
        assert_eq!(merge.rebase(&end, first, &tip).unwrap(), found);
        let status = crate::shell("git status --porcelain", merge.work_tree(), Duration::from_secs(20));
        assert!(status.stdout.is_empty(), "{status:?}");
    }

    /// What a session can write into the clone's `.git`, and what it would change about what is merged.
    #[test]
    fn nothing_that_a_session_writes_into_the_clone_changes_what_is_merged() {
        let stage = merge_stage();
        let safe = work(&stage, "safe", "printf 'SAFE\\n' > code.txt");
        let evil = work(&stage, "evil", "printf 'EVIL\\n' > code.txt");
        let (_folder, repository, merge, first) = &stage;
        // Replaced objects.
        shell(
            repository,
            &format!(
                "git replace {evil}:code.txt {safe}:code.txt 2>/dev/null || git replace $(git rev-parse {evil}:code.txt) $(git rev-parse {safe}:code.txt)"
            ),
        );
        onto(merge.rebase(&evil, first, first));
        assert_eq!(text(merge, "code.txt"), "EVIL\n");
        // Attributes beside the commit, recorded resolutions, and a merge driver.
        shell(
            repository,
            "echo '* merge=union' > .git/info/attributes; mkdir -p .git/rr-cache; git config rerere.enabled true; git config merge.union.driver true",
        );
        let left = work(&stage, "left", "sed -i 3s/3/left/ a.txt");
        let right = work(&stage, "right", "sed -i 3s/3/right/ a.txt");
        let left = onto(merge.rebase(&left, first, first));
        let merged = merge.rebase(&right, first, &left).unwrap();
        assert!(matches!(&merged, Rebased::Conflict { files, .. } if files == &["a.txt"]), "{merged:?}");
        // A history that is cut off.
        let whole = work(&stage, "whole", "echo more >> a.txt");
        shell(repository, &format!("echo {whole} > .git/info/grafts; echo {whole} > .git/shallow"));
        let beyond = work(&stage, "whole", "echo most >> a.txt");
        assert!(merge.contains(&beyond, first), "its parents are there");
        shell(repository, "rm .git/info/grafts .git/shallow");
    }

    #[test]
    fn an_object_with_another_content_is_neither_merged_nor_overlooked() {
        let began = SystemTime::now() - Duration::from_secs(2);
        let stage = merge_stage();
        let (folder, repository, merge, first) = &stage;
        let place = folder.path().join("one");
        add_worktree(repository, &place, "p/one/1", first).unwrap();
        let made = commit(&place, "echo new > new.txt");
        merge.own().check_clone_since(began).unwrap();
        // The content of another object, under the id of the new file.
        let swap = |of: &str, by: &str| {
            let path = |id: &str| format!(".git/objects/{}/{}", &id[..2], &id[2..]);
            let id = |name: &str| {
                let outcome =
                    crate::shell(&format!("git rev-parse {name}"), repository, Duration::from_secs(20));
                String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
            };
            let (of, by) = (path(&id(of)), path(&id(by)));
            shell(repository, &format!("rm -f {of} && cp {by} {of}"));
        };
        swap(&format!("{made}:new.txt"), &format!("{first}:a.txt"));
        let refused = merge.own().take(&made);
        assert!(matches!(&refused, Err(OwnRepositoryError::BadCommit { .. })), "{refused:?}");
        let checked = merge.own().check_clone_since(began);
        assert!(matches!(&checked, Err(OwnRepositoryError::Damaged(_))), "{checked:?}");
    }

    #[test]
    fn a_list_of_objects_with_a_wrong_place_is_not_believed() {
        let began = SystemTime::now() - Duration::from_secs(2);
        let stage = merge_stage();
        work(&stage, "one", "echo new > new.txt");
        let (_folder, repository, merge, _first) = &stage;
        shell(repository, "git -c core.multiPackIndex=true repack -qad && git multi-pack-index write");
        merge.own().check_clone_since(began).unwrap();
        // The last bytes of the list are places of objects, and its checksum. No place in this small pack has this byte.
        shell(
            repository,
            "f=.git/objects/pack/multi-pack-index; chmod +w $f; s=$(stat -c %s $f); printf '\\377' | dd of=$f bs=1 seek=$((s-22)) conv=notrunc 2>/dev/null",
        );
        let checked = merge.own().check_clone_since(began);
        assert!(matches!(&checked, Err(OwnRepositoryError::Damaged(_))), "{checked:?}");
    }

    #[test]
    fn a_branch_that_is_a_name_for_another_moves_no_other() {
        let stage = merge_stage();
        let made = work(&stage, "one", "echo new > new.txt");
        let (_folder, repository, merge, first) = &stage;
        shell(repository, "git symbolic-ref refs/heads/plimsoll/p refs/heads/main");
        merge.own().give(&made).unwrap();
        move_branch(repository, &branch("plimsoll/p"), Some(first), &made);
        assert_eq!(git::commit(repository, "refs/heads/main").as_ref(), Some(first));
    }

    #[test]
    fn a_hook_or_a_filter_of_the_project_does_not_run_and_git_lfs_works() {
        let (folder, repository) = stage();
        let log = folder.path().join("ran");
        // A program outside of the project that keeps contents as git-lfs does.
        let program = folder.path().join("git-lfs");
        let script = "#!/bin/sh\nstore=$(git rev-parse --git-common-dir)/lfs/objects\nif [ $1 = clean ]; then t=$(mktemp); cat > $t; if grep -q ^oid $t; then cat $t; exit; fi; \
            o=$(sha256sum $t | cut -c1-64); mkdir -p $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4); \
            cp $t $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4)/$o; \
            printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $o $(wc -c < $t); \
            else p=$(cat); o=$(echo \"$p\" | sed -n 's/^oid sha256://p'); \
            cat $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4)/$o 2>/dev/null || echo \"$p\"; fi\n";
        std::fs::write(&program, script).unwrap();
        shell(folder.path(), "chmod +x git-lfs");
        shell(
            &repository,
            &format!(
                "git config filter.lfs.clean '{0} clean'; git config filter.lfs.smudge '{0} smudge'; git config filter.lfs.required true; \
                 git config filter.own.smudge 'sh tools/smudge.sh'; mkdir tools; printf 'touch {1}; cat\\n' > tools/smudge.sh; \
                 printf '*.bin filter=lfs\\n*.own filter=own\\n' > .gitattributes; printf 'large\\n' > a.bin; echo own > b.own; \
                 for hook in pre-rebase post-checkout pre-commit reference-transaction; do \
                 printf '#!/bin/sh\\ntouch {1}; exit 1\\n' > .git/hooks/$hook; done; \
                 git add -A && git commit -qm Large && chmod +x .git/hooks/*; rm -f {1}",
                program.display(),
                log.display()
            ),
        );
        let first = git::head(&repository).unwrap();
        let merge = open(&folder, &repository);
        merge.check_out(&first).unwrap();
        assert_eq!(
            (text(&merge, "a.bin"), text(&merge, "b.own")),
            ("large\n".to_owned(), "own\n".to_owned())
        );
        // A content that is not what its id says is not taken.
        let place = folder.path().join("one");
        add_worktree(&repository, &place, "p/one/1", &first).unwrap();
        shell(&place, "echo larger > a.bin && git -c core.hooksPath=/dev/null commit -qam Larger");
        shell(&repository, "for file in .git/lfs/objects/*/*/*; do echo EVIL > $file; done");
        let larger = git::head(&place).unwrap();
        merge.own().take(&larger).unwrap();
        onto(merge.rebase(&larger, &git::parent(&place, &larger).unwrap(), &first).map(
            |rebased| match rebased {
                // It begins at the target's end.
                Rebased::Nothing => Rebased::Onto(larger.clone()),
                other => other,
            },
        ));
        assert!(text(&merge, "a.bin").starts_with("version https://git-lfs"), "{}", text(&merge, "a.bin"));
        assert!(!log.exists(), "a hook or a filter of the project ran");
    }

    #[test]
    fn a_program_of_a_project_apart_from_its_git_folder_does_not_run() {
        let (folder, repository) = stage();
        let log = folder.path().join("ran");
        shell(&repository, "mkdir tools; echo '*.own filter=own' > .gitattributes; echo own > b.own");
        std::fs::write(
            repository.join("tools/smudge.sh"),
            format!("#!/bin/sh\necho $0 >> {}\ncat\n", log.display()),
        )
        .unwrap();
        shell(&repository, "chmod +x tools/smudge.sh; git add -A; git commit -qm Tools");
        shell(&repository, "git worktree add -q ../linked");
        shell(folder.path(), "git clone -q --separate-git-dir apart.git 'main tree' apart 2>&1");
        for name in ["linked", "apart"] {
            let project = folder.path().join(name);
            let program = project.join("tools/smudge.sh").display().to_string();
            shell(
                &project,
                &format!("git config filter.own.smudge {program}; git config filter.own.required true"),
            );
            let own =
                OwnRepository::open(&project, &folder.path().join(format!("{name}.merge.git"))).unwrap();
            let tree = folder.path().join(format!("{name}.merge"));
            let merge = MergeRepository::open(own, &tree, AllowedPrograms::TrustedDrivers).unwrap();
            merge.check_out(&git::head(&project).unwrap()).unwrap();
            assert_eq!(text(&merge, "b.own"), "own\n", "{name}");
            assert!(!log.exists(), "{name}: a filter of the project ran");
        }
    }

    #[test]
    fn the_difference_in_a_file_is_found_whatever_its_name_means_to_git() {
        let stage = merge_stage();
        let (_folder, _repository, merge, first) = &stage;
        let end = work(&stage, "one", "echo magic > ':!a.txt'; echo other > b.txt");
        let difference = merge.difference(first, &end, &[":!a.txt".to_owned()], 10_000);
        assert!(difference.contains("+magic") && !difference.contains("+other"), "{difference}");
    }

    #[test]
    fn a_copy_that_a_kill_has_left_is_made_again_and_settings_are_taken_over() {
        let (folder, repository) = stage();
        shell(
            &repository,
            "git config core.autocrlf input; git config include.path ../included; git config core.fsmonitor ./x",
        );
        shell(
            &repository,
            "git config -f included user.name Evil; mkdir -p .git/git-crypt/keys/default; echo key > .git/git-crypt/keys/default/0",
        );
        std::fs::create_dir_all(folder.path().join("merge.draft/objects")).unwrap();
        let merge = open(&folder, &repository);
        let setting = |name: &str| git::text(&merge.own().ask(&["config", "--local", name]));
        assert_eq!(
            (setting("core.autocrlf"), setting("user.name"), setting("core.fsmonitor")),
            ("input".into(), "T".into(), String::new())
        );
        let key = merge.own().git_folder().join("git-crypt/keys/default/0");
        assert_eq!(std::fs::read_to_string(key).unwrap(), "key\n");
        assert!(!merge.own().git_folder().join("objects/info/alternates").exists());
        assert!(!merge.is_ready());
        merge.mark_ready().unwrap();
        assert!(open(&folder, &repository).is_ready());
    }

    #[test]
    fn the_file_that_leads_to_the_repository_decides_nothing_for_us() {
        let stage = merge_stage();
        let end = work(&stage, "one", "echo new > new.txt");
        let (folder, _, merge, first) = &stage;
        let other = folder.path().join("other");
        std::fs::create_dir(&other).unwrap();
        shell(&other, "git init -q .");
        std::fs::write(merge.work_tree().join(".git"), format!("gitdir: {}/.git\n", other.display()))
            .unwrap();
        onto(merge.rebase(&end, first, first).map(|rebased| match rebased {
            Rebased::Nothing => Rebased::Onto(end.clone()),
            other => other,
        }));
        assert!(merge.work_tree().join("new.txt").exists());
        let leads = std::fs::read_to_string(merge.work_tree().join(".git")).unwrap();
        assert!(leads.contains("merge.git"), "{leads}");
    }
}
