//! Renders the status screen: at most 25 lines for a run of any size, plus a line for each additional
//! question. Pure functions.

use super::status_text::{breaker_counts_and_problems_text, next_step_text, summarize_status};
use crate::branch;
use crate::changed_checks;
use crate::questions;
use crate::reviews;
use crate::run_status::RunStatusView;
use plimsoll_domain::limits::QuotaWindow;
use plimsoll_domain::state::{CheckpointCause, HistoryEntry};
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_store::clock;
use plimsoll_terminal::columns;
use plimsoll_terminal::duration::format_seconds;
use plimsoll_terminal::run_figure_text::{render_running_count, render_worker_name_item_and_activity};

/// Maximum number of done items, and of open items, that are listed.
const MAX_LISTED_ITEMS: usize = 3;
/// Width of the title column.
pub(super) const INDENT: usize = 13;

impl RunStatusView {
    /// Renders the screen. Rows without content are omitted, and long texts are truncated.
    pub(super) fn render_lines(&self) -> Vec<String> {
        let state = &self.state;
        let mut lines = vec![columns::clip_to_columns(
            &format!("{} ({})", clip_name(&state.options.task_name), state.run_id),
            self.max_line_width,
        )];
        lines.extend(self.wrapped_lines("Status", &summarize_status(self).to_string()));
        lines.extend(
            self.sequential_run_item_and_session_text().map(|text| self.titled_line("Current item", &text)),
        );
        lines.extend(self.context_usage.iter().map(|text| self.titled_line("Context", text)));
        lines.extend(self.item_count_and_listed_item_lines());
        lines.extend(self.question_and_answer_command_lines());
        lines.extend(self.worker_and_pending_item_lines());
        lines.push(self.titled_line("Sessions", &self.session_and_pause_count_text()));
        lines.extend(self.newest_session_peaks_text().map(|text| self.titled_line("Peaks", &text)));
        lines.extend(
            self.checkpoint_session_count_and_last_text().map(|text| self.titled_line("Checkpoints", &text)),
        );
        lines.push(self.titled_line("Cost", &self.cost_and_token_text()));
        lines.extend(
            reviews::open_findings_and_missing_reviews_text(&self.state)
                .map(|text| self.titled_line("Reviews", &text)),
        );
        lines.extend(self.quota_text().map(|text| self.titled_line("Quota", &text)));
        lines.push(self.titled_line("Time", &self.start_end_and_deadline_text()));
        lines.extend(self.rest_text().map(|text| self.titled_line("Left", &text)));
        lines.extend(
            changed_checks::changed_protected_sentence(state)
                .map(|text| self.titled_line("Protected", &text))
                .or_else(|| {
                    changed_checks::changed_check_files_sentence(state)
                        .map(|text| self.titled_line("Checks", &text))
                }),
        );
        lines.extend(self.reverted_ticks_line().or_else(|| self.promise_refusal_reason_line()));
        lines.extend(breaker_counts_and_problems_text(state).map(|text| self.titled_line("Problems", &text)));
        lines.extend(self.branch_line());
        lines.extend(self.next_step_lines_with_unwrapped_command());
        let disk_usage = self.disk_usage.as_ref().map(|text| format!("; recorded: {text}"));
        let sources = format!(
            "plimsoll report, plimsoll log, or {}{}",
            self.journal_path,
            disk_usage.unwrap_or_default()
        );
        lines.push(self.titled_line("More", &sources));
        lines
    }

    fn titled_line(&self, title: &str, text: &str) -> String {
        render_titled_line(title, text, self.max_line_width)
    }

    fn wrapped_lines(&self, title: &str, text: &str) -> Vec<String> {
        wrap_titled_text(title, text, self.max_line_width)
    }

