//! Commits without what they change in certain files. A session may commit its copy of the plan with its work: the work is merged,
//! the plan is the merger's.

use super::{OwnRepository, OwnRepositoryError, last_words};
use crate::Outcome;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use std::collections::HashMap;

/// What a tree or a commit has at a path: mode, type and id, as `git ls-tree` prints them. None if nothing is there.
type TreeEntry = Option<Vec<u8>>;

/// A commit of a session, and the commit that takes its place.
#[derive(Debug, Clone)]
struct Copied {
    id: CommitId,
    /// The tree of the original, and that of its copy.
    original_tree: String,
    tree: String,
}

impl OwnRepository {
    /// Copies the commits from `base` (not included) to `end` so that each of them has these files as `base` has them, and returns
    /// the end of the copy. Author, dates and message stay; a commit that changes only these files is left out. Without such a
    /// change nothing is copied.
    ///
    /// A rebase that leaves files out, as a merge driver could, resolves only changes of both sides, and none of a file that one
    /// side removed.
    pub fn without_files(
        &self,
        base: &CommitId,
        end: &CommitId,
        files: &[RepoPath],
    ) -> Result<CommitId, OwnRepositoryError> {
        let mut wanted: Vec<(&RepoPath, TreeEntry)> = Vec::new();
        for file in files {
            wanted.push((file, self.entry(base, file)?));
        }
        if !self.changes_files(base, end, &wanted)? {
            return Ok(end.clone());
        }
        let mut copies: HashMap<String, Copied> = HashMap::new();
        let range = format!("{base}..{end}");
        let listed = self.answer(end, &["rev-list", "--reverse", "--topo-order", &range, "--"], None)?;
        for id in String::from_utf8_lossy(&listed).lines() {
            let copied = self.copy_commit(id, &wanted, &copies, end)?;
            copies.insert(id.to_owned(), copied);
        }
        Ok(copies.remove(end.as_str()).map_or_else(|| base.clone(), |copied| copied.id))
    }

