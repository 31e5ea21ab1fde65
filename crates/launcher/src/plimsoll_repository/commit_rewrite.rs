//! Rewrites commits so that they do not change certain files. A session may commit its copy of the plan together
//! with its work: the work is merged, but only the merger may change the plan.

use super::{PlimsollRepository, PlimsollRepositoryError, error_message};
use crate::CommandOutcome;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use std::collections::HashMap;

/// The entry of a tree at a path: mode, type and id, as `git ls-tree` prints them. `None` if there is no
/// entry.
type TreeEntry = Option<Vec<u8>>;

/// The commit that replaces an original commit, which may be the original itself.
#[derive(Debug, Clone)]
struct RewrittenCommit {
    id: CommitId,
    /// The tree of the original commit, and that of the rewritten one.
    original_tree: String,
    rewritten_tree: String,
}

impl PlimsollRepository {
    /// Rewrites the commits in `base..tip` so that each of them contains `files` as they are in `base`, and returns
    /// the new tip. Authors, dates and messages are preserved; signatures are removed. A commit that changes only
    /// these files is dropped. If no commit changes them, returns `tip`.
    ///
    /// A merge driver that ignores these files during a rebase would not be enough: git runs it only for files
    /// that both sides changed, and not for a file that one side removed.
    pub fn rewrite_commits_without_changes_to_files(
        &self,
        base: &CommitId,
        tip: &CommitId,
        files: &[RepoPath],
    ) -> Result<CommitId, PlimsollRepositoryError> {
        let mut base_entries: Vec<(&RepoPath, TreeEntry)> = Vec::new();
        for file in files {
            base_entries.push((file, self.tree_entry_of_file(base, file)?));
        }
        if !self.range_or_tip_changes_files(base, tip, &base_entries)? {
            return Ok(tip.clone());
        }
        let mut rewritten_by_id: HashMap<String, RewrittenCommit> = HashMap::new();
        let commit_range = format!("{base}..{tip}");
        let output = self.run_git_or_bad_commit_error(
            tip,
            &["rev-list", "--reverse", "--topo-order", &commit_range, "--"],
            None,
        )?;
        for id in String::from_utf8_lossy(&output).lines() {
            let rewritten_commit =
                self.rewrite_commit_or_drop_if_emptied(id, &base_entries, &rewritten_by_id, tip)?;
            rewritten_by_id.insert(id.to_owned(), rewritten_commit);
        }
        Ok(rewritten_by_id
            .remove(tip.as_str())
            .map_or_else(|| base.clone(), |rewritten_commit| rewritten_commit.id))
    }

