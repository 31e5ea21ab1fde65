//! Rewrites commits so that they do not change certain files. A session may commit its copy of the plan together
//! with its work: the work is merged, but only the merger may change the plan.

use super::{PlimsollRepository, PlimsollRepositoryError, error_message};
use crate::CommandOutcome;
use plimsoll_domain::file_names::is_same_name_ignoring_case;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The entries of a tree by their names: mode, type and id, as `git ls-tree` prints them.
type TreeEntries = BTreeMap<Vec<u8>, Vec<u8>>;

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
    /// A file in another spelling of a path is handled like the path, because a checkout on a volume that ignores case
    /// writes it in place of the file: it is removed, or remains as it is in `base`.
    ///
    /// A merge driver that ignores these files during a rebase would not be enough: git runs it only for files
    /// that both sides changed, and not for a file that one side removed.
    pub fn rewrite_commits_without_changes_to_files(
        &self,
        base: &CommitId,
        tip: &CommitId,
        files: &[RepoPath],
    ) -> Result<CommitId, PlimsollRepositoryError> {
        let base_tree = self.tree_of_commit(base.as_str(), base)?;
        if !self.range_or_tip_changes_files(base, tip, &base_tree, files)? {
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
                self.rewrite_commit_or_drop_if_emptied(id, &base_tree, files, &rewritten_by_id, tip)?;
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
        base_tree: &str,
        files: &[RepoPath],
    ) -> Result<bool, PlimsollRepositoryError> {
        let commit_range = format!("{base}..{tip}");
        let pathspecs: Vec<String> = files.iter().flat_map(RepoPath::to_pathspecs_of_all_spellings).collect();
        let arguments = ["rev-list", "-n1", "--full-history", &commit_range, "--"];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(pathspecs.iter().map(String::as_str)).collect();
        if !self.run_git_or_bad_commit_error(tip, &arguments, None)?.is_empty() {
            return Ok(true);
        }
        let tree = self.tree_of_commit(tip.as_str(), tip)?;
        Ok(self.write_tree_with_files_as_in_base(&tree, base_tree, files, tip)? != tree)
    }

    fn rewrite_commit_or_drop_if_emptied(
        &self,
        id: &str,
        base_tree: &str,
        files: &[RepoPath],
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
        let tree =
            self.write_tree_with_files_as_in_base(&parsed_commit.tree, base_tree, files, tip_for_errors)?;
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
        let tree = self.tree_of_commit(id, tip_for_errors)?;
        Ok(RewrittenCommit { id: parent_id, original_tree: tree.clone(), rewritten_tree: tree })
    }

    fn tree_of_commit(
        &self,
        commit: &str,
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        let output = self.run_git_or_bad_commit_error(
            tip_for_errors,
            &["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")],
            None,
        )?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Writes a copy of `tree` in which the files, in all their spellings, are as in `base_tree`, and returns the new
    /// tree's id.
    fn write_tree_with_files_as_in_base(
        &self,
        tree: &str,
        base_tree: &str,
        files: &[RepoPath],
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        files.iter().try_fold(tree.to_owned(), |tree, file| {
            let path_parts: Vec<&str> = file.as_str().split('/').collect();
            self.write_tree_with_all_spellings_of_path_as_in_base(
                &tree,
                base_tree,
                &path_parts,
                tip_for_errors,
            )
        })
    }

    /// Writes a copy of `tree` in which the path, in all its spellings, is as in `base_tree`, and returns the new tree's
    /// id. If a parent in the path is not a folder, returns `tree` unchanged; the rebase handles that case.
    fn write_tree_with_all_spellings_of_path_as_in_base(
        &self,
        tree: &str,
        base_tree: &str,
        path_parts: &[&str],
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        let Some((name, remaining_parts)) = path_parts.split_first() else { return Ok(tree.to_owned()) };
        let is_spelling_of_name =
            |other_name: &[u8]| is_same_name_ignoring_case(&String::from_utf8_lossy(other_name), name);
        let entries = self.tree_entries(tree, tip_for_errors)?;
        let base_entries = self.tree_entries(base_tree, tip_for_errors)?;
        let spellings: BTreeSet<&Vec<u8>> =
            entries.keys().chain(base_entries.keys()).filter(|name| is_spelling_of_name(name)).collect();
        let mut new_entries = entries.clone();
        for spelling in spellings {
            let (entry, base_entry) = (entries.get(spelling), base_entries.get(spelling));
            let new_entry = if remaining_parts.is_empty() {
                base_entry.cloned()
            } else {
                let base_subtree = base_entry.and_then(|entry| subtree_id(entry));
                match (entry, entry.and_then(|entry| subtree_id(entry))) {
                    (Some(_), None) if spelling == name.as_bytes() => return Ok(tree.to_owned()),
                    // A file in another spelling of a parent folder, which a checkout could write in its place.
                    (Some(_), None) => base_entry.cloned(),
                    (None, _) if base_subtree.is_none() => None,
                    (_, subtree) => {
                        let empty_tree = self.write_tree(&TreeEntries::new(), tip_for_errors)?;
                        let new_subtree = self.write_tree_with_all_spellings_of_path_as_in_base(
                            &subtree.unwrap_or_else(|| empty_tree.clone()),
                            &base_subtree.unwrap_or_else(|| empty_tree.clone()),
                            remaining_parts,
                            tip_for_errors,
                        )?;
                        (new_subtree != empty_tree).then(|| format!("040000 tree {new_subtree}").into_bytes())
                    }
                }
            };
            match new_entry {
                Some(new_entry) => new_entries.insert(spelling.clone(), new_entry),
                None => new_entries.remove(spelling),
            };
        }
        if new_entries == entries {
            Ok(tree.to_owned())
        } else {
            self.write_tree(&new_entries, tip_for_errors)
        }
    }

    fn tree_entries(
        &self,
        tree: &str,
        tip_for_errors: &CommitId,
    ) -> Result<TreeEntries, PlimsollRepositoryError> {
        let output = self.run_git_or_bad_commit_error(tip_for_errors, &["ls-tree", "-z", tree], None)?;
        let parse_line = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some((line[tab + 1..].to_vec(), line[..tab].to_vec()))
        };
        Ok(output.split(|byte| *byte == 0).filter_map(parse_line).collect())
    }

    fn write_tree(
        &self,
        entries: &TreeEntries,
        tip_for_errors: &CommitId,
    ) -> Result<String, PlimsollRepositoryError> {
        let lines =
            entries.iter().flat_map(|(name, entry)| [entry, &b"\t"[..], name, b"\0"].concat()).collect();
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

/// Returns the tree id of a folder's entry; `None` for other entries.
fn subtree_id(entry: &[u8]) -> Option<String> {
    String::from_utf8_lossy(entry).strip_prefix("040000 tree ").map(str::to_owned)
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
    fn no_spelling_of_the_plan_is_merged_and_those_of_the_user_are_kept() {
        let (folder, repository, _) = create_repository_with_plan();
        let add_to_index = |path: &str, text: &str| {
            let command = format!(
                "git update-index --add --cacheinfo 100644,$(echo {text} | git hash-object -w --stdin),'{path}'"
            );
            run_shell(&repository, &command);
        };
        let commit_index = || {
            run_shell(&repository, "git commit -qm Spellings");
            git::head_commit(&repository).unwrap()
        };
        // The user's own file, which can be beside the plan where case is distinguished.
        add_to_index("docs/old/[Plan].md", "user");
        let base = commit_index();
        for path in [
            "docs/old/[PLAN].md",
            "docs/old/[Plan].md",
            "Docs/old/[plan].md",
            "Docs/old/other.md",
            "docs/Old/[plan].md",
            "DOCS",
            "doc\u{17f}/old/[plan].md",
            "ITEM.md",
            "new.txt",
            "items.md",
        ] {
            add_to_index(path, "session");
        }
        let tip = commit_index();
        let plimsoll_repository = open_plimsoll_repository(&folder, &repository);
        plimsoll_repository.fetch_and_verify_commit_from_clone(&tip).unwrap();
        let rewrite = |tip: &CommitId| {
            plimsoll_repository
                .rewrite_commits_without_changes_to_files(&base, tip, &repo_paths(&PLAN_FILES))
                .unwrap()
        };
        let rewritten_tip = rewrite(&tip);
        let outcome = plimsoll_repository.run_offline_git(&[
            "diff",
            "--name-status",
            "-z",
            base.as_str(),
            rewritten_tip.as_str(),
        ]);
        assert_eq!(
            String::from_utf8_lossy(&outcome.stdout).replace('\0', " "),
            "A Docs/old/other.md A items.md A new.txt "
        );
        assert_eq!(rewrite(&rewritten_tip), rewritten_tip);
        // One other spelling alone is enough.
        run_shell(&repository, &format!("git reset -q {base}"));
        add_to_index("Docs/old/[plan].md", "session");
        let tip = commit_index();
        plimsoll_repository.fetch_and_verify_commit_from_clone(&tip).unwrap();
        assert_eq!(rewrite(&tip), base);
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
