//! What git knows about the project: few children, no locks taken, and a deadline.

use crate::{Outcome, run};
use session::handoff::GitFacts;
use session::record::GitCounts;
use session::state::FileInProgress;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Git answers in milliseconds; on a cold disk or a huge tree a checkpoint goes on without it.
const DEADLINE: Duration = Duration::from_secs(5);
/// So many ranges of one file are named.
const RANGES_NAMED: usize = 6;

/// How a file is described whose change the session has committed.
pub const COMMITTED: &str = "committed in this session";

/// The repository, and the files that were changed since a commit (`since`, else HEAD) with the lines: first
/// those with uncommitted changes, whoever made them, then those that have been committed. None outside git.
pub fn facts(folder: &Path, since: Option<&str>) -> Option<(GitFacts, Vec<FileInProgress>)> {
    let status =
        git(folder, &["status", "--porcelain=v2", "--branch", "--untracked-files=all", "-z", "--", "."]);
    if status.timed_out {
        let trouble = Some("git status took too long".into());
        return Some((GitFacts { branch: "?".into(), trouble, ..GitFacts::default() }, Vec::new()));
    }
    if !status.succeeded() {
        return None;
    }
    let (mut facts, mut files) = parse_status(&String::from_utf8_lossy(&status.stdout));
    let prefix = prefix(folder);
    for file in &mut files {
        file.path = file.path.strip_prefix(&prefix).unwrap_or(&file.path).to_owned();
    }
    if let Some(head) = facts.head.clone() {
        facts.subject = text(&git(folder, &["log", "-1", "--format=%s"]));
        let base = since.filter(|since| *since != head);
        let diff = base.map(|base| diff(folder, base)).filter(Outcome::succeeded);
        let diff = diff.unwrap_or_else(|| self::diff(folder, "HEAD"));
        if diff.timed_out {
            facts.trouble = Some("git diff took too long: no line ranges".into());
        }
        name_lines(&mut files, &parse_diff(&String::from_utf8_lossy(&diff.stdout)));
    }
    Some((facts, files))
}

fn diff(folder: &Path, base: &str) -> Outcome {
    let plain = [
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];
    git(folder, &[&["diff", base, "--unified=0", "--relative"], &plain[..]].concat())
}

/// Where the folder lies below the root of its working tree, with a slash at its end; git names files from there.
fn prefix(folder: &Path) -> String {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists());
    let below = root.and_then(|root| folder.strip_prefix(root).ok()).map(|below| below.to_string_lossy());
    below.filter(|below| !below.is_empty()).map_or(String::new(), |below| format!("{below}/"))
}

fn name_lines(files: &mut Vec<FileInProgress>, changes: &[(String, Vec<Range>)]) {
    for (path, ranges) in changes {
        match files.iter_mut().find(|file| file.path == *path) {
            Some(file) => file.lines = join(ranges),
            None if path != "/dev/null" => {
                files.push(FileInProgress { lines: join(ranges), ..file(path, COMMITTED) });
            }
            None => {}
        }
    }
}

/// What the status line asks git, once: nobody waits longer than that for an answer.
pub fn count(folder: &Path, deadline: Duration) -> Counted {
    // Submodules would each start a git of their own.
    let arguments =
        ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let mut command = asking(folder, &arguments);
    // What else is shown is read off the repository that the folder lies in.
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    let outcome = crate::ask(command, None, deadline);
    match outcome {
        Outcome { timed_out: true, .. } => Counted::Late,
        outcome if outcome.succeeded() => {
            let output = String::from_utf8_lossy(&outcome.stdout);
            let branch = output.lines().find_map(|line| line.strip_prefix("# branch.head "));
            Counted::As(parse_counts(&output), branch.unwrap_or_default().to_owned())
        }
        _ => Counted::Nothing,
    }
}

/// What leads git to another repository than the one that its folder lies in.
const ELSEWHERE: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"];

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// It answered, and named the branch.
    As(GitCounts, String),
    /// It was ended at its deadline.
    Late,
    /// There is no git, or it knows no repository there.
    Nothing,
}