    fn range_or_tip_changes_files(
        &self,
        base: &CommitId,
        tip: &CommitId,
        base_entries: &[(&RepoPath, TreeEntry)],
    ) -> Result<bool, PlimsollRepositoryError> {
        let commit_range = format!("{base}..{tip}");
        let pathspecs: Vec<String> =
            base_entries.iter().map(|(file, _)| file.to_literal_pathspec()).collect();
        let arguments = ["rev-list", "-n1", "--full-history", &commit_range, "--"];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(pathspecs.iter().map(String::as_str)).collect();
        if !self.run_git_or_bad_commit_error(tip, &arguments, None)?.is_empty() {
            return Ok(true);
        }
        for (file, entry) in base_entries {
            if self.tree_entry_of_file(tip, file)? != *entry {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn rewrite_commit_or_drop_if_emptied(
        &self,
        id: &str,
        base_entries: &[(&RepoPath, TreeEntry)],
        rewritten_by_id: &HashMap<String, RewrittenCommit>,
        tip_for_errors: &CommitId,
    ) -> Result<RewrittenCommit, PlimsollRepositoryError> {
        let commit_object =
            self.run_git_or_bad_commit_error(tip_for_errors, &["cat-file", "commit", id], None)?;
        let parsed_commit = ParsedCommit::parse_without_signatures(&commit_object);
        let parents: Vec<RewrittenCommit> = parsed_commit
            .parents
            .iter()
            .map(|parent| self.rewritten_or_unchanged_parent(parent, rewritten_by_id, tip_for_errors))
            .collect::<Result<_, _>>()?;
        let mut tree = parsed_commit.tree.clone();
        for (file, entry) in base_entries {
            let path_parts: Vec<&str> = file.as_str().split('/').collect();
            tree = self.write_tree_with_replaced_or_removed_entry(
                &tree,
                &path_parts,
                entry.as_deref(),
                tip_for_errors,
            )?;
        }
        if let [parent] = &parents[..]
            && tree == parent.rewritten_tree
            && parsed_commit.tree != parent.original_tree
        {
            return Ok(RewrittenCommit { original_tree: parsed_commit.tree, ..parent.clone() });
        }
        let has_same_parents =
            parents.iter().map(|parent| parent.id.as_str()).eq(parsed_commit.parents.iter());
        let rewritten_id = if tree == parsed_commit.tree && has_same_parents {
            self.parse_commit_id(id, tip_for_errors)?
        } else {
            let new_commit_object =
                parsed_commit.to_commit_object(&tree, parents.iter().map(|parent| parent.id.as_str()));
            let output = self.run_git_or_bad_commit_error(
                tip_for_errors,
                &["hash-object", "-t", "commit", "-w", "--stdin"],
                Some(new_commit_object),
            )?;
            self.parse_commit_id(String::from_utf8_lossy(&output).trim(), tip_for_errors)?
        };
        Ok(RewrittenCommit { id: rewritten_id, original_tree: parsed_commit.tree, rewritten_tree: tree })
    }

    /// Returns the rewritten commit of a parent, or the unchanged parent if it is outside the range.
    fn rewritten_or_unchanged_parent(
        &self,
        id: &str,
        rewritten_by_id: &HashMap<String, RewrittenCommit>,
        tip_for_errors: &CommitId,
    ) -> Result<RewrittenCommit, PlimsollRepositoryError> {
        if let Some(rewritten_commit) = rewritten_by_id.get(id) {
            return Ok(rewritten_commit.clone());
        }
        let parent_id = self.parse_commit_id(id, tip_for_errors)?;
        let output = self.run_git_or_bad_commit_error(
            tip_for_errors,
            &["rev-parse", "--verify", "--quiet", &format!("{id}^{{tree}}")],
            None,
        )?;
        let tree = String::from_utf8_lossy(&output).trim().to_owned();
        Ok(RewrittenCommit { id: parent_id, original_tree: tree.clone(), rewritten_tree: tree })
    }

    fn tree_entry_of_file(
        &self,
        commit: &CommitId,
        file: &RepoPath,
    ) -> Result<TreeEntry, PlimsollRepositoryError> {
        let output = self.run_git_or_bad_commit_error(
            commit,
            &["ls-tree", "-z", commit.as_str(), "--", &file.to_literal_pathspec()],
            None,
        )?;
        Ok(TreeLine::parse_lines(&output).next().map(|line| line.entry.to_vec()))
    }

    /// Writes a copy of `tree` in which the path has this entry (`None` removes it) and returns the new tree's id.
    /// If a parent in the path is not a folder, returns `tree` unchanged; the rebase handles that case.
    fn write_tree_with_replaced_or_removed_entry(
        &self,
        tree: &str,
        path_parts: &[&str],
        entry: Option<&[u8]>,
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        let output = self.run_git_or_bad_commit_error(tip_for_errors, &["ls-tree", "-z", tree], None)?;
        let Some((name, remaining_parts)) = path_parts.split_first() else { return Ok(tree.to_owned()) };
        let existing_line = TreeLine::parse_lines(&output).find(|line| line.name == name.as_bytes());
        let new_entry: TreeEntry = if remaining_parts.is_empty() {
            entry.map(<[u8]>::to_vec)
        } else {
            let subtree = match existing_line.as_ref().map(TreeLine::subtree_id) {
                Some(None) => return Ok(tree.to_owned()),
                Some(Some(subtree)) => subtree,
                None if entry.is_none() => return Ok(tree.to_owned()),
                None => self.write_tree(Vec::new(), tip_for_errors)?,
            };
            let new_subtree = self.write_tree_with_replaced_or_removed_entry(
                &subtree,
                remaining_parts,
                entry,
                tip_for_errors,
            )?;
            let is_subtree_empty = new_subtree == self.write_tree(Vec::new(), tip_for_errors)?;
            (!is_subtree_empty).then(|| format!("040000 tree {new_subtree}").into_bytes())
        };
        if existing_line.map(|line| line.entry.to_vec()) == new_entry {
            return Ok(tree.to_owned());
        }
        let other_lines = TreeLine::parse_lines(&output).filter(|line| line.name != name.as_bytes());
        let other_entries = other_lines.map(|line| (line.entry, line.name));
        let new_entry = new_entry.as_deref().map(|entry| (entry, name.as_bytes()));
        let lines =
            other_entries.chain(new_entry).flat_map(|(entry, name)| [entry, b"\t", name, b"\0"].concat());
        self.write_tree(lines.collect(), tip_for_errors)
    }

    fn write_tree(
        &self,
        lines: Vec<u8>,
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        let output = self.run_git_or_bad_commit_error(tip_for_errors, &["mktree", "-z"], Some(lines))?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    fn parse_commit_id(
        &self,
        id: &str,
        tip_for_errors: &CommitId,
    ) -> Result<CommitId, PlimsollRepositoryError> {
        CommitId::parse(id).map_err(|error| PlimsollRepositoryError::BadCommit {
            commit: tip_for_errors.clone(),
            reason: error.to_string(),
        })
    }

    /// Runs git and returns its standard output. If git fails, the error names `commit_for_errors`.
    fn run_git_or_bad_commit_error(
        &self,
        commit_for_errors: &CommitId,
        arguments: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, PlimsollRepositoryError> {
        let outcome: CommandOutcome = self.run_offline_git_with_input(arguments, input);
        if outcome.succeeded() {
            return Ok(outcome.stdout);
        }
        Err(PlimsollRepositoryError::BadCommit {
            commit: commit_for_errors.clone(),
            reason: error_message(&outcome),
        })
    }
}

/// A line of `git ls-tree -z`.
struct TreeLine<'a> {
    entry: &'a [u8],
    name: &'a [u8],
}

impl TreeLine<'_> {
    fn parse_lines(output: &[u8]) -> impl Iterator<Item = TreeLine<'_>> {
        output.split(|byte| *byte == 0).filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some(TreeLine { entry: &line[..tab], name: &line[tab + 1..] })
        })
    }

