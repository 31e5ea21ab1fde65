//! The handoff: the document that a checkpoint writes for the next session. It has verified facts first, then
//! the session's unverified claims, then a section that the session completes itself. It summarizes and
//! refers to files; it never copies whole contents.

mod message;
mod metadata;
mod notes;
mod ordinary_session;

pub use message::HandoffMessage;
pub use metadata::HandoffMetadata;
pub use notes::HandoffNotes;
pub use ordinary_session::{UserRequests, parse_first_line_of_first_request};

use crate::ids::{RunId, SessionId};
use crate::level::Level;
use crate::resume;
use crate::state::checkpoint::UNKNOWN;
use crate::state::{
    BaseRelation, CheckpointCause, EarlierNotes, FileInProgress, ItemWork, VerifyRun, short_id,
};
use crate::text::{
    count_with_noun, to_line_for_backticks, to_safe_single_line, truncate_end, truncate_middle,
};
use crate::time::Timestamp;
use notes::{EMPTY_NOTES_SECTION, find_notes_start};
use plimsoll_protocol::untrusted_text::sanitize_for_model;

/// The facts from which a handoff is rendered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handoff {
    /// The run, if one owns the session.
    pub run_facts: Option<RunFacts>,
    /// The user's requests, for a session outside a run; `None` for a session of a run.
    pub user_requests: Option<UserRequests>,
    pub session_id: SessionId,
    /// Why it was written.
    pub cause: CheckpointCause,
    /// The level when it was written.
    pub level: Level,
    /// The usage that determined the level, in whole percent.
    pub usage_percent: Option<u64>,
    /// The usage that the client itself reports, in whole percent.
    pub client_usage_percent: Option<u64>,
    /// When it was written, RFC 3339, UTC.
    pub written_at: Timestamp,
    /// The repository, if there is one.
    pub git: Option<GitFacts>,
    /// Files changed for the current item, most recently edited first.
    pub changed_files: Vec<FileInProgress>,
    /// The item that the next session works on.
    pub current_item: Option<String>,
    /// The state of the work on that item, according to git and the plan.
    pub item_work: ItemWork,
    /// Ticked items.
    pub done_items: Vec<String>,
    /// The open items of the plan. Outside a run, the client's open tasks if it has any, those in progress first.
    pub open_items: Vec<String>,
    /// The plan file that has these items, relative to the project. Without a plan the handoff lists them.
    pub plan_path: Option<String>,
    /// The run's verify commands, with their last results.
    pub verify_facts: Vec<VerifyCommandFact>,
    /// The session's last commands, with their results.
    pub commands: Vec<CommandFact>,
    /// The last message of the assistant.
    pub last_message: Option<String>,
    /// An earlier session's notes on the item. They are shown until this session writes its own notes.
    pub earlier_notes: Option<EarlierNotes>,
    /// A short summary of the working memory; empty if there is none.
    pub memory_lines: Vec<String>,
    /// The path of the client's transcript.
    pub transcript_path: Option<String>,
}

/// The run that a handoff belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFacts {
    pub run_id: RunId,
    pub task_name: String,
    pub iteration: u32,
}

/// The state of the repository when the handoff was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFacts {
    /// The branch; `HEAD` if HEAD is detached.
    pub branch: String,
    /// The id of the HEAD commit; `None` before the first commit.
    pub head_commit: Option<String>,
    /// The subject line of that commit.
    pub head_subject: String,
    /// Why the changed files could not be listed, if that failed.
    pub file_list_error: Option<String>,
    /// How the uncommitted work was handled; empty if it is untouched.
    pub uncommitted_work_outcome: String,
}

/// A verify command of the run, with its last result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyCommandFact {
    pub command: String,
    /// The last run of the command; `None` if this run has not executed it.
    pub last_run: Option<VerifyRun>,
}

/// A command of the session, with its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFact {
    pub command: String,
    /// True if it exited with 0; `None` if the exit status is unknown.
    pub passed: Option<bool>,
    /// True if it has ended, even if its result is unknown.
    pub has_ended: bool,
    /// The last line that it printed.
    pub last_output_line: String,
    /// The beginning and the end of its output, if the session ended before the model read it.
    pub unread_output: String,
}

/// The maximum length of an unread output. It is high because the output may be the reason why the session was
/// started.
const MAX_UNREAD_OUTPUT_CHARS: usize = 1_200;
/// The maximum length of one line of an unread output.
const MAX_UNREAD_LINE_CHARS: usize = 200;

impl CommandFact {
    /// Returns the beginning and the end of an output, with each line clipped.
    pub fn excerpt_unread_output(output: &str) -> String {
        let lines: Vec<String> =
            output.trim().lines().map(|line| truncate_end(line, MAX_UNREAD_LINE_CHARS)).collect();
        truncate_middle(&lines.join("\n"), MAX_UNREAD_OUTPUT_CHARS)
    }
}

