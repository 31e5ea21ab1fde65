//! Collects the values of the segments, and only of those that a line contains.

use super::{StatusLineInvocation, git};
use crate::context::measure::{MeasureInput, compute_session_thresholds};
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::record::StatusLineRecord;
use plimsoll_domain::statusline::{Segment, SegmentKind};
use plimsoll_domain::{RunStatus, SessionRecord, Timestamp};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::statusline::{
    CacheView, ContextUsageView, HiddenReason, LimitView, MemoryView, RunView, StatusLineView,
};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_protocol::status::{StatusPayload, SubscriptionLimit};
use plimsoll_store::{clock, disk, environment, hook_failures, memory, sessions, state_file};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const MAX_HOOK_FAILURE_AGE_MINUTES: i64 = 60;

impl StatusLineInvocation<'_> {
    /// Collects the values of the needed segments. Stores the git counts and the run in the record.
    pub(super) fn build_view(&self, record: &mut StatusLineRecord) -> StatusLineView {
        let payload = &self.payload;
        let directory = payload.workspace.current_dir.as_deref().or(payload.cwd.as_deref());
        let some_if_needed = |kind| Some(()).filter(|()| self.needs_segment(kind));
        let session = sessions::load_partial_record_for_status_line(&self.project, &self.session_id);
        StatusLineView {
            payload: StatusPayload {
                model: payload.model.clone(),
                cost: payload.cost.clone(),
                version: payload.version.clone(),
                effort: payload.effort.clone(),
                ..StatusPayload::default()
            },
            directory: directory.map(environment::abbreviate_home),
            git: some_if_needed(SegmentKind::Git).and(directory).and_then(|folder| {
                git::build_git_view_caching_counts_in_record(self, Path::new(folder), record)
            }),
            context_usage: self.context_usage_view(record, &session),
            run: some_if_needed(SegmentKind::Run).and_then(|()| self.refresh_and_view_open_run(record)),
            memory: some_if_needed(SegmentKind::Memory).and_then(|()| self.memory_view_if_shown_to_session()),
            prompt_cache: some_if_needed(SegmentKind::Cache)
                .map(|()| self.prompt_cache_view())
                .filter(|cache| *cache != CacheView::default()),
            five_hour_limit: some_if_needed(SegmentKind::FiveHour)
                .and(payload.rate_limits.five_hour.as_ref())
                .and_then(limit_view_unless_reset),
            weekly_limit: some_if_needed(SegmentKind::Weekly)
                .and(payload.rate_limits.seven_day.as_ref())
                .and_then(limit_view_unless_reset),
            spend_limit: some_if_needed(SegmentKind::Spend)
                .and(payload.rate_limits.spend_limit.as_ref())
                .and_then(limit_view_unless_reset),
            health_problem: some_if_needed(SegmentKind::Health)
                .and_then(|()| self.find_settings_hook_or_transcript_problem(&session)),
            custom_values: self.custom_values_from_input_or_commands(),
            use_color: environment::variable("NO_COLOR").is_none(),
            columns: environment::numeric_variable("COLUMNS")
                .filter(|columns| *columns >= 1.0)
                .map(|columns| columns as usize),
        }
    }

    fn context_usage_view(&self, record: &StatusLineRecord, session: &SessionRecord) -> ContextUsageView {
        let (client_window, model) = (&self.payload.context_window, self.payload.model.id.as_deref());
        let used_tokens = client_window.reported_or_estimated_used_tokens();
        let window = window::resolve_window_raising_it_to_used_tokens(&WindowEvidence {
            model,
            user_windows: Some(&self.settings.windows),
            status_line_window: client_window.context_window_size,
            client_version: self.payload.version.as_deref(),
            max_used_tokens: used_tokens.unwrap_or(0),
            ..WindowEvidence::default()
        });
        let input = MeasureInput {
            project: &self.project,
            settings: &self.settings,
            record: session,
            transcript_path: None,
            pending_calls: &[],
        };
        let computed_percent = used_tokens
            .zip(window.as_ref())
            .and_then(|(tokens, window)| plimsoll_domain::reading::rounded_percent(tokens, window.tokens));
        // If more tokens are used than fit in the client's window, the client's percentage refers to a window that is not
        // shown.
        let is_percent_of_shown_window =
            window.as_ref().is_none_or(|window| window.source != WindowSource::RaisedByUsage);
        let client_percent = client_window.valid_used_percentage().filter(|_| is_percent_of_shown_window);
        ContextUsageView {
            used_percent: client_percent
                .map(|percent| percent.round() as u64)
                .or(computed_percent.map(|percent| percent.min(100))),
            used_tokens,
            thresholds: window.map(|window| compute_session_thresholds(&input, &window, model)),
            usage_samples: record.timed_usage_samples(),
        }
    }

    /// Returns the project's run if it is open, and stores it in the record. Every session in the project shows it.
    fn refresh_and_view_open_run(&self, record: &mut StatusLineRecord) -> Option<RunView> {
        record.run =
            state_file::load_status_line_run(&self.project, record.run.as_ref(), current_unparked_item);
        let open_run = record.run.as_ref().filter(|run| !run.status.has_ended())?;
        let format_resume_time = |timestamp: &Timestamp| {
            clock::parse_timestamp(timestamp)
                .map(|time| format!("until {}", clock::format_short_local_time(time)))
        };
        let format_paused_until = || {
            open_run
                .paused_until
                .as_ref()
                .and_then(format_resume_time)
                .unwrap_or_else(|| "until you resume it".to_owned())
        };
        Some(RunView {
            iteration: open_run.iteration,
            max_iterations: open_run.max_iterations,
            done_count: open_run.done_count,
            item_count: open_run.done_count + open_run.open_count,
            current_item: open_run.item.clone(),
            checkpoint_percent: open_run.checkpoint_percent,
            paused_until: (open_run.status == RunStatus::Paused).then(format_paused_until),
        })
    }

    /// Returns the working memory if it has been shown to this session.
    fn memory_view_if_shown_to_session(&self) -> Option<MemoryView> {
        if !memory::memory_exists(&self.project) {
            return None;
        }
        memory::load_shown_memory_state(&self.project, &self.session_id).revision_shown_to(MAIN_STREAM)?;
        memory::load_memory(&self.project).ok().map(|memory| MemoryView::from_memory(&memory))
    }

    fn prompt_cache_view(&self) -> CacheView {
        let cache = &self.payload.prompt_cache;
        CacheView {
            is_warm: cache.warm,
            hit_ratio: cache.hit_ratio,
            expires_at: cache.expires_at.and_then(format_time).map(Timestamp::from),
        }
    }

    /// Returns the first of: an error in the settings, a recent error of this session's hooks, a missing transcript. Users
    /// would otherwise notice these too late. Each session shows only its own hook errors.
    fn find_settings_hook_or_transcript_problem(&self, session: &SessionRecord) -> Option<String> {
        let recent_failure = || {
            let hook_failure = hook_failures::last_hook_failure(&self.project)?;
            let occurred_at = clock::parse_timestamp(&hook_failure.occurred_at)?;
            let concerns_this_session =
                hook_failure.session_id.is_empty() || hook_failure.session_id == self.session_id;
            let is_recent = (clock::now() - occurred_at).num_minutes() < MAX_HOOK_FAILURE_AGE_MINUTES;
            let describe = || {
                format!(
                    "{} at {}: {}",
                    hook_failure.program,
                    clock::format_short_local_time(occurred_at),
                    hook_failure.message
                )
            };
            (concerns_this_session && is_recent).then(describe)
        };
        let missing_transcript =
            || self.has_responded_without_transcript(session).then(|| "no transcript".to_owned());
        self.short_settings_error.clone().or_else(recent_failure).or_else(missing_transcript)
    }

    /// Returns true if the session has responded and its transcript does not exist. Returns false without a recorded path:
    /// only our hooks record it, and only they need the transcript.
    fn has_responded_without_transcript(&self, session: &SessionRecord) -> bool {
        let path = session.start.transcript_path.as_deref();
        self.payload.context_window.reported_or_estimated_used_tokens().is_some()
            && path.is_some_and(|path| !disk::exists(Path::new(path)))
    }

    /// Returns the values of the user's custom segments that a line contains, or why they are hidden.
    fn custom_values_from_input_or_commands(&self) -> BTreeMap<String, Result<String, HiddenReason>> {
        let line_settings = &self.settings.statusline;
        let names = line_settings.lines.iter().flatten();
        let custom_segments: BTreeMap<&str, &Segment> = names
            .filter_map(|name| Some((name.as_ref(), line_settings.segment_settings(name)?)))
            .filter(|(name, _)| SegmentKind::from_name(name).is_none())
            .collect();
        let commands = custom_segments.iter().filter(|(_, segment)| segment.pointer.is_none());
        let commands: Vec<(&str, &[String])> =
            commands.filter_map(|(name, segment)| Some((*name, segment.command.as_deref()?))).collect();
        let mut values: BTreeMap<String, Result<String, HiddenReason>> = custom_segments
            .iter()
            .map(|(name, segment)| {
                ((*name).to_owned(), self.input_value_at_pointer(segment.pointer.as_deref()))
            })
            .collect();
        values.extend(self.run_segment_commands_in_parallel(&commands));
        values
    }

    fn input_value_at_pointer(&self, pointer: Option<&str>) -> Result<String, HiddenReason> {
        let no_source_reason = "it has no pointer and no usable command: one in a project's file is ignored";
        let pointer = pointer.ok_or(HiddenReason::NothingToShow(no_source_reason))?;
        let document = plimsoll_domain::text::parse_json_or_null(&String::from_utf8_lossy(self.input));
        match document.pointer(pointer) {
            None | Some(serde_json::Value::Null) => Err(HiddenReason::NoValueAtPointer(pointer.to_owned())),
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value) => Ok(value.to_string()),
        }
    }

    /// Runs all commands in parallel, so that the line waits only for the slowest.
    fn run_segment_commands_in_parallel(
        &self,
        commands: &[(&str, &[String])],
    ) -> Vec<(String, Result<String, HiddenReason>)> {
        let timeout_of = |name: &str| self.settings.statusline.segment_timeout(name);
        // Each command has a timeout, because the client kills a status line that is still running at the next trigger
        // (2.1.329).
        let programs: Vec<(&[String], Duration)> =
            commands.iter().map(|(name, command)| (*command, timeout_of(name))).collect();
        let outcomes = plimsoll_launcher::run_status_line_programs_in_parallel(
            &programs,
            self.project.root(),
            self.input,
        );
        let outputs = commands.iter().zip(outcomes);
        outputs
            .map(|((name, _), outcome)| ((*name).to_owned(), first_output_line(outcome, timeout_of(name))))
            .collect()
    }
}

