//! The work since a commit, as git shows it: which files, which lines, in which functions, in which commits.

use super::asking::{Filters, FiltersOff};
use super::{git, text};
use crate::time_limit::TimeLimit;
use crate::{Outcome, child};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::handoff::GitFacts;
use plimsoll_domain::state::CommitRef;
use std::path::Path;

/// How many ranges of one file are named at most.
const RANGES_NAMED: usize = 12;
/// How many of the newest commits are examined at most.
const COMMITS_READ: &str = "-n50";
/// A new file that is only much alike a deleted one was not renamed: two of a kind begin with the same lines.
const NEARLY_EQUAL: &str = "--find-renames=90%";
/// A heading is a name, not a paragraph.
const HEADING: usize = 60;

/// Where the work begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since<'a> {
    /// At this commit: what was committed after it belongs to the work.
    Commit(&'a CommitId),
    /// Before the first commit: every commit belongs to it.
    Beginning,
    /// At a commit that HEAD no longer contains, because it was amended, rebased or reset: the two trees are compared.
    Rewritten(&'a CommitId),
    /// At HEAD: only what is not committed belongs to it.
    Head,
}

impl<'a> Since<'a> {
    /// Whether it is this commit.
    fn is_commit(self, id: &str) -> bool {
        matches!(self, Since::Commit(commit) if commit.as_str() == id)
    }

    /// Returns the tree with which git compares the work, as `git diff` takes it.
    fn compared_tree(self, head: &str) -> &'a str {
        match self {
            Since::Commit(commit) | Since::Rewritten(commit) => commit.as_str(),
            Since::Beginning if head.len() > SHA1_LENGTH => EMPTY_TREE_SHA256,
            Since::Beginning => EMPTY_TREE_SHA1,
            Since::Head => "HEAD",
        }
    }
}

/// The length of an id in a repository with SHA-1; ids of SHA-256 are longer.
const SHA1_LENGTH: usize = 40;
/// The tree without a file. git knows its id in every repository, even if no object has it.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// What git shows of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// The repository at this moment.
    pub facts: GitFacts,
    /// The files: those with uncommitted changes first, then those that were committed.
    pub files: Vec<ChangedFile>,
    /// The commits, newest first.
    pub commits: Vec<CommitRef>,
}

/// A file of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFile {
    /// From the folder on.
    pub path: String,
    /// What became of it: `modified`, `new, untracked`, `deleted`, `renamed from …`.
    pub change: String,
    /// The changed lines: of the uncommitted change, else of the newest commit that touched the file.
    pub hunks: Vec<Hunk>,
    /// True if all of its change is committed.
    pub is_committed: bool,
    /// True if it is no longer there.
    pub is_gone: bool,
    /// How many lines the whole work added and removed; none if git does not count them.
    pub counts: Option<LineCounts>,
    /// True if commits by others changed it, too: the counts include their lines.
    pub is_also_by_others: bool,
}

/// How many lines differ from where the work began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

/// Lines that changed together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The first one in the new file, from 1.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The function or section that they belong to, as git names it; empty if it knows none.
    pub heading: String,
}

/// A commit that touched a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommit {
    /// Its id.
    pub id: CommitId,
    /// When it was committed, in seconds since 1970.
    pub at: i64,
    /// The lines it added.
    pub added: Vec<String>,
    /// The lines it took away.
    pub removed: Vec<String>,
}

/// The work in a folder since a moment, by any program, except these commits. None outside git.
pub fn work(folder: &Path, since: Since<'_>, except: &[String]) -> Option<Work> {
    Some(begin(folder)?.look()?.work(since, except))
}

/// Begins to look at a folder: git answers the first questions while its caller does something else. None outside git.
pub fn begin(folder: &Path) -> Option<Begun<'_>> {
    let limit = TimeLimit::within(super::DEADLINE);
    let filters = super::asking::begin_asking_for_filters(folder, limit).ok()?;
    let subject = super::asking(folder, &["log", "-1", "--format=%s"], limit)
        .and_then(|command| child::start(command, child::Terms::within(limit.left())));
    Some(Begun { folder, filters, subject })
}