impl Handoff {
    /// Renders the document with an empty section for notes. Lists are shortened until the text without that
    /// section has at most `max_bytes` bytes; the shortest form is returned even if it is longer.
    pub fn render_with_empty_notes(&self, max_bytes: usize) -> String {
        let mut text = String::new();
        for max_rows in [Handoff::MAX_LIST_ROWS, 10, 5, 2, 0] {
            text = self.render_sections_and_sanitize(max_rows);
            if text.len() <= max_bytes {
                break;
            }
        }
        format!("{text}\n{EMPTY_NOTES_SECTION}")
    }

    /// The maximum number of rows in a list. Longer lists state how many rows are left out.
    pub const MAX_LIST_ROWS: usize = 20;

    /// Renders the document again and keeps the notes section of the old document.
    pub fn refresh_document(&self, old_document: &str, max_bytes: usize) -> String {
        let new_document = self.render_with_empty_notes(max_bytes);
        match (find_notes_start(&new_document), find_notes_start(old_document)) {
            (Some(new_notes_start), Some(old_notes_start)) => {
                format!("{}{}", &new_document[..new_notes_start], &old_document[old_notes_start..])
            }
            _ => new_document,
        }
    }

    /// Renders a new document with these notes, without labels that have no text.
    pub fn render_with_notes(&self, notes: &HandoffNotes, max_bytes: usize) -> String {
        let document = self.clone_with_earlier_notes_if(notes.is_empty()).render_with_empty_notes(max_bytes);
        notes::remove_empty_labels_and_empty_section(&notes.replace_nonempty_notes_in_document(&document))
    }

    /// Renders the document again. Non-empty `notes` replace those of the old document; the other notes of the old
    /// document are kept.
    pub fn refresh_document_with_notes(
        &self,
        notes: &HandoffNotes,
        old_document: &str,
        max_bytes: usize,
    ) -> String {
        let old_document = notes::add_missing_labels(old_document);
        let has_no_notes = notes.is_empty() && HandoffNotes::parse(&old_document).is_empty();
        let document =
            self.clone_with_earlier_notes_if(has_no_notes).refresh_document(&old_document, max_bytes);
        notes::remove_empty_labels_and_empty_section(&notes.replace_nonempty_notes_in_document(&document))
    }

    fn clone_with_earlier_notes_if(&self, should_include: bool) -> Handoff {
        Handoff { earlier_notes: self.earlier_notes.clone().filter(|_| should_include), ..self.clone() }
    }

    fn render_sections_and_sanitize(&self, max_rows: usize) -> String {
        let sections = match &self.user_requests {
            Some(requests) => self.render_ordinary_session_sections(requests, max_rows),
            None => self.render_run_sections(max_rows),
        };
        let text = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
        // A model reads this text, so hidden characters and client tags in quoted text are made harmless.
        sanitize_for_model(&text)
    }

    fn render_run_sections(&self, max_rows: usize) -> Vec<String> {
        vec![
            self.render_heading_and_metadata(),
            self.render_item_section(),
            self.render_git_section(),
            self.render_files_section("Files of the item", max_rows),
            self.render_checks_section(max_rows),
            self.render_list_if_no_plan("Done", &self.done_items, max_rows),
            self.render_list_if_no_plan("Open", &self.open_items, max_rows),
            self.render_relevant_command_and_unread_outputs(max_rows),
            self.render_memory_section(max_rows),
            self.render_last_message_unless_it_has_summary(max_rows),
            self.render_earlier_notes_section(),
            self.render_next_step_section(),
        ]
    }

    fn render_heading_and_metadata(&self) -> String {
        let run_line =
            self.run_facts.as_ref().map_or("- Run: none (an ordinary session)".to_owned(), |run| {
                format!(
                    "- Run: {} ({}), session {}",
                    to_safe_single_line(&run.task_name),
                    run.run_id,
                    run.iteration
                )
            });
        let transcript_line = self
            .transcript_path
            .as_ref()
            .map(|path| format!("- Transcript: {}\n", to_safe_single_line(path)));
        format!(
            "# Handoff\n\n{run_line}\n- Session: {}\n- Written: {} ({})\n{}{}",
            to_safe_single_line(&self.session_id),
            self.written_at,
            self.describe_cause(),
            self.render_context_line(),
            transcript_line.unwrap_or_default(),
        )
    }

    /// Returns an empty string if the usage is unknown.
    fn render_context_line(&self) -> String {
        let Some(percent) = self.usage_percent else { return String::new() };
        let client_percent = self.client_usage_percent.filter(|used| *used != percent);
        let client_percent_text = client_percent.map(|used| format!("; {used}% reported by Claude Code"));
        format!("- Context: {percent}% ({}{})\n", self.level, client_percent_text.unwrap_or_default())
    }

