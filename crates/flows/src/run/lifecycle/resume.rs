//! Resumes a run: finds it, applies the options of the command line, and reopens it unless the reason for
//! which it ended still applies.

use super::create::check_review_possible;
use super::newest_run::{incomplete_state_document, load_state_copy, run_id_from_state_or_copy};
use super::{StartError, find_live_client_of_current_iteration, records};
use crate::client_modules;
use crate::run::{branch, finish, protect};
use crate::run_context::RunContext;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::journal::{JournalEvent, RunStartDetails};
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::state::{CheckpointCommitMode, IterationPhase, RunOptions, VerifyTiming};
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::{RunState, Timestamp, Verdict};
use plimsoll_policy::shell_loop;
use plimsoll_store::{Project, StoreError, clock, config, ledger, state_file};

/// The changes that `--resume` makes to a run; absent options stay as they were.
#[derive(Debug, Clone, Default)]
pub struct ResumeChanges {
    pub max_iterations: Option<u32>,
    pub verify_commands: Option<Vec<String>>,
    /// When the verify commands run.
    pub verify_timing: Option<VerifyTiming>,
    /// True to run the commands in a sandbox from now on.
    pub verify_sandbox: bool,
    /// Further files and folders that no session may change.
    pub added_protected_paths: Vec<String>,
    /// A review follows after this many ticked items; 0 for none.
    pub items_per_review: Option<u32>,
    pub review_model: Option<String>,
    /// The client program, as the user named it.
    pub client: Option<String>,
    /// The arguments that the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// The limits on cost, tokens and time; each one is changed separately.
    pub limits: RunLimits,
    /// Whether uncommitted work is committed at a checkpoint.
    pub commit_mode: Option<CheckpointCommitMode>,
    /// True to let commits run the repository's own hooks and drivers.
    pub runs_commit_hooks: bool,
    /// True to let sessions continue with the next item.
    pub allows_several_items_per_session: bool,
    /// True to give the sessions the working memory.
    pub uses_working_memory: bool,
    /// True if only the exact promise line completes the run.
    pub strict_promise: Option<bool>,
    /// A client that prints nothing for this long is ended.
    pub idle_timeout_seconds: Option<u64>,
    /// The idle timeout while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments that is started at the end, at pauses and for questions.
    pub notify_command: Option<Vec<String>>,
    /// True with `--reset-breaker`.
    pub resets_breaker: bool,
    /// The number of workers at once, in a parallel run.
    pub worker_count: Option<usize>,
    /// Context about the whole plan for the run of a single item.
    pub item_brief: Option<ItemBrief>,
}

/// The result of a resume.
#[derive(Debug)]
pub enum ResumeOutcome {
    /// The run is open and can continue.
    Open(Box<RunState>),
    /// The run has ended and was not reopened.
    Ended(Box<RunState>),
}

