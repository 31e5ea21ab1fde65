//! `plimsoll run`: starts one headless session after another until the gate stops the run. It can be killed
//! at any time: completed steps are recorded in the state, and a client that was started but not yet recorded
//! there is found by its ids.

mod apply_verdict;
pub(crate) mod archive;
pub mod backup;
pub mod baseline;
pub mod branch;
pub(crate) mod changed_checks;
mod client_error;
pub mod close;
pub(crate) mod daily_spending;
mod ended_session;
pub mod evidence;
mod fingerprint;
pub mod finish;
pub(crate) mod labels;
pub mod lifecycle;
pub mod notify;
mod observer;
mod orphans;
pub mod other_plans;
pub mod permissions;
mod preflight;
pub mod prompt;
pub mod protect;
pub mod questions;
mod receipt;
mod retry;
pub(crate) mod review;
pub mod sandbox;
pub(crate) mod save_work;
pub mod shell_loop;
mod start_error;
mod stream_reader;
mod supervise;
mod ticks;
pub(crate) mod verify;
mod watchdog;

pub use client_error::{ClientError, ClientSettingsError};
pub use observer::{Interrupt, InterruptCounter, RunEvent, RunObserver};
pub use preflight::{Preflight, check_client_prepare_hooks_and_lock_run};
pub(crate) use preflight::{check_client_supports_restricted_mode, check_client_version};

use crate::checkpoint::facts;
use crate::context::running_sessions::RunFiguresReader;
use crate::context::session_usage::add_estimated_usage_if_cost_is_missing;
use crate::hook_invocation::RUN_VARIABLE;
use crate::install::hook_precedence;
use crate::run::lifecycle::StartError;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use baseline::BaselineResult;
use finish::{FinishedIteration, describe_check_missing_from_original_plan};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, SessionEnding, SessionId, Verdict};
use plimsoll_launcher::client::{self, ClientLaunch, LaunchedClient};
use plimsoll_launcher::process;
use plimsoll_policy::models;
use plimsoll_protocol::settings::{EntryOptions, HookSupport};
use plimsoll_store::{Durability, Project, StoreError, clock, disk, environment, outbox, sessions};
use retry::ConsecutiveErrorCounter;
use review::Reviewer;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use stream_reader::StreamReader;
use supervise::SHORT_GRACE_PERIOD;
use watchdog::{Watchdog, WatchdogConfig};

/// The options of `plimsoll run` that do not describe the task.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// The client program.
    pub client: PathBuf,
    /// The arguments that the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// True if the sessions have the working memory.
    pub uses_working_memory: bool,
    /// False with `--no-wait`: a pause ends the program.
    pub should_wait: bool,
    /// True if the run's own spans are exported: the spans of its sessions are then their children.
    pub exports_spans: bool,
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run cannot be planned, started or resumed.
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("another `plimsoll run` is active in this project{0}")]
    Busy(String),
    /// Hook programs are missing.
    #[error(
        "these programs are neither next to plimsoll nor on the PATH: {}. Install all programs of Plimsoll together, in one of the ways of docs/start.md",
        .0.join(", ")
    )]
    HookProgramsMissing(Vec<String>),
    /// The client, its settings or its arguments cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The client cannot be started.
    #[error(transparent)]
    ClientNotStarted(#[from] client::ClientStartError),
    /// An argument for the client that Plimsoll sets itself.
    #[error("`{0}` is set by plimsoll run itself: leave it out after `--`")]
    ReservedArgument(String),
}