    fn describe_cause(&self) -> String {
        match self.cause {
            CheckpointCause::Level => format!("level {} reached", self.level),
            CheckpointCause::Manual => "on demand".to_owned(),
            CheckpointCause::Compact => "Claude Code was about to compact".to_owned(),
            CheckpointCause::Clear => "before a fresh conversation".to_owned(),
            CheckpointCause::Budget => "the next item would not fit".to_owned(),
            CheckpointCause::Step => "after a commit: the next step would probably not fit".to_owned(),
            CheckpointCause::Crash => "the session ended in the middle of its work".to_owned(),
            CheckpointCause::Unfinished => "the session ended its turn before the item was done".to_owned(),
        }
    }

    fn render_item_section(&self) -> String {
        let Some(item) = &self.current_item else { return String::new() };
        let not_started_text = if self.item_work.is_begun { "" } else { "\nNot started.\n" };
        let finished_rows: String = self
            .item_work
            .ticked_items
            .iter()
            .map(|item| format!("- {}\n", truncate_end(&to_safe_single_line(item), 160)))
            .collect();
        let finished_section = if finished_rows.is_empty() {
            finished_rows
        } else {
            format!("\nAlready done in this session:\n\n{finished_rows}")
        };
        let plan_suffix = self.plan_path.as_deref().map(|plan| format!(" in {}", format_as_code_span(plan)));
        format!(
            "## Current item\n\n> {} ({} done, {} open{})\n{not_started_text}{finished_section}",
            to_safe_single_line(item),
            count_with_noun(self.done_items.len(), "item"),
            self.open_items.len(),
            plan_suffix.unwrap_or_default()
        )
    }

    /// Renders a list of items only if there is no plan. A plan contains the items, and is more up to date when
    /// the handoff is read.
    fn render_list_if_no_plan(&self, title: &str, items: &[String], max_rows: usize) -> String {
        if self.plan_path.is_some() { String::new() } else { render_list_section(title, items, max_rows) }
    }

    /// Renders the last results of the run's verify commands and of the session's checks.
    fn render_checks_section(&self, max_rows: usize) -> String {
        let max_verify_rows = max_rows.clamp(1, MAX_VERIFY_ROWS);
        let verify_rows =
            self.verify_facts.iter().take(max_verify_rows).map(|fact| self.render_verify_row(fact));
        let omitted_count = self.verify_facts.len().saturating_sub(max_verify_rows);
        let omitted_row = (omitted_count > 0)
            .then(|| format!("- … and {} more\n", count_with_noun(omitted_count, "verify command")));
        let session_checks =
            self.item_work.checks.iter().map(|check| resume::describe_check(check, "by the session"));
        let session_check_rows = session_checks.map(|text| format!("- {text}\n"));
        let rows: String = verify_rows.chain(omitted_row).chain(session_check_rows).collect();
        if rows.is_empty() { rows } else { format!("## Checks\n\n{rows}") }
    }

    fn render_verify_row(&self, fact: &VerifyCommandFact) -> String {
        let command = format_as_code_span(&fact.command);
        let Some(last_run) = &fact.last_run else { return format!("- {command}: not run in this run yet\n") };
        let outcome = if last_run.passed { "passed" } else { "FAILED" };
        let when_text = match last_run.iteration {
            0 => "before the first session".to_owned(),
            iteration => format!("after session {iteration}"),
        };
        let head_commit = self.git.as_ref().and_then(|git| git.head_commit.as_ref());
        let is_current =
            last_run.commit.as_ref() == head_commit && self.item_work.uncommitted_files.is_empty();
        let commit_text = last_run.commit.as_ref().map_or(String::new(), |commit| {
            let uncommitted_suffix = if last_run.has_uncommitted { " with uncommitted changes" } else { "" };
            format!(" on {}{uncommitted_suffix}", short_id(commit))
        });
        let staleness_text = if is_current { "" } else { "; not run since" };
        format!("- {command}, run by Plimsoll: {outcome} {when_text}{commit_text}{staleness_text}\n")
    }

    /// Lists the working memory for other readers. The next session gets the whole memory anyway.
    fn render_memory_section(&self, max_rows: usize) -> String {
        if self.memory_lines.is_empty() {
            return String::new();
        }
        let shown_rows: String =
            self.memory_lines.iter().take(max_rows).map(|line| format!("- {line}\n")).collect();
        format!("## Working memory\n\n{shown_rows}- Full contents: `plimsoll memory show`\n")
    }

