//! Builds the report from the state, the journal, the turn logs and git.

use super::contents::{ChartMark, Report, RunCost, RunSession, SessionCommit, UtcTime, WindowUsage, Worker};
use super::entry::RunEntry;
use super::next_steps::{NextStepsInput, insert_step_to_read_unresumed_handoff, next_steps};
use super::run_selection::SelectedRun;
use super::status_text::activity_or_reason_texts;
use super::window_usage::{WindowUsageBuilder, read_turn_logs_into_sessions_and_usage};
use super::{chart_marks, handoffs, items, pauses, problems, run_sessions, workers};
use crate::render::redact::RedactedText;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::{RunState, RunStatus, Timestamp};
use plimsoll_flows::context::measure::{MeasureInput, compute_session_thresholds};
use plimsoll_flows::run_figures::{RunSnapshot, run_snapshot_reading_files_only_if_newest};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_policy::client_modules::{merge_module_events_by_plugin, other_modules_sentence};
use plimsoll_store::{Project, StoreError, clock, config, journal, sessions};

/// Records turns that are missing from the turn logs, then builds the report from everything that is recorded about the run.
pub(super) fn record_missing_turns_and_build_report(
    project: &Project,
    selected_run: &SelectedRun,
) -> Result<Report, StoreError> {
    let state = &selected_run.state;
    let mut read_errors = Vec::new();
    if let Err(error) =
        catch_up::record_missing_turns_of_all_sessions(project, CaptureLimits::FOR_USER_COMMAND_OR_RUN)
    {
        read_errors.push(format!("The newest turns may be missing: {error}"));
    }
    let journal_entries = journal::read_entries(project)?;
    let entries = RunEntry::for_run(&journal_entries, &state.run_id);
    if entries.is_empty() {
        read_errors.push(
            "The journal has no entries of this run: sessions, pauses and problems are unknown.".to_owned(),
        );
    }
    let session_data = SessionData::from_journal_turn_logs_and_git(project, state, &entries)?;
    let snapshot = run_snapshot_reading_files_only_if_newest(project, state, selected_run.is_current)?;
    let mut report = Report {
        read_errors: read_errors.iter().map(|message| RedactedText::single_line(message, 300)).collect(),
        items: items::report_items(state, &session_data.sessions),
        pauses: pauses::recorded_and_inferred_pauses(&entries, state.lifecycle.status() == RunStatus::Paused),
        problems: problems::run_problems_merging_repeats(&entries),
        other_modules: other_modules_of_run(&entries),
        merges: workers::merge_queue_events(&entries),
        thresholds: chart_marks::last_recorded_threshold_percents(&entries)
            .or_else(|| threshold_percents_of_last_measured_session(project, &session_data.sessions)),
        handoffs: handoffs::newest_distinct_handoffs(project, state, &entries),
        next_steps: next_steps(&next_steps_input(selected_run, &snapshot, &entries)),
        ..partial_report_from_state_and_sessions(project, selected_run, &snapshot, session_data)
    };
    if selected_run.is_current {
        insert_step_to_read_unresumed_handoff(&mut report);
    }
    Ok(report)
}

/// Returns the sentence about the modules of other plugins that were recorded when the run started or was resumed.
fn other_modules_of_run(entries: &[RunEntry<'_>]) -> Option<RedactedText> {
    let start_details = entries.iter().filter_map(|entry| match entry.event() {
        JournalEvent::RunStarted(details) | JournalEvent::RunResumed(details) => Some(details),
        _ => None,
    });
    let modules = merge_module_events_by_plugin(start_details.flat_map(|details| &details.other_modules));
    other_modules_sentence(&modules).map(|sentence| RedactedText::single_line(&sentence, 600))
}

/// Creates a report with the fields that come from the state and the sessions. The other fields have their default values.
fn partial_report_from_state_and_sessions(
    project: &Project,
    selected_run: &SelectedRun,
    snapshot: &RunSnapshot,
    session_data: SessionData,
) -> Report {
    let state = &selected_run.state;
    let to_utc_time = |timestamp: Option<&Timestamp>| timestamp.and_then(clock::parse_timestamp);
    Report {
        name: RedactedText::single_line(&state.options.task_name, 80),
        objective: RedactedText::single_line(&state.options.objective, 400),
        run_id: RedactedText::single_line(&state.run_id, 60),
        status: state.lifecycle.status(),
        status_texts: activity_or_reason_texts(
            state,
            selected_run.is_current,
            &crate::run_status::status_summary(project, snapshot),
        ),
        started_at: to_utc_time(Some(&state.project_at_start.started_at)),
        ended_at: if state.lifecycle.has_ended() { to_utc_time(state.lifecycle.ended_at()) } else { None },
        is_live: selected_run.is_current && (snapshot.is_run_active || snapshot.figures.sessions_running > 0),
        observed_at: clock::now(),
        counted_sessions: snapshot.figures.sessions_started,
        max_sessions: state.options.max_iterations,
        cost: run_cost(state, &snapshot.figures),
        verify_seconds: state.spending.verify_seconds,
        sessions: session_data.sessions,
        marks: session_data.marks,
        workers: session_data.workers,
        window_usage: WindowUsage { subagent_usage: state.run_subagent_usage(), ..session_data.window_usage },
        ..Report::default()
    }
}

/// The sessions, the marks on their load lines, the workers, and the usage of the windows.
struct SessionData {
    sessions: Vec<RunSession>,
    marks: Vec<ChartMark>,
    workers: Vec<Worker>,
    window_usage: WindowUsage,
}

impl SessionData {
    fn from_journal_turn_logs_and_git(
        project: &Project,
        state: &RunState,
        entries: &[RunEntry<'_>],
    ) -> Result<SessionData, StoreError> {
        let mut sessions = run_sessions::started_sessions(entries);
        let mut marks = chart_marks::chart_marks_of_entries(entries);
        let mut usage_builder = WindowUsageBuilder::default();
        read_turn_logs_into_sessions_and_usage(project, &mut sessions, &mut marks, &mut usage_builder)?;
        let workers = workers::load_workers_with_sessions(project, state, entries, &mut usage_builder)?;
        marks.extend(sessions.iter().filter_map(chart_marks::session_end_mark));
        marks.sort_by_key(|mark| mark.occurred_at);
        fill_missing_percents_with_preceding_or_peak(&mut marks, &sessions);
        assign_commits_to_sessions(&mut sessions, commits_since_run_start_time_oldest_first(project, state));
        Ok(SessionData {
            sessions,
            marks,
            workers,
            window_usage: usage_builder.into_sorted_usage_dropping_small_results(),
        })
    }
}

fn next_steps_input<'a>(
    selected_run: &'a SelectedRun,
    snapshot: &RunSnapshot,
    entries: &[RunEntry<'a>],
) -> NextStepsInput<'a> {
    let paused_until = selected_run.state.lifecycle.paused_until().and_then(clock::parse_timestamp);
    NextStepsInput {
        state: &selected_run.state,
        activity: snapshot.activity.clone(),
        is_current: selected_run.is_current,
        paused_until: paused_until.map(clock::format_local_time_with_seconds),
        merge_refusal: selected_run
            .state
            .plan_items
            .set_aside_items
            .first()
            .and_then(|item| merge_refusal_of_set_aside_item(entries, item)),
    }
}

/// Returns the reason why an item's work could not be merged, if the item was set aside for that.
fn merge_refusal_of_set_aside_item<'a>(entries: &[RunEntry<'a>], item: &str) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match entry.event() {
        JournalEvent::ItemReturned(returned) if returned.is_set_aside && returned.item == item => {
            Some(returned.reason.as_str())
        }
        _ => None,
    })
}

