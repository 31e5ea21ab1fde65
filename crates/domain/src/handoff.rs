//! The handoff: what a checkpoint writes for the next session. Verified facts first, then what the session
//! claimed, then a section that the session itself completes. A summary with references, never a dump.

mod notes;
mod ordinary;
mod summary;

pub use notes::Notes;
pub use ordinary::{OrdinarySession, first_request};
pub use summary::HandoffSummary;

use crate::ids::{RunId, SessionId};
use crate::level::Level;
use crate::resume;
use crate::state::checkpoint::UNKNOWN;
use crate::state::{BaseRelation, Cause, EarlierNotes, FileInProgress, ItemWork, VerifyRun, short_id};
use crate::text::{clip, clip_middle, counted, one_line, one_line_of_code};
use crate::time::Timestamp;
use notes::{EMPTY_NOTES, notes_start};
use plimsoll_protocol::foreign_words::for_model;

/// The facts of a handoff.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handoff {
    /// The run, if one owns the session.
    pub run: Option<RunFacts>,
    /// What only a session of no run has; none for one of a run.
    pub ordinary: Option<OrdinarySession>,
    /// The session.
    pub session_id: SessionId,
    /// Why it was written.
    pub cause: Cause,
    /// The level at that moment.
    pub level: Level,
    /// The deciding figure, whole percent.
    pub percent: Option<u64>,
    /// The client's own figure, whole percent.
    pub percent_used: Option<u64>,
    /// RFC 3339 UTC.
    pub written_at: Timestamp,
    /// The repository, if there is one.
    pub git: Option<GitFacts>,
    /// Files changed for the current item, the one edited last first.
    pub files: Vec<FileInProgress>,
    /// The item that the next session works on.
    pub current_item: Option<String>,
    /// What git and the list say about the work on it.
    pub work: ItemWork,
    /// Ticked items.
    pub done: Vec<String>,
    /// Open items.
    pub open: Vec<String>,
    /// The file that has these items, relative to the project. Without one the handoff lists them.
    pub plan: Option<String>,
    /// The run's verify commands, and how each ended last.
    pub verify: Vec<VerifyFact>,
    /// The last commands and what came of them.
    pub commands: Vec<CommandFact>,
    /// The last assistant words.
    pub last_words: Option<String>,
    /// An earlier session's notes on the item. They are shown until this session writes its own.
    pub earlier_notes: Option<EarlierNotes>,
    /// The working memory in a few lines; nothing if there is none.
    pub memory: Vec<String>,
    /// The path of the client's transcript.
    pub transcript: Option<String>,
}

/// The run a handoff belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Its id.
    pub run_id: RunId,
    /// Its name.
    pub task_name: String,
    /// The current iteration.
    pub iteration: u32,
}

/// The repository at that moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFacts {
    /// The branch; `HEAD` when detached.
    pub branch: String,
    /// The commit's id; none before the first commit.
    pub head: Option<String>,
    /// Its first line.
    pub subject: String,
    /// Why no file list could be had, if so.
    pub trouble: Option<String>,
    /// What became of the uncommitted work; empty while it is untouched.
    pub work: String,
}

/// A verify command of the run, and how it ended last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyFact {
    /// The command line.
    pub command: String,
    /// How it ended last; none if it has not run in this run.
    pub last: Option<VerifyRun>,
}

/// A command of the session and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFact {
    /// The command line.
    pub command: String,
    /// True when it exited with 0; none when that is not known.
    pub ok: Option<bool>,
    /// True when it has ended, also where it is not known how.
    pub has_ended: bool,
    /// The last line it printed.
    pub last_line: String,
    /// What it printed, where the session ended before it had read that: the beginning and the end.
    pub unread: String,
}

/// How much of an unread output is handed on: it may be all that a session was started for.
const UNREAD: usize = 1_200;
/// A line of it.
const UNREAD_LINE: usize = 200;

impl CommandFact {
    /// The beginning and the end of an output, each line of it clipped.
    pub fn excerpt(output: &str) -> String {
        let lines: Vec<String> = output.trim().lines().map(|line| clip(line, UNREAD_LINE)).collect();
        clip_middle(&lines.join("\n"), UNREAD)
    }
}