    fn render_git_section(&self) -> String {
        let Some(git) = &self.git else { return "## Git\n\nNot a git repository.\n".to_owned() };
        let head_text = git.head_commit.as_deref().map_or("no commit yet".to_owned(), |head| {
            format!(
                "`{}` {}",
                head.chars().take(12).collect::<String>(),
                truncate_end(&to_safe_single_line(&git.head_subject), 80)
            )
        });
        let error_line =
            git.file_list_error.as_ref().map(|error| format!("- Problem: {}\n", to_safe_single_line(error)));
        let wip_outcome = Some(&git.uncommitted_work_outcome).filter(|outcome| !outcome.is_empty());
        let wip_line =
            wip_outcome.map(|outcome| format!("- Work in progress: {}\n", to_safe_single_line(outcome)));
        format!(
            "## Git\n\n- Branch: {}\n- HEAD: {head_text}\n{}{}",
            to_safe_single_line(&git.branch),
            wip_line.unwrap_or_default(),
            error_line.unwrap_or_default()
        )
    }

    fn render_files_section(&self, title: &str, max_rows: usize) -> String {
        if self.changed_files.is_empty() {
            return String::new();
        }
        let table = resume::render_file_table(
            &self.changed_files,
            max_rows.max(2),
            self.item_work.base_commit.as_deref(),
        );
        format!("## {title}, most recent first\n\n{table}\n")
    }

    fn render_relevant_command_and_unread_outputs(&self, max_rows: usize) -> String {
        if self.commands.is_empty() || max_rows == 0 {
            return String::new();
        }
        let relevant_command = self.last_still_failing_or_last_command();
        let command_row =
            relevant_command.map(|fact| render_command_row(fact, self.cause.is_written_after_session_end()));
        let last_two_commands = self.commands.iter().skip(self.commands.len().saturating_sub(2));
        let unread_outputs: String =
            last_two_commands.map(|fact| render_unread_output(fact, max_rows)).collect();
        format!("## Last command\n\n{}{unread_outputs}", command_row.unwrap_or_default())
    }

    /// Returns the last command that failed and did not pass later, or the last command if there is none. Failed
    /// checks are skipped because another section lists them.
    fn last_still_failing_or_last_command(&self) -> Option<&CommandFact> {
        let is_session_check =
            |fact: &CommandFact| self.item_work.checks.iter().any(|check| check.command == fact.command);
        let has_passed_later = |index: usize| {
            let command = &self.commands[index].command;
            self.commands[index + 1..]
                .iter()
                .any(|later_fact| later_fact.command == *command && later_fact.passed == Some(true))
        };
        let last_failed = self.commands.iter().enumerate().rev().find(|(index, fact)| {
            fact.passed == Some(false) && !is_session_check(fact) && !has_passed_later(*index)
        });
        last_failed.map(|(_, fact)| fact).or(self.commands.last())
    }

    fn render_last_message_unless_it_has_summary(&self, max_rows: usize) -> String {
        // A summary already appears in the notes section. A message with other labels may contain more than its
        // labeled lines.
        let should_quote = |message: &&str| {
            !message.trim().is_empty() && HandoffNotes::from_message(message).summary.is_empty()
        };
        let Some(message) = self.last_message.as_deref().filter(should_quote) else { return String::new() };
        let quoted_lines: String = truncate_end(message.trim(), 60 + 60 * max_rows)
            .lines()
            .map(|line| format!("> {line}\n"))
            .collect();
        format!("## Last message of the session (unverified)\n\n{quoted_lines}")
    }

    fn render_earlier_notes_section(&self) -> String {
        let Some(notes) = &self.earlier_notes else { return String::new() };
        let labeled_notes = [
            ("Summary", &notes.summary),
            ("Progress on the item", &notes.progress),
            ("Next step", &notes.next_step),
        ];
        let quoted_notes: String = labeled_notes
            .into_iter()
            .filter(|(_, note)| !note.is_empty() && note.as_str() != UNKNOWN)
            .map(|(label, note)| {
                format!("> {label}: {}\n", truncate_end(&to_safe_single_line(note), MAX_EARLIER_NOTE_CHARS))
            })
            .collect();
        format!(
            "## What session {} said about the item (its own claim, unverified)\n\n{quoted_notes}",
            notes.iteration
        )
    }

    fn render_next_step_section(&self) -> String {
        let item_text = self
            .current_item
            .as_deref()
            .map_or("the task".to_owned(), |item| format!("\"{}\"", to_safe_single_line(item)));
        let step = match (self.item_work.is_begun, self.has_item_changes_or_lost_base()) {
            (true, true) => {
                let head = self.git.as_ref().and_then(|git| git.head_commit.as_deref());
                let range_sentence = resume::ensure_final_period(&resume::describe_item_work_since_base(
                    &self.item_work,
                    head,
                ));
                format!(
                    "{range_sentence} Read it and run the checks. Then continue with {item_text}; do not start over."
                )
            }
            (true, false) => format!("Continue with {item_text}: no file has changed for it yet."),
            (false, _) => format!("Start {item_text}: no file has changed for it."),
        };
        format!("## What to do next\n\n{step}\n")
    }