    fn changes_files(
        &self,
        base: &CommitId,
        end: &CommitId,
        wanted: &[(&RepoPath, TreeEntry)],
    ) -> Result<bool, OwnRepositoryError> {
        let range = format!("{base}..{end}");
        let names: Vec<String> = wanted.iter().map(|(file, _)| file.pathspec()).collect();
        let question = ["rev-list", "-n1", "--full-history", &range, "--"];
        let question: Vec<&str> = question.into_iter().chain(names.iter().map(String::as_str)).collect();
        if !self.answer(end, &question, None)?.is_empty() {
            return Ok(true);
        }
        for (file, entry) in wanted {
            if self.entry(end, file)? != *entry {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn copy_commit(
        &self,
        id: &str,
        wanted: &[(&RepoPath, TreeEntry)],
        copies: &HashMap<String, Copied>,
        end: &CommitId,
    ) -> Result<Copied, OwnRepositoryError> {
        let original = self.answer(end, &["cat-file", "commit", id], None)?;
        let header = CommitHeader::parse(&original);
        let parents: Vec<Copied> =
            header.parents.iter().map(|parent| self.parent(parent, copies, end)).collect::<Result<_, _>>()?;
        let mut tree = header.tree.clone();
        for (file, entry) in wanted {
            let parts: Vec<&str> = file.as_str().split('/').collect();
            tree = self.with_entry(&tree, &parts, entry.as_deref(), end)?;
        }
        if let [parent] = &parents[..]
            && tree == parent.tree
            && header.tree != parent.original_tree
        {
            return Ok(Copied { original_tree: header.tree, ..parent.clone() });
        }
        let same_parents = parents.iter().map(|parent| parent.id.as_str()).eq(header.parents.iter());
        let commit = if tree == header.tree && same_parents {
            self.parse_id(id, end)?
        } else {
            let text = header.with(&tree, parents.iter().map(|parent| parent.id.as_str()));
            let made = self.answer(end, &["hash-object", "-t", "commit", "-w", "--stdin"], Some(text))?;
            self.parse_id(String::from_utf8_lossy(&made).trim(), end)?
        };
        Ok(Copied { id: commit, original_tree: header.tree, tree })
    }

    /// The copy of a parent; a parent outside of the range stays itself.
    fn parent(
        &self,
        id: &str,
        copies: &HashMap<String, Copied>,
        end: &CommitId,
    ) -> Result<Copied, OwnRepositoryError> {
        if let Some(copied) = copies.get(id) {
            return Ok(copied.clone());
        }
        let commit = self.parse_id(id, end)?;
        let tree =
            self.answer(end, &["rev-parse", "--verify", "--quiet", &format!("{id}^{{tree}}")], None)?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        Ok(Copied { id: commit, original_tree: tree.clone(), tree })
    }

    fn entry(&self, commit: &CommitId, file: &RepoPath) -> Result<TreeEntry, OwnRepositoryError> {
        let listed =
            self.answer(commit, &["ls-tree", "-z", commit.as_str(), "--", &file.pathspec()], None)?;
        Ok(TreeLine::parse(&listed).next().map(|line| line.entry.to_vec()))
    }

    /// Returns a tree in which a path has this entry. A path through something that is no folder stays as it is: a rebase says what
    /// it makes of that.
    fn with_entry(
        &self,
        tree: &str,
        path: &[&str],
        entry: Option<&[u8]>,
        end: &CommitId,
    ) -> Result<String, OwnRepositoryError> {
        let listed = self.answer(end, &["ls-tree", "-z", tree], None)?;
        let Some((name, rest)) = path.split_first() else { return Ok(tree.to_owned()) };
        let there = TreeLine::parse(&listed).find(|line| line.name == name.as_bytes());
        let changed: TreeEntry = if rest.is_empty() {
            entry.map(<[u8]>::to_vec)
        } else {
            let folder = match there.as_ref().map(TreeLine::folder) {
                Some(None) => return Ok(tree.to_owned()),
                Some(Some(folder)) => folder,
                None if entry.is_none() => return Ok(tree.to_owned()),
                None => self.make_tree(Vec::new(), end)?,
            };
            let folder = self.with_entry(&folder, rest, entry, end)?;
            let is_empty = folder == self.make_tree(Vec::new(), end)?;
            (!is_empty).then(|| format!("040000 tree {folder}").into_bytes())
        };
        if there.map(|line| line.entry.to_vec()) == changed {
            return Ok(tree.to_owned());
        }
        let kept = TreeLine::parse(&listed).filter(|line| line.name != name.as_bytes());
        let kept = kept.map(|line| (line.entry, line.name));
        let changed = changed.as_deref().map(|entry| (entry, name.as_bytes()));
        let lines = kept.chain(changed).flat_map(|(entry, name)| [entry, b"\t", name, b"\0"].concat());
        self.make_tree(lines.collect(), end)
    }

    fn make_tree(&self, lines: Vec<u8>, end: &CommitId) -> Result<String, OwnRepositoryError> {
        let made = self.answer(end, &["mktree", "-z"], Some(lines))?;
        Ok(String::from_utf8_lossy(&made).trim().to_owned())
    }

    fn parse_id(&self, id: &str, end: &CommitId) -> Result<CommitId, OwnRepositoryError> {
        CommitId::parse(id)
            .map_err(|error| OwnRepositoryError::BadCommit { commit: end.clone(), why: error.to_string() })
    }

    /// What git prints; an error names the commit that is to be copied.
    fn answer(
        &self,
        commit: &CommitId,
        arguments: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, OwnRepositoryError> {
        let outcome: Outcome = self.ask_with(arguments, input);
        if outcome.succeeded() {
            return Ok(outcome.stdout);
        }
        Err(OwnRepositoryError::BadCommit { commit: commit.clone(), why: last_words(&outcome) })
    }
}

/// A line of `git ls-tree -z`.
struct TreeLine<'a> {
    entry: &'a [u8],
    name: &'a [u8],
}

impl TreeLine<'_> {
    fn parse(listed: &[u8]) -> impl Iterator<Item = TreeLine<'_>> {
        listed.split(|byte| *byte == 0).filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some(TreeLine { entry: &line[..tab], name: &line[tab + 1..] })
        })
    }

    /// The tree of a folder; none for anything else.
    fn folder(&self) -> Option<String> {
        let entry = String::from_utf8_lossy(self.entry).into_owned();
        entry.strip_prefix("040000 tree ").map(str::to_owned)
    }
}