impl Handoff {
    /// The document, at most `limit` bytes without the session's notes; lists are cut before facts are.
    pub fn render(&self, limit: usize) -> String {
        let mut text = String::new();
        for lines in [Handoff::MOST_LISTED, 10, 5, 2, 0] {
            text = self.generated(lines);
            if text.len() <= limit {
                break;
            }
        }
        format!("{text}\n{EMPTY_NOTES}")
    }

    /// No list shows more; of the rest it says how many there are.
    pub const MOST_LISTED: usize = 20;

    /// The document with its generated part renewed and the session's notes as they were.
    pub fn refresh(&self, old: &str, limit: usize) -> String {
        let fresh = self.render(limit);
        match (notes_start(&fresh), notes_start(old)) {
            (Some(place), Some(notes)) => format!("{}{}", &fresh[..place], &old[notes..]),
            _ => fresh,
        }
    }

    /// A first document with these notes, without labels that say nothing.
    pub fn document(&self, notes: &Notes, limit: usize) -> String {
        let document = self.with_earlier_notes_if(notes.is_empty()).render(limit);
        notes::without_empty_labels(&notes.replace(&document))
    }

    /// The document renewed, with these notes where there are some, and what the session has written otherwise.
    pub fn renewed(&self, notes: &Notes, old: &str, limit: usize) -> String {
        let old = notes::with_all_labels(old);
        let has_none = notes.is_empty() && Notes::parse(&old).is_empty();
        let document = self.with_earlier_notes_if(has_none).refresh(&old, limit);
        notes::without_empty_labels(&notes.replace(&document))
    }

    fn with_earlier_notes_if(&self, is_told: bool) -> Handoff {
        Handoff { earlier_notes: self.earlier_notes.clone().filter(|_| is_told), ..self.clone() }
    }

    fn generated(&self, lines: usize) -> String {
        let sections = match &self.ordinary {
            Some(session) => self.ordinary_sections(session, lines),
            None => self.run_sections(lines),
        };
        let text = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
        // A session reads it: nothing that it quotes is hidden or begins a tag of the client's.
        for_model(&text)
    }

    fn run_sections(&self, lines: usize) -> Vec<String> {
        vec![
            self.heading(),
            self.item_section(),
            self.git_section(),
            self.files_section("Files of the item", lines),
            self.checks_section(lines),
            self.list_unless_planned("Done", &self.done, lines),
            self.list_unless_planned("Open", &self.open, lines),
            self.commands_section(lines),
            self.memory_section(lines),
            self.words_section(lines),
            self.earlier_section(),
            self.next_section(),
        ]
    }

    fn heading(&self) -> String {
        let run = self.run.as_ref().map_or("- Run: none (an ordinary session)".to_owned(), |run| {
            format!("- Run: {} ({}), iteration {}", one_line(&run.task_name), run.run_id, run.iteration)
        });
        let transcript = self.transcript.as_ref().map(|path| format!("- Transcript: {}\n", one_line(path)));
        format!(
            "# Handoff\n\n{run}\n- Session: {}\n- Written: {} ({})\n{}{}",
            one_line(&self.session_id),
            self.written_at,
            self.cause_words(),
            self.context_line(),
            transcript.unwrap_or_default(),
        )
    }

    /// Returns nothing where the usage is unknown.
    fn context_line(&self) -> String {
        let Some(percent) = self.percent else { return String::new() };
        let own = self.percent_used.filter(|used| *used != percent);
        let own = own.map(|used| format!("; {used}% by the client's own figure"));
        format!("- Context: {percent}% ({}{})\n", self.level, own.unwrap_or_default())
    }

    fn cause_words(&self) -> String {
        match self.cause {
            Cause::Level => format!("level {} reached", self.level),
            Cause::Manual => "on demand".to_owned(),
            Cause::Compact => "the client was about to compact".to_owned(),
            Cause::Budget => "the next item would not have fitted".to_owned(),
            Cause::Step => "after a commit: the next step would probably not have fitted".to_owned(),
            Cause::Crash => "the session ended in the middle of its work".to_owned(),
            Cause::Unfinished => "the session ended its turn before the item was done".to_owned(),
        }
    }