/// Runs sessions until the run ends or pauses, and returns the exit code.
pub fn run_sessions(
    context: RunContext<'_>,
    options: &LaunchOptions,
    preflight: Preflight,
    run: &RunState,
    observer: &mut dyn RunObserver,
) -> Result<u8, RunError> {
    let project = context.project;
    let Preflight {
        hook_settings,
        memory_arguments,
        client_arguments,
        user_model,
        hook_support,
        entry_options,
        client_version,
        _run_lock,
    } = preflight;
    let claude_folder = project.root().join(".claude");
    for folder in [
        project.root(),
        &claude_folder,
        &project.handoffs_folder(),
        &project.copies_folder(),
        &outbox::outbox_folder(project),
    ] {
        disk::remove_leftover_temporary_files_in(folder, |pid| process::liveness_of_pid(pid).has_ended());
    }
    // The plan lies in a folder of the user, so only the drafts of this one file are removed.
    if let Some(plan) = &run.options.todo_file {
        disk::remove_leftover_temporary_files_of(&project.root().join(plan));
    }
    let watchdog = Watchdog::start(watchdog_config(run, observer.interrupts().clone()));
    let mut runner = Runner {
        context,
        options,
        hook_settings,
        memory_arguments,
        client_arguments,
        user_model,
        ignored_models: BTreeSet::new(),
        hook_support,
        entry_options,
        client_version,
        observer,
        watchdog,
        error_counter: ConsecutiveErrorCounter::default(),
        figures_reader: RunFiguresReader::default(),
        last_state: run.clone(),
    };
    runner.observer.on_event(&RunEvent::RunStarted { state: run });
    loop {
        let exit_code = match runner.run_round() {
            Ok(exit_code) => {
                runner.error_counter = ConsecutiveErrorCounter::default();
                exit_code
            }
            Err(error) => runner.wait_to_retry_else_end_or_pause_run(error)?,
        };
        if let Some(code) = exit_code {
            return Ok(runner.report_end(code));
        }
    }
}

/// Returns the configuration of the watchdog. The loop checks for interrupts many times a second and ends the
/// client itself; if it has not done so within these timeouts, it is stuck. They are shorter than the 90 s
/// after which the system kills a program that it has asked to end.
#[expect(clippy::exit, reason = "the thread that would return an exit code is the one that is held up")]
fn watchdog_config(run: &RunState, interrupts: InterruptCounter) -> WatchdogConfig {
    WatchdogConfig {
        interrupts,
        deadline: run.options.limits.deadline.as_ref().and_then(clock::parse_timestamp),
        interrupt_timeout: Duration::from_secs(2),
        deadline_timeout: Duration::from_secs(15),
        client_grace_period: SHORT_GRACE_PERIOD,
        exit_timeout: Duration::from_secs(60),
        // The next `--resume` recovers whatever the loop has not written.
        exit_program: || std::process::exit(ExitStatus::Interrupted.code().into()),
    }
}

/// The next step of a round after the baseline commands.
enum BaselineStep {
    /// The session can start.
    Proceed,
    /// The commands were interrupted, and the run is paused.
    Paused(Verdict),
    /// The run has ended, with this exit code.
    RunEnded(u8),
}

struct Runner<'a> {
    context: RunContext<'a>,
    options: &'a LaunchOptions,
    hook_settings: String,
    memory_arguments: Vec<String>,
    client_arguments: Vec<String>,
    /// The model that the user passes on to the client.
    user_model: Option<String>,
    /// Ignored models that have been reported to the user.
    ignored_models: BTreeSet<String>,
    hook_support: HookSupport,
    entry_options: EntryOptions,
    client_version: String,
    observer: &'a mut dyn RunObserver,
    watchdog: Watchdog,
    error_counter: ConsecutiveErrorCounter,
    figures_reader: RunFiguresReader,
    /// The state that was last read, used while the current one cannot be read.
    last_state: RunState,
}