/// The lines of a commit before its message.
struct CommitHeader<'a> {
    tree: String,
    parents: Vec<String>,
    /// Author, committer and encoding, then an empty line and the message.
    rest: Vec<&'a [u8]>,
}

impl CommitHeader<'_> {
    fn parse(commit: &[u8]) -> CommitHeader<'_> {
        let mut header = CommitHeader { tree: String::new(), parents: Vec::new(), rest: Vec::new() };
        let mut is_in_message = false;
        let mut is_left_out = false;
        for line in commit.split_inclusive(|byte| *byte == b'\n') {
            let words = String::from_utf8_lossy(line);
            let words = words.trim_end_matches('\n');
            if is_in_message {
                header.rest.push(line);
            } else if words.is_empty() {
                is_in_message = true;
                header.rest.push(line);
            } else if let Some(tree) = words.strip_prefix("tree ") {
                header.tree = tree.to_owned();
            } else if let Some(parent) = words.strip_prefix("parent ") {
                header.parents.push(parent.to_owned());
            } else {
                // A signature is one of the original. A line that begins with a blank belongs to the one above it.
                let is_continued = words.starts_with(' ');
                is_left_out = (is_continued && is_left_out)
                    || words.starts_with("gpgsig")
                    || words.starts_with("mergetag ");
                if !is_left_out {
                    header.rest.push(line);
                }
            }
        }
        header
    }

    /// The commit with another tree and other parents.
    fn with<'p>(&self, tree: &str, parents: impl Iterator<Item = &'p str>) -> Vec<u8> {
        let mut text = format!("tree {tree}\n").into_bytes();
        parents.for_each(|parent| text.extend(format!("parent {parent}\n").into_bytes()));
        self.rest.iter().for_each(|line| text.extend_from_slice(line));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git;
    use crate::worktree::tests::{commit, shell, stage};
    use std::path::PathBuf;

    fn own(folder: &tempfile::TempDir, repository: &std::path::Path) -> OwnRepository {
        OwnRepository::open(repository, &folder.path().join("own.git")).unwrap()
    }

    fn files(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| RepoPath::parse(name).unwrap()).collect()
    }

    fn stage_with_plan() -> (tempfile::TempDir, PathBuf, CommitId) {
        let (folder, repository) = stage();
        let base = commit(
            &repository,
            "mkdir -p docs/old; echo plan > 'docs/old/[plan].md'; echo p > docs/old/p.md",
        );
        (folder, repository, base)
    }

    const FILES: [&str; 2] = ["docs/old/[plan].md", "item.md"];

    #[test]
    fn commits_keep_their_work_and_their_words_and_lose_what_they_did_to_the_plan() {
        let (folder, repository, base) = stage_with_plan();
        commit(&repository, "echo tick >> 'docs/old/[plan].md'; echo own > item.md");
        shell(&repository, "git commit -q --allow-empty -m Nothing");
        shell(
            &repository,
            "echo one >> a.txt; git rm -q 'docs/old/[plan].md'; git add -A; \
             GIT_AUTHOR_NAME='Ünï' GIT_AUTHOR_DATE='2001-02-03T04:05:06+0700' git commit -qm 'Subject\n\nBody: \"x\"\n'",
        );
        commit(&repository, "git rm -qr docs; echo docs > docs; echo two >> a.txt");
        let end = commit(&repository, "git rm -q docs; mkdir new; git mv a.txt new/a.txt");
        let own = own(&folder, &repository);
        own.take(&end).unwrap();
        let copy = own.without_files(&base, &end, &files(&FILES)).unwrap();
        let print = |arguments: &[&str]| String::from_utf8_lossy(&own.ask(arguments).stdout).into_owned();
        let entry = |commit: &CommitId| print(&["ls-tree", "-r", commit.as_str(), "--", "docs/old"]);
        let plan = print(&["ls-tree", base.as_str(), "--", ":(literal)docs/old/[plan].md"]);
        assert_eq!(entry(&copy), plan, "what the session removed beside it stays removed");
        assert_eq!(print(&["show", &format!("{copy}:new/a.txt")]), "1\n2\n3\n4\n5\none\ntwo\n");
        let log =
            |from: &CommitId| print(&["log", "--format=%an|%aI|%cn|%cI|%B", &format!("{base}..{from}")]);
        let words = |log: String| {
            let is_left = |line: &&str| !line.is_empty() && !line.contains("echo tick");
            log.lines().filter(is_left).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(log(&end).contains("echo tick") && !log(&copy).contains("echo tick"), "{}", log(&copy));
        assert_eq!(words(log(&copy)), words(log(&end)));
        assert!(log(&copy).contains("Ünï|2001-02-03T04:05:06+07:00"), "{}", log(&copy));
        // Whatever is done again gives the same, and what has no such change stays itself.
        assert_eq!(own.without_files(&base, &end, &files(&FILES)).unwrap(), copy);
        assert_eq!(own.without_files(&base, &copy, &files(&FILES)).unwrap(), copy);
    }

    #[test]
    fn what_a_commit_did_to_the_plan_does_not_count_among_what_a_target_lacks() {
        let (folder, repository, _) = stage_with_plan();
        shell(&repository, "git switch -qc work");
        let work = commit(&repository, "echo x > x.txt; echo mine >> 'docs/old/[plan].md'");
        let more = commit(&repository, "echo y > y.txt");
        shell(&repository, "git switch -q main");
        // The tick is in the commit of the work.
        let target = commit(&repository, "echo x > x.txt; echo tick >> 'docs/old/[plan].md'");
        let own = own(&folder, &repository);
        for taken in [&more, &target] {
            own.take(taken).unwrap();
        }
        assert!(own.is_all_on(&target, &work, &files(&FILES)[..1]));
        assert!(!own.is_all_on(&target, &more, &files(&FILES)[..1]));
        assert!(!own.is_all_on(&target, &work, &files(&FILES)[1..]));
    }

    #[test]
    fn merges_stay_merges_and_a_range_that_changes_only_the_plan_is_empty() {
        let (folder, repository, base) = stage_with_plan();
        let only = commit(&repository, "echo tick >> 'docs/old/[plan].md'");
        shell(
            &repository,
            "git switch -qc side; echo side > side.txt; echo side >> 'docs/old/[plan].md'; git add -A; \
             git commit -qm Side; git switch -q main",
        );
        commit(&repository, "echo main > main.txt");
        shell(&repository, "git merge -q --no-ff -m Merged side");
        let end = git::head(&repository).unwrap();
        let own = own(&folder, &repository);
        own.take(&end).unwrap();
        assert_eq!(own.without_files(&base, &only, &files(&FILES)).unwrap(), base);
        let copy = own.without_files(&base, &end, &files(&FILES)).unwrap();
        let count = own.ask(&["rev-list", "--count", "--min-parents=2", &format!("{base}..{copy}")]);
        assert_eq!(git::text(&count), "1");
        let differing = own.ask(&["diff", "--name-only", base.as_str(), copy.as_str()]);
        assert_eq!(git::text(&differing), "main.txt\nside.txt");
    }
}