    /// Returns the branch and the command that merges it. The user copies the command, so it is neither
    /// truncated nor wrapped.
    fn branch_line(&self) -> Option<String> {
        let name = self.state.options.branch.as_ref()?;
        let (_, command) = branch::branch_or_merge_command_step(&self.state)?;
        let merge = command.map_or(String::new(), |command| format!("; to merge it: {command}"));
        Some(format!("{:<INDENT$}{}{merge}", "Branch", to_safe_single_line(name)))
    }

    /// Returns the next step. A command with client arguments is neither truncated nor wrapped, because the user
    /// copies it.
    fn next_step_lines_with_unwrapped_command(&self) -> Vec<String> {
        let text = to_safe_single_line(&next_step_text(self));
        let (_, remaining_text) =
            columns::split_off_wrapped_line(&text, self.max_line_width.saturating_sub(INDENT));
        if text.contains(" -- ") && !remaining_text.is_empty() {
            vec![format!("{:<INDENT$}{text}", "Next")]
        } else {
            self.wrapped_lines("Next", &text)
        }
    }

    pub(super) fn sequential_run_item_and_session_text(&self) -> Option<String> {
        if self.has_workers() || self.state.lifecycle.has_ended() || self.state.iteration == 0 {
            return None;
        }
        let item = current_unparked_item(&self.state).map(|item| format!("\"{}\", ", truncate_end(item, 60)));
        Some(format!("{}session {}", item.unwrap_or_default(), self.state.iteration))
    }

    pub(super) fn item_count_and_listed_item_lines(&self) -> Vec<String> {
        let counts = &self.figures.items;
        if counts.total == 0 {
            return vec![self.titled_line("Items", "none: promise and verify commands decide")];
        }
        let count_suffix = |count: usize, label: &str| match count {
            0 => String::new(),
            count => format!(", {count} of them {label}"),
        };
        let set_aside_text = count_suffix(counts.set_aside, "set aside");
        // In a sequential run, the line of the current item already shows it.
        let in_progress_text =
            if self.has_workers() { count_suffix(counts.in_progress, "in work") } else { String::new() };
        let to_merge_text = count_suffix(counts.waiting_to_merge, "to be merged");
        let waiting_text = questions::waiting_item_count_text(&self.state)
            .map(|text| format!(", {text}"))
            .unwrap_or_default();
        let open_text = match counts.open {
            0 => String::new(),
            open => format!(", {open} open{in_progress_text}{to_merge_text}{set_aside_text}{waiting_text}"),
        };
        let mut lines =
            vec![self.titled_line("Items", &format!("{} of {} done{open_text}", counts.done, counts.total))];
        let checkbox_line = |checkbox_char: char, text: String| {
            columns::clip_to_columns(
                &format!("  [{checkbox_char}] {}", to_safe_single_line(&text)),
                self.max_line_width,
            )
        };
        let (done_items, open_items) =
            (self.last_done_items(), self.next_open_items_with_set_aside_and_parked());
        // No line says how many done items are hidden, because the count above includes them.
        lines.extend(done_items.into_iter().map(|item| checkbox_line('x', item)));
        let hidden_count = self.state.plan_items.todo_items.len() - open_items.len();
        let hidden_line = (hidden_count > 0).then(|| format!("      … {hidden_count} more"));
        lines.extend(open_items.into_iter().map(|item| checkbox_line(' ', item)));
        lines.extend(hidden_line);
        lines
    }

    /// Returns a line for each worker, and a line for each pending item without a local worker.
    pub(super) fn worker_and_pending_item_lines(&self) -> Vec<String> {
        let worker_texts =
            self.figures.workers.iter().map(|worker| render_worker_name_item_and_activity(worker).join(": "));
        let titles = std::iter::once("Workers").chain(std::iter::repeat(""));
        let lines = worker_texts.chain(self.pending_item_lines.iter().cloned());
        lines.zip(titles).map(|(text, title)| self.titled_line(title, &text)).collect()
    }