impl Runner<'_> {
    /// Runs one round: finishes an iteration that an earlier process left unfinished, or else runs a new one.
    /// Returns the exit code, or `None` if another round follows.
    fn run_round(&mut self) -> Result<Option<u8>, RunError> {
        let no_run_error = || StartError::NoRun(self.context.project.root().display().to_string());
        // Read again in each round: hooks and `plimsoll stop` also write it.
        let state = self.context.load_newest_state()?.ok_or_else(no_run_error)?;
        self.last_state = state.clone();
        self.clear_expired_pause(&state)?;
        // Includes questions that a killed process did not report.
        self.mark_and_report_unnotified_questions(&state)?;
        let verdict = match self.finish_unjudged_iteration_or_pause(&state)? {
            Some(verdict) => verdict,
            None => match self.run_baseline_before_session()? {
                BaselineStep::Paused(pause_verdict) => pause_verdict,
                BaselineStep::RunEnded(code) => return Ok(Some(code)),
                BaselineStep::Proceed => self.run_iteration()?,
            },
        };
        self.wait_or_get_exit_code_for_verdict(&verdict)
    }

    /// Clears the paused status that an earlier process left in the state of a resumed run, unless this process
    /// has to wait for the same pause.
    fn clear_expired_pause(&self, run: &RunState) -> Result<(), StoreError> {
        let keeps_waiting = run.iteration_record.phase == IterationPhase::Judged
            && unexpired_or_still_limited_pause(run).is_some();
        if run.lifecycle.status() == RunStatus::Paused && !keeps_waiting {
            self.context.update_state_without_sync(|state| {
                state.lifecycle.mark_running_if_open();
            })?;
        }
        Ok(())
    }

    /// Recovers the iteration that an earlier `plimsoll run` left behind: adopts its client if that still runs,
    /// and judges it otherwise, so that no session is started twice. Returns a pause if the run has to wait
    /// before its next session, and `None` if the next session can start.
    fn finish_unjudged_iteration_or_pause(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let record = &run.iteration_record;
        if record.phase == IterationPhase::Judged {
            return match unexpired_or_still_limited_pause(run) {
                Some(pause_verdict) => Ok(Some(pause_verdict)),
                None => self.pause_if_daily_limit_spent(run),
            };
        }
        if let Some(orphan) = lifecycle::find_live_client_of_current_iteration(run) {
            self.watchdog.watch_client(orphan, lifecycle::session_environment_markers(run));
            self.context.journal_session_event(run, JournalEvent::ClientAdopted { pid: orphan.pid })?;
            self.observer.on_event(&RunEvent::Notice(format!(
                "adopted the Claude Code process of session {} (pid {})",
                run.iteration, orphan.pid
            )));
            self.record_client_process_and_spawned_phase(orphan)?;
            return self.follow_client_and_finish_iteration(run, LaunchedClient::Adopted(orphan)).map(Some);
        }
        // The output file outlives both processes: it shows how a dead client ended.
        let mut reader = StreamReader::new(self.output_path(run, "jsonl"), &self.client_version);
        reader.read_new_events();
        if record.phase == IterationPhase::Planned
            && !record.has_hooks_running
            && !reader.has_reported_session()
        {
            // The iteration was planned and never started, so it is planned again under the same number.
            return self.pause_if_daily_limit_spent(run);
        }
        let result = reader.session_result(plimsoll_domain::ProcessExit::default());
        self.finish_iteration_and_report_events(run, &result).map(Some)
    }

    /// Pauses the run before a session if all runs together have spent the daily limit, and records the pause
    /// in the journal.
    fn pause_if_daily_limit_spent(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let Some(pause_verdict) =
            daily_spending::daily_limit_pause_ignoring_deadline(self.context.project, run)
        else {
            return Ok(None);
        };
        let state = self.context.update_state(|state| {
            if !state.lifecycle.has_ended() {
                state.lifecycle.apply_verdict(&pause_verdict);
            }
            state.clone()
        })?;
        if let Some(state) = state.filter(|state| !state.lifecycle.has_ended()) {
            self.context.journal_session_event(
                &state,
                JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(
                    &pause_verdict,
                ))),
            )?;
            self.observer.on_event(&RunEvent::VerdictReached { state: &state, verdict: &pause_verdict });
        }
        Ok(Some(pause_verdict))
    }

    fn run_iteration(&mut self) -> Result<Verdict, RunError> {
        // The id is chosen here and planned before the client starts, so that a client whose pid was not
        // recorded can still be found.
        let session_id = uuid::Uuid::new_v4().to_string();
        let state = lifecycle::plan_iteration_or_end_if_all_parked(
            self.context.project,
            self.context.run_id,
            Some(SessionId::from(session_id)),
        )?;
        if state.lifecycle.has_ended() {
            return Ok(self.verdict_of_ended_run_reporting_if_blocked(&state));
        }
        let model = self.choose_item_or_user_model_and_warn_if_ignored(&state);
        let changed_model = model.as_deref().filter(|_| model != self.user_model);
        self.observer.on_event(&RunEvent::IterationStarted { state: &state, model: changed_model });
        let client = self.start_client_and_record_process(&state, model)?;
        self.follow_client_and_finish_iteration(&state, client)
    }

    /// Before the next session, runs the commands whose result is unknown.
    fn run_baseline_before_session(&mut self) -> Result<BaselineStep, RunError> {
        if !self.last_state.lifecycle.has_ended() {
            self.last_state.outcomes.protected_changes =
                protect::record_changes_next_session_must_undo(&self.context, &self.last_state)?;
        }
        let commands =
            baseline::baseline_commands_to_run_if_work_remains(self.context.project, &self.last_state);
        if commands.is_empty() {
            return Ok(BaselineStep::Proceed);
        }
        self.observer
            .on_event(&RunEvent::Notice(baseline::render_baseline_start_notice(&self.last_state, &commands)));
        // No session is running, so the first Ctrl-C is enough.
        let result = baseline::run_baseline_or_pause_if_interrupted(
            &self.context,
            &self.last_state,
            &commands,
            &|| {
                self.observer.interrupts().has_requested(Interrupt::AfterSession)
                    || self.context.is_canceled()
            },
        )?;
        match result {
            BaselineResult::Paused(pause_verdict) => Ok(BaselineStep::Paused(pause_verdict)),
            BaselineResult::Outcomes(outcomes) => {
                if !outcomes.is_empty() {
                    self.observer.on_event(&RunEvent::VerifyCommandsFinished { outcomes: &outcomes });
                }
                // While the commands ran, the deadline may have passed, or the user may have canceled the
                // run.
                Ok(self
                    .exit_code_if_canceled_or_stop_at_deadline()?
                    .map_or(BaselineStep::Proceed, BaselineStep::RunEnded))
            }
        }
    }

    /// Returns the stop verdict of a run that ended before its session started, because it was canceled or
    /// because every item waits for an answer. The latter is also reported to the observer.
    fn verdict_of_ended_run_reporting_if_blocked(&mut self, state: &RunState) -> Verdict {
        let status = state.lifecycle.status();
        match state.lifecycle.last_verdict().filter(|_| status == RunStatus::Blocked) {
            Some(verdict) => {
                self.observer.on_event(&RunEvent::VerdictReached { state, verdict });
                verdict.clone()
            }
            None => Verdict::Stop { status, reason: String::new() },
        }
    }

    /// Chooses the model for the item of this iteration. A model that is ignored is reported once.
    fn choose_item_or_user_model_and_warn_if_ignored(&mut self, state: &RunState) -> Option<String> {
        let item = state.iteration_record.item.as_deref().unwrap_or_default();
        let choice = models::choose_model_by_item_then_size_then_argument(
            item,
            &self.context.settings.models,
            self.user_model.as_deref(),
        );
        if let Some(ignored) = choice.ignored_model
            && self.ignored_models.insert(ignored.to_owned())
        {
            self.observer.on_event(&RunEvent::Notice(models::render_ignored_model_warning(ignored)));
        }
        choice.model.map(str::to_owned)
    }

    fn start_client_and_record_process(
        &mut self,
        state: &RunState,
        model: Option<String>,
    ) -> Result<LaunchedClient, RunError> {
        let prompt_path = self.output_path(state, "prompt.md");
        disk::replace(
            &prompt_path,
            &disk::read(&self.context.project.prompt_path())?.unwrap_or_default(),
            Durability::Lazy,
        )?;
        // This only cleans up, so a failure must not end the run.
        let _ = prompt::remove_block_from_user_prompt(self.context.project, state);
        let session_id = state.session_id.clone().unwrap_or_default();
        let fixed_arguments = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--session-id",
            &session_id,
            "--settings",
            &self.hook_settings,
        ];
        let arguments: Vec<String> = fixed_arguments
            .map(str::to_owned)
            .into_iter()
            .chain(self.memory_arguments.clone())
            .chain(remaining_budget_arguments_unless_set_by_user(
                &self.context,
                state,
                self.hook_support,
                &self.client_arguments,
            ))
            .chain(model.iter().flat_map(|model| [models::MODEL_OPTION.to_owned(), model.clone()]))
            .chain(self.client_arguments.clone())
            .collect();
        // Files instead of pipes: if the reader dies, the client (2.1.329) continues to its end, and its
        // output is read later. A kill before the pid is written leaves a client that
        // `lifecycle::find_orphaned_client` finds by its ids.
        let client = client::start_client(ClientLaunch {
            program: &self.options.client,
            arguments: &arguments,
            folder: self.context.project.root(),
            environment: &self.session_environment(state, &session_id),
            removed_variables: &[],
            stdin: disk::open(&prompt_path)?,
            stdout: disk::open_for_append(&self.output_path(state, "jsonl"))?,
            stderr: disk::open_for_append(&self.output_path(state, "err"))?,
        })?;
        // `None` if the client has already ended; it still counts as a session.
        let identity = client.identity();
        if let Some(identity) = identity {
            // Before the write to the state: if that fails, the watchdog can still end the client.
            self.watchdog.watch_client(identity, lifecycle::session_environment_markers(state));
            self.record_client_process_and_spawned_phase(identity)?;
        }
        self.context.journal_session_event(
            state,
            JournalEvent::ClientStarted { pid: identity.map(|identity| identity.pid), model },
        )?;
        Ok(client)
    }

    /// Returns the environment of the client, with the nesting depth of frames unless the user has set it.
    fn session_environment(&self, state: &RunState, session_id: &SessionId) -> Vec<(String, String)> {
        let plugin_variable = hook_precedence::run_hooks_variable(session_id, self.entry_options);
        let mut variables = vec![(RUN_VARIABLE.to_owned(), self.context.run_id.to_string()), plugin_variable];
        variables.extend(labels::session_telemetry_variables(state, session_id, self.options.exports_spans));
        let (name, value) = plimsoll_protocol::settings::memory_variable();
        if self.options.uses_working_memory && environment::variable(&name).is_none() {
            variables.push((name, value));
        }
        variables
    }

    fn record_client_process_and_spawned_phase(
        &self,
        identity: process::ProcessIdentity,
    ) -> Result<(), StoreError> {
        self.context.update_state(|state| {
            let record = &mut state.iteration_record;
            if matches!(record.phase, IterationPhase::Planned | IterationPhase::Spawned) {
                record.phase = IterationPhase::Spawned;
            }
            record.pid = Some(identity.pid);
            record.process_start_ticks = Some(identity.start_time);
            record.started_at.get_or_insert(clock::to_timestamp(clock::now()));
        })?;
        Ok(())
    }

    fn finish_iteration_and_report_events(
        &mut self,
        state: &RunState,
        result: &SessionResult,
    ) -> Result<Verdict, RunError> {
        // The cost is completed first, because the observer prints it.
        let result = &self.with_complete_cost(state, result);
        // SIGKILL to the client leaves its running Bash tool alive (2.1.329), which would write into the next
        // session's files. Surviving processes could also change protected files between the comparisons.
        if matches!(result.ending, SessionEnding::Crashed(_)) || !state.options.protected_paths.is_empty() {
            lifecycle::end_surviving_processes(state);
        }
        // If the run was canceled, a session that a hook has stopped or killed counts as canceled.
        let canceled_result = SessionResult { ending: SessionEnding::Canceled, ..result.clone() };
        let was_canceled = matches!(result.ending, SessionEnding::HookStopped | SessionEnding::Crashed(_))
            && self.context.is_canceled();
        let result = if was_canceled { &canceled_result } else { result };
        let open_items = facts::load_plan(self.context.project, state).map(|todo| todo.open_items());
        let item_and_open_items = state.iteration_record.item.as_deref().zip(open_items.as_ref());
        let item =
            item_and_open_items.map(|(item, open_texts)| (item, open_texts.iter().any(|text| text == item)));
        self.observer.on_event(&RunEvent::IterationEnded { iteration: state.iteration, result, item });
        let finished_iteration = self.finish_iteration_with_reviewer(result)?;
        let no_run_error = || StartError::NoRun(self.context.project.root().display().to_string());
        let FinishedIteration { verdict, verify_outcomes, review_outcome, reverted_ticks, skipped_checks } =
            finished_iteration.ok_or_else(no_run_error)?;
        self.journal_surviving_processes(state);
        if !verify_outcomes.is_empty() {
            self.observer.on_event(&RunEvent::VerifyCommandsFinished { outcomes: &verify_outcomes });
        }
        for check in &skipped_checks {
            self.observer.on_event(&RunEvent::Notice(describe_check_missing_from_original_plan(check)));
        }
        if let Some(reviewed) = &review_outcome {
            self.observer.on_event(&RunEvent::Reviewed { outcome: reviewed });
        }
        if let Some(reverted) = &reverted_ticks {
            self.observer.on_event(&RunEvent::TicksReverted { reverted_ticks: reverted });
        }
        let newest_state = self.context.load_newest_state()?;
        self.observer.on_event(&RunEvent::VerdictReached {
            state: newest_state.as_ref().unwrap_or(state),
            verdict: &verdict,
        });
        Ok(verdict)
    }

    /// Completes the cost of a session that ended without a report.
    fn with_complete_cost(&self, state: &RunState, result: &SessionResult) -> SessionResult {
        let session_id = state.session_id.clone().unwrap_or_default();
        let record = sessions::load_session_record(self.context.project, &session_id);
        add_estimated_usage_if_cost_is_missing(self.context.project, &session_id, &record, result.clone())
    }

    fn finish_iteration_with_reviewer(
        &mut self,
        result: &SessionResult,
    ) -> Result<Option<FinishedIteration>, StoreError> {
        let (context, interrupts) = (self.context, self.observer.interrupts().clone());
        let should_cancel = || interrupts.has_requested(Interrupt::EndSession) || context.is_canceled();
        let mut reviewer = Reviewer {
            client_program: &self.options.client,
            client_arguments: &self.options.client_arguments,
            session_model: self.user_model.as_deref(),
            client_version: &self.client_version,
            hook_support: self.hook_support,
            linger_timeout: Duration::from_secs(self.context.settings.end_wait_seconds),
            watchdog: &self.watchdog,
            observer: &mut *self.observer,
        };
        finish::finish_iteration_or_pause_if_interrupted(
            &context,
            result,
            &should_cancel,
            Some(&mut reviewer),
        )
    }

    /// Records the processes that a session has started and left running: a server, or a long job whose
    /// result the next session needs. They are not ended, but the user should know about them.
    fn journal_surviving_processes(&self, state: &RunState) {
        let Some([run_marker, session_marker]) = lifecycle::session_environment_markers(state) else {
            return;
        };
        let describe_process = |identity: process::ProcessIdentity| {
            let command = plimsoll_domain::text::truncate_end(
                &plimsoll_domain::text::to_safe_single_line(&process::command_line_text(identity.pid)),
                80,
            );
            format!("{} {command}", identity.pid)
        };
        let processes: Vec<String> =
            process::find_processes_with_both_variables([&run_marker, &session_marker])
                .into_iter()
                .map(describe_process)
                .collect();
        if !processes.is_empty() {
            let _ =
                self.context.journal_session_event(state, JournalEvent::ProcessesLeftBehind { processes });
        }
    }

    fn report_end(&mut self, code: u8) -> u8 {
        let state = self.context.load_newest_state().ok().flatten();
        self.observer.on_event(&RunEvent::ProgramEnded { state: state.as_ref(), exit_code: code });
        code
    }

    /// Returns the path of a session's output. It contains the session's id, because a limit may cause
    /// several sessions under one number.
    fn output_path(&self, state: &RunState, extension: &str) -> PathBuf {
        session_output_path(self.context.project, state, extension)
    }
}