/// A look at a folder that has begun.
pub struct Begun<'a> {
    folder: &'a Path,
    filters: Filters,
    /// The subject of HEAD; an error where there is none.
    subject: Result<child::Running<'static>, Outcome>,
}

impl std::fmt::Debug for Begun<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Begun").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> Begun<'a> {
    /// The repository as it is. None where git fails.
    pub fn look(self) -> Option<Look<'a>> {
        let Begun { folder, filters, subject } = self;
        let limit = TimeLimit::within(super::DEADLINE);
        // Only a git inside a submodule could report its state.
        let how = ["--porcelain=v2", "--branch", "--untracked-files=all", "--ignore-submodules=dirty"];
        let question = [&["status"], &how[..], &["-z", "--", "."]].concat();
        let (status, off) = match filters.switched_off() {
            Ok(off) => (crate::run(off.asking(folder, &question), limit.left()), off),
            Err(outcome) => (outcome, FiltersOff::default()),
        };
        let subject = subject.map(child::Running::finish);
        if status.timed_out {
            let trouble = Some("git status took too long".into());
            let facts = GitFacts { branch: "?".into(), trouble, ..GitFacts::default() };
            return Some(Look { folder, off, work: Work { facts, ..Work::default() } });
        }
        if !status.succeeded() {
            return None;
        }
        let (mut facts, mut files) = parse_status(&String::from_utf8_lossy(&status.stdout));
        if off.has_filters {
            let written = |file: &&ChangedFile| file.change == MODIFIED;
            let changed: Vec<String> = files.iter().filter(written).map(|file| file.path.clone()).collect();
            let unwritten = super::noted::unwritten(folder, &changed, limit);
            files.retain(|file| !unwritten.contains(&file.path));
        }
        // `--porcelain` names paths from the root of the working tree, wherever it is asked.
        let prefix = prefix(folder);
        for file in &mut files {
            file.path = file.path.strip_prefix(&prefix).unwrap_or(&file.path).to_owned();
        }
        if facts.head.is_some() {
            facts.subject = subject.map(|outcome| text(&outcome)).unwrap_or_default();
        }
        Some(Look { folder, off, work: Work { facts, files, commits: Vec::new() } })
    }
}

/// The repository as it is, before it is known since when the work counts.
pub struct Look<'a> {
    folder: &'a Path,
    off: FiltersOff,
    work: Work,
}

impl std::fmt::Debug for Look<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Look").field("work", &self.work).finish_non_exhaustive()
    }
}

impl Look<'_> {
    /// True if nothing was committed since a commit: it is HEAD.
    pub fn is_still_at(&self, since: Since<'_>) -> bool {
        self.work.facts.head.as_deref().is_some_and(|head| since.is_commit(head))
    }

    /// The work since a moment, by any program, except these commits.
    pub fn work(self, since: Since<'_>, except: &[String]) -> Work {
        let Look { folder, off, mut work } = self;
        if let Some(head) = work.facts.head.clone() {
            let is_tracked = |file: &ChangedFile| file.change != UNTRACKED;
            let is_counted =
                !matches!(since, Since::Head) && !since.is_commit(&head) || work.files.iter().any(is_tracked);
            // git counts while it is asked for the lines and the commits.
            let counting = is_counted.then(|| start_counting(folder, &off, since, &head));
            name_uncommitted_lines(folder, &off, &mut work);
            add_commits(folder, &off, since, &head, except, &mut work);
            if let Some(Ok(counting)) = counting {
                let outcome = counting.finish();
                if outcome.succeeded() {
                    take_counts(&String::from_utf8_lossy(&outcome.stdout), off.has_filters, &mut work.files);
                }
            }
        }
        work
    }
}