    /// Returns all open questions with their numbers for `--answer`, and the command that answers the first one.
    fn question_and_answer_command_lines(&self) -> Vec<String> {
        let parked_questions = &self.state.plan_items.parked_questions;
        let titles = std::iter::once("Question").chain(std::iter::repeat(""));
        let answer_command = (!parked_questions.is_empty()).then(|| questions::answer_command(1));
        let question_texts =
            (1..).zip(parked_questions).map(|(number, question)| questions::question_line(number, question));
        question_texts
            .chain(answer_command)
            .zip(titles)
            .map(|(text, title)| self.titled_line(title, &text))
            .collect()
    }

    /// Returns the last done items in the order of their ticks. Items without a recorded tick come first.
    fn last_done_items(&self) -> Vec<String> {
        let state = &self.state;
        let has_recorded_tick = |item: &&String| state.plan_items.ever_ticked_items.contains(item);
        let done_without_recorded_tick =
            state.plan_items.completed_items.iter().filter(|item| !has_recorded_tick(item));
        let done_in_tick_order = state
            .plan_items
            .ever_ticked_items
            .iter()
            .filter(|item| state.plan_items.completed_items.contains(item));
        let done_items: Vec<&String> = done_without_recorded_tick.chain(done_in_tick_order).collect();
        done_items
            .iter()
            .skip(done_items.len().saturating_sub(MAX_LISTED_ITEMS))
            .map(|item| (*item).clone())
            .collect()
    }

    /// Returns the next open items. At least one place is reserved for items that are set aside or wait for an
    /// answer.
    fn next_open_items_with_set_aside_and_parked(&self) -> Vec<String> {
        let is_parked = |item: &String| self.state.is_parked(item);
        let is_set_aside_or_parked =
            |item: &&String| self.state.plan_items.set_aside_items.contains(item) || is_parked(item);
        let open_items = &self.state.plan_items.todo_items;
        let (skipped_items, upcoming_items): (Vec<&String>, Vec<&String>) =
            open_items.iter().partition(is_set_aside_or_parked);
        let max_upcoming = if skipped_items.is_empty() || open_items.len() <= MAX_LISTED_ITEMS {
            MAX_LISTED_ITEMS
        } else {
            MAX_LISTED_ITEMS - 1
        };
        let upcoming_texts = upcoming_items.into_iter().take(max_upcoming).cloned();
        let skipped_texts = skipped_items.iter().map(|item| {
            let reason = if is_parked(item) { "waits for your answer" } else { "set aside" };
            format!("{} ({reason})", truncate_end(&to_safe_single_line(item), 80))
        });
        upcoming_texts.chain(skipped_texts).take(MAX_LISTED_ITEMS).collect()
    }

    fn session_and_pause_count_text(&self) -> String {
        let state = &self.state;
        let pauses = match state.lifecycle.pause_count() {
            0 => String::new(),
            count => format!(", {}", count_with_noun(count as usize, "pause")),
        };
        let running = render_running_count(&self.figures);
        format!(
            "{} of at most {}{running}{pauses}",
            self.figures.sessions_started, state.options.max_iterations
        )
    }

    fn newest_session_peaks_text(&self) -> Option<String> {
        let history = &self.state.context_history;
        let legend =
            if history.iter().any(|entry| entry.ended_at_checkpoint) { " (* checkpoint)" } else { "" };
        let max_chars = self.max_line_width.saturating_sub(INDENT + legend.chars().count() + 2);
        let peaks = render_newest_peaks(history, max_chars);
        (!peaks.is_empty()).then(|| format!("{peaks}{legend}"))
    }