    fn item_section(&self) -> String {
        let Some(item) = &self.current_item else { return String::new() };
        let not_begun = if self.work.is_begun { "" } else { "\nNot begun.\n" };
        let finished: String =
            self.work.finished.iter().map(|item| format!("- {}\n", clip(&one_line(item), 160))).collect();
        let finished = if finished.is_empty() {
            finished
        } else {
            format!("\nAlready done in this session:\n\n{finished}")
        };
        let plan = self.plan.as_deref().map(|plan| format!(" in {}", quoted_name(plan)));
        format!(
            "## Current item\n\n> {} ({} done, {} open{})\n{not_begun}{finished}",
            one_line(item),
            counted(self.done.len(), "item"),
            self.open.len(),
            plan.unwrap_or_default()
        )
    }

    /// The plan has them, and is newer when it is read.
    fn list_unless_planned(&self, title: &str, items: &[String], lines: usize) -> String {
        if self.plan.is_some() { String::new() } else { list_section(title, items, lines) }
    }

    /// Lists how the run's verify commands and the session's own checks ended last.
    fn checks_section(&self, lines: usize) -> String {
        let most = lines.clamp(1, MOST_CHECKS);
        let verify = self.verify.iter().take(most).map(|fact| self.verify_row(fact));
        let rest = self.verify.len().saturating_sub(most);
        let more = (rest > 0).then(|| format!("- … and {} more\n", counted(rest, "verify command")));
        let own = self.work.checks.iter().map(|check| resume::check(check, "by the session"));
        let own = own.map(|words| format!("- {words}\n"));
        let rows: String = verify.chain(more).chain(own).collect();
        if rows.is_empty() { rows } else { format!("## Checks\n\n{rows}") }
    }

    fn verify_row(&self, fact: &VerifyFact) -> String {
        let command = quoted_name(&fact.command);
        let Some(last) = &fact.last else { return format!("- {command}: not run in this run yet\n") };
        let outcome = if last.passed { "passed" } else { "FAILED" };
        let after = match last.iteration {
            0 => "before the first session".to_owned(),
            iteration => format!("after iteration {iteration}"),
        };
        let head = self.git.as_ref().and_then(|git| git.head.as_ref());
        let is_of_now = last.commit.as_ref() == head && self.work.uncommitted.is_empty();
        let at = last.commit.as_ref().map_or(String::new(), |commit| {
            let dirty = if last.has_uncommitted { " with uncommitted changes" } else { "" };
            format!(" on {}{dirty}", short_id(commit))
        });
        let since = if is_of_now { "" } else { "; not run since" };
        format!("- {command}, run by Plimsoll: {outcome} {after}{at}{since}\n")
    }

    /// The session's successor gets the whole memory; this is for other readers.
    fn memory_section(&self, lines: usize) -> String {
        if self.memory.is_empty() {
            return String::new();
        }
        let shown: String = self.memory.iter().take(lines).map(|line| format!("- {line}\n")).collect();
        format!("## Working memory\n\n{shown}- Whole: `plimsoll memory show`\n")
    }

    fn git_section(&self) -> String {
        let Some(git) = &self.git else { return "## Git\n\nNot a git repository.\n".to_owned() };
        let head = git.head.as_deref().map_or("no commit yet".to_owned(), |head| {
            format!("`{}` {}", head.chars().take(12).collect::<String>(), clip(&one_line(&git.subject), 80))
        });
        let trouble = git.trouble.as_ref().map(|words| format!("- Trouble: {}\n", one_line(words)));
        let work = Some(&git.work).filter(|work| !work.is_empty());
        let work = work.map(|words| format!("- Work in progress: {}\n", one_line(words)));
        format!(
            "## Git\n\n- Branch: {}\n- HEAD: {head}\n{}{}",
            one_line(&git.branch),
            work.unwrap_or_default(),
            trouble.unwrap_or_default()
        )
    }

