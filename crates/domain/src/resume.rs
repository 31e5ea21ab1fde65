//! Renders the prompt section for a session that resumes from a checkpoint. Values from git, the files and the plan
//! are stated as facts, claims of the last session are marked as unchecked, and unknown values are left out.

use crate::state::checkpoint::UNKNOWN;
use crate::state::{
    BaseRelation, CheckResult, Checkpoint, CheckpointCause, CommitRef, FileInProgress, ItemWork, short_id,
};
use crate::text::{count_with_noun, to_line_for_backticks, to_safe_single_line, truncate_end};
use crate::untrusted_text::{self, TextOrigin};

/// The maximum number of files that are named.
const MAX_FILES: usize = 20;
/// The maximum number of commits, finished items, paths, and lines of a failed check that are named.
const MAX_NAMED: usize = 8;
/// The maximum length of a claim of the session, in characters.
const MAX_CLAIM_CHARS: usize = 600;
/// The maximum length of an item, in characters.
const MAX_ITEM_CHARS: usize = 200;

/// What has changed since the checkpoint was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Staleness {
    /// The first of the new commits on HEAD, newest first.
    pub new_commits: Vec<CommitRef>,
    /// The number of all new commits.
    pub new_commit_count: usize,
    /// The checkpoint's commit, if HEAD no longer contains it (after a reset or a rebase, or on another branch).
    pub lost_commit: Option<String>,
    /// Files of the checkpoint that no longer exist.
    pub missing_files: Vec<String>,
    /// Files of the checkpoint whose content has changed.
    pub changed_files: Vec<String>,
}

impl Staleness {
    fn render_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(commit) = &self.lost_commit {
            lines.push(format!(
                "HEAD no longer contains the checkpoint's commit {}: look at `git log` and `git reflog` first",
                short_id(commit)
            ));
        }
        if self.new_commit_count > 0 {
            let named_commits: Vec<String> =
                self.new_commits.iter().take(MAX_NAMED).map(describe_commit).collect();
            let unnamed_count = self.new_commit_count.saturating_sub(named_commits.len());
            let more_note =
                if unnamed_count > 0 { format!("; and {unnamed_count} more") } else { String::new() };
            lines.push(format!(
                "{} by others: {}{more_note}",
                count_with_noun(self.new_commit_count, "commit"),
                named_commits.join("; ")
            ));
        }
        lines.extend(self.missing_files.iter().map(|path| format!("{} is gone", to_safe_single_line(path))));
        lines.extend(
            self.changed_files.iter().map(|path| format!("{} has changed", to_safe_single_line(path))),
        );
        lines
    }
}

fn describe_commit(commit: &CommitRef) -> String {
    format!("{} {}", commit.short_id(), truncate_end(&to_safe_single_line(&commit.subject), 80))
}

/// The heading for an item that is half done.
pub const HALF_DONE_ITEM_HEADING: &str = "## This item is half done";
/// The heading for an item on which no work has been done.
pub const UNSTARTED_ITEM_HEADING: &str = "## The last session";