    pub(super) fn checkpoint_session_count_and_last_text(&self) -> Option<String> {
        let last_checkpoint = &self.state.context_checkpoint;
        if last_checkpoint.handoff_file.is_empty() {
            return None;
        }
        let session_count =
            self.state.context_history.iter().filter(|entry| entry.ended_at_checkpoint).count();
        let percent = last_checkpoint
            .percent_at_checkpoint
            .map(|percent| format!(" at {percent}%"))
            .unwrap_or_default();
        let cause = match last_checkpoint.cause {
            CheckpointCause::Level => last_checkpoint.level.to_string(),
            cause => cause.display_text().to_owned(),
        };
        let details = format!("({cause}{percent}, session {})", last_checkpoint.iteration);
        Some(format!(
            "{}the last: {} {details}",
            session_count_prefix(session_count),
            last_checkpoint.handoff_file
        ))
    }

    /// Describes the cost of all runs today, as last recorded by this run. Empty without a daily limit.
    fn daily_cost_suffix_if_limited(&self) -> String {
        let daily_limit = self.state.options.limits.max_cost_per_day_usd;
        let spent_today = self.state.spending.spent_today.as_ref();
        let text = daily_limit.zip(spent_today).map(|(limit, today)| {
            format!(" (all runs {} a day)", today.basis.format_usd_spent_of_limit(today.usd, limit))
        });
        text.unwrap_or_default()
    }

    pub(super) fn cost_and_token_text(&self) -> String {
        let (state, limits) = (&self.state, &self.state.options.limits);
        let daily_text = self.daily_cost_suffix_if_limited();
        let token_limit =
            limits.max_tokens.map(|limit| format!(" of {}", format_tokens(limit))).unwrap_or_default();
        let cost_text = self.figures.format_cost_and_limit(limits.max_cost_usd);
        let reviews = reviews::cost_text(state).map(|text| format!(", {text}")).unwrap_or_default();
        format!(
            "{cost_text}{daily_text}, {}{token_limit} tokens{reviews}",
            format_tokens(self.figures.tokens)
        )
    }

    /// Returns the estimate of the rest, or that there is none yet if the run is working. A run that has ended, or has not
    /// begun, has none.
    pub(super) fn rest_text(&self) -> Option<String> {
        let is_open = !self.state.lifecycle.has_ended() && self.state.iteration > 0;
        let has_text = is_open && (self.figures.remaining.is_some() || self.activity.continues_by_itself());
        let rest = self.figures.render_remaining_work().filter(|_| has_text)?;
        Some(rest.strip_suffix(" left").map_or_else(|| rest.clone(), str::to_owned))
    }

    pub(super) fn quota_text(&self) -> Option<String> {
        let quota = &self.state.spending.quota;
        let windows = [("five-hour", &quota.five_hour), ("weekly", &quota.seven_day)];
        let quota_texts: Vec<String> = windows
            .into_iter()
            .filter_map(|(name, window)| window.as_ref().map(|window| quota_window_text(name, window)))
            .collect();
        let limit_percent = self.state.options.limits.stop_at_limit_percent;
        let limit_text = limit_percent.map(|percent| format!("; waits at {percent}%")).unwrap_or_default();
        (!quota_texts.is_empty()).then(|| format!("{}{limit_text}", quota_texts.join(", ")))
    }

    pub(super) fn start_end_and_deadline_text(&self) -> String {
        let state = &self.state;
        let started_at = clock::parse_timestamp(&state.project_at_start.started_at);
        let ended_at = state.lifecycle.ended_at().and_then(clock::parse_timestamp);
        let elapsed = started_at
            .map(|started| format_seconds((ended_at.unwrap_or(self.now) - started).num_seconds().max(0)));
        let elapsed_text = elapsed.unwrap_or_else(|| "?".to_owned());
        let start_text = started_at.map_or("?".to_owned(), clock::format_local_time_with_seconds);
        let end_or_age = match ended_at {
            Some(ended) => {
                format!(", ended {}, took {elapsed_text}", clock::format_local_time_with_seconds(ended))
            }
            None => format!(", {elapsed_text} ago"),
        };
        let deadline = state
            .options
            .limits
            .deadline
            .as_ref()
            .and_then(clock::parse_timestamp)
            .map(clock::format_local_time_with_seconds);
        let deadline_text = deadline.map(|deadline| format!(", deadline {deadline}")).unwrap_or_default();
        let verify_time = match state.spending.verify_seconds {
            0 => String::new(),
            seconds => format!(", {} in verify commands", format_seconds(seconds.cast_signed())),
        };
        format!("started {start_text}{end_or_age}{deadline_text}{verify_time}")
    }