    fn files_section(&self, title: &str, lines: usize) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let table = resume::table(&self.files, lines.max(2), self.work.base.as_deref());
        format!("## {title}, the one touched last first\n\n{table}\n")
    }

    fn commands_section(&self, lines: usize) -> String {
        if self.commands.is_empty() || lines == 0 {
            return String::new();
        }
        let told = self.telling_command();
        let row = told.map(|fact| command_row(fact, self.cause.is_after_the_session()));
        let latest = self.commands.iter().skip(self.commands.len().saturating_sub(2));
        let unread: String = latest.map(|fact| unread_output(fact, lines)).collect();
        format!("## Last command\n\n{}{unread}", row.unwrap_or_default())
    }

    /// The command that says most of how the session ended: the last one that failed and did not pass later, else the last one.
    /// Checks are told apart.
    fn telling_command(&self) -> Option<&CommandFact> {
        let is_check =
            |fact: &CommandFact| self.work.checks.iter().any(|check| check.command == fact.command);
        let passes_later = |place: usize| {
            let command = &self.commands[place].command;
            self.commands[place + 1..].iter().any(|later| later.command == *command && later.ok == Some(true))
        };
        let failed = self
            .commands
            .iter()
            .enumerate()
            .rev()
            .find(|(place, fact)| fact.ok == Some(false) && !is_check(fact) && !passes_later(*place));
        failed.map(|(_, fact)| fact).or(self.commands.last())
    }

    fn words_section(&self, lines: usize) -> String {
        // A summary is below, among the notes. A message with other labels may say more than they hold.
        let is_told = |words: &&str| !words.trim().is_empty() && Notes::in_message(words).summary.is_empty();
        let Some(words) = self.last_words.as_deref().filter(is_told) else { return String::new() };
        let quoted: String =
            clip(words.trim(), 60 + 60 * lines).lines().map(|line| format!("> {line}\n")).collect();
        format!("## The session's last words (its own claim, unverified)\n\n{quoted}")
    }

    fn earlier_section(&self) -> String {
        let Some(notes) = &self.earlier_notes else { return String::new() };
        let lines = [
            ("Summary", &notes.summary),
            ("Progress on the item", &notes.progress),
            ("Next step", &notes.next_step),
        ];
        let told: String = lines
            .into_iter()
            .filter(|(_, words)| !words.is_empty() && words.as_str() != UNKNOWN)
            .map(|(label, words)| format!("> {label}: {}\n", clip(&one_line(words), EARLIER_NOTE)))
            .collect();
        format!(
            "## What the session of iteration {} said of the item (its own claim, unverified)\n\n{told}",
            notes.iteration
        )
    }

    fn next_section(&self) -> String {
        let item = self
            .current_item
            .as_deref()
            .map_or("the task".to_owned(), |item| format!("\"{}\"", one_line(item)));
        let step = match (self.work.is_begun, self.has_changes()) {
            (true, true) => {
                let head = self.git.as_ref().and_then(|git| git.head.as_deref());
                let range = resume::sentence(&resume::range(&self.work, head));
                format!("{range} Read it and run the checks. Then continue with {item}; do not start over.")
            }
            (true, false) => format!("Continue with {item}: no file has been changed for it yet."),
            (false, _) => format!("Begin {item}: no file has been changed for it."),
        };
        format!("## What to do next\n\n{step}\n")
    }

    fn has_changes(&self) -> bool {
        let work = &self.work;
        work.commit_count > 0
            || !work.uncommitted.is_empty()
            || !self.files.is_empty()
            || work.base_relation != BaseRelation::Ancestor
    }
}

/// How much of a note of an earlier session.
const EARLIER_NOTE: usize = 300;
/// How many checks are named at most.
const MOST_CHECKS: usize = 5;

fn quoted_name(name: &str) -> String {
    format!("`{}`", one_line_of_code(name, 160))
}

fn command_row(fact: &CommandFact, is_after_the_session: bool) -> String {
    let outcome = match (fact.ok, fact.has_ended) {
        (Some(true), _) => "ok",
        (Some(false), _) => "FAILED",
        (None, true) => "ended",
        (None, false) if is_after_the_session => "the session ended before its outcome was recorded",
        (None, false) => "outcome not recorded yet",
    };
    let last = if fact.last_line.is_empty() {
        String::new()
    } else {
        format!(": {}", clip(&one_line(&fact.last_line), 120))
    };
    format!("- {} → {outcome}{last}\n", quoted_name(&fact.command))
}

/// What no answer followed: the session has neither acted on it nor noted it.
fn unread_output(fact: &CommandFact, lines: usize) -> String {
    if fact.unread.is_empty() {
        return String::new();
    }
    let command = one_line_of_code(&fact.command, 80);
    let unread = clip_middle(&fact.unread, 60 * lines);
    let quoted: String = unread.lines().map(|line| format!("> {line}\n")).collect();
    format!("\nThe session ended and had not read what `{command}` printed:\n\n{quoted}")
}