/// Finds the newest run, applies the changes and reopens it. A run that stopped for a reason that the user can
/// fix is reopened if that reason no longer applies; a completed or canceled run is never reopened.
pub fn resume_run(project: &Project, changes: &ResumeChanges) -> Result<ResumeOutcome, StartError> {
    let no_run_error = || StartError::NoRun(project.root().display().to_string());
    reject_state_not_written_by_plimsoll(project)?;
    // The state or its copy may be forged: a run that this user did not start has no ledger.
    let run_id = run_id_from_state_or_copy(project)?
        .filter(|id| ledger::is_run_of_user_in_project(project, id))
        .ok_or_else(no_run_error)?;
    records::reject_records_writable_by_sessions(project, &changes.client_arguments)?;
    if let Some(items_per_review) = changes.items_per_review {
        let state = state_file::load_state(project, Some(&run_id))?.unwrap_or_default();
        check_review_possible(project, items_per_review, state.options.todo_file.as_deref())?;
    }
    // Protected files are read before the state is locked, and recorded before the state refers to them.
    let state_before = state_file::load_state(project, Some(&run_id))?.ok_or_else(no_run_error)?;
    let has_final_status = state_before.lifecycle.status().is_final();
    // Changes by a session that has not been judged are recorded when it is judged.
    let is_judged = state_before.iteration_record.phase == IterationPhase::Judged;
    let changed_protected = match is_judged && !has_final_status {
        true => protect::changes_to_undo_or_error_if_made_by_user(project, &state_before)?,
        false => state_before.outcomes.protected_changes.clone(),
    };
    let protected_paths =
        protect::add_paths_to_record_and_return_all(project, &state_before, &changes.added_protected_paths)?;
    let settings = config::load_for_run(project, &run_id);
    let context = RunContext { project, settings: &settings, run_id: &run_id };
    // Before the run is reopened, because the state then no longer shows how it ended.
    finish::sync_journal_and_add_missing_verdict(&context)?;
    let now = clock::to_timestamp(clock::now());
    let updated_state = context.update_state(|state| {
        apply_changes(state, changes);
        state.options.protected_paths.clone_from(&protected_paths);
        // The user may have restored some files.
        state.outcomes.protected_changes.clone_from(&changed_protected);
        reopen_unless_end_reason_persists(state, &now);
        // The earlier Ctrl-C applied to a `plimsoll run` that has exited.
        state.iteration_record.stops_run_after_session = false;
        state.clone()
    })?;
    let state = updated_state.ok_or_else(no_run_error)?;
    if state.lifecycle.has_ended() {
        return Ok(ResumeOutcome::Ended(Box::new(state)));
    }
    let resume_details = RunStartDetails {
        previous_status: Some(state.lifecycle.status()),
        is_breaker_reset: Some(changes.resets_breaker),
        other_modules: client_modules::find_other_modules_from_settings_files(project),
        ..RunStartDetails::default()
    };
    // After the state, so that the journal contains no resume that a kill has prevented.
    context.journal_run_event(&state, JournalEvent::RunResumed(resume_details))?;
    Ok(ResumeOutcome::Open(Box::new(state)))
}

/// Switches to the branch of the run before it is resumed, and returns a notice for the user. Returns an error
/// if it cannot switch, and `None` if no switch is needed, if the run can never be reopened, or if its client
/// is still running.
pub fn switch_back_with_notice_before_resume(project: &Project) -> Result<Option<String>, StartError> {
    let Some(run_id) =
        run_id_from_state_or_copy(project)?.filter(|id| ledger::is_run_of_user_in_project(project, id))
    else {
        return Ok(None);
    };
    let Some(state) = state_file::load_state(project, Some(&run_id))? else { return Ok(None) };
    let has_final_status = state.lifecycle.status().is_final();
    if has_final_status || find_live_client_of_current_iteration(&state).is_some() {
        return Ok(None);
    }
    Ok(branch::switch_back_to_run_branch_with_notice(project, &state)?)
}

/// Returns an error if the state was not written by Plimsoll. Such a run has no completion promise, and its
/// author is unknown.
fn reject_state_not_written_by_plimsoll(project: &Project) -> Result<(), StartError> {
    let document = match state_file::load_state_document_of_other_program(project)? {
        Some(document) => Some(document),
        None => incomplete_state_document(project)?,
    };
    let Some(document) = document else { return Ok(()) };
    let (file, missing_fields) =
        (project.relative_to_root(project.state_path()), shell_loop::missing_run_marker_fields(&document));
    let active_copy =
        load_state_copy(project).filter(|run| !run.run_id.is_empty() && !run.lifecycle.has_ended());
    let hint = active_copy.map_or(String::new(), |run| {
        shell_loop::describe_how_to_resume_replaced_run(&file, &to_safe_single_line(&run.options.task_name))
    });
    Err(StartError::StateNotWrittenByPlimsoll(
        shell_loop::describe_no_run_to_resume_and_fix(&file, &missing_fields) + &hint,
    ))
}