/// Renders the section of the prompt that resumes a checkpoint. `fence_seed` is the run's promise code, from
/// which the fence around the session's claims is derived.
pub fn render_resume_section(checkpoint: &Checkpoint, staleness: &Staleness, fence_seed: &str) -> String {
    let (heading, parts) = if checkpoint.item_work.is_begun {
        (HALF_DONE_ITEM_HEADING, render_half_done_item_paragraphs(checkpoint, staleness, fence_seed))
    } else {
        (UNSTARTED_ITEM_HEADING, render_unstarted_item_paragraphs(checkpoint, staleness, fence_seed))
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{heading}\n\n{}\n", parts.join("\n\n"))
}

fn render_half_done_item_paragraphs(
    checkpoint: &Checkpoint,
    staleness: &Staleness,
    fence_seed: &str,
) -> Vec<String> {
    let work = &checkpoint.item_work;
    let subject = if !work.ticked_items.is_empty() && work.session_item != checkpoint.current_todo_item {
        "The last session finished its item, continued with this one, and"
    } else {
        "The last session"
    };
    // The range is unknown if HEAD no longer contains the checkpoint's commit, which is listed among the changes since
    // the checkpoint, or if another tool wrote the checkpoint.
    let range_sentence = if has_known_commit_range(checkpoint, staleness) {
        format!(" {}", ensure_final_period(&describe_item_work_since_base(work, checkpoint.head.as_deref())))
    } else {
        String::new()
    };
    vec![
        format!("{}{range_sentence}", describe_how_session_stopped(checkpoint, subject)),
        render_finished_items(&work.ticked_items),
        render_file_table(
            &existing_files_with_stale_lines_cleared(checkpoint, staleness),
            MAX_FILES,
            work.base_commit.as_deref(),
        ),
        render_checks(&work.checks),
        render_last_session_claims(checkpoint, fence_seed),
        render_earlier_session_claims(checkpoint, fence_seed),
        render_bullet_list("Since it stopped:", &staleness.render_lines()),
        render_handoff_reference(checkpoint),
    ]
}

fn has_known_commit_range(checkpoint: &Checkpoint, staleness: &Staleness) -> bool {
    staleness.lost_commit.is_none() && checkpoint.item_work.began_at.is_some()
}

/// Renders the first step of a session that takes over a half-done item. Returns `None` for an item that is not
/// begun. The step is not part of the resume section, because it belongs to the prompt's numbered steps.
pub fn render_first_step_of_takeover(checkpoint: &Checkpoint, staleness: &Staleness) -> Option<String> {
    let work = &checkpoint.item_work;
    if !work.is_begun {
        return None;
    }
    let has_diff = has_known_commit_range(checkpoint, staleness)
        && (work.commit_count > 0 || !work.uncommitted_files.is_empty());
    let first_action = match &work.base_commit {
        Some(base) if has_diff && work.base_relation != BaseRelation::Missing => {
            format!("Read `git diff {}`", short_id(base))
        }
        _ => "Look at what is there".to_owned(),
    };
    Some(format!(
        "Do not start over. {first_action}, run the checks, then continue. If notes and files differ, trust the files"
    ))
}

/// Renders the paragraphs for an item that is not begun. Files, lines and the next step belong to the finished item
/// and are left out.
fn render_unstarted_item_paragraphs(
    checkpoint: &Checkpoint,
    staleness: &Staleness,
    fence_seed: &str,
) -> Vec<String> {
    let finished_items = &checkpoint.item_work.ticked_items;
    let stop_sentence = match (finished_items.is_empty(), checkpoint.cause) {
        (true, _) => describe_how_session_stopped(checkpoint, "It"),
        // The item was ticked after the session ended.
        (false, CheckpointCause::Unfinished) => "Its item is now ticked.".to_owned(),
        (
            false,
            CheckpointCause::Level
            | CheckpointCause::Manual
            | CheckpointCause::Compact
            | CheckpointCause::Clear
            | CheckpointCause::Budget
            | CheckpointCause::Step
            | CheckpointCause::Crash,
        ) => describe_how_session_stopped(checkpoint, "It finished its item, and"),
    };
    let unstarted_note = match checkpoint.current_todo_item.as_str() {
        "" => "",
        _ => " Your item is not begun; no file has changed for it.",
    };
    vec![
        format!("{stop_sentence}{unstarted_note}"),
        render_finished_items(finished_items),
        render_last_session_claims(checkpoint, fence_seed),
        render_bullet_list("Since it stopped:", &staleness.render_lines()),
        render_handoff_reference(checkpoint),
    ]
}

/// Describes why the session stopped at its checkpoint. The sentence begins with `subject`.
fn describe_how_session_stopped(checkpoint: &Checkpoint, subject: &str) -> String {
    let percent_clause = checkpoint
        .percent_at_checkpoint
        .map_or(String::new(), |percent| format!(" at {percent}% of its context window"));
    match checkpoint.cause {
        CheckpointCause::Level if percent_clause.is_empty() => format!("{subject} stopped."),
        CheckpointCause::Level => format!("{subject} stopped{percent_clause} ({}).", checkpoint.level),
        CheckpointCause::Manual => format!("{subject} wrote a checkpoint on request{percent_clause}."),
        // A session also reads this sentence about its own conversation, so `subject` is not used. The client may not finish: it
        // prepares a summary that it never uses, or finds that there is nothing to summarize (2.1.332).
        CheckpointCause::Compact => format!("Claude Code began to compact the conversation{percent_clause}."),
        CheckpointCause::Clear => format!("{subject} ended for a fresh conversation{percent_clause}."),
        CheckpointCause::Budget => {
            format!("{subject} stopped{percent_clause}, because the next item would not fit.")
        }
        CheckpointCause::Step => {
            format!(
                "{subject} stopped after a commit{percent_clause}, because the next step would probably not fit."
            )
        }
        CheckpointCause::Crash => format!("{subject} ended in the middle of its work."),
        CheckpointCause::Unfinished => format!("{subject} ended its turn with the item still open."),
    }
}

/// Appends a period unless the text ends with one.
pub fn ensure_final_period(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn render_finished_items(finished_items: &[String]) -> String {
    let named_items: Vec<String> = finished_items
        .iter()
        .take(MAX_NAMED)
        .map(|item| truncate_end(&to_safe_single_line(item), MAX_ITEM_CHARS))
        .collect();
    let unnamed_count = finished_items.len().saturating_sub(named_items.len());
    let more_note = (unnamed_count > 0).then(|| format!("and {unnamed_count} more"));
    render_bullet_list("Already done:", &named_items.into_iter().chain(more_note).collect::<Vec<_>>())
}

/// Returns the files in progress that still exist. For a file that has changed since the checkpoint, the touched
/// lines are cleared, because they may be wrong.
fn existing_files_with_stale_lines_cleared(
    checkpoint: &Checkpoint,
    staleness: &Staleness,
) -> Vec<FileInProgress> {
    let still_exists = |file: &&FileInProgress| !staleness.missing_files.contains(&file.path);
    let without_stale_lines = |file: &FileInProgress| {
        let mut file = file.clone();
        if staleness.changed_files.contains(&file.path) {
            file.touched_lines.clear();
            file.description.push_str(", changed since");
        }
        file
    };
    checkpoint.files_in_progress.iter().filter(still_exists).map(without_stale_lines).collect()
}

/// Describes where the work on the item is in git: the range of commits, and the uncommitted files.
pub fn describe_item_work_since_base(work: &ItemWork, head: Option<&str>) -> String {
    let uncommitted_paths = match work.uncommitted_files.as_slice() {
        [] => String::new(),
        paths => {
            let named_paths: Vec<String> =
                paths.iter().take(MAX_NAMED).map(|path| to_safe_single_line(path)).collect();
            let unnamed_count = paths.len().saturating_sub(named_paths.len());
            let more_note =
                if unnamed_count > 0 { format!(" and {unnamed_count} more") } else { String::new() };
            format!("{}{more_note}", named_paths.join(", "))
        }
    };
    let commit_details = if work.commit_count == 0 && uncommitted_paths.is_empty() {
        String::new()
    } else {
        format!(
            "{}{}",
            describe_wip_commits_and_commits_by_others(work),
            describe_uncommitted_or_all_committed(&uncommitted_paths)
        )
    };
    match (&work.base_commit, work.base_relation, work.commit_count) {
        (_, BaseRelation::Missing, _) => {
            format!("Its base commit is gone from git; only the files below are known{commit_details}")
        }
        (Some(base), BaseRelation::Rewritten, _) => {
            let base = short_id(base);
            format!(
                "Its work: `git diff {base}`, which may include changes by others because HEAD no longer contains {base} (amended, rebased or reset){commit_details}"
            )
        }
        (_, _, 0) if uncommitted_paths.is_empty() => "No file has changed for it.".to_owned(),
        (base, _, 0) if head.is_some() => {
            // Commits by others since the base are not work on the item.
            let base = base.as_deref().filter(|_| work.commits_by_others.is_empty());
            let base = base.map_or("HEAD".to_owned(), short_id);
            format!("Its work is not committed (`git status`, `git diff {base}`): {uncommitted_paths}")
        }
        (_, _, 0) => "Its work is in the files below; there is no base commit.".to_owned(),
        (Some(base), ..) => {
            let base = short_id(base);
            format!("Its work: `{base}..HEAD` (`git diff {base}`){commit_details}")
        }
        (None, _, count) => {
            let count = count_with_noun(count, "commit");
            format!("Its work: {count} since the repository began (`git log -p`){commit_details}")
        }
    }
}

/// Describes those commits of the range that are not finished steps of the work: work-in-progress commits, and
/// commits by others.
fn describe_wip_commits_and_commits_by_others(work: &ItemWork) -> String {
    let short_ids_where = |predicate: fn(&CommitRef) -> bool| -> Vec<String> {
        work.commits
            .iter()
            .filter(|commit| predicate(commit))
            .take(MAX_NAMED)
            .map(CommitRef::short_id)
            .collect()
    };
    let ids_by_others: Vec<String> =
        work.commits_by_others.iter().take(MAX_NAMED).map(|id| short_id(id)).collect();
    let groups = [
        (
            short_ids_where(CommitRef::is_checkpoint_commit),
            "a work-in-progress commit by Plimsoll",
            "work-in-progress commits by Plimsoll",
        ),
        (
            short_ids_where(|commit| commit.is_unfinished_work_commit() && !commit.is_checkpoint_commit()),
            "a work-in-progress commit",
            "work-in-progress commits",
        ),
        (ids_by_others, "by others", "by others"),
    ];
    let descriptions = groups.into_iter().filter_map(|(ids, singular, plural)| match ids.as_slice() {
        [] => None,
        [id] => Some(format!("{id} is {singular}")),
        ids => Some(format!("{} are {plural}", ids.join(", "))),
    });
    let descriptions: Vec<String> = descriptions.collect();
    if descriptions.is_empty() { String::new() } else { format!(", of which {}", descriptions.join(" and ")) }
}

fn describe_uncommitted_or_all_committed(uncommitted_paths: &str) -> String {
    if uncommitted_paths.is_empty() {
        "; all committed".to_owned()
    } else {
        format!("; uncommitted: {uncommitted_paths}")
    }
}

/// Renders a table of the files of the work, the most recently touched first. The last column describes all changes
/// since the base commit.
pub fn render_file_table(files: &[FileInProgress], max_rows: usize, base: Option<&str>) -> String {
    if files.is_empty() {
        return String::new();
    }
    let rows: Vec<String> = files.iter().take(max_rows.max(1)).map(render_file_row).collect();
    let omitted_count = files.len().saturating_sub(rows.len());
    let more_note = if omitted_count > 0 {
        format!("\n\n… and {}", count_with_noun(omitted_count, "more file"))
    } else {
        String::new()
    };
    let since_base = base.map_or(String::new(), |base| format!(" since {}", short_id(base)));
    format!(
        "| File | Lines touched last | Change{since_base} |\n|---|---|---|\n{}{more_note}",
        rows.join("\n")
    )
}

fn render_file_row(file: &FileInProgress) -> String {
    let escape_cell = |text: &str| to_safe_single_line(&text.replace('|', "\\|"));
    let lines = if file.touched_lines.is_empty() { "-" } else { &file.touched_lines };
    let counts = match (file.added_lines, file.removed_lines) {
        (Some(added), Some(removed)) => format!(" (+{added} -{removed})"),
        _ => String::new(),
    };
    format!(
        "| {} | {} | {}{counts} |",
        escape_cell(&file.path),
        escape_cell(lines),
        escape_cell(&file.description)
    )
}

/// Renders the last results of the checks that the session ran.
pub fn render_checks(checks: &[CheckResult]) -> String {
    let checks: Vec<String> =
        checks.iter().map(|check| format!("Check {}", describe_check(check, "by that session"))).collect();
    checks.join("\n")
}

/// Describes the last result of a check: who ran it, whether it passed, and the failures.
pub fn describe_check(check: &CheckResult, by_executor: &str) -> String {
    let command = to_line_for_backticks(&check.command, 160);
    let outcome = if check.passed { "passed" } else { "FAILED" };
    let staleness_note = if check.is_before_edit { ", before its last edit" } else { "" };
    let failures: String = check
        .failures
        .iter()
        .take(MAX_NAMED)
        .map(|line| format!("\n- {}", truncate_end(&to_safe_single_line(line), 160)))
        .collect();
    format!("`{command}`, run {by_executor}: {outcome}{staleness_note}{failures}")
}

/// Renders the session's claims about its work in a fence that marks them as unchecked. No other line of the section
/// has these labels.
fn render_last_session_claims(checkpoint: &Checkpoint, fence_seed: &str) -> String {
    let is_begun = checkpoint.item_work.is_begun;
    let lines = [
        ("Summary", &checkpoint.resume_summary, true),
        ("Progress", &checkpoint.progress_on_item, is_begun),
        ("Next step", &checkpoint.next_step, is_begun),
    ];
    let claim_lines: Vec<String> = lines
        .into_iter()
        .filter(|(.., is_included)| *is_included)
        .filter_map(|(label, claim, _)| Some(format!("{label}: {}", clip_claim_unless_unknown(claim)?)))
        .collect();
    let text = claim_lines.join("\n");
    untrusted_text::render_quoted_block_or_empty_if_blank(
        TextOrigin::EarlierSessions,
        &untrusted_text::unique_fence(fence_seed, &text),
        &text,
    )
    .trim_end()
    .to_owned()
}

/// Renders the claims of an earlier session about the item, which are set only if the last session made none.
fn render_earlier_session_claims(checkpoint: &Checkpoint, fence_seed: &str) -> String {
    let Some(notes) = &checkpoint.earlier_notes else { return String::new() };
    let lines = [("Summary", &notes.summary), ("Progress", &notes.progress), ("Next step", &notes.next_step)];
    let claim_lines = lines
        .into_iter()
        .filter_map(|(label, claim)| Some(format!("{label}: {}", clip_claim_unless_unknown(claim)?)));
    let claim_lines: Vec<String> = claim_lines.collect();
    let text = claim_lines.join("\n");
    let block = untrusted_text::render_quoted_block_or_empty_if_blank(
        TextOrigin::EarlierSessions,
        &untrusted_text::unique_fence(fence_seed, &text),
        &text,
    );
    format!(
        "It left no progress and no next step. The last session on this item that did was iteration {}:\n\n{}",
        notes.iteration,
        block.trim_end()
    )
}

fn clip_claim_unless_unknown(claim: &str) -> Option<String> {
    let claim = to_safe_single_line(claim);
    (!claim.is_empty() && claim != UNKNOWN).then(|| truncate_end(&claim, MAX_CLAIM_CHARS))
}

fn render_bullet_list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    format!("{title}\n{}", lines.join("\n"))
}

/// Escapes and clips a path from the state for use between backticks, because an agent can write the state.
fn clip_path_for_backticks(file: &str) -> String {
    to_line_for_backticks(file, MAX_ITEM_CHARS)
}

fn render_handoff_reference(checkpoint: &Checkpoint) -> String {
    match checkpoint.handoff_file.as_str() {
        "" => String::new(),
        file => {
            let earlier_handoff_note = match checkpoint.earlier_handoff.as_str() {
                "" => String::new(),
                earlier_handoff => format!(
                    "; about the one before it on this item: `{}`",
                    clip_path_for_backticks(earlier_handoff)
                ),
            };
            format!(
                "More about that session (last command, all files): `{}`{earlier_handoff_note}",
                clip_path_for_backticks(file)
            )
        }
    }
}

#[cfg(test)]
mod tests;