fn run_cost(state: &RunState, figures: &RunFigures) -> RunCost {
    RunCost {
        cost_usd: figures.cost_usd,
        cost_basis: figures.cost_basis,
        max_cost_usd: state.options.limits.max_cost_usd,
        review_count: state.spending.review_count,
        review_cost_usd: state.spending.review_cost_usd,
        tokens: figures.tokens,
        max_tokens: state.options.limits.max_tokens,
    }
}

/// Sets the percentage of each mark that has none to the usage on the load line at that time, or else to the session's peak usage.
fn fill_missing_percents_with_preceding_or_peak(marks: &mut [ChartMark], sessions: &[RunSession]) {
    for mark in marks.iter_mut().filter(|mark| mark.percent.is_none()) {
        let started_before_mark = |session: &&RunSession| {
            session.started_at.is_some_and(|started_at| started_at <= mark.occurred_at)
        };
        let session = sessions.iter().rfind(started_before_mark);
        let percent_before_mark = |session: &RunSession| {
            let mut points = session.load_line.iter().flatten();
            points.rfind(|point| point.measured_at <= mark.occurred_at).map(|point| point.percent)
        };
        mark.percent = session.and_then(|session| {
            percent_before_mark(session).or_else(|| session.peak_percent.map(|peak| peak as f64))
        });
    }
}

fn commits_since_run_start_time_oldest_first(project: &Project, state: &RunState) -> Vec<SessionCommit> {
    let to_session_commit = |commit: plimsoll_launcher::git::LogEntry| {
        let commit_time = u64::try_from(commit.committed_at).ok().and_then(clock::from_unix_seconds)?;
        Some(SessionCommit {
            id: commit.id.into(),
            subject: RedactedText::single_line(&commit.subject, 120),
            committed_at: commit_time,
        })
    };
    plimsoll_launcher::git::commits_since_time_oldest_first(
        project.root(),
        state.project_at_start.started_at.as_str(),
    )
    .into_iter()
    .filter_map(to_session_commit)
    .collect()
}

/// Assigns each commit to the session during which it was made, and drops the others. Times are compared in whole
/// seconds, as git records them. The end of a session is its verdict, because Plimsoll itself commits before the verdict.
fn assign_commits_to_sessions(sessions: &mut [RunSession], commits: Vec<SessionCommit>) {
    for commit in commits {
        let to_seconds = |time: Option<UtcTime>| time.map(|time| time.timestamp());
        let commit_second = commit.committed_at.timestamp();
        let contains_commit = |session: &&mut RunSession| {
            let end = to_seconds(session.verdict_at.or(session.ended_at)).unwrap_or(i64::MAX);
            let was_head_at_start = session.head_at_start.as_ref() == Some(&commit.id);
            to_seconds(session.started_at).is_some_and(|start_second| start_second <= commit_second)
                && commit_second <= end
                && !was_head_at_start
        };
        if let Some(session) = sessions.iter_mut().find(contains_commit) {
            session.commits.push(commit);
        }
    }
}

/// Computes the thresholds from the settings and the window size of the last session. For a run whose journal has no thresholds.
fn threshold_percents_of_last_measured_session(
    project: &Project,
    sessions: &[RunSession],
) -> Option<super::contents::ThresholdPercents> {
    let session_id =
        sessions.iter().rev().find_map(|session| session.window_tokens.and(session.session_id.as_ref()))?;
    let record = sessions::load_session_record(project, session_id);
    let reading = record.usage.last_reading.as_ref()?;
    let (settings, _) = config::load_settings(project);
    let input = MeasureInput {
        project,
        settings: &settings,
        record: &record,
        transcript_path: None,
        pending_calls: &[],
    };
    Some(chart_marks::to_percents(&compute_session_thresholds(
        &input,
        reading.window.as_ref()?,
        reading.model.as_deref(),
    )))
}