/// Returns the path of a session's output.
fn session_output_path(project: &Project, state: &RunState, extension: &str) -> PathBuf {
    let session: String = state.session_id.as_deref().unwrap_or("none").chars().take(8).collect();
    project.run_folder(&state.run_id).join(format!("iteration-{:04}-{session}.{extension}", state.iteration))
}

/// Returns the client's option for the remaining budget, so that the client stops a session that would exceed
/// it. With a client that is too old for the option, the run is stopped between sessions.
fn remaining_budget_arguments_unless_set_by_user(
    context: &RunContext<'_>,
    state: &RunState,
    hook_support: HookSupport,
    client_arguments: &[String],
) -> Vec<String> {
    const BUDGET_OPTION: &str = "--max-budget-usd";
    let is_set_by_user = client_arguments.iter().any(|argument| argument.starts_with(BUDGET_OPTION));
    let remaining_for_run = state.options.limits.max_cost_usd.map(|limit| limit - state.spending.cost_usd);
    let remaining = remaining_for_run
        .into_iter()
        .chain(daily_spending::remaining_today(context.project, state))
        .reduce(f64::min);
    match remaining.map(|remaining| remaining.max(0.01)) {
        Some(remaining_usd) if !is_set_by_user && hook_support == HookSupport::Modern => {
            vec![BUDGET_OPTION.to_owned(), format!("{remaining_usd:.2}")]
        }
        _ => Vec::new(),
    }
}