/// The commits of the work that touched one file, newest first.
pub fn history_of(folder: &Path, since: Since<'_>, file: &RepoPath) -> Vec<FileCommit> {
    let Some(range) = range(since) else { return Vec::new() };
    let outcome = log(folder, &range, &["--no-renames", "--", &file.pathspec()]);
    if !outcome.succeeded() {
        return Vec::new();
    }
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut commits: Vec<FileCommit> = Vec::new();
    for line in output.lines() {
        if let Some(fields) = line.strip_prefix(COMMIT_MARK) {
            let mut fields = fields.splitn(3, '\u{1f}');
            let Ok(id) = CommitId::parse(fields.next().unwrap_or_default()) else { continue };
            let at = fields.next().and_then(|at| at.parse().ok()).unwrap_or(0);
            commits.push(FileCommit { id, at, added: Vec::new(), removed: Vec::new() });
        } else if let Some(commit) = commits.last_mut() {
            if line.starts_with("+++ ") || line.starts_with("--- ") {
                continue;
            }
            if let Some(added) = line.strip_prefix('+') {
                commit.added.push(added.to_owned());
            } else if let Some(removed) = line.strip_prefix('-') {
                commit.removed.push(removed.to_owned());
            }
        }
    }
    commits
}

/// `3-9, 45-120`: ranges that touch or nearly touch are one. Of very many the last ones are named, and the one that was
/// edited last.
pub fn join(ranges: &[(u64, u64)], edited: Option<(u64, u64)>) -> String {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.0 <= last.1 + 3 => last.1 = last.1.max(range.1),
            _ => joined.push(*range),
        }
    }
    let left_out = joined.len().saturating_sub(RANGES_NAMED);
    let (early, late) = joined.split_at(left_out);
    let holds = |range: &&(u64, u64)| edited.is_some_and(|(first, last)| range.0 <= first && last <= range.1);
    let name = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let gap = || "…".to_owned();
    let mut named: Vec<String> = Vec::new();
    if let Some(place) = early.iter().position(|range| holds(&range)) {
        named.extend((place > 0).then(gap));
        named.push(name(&early[place]));
        named.extend((place + 1 < left_out).then(gap));
    } else {
        named.extend((left_out > 0).then(gap));
    }
    named.extend(late.iter().map(name));
    named.join(", ")
}

/// A patch without context lines and without anything that the user's configuration adds to it.
const PLAIN: [&str; 6] = [
    "--unified=0",
    "--inter-hunk-context=0",
    "--no-color",
    "--relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

fn name_uncommitted_lines(folder: &Path, off: &FiltersOff, work: &mut Work) {
    // Of files that git does not know yet it shows no lines.
    if work.files.iter().all(|file| file.change == UNTRACKED) {
        return;
    }
    let question = [&["diff", "HEAD", "--no-renames", "--ignore-submodules=dirty"], &PLAIN[..]].concat();
    let limit = TimeLimit::within(super::DEADLINE);
    let diff = crate::run(off.asking(folder, &question), limit.left());
    if diff.timed_out {
        work.facts.trouble = Some("git diff took too long: no line ranges".into());
    }
    let patches = parse_patches(&String::from_utf8_lossy(&diff.stdout));
    for file in &mut work.files {
        if let Some(patch) = patches.iter().find(|patch| patch.path == file.path) {
            file.hunks.clone_from(&patch.hunks);
        }
    }
}

/// Starts the comparison of all the work with where it began. With filters switched off, a file that one of them changes would
/// differ from every commit, so only commits are compared then.
fn start_counting(
    folder: &Path,
    off: &FiltersOff,
    since: Since<'_>,
    head: &str,
) -> Result<child::Running<'static>, Outcome> {
    let compare =
        ["diff", "--raw", "--numstat", "-z", "--relative", NEARLY_EQUAL, "--ignore-submodules=dirty"];
    let end: &[&str] = if off.has_filters { &["HEAD", "--"] } else { &["--"] };
    let question = [&compare[..], &[since.compared_tree(head)], end].concat();
    child::start(off.asking(folder, &question), child::Terms::within(super::DEADLINE))
}