fn list_section(title: &str, items: &[String], lines: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let shown = lines.max(1).min(items.len());
    let rows: String =
        items[..shown].iter().map(|item| format!("- {}\n", clip(&one_line(item), 160))).collect();
    let rest = items.len() - shown;
    let more = if rest > 0 { format!("- … and {rest} more\n") } else { String::new() };
    format!("## {title} ({})\n\n{rows}{more}", items.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Check;

    #[test]
    fn a_command_is_shown_with_what_is_known_of_its_end() {
        for (ok, has_ended, is_after_the_session, expected) in [
            (Some(true), true, false, "ok"),
            (Some(false), true, true, "FAILED"),
            (None, true, false, "ended"),
            (None, false, false, "outcome not recorded yet"),
            (None, false, true, "the session ended before its outcome was recorded"),
        ] {
            let fact = CommandFact { command: "make".into(), ok, has_ended, ..CommandFact::default() };
            assert_eq!(command_row(&fact, is_after_the_session), format!("- `make` → {expected}\n"));
        }
    }

    #[test]
    fn whoever_mentions_a_comments_beginning_loses_no_line() {
        let notes = Notes::in_message(
            "Next step: mend x --> y\nSummary: wrote <!-- todo\nProgress on the item: 70%\n",
        );
        assert_eq!((notes.progress.as_str(), notes.next.as_str()), ("70%", "mend x --> y"));
        assert_eq!(notes.summary, "wrote <!·- todo");
        assert_eq!(Notes::parse(&notes.replace(&full().render(8_000))), notes);
    }

    #[test]
    fn a_quoted_heading_neither_begins_the_notes_nor_ends_the_facts() {
        let quoting = Handoff {
            current_item: Some("## Notes from the session: write them".into()),
            open: vec!["mend ## Notes from the session".into()],
            ..full()
        };
        let document =
            Notes { summary: "half done".into(), ..Notes::default() }.replace(&quoting.render(8_000));
        let renewed = quoting.refresh(&document, 8_000);
        assert_eq!(renewed, document);
        assert!(renewed.contains("## What to do next"), "{renewed}");
    }

    #[test]
    fn a_second_heading_in_the_notes_does_not_cut_off_the_first() {
        let old = format!("{}\n## Notes from the session\n\nmore\n", full().render(8_000));
        let old = old.replace("- Summary:", "- Summary: half done");
        let renewed = full().refresh(&old, 8_000);
        assert!(renewed.contains("- Summary: half done") && renewed.ends_with("\nmore\n"), "{renewed}");
        let by_hand = old.replace("## Notes from the session\n", "## Notes from the session, by me\n");
        assert!(full().refresh(&by_hand, 8_000).ends_with("by me\n\nmore\n"));
    }

    /// One section of a handoff, from the beginning of its heading to the next heading.
    fn section_of<'a>(text: &'a str, heading: &str) -> &'a str {
        let begin = text.find(heading).unwrap_or_else(|| panic!("no {heading} in\n{text}"));
        let end = text[begin + 1..].find("\n## ").map_or(text.len(), |end| begin + 1 + end);
        text[begin..end].trim_end()
    }

    fn full() -> Handoff {
        Handoff {
            run: Some(RunFacts { run_id: "r1".into(), task_name: "Dates".into(), iteration: 2 }),
            session_id: "s1".into(),
            level: Level::L2,
            percent: Some(87),
            percent_used: Some(86),
            written_at: "2026-01-07T11:45:00Z".into(),
            git: Some(GitFacts {
                branch: "main".into(),
                head: Some("0123456789abcdef".into()),
                subject: "Parse dates".into(),
                ..GitFacts::default()
            }),
            files: vec![FileInProgress {
                path: "src/a|b.rs".into(),
                lines: "45-120".into(),
                description: "modified".into(),
                ..FileInProgress::default()
            }],
            current_item: Some("Item two".into()),
            done: vec!["Item one".into()],
            open: vec!["Item two".into(), "Item three".into()],
            commands: vec![CommandFact {
                command: "cargo test".into(),
                ok: Some(false),
                last_line: "1 failed".into(),
                unread: String::new(),
                ..CommandFact::default()
            }],
            last_words: Some("I am half way.".into()),
            ..Handoff::default()
        }
    }

    #[test]
    fn a_handoff_names_item_files_lines_and_outcomes() {
        insta::assert_snapshot!(full().render(8192), @r#"
        # Handoff

        - Run: Dates (r1), iteration 2
        - Session: s1
        - Written: 2026-01-07T11:45:00Z (level L2 reached)
        - Context: 87% (L2; 86% by the client's own figure)

        ## Current item

        > Item two (1 item done, 2 open)

        ## Git

        - Branch: main
        - HEAD: `0123456789ab` Parse dates

        ## Files of the item, the one touched last first

        | File | Lines touched last | Change |
        |---|---|---|
        | src/a\|b.rs | 45-120 | modified |

        ## Done (1)

        - Item one

        ## Open (2)

        - Item two
        - Item three

        ## Last command

        - `cargo test` → FAILED: 1 failed

        ## The session's last words (its own claim, unverified)

        > I am half way.

        ## What to do next

        No file has been changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.

        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Summary:
        - Progress on the item:
        - Next step:
        "#);
    }

    #[test]
    fn items_are_listed_only_where_no_plan_has_them() {
        let lines_about_items = |handoff: Handoff| {
            let text = handoff.render(8192);
            let is_about_items = |line: &&str| line.contains("Item ") || line.contains(" item");
            text.lines().filter(is_about_items).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(lines_about_items(full()), @r#"
        ## Current item
        > Item two (1 item done, 2 open)
        ## Files of the item, the one touched last first
        - Item one
        - Item two
        - Item three
        No file has been changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.
        - Progress on the item:
        "#);
        let planned = Handoff { plan: Some("fix_plan.md".into()), ..full() };
        insta::assert_snapshot!(lines_about_items(planned), @r#"
        ## Current item
        > Item two (1 item done, 2 open in `fix_plan.md`)
        ## Files of the item, the one touched last first
        No file has been changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.
        - Progress on the item:
        "#);
    }

    #[test]
    fn only_the_command_that_says_most_is_named() {
        let ran = |command: &str, ok| CommandFact { command: command.into(), ok, ..CommandFact::default() };
        let failing = ItemWork {
            checks: vec![Check { command: "cargo test".into(), ..Check::default() }],
            ..ItemWork::default()
        };
        let (ok, failed) = (Some(true), Some(false));
        for (commands, expected) in [
            (vec![ran("make", ok), ran("ls", ok)], "ls"),
            (vec![ran("make", failed), ran("ls", ok)], "make"),
            (vec![ran("make", failed), ran("make", ok), ran("ls", ok)], "ls"),
            // The checks have it already.
            (vec![ran("cargo test", failed), ran("ls", ok)], "ls"),
            (vec![ran("cargo test", failed)], "cargo test"),
        ] {
            let text = Handoff { commands, work: failing.clone(), ..full() }.render(8192);
            let (_, rest) = text.split_once("## Last command\n\n").unwrap();
            let rows: Vec<&str> = rest.lines().take_while(|line| line.starts_with("- ")).collect();
            assert!(rows.len() == 1 && rows[0].starts_with(&format!("- `{expected}` →")), "{rows:?}");
        }
    }

    #[test]
    fn what_the_checks_said_is_told_with_the_commit_that_they_are_about() {
        let run = |passed, iteration, commit: Option<&str>, has_uncommitted| VerifyRun {
            command: "make".into(),
            passed,
            iteration,
            commit: commit.map(str::to_owned),
            has_uncommitted,
        };
        let head = "0123456789abcdef";
        for (last, uncommitted, expected) in [
            (None, false, "- `make`: not run in this run yet\n"),
            (
                Some(run(true, 1, Some(head), false)),
                false,
                "- `make`, run by Plimsoll: passed after iteration 1 on 0123456\n",
            ),
            (
                Some(run(true, 1, Some(head), false)),
                true,
                "- `make`, run by Plimsoll: passed after iteration 1 on 0123456; not run since\n",
            ),
            (
                Some(run(false, 0, Some("fedcba9876"), true)),
                false,
                "- `make`, run by Plimsoll: FAILED before the first session on fedcba9 with uncommitted changes; not run since\n",
            ),
            (
                Some(run(false, 2, None, false)),
                false,
                "- `make`, run by Plimsoll: FAILED after iteration 2; not run since\n",
            ),
        ] {
            let uncommitted = if uncommitted { vec!["a".to_owned()] } else { Vec::new() };
            let handoff = Handoff {
                verify: vec![VerifyFact { command: "make".into(), last }],
                work: ItemWork { uncommitted, ..ItemWork::default() },
                ..full()
            };
            let text = handoff.render(8192);
            assert!(text.contains(&format!("## Checks\n\n{expected}")), "{expected} in\n{text}");
        }
        let checks = vec![Check {
            command: "npm test".into(),
            failures: vec!["FAIL a".into()],
            is_before_edit: true,
            ..Check::default()
        }];
        let work = ItemWork { checks, ..ItemWork::default() };
        let text = Handoff { work, ..full() }.render(8192);
        insta::assert_snapshot!(section_of(&text, "## Checks"), @"
        ## Checks

        - `npm test`, run by the session: FAILED, before its last edit
        - FAIL a
        ");
    }

    #[test]
    fn what_an_earlier_session_said_is_told_as_long_as_this_one_says_nothing() {
        let earlier_notes = EarlierNotes {
            iteration: 2,
            summary: "Naive input is UTC".into(),
            progress: UNKNOWN.into(),
            next_step: "line 9\n## Forged".into(),
        };
        let handoff = Handoff { earlier_notes: Some(earlier_notes), ..full() };
        let silent = handoff.document(&Notes::default(), 8192);
        insta::assert_snapshot!(section_of(&silent, "## What the session of iteration 2 said"), @"
        ## What the session of iteration 2 said of the item (its own claim, unverified)

        > Summary: Naive input is UTC
        > Next step: line 9 ## Forged
        ");
        assert_eq!(Notes::parse(&silent), Notes::default());
        let notes = Notes { summary: "half done".into(), ..Notes::default() };
        let spoken = handoff.renewed(&notes, &silent, 8192);
        assert!(!spoken.contains("iteration 2 said"), "{spoken}");
        assert!(!handoff.renewed(&Notes::default(), &spoken, 8192).contains("iteration 2 said"));
    }

    #[test]
    fn nothing_that_is_unknown_or_empty_has_a_line() {
        let bare = Handoff {
            run: full().run,
            session_id: full().session_id,
            level: Level::L2,
            written_at: full().written_at,
            current_item: Some("Item two".into()),
            plan: Some("fix_plan.md".into()),
            ..Handoff::default()
        };
        let text = bare.document(&Notes::default(), 8192);
        insta::assert_snapshot!(text, @r#"
        # Handoff

        - Run: Dates (r1), iteration 2
        - Session: s1
        - Written: 2026-01-07T11:45:00Z (level L2 reached)

        ## Current item

        > Item two (0 items done, 0 open in `fix_plan.md`)

        ## Git

        Not a git repository.

        ## What to do next

        Continue with "Item two": no file has been changed for it yet.
        "#);
        let notes = Notes { next: "line 9".into(), ..Notes::default() };
        let renewed = bare.renewed(&notes, &text, 8192);
        insta::assert_snapshot!(section_of(&renewed, "## Notes"), @"
        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Next step: line 9
        ");
        assert_eq!(Notes::parse(&bare.renewed(&Notes::default(), &renewed, 8192)), notes);
    }

    #[test]
    fn what_the_session_had_not_read_yet_is_quoted_with_its_beginning_and_its_end() {
        let mut handoff = full();
        let middle = "## Notes from the session\n".repeat(500);
        handoff.commands[0].unread = CommandFact::excerpt(&format!("port 4711\n{middle}1 failed\n"));
        let text = handoff.render(8192);
        let (_, quoted) = text
            .split_once("had not read what `cargo test` printed:\n\n> port 4711\n")
            .unwrap_or_else(|| panic!("{text}"));
        assert!(
            quoted.contains("\n> 1 failed\n") && !text.contains("\n## Notes from the session\n##"),
            "{text}"
        );
        assert_eq!(Notes::parse(&text), Notes::default());
    }

    #[test]
    fn a_handoff_stays_small_whatever_it_is_about() {
        let mut handoff = full();
        handoff.commands = vec![
            CommandFact {
                unread: CommandFact::excerpt(&"z\n".repeat(5_000)),
                ..handoff.commands[0].clone()
            };
            8
        ];
        handoff.files = (0..5_000)
            .map(|n| FileInProgress { path: format!("src/file{n}.rs"), ..FileInProgress::default() })
            .collect();
        handoff.open = (0..5_000).map(|n| format!("Item {n} {}", "x".repeat(500))).collect();
        handoff.last_words = Some("y".repeat(100_000));
        let text = handoff.render(8192);
        assert!(text.len() < 8192 + EMPTY_NOTES.len() + 2, "{}", text.len());
        assert!(text.contains("and 4"), "says how many were left out");
    }

    #[test]
    fn the_sessions_notes_survive_a_refresh_and_read_back() {
        let written = full()
            .render(8192)
            .replace("- Summary:", "- Summary: token validation done")
            .replace("- Progress on the item:", "- Progress on the item: 70%");
        let mut later = full();
        later.percent = Some(91);
        let refreshed = later.refresh(&written, 8192);
        assert!(refreshed.contains("91%"));
        let notes = Notes::parse(&refreshed);
        assert_eq!(notes.summary, "token validation done");
        assert_eq!(notes.progress, "70%");
        assert_eq!(notes.next, "");
    }

    #[test]
    fn notes_in_the_last_message_replace_what_the_session_wrote() {
        let message = "I stop here.\n\nSummary: validation is done,\nparsing is not.\n**Progress on the item:** 70%\nNext step: line 90";
        let notes = Notes::in_message(message);
        assert_eq!(
            (notes.summary.as_str(), notes.progress.as_str(), notes.next.as_str()),
            ("validation is done, parsing is not.", "70%", "line 90")
        );
        let written = full().render(8192).replace("- Progress on the item:", "- Progress on the item: half");
        assert_eq!(Notes::parse(&notes.replace(&written)), notes);
        let replaced = Notes { progress: "all".into(), ..Notes::default() }.replace(&notes.replace(&written));
        assert_eq!(Notes::parse(&replaced), Notes { progress: "all".into(), ..notes });
        assert!(Notes::in_message("All done, nothing to note.").is_empty());
    }

    #[test]
    fn a_label_is_read_in_the_spellings_that_models_give_it() {
        for (line, progress) in [
            ("Progress: 70%", "70%"),
            ("progress: 70%", "70%"),
            ("PROGRESS — 70%", "70%"),
            ("progress – 70%", "70%"),
            ("Progress - 70%, the parser works", "70%, the parser works"),
            ("Progress = 70%", "70%"),
            ("**Progress:** 70%", "70%"),
            ("**Progress**: 70%", "70%"),
            ("- _Progress_: half", "half"),
            ("## Progress: half", "half"),
            ("2. Progress: 70 %", "70 %"),
            ("Progress on item two: 70%", "70%"),
            ("Progress on src/a-b.rs: 70%", "70%"),
            ("Progress so far: 70%", "70%"),
            ("Progress (item two): 70%", "70%"),
            ("Overall progress: ~70%", "~70%"),
            ("Status: 70 %", "70 %"),
            ("status — about 70 percent", "about 70 percent"),
            ("Current status: 70.5% (tests pass)", "70.5% (tests pass)"),
            ("**Status:** **70%**", "**70%**"),
            ("100% sure that it works", ""),
            ("I am 100% sure: it works", ""),
            ("Progress was made: 70%", ""),
            ("No progress: the tests hang", ""),
            ("In progress: the parser", ""),
            ("Progressive: 70%", ""),
            ("Status: 404", ""),
            ("Status: the tests pass", ""),
            ("Exit status: 70%", ""),
            ("70%", ""),
        ] {
            assert_eq!(Notes::in_message(&format!("I stop.\n{line}")).progress, progress, "{line}");
        }
        let notes = Notes::in_message("1. summary: half\n2. progress: 50%\n3. next steps: the rest");
        assert_eq!((&*notes.summary, &*notes.progress, &*notes.next), ("half", "50%", "the rest"));
    }

    #[test]
    fn the_last_words_are_kept_beside_a_label_that_is_no_summary() {
        let said = |words: &str| Handoff { last_words: Some(words.into()), ..full() }.render(8192);
        assert!(said("The parser works.\n\nProgress: 70%").contains("\n> The parser works.\n"));
        assert!(!said("Summary: the parser works").contains("last words"));
    }

    #[test]
    fn untouched_notes_are_empty_and_free_words_are_a_summary() {
        assert!(Notes::parse(&full().render(8192)).is_empty());
        let free = full().render(8192).replace(
            "- Summary:\n- Progress on the item:\n- Next step:\n",
            "Parser works,\nwriter does not.\n",
        );
        assert_eq!(Notes::parse(&free).summary, "Parser works, writer does not.");
    }
}
