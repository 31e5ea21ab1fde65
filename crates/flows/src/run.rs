//! `plimsoll run`: starts one headless session after another until the gate stops the run. It can be killed
//! at any time: what is done is in the state, and a client that was started but not yet recorded there is
//! found by its ids.

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
pub use preflight::{Preflight, check_and_lock_run};
pub(crate) use preflight::{check_client_can_confine, check_client_version};

use crate::checkpoint::facts;
use crate::context::running_sessions::RunFiguresReader;
use crate::context::session_usage::add_missing_cost;
use crate::hook_invocation::RUN_VARIABLE;
use crate::install::hook_precedence;
use crate::run::lifecycle::StartError;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use baseline::BaselineResult;
use finish::{FinishedIteration, describe_check_not_run};
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
use retry::FaultCounter;
use review::Reviewer;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use stream_reader::StreamReader;
use supervise::SHORT_GRACE_PERIOD;
use watchdog::{Watchdog, WatchdogTerms};

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
    pub has_spans: bool,
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
    /// A hook program is missing.
    #[error(
        "the hook program {0} is neither next to plimsoll nor on the PATH: install all programs of Plimsoll together, in one of the ways of docs/start.md"
    )]
    HookProgramMissing(String),
    /// The client cannot be used as it is, or with its arguments.
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
        disk::remove_dead_drafts(folder, |pid| process::liveness_of_pid(pid).is_gone());
    }
    // A plan outside the project's own folders lies in a folder of the user's.
    if let Some(plan) = &run.options.todo_file {
        disk::remove_abandoned_drafts_of_file(&project.root().join(plan));
    }
    let watchdog = Watchdog::start(watchdog_terms(run, observer.interrupts().clone()));
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
        fault_counter: FaultCounter::default(),
        figures: RunFiguresReader::default(),
        last_state: run.clone(),
    };
    runner.observer.on_event(&RunEvent::RunStarted { state: run });
    loop {
        let exit_code = match runner.run_round() {
            Ok(exit_code) => {
                runner.fault_counter = FaultCounter::default();
                exit_code
            }
            Err(error) => runner.retry_or_leave(error)?,
        };
        if let Some(code) = exit_code {
            return Ok(runner.report_end(code));
        }
    }
}