/// Takes the counts of each file. `has_filters` means that uncommitted changes are not in them.
fn take_counts(output: &str, has_filters: bool, files: &mut [ChangedFile]) {
    let counted = parse_counts(output);
    for file in files {
        let known = counted.iter().find(|known| known.path == file.path);
        if known.is_some_and(|known| known.is_submodule) {
            (file.change, file.hunks) = (SUBMODULE.to_owned(), Vec::new());
        } else if file.change != UNTRACKED && (file.is_committed || !has_filters) {
            // A tracked file that is not in the comparison is as it was at the beginning, or was never there then.
            let is_as_before = known.is_none() && !file.is_gone;
            file.counts =
                known.and_then(|known| known.counts).or_else(|| is_as_before.then(LineCounts::default));
        }
    }
}

/// A file of a comparison.
#[derive(Debug, PartialEq, Eq)]
struct CountedFile {
    path: String,
    /// None for what git does not take for text.
    counts: Option<LineCounts>,
    is_submodule: bool,
}

/// Reads the output of `diff --raw --numstat -z`: first an entry for each file with its modes, then one with its counts. A renamed
/// file has its old and its new path in fields of their own.
fn parse_counts(output: &str) -> Vec<CountedFile> {
    let mut files: Vec<CountedFile> = Vec::new();
    let mut submodules: Vec<&str> = Vec::new();
    let mut fields = output.split_terminator('\0');
    while let Some(field) = fields.next() {
        if let Some(raw) = field.strip_prefix(':') {
            let is_renamed = raw.rsplit(' ').next().is_some_and(|status| status.starts_with(['R', 'C']));
            let path = if is_renamed { fields.nth(1) } else { fields.next() };
            let is_submodule = raw.split(' ').take(2).any(|mode| mode == "160000");
            submodules.extend(path.filter(|_| is_submodule));
            continue;
        }
        let mut parts = field.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(path) = (if path.is_empty() { fields.nth(1) } else { Some(path) }) else { break };
        let counts = added.parse().ok().zip(removed.parse().ok());
        files.push(CountedFile {
            path: path.to_owned(),
            counts: counts.map(|(added, removed)| LineCounts { added, removed }),
            is_submodule: submodules.contains(&path),
        });
    }
    files
}

/// Starts the line of a commit: no line of a patch begins with it.
const COMMIT_MARK: char = '\u{1e}';
const COMMIT_FORM: &str = "--format=%x1e%H%x1f%ct%x1f%s";

fn range(since: Since<'_>) -> Option<String> {
    match since {
        Since::Commit(base) | Since::Rewritten(base) => Some(format!("{base}..HEAD")),
        Since::Beginning => Some("HEAD".to_owned()),
        Since::Head => None,
    }
}

fn log(folder: &Path, range: &str, more: &[&str]) -> Outcome {
    let first = ["log", "-p", COMMITS_READ, "--no-show-signature", COMMIT_FORM, range];
    git(folder, &[&first[..], &PLAIN[..], more].concat())
}

/// Adds what was committed, the newest change of each file first. A commit that git does not know anymore gives nothing.
fn add_commits(
    folder: &Path,
    off: &FiltersOff,
    since: Since<'_>,
    head: &str,
    except: &[String],
    work: &mut Work,
) {
    if since.is_commit(head) {
        return;
    }
    let Some(range) = range(since) else { return };
    let outcome = log(folder, &range, &[NEARLY_EQUAL, "--"]);
    if outcome.timed_out {
        work.facts.trouble = Some("git log took too long: committed files may be missing".into());
    }
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut taken_over: Vec<String> = Vec::new();
    let mut by_others: Vec<String> = Vec::new();
    for commit in output.split(COMMIT_MARK).skip(1) {
        let (head, patch) = commit.split_once('\n').unwrap_or((commit, ""));
        let mut fields = head.splitn(3, '\u{1f}');
        let id = fields.next().unwrap_or_default().to_owned();
        if except.contains(&id) {
            by_others.extend(parse_patches(patch).into_iter().map(|file| file.path));
            continue;
        }
        let subject = plimsoll_domain::text::clip(fields.nth(1).unwrap_or_default(), 80);
        work.commits.push(CommitRef { id, subject });
        if matches!(since, Since::Rewritten(_)) {
            continue;
        }
        for mut file in parse_patches(patch) {
            let is_known = work.files.iter().any(|known| known.path == file.path);
            // Newest first: a file that a later commit renamed is in the list under its new name already.
            let is_newer_elsewhere = taken_over.contains(&file.path);
            if let Some(old) = file.change.strip_prefix(RENAMED) {
                taken_over.push(old.to_owned());
            }
            if !is_known && !is_newer_elsewhere {
                file.is_committed = true;
                work.files.push(file);
            }
        }
    }
    if let Since::Rewritten(base) = since {
        add_differing_files(folder, off, base, work);
    }
    for file in &mut work.files {
        file.is_also_by_others = by_others.contains(&file.path);
    }
}