    /// Describes the ticks that were reverted. Shown instead of the refused promise, because the reverted ticks
    /// are the reason for its refusal.
    fn reverted_ticks_line(&self) -> Option<String> {
        let reverted = self.state.outcomes.reverted_ticks.as_ref()?;
        Some(self.titled_line(
            "Taken back",
            &format!("{} (session {})", reverted.describe_revert(), reverted.iteration),
        ))
    }

    fn promise_refusal_reason_line(&self) -> Option<String> {
        let reasons = &self.state.outcomes.refusals;
        let first_reason = reasons.first()?.lines().next()?;
        let more_text =
            if reasons.len() > 1 { format!(" (and {} more)", reasons.len() - 1) } else { String::new() };
        let max_columns = self.max_line_width.saturating_sub(INDENT + more_text.chars().count());
        Some(self.titled_line(
            "Refused",
            &format!(
                "{}{more_text}",
                columns::clip_to_columns(&to_safe_single_line(first_reason), max_columns)
            ),
        ))
    }
}

fn clip_name(name: &str) -> String {
    truncate_end(&to_safe_single_line(name), 60)
}

/// Renders the number of sessions that ended at a checkpoint, followed by a comma; empty for 0.
fn session_count_prefix(session_count: usize) -> String {
    match session_count {
        0 => String::new(),
        count => format!("{}, ", count_with_noun(count, "session")),
    }
}

fn quota_window_text(name: &str, window: &QuotaWindow) -> String {
    let reset_time =
        window.resets_at.as_ref().and_then(clock::parse_timestamp).map(clock::format_local_time_with_seconds);
    let reset_suffix = reset_time.map(|time| format!(" (resets {time})")).unwrap_or_default();
    format!("{name} {:.0}%{reset_suffix}", window.used_percent)
}

/// Renders a title and a text on one line, truncated to the width.
fn render_titled_line(title: &str, text: &str, width: usize) -> String {
    columns::clip_to_columns(format!("{title:<INDENT$}{}", to_safe_single_line(text)).trim_end(), width)
}

/// Renders a title and a text on at most two lines; the second is truncated to the width.
pub(super) fn wrap_titled_text(title: &str, text: &str, width: usize) -> Vec<String> {
    let text = to_safe_single_line(text);
    let (first_line, remaining_text) = columns::split_off_wrapped_line(&text, width.saturating_sub(INDENT));
    let second_line = (!remaining_text.is_empty()).then(|| render_titled_line("", remaining_text, width));
    [render_titled_line(title, first_line, width)].into_iter().chain(second_line).collect()
}

/// Renders the newest peaks in chronological order, in about `max_chars` characters. `…` replaces omitted older ones.
fn render_newest_peaks(history: &[HistoryEntry], max_chars: usize) -> String {
    let mut peak_texts: Vec<String> = Vec::new();
    let mut char_count = 0;
    for peak_text in history.iter().rev().map(render_peak) {
        char_count += peak_text.chars().count() + 1;
        if char_count > max_chars {
            peak_texts.push("…".to_owned());
            break;
        }
        peak_texts.push(peak_text);
    }
    peak_texts.reverse();
    peak_texts.join(" ")
}

fn render_peak(entry: &HistoryEntry) -> String {
    let star = if entry.ended_at_checkpoint { "*" } else { "" };
    match entry.peak_percent {
        0 => format!("?{star}"),
        percent => format!("{percent}%{star}"),
    }
}