fn first_output_line(
    outcome: plimsoll_launcher::CommandOutcome,
    timeout: Duration,
) -> Result<String, HiddenReason> {
    if outcome.timed_out {
        return Err(HiddenReason::CommandTimedOut(timeout));
    }
    if let Some(error) = outcome.start_error {
        return Err(HiddenReason::CommandNotRun(error));
    }
    match outcome.exit_code {
        Some(0) => Ok(String::from_utf8_lossy(&outcome.stdout).lines().next().unwrap_or_default().to_owned()),
        Some(code) => Err(HiddenReason::CommandExitedWithError(code)),
        None => Err(HiddenReason::CommandKilled),
    }
}

/// Returns `None` for a limit whose reset time has passed, because the client does not know its current usage.
fn limit_view_unless_reset(limit: &SubscriptionLimit) -> Option<LimitView> {
    let now = u64::try_from(clock::now().timestamp()).unwrap_or_default();
    let has_reset = limit.resets_at.is_some_and(|reset_at| reset_at <= now);
    (!has_reset).then(|| LimitView {
        used_percent: limit.used_percentage,
        resets_at: limit.resets_at.and_then(format_time),
    })
}

fn format_time(seconds: u64) -> Option<String> {
    clock::from_unix_seconds(seconds).map(clock::format_short_local_time)
}