/// Adds the committed files that differ from a commit which HEAD no longer contains. The patches of single commits do not tell
/// them: an amended commit has the lines of the one that it replaced, too.
fn add_differing_files(folder: &Path, off: &FiltersOff, base: &CommitId, work: &mut Work) {
    let question =
        [&["diff"], &PLAIN[..], &[NEARLY_EQUAL, "--ignore-submodules=dirty", base.as_str(), "HEAD", "--"]]
            .concat();
    let limit = TimeLimit::within(super::DEADLINE);
    let diff = crate::run(off.asking(folder, &question), limit.left());
    if diff.timed_out {
        work.facts.trouble = Some("git diff took too long: committed files may be missing".into());
    }
    for file in parse_patches(&String::from_utf8_lossy(&diff.stdout)) {
        if !work.files.iter().any(|known| known.path == file.path) {
            work.files.push(ChangedFile { is_committed: true, ..file });
        }
    }
}

/// Where the folder is below the root of its working tree, with a slash at its end; git names files from there.
fn prefix(folder: &Path) -> String {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists());
    let below = root.and_then(|root| folder.strip_prefix(root).ok()).map(|below| below.to_string_lossy());
    below.filter(|below| !below.is_empty()).map_or(String::new(), |below| format!("{below}/"))
}

const RENAMED: &str = "renamed from ";

fn parse_status(output: &str) -> (GitFacts, Vec<ChangedFile>) {
    let mut facts = GitFacts::default();
    let mut files = Vec::new();
    let mut entries = output.split('\0');
    while let Some(entry) = entries.next() {
        let (kind, rest) = entry.split_once(' ').unwrap_or((entry, ""));
        match kind {
            "#" => header(rest, &mut facts),
            "1" => files.extend(rest.splitn(8, ' ').nth(7).map(|path| file(path, changed(rest)))),
            "2" => {
                let path = rest.splitn(9, ' ').nth(8);
                // With `-z` the old path is an entry of its own behind the new one.
                let old = entries.next().unwrap_or_default();
                files.extend(path.map(|path| file(path, &format!("{RENAMED}{old}"))));
            }
            "u" => files.extend(rest.splitn(10, ' ').nth(9).map(|path| file(path, "conflict"))),
            "?" => files.push(file(rest, UNTRACKED)),
            _ => {}
        }
    }
    (facts, files)
}

fn header(line: &str, facts: &mut GitFacts) {
    match line.split_once(' ') {
        Some(("branch.oid", id)) if id != "(initial)" => facts.head = Some(id.to_owned()),
        Some(("branch.head", name)) => {
            facts.branch = if name == "(detached)" { "HEAD (detached)".into() } else { name.into() }
        }
        _ => {}
    }
}

const MODIFIED: &str = "modified";
const UNTRACKED: &str = "new, untracked";
const DELETED: &str = "deleted";
const SUBMODULE: &str = "submodule at another commit";

fn changed(entry: &str) -> &'static str {
    let letters = entry.get(..2).unwrap_or_default();
    match letters {
        _ if letters.contains('D') => DELETED,
        _ if letters.contains('A') => "new, staged",
        _ if letters.starts_with('.') => MODIFIED,
        _ if letters.ends_with('.') => "modified, staged",
        _ => "modified, partly staged",
    }
}

