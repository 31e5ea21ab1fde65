//! What a session that resumes from a checkpoint is told. Facts from git, the files and the plan are stated as facts, what the
//! session before said is marked as unchecked, and what is unknown is left out.

use crate::claims::{self, Source};
use crate::state::{Cause, Check, Checkpoint, CommitRef, EditPosition, FileInProgress, ItemWork, short_id};
use crate::text::{clip, counted, one_line};

/// How many files are named at most.
const FILES: usize = 20;
/// How many commits, finished items, and lines of a failed check are named at most.
const NAMED: usize = 8;
/// How much of what the session says of itself.
const CLAIM: usize = 600;
/// How much of an item.
const ITEM: usize = 200;

/// What has happened to the work since the checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Staleness {
    /// Commits that HEAD has got since, newest first.
    pub commits: Vec<CommitRef>,
    /// How many there are in all.
    pub commit_count: usize,
    /// The checkpoint's commit, if HEAD no longer contains it (a reset, a rebase, another branch).
    pub left_behind: Option<String>,
    /// Files of the checkpoint that are no longer there.
    pub gone: Vec<String>,
    /// Files of the checkpoint whose content is another one.
    pub changed: Vec<String>,
}

impl Staleness {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(commit) = &self.left_behind {
            lines.push(format!(
                "HEAD no longer contains the checkpoint's commit {}: look at `git log` and `git reflog` first",
                short_id(commit)
            ));
        }
        if self.commit_count > 0 {
            let named: Vec<String> = self.commits.iter().take(NAMED).map(named_commit).collect();
            let rest = self.commit_count.saturating_sub(named.len());
            let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
            lines.push(format!(
                "{} by others: {}{more}",
                counted(self.commit_count, "commit"),
                named.join("; ")
            ));
        }
        lines.extend(self.gone.iter().map(|path| format!("{} is gone", one_line(path))));
        lines.extend(self.changed.iter().map(|path| format!("{} has changed", one_line(path))));
        lines
    }
}

fn named_commit(commit: &CommitRef) -> String {
    format!("{} {}", commit.short(), clip(&one_line(&commit.subject), 80))
}