    fn has_item_changes_or_lost_base(&self) -> bool {
        let work = &self.item_work;
        work.commit_count > 0
            || !work.uncommitted_files.is_empty()
            || !self.changed_files.is_empty()
            || work.base_relation != BaseRelation::Ancestor
    }
}

/// The maximum length of one note of an earlier session.
const MAX_EARLIER_NOTE_CHARS: usize = 300;
/// The maximum number of verify commands that are listed.
const MAX_VERIFY_ROWS: usize = 5;

fn format_as_code_span(text: &str) -> String {
    format!("`{}`", to_line_for_backticks(text, 160))
}

fn render_command_row(fact: &CommandFact, is_written_after_session: bool) -> String {
    let outcome = match (fact.passed, fact.has_ended) {
        (Some(true), _) => "ok",
        (Some(false), _) => "FAILED",
        (None, true) => "ended",
        (None, false) if is_written_after_session => "the session ended before its outcome was recorded",
        (None, false) => "outcome not recorded yet",
    };
    let last_output = if fact.last_output_line.is_empty() {
        String::new()
    } else {
        format!(": {}", truncate_end(&to_safe_single_line(&fact.last_output_line), 120))
    };
    format!("- {} → {outcome}{last_output}\n", format_as_code_span(&fact.command))
}

/// Quotes an output that the model had not read when the session ended.
fn render_unread_output(fact: &CommandFact, max_rows: usize) -> String {
    if fact.unread_output.is_empty() {
        return String::new();
    }
    let command = to_line_for_backticks(&fact.command, 80);
    let clipped_output = truncate_middle(&fact.unread_output, 60 * max_rows);
    let quoted_lines: String = clipped_output.lines().map(|line| format!("> {line}\n")).collect();
    format!("\nThe session ended before it read the output of `{command}`:\n\n{quoted_lines}")
}