/// Returns the pause that a resumed run still has to wait for. A quota pause continues only if the configured
/// percentage of the quota is still reached.
fn unexpired_or_still_limited_pause(run: &RunState) -> Option<Verdict> {
    let Some(Verdict::Pause { kind, pause_end: Some(end_time), .. }) = run.lifecycle.last_verdict() else {
        return None;
    };
    let now = clock::now();
    if *kind == PauseKind::Quota {
        let limit_verdict =
            plimsoll_policy::bounds::stop_or_pause_for_reached_limit(run, &clock::to_timestamp(now));
        return limit_verdict.filter(|verdict| matches!(verdict, Verdict::Pause { .. }));
    }
    let is_unexpired = kind.resolves_by_waiting()
        && clock::parse_rfc3339(end_time.as_str()).is_some_and(|parsed_end_time| parsed_end_time > now);
    if is_unexpired { run.lifecycle.last_verdict().cloned() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::{QuotaWindow, RunLimits, SubscriptionQuotas};
    use plimsoll_domain::state::{Lifecycle, RunOptions, RunSpending};

    fn paused_lifecycle(kind: PauseKind, until: plimsoll_domain::Timestamp) -> Lifecycle {
        Lifecycle::from_verdict(&Verdict::Pause { kind, pause_end: Some(until), reason: String::new() })
    }

    #[test]
    fn a_quota_pause_lasts_while_the_share_requires_it() {
        let reset = clock::to_timestamp(clock::now() + chrono::Duration::hours(2));
        let paused_run = |kind, share| RunState {
            options: RunOptions {
                max_iterations: 50,
                limits: RunLimits { stop_at_limit_percent: share, ..RunLimits::default() },
                ..RunOptions::default()
            },
            spending: RunSpending {
                quota: SubscriptionQuotas {
                    five_hour: Some(QuotaWindow { used_percent: 85.0, resets_at: Some(reset.clone()) }),
                    seven_day: None,
                },
                ..RunSpending::default()
            },
            lifecycle: paused_lifecycle(kind, reset.clone()),
            ..RunState::default()
        };
        for (kind, share, is_paused) in [
            (PauseKind::Quota, Some(80), true),
            (PauseKind::Quota, Some(100), false),
            (PauseKind::Quota, None, false),
            (PauseKind::Limit, Some(100), true),
            (PauseKind::Interrupted, Some(80), false),
        ] {
            assert_eq!(
                unexpired_or_still_limited_pause(&paused_run(kind, share)).is_some(),
                is_paused,
                "{kind:?} {share:?}"
            );
        }
    }
}