fn file(path: &str, change: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        change: change.to_owned(),
        is_gone: change == DELETED,
        ..ChangedFile::default()
    }
}

fn parse_patches(patch: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut in_header = false;
    for line in patch.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            in_header = true;
            files.push(file(path_of_header(paths).unwrap_or_default(), "modified"));
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if in_header && !line.starts_with("@@ ") {
            header_line(line, file);
        } else if line.starts_with("@@ ") {
            in_header = false;
            file.hunks.extend(hunk(line));
        } else if let (Some(added), Some(hunk)) = (line.strip_prefix('+'), file.hunks.last_mut()) {
            // Git names what is before the lines: where they begin a function themselves, that is the one.
            if begins_a_section(added) {
                hunk.heading = heading(added);
            }
        }
    }
    files.retain(|file| !file.path.is_empty());
    files
}

/// Returns the path in `a/PATH b/PATH`. A binary file, an empty one and a changed mode have no other line that names it; where the
/// two differ, later lines of the header do.
fn path_of_header(paths: &str) -> Option<&str> {
    let (old, new) = paths.split_at_checked(paths.len() / 2)?;
    let old = old.trim_matches('"').strip_prefix("a/")?;
    let new = new.strip_prefix(' ')?.trim_matches('"').strip_prefix("b/")?;
    (old == new).then_some(new)
}

fn header_line(line: &str, file: &mut ChangedFile) {
    let path = |text: &str, side: &str| {
        // Git ends a path that has a blank in it with a tabulator.
        let text = text.trim_end_matches('\t').trim_matches('"');
        text.strip_prefix(side).unwrap_or(text).to_owned()
    };
    if let Some(old) = line.strip_prefix("rename from ") {
        file.change = format!("{RENAMED}{}", path(old, ""));
    } else if let Some(new) = line.strip_prefix("rename to ") {
        file.path = path(new, "");
    } else if line.starts_with("new file mode") {
        file.change = "new".to_owned();
    } else if line.starts_with("deleted file mode") {
        file.change = DELETED.to_owned();
        file.is_gone = true;
    } else if file.is_gone
        && let Some(old) = line.strip_prefix("--- ")
    {
        file.path = path(old, "a/");
    } else if let Some(new) = line.strip_prefix("+++ ").filter(|new| *new != "/dev/null") {
        file.path = path(new, "b/");
    }
}

fn hunk(line: &str) -> Option<Hunk> {
    let mut parts = line.splitn(3, "@@");
    let (ranges, named) = (parts.nth(1)?, parts.next().unwrap_or_default());
    let new = ranges.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (start, count) = new.split_once(',').unwrap_or((new, "1"));
    let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
    // Where lines only went at the beginning of a file, git says 0.
    let first = start.max(1);
    let heading = if names_a_section(named.trim_start()) { heading(named) } else { String::new() };
    Some(Hunk { first, last: first + count.saturating_sub(1), heading })
}

/// A line at the margin that opens something: as git's own rule for headings, but stricter, for every added line is asked.
fn begins_a_section(line: &str) -> bool {
    let at_margin = line.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == '$');
    at_margin && line.trim_end().ends_with(['{', ':', '(', ')'])
}

/// Git takes any line at the margin for a heading, also one of a text; it cuts long ones, so that the end may be missing.
fn names_a_section(line: &str) -> bool {
    const KEYWORDS: [&str; 12] = [
        "fn",
        "def",
        "class",
        "function",
        "struct",
        "enum",
        "trait",
        "impl",
        "interface",
        "module",
        "type",
        "func",
    ];
    let has_keyword = line.split_whitespace().take(4).any(|word| KEYWORDS.contains(&word));
    begins_a_section(line) || has_keyword
}

fn heading(line: &str) -> String {
    let line = plimsoll_domain::text::one_line(line);
    plimsoll_domain::text::clip(line.trim_end_matches(['{', ' ', ':']), HEADING)
}

#[cfg(test)]
mod tests;