fn apply_changes(state: &mut RunState, changes: &ResumeChanges) {
    fn set_if_some<T: Clone>(target: &mut T, value: Option<&T>) {
        if let Some(value) = value {
            target.clone_from(value);
        }
    }
    set_if_some(&mut state.options.max_iterations, changes.max_iterations.as_ref());
    set_if_some(&mut state.options.verify_commands, changes.verify_commands.as_ref());
    set_if_some(&mut state.options.verify_timing, changes.verify_timing.as_ref());
    state.options.verify_sandbox |= changes.verify_sandbox;
    set_if_some(&mut state.options.items_per_review, changes.items_per_review.as_ref());
    state.options.review_model = changes.review_model.clone().or(state.options.review_model.take());
    set_if_some(&mut state.options.commit_mode, changes.commit_mode.as_ref());
    set_if_some(&mut state.options.notify_command, changes.notify_command.as_ref());
    // Without `set_if_some`, because the caller has already merged these with the stored options of the run
    // (`load_launch_options`).
    state.options.client.clone_from(&changes.client);
    state.options.client_arguments.clone_from(&changes.client_arguments);
    state.options.runs_commit_hooks |= changes.runs_commit_hooks;
    state.options.allows_several_items_per_session |= changes.allows_several_items_per_session;
    state.options.uses_working_memory |= changes.uses_working_memory;
    set_if_some(&mut state.options.strict_promise, changes.strict_promise.as_ref());
    state.options.tool_timeout_seconds = changes.tool_timeout_seconds.or(state.options.tool_timeout_seconds);
    state.options.idle_timeout_seconds = changes.idle_timeout_seconds.or(state.options.idle_timeout_seconds);
    let (limits, new_limits) = (&mut state.options.limits, &changes.limits);
    limits.max_cost_usd = new_limits.max_cost_usd.or(limits.max_cost_usd);
    limits.max_cost_per_day_usd = new_limits.max_cost_per_day_usd.or(limits.max_cost_per_day_usd);
    limits.max_tokens = new_limits.max_tokens.or(limits.max_tokens);
    limits.deadline = new_limits.deadline.clone().or(limits.deadline.take());
    limits.stop_at_limit_percent = new_limits.stop_at_limit_percent.or(limits.stop_at_limit_percent);
    if let (Some(workers), Some(count)) = (&mut state.options.workers, changes.worker_count) {
        workers.worker_count = count;
    }
    state.options.item_brief = changes.item_brief.clone().or(state.options.item_brief.take());
    if changes.resets_breaker {
        plimsoll_policy::breaker::reset_breaker_to_half_open_keeping_cause(state);
    }
}

/// Reopens a run unless it was completed or canceled, the circuit breaker is still open, or a limit is still
/// reached.
fn reopen_unless_end_reason_persists(state: &mut RunState, now: &Timestamp) {
    let has_final_status = state.lifecycle.status().is_final();
    let is_breaker_open =
        state.lifecycle.status() == RunStatus::CircuitBreaker && state.outcomes.breaker.trip.is_some();
    if has_final_status || is_breaker_open {
        return;
    }
    // The next session reports these quota windows again.
    state.spending.quota.remove_windows_without_reset();
    let repeats_iteration = matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats_iteration());
    let is_judged = state.iteration_record.phase == IterationPhase::Judged && !repeats_iteration;
    match plimsoll_policy::bounds::stop_or_pause_for_reached_limit(state, now) {
        Some(Verdict::Stop { status, .. }) if is_judged => state.lifecycle.restore_status(status),
        _ => state.lifecycle.reopen_if_ended(),
    }
}

/// Launch options of a run that `--resume` reuses unless the command line sets them again.
#[derive(Debug, Clone, Default)]
pub struct StoredLaunchOptions {
    pub client: Option<String>,
    pub client_arguments: Vec<String>,
    pub uses_working_memory: bool,
}

/// Loads the launch options of the newest run.
pub fn load_launch_options(project: &Project) -> Result<StoredLaunchOptions, StoreError> {
    let Some(run_id) = run_id_from_state_or_copy(project)? else { return Ok(StoredLaunchOptions::default()) };
    let state = state_file::load_state(project, Some(&run_id))?.unwrap_or_default();
    let RunOptions { client, client_arguments, uses_working_memory: memory, .. } = state.options;
    Ok(StoredLaunchOptions { client, client_arguments, uses_working_memory: memory })
}