    /// Returns the tree id of a folder; `None` for other entries.
    fn subtree_id(&self) -> Option<String> {
        let entry = String::from_utf8_lossy(self.entry).into_owned();
        entry.strip_prefix("040000 tree ").map(str::to_owned)
    }
}

/// The header lines and the message of a commit, without signatures.
struct ParsedCommit<'a> {
    tree: String,
    parents: Vec<String>,
    /// The author, committer and encoding lines, an empty line, and the message.
    other_lines: Vec<&'a [u8]>,
}

impl ParsedCommit<'_> {
    fn parse_without_signatures(commit_object: &[u8]) -> ParsedCommit<'_> {
        let mut parsed_commit =
            ParsedCommit { tree: String::new(), parents: Vec::new(), other_lines: Vec::new() };
        let mut is_in_message = false;
        let mut is_signature_line = false;
        for line in commit_object.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches('\n');
            if is_in_message {
                parsed_commit.other_lines.push(line);
            } else if text.is_empty() {
                is_in_message = true;
                parsed_commit.other_lines.push(line);
            } else if let Some(tree) = text.strip_prefix("tree ") {
                parsed_commit.tree = tree.to_owned();
            } else if let Some(parent) = text.strip_prefix("parent ") {
                parsed_commit.parents.push(parent.to_owned());
            } else {
                // A signature is valid only for the original commit. A line that begins with a space
                // continues the one above it.
                let is_continuation = text.starts_with(' ');
                is_signature_line = (is_continuation && is_signature_line)
                    || text.starts_with("gpgsig")
                    || text.starts_with("mergetag ");
                if !is_signature_line {
                    parsed_commit.other_lines.push(line);
                }
            }
        }
        parsed_commit
    }

    /// Returns the commit object with another tree and other parents.
    fn to_commit_object<'p>(&self, tree: &str, parents: impl Iterator<Item = &'p str>) -> Vec<u8> {
        let mut commit_object = format!("tree {tree}\n").into_bytes();
        parents.for_each(|parent| commit_object.extend(format!("parent {parent}\n").into_bytes()));
        self.other_lines.iter().for_each(|line| commit_object.extend_from_slice(line));
        commit_object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git;
    use crate::worktree::tests::{commit_change, create_repository, run_shell};
    use std::path::PathBuf;

    fn open_plimsoll_repository(
        folder: &tempfile::TempDir,
        repository: &std::path::Path,
    ) -> PlimsollRepository {
        PlimsollRepository::open_or_copy_from_clone(repository, &folder.path().join("own.git")).unwrap()
    }

    fn repo_paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| RepoPath::parse(name).unwrap()).collect()
    }

    fn create_repository_with_plan() -> (tempfile::TempDir, PathBuf, CommitId) {
        let (folder, repository) = create_repository();
        let base = commit_change(
            &repository,
            "mkdir -p docs/old; echo plan > 'docs/old/[plan].md'; echo p > docs/old/p.md",
        );
        (folder, repository, base)
    }

    const PLAN_FILES: [&str; 2] = ["docs/old/[plan].md", "item.md"];

    #[test]
    fn rewritten_commits_keep_their_work_and_message_but_not_the_plan() {
        let (folder, repository, base) = create_repository_with_plan();
        commit_change(&repository, "echo tick >> 'docs/old/[plan].md'; echo own > item.md");
        run_shell(&repository, "git commit -q --allow-empty -m Nothing");
        run_shell(
            &repository,
            "echo one >> a.txt; git rm -q 'docs/old/[plan].md'; git add -A; \
             GIT_AUTHOR_NAME='Ünï' GIT_AUTHOR_DATE='2001-02-03T04:05:06+0700' git commit -qm 'Subject\n\nBody: \"x\"\n'",
        );
        commit_change(&repository, "git rm -qr docs; echo docs > docs; echo two >> a.txt");
        let tip = commit_change(&repository, "git rm -q docs; mkdir new; git mv a.txt new/a.txt");
        let plimsoll_repository = open_plimsoll_repository(&folder, &repository);
        plimsoll_repository.fetch_and_verify_commit_from_clone(&tip).unwrap();
        let rewritten_tip = plimsoll_repository
            .rewrite_commits_without_changes_to_files(&base, &tip, &repo_paths(&PLAN_FILES))
            .unwrap();
        let run_query = |arguments: &[&str]| {
            String::from_utf8_lossy(&plimsoll_repository.run_offline_git(arguments).stdout).into_owned()
        };
        let plan_entries =
            |commit: &CommitId| run_query(&["ls-tree", "-r", commit.as_str(), "--", "docs/old"]);
        let plan = run_query(&["ls-tree", base.as_str(), "--", ":(literal)docs/old/[plan].md"]);
        assert_eq!(plan_entries(&rewritten_tip), plan, "what the session removed beside it stays removed");
        assert_eq!(run_query(&["show", &format!("{rewritten_tip}:new/a.txt")]), "1\n2\n3\n4\n5\none\ntwo\n");
        let format_log =
            |from: &CommitId| run_query(&["log", "--format=%an|%aI|%cn|%cI|%B", &format!("{base}..{from}")]);
        let relevant_lines = |log: String| {
            let is_kept = |line: &&str| !line.is_empty() && !line.contains("echo tick");
            log.lines().filter(is_kept).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(
            format_log(&tip).contains("echo tick") && !format_log(&rewritten_tip).contains("echo tick"),
            "{}",
            format_log(&rewritten_tip)
        );
        assert_eq!(relevant_lines(format_log(&rewritten_tip)), relevant_lines(format_log(&tip)));
        assert!(
            format_log(&rewritten_tip).contains("Ünï|2001-02-03T04:05:06+07:00"),
            "{}",
            format_log(&rewritten_tip)
        );
        // Rewriting again gives the same commits, and commits without such a change are unchanged.
        assert_eq!(
            plimsoll_repository
                .rewrite_commits_without_changes_to_files(&base, &tip, &repo_paths(&PLAN_FILES))
                .unwrap(),
            rewritten_tip
        );
        assert_eq!(
            plimsoll_repository
                .rewrite_commits_without_changes_to_files(&base, &rewritten_tip, &repo_paths(&PLAN_FILES))
                .unwrap(),
            rewritten_tip
        );
    }

    #[test]
    fn changes_to_the_plan_do_not_count_as_missing_on_the_target() {
        let (folder, repository, _) = create_repository_with_plan();
        run_shell(&repository, "git switch -qc work");
        let work_commit = commit_change(&repository, "echo x > x.txt; echo mine >> 'docs/old/[plan].md'");
        let later_commit = commit_change(&repository, "echo y > y.txt");
        run_shell(&repository, "git switch -q main");
        // The target's commit contains the same work and a tick in the plan.
        let target = commit_change(&repository, "echo x > x.txt; echo tick >> 'docs/old/[plan].md'");
        let plimsoll_repository = open_plimsoll_repository(&folder, &repository);
        for fetched_commit in [&later_commit, &target] {
            plimsoll_repository.fetch_and_verify_commit_from_clone(fetched_commit).unwrap();
        }
        assert!(plimsoll_repository.target_contains_all_changes_of_commit(
            &target,
            &work_commit,
            &repo_paths(&PLAN_FILES)[..1]
        ));
        assert!(!plimsoll_repository.target_contains_all_changes_of_commit(
            &target,
            &later_commit,
            &repo_paths(&PLAN_FILES)[..1]
        ));
        assert!(!plimsoll_repository.target_contains_all_changes_of_commit(
            &target,
            &work_commit,
            &repo_paths(&PLAN_FILES)[1..]
        ));
    }

    #[test]
    fn merges_are_kept_and_a_range_that_changes_only_the_plan_is_empty() {
        let (folder, repository, base) = create_repository_with_plan();
        let plan_commit = commit_change(&repository, "echo tick >> 'docs/old/[plan].md'");
        run_shell(
            &repository,
            "git switch -qc side; echo side > side.txt; echo side >> 'docs/old/[plan].md'; git add -A; \
             git commit -qm Side; git switch -q main",
        );
        commit_change(&repository, "echo main > main.txt");
        run_shell(&repository, "git merge -q --no-ff -m Merged side");
        let tip = git::head_commit(&repository).unwrap();
        let plimsoll_repository = open_plimsoll_repository(&folder, &repository);
        plimsoll_repository.fetch_and_verify_commit_from_clone(&tip).unwrap();
        assert_eq!(
            plimsoll_repository
                .rewrite_commits_without_changes_to_files(&base, &plan_commit, &repo_paths(&PLAN_FILES))
                .unwrap(),
            base
        );
        let rewritten_tip = plimsoll_repository
            .rewrite_commits_without_changes_to_files(&base, &tip, &repo_paths(&PLAN_FILES))
            .unwrap();
        let merge_count = plimsoll_repository.run_offline_git(&[
            "rev-list",
            "--count",
            "--min-parents=2",
            &format!("{base}..{rewritten_tip}"),
        ]);
        assert_eq!(git::trimmed_stdout(&merge_count), "1");
        let differing_files = plimsoll_repository.run_offline_git(&[
            "diff",
            "--name-only",
            base.as_str(),
            rewritten_tip.as_str(),
        ]);
        assert_eq!(git::trimmed_stdout(&differing_files), "main.txt\nside.txt");
    }
}
