//! What a session that resumes from a checkpoint is told. Facts from git, the files and the plan are stated as facts, what the
//! session before said is marked as unchecked, and what is unknown is left out.

use crate::claims::{self, Source};
use crate::state::checkpoint::UNKNOWN;
use crate::state::{BaseRelation, Cause, Check, Checkpoint, CommitRef, FileInProgress, ItemWork, short_id};
use crate::text::{clip, counted, one_line, one_line_of_code};

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

/// The heading of an item that is half done.
pub const TAKEN_OVER: &str = "## You take over this item half done";
/// The heading of an item that has not been begun.
pub const NOT_TAKEN_OVER: &str = "## The session before";

/// The section of the prompt that resumes a checkpoint; the run's promise code is the seed of the fence around what the session said.
pub fn section(checkpoint: &Checkpoint, since: &Staleness, seed: &str) -> String {
    let (heading, parts) = if checkpoint.item_work.is_begun {
        (TAKEN_OVER, half_done(checkpoint, since, seed))
    } else {
        (NOT_TAKEN_OVER, not_begun(checkpoint, since, seed))
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{heading}\n\n{}\n", parts.join("\n\n"))
}

fn half_done(checkpoint: &Checkpoint, since: &Staleness, seed: &str) -> Vec<String> {
    let work = &checkpoint.item_work;
    let who = if !work.finished.is_empty() && work.own_item != checkpoint.current_todo_item {
        "The session before finished its item, went on with this one, and"
    } else {
        "The session before"
    };
    // A checkpoint whose commit HEAD no longer contains gives no range: that is reported among the changes since the checkpoint.
    // Nor does a checkpoint of another tool.
    let range = if has_range(checkpoint, since) {
        format!(" {}", sentence(&range(work, checkpoint.head.as_deref())))
    } else {
        String::new()
    };
    vec![
        format!("{}{range}", ending(checkpoint, who)),
        already_done(&work.finished),
        table(&still_there(checkpoint, since), FILES, work.base.as_deref()),
        checks(&work.checks),
        said(checkpoint, seed),
        said_earlier(checkpoint, seed),
        list("Since it stopped:", &since.lines()),
        handoff(checkpoint),
    ]
}

fn has_range(checkpoint: &Checkpoint, since: &Staleness) -> bool {
    since.left_behind.is_none() && checkpoint.item_work.began_at.is_some()
}

/// The first step of a session that takes over an item half done; none for an item that is not begun. The section leaves it to the
/// text around it, which has steps of its own.
pub fn first_step(checkpoint: &Checkpoint, since: &Staleness) -> Option<String> {
    let work = &checkpoint.item_work;
    if !work.is_begun {
        return None;
    }
    let has_diff = has_range(checkpoint, since) && (work.commit_count > 0 || !work.uncommitted.is_empty());
    let look = match &work.base {
        Some(base) if has_diff && work.base_relation != BaseRelation::Missing => {
            format!("Read `git diff {}`", short_id(base))
        }
        _ => "Look at what is there".to_owned(),
    };
    Some(format!(
        "Do not start over. {look}, run the checks, then go on; where words and files differ, the files are right"
    ))
}

/// Of a finished item no file, no line and no next step is handed on.
fn not_begun(checkpoint: &Checkpoint, since: &Staleness, seed: &str) -> Vec<String> {
    let finished = &checkpoint.item_work.finished;
    let before = match (finished.is_empty(), checkpoint.cause) {
        (true, _) => ending(checkpoint, "It"),
        // Somebody else has ticked the item since.
        (false, Cause::Unfinished) => "Its item is ticked by now.".to_owned(),
        (
            false,
            Cause::Level | Cause::Manual | Cause::Compact | Cause::Budget | Cause::Step | Cause::Crash,
        ) => ending(checkpoint, "It finished its item, and"),
    };
    let begin = match checkpoint.current_todo_item.as_str() {
        "" => "",
        _ => " Your item is not begun: no file has been changed for it.",
    };
    vec![
        format!("{before}{begin}"),
        already_done(finished),
        said(checkpoint, seed),
        list("Since it stopped:", &since.lines()),
        handoff(checkpoint),
    ]
}

/// How the session came to its checkpoint, with the words that begin the sentence.
fn ending(checkpoint: &Checkpoint, who: &str) -> String {
    let at = checkpoint
        .percent_at_checkpoint
        .map_or(String::new(), |percent| format!(" at {percent}% of its context window"));
    match checkpoint.cause {
        Cause::Level if at.is_empty() => format!("{who} stopped."),
        Cause::Level => format!("{who} stopped{at} ({}).", checkpoint.level),
        Cause::Manual => format!("{who} wrote a checkpoint on demand{at}."),
        // A session reads this of its own conversation, too.
        Cause::Compact => format!("The client compacted the conversation{at}."),
        Cause::Budget => format!("{who} stopped{at}, where the next item would not have fitted."),
        Cause::Step => {
            format!("{who} stopped after a commit{at}, where the next step would probably not have fitted.")
        }
        Cause::Crash => format!("{who} ended in the middle of its work."),
        Cause::Unfinished => format!("{who} ended its turn with the item still open."),
    }
}

/// A range as a sentence.
pub fn sentence(words: &str) -> String {
    if words.ends_with('.') { words.to_owned() } else { format!("{words}.") }
}

fn already_done(finished: &[String]) -> String {
    let named: Vec<String> = finished.iter().take(NAMED).map(|item| clip(&one_line(item), ITEM)).collect();
    let rest = finished.len().saturating_sub(named.len());
    let more = (rest > 0).then(|| format!("and {rest} more"));
    list("Already done:", &named.into_iter().chain(more).collect::<Vec<_>>())
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
    let rest = if work.commit_count == 0 && uncommitted.is_empty() {
        String::new()
    } else {
        format!("{}{}", of_which(work), uncommitted_words(&uncommitted))
    };
    match (&work.base, work.base_relation, work.commit_count) {
        (_, BaseRelation::Missing, _) => {
            format!(
                "The commit on which it began is gone from git; the files below are what is known of it{rest}"
            )
        }
        (Some(base), BaseRelation::Rewritten, _) => {
            let base = short_id(base);
            format!(
                "Its work: `git diff {base}`, which may show changes by others, for HEAD no longer contains {base} (amended, rebased or reset){rest}"
            )
        }
        (_, _, 0) if uncommitted.is_empty() => "No file has been changed for it.".to_owned(),
        (base, _, 0) if head.is_some() => {
            // Commits by others since then are no work on it.
            let base = base.as_deref().filter(|_| work.by_others.is_empty());
            let base = base.map_or("HEAD".to_owned(), short_id);
            format!("Its work is not committed (`git status`, `git diff {base}`): {uncommitted}")
        }
        (_, _, 0) => "Its work is in the files below; there is no commit to compare them with.".to_owned(),
        (Some(base), ..) => {
            let base = short_id(base);
            format!("Its work: `{base}..HEAD` (`git diff {base}`){rest}")
        }
        (None, _, count) => {
            let count = counted(count, "commit");
            format!("Its work: {count} since the repository began (`git log -p`){rest}")
        }
    }
}

/// Which commits of the work are no finished steps of it: work in progress, and what others committed among them.
fn of_which(work: &ItemWork) -> String {
    let ids = |is_meant: fn(&CommitRef) -> bool| -> Vec<String> {
        work.commits.iter().filter(|commit| is_meant(commit)).take(NAMED).map(CommitRef::short).collect()
    };
    let by_others: Vec<String> = work.by_others.iter().take(NAMED).map(|id| short_id(id)).collect();
    let groups = [
        (
            ids(CommitRef::is_checkpoint),
            "a work-in-progress commit by Plimsoll",
            "work-in-progress commits by Plimsoll",
        ),
        (
            ids(|commit| commit.is_work_in_progress() && !commit.is_checkpoint()),
            "a work-in-progress commit",
            "work-in-progress commits",
        ),
        (by_others, "by others", "by others"),
    ];
    let words = groups.into_iter().filter_map(|(ids, one, several)| match ids.as_slice() {
        [] => None,
        [id] => Some(format!("{id} is {one}")),
        ids => Some(format!("{} are {several}", ids.join(", "))),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { String::new() } else { format!(", of which {}", words.join(" and ")) }
}

fn uncommitted_words(uncommitted: &str) -> String {
    if uncommitted.is_empty() {
        "; all committed".to_owned()
    } else {
        format!("; uncommitted: {uncommitted}")
    }
}

/// The files of the work, a row each, the one touched last first. The last column is about all work since the base.
pub fn table(files: &[FileInProgress], most: usize, base: Option<&str>) -> String {
    if files.is_empty() {
        return String::new();
    }
    let rows: Vec<String> = files.iter().take(most.max(1)).map(row).collect();
    let rest = files.len().saturating_sub(rows.len());
    let more = if rest > 0 { format!("\n\n… and {}", counted(rest, "more file")) } else { String::new() };
    let since = base.map_or(String::new(), |base| format!(" since {}", short_id(base)));
    format!("| File | Lines touched last | Change{since} |\n|---|---|---|\n{}{more}", rows.join("\n"))
}

fn row(file: &FileInProgress) -> String {
    let cell = |text: &str| one_line(&text.replace('|', "\\|"));
    let lines = if file.lines.is_empty() { "-" } else { &file.lines };
    let counts = match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!(" (+{added} -{removed})"),
        _ => String::new(),
    };
    format!("| {} | {} | {}{counts} |", cell(&file.path), cell(lines), cell(&file.description))
}

/// What the session's checks said last.
pub fn checks(checks: &[Check]) -> String {
    let checks: Vec<String> =
        checks.iter().map(|one| format!("Check {}", check(one, "by that session"))).collect();
    checks.join("\n")
}

/// Describes how a check ended last, who ran it, and what failed.
pub fn check(check: &Check, by: &str) -> String {
    let command = one_line_of_code(&check.command, 160);
    let outcome = if check.passed { "passed" } else { "FAILED" };
    let before = if check.is_before_edit { ", before its last edit" } else { "" };
    let failures: String =
        check.failures.iter().take(NAMED).map(|line| format!("\n- {}", clip(&one_line(line), 160))).collect();
    format!("`{command}`, run {by}: {outcome}{before}{failures}")
}

/// What the session said of its work, with the labels that no other line of the section has; the fence calls it unchecked.
fn said(checkpoint: &Checkpoint, seed: &str) -> String {
    let is_begun = checkpoint.item_work.is_begun;
    let lines = [
        ("It said", &checkpoint.resume_summary, true),
        ("Progress, in its words", &checkpoint.progress_on_item, is_begun),
        ("Next step, in its words", &checkpoint.next_step, is_begun),
    ];
    let said: Vec<String> = lines
        .into_iter()
        .filter(|(.., is_handed_on)| *is_handed_on)
        .filter_map(|(label, words, _)| Some(format!("{label}: {}", claim(words)?)))
        .collect();
    let said = said.join("\n");
    claims::block(Source::Sessions, &claims::fence(seed, &said), &said).trim_end().to_owned()
}

/// What an earlier session said of the item, if the last one said nothing.
fn said_earlier(checkpoint: &Checkpoint, seed: &str) -> String {
    let Some(notes) = &checkpoint.earlier_notes else { return String::new() };
    let lines = [
        ("It said", &notes.summary),
        ("Progress, in its words", &notes.progress),
        ("Next step, in its words", &notes.next_step),
    ];
    let said = lines.into_iter().filter_map(|(label, words)| Some(format!("{label}: {}", claim(words)?)));
    let said: Vec<String> = said.collect();
    let said = said.join("\n");
    let block = claims::block(Source::Sessions, &claims::fence(seed, &said), &said);
    format!(
        "It said neither how far it came nor what comes next. The last session at this item that did was that of iteration {}:\n\n{}",
        notes.iteration,
        block.trim_end()
    )
}

fn claim(words: &str) -> Option<String> {
    let words = one_line(words);
    (!words.is_empty() && words != UNKNOWN).then(|| clip(&words, CLAIM))
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    format!("{title}\n{}", lines.join("\n"))
}

/// A path that the state names, for a text between backticks. An agent can write the state.
fn path(file: &str) -> String {
    one_line_of_code(file, ITEM)
}

fn handoff(checkpoint: &Checkpoint) -> String {
    match checkpoint.handoff_file.as_str() {
        "" => String::new(),
        file => {
            let earlier = match checkpoint.earlier_handoff.as_str() {
                "" => String::new(),
                earlier => format!("; about the one before it at this item: `{}`", path(earlier)),
            };
            format!("More about that session (its last command, all its files): `{}`{earlier}", path(file))
        }
    }
}

#[cfg(test)]
mod tests;