/// Returns the limits after which the watchdog takes over. The loop checks many times a second and first asks
/// the client to end; if it has not ended the client by these limits, the loop is stuck. The system kills a
/// program 90 s after it asked it to end.
#[expect(clippy::exit, reason = "the thread that would return an exit code is the one that is held up")]
fn watchdog_terms(run: &RunState, interrupts: InterruptCounter) -> WatchdogTerms {
    WatchdogTerms {
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

/// How a round continues after the commands that run before a session.
enum BaselineStep {
    /// A session follows.
    Proceed,
    /// The commands were given up, and the run is paused.
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
    /// Models of items that were ignored and have been reported.
    ignored_models: BTreeSet<String>,
    hook_support: HookSupport,
    entry_options: EntryOptions,
    client_version: String,
    observer: &'a mut dyn RunObserver,
    watchdog: Watchdog,
    fault_counter: FaultCounter,
    figures: RunFiguresReader,
    /// The state as it was read last, used while it cannot be read.
    last_state: RunState,
}

impl Runner<'_> {
    /// Runs one round, from the run's status in the state; what was begun is finished first. Returns the exit
    /// code, or `None` if another round follows.
    fn run_round(&mut self) -> Result<Option<u8>, RunError> {
        let no_run_error = || StartError::NoRun(self.context.project.root().display().to_string());
        // Read again in each round: hooks and `plimsoll stop` also write it.
        let state = self.context.load_newest_state()?.ok_or_else(no_run_error)?;
        self.last_state = state.clone();
        self.clear_expired_pause(&state)?;
        // Includes questions that a killed process did not report.
        self.report_new_questions(&state)?;
        let verdict = match self.recover_iteration(&state)? {
            Some(verdict) => verdict,
            None => match self.check_baseline()? {
                BaselineStep::Paused(paused) => paused,
                BaselineStep::RunEnded(code) => return Ok(Some(code)),
                BaselineStep::Proceed => self.run_iteration()?,
            },
        };
        self.apply_verdict(&verdict)
    }

    /// Clears the paused status that an earlier process left in the state of a resumed run, unless this one
    /// waits for the same time.
    fn clear_expired_pause(&self, run: &RunState) -> Result<(), StoreError> {
        let keeps_waiting =
            run.iteration_record.phase == IterationPhase::Judged && unexpired_pause(run).is_some();
        if run.lifecycle.status() == RunStatus::Paused && !keeps_waiting {
            self.context.update_state_without_sync(|state| {
                state.lifecycle.mark_running_if_open();
            })?;
        }
        Ok(())
    }

    /// Recovers what an earlier `run` left behind: a client that still runs is followed to its end, and one
    /// that has ended is judged. No session is started twice.
    fn recover_iteration(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let record = &run.iteration_record;
        if record.phase == IterationPhase::Judged {
            return match unexpired_pause(run) {
                Some(paused) => Ok(Some(paused)),
                None => self.pause_if_daily_limit_spent(run),
            };
        }
        if let Some(orphan) = lifecycle::find_orphaned_client(run) {
            self.watchdog.watch_client(orphan, lifecycle::session_environment_markers(run));
            self.context.record_session_event(run, JournalEvent::ClientAdopted { pid: orphan.pid })?;
            self.observer.on_event(&RunEvent::Notice(format!(
                "adopted the client of iteration {} (pid {})",
                run.iteration, orphan.pid
            )));
            self.record_client_process(orphan)?;
            return self.follow_client(run, LaunchedClient::Adopted(orphan)).map(Some);
        }
        // The output file outlives both processes: it shows how a dead client ended.
        let mut reader = StreamReader::new(self.output_path(run, "jsonl"), &self.client_version);
        reader.read_new_events();
        if record.phase == IterationPhase::Planned
            && !record.has_hooks_running
            && !reader.has_reported_session()
        {
            // It was planned and never started, so it is planned again under its own number.
            return self.pause_if_daily_limit_spent(run);
        }
        let result = reader.session_result(plimsoll_domain::ProcessExit::default());
        self.finish_iteration(run, &result).map(Some)
    }

    /// Pauses the run before a session, as after one, if all runs together have spent the daily limit.
    fn pause_if_daily_limit_spent(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let Some(paused) = daily_spending::daily_limit_pause(self.context.project, run) else {
            return Ok(None);
        };
        let state = self.context.update_state(|state| {
            if !state.lifecycle.is_over() {
                state.lifecycle.apply_verdict(&paused);
            }
            state.clone()
        })?;
        if let Some(state) = state.filter(|state| !state.lifecycle.is_over()) {
            self.context.record_session_event(
                &state,
                JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(&paused))),
            )?;
            self.observer.on_event(&RunEvent::Judged { state: &state, verdict: &paused });
        }
        Ok(Some(paused))
    }

    fn run_iteration(&mut self) -> Result<Verdict, RunError> {
        // The id is chosen here and planned before the client starts, so that a client whose pid was not
        // recorded can still be found.
        let session_id = uuid::Uuid::new_v4().to_string();
        let state = lifecycle::plan_iteration(
            self.context.project,
            self.context.run_id,
            Some(SessionId::from(session_id)),
        )?;
        if state.lifecycle.is_over() {
            return Ok(self.verdict_without_session(&state));
        }
        let model = self.choose_item_model(&state);
        let changed_model = model.as_deref().filter(|_| model != self.user_model);
        self.observer.on_event(&RunEvent::IterationStarted { state: &state, model: changed_model });
        let client = self.start_client(&state, model)?;
        self.follow_client(&state, client)
    }

    /// Runs, before the next session, the commands whose result is not known yet.
    fn check_baseline(&mut self) -> Result<BaselineStep, RunError> {
        if !self.last_state.lifecycle.is_over() {
            self.last_state.outcomes.protected_changes =
                protect::update_changes_before_session(&self.context, &self.last_state)?;
        }
        let commands = baseline::commands_to_check(self.context.project, &self.last_state);
        if commands.is_empty() {
            return Ok(BaselineStep::Proceed);
        }
        self.observer.on_event(&RunEvent::Notice(baseline::render_notice(&self.last_state, &commands)));
        // No session is running, so the first Ctrl-C is enough.
        let result = baseline::run_baseline(&self.context, &self.last_state, &commands, &|| {
            self.observer.interrupts().has_requested(Interrupt::AfterSession) || self.context.is_canceled()
        })?;
        match result {
            BaselineResult::Paused(paused) => Ok(BaselineStep::Paused(paused)),
            BaselineResult::Outcomes(outcomes) => {
                if !outcomes.is_empty() {
                    self.observer.on_event(&RunEvent::Verified { outcomes: &outcomes });
                }
                // The commands may have run past the deadline, or the user may have canceled the run
                // meanwhile.
                Ok(self
                    .exit_code_if_canceled_or_past_deadline()?
                    .map_or(BaselineStep::Proceed, BaselineStep::RunEnded))
            }
        }
    }

    /// Returns the verdict on a run that ended before its session began: canceled meanwhile, or every item
    /// waits for an answer.
    fn verdict_without_session(&mut self, state: &RunState) -> Verdict {
        let status = state.lifecycle.status();
        match state.lifecycle.last_verdict().filter(|_| status == RunStatus::Blocked) {
            Some(verdict) => {
                self.observer.on_event(&RunEvent::Judged { state, verdict });
                verdict.clone()
            }
            None => Verdict::Stop { status, reason: String::new() },
        }
    }

    /// Chooses the model for the item of this iteration. A model that is ignored is reported once.
    fn choose_item_model(&mut self, state: &RunState) -> Option<String> {
        let item = state.iteration_record.item.as_deref().unwrap_or_default();
        let choice = models::choose_model(item, &self.context.settings.models, self.user_model.as_deref());
        if let Some(ignored) = choice.ignored_model
            && self.ignored_models.insert(ignored.to_owned())
        {
            self.observer.on_event(&RunEvent::Notice(models::render_ignored_model(ignored)));
        }
        choice.model.map(str::to_owned)
    }

    fn start_client(&mut self, state: &RunState, model: Option<String>) -> Result<LaunchedClient, RunError> {
        let prompt_path = self.output_path(state, "prompt.md");
        disk::replace(
            &prompt_path,
            &disk::read(&self.context.project.prompt_path())?.unwrap_or_default(),
            Durability::Lazy,
        )?;
        // Only tidies up: a failure must not end the run.
        let _ = prompt::remove_block_from_prompt(self.context.project, state);
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
            .chain(remaining_budget_arguments(
                &self.context,
                state,
                self.hook_support,
                &self.client_arguments,
            ))
            .chain(model.iter().flat_map(|model| [models::MODEL_OPTION.to_owned(), model.clone()]))
            .chain(self.client_arguments.clone())
            .collect();
        // Files instead of pipes: a client whose reader has died works on to its end (2.1.329), and its
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
        // `None` if the client has already ended: it still was a session.
        let identity = client.identity();
        if let Some(identity) = identity {
            // Before the write: if the disk refuses it, the watchdog knows the client and can end it.
            self.watchdog.watch_client(identity, lifecycle::session_environment_markers(state));
            self.record_client_process(identity)?;
        }
        self.context.record_session_event(
            state,
            JournalEvent::ClientStarted { pid: identity.map(|identity| identity.pid), model },
        )?;
        Ok(client)
    }

    /// Returns the environment of the client, with the nesting depth of frames unless the user has set it.
    fn session_environment(&self, state: &RunState, session_id: &SessionId) -> Vec<(String, String)> {
        let plugin_variable = hook_precedence::run_hooks_variable(session_id, self.entry_options);
        let mut variables = vec![(RUN_VARIABLE.to_owned(), self.context.run_id.to_string()), plugin_variable];
        variables.extend(labels::session_labels(state, session_id, self.options.has_spans));
        let (name, value) = plimsoll_protocol::settings::memory_variable();
        if self.options.uses_working_memory && environment::variable(&name).is_none() {
            variables.push((name, value));
        }
        variables
    }

    fn record_client_process(&self, identity: process::ProcessIdentity) -> Result<(), StoreError> {
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

    fn finish_iteration(&mut self, state: &RunState, result: &SessionResult) -> Result<Verdict, RunError> {
        // First, because the observer prints the cost.
        let result = &self.with_complete_cost(state, result);
        // SIGKILL to the client leaves its running Bash tool alive (2.1.329), which would write into the next
        // session's files. Surviving processes could also change protected files between the comparisons.
        if matches!(result.ending, SessionEnding::Crashed(_)) || !state.options.protected_paths.is_empty() {
            lifecycle::end_surviving_processes(state);
        }
        // A hook may have ended the session, gracefully or at once: it still counts as canceled.
        let canceled_result = SessionResult { ending: SessionEnding::Canceled, ..result.clone() };
        let was_canceled = matches!(result.ending, SessionEnding::HookStopped | SessionEnding::Crashed(_))
            && self.context.is_canceled();
        let result = if was_canceled { &canceled_result } else { result };
        let open_items = facts::load_plan(self.context.project, state).map(|todo| todo.open_items());
        let item = state.iteration_record.item.as_deref().zip(open_items.as_ref());
        let item = item.map(|(item, open_texts)| (item, open_texts.iter().any(|text| text == item)));
        self.observer.on_event(&RunEvent::IterationEnded { iteration: state.iteration, result, item });
        let finished_iteration = self.finish_and_judge(result)?;
        let no_run_error = || StartError::NoRun(self.context.project.root().display().to_string());
        let FinishedIteration { verdict, verify_outcomes, review_outcome, reverted_ticks, skipped_checks } =
            finished_iteration.ok_or_else(no_run_error)?;
        self.record_surviving_processes(state);
        if !verify_outcomes.is_empty() {
            self.observer.on_event(&RunEvent::Verified { outcomes: &verify_outcomes });
        }
        for check in &skipped_checks {
            self.observer.on_event(&RunEvent::Notice(describe_check_not_run(check)));
        }
        if let Some(reviewed) = &review_outcome {
            self.observer.on_event(&RunEvent::Reviewed { reviewed });
        }
        if let Some(reverted) = &reverted_ticks {
            self.observer.on_event(&RunEvent::TicksReverted { reverted });
        }
        let newest_state = self.context.load_newest_state()?;
        self.observer
            .on_event(&RunEvent::Judged { state: newest_state.as_ref().unwrap_or(state), verdict: &verdict });
        Ok(verdict)
    }

    /// Completes the cost of a session that ended without a report.
    fn with_complete_cost(&self, state: &RunState, result: &SessionResult) -> SessionResult {
        let session_id = state.session_id.clone().unwrap_or_default();
        let record = sessions::load_session_record(self.context.project, &session_id);
        add_missing_cost(self.context.project, &session_id, &record, result.clone())
    }

    fn finish_and_judge(&mut self, result: &SessionResult) -> Result<Option<FinishedIteration>, StoreError> {
        let (context, interrupts) = (self.context, self.observer.interrupts().clone());
        let should_give_up = || interrupts.has_requested(Interrupt::EndSession) || context.is_canceled();
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
        finish::finish_iteration_unless_given_up(&context, result, &should_give_up, Some(&mut reviewer))
    }

    /// Records the processes that a session has started and left running: a server, or a long job whose
    /// result the next session needs. They are not ended, but the user should know about them.
    fn record_surviving_processes(&self, state: &RunState) {
        let Some([run, session]) = lifecycle::session_environment_markers(state) else { return };
        let describe_process = |identity: process::ProcessIdentity| {
            let command = plimsoll_domain::text::truncate_end(
                &plimsoll_domain::text::to_single_line(&process::command_line_text(identity.pid)),
                80,
            );
            format!("{} {command}", identity.pid)
        };
        let processes: Vec<String> =
            process::find_surviving_processes([&run, &session]).into_iter().map(describe_process).collect();
        if !processes.is_empty() {
            let _ = self.context.record_session_event(state, JournalEvent::ProcessesLeftBehind { processes });
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

/// Returns the client's budget option for what is left: the client itself then stops a session that would
/// spend more. Runs with clients that are too old for the option are stopped between sessions.
fn remaining_budget_arguments(
    context: &RunContext<'_>,
    state: &RunState,
    hook_support: HookSupport,
    client_arguments: &[String],
) -> Vec<String> {
    const BUDGET_OPTION: &str = "--max-budget-usd";
    let is_set_by_user = client_arguments.iter().any(|argument| argument.starts_with(BUDGET_OPTION));
    let run_remaining = state.options.limits.max_cost_usd.map(|limit| limit - state.spending.cost_usd);
    let remaining = run_remaining
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

/// Returns the pause that a resumed run continues to wait for, if its time has not come. A pause for the
/// share of a quota continues only if the current share still requires it.
fn unexpired_pause(run: &RunState) -> Option<Verdict> {
    let Some(Verdict::Pause { kind, until: Some(until), .. }) = run.lifecycle.last_verdict() else {
        return None;
    };
    let now = clock::now();
    if *kind == PauseKind::Quota {
        let limit_verdict = plimsoll_policy::bounds::reached_limit_verdict(run, &clock::to_timestamp(now));
        return limit_verdict.filter(|bound| matches!(bound, Verdict::Pause { .. }));
    }
    let is_unexpired =
        kind.resolves_by_waiting() && clock::parse_rfc3339(until.as_str()).is_some_and(|until| until > now);
    if is_unexpired { run.lifecycle.last_verdict().cloned() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::{QuotaWindow, RunLimits, SubscriptionQuotas};
    use plimsoll_domain::state::{Lifecycle, RunOptions, RunSpending};

    fn paused_lifecycle(kind: PauseKind, until: plimsoll_domain::Timestamp) -> Lifecycle {
        Lifecycle::from_verdict(&Verdict::Pause { kind, until: Some(until), reason: String::new() })
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
            assert_eq!(unexpired_pause(&paused_run(kind, share)).is_some(), is_paused, "{kind:?} {share:?}");
        }
    }
}