fn parse_counts(output: &str) -> GitCounts {
    let mut counts = GitCounts::default();
    for line in output.lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("#"), Some("branch.ab")) => {
                let mut number = || words.next()?.get(1..)?.parse().ok();
                counts.ahead = number().unwrap_or(0);
                counts.behind = number().unwrap_or(0);
            }
            (Some("1" | "2"), Some(letters)) => {
                counts.staged += u64::from(!letters.starts_with('.'));
                counts.modified += u64::from(!letters.ends_with('.'));
            }
            (Some("u"), _) => counts.conflicts += 1,
            (Some("?"), _) => counts.untracked += 1,
            _ => {}
        }
    }
    counts
}

/// HEAD's id; none outside git or before the first commit.
pub fn head(folder: &Path) -> Option<String> {
    let outcome = git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"]);
    outcome.succeeded().then(|| text(&outcome)).filter(|id| !id.is_empty())
}

/// A commit, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its id.
    pub id: String,
    /// When it was committed, in seconds since 1970.
    pub at: i64,
    /// The first line of its message.
    pub subject: String,
}

/// The commit that HEAD is; none outside git or before the first.
pub fn newest(folder: &Path) -> Option<Logged> {
    let outcome = git(folder, &["log", "-n1", "--no-color", "--no-show-signature", FORM, "--"]);
    logged(String::from_utf8_lossy(&outcome.stdout).lines().next()?)
}

const FORM: &str = "--format=%H%x1f%ct%x1f%s";
/// So many commits are asked for.
const LOGGED: &str = "-n5000";

/// The commits that HEAD has since a moment (RFC 3339), oldest first; none outside git.
pub fn log_since(folder: &Path, since: &str) -> Vec<Logged> {
    let since = format!("--since={since}");
    let outcome = git(folder, &["log", LOGGED, "--no-color", "--no-show-signature", &since, FORM, "--"]);
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut commits: Vec<Logged> = output.lines().filter_map(logged).collect();
    commits.reverse();
    commits
}

fn logged(line: &str) -> Option<Logged> {
    let mut fields = line.splitn(3, '\u{1f}');
    let (id, at, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Logged { id: id.to_owned(), at: at.parse().ok()?, subject: subject.to_owned() })
}

fn git(folder: &Path, arguments: &[&str]) -> Outcome {
    run(asking(folder, arguments), DEADLINE)
}

/// A git that is only asked and writes nothing: `git diff` renews the index unless it is told not to.
pub(crate) fn asking(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "core.quotePath=false",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "diff.autoRefreshIndex=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    command
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
}

fn parse_status(output: &str) -> (GitFacts, Vec<FileInProgress>) {
    let mut facts = GitFacts::default();
    let mut files = Vec::new();
    let mut entries = output.split('\0');
    while let Some(entry) = entries.next() {
        let (kind, rest) = entry.split_once(' ').unwrap_or((entry, ""));
        match kind {
            "#" => header(rest, &mut facts),
            "1" => files.extend(rest.splitn(8, ' ').nth(7).map(|path| file(path, changed(rest)))),
            "2" => {
                files.extend(rest.splitn(9, ' ').nth(8).map(|path| file(path, "renamed")));
                entries.next();
            }
            "u" => files.extend(rest.splitn(10, ' ').nth(9).map(|path| file(path, "conflict"))),
            "?" => files.push(file(rest, "new, untracked")),
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

fn changed(entry: &str) -> &'static str {
    let letters = entry.get(..2).unwrap_or_default();
    match letters {
        _ if letters.contains('D') => "deleted",
        _ if letters.contains('A') => "new, staged",
        _ if letters.starts_with('.') => "modified",
        _ if letters.ends_with('.') => "modified, staged",
        _ => "modified, partly staged",
    }
}

fn file(path: &str, description: &str) -> FileInProgress {
    FileInProgress { path: path.to_owned(), lines: String::new(), description: description.to_owned() }
}

type Range = (u64, u64);

fn parse_diff(diff: &str) -> Vec<(String, Vec<Range>)> {
    let mut files: Vec<(String, Vec<Range>)> = Vec::new();
    let mut in_header = false;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            in_header = true;
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| in_header) {
            let path = path.trim_end_matches('\t').trim_matches('"');
            files.push((path.strip_prefix("b/").unwrap_or(path).to_owned(), Vec::new()));
        } else if line.starts_with("@@ ") {
            in_header = false;
            if let (Some(range), Some((_, ranges))) = (hunk(line), files.last_mut()) {
                ranges.push(range);
            }
        }
    }
    files
}