fn render_list_section(title: &str, items: &[String], max_rows: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let shown_count = max_rows.max(1).min(items.len());
    let rows: String = items[..shown_count]
        .iter()
        .map(|item| format!("- {}\n", truncate_end(&to_safe_single_line(item), 160)))
        .collect();
    let omitted_count = items.len() - shown_count;
    let omitted_row =
        if omitted_count > 0 { format!("- … and {omitted_count} more\n") } else { String::new() };
    format!("## {title} ({})\n\n{rows}{omitted_row}", items.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::CheckResult;

    #[test]
    fn a_command_is_shown_with_its_result_as_far_as_it_is_known() {
        for (passed, has_ended, is_after_the_session, expected) in [
            (Some(true), true, false, "ok"),
            (Some(false), true, true, "FAILED"),
            (None, true, false, "ended"),
            (None, false, false, "outcome not recorded yet"),
            (None, false, true, "the session ended before its outcome was recorded"),
        ] {
            let fact = CommandFact { command: "make".into(), passed, has_ended, ..CommandFact::default() };
            assert_eq!(render_command_row(&fact, is_after_the_session), format!("- `make` → {expected}\n"));
        }
    }

    #[test]
    fn text_that_looks_like_a_comment_start_loses_no_line() {
        let notes = HandoffNotes::from_message(
            "Next step: mend x --> y\nSummary: wrote <!-- todo\nProgress on the item: 70%\n",
        );
        assert_eq!((notes.progress.as_str(), notes.next_step.as_str()), ("70%", "mend x --> y"));
        assert_eq!(notes.summary, "wrote <!·- todo");
        assert_eq!(
            HandoffNotes::parse(
                &notes.replace_nonempty_notes_in_document(&sample_handoff().render_with_empty_notes(8_000))
            ),
            notes
        );
    }

    #[test]
    fn a_quoted_heading_neither_begins_the_notes_nor_ends_the_facts() {
        let quoting = Handoff {
            current_item: Some("## Notes from the session: write them".into()),
            open_items: vec!["mend ## Notes from the session".into()],
            ..sample_handoff()
        };
        let document = HandoffNotes { summary: "half done".into(), ..HandoffNotes::default() }
            .replace_nonempty_notes_in_document(&quoting.render_with_empty_notes(8_000));
        let renewed = quoting.refresh_document(&document, 8_000);
        assert_eq!(renewed, document);
        assert!(renewed.contains("## What to do next"), "{renewed}");
    }

    #[test]
    fn a_second_heading_in_the_notes_does_not_cut_off_the_first() {
        let old = format!(
            "{}\n## Notes from the session\n\nmore\n",
            sample_handoff().render_with_empty_notes(8_000)
        );
        let old = old.replace("- Summary:", "- Summary: half done");
        let renewed = sample_handoff().refresh_document(&old, 8_000);
        assert!(renewed.contains("- Summary: half done") && renewed.ends_with("\nmore\n"), "{renewed}");
        let hand_edited_document =
            old.replace("## Notes from the session\n", "## Notes from the session, by me\n");
        assert!(sample_handoff().refresh_document(&hand_edited_document, 8_000).ends_with("by me\n\nmore\n"));
    }

    /// Returns one section of a handoff, from its heading to the next heading.
    fn find_section<'a>(text: &'a str, heading: &str) -> &'a str {
        let begin = text.find(heading).unwrap_or_else(|| panic!("no {heading} in\n{text}"));
        let end = text[begin + 1..].find("\n## ").map_or(text.len(), |end| begin + 1 + end);
        text[begin..end].trim_end()
    }

    fn sample_handoff() -> Handoff {
        Handoff {
            run_facts: Some(RunFacts { run_id: "r1".into(), task_name: "Dates".into(), iteration: 2 }),
            session_id: "s1".into(),
            level: Level::L2,
            usage_percent: Some(87),
            client_usage_percent: Some(86),
            written_at: "2026-01-07T11:45:00Z".into(),
            git: Some(GitFacts {
                branch: "main".into(),
                head_commit: Some("0123456789abcdef".into()),
                head_subject: "Parse dates".into(),
                ..GitFacts::default()
            }),
            changed_files: vec![FileInProgress {
                path: "src/a|b.rs".into(),
                touched_lines: "45-120".into(),
                description: "modified".into(),
                ..FileInProgress::default()
            }],
            current_item: Some("Item two".into()),
            done_items: vec!["Item one".into()],
            open_items: vec!["Item two".into(), "Item three".into()],
            commands: vec![CommandFact {
                command: "cargo test".into(),
                passed: Some(false),
                last_output_line: "1 failed".into(),
                unread_output: String::new(),
                ..CommandFact::default()
            }],
            last_message: Some("I am half way.".into()),
            ..Handoff::default()
        }
    }

    #[test]
    fn a_handoff_names_item_files_lines_and_command_results() {
        insta::assert_snapshot!(sample_handoff().render_with_empty_notes(8192), @r#"
        # Handoff

        - Run: Dates (r1), session 2
        - Session: s1
        - Written: 2026-01-07T11:45:00Z (level L2 reached)
        - Context: 87% (L2; 86% reported by Claude Code)

        ## Current item

        > Item two (1 item done, 2 open)

        ## Git

        - Branch: main
        - HEAD: `0123456789ab` Parse dates

        ## Files of the item, most recent first

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

        ## Last message of the session (unverified)

        > I am half way.

        ## What to do next

        No file has changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.

        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Summary:
        - Progress on the item:
        - Next step:
        "#);
    }

    #[test]
    fn items_are_listed_only_if_there_is_no_plan() {
        let render_item_lines = |handoff: Handoff| {
            let text = handoff.render_with_empty_notes(8192);
            let is_about_items = |line: &&str| line.contains("Item ") || line.contains(" item");
            text.lines().filter(is_about_items).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(render_item_lines(sample_handoff()), @r#"
        ## Current item
        > Item two (1 item done, 2 open)
        ## Files of the item, most recent first
        - Item one
        - Item two
        - Item three
        No file has changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.
        - Progress on the item:
        "#);
        let planned = Handoff { plan_path: Some("fix_plan.md".into()), ..sample_handoff() };
        insta::assert_snapshot!(render_item_lines(planned), @r#"
        ## Current item
        > Item two (1 item done, 2 open in `fix_plan.md`)
        ## Files of the item, most recent first
        No file has changed for it. Read it and run the checks. Then continue with "Item two"; do not start over.
        - Progress on the item:
        "#);
    }

    #[test]
    fn only_the_most_relevant_command_is_shown() {
        let command_fact =
            |command: &str, passed| CommandFact { command: command.into(), passed, ..CommandFact::default() };
        let item_work = ItemWork {
            checks: vec![CheckResult { command: "cargo test".into(), ..CheckResult::default() }],
            ..ItemWork::default()
        };
        let (ok, failed) = (Some(true), Some(false));
        for (commands, expected) in [
            (vec![command_fact("make", ok), command_fact("ls", ok)], "ls"),
            (vec![command_fact("make", failed), command_fact("ls", ok)], "make"),
            (vec![command_fact("make", failed), command_fact("make", ok), command_fact("ls", ok)], "ls"),
            // The section of checks already has these.
            (vec![command_fact("cargo test", failed), command_fact("ls", ok)], "ls"),
            (vec![command_fact("cargo test", failed)], "cargo test"),
        ] {
            let text = Handoff { commands, item_work: item_work.clone(), ..sample_handoff() }
                .render_with_empty_notes(8192);
            let (_, rest) = text.split_once("## Last command\n\n").unwrap();
            let rows: Vec<&str> = rest.lines().take_while(|line| line.starts_with("- ")).collect();
            assert!(rows.len() == 1 && rows[0].starts_with(&format!("- `{expected}` →")), "{rows:?}");
        }
    }

    #[test]
    fn check_results_are_shown_with_the_commit_they_ran_on() {
        let verify_run = |passed, iteration, commit: Option<&str>, has_uncommitted| VerifyRun {
            command: "make".into(),
            passed,
            iteration,
            commit: commit.map(str::to_owned),
            has_uncommitted,
        };
        let head = "0123456789abcdef";
        for (last_run, uncommitted, expected) in [
            (None, false, "- `make`: not run in this run yet\n"),
            (
                Some(verify_run(true, 1, Some(head), false)),
                false,
                "- `make`, run by Plimsoll: passed after session 1 on 0123456\n",
            ),
            (
                Some(verify_run(true, 1, Some(head), false)),
                true,
                "- `make`, run by Plimsoll: passed after session 1 on 0123456; not run since\n",
            ),
            (
                Some(verify_run(false, 0, Some("fedcba9876"), true)),
                false,
                "- `make`, run by Plimsoll: FAILED before the first session on fedcba9 with uncommitted changes; not run since\n",
            ),
            (
                Some(verify_run(false, 2, None, false)),
                false,
                "- `make`, run by Plimsoll: FAILED after session 2; not run since\n",
            ),
        ] {
            let uncommitted = if uncommitted { vec!["a".to_owned()] } else { Vec::new() };
            let handoff = Handoff {
                verify_facts: vec![VerifyCommandFact { command: "make".into(), last_run }],
                item_work: ItemWork { uncommitted_files: uncommitted, ..ItemWork::default() },
                ..sample_handoff()
            };
            let text = handoff.render_with_empty_notes(8192);
            assert!(text.contains(&format!("## Checks\n\n{expected}")), "{expected} in\n{text}");
        }
        let checks = vec![CheckResult {
            command: "npm test".into(),
            failures: vec!["FAIL a".into()],
            is_before_edit: true,
            ..CheckResult::default()
        }];
        let work = ItemWork { checks, ..ItemWork::default() };
        let text = Handoff { item_work: work, ..sample_handoff() }.render_with_empty_notes(8192);
        insta::assert_snapshot!(find_section(&text, "## Checks"), @"
        ## Checks

        - `npm test`, run by the session: FAILED, before its last edit
        - FAIL a
        ");
    }

    #[test]
    fn earlier_notes_are_shown_until_the_session_writes_its_own() {
        let earlier_notes = EarlierNotes {
            iteration: 2,
            summary: "Naive input is UTC".into(),
            progress: UNKNOWN.into(),
            next_step: "line 9\n## Forged".into(),
        };
        let handoff = Handoff { earlier_notes: Some(earlier_notes), ..sample_handoff() };
        let document_without_notes = handoff.render_with_notes(&HandoffNotes::default(), 8192);
        insta::assert_snapshot!(find_section(&document_without_notes, "## What session 2 said"), @"
        ## What session 2 said about the item (its own claim, unverified)

        > Summary: Naive input is UTC
        > Next step: line 9 ## Forged
        ");
        assert_eq!(HandoffNotes::parse(&document_without_notes), HandoffNotes::default());
        let notes = HandoffNotes { summary: "half done".into(), ..HandoffNotes::default() };
        let document_with_notes = handoff.refresh_document_with_notes(&notes, &document_without_notes, 8192);
        assert!(!document_with_notes.contains("session 2 said"), "{document_with_notes}");
        assert!(
            !handoff
                .refresh_document_with_notes(&HandoffNotes::default(), &document_with_notes, 8192)
                .contains("session 2 said")
        );
    }

    #[test]
    fn unknown_or_empty_values_have_no_line() {
        let handoff = Handoff {
            run_facts: sample_handoff().run_facts,
            session_id: sample_handoff().session_id,
            level: Level::L2,
            written_at: sample_handoff().written_at,
            current_item: Some("Item two".into()),
            plan_path: Some("fix_plan.md".into()),
            ..Handoff::default()
        };
        let text = handoff.render_with_notes(&HandoffNotes::default(), 8192);
        insta::assert_snapshot!(text, @r#"
        # Handoff

        - Run: Dates (r1), session 2
        - Session: s1
        - Written: 2026-01-07T11:45:00Z (level L2 reached)

        ## Current item

        > Item two (0 items done, 0 open in `fix_plan.md`)

        ## Git

        Not a git repository.

        ## What to do next

        Continue with "Item two": no file has changed for it yet.
        "#);
        let notes = HandoffNotes { next_step: "line 9".into(), ..HandoffNotes::default() };
        let renewed = handoff.refresh_document_with_notes(&notes, &text, 8192);
        insta::assert_snapshot!(find_section(&renewed, "## Notes"), @"
        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Next step: line 9
        ");
        assert_eq!(
            HandoffNotes::parse(&handoff.refresh_document_with_notes(
                &HandoffNotes::default(),
                &renewed,
                8192
            )),
            notes
        );
    }

    #[test]
    fn unread_output_is_quoted_with_its_beginning_and_end() {
        let mut handoff = sample_handoff();
        let middle = "## Notes from the session\n".repeat(500);
        handoff.commands[0].unread_output =
            CommandFact::excerpt_unread_output(&format!("port 4711\n{middle}1 failed\n"));
        let text = handoff.render_with_empty_notes(8192);
        let (_, quoted) = text
            .split_once("before it read the output of `cargo test`:\n\n> port 4711\n")
            .unwrap_or_else(|| panic!("{text}"));
        assert!(
            quoted.contains("\n> 1 failed\n") && !text.contains("\n## Notes from the session\n##"),
            "{text}"
        );
        assert_eq!(HandoffNotes::parse(&text), HandoffNotes::default());
    }

    #[test]
    fn a_handoff_stays_within_its_size_limit() {
        let mut handoff = sample_handoff();
        handoff.commands = vec![
            CommandFact {
                unread_output: CommandFact::excerpt_unread_output(&"z\n".repeat(5_000)),
                ..handoff.commands[0].clone()
            };
            8
        ];
        handoff.changed_files = (0..5_000)
            .map(|n| FileInProgress { path: format!("src/file{n}.rs"), ..FileInProgress::default() })
            .collect();
        handoff.open_items = (0..5_000).map(|n| format!("Item {n} {}", "x".repeat(500))).collect();
        handoff.last_message = Some("y".repeat(100_000));
        let text = handoff.render_with_empty_notes(8192);
        assert!(text.len() < 8192 + EMPTY_NOTES_SECTION.len() + 2, "{}", text.len());
        assert!(text.contains("and 4"), "says how many were left out");
    }

    #[test]
    fn the_sessions_notes_survive_a_refresh_and_are_parsed_back() {
        let written = sample_handoff()
            .render_with_empty_notes(8192)
            .replace("- Summary:", "- Summary: token validation done")
            .replace("- Progress on the item:", "- Progress on the item: 70%");
        let mut later = sample_handoff();
        later.usage_percent = Some(91);
        let refreshed = later.refresh_document(&written, 8192);
        assert!(refreshed.contains("91%"));
        let notes = HandoffNotes::parse(&refreshed);
        assert_eq!(notes.summary, "token validation done");
        assert_eq!(notes.progress, "70%");
        assert_eq!(notes.next_step, "");
    }

    #[test]
    fn notes_in_the_last_message_replace_those_in_the_document() {
        let message = "I stop here.\n\nSummary: validation is done,\nparsing is not.\n**Progress on the item:** 70%\nNext step: line 90";
        let notes = HandoffNotes::from_message(message);
        assert_eq!(
            (notes.summary.as_str(), notes.progress.as_str(), notes.next_step.as_str()),
            ("validation is done, parsing is not.", "70%", "line 90")
        );
        let written = sample_handoff()
            .render_with_empty_notes(8192)
            .replace("- Progress on the item:", "- Progress on the item: half");
        assert_eq!(HandoffNotes::parse(&notes.replace_nonempty_notes_in_document(&written)), notes);
        let replaced = HandoffNotes { progress: "all".into(), ..HandoffNotes::default() }
            .replace_nonempty_notes_in_document(&notes.replace_nonempty_notes_in_document(&written));
        assert_eq!(HandoffNotes::parse(&replaced), HandoffNotes { progress: "all".into(), ..notes });
        assert!(HandoffNotes::from_message("All done, nothing to note.").is_empty());
    }

    #[test]
    fn labels_are_parsed_in_the_spellings_that_models_use() {
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
            assert_eq!(HandoffNotes::from_message(&format!("I stop.\n{line}")).progress, progress, "{line}");
        }
        let notes = HandoffNotes::from_message("1. summary: half\n2. progress: 50%\n3. next steps: the rest");
        assert_eq!((&*notes.summary, &*notes.progress, &*notes.next_step), ("half", "50%", "the rest"));
    }

    #[test]
    fn the_last_message_is_kept_if_its_labels_include_no_summary() {
        let render_with_message = |message: &str| {
            Handoff { last_message: Some(message.into()), ..sample_handoff() }.render_with_empty_notes(8192)
        };
        assert!(
            render_with_message("The parser works.\n\nProgress: 70%").contains("\n> The parser works.\n")
        );
        assert!(!render_with_message("Summary: the parser works").contains("last words"));
    }

    #[test]
    fn untouched_notes_are_empty_and_unlabeled_text_is_a_summary() {
        assert!(HandoffNotes::parse(&sample_handoff().render_with_empty_notes(8192)).is_empty());
        let document = sample_handoff().render_with_empty_notes(8192).replace(
            "- Summary:\n- Progress on the item:\n- Next step:\n",
            "Parser works,\nwriter does not.\n",
        );
        assert_eq!(HandoffNotes::parse(&document).summary, "Parser works, writer does not.");
    }
}