/// The section of the prompt that resumes a checkpoint; the run's nonce is the seed of the fence around what the session said.
pub fn section(checkpoint: &Checkpoint, since: &Staleness, seed: &str) -> String {
    let parts = [
        format!("> {}", headline(checkpoint)),
        already_done(&checkpoint.item_work.finished),
        if checkpoint.item_work.is_begun {
            half_done(checkpoint, since, seed)
        } else {
            not_begun(checkpoint, seed)
        },
        list("Since the checkpoint:", &since.lines()),
        handoff(checkpoint),
        instructions(checkpoint, since),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("---\n\n## CONTEXT CHECKPOINT RESUME\n\n{}\n---\n", parts.join("\n\n"))
}

fn headline(checkpoint: &Checkpoint) -> String {
    let work = &checkpoint.item_work;
    let before = "the previous session";
    match (work.is_begun, work.finished.is_empty()) {
        (true, false) if work.own_item != checkpoint.current_todo_item => format!(
            "The previous session finished its item and went on: what it changed after that is listed below; {}.",
            cause(checkpoint, "it")
        ),
        (true, _) => {
            format!("This session continues an item that is half done: {}.", cause(checkpoint, before))
        }
        (false, true) => format!("The item has not been begun: {}.", cause(checkpoint, before)),
        (false, false) => format!("The previous session finished its item; {}.", cause(checkpoint, "it")),
    }
}

/// Why there is a checkpoint; `who` names the session that left it.
fn cause(checkpoint: &Checkpoint, who: &str) -> String {
    let percent = checkpoint.percent_at_checkpoint.map_or("?".to_owned(), |percent| format!("{percent}%"));
    let of_window = format!("{percent} of its context window");
    match checkpoint.cause {
        Cause::Level => format!("{who} stopped at {of_window} ({} threshold)", checkpoint.level),
        Cause::Manual => format!("{who} wrote a checkpoint on demand, at {of_window}"),
        Cause::Compact => format!("the client compacted its conversation, at {of_window}"),
        Cause::Budget => format!("{who} stopped at {of_window}, where the next item would not have fitted"),
        Cause::Step => format!(
            "{who} stopped after a commit at {of_window}, where the next step would probably not have fitted"
        ),
        Cause::Crash => format!("{who} ended in the middle of its work"),
        Cause::Unfinished => format!("{who} ended its turn with the item still open"),
    }
}

fn already_done(finished: &[String]) -> String {
    let named: Vec<String> = finished.iter().take(NAMED).map(|item| clip(&one_line(item), ITEM)).collect();
    let rest = finished.len().saturating_sub(named.len());
    let more = (rest > 0).then(|| format!("and {rest} more"));
    list("Already done:", &named.into_iter().chain(more).collect::<Vec<_>>())
}

fn half_done(checkpoint: &Checkpoint, since: &Staleness, seed: &str) -> String {
    let item = match checkpoint.current_todo_item.as_str() {
        "" => String::new(),
        item => format!("Item: {}", clip(&one_line(item), ITEM)),
    };
    // A commit that HEAD no longer contains gives no range: that is reported among the changes since the checkpoint.
    let is_known = checkpoint.item_work.began_at.is_some();
    let range = match &since.left_behind {
        Some(_) => String::new(),
        // A checkpoint of an earlier version, or of another tool.
        None if !is_known => String::new(),
        None => range(&checkpoint.item_work, checkpoint.head.as_deref()),
    };
    let parts = [
        item,
        range,
        table(&still_there(checkpoint, since), FILES),
        checks(&checkpoint.item_work.checks),
        claims(checkpoint, seed),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn not_begun(checkpoint: &Checkpoint, seed: &str) -> String {
    let next = match checkpoint.current_todo_item.as_str() {
        "" => "No item is open.".to_owned(),
        item => format!(
            "Begin the next item: \"{}\". No file has been changed for it.",
            clip(&one_line(item), ITEM)
        ),
    };
    match claim(&checkpoint.resume_summary) {
        Some(said) => {
            let said = fenced(&format!("Its last words (unchecked): {said}"), seed);
            format!("{next}\n\n{said}")
        }
        None => next,
    }
}

/// A file that is gone is no place to continue; of one that has changed since, the lines are no longer known.
fn still_there(checkpoint: &Checkpoint, since: &Staleness) -> Vec<FileInProgress> {
    let is_there = |file: &&FileInProgress| !since.gone.contains(&file.path);
    let as_it_is = |file: &FileInProgress| {
        let mut file = file.clone();
        if since.changed.contains(&file.path) {
            file.lines.clear();
            file.description.push_str(", changed since");
        }
        file
    };
    checkpoint.files_in_progress.iter().filter(is_there).map(as_it_is).collect()
}

/// Where the work on the item is in git.
pub fn range(work: &ItemWork, head: Option<&str>) -> String {
    let uncommitted = match work.uncommitted.as_slice() {
        [] => String::new(),
        paths => {
            let named: Vec<String> = paths.iter().take(NAMED).map(|path| one_line(path)).collect();
            let rest = paths.len().saturating_sub(named.len());
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            format!("{}{more}", named.join(", "))
        }
    };
    let in_progress: Vec<String> = work
        .commits
        .iter()
        .filter(|commit| commit.is_work_in_progress())
        .take(NAMED)
        .map(CommitRef::short)
        .collect();
    let in_progress = match in_progress.as_slice() {
        [] => String::new(),
        [one] => format!(", of which {one} is a work-in-progress commit"),
        several => format!(", of which {} are work-in-progress commits", several.join(", ")),
    };
    match (&work.base, work.commit_count, uncommitted.as_str()) {
        (_, 0, "") => "No file has been changed for it.".to_owned(),
        (_, 0, uncommitted) if head.is_some() => {
            format!("Its work is not committed (`git status`, `git diff HEAD`): {uncommitted}")
        }
        (_, 0, _) => "Its work is in the files below; there is no commit to compare them with.".to_owned(),
        (Some(base), ..) => {
            let base = short_id(base);
            let uncommitted = uncommitted_words(&uncommitted);
            format!("Its work: `{base}..HEAD` (`git diff {base}`){in_progress}{uncommitted}")
        }
        (None, count, _) => format!(
            "Its work: {} since the repository began (`git log -p`){in_progress}{}",
            counted(count, "commit"),
            uncommitted_words(&uncommitted)
        ),
    }
}

fn uncommitted_words(uncommitted: &str) -> String {
    if uncommitted.is_empty() {
        "; all committed".to_owned()
    } else {
        format!("; uncommitted: {uncommitted}")
    }
}

/// The files of the work, a row each.
pub fn table(files: &[FileInProgress], most: usize) -> String {
    if files.is_empty() {
        return String::new();
    }
    let rows: Vec<String> = files.iter().take(most.max(1)).map(row).collect();
    let rest = files.len().saturating_sub(rows.len());
    let more = if rest > 0 { format!("\n\n… and {}", counted(rest, "more file")) } else { String::new() };
    format!("| File | Lines | Status |\n|------|-------|--------|\n{}{more}", rows.join("\n"))
}

fn row(file: &FileInProgress) -> String {
    let cell = |text: &str| one_line(&text.replace('|', "\\|"));
    let lines = if file.lines.is_empty() { "-" } else { &file.lines };
    format!("| {} | {} | {} |", cell(&file.path), cell(lines), cell(&file.description))
}

/// What the session's checks said last.
pub fn checks(checks: &[Check]) -> String {
    let one = |check: &Check| {
        let command = clip(&one_line(&check.command).replace('`', "'"), 160);
        let outcome = if check.passed { "passed" } else { "FAILED" };
        let failures: String = check
            .failures
            .iter()
            .take(NAMED)
            .map(|line| format!("\n- {}", clip(&one_line(line), 160)))
            .collect();
        format!("Checks when it stopped: `{command}` {outcome}{failures}")
    };
    checks.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn claims(checkpoint: &Checkpoint, seed: &str) -> String {
    let lines = [
        ("Summary (its claim, unchecked)", &checkpoint.resume_summary),
        ("Progress (its claim, unchecked)", &checkpoint.progress_on_item),
        ("Next step (its claim, unchecked)", &checkpoint.next_step),
    ];
    let said = lines.iter().filter_map(|(label, words)| Some(format!("{label}: {}", claim(words)?)));
    fenced(&said.collect::<Vec<_>>().join("\n"), seed)
}

fn fenced(said: &str, seed: &str) -> String {
    claims::block(Source::Sessions, &claims::fence(seed, said), said).trim_end().to_owned()
}

fn claim(words: &str) -> Option<String> {
    let words = one_line(words);
    (!words.is_empty() && words != UNKNOWN).then(|| clip(&words, CLAIM))
}

/// What a checkpoint holds where the session said nothing.
pub const UNKNOWN: &str = "unknown";
/// The progress on an item that nothing was changed for.
pub const NOT_BEGUN: &str = "not begun";

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    format!("{title}\n{}", lines.join("\n"))
}

fn handoff(checkpoint: &Checkpoint) -> String {
    match checkpoint.handoff_file.as_str() {
        "" => String::new(),
        file => format!("More about that session (its last commands, all its files): `{}`", one_line(file)),
    }
}

fn instructions(checkpoint: &Checkpoint, since: &Staleness) -> String {
    if !checkpoint.item_work.is_begun {
        return "1. **Do not start over**: finished items stay finished.\n".to_owned();
    }
    let look = match (checkpoint.item_work.commit_count, checkpoint.item_work.uncommitted.is_empty()) {
        (0, true) => "Review what is there",
        _ => "Review that work, run the checks",
    };
    let first = format!(
        "1. **Do not start over.** {look}, then continue from there; if the notes and the files differ, trust the files.\n"
    );
    let is_known = |path: &str| {
        !since.gone.iter().chain(&since.changed).any(|known| known == path) && since.left_behind.is_none()
    };
    let files: Vec<&str> = checkpoint.files_in_progress.iter().map(|file| file.path.as_str()).collect();
    let said = place_in_words(&checkpoint.next_step, &files).filter(|place| is_known(&place.path));
    let edited = checkpoint.item_work.place.as_ref().filter(|place| is_known(&place.path));
    match (said, edited) {
        (Some(place), _) => format!(
            "{first}2. Continue from line {} of {} (its claim, unchecked).\n",
            place.line,
            one_line(&place.path)
        ),
        (None, Some(place)) => format!(
            "{first}2. Continue from line {} of {} (the changed lines end at {}).\n",
            place.line + 1,
            one_line(&place.path),
            place.line
        ),
        (None, None) => first,
    }
}

/// The place that words name: a file of the work, by its path or its name, and a line behind it, as in `oauth.ts line 91`,
/// `src/oauth.ts:91`, `line 91 of oauth.ts`. Several places are none.
pub fn place_in_words(words: &str, files: &[&str]) -> Option<EditPosition> {
    let words: Vec<&str> = words
        .split_whitespace()
        .map(|word| word.trim_matches(|letter| "`'\"(),.;".contains(letter)))
        .collect();
    let mut places: Vec<EditPosition> =
        (0..words.len()).filter_map(|at| place_at(&words, at, files)).collect();
    places.dedup();
    if places.len() == 1 { places.pop() } else { None }
}

/// The place that one of the words names, with those around it.
fn place_at(words: &[&str], at: usize, files: &[&str]) -> Option<EditPosition> {
    let (name, line) = match words[at].split_once(':') {
        Some((name, line)) if !line.is_empty() => {
            (name, line.split(':').next().and_then(|line| line.parse().ok()))
        }
        _ => (words[at].trim_end_matches(':'), None),
    };
    let path = file_named(name, files)?;
    let line = line.or_else(|| line_behind(words, at)).or_else(|| line_before(words, at))?;
    (line > 0).then_some(EditPosition { path, line })
}

/// The one file with this path or name.
fn file_named(name: &str, files: &[&str]) -> Option<String> {
    let mut found = files.iter().filter(|path| **path == name || path.rsplit('/').next() == Some(name));
    match (found.next(), found.next()) {
        (Some(only), None) => Some((*only).to_owned()),
        _ => None,
    }
}

/// `… line 91`
fn line_behind(words: &[&str], at: usize) -> Option<u64> {
    match words.get(at + 1..at + 3)? {
        ["line", number] => number.parse().ok(),
        _ => None,
    }
}

/// `line 91 of …`
fn line_before(words: &[&str], at: usize) -> Option<u64> {
    match words.get(at.checked_sub(3)?..at)? {
        ["line", number, "of" | "in"] => number.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