fn hunk(line: &str) -> Option<Range> {
    let new = line.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (start, count) = new.split_once(',').unwrap_or((new, "1"));
    let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
    Some((start.max(1), start.max(1) + count.saturating_sub(1)))
}

/// `3-9, 45-120`: ranges that touch or nearly touch are one.
pub fn join(ranges: &[Range]) -> String {
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.0 <= last.1 + 3 => last.1 = last.1.max(range.1),
            _ => joined.push(*range),
        }
    }
    // The last ranges are where the work is.
    let left_out = joined.len().saturating_sub(RANGES_NAMED);
    let named = joined[left_out..]
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    let more = (left_out > 0).then(|| "…".to_owned());
    more.into_iter().chain(named).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(folder: &Path, line: &str) {
        let outcome = crate::shell(line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        sh(folder.path(), "git init -q -b main && git config user.email a@b && git config user.name n");
        folder
    }

    #[test]
    fn changed_files_are_named_with_their_lines_whoever_changed_them() {
        let folder = repository();
        sh(
            folder.path(),
            "seq 1 100 > a.txt && seq 1 10 > 'spaced name.txt' && git add -A && git commit -qm first",
        );
        sh(
            folder.path(),
            "sed -i '45,50s/$/x/; 90s/$/x/' a.txt && echo 11 >> 'spaced name.txt' && echo new > new.txt",
        );
        let (facts, files) = facts(folder.path(), None).unwrap();
        assert_eq!((facts.branch.as_str(), facts.subject.as_str()), ("main", "first"));
        let named: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.lines.as_str(), file.description.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                ("a.txt", "45-50, 90", "modified"),
                ("spaced name.txt", "11", "modified"),
                ("new.txt", "", "new, untracked")
            ]
        );
    }

    #[test]
    fn what_the_session_has_committed_is_named_too_also_below_the_root() {
        let folder = repository();
        let project = folder.path().join("app");
        sh(
            folder.path(),
            "mkdir app && seq 1 100 > app/a.txt && seq 1 9 > app/b.txt && git add -A && git commit -qm first",
        );
        let start = head(&project).unwrap();
        sh(
            &project,
            "sed -i '10,20s/$/x/' a.txt && git commit -qam wip && sed -i '5s/$/y/' b.txt && echo > ../outside.txt",
        );
        let (_, files) = facts(&project, Some(&start)).unwrap();
        let named: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.lines.as_str(), file.description.as_str()))
            .collect();
        assert_eq!(named, [("b.txt", "5", "modified"), ("a.txt", "10-20", COMMITTED)]);
        let (_, files) = facts(&project, Some("0000000000000000000000000000000000000000")).unwrap();
        assert_eq!(files.len(), 1, "an unknown commit is not asked about");
    }

    #[test]
    fn a_repository_without_commits_and_no_repository_at_all_are_no_errors() {
        let folder = repository();
        sh(folder.path(), "echo x > a");
        let (found, files) = facts(folder.path(), None).unwrap();
        assert_eq!((found.head, files.len()), (None, 1));
        assert!(facts(tempfile::tempdir().unwrap().path(), None).is_none());
    }

    #[test]
    fn ranges_that_touch_are_one_and_many_are_shortened() {
        assert_eq!(join(&[(1, 2), (4, 9), (20, 20)]), "1-9, 20");
        let many: Vec<Range> = (0..20).map(|n| (n * 10 + 1, n * 10 + 1)).collect();
        assert_eq!(join(&many), "…, 141, 151, 161, 171, 181, 191");
    }
}
