//! `plimsoll gate`, for shell loops: judges the session that has ended, prints the final verdict and plans the next session.

mod input;

use crate::{foreign_state, hook_response_output};
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::fatal_error::{FatalError, FatalErrorKind};
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{ProcessExit, RunState, SessionEnding, SessionRecord, Timestamp, Verdict};
use plimsoll_flows::context::session_usage::add_estimated_usage_if_cost_is_missing;
use plimsoll_flows::hooks::run_hook_on_input;
use plimsoll_flows::hooks::stop::run_stop_hook;
use plimsoll_flows::run::finish::{self, FinishedIteration, describe_check_missing_from_original_plan};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::session_result::{SessionResult, api_failure_at_transcript_end};
use plimsoll_policy::pause;
use plimsoll_protocol::result::ClientResult;
use plimsoll_store::ledger;
use plimsoll_store::{Project, clock, config, environment, lock, sessions, state_file};
use plimsoll_terminal::console::{fail_with, print_notice, print_text, print_warning};
use plimsoll_terminal::run_progress::render_verify_outcomes;
use plimsoll_terminal::{console, standard_input};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments of `plimsoll gate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GateArguments {
    /// Sleep through a pause, then exit with 1 (continue)
    #[arg(long)]
    wait: bool,
}

/// How long to wait for the run lock, because `plimsoll status` also takes it for a moment.
const RUN_LOCK_TIMEOUT: Duration = Duration::from_millis(200);
/// A fixed jitter value: a shell loop is a single run, so its retries need no random spread.
const MEDIAN_JITTER: f64 = 0.5;

const COST_UNKNOWN_WARNING: &str = "the cost of this session is unknown, because there is neither a result object nor a transcript nor a turn log: it counts neither for --max-cost nor for --max-cost-per-day. Pipe the result object to the gate (`claude -p --output-format json … | plimsoll gate`)";

const EXAMPLES: &str = "\
Example, a loop of your own:
  eval \"$(plimsoll start --objective 'Migrate to Vitest')\"
  while true; do
    claude -p --output-format json --allowedTools Bash < PROMPT.md |
      plimsoll gate --wait
    [ $? -eq 1 ] || break
  done

The sessions need the hooks that `plimsoll init` sets up.
The result object on standard input is the best evidence, and has the cost as Claude Code computed it. Without it the gate uses the
hooks' records, adds up the tokens from the transcript, and estimates the cost at list prices. One marker line is printed; the session's
answer goes to standard error.

While the planned session is unfinished, the gate reads a pipe to its end, however long that takes. It gives up 5 minutes
after it began if no session begins, after 3 hours without a sign of the session, and 5 seconds after the session has
ended. Without an open run it does not wait.

Exit codes:
  0   stop the loop: the run has ended, or there is none
  1   continue with a fresh session
  75  paused: try again later
  70  an internal error";

/// Judges the session that ended. Returns exit code 0 to stop the loop or if there is no run, 1 to continue, 75 for a pause, and 70
/// for an internal error.
pub(crate) fn run_stop_hook_or_judge_and_plan_next(arguments: &GateArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    if let Some(code) = foreign_state::judge_foreign_loop_and_print_output(&project) {
        return code;
    }
    let refusal_reason = refusal_if_inside_session_or_run_active(&project);
    let document = match refusal_reason {
        Some(_) => standard_input::read_nonblank_piped_input_if_data_arrives(),
        None => input::read_stdin_while_session_unfinished(&project),
    };
    if let Some(payload) = document.as_deref().filter(|document| is_hook_payload(document)) {
        return hook_response_output::print_marker_and_first_error(&run_hook_on_input(
            payload,
            run_stop_hook,
        ));
    }
    if let Some(refusal) = refusal_reason {
        return fail_with(refusal, ExitStatus::InternalError);
    }
    match judge_current_iteration(&project, document.as_deref()) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(verdict)) => {
            print_text(verdict.to_marker());
            end_loop_or_plan_next_iteration(&project, &verdict, arguments.wait)
        }
        Err(error) => fail_with(error, ExitStatus::InternalError),
    }
}

/// Returns the reason why the gate must not judge now: it runs inside the session itself, or an active `plimsoll run` judges the
/// sessions.
fn refusal_if_inside_session_or_run_active(project: &Project) -> Option<&'static str> {
    if is_inside_session() {
        return Some(
            "this is inside a session: run the gate in the loop around it, after the session has ended",
        );
    }
    is_run_active(project).then_some(ACTIVE_RUN_MESSAGE)
}

/// The error message of a command that would judge a session of an active `plimsoll run`.
pub(super) const ACTIVE_RUN_MESSAGE: &str =
    "a `plimsoll run` is active in this project and judges its sessions itself";

/// Returns true if a session's tool or hook started this process.
pub(super) fn is_inside_session() -> bool {
    environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).is_some()
}

/// Returns true if a `plimsoll run` holds the lock of this project's run.
pub(super) fn is_run_active(project: &Project) -> bool {
    let has_run = state_file::load_state(project, None).ok().flatten().is_some();
    has_run && lock::acquire_run_lock(project, RUN_LOCK_TIMEOUT).is_err()
}

fn is_hook_payload(document: &[u8]) -> bool {
    plimsoll_protocol::HookPayload::parse(document).is_ok_and(|payload| !payload.event.name().is_empty())
}

/// Returns the final verdict on the current iteration, or `None` without a run. A result object of `claude -p --output-format json`
/// on standard input is the best evidence; without it the hooks' records are used.
pub(super) fn judge_current_iteration(
    project: &Project,
    result_json: Option<&[u8]>,
) -> Result<Option<Verdict>, plimsoll_store::StoreError> {
    let run_id = ledger::run_id_from_environment();
    let Some(state) = state_file::load_state(project, run_id.as_ref())? else { return Ok(None) };
    if let Some(verdict) = continue_verdict_if_judged_pause_expired(&state) {
        return Ok(Some(verdict));
    }
    let (settings, _) = config::load_settings(project);
    // The piped result may be another session's, whose cost and ending do not belong to this iteration.
    let belongs_to_iteration =
        |result: &ClientResult| result.session_id.as_deref() == state.session_id.as_deref();
    let client_result = result_json.and_then(ClientResult::find_last_in_output).filter(belongs_to_iteration);
    if let Some(answer) = client_result.as_ref().and_then(|result| result.result.as_deref()) {
        print_session_answer(answer);
    }
    let record =
        state.session_id.as_ref().map(|id| sessions::load_session_record(project, id)).unwrap_or_default();
    let session_result = match client_result {
        Some(result) if state.iteration_record.phase != IterationPhase::Planned => {
            let ended_at = record.end.ended_at.as_ref().and_then(clock::parse_timestamp);
            SessionResult::from_client_result(Some(&result), ProcessExit::default(), ended_at)
        }
        _ => session_result_or_missing_hooks_error(project, &state, &wait_for_end_evidence(project, record)),
    };
    let finished_iteration = finish::finish_iteration(
        &RunContext { project, settings: &settings, run_id: &state.run_id },
        &session_result,
    )?;
    if let Some(FinishedIteration { verify_outcomes, reverted_ticks, skipped_checks, .. }) =
        &finished_iteration
    {
        let verify_lines =
            (!verify_outcomes.is_empty()).then(|| render_verify_outcomes(verify_outcomes)).into_iter();
        verify_lines.for_each(|line| print_notice(&line));
        let skipped_check_lines = skipped_checks.iter().map(describe_check_missing_from_original_plan);
        skipped_check_lines.for_each(|line| print_warning(&line));
        reverted_ticks.iter().for_each(|reverted_ticks| print_notice(&reverted_ticks.describe_revert()));
    }
    // The state is reloaded because `finish_iteration` wrote the verdict and the cost to it.
    let reloaded_state = state_file::load_state(project, Some(&state.run_id))?;
    if reloaded_state.is_some_and(|state| state.has_cost_limit_but_unknown_cost()) {
        print_warning(&COST_UNKNOWN_WARNING);
    }
    Ok(finished_iteration.map(|finished| finished.verdict))
}

/// Prints the session's answer to standard error. In a pipe the gate consumes the client's output, so the user would not see it.
fn print_session_answer(answer: &str) {
    for line in answer.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        console::print_to_stderr(format!("{indent}{}", to_safe_single_line(line)));
    }
}

/// Returns `Continue` if the iteration was already judged with a pause that resolves by waiting and has expired, else `None`.
fn continue_verdict_if_judged_pause_expired(state: &RunState) -> Option<Verdict> {
    if state.iteration_record.phase != IterationPhase::Judged {
        return None;
    }
    let Some(Verdict::Pause { kind, pause_end, .. }) = state.lifecycle.last_verdict() else {
        return None;
    };
    let has_expired =
        pause_end.as_ref().and_then(clock::parse_timestamp).is_none_or(|end_time| end_time <= clock::now());
    let continue_verdict =
        Verdict::Continue { kind: ContinueKind::NextItem, reason: "the pause is over".to_owned() };
    (kind.resolves_by_waiting() && has_expired).then_some(continue_verdict)
}

/// Waits up to two seconds for evidence of how the session ended, and returns the newest record. A headless client (2.1.329) exits
/// without waiting for its StopFailure hook, which then may never run, so a usage limit would look like an ordinary end. The
/// transcript has the error in any case.
fn wait_for_end_evidence(project: &Project, mut record: SessionRecord) -> SessionRecord {
    const END_TIMEOUT: Duration = Duration::from_secs(2);
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    let has_end_evidence = |record: &SessionRecord| {
        record.end.stop.is_some() || record.end.failure.is_some() || record.end.hook_end_reason.is_some()
    };
    record = with_failure_from_transcript(record);
    let started_at = Instant::now();
    while !has_end_evidence(&record) && !record.session_id.is_empty() && started_at.elapsed() < END_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
        record = sessions::load_session_record(project, &record.session_id);
    }
    // The client may have written the error to the transcript meanwhile.
    if has_end_evidence(&record) { record } else { with_failure_from_transcript(record) }
}

/// Adds the error at the end of the transcript to the record, unless a hook reported a failure or ended the session.
fn with_failure_from_transcript(mut record: SessionRecord) -> SessionRecord {
    if record.end.failure.is_none() && record.end.hook_end_reason.is_none() {
        record.end.failure =
            record.start.transcript_path.as_deref().map(Path::new).and_then(api_failure_at_transcript_end);
    }
    record
}

/// Returns the session's result from its record, or a fatal error if no hook has reported the start of the planned session.
fn session_result_or_missing_hooks_error(
    project: &Project,
    state: &RunState,
    record: &SessionRecord,
) -> SessionResult {
    if state.iteration_record.phase == IterationPhase::Planned {
        let reason = ": is PLIMSOLL_RUN_ID exported, and are the hooks installed (`plimsoll init`)?";
        let ending = SessionEnding::Fatal(FatalError::new(FatalErrorKind::Hooks, reason));
        return SessionResult { ending, ..SessionResult::default() };
    }
    let session_id = state.session_id.clone().unwrap_or_default();
    add_estimated_usage_if_cost_is_missing(
        project,
        &session_id,
        record,
        SessionResult::from_session_record(record),
    )
}

/// Ends the loop, or plans the next iteration, first sleeping through a pause if `--wait` asks for it. Returns the gate's
/// exit code.
fn end_loop_or_plan_next_iteration(
    project: &Project,
    verdict: &Verdict,
    wait_for_pause_end: bool,
) -> ExitCode {
    match verdict {
        Verdict::Stop { .. } => verdict.gate_exit_status().into(),
        Verdict::Pause { kind, .. } if !wait_for_pause_end || !kind.resolves_by_waiting() => {
            restore_prompt_file(project);
            verdict.gate_exit_status().into()
        }
        Verdict::Pause { pause_end, .. } => {
            sleep_until_pause_end_or_backoff(project, pause_end.as_ref());
            plan_next_iteration_and_continue_loop(project)
        }
        Verdict::Continue { .. } => plan_next_iteration_and_continue_loop(project),
    }
}

/// Removes our block from the user's PROMPT.md, because the loop ends here. Planning the next iteration writes the block again.
pub(super) fn restore_prompt_file(project: &Project) {
    let run_id = ledger::run_id_from_environment();
    if let Ok(Some(state)) = state_file::load_state(project, run_id.as_ref()) {
        let _ = plimsoll_flows::run::prompt::remove_block_from_user_prompt(project, &state);
    }
}

/// Plans the next iteration and returns exit code 1, which continues the shell loop. Returns 0 if the run has ended or is missing.
fn plan_next_iteration_and_continue_loop(project: &Project) -> ExitCode {
    let run_id = ledger::run_id_from_environment();
    let planned_state = match state_file::load_state(project, run_id.as_ref()) {
        Ok(Some(state)) => lifecycle::plan_iteration_or_end_if_all_parked(project, &state.run_id, None),
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(error, ExitStatus::InternalError),
    };
    match planned_state {
        // The run was canceled during the wait.
        Ok(state) if state.lifecycle.has_ended() => ExitCode::SUCCESS,
        Ok(_) => ExitStatus::Failure.into(),
        Err(error) => fail_with(error, ExitStatus::InternalError),
    }
}

/// Sleeps until the end of the pause. If that is unknown, sleeps for a backoff that grows with each consecutive pause.
fn sleep_until_pause_end_or_backoff(project: &Project, pause_end: Option<&Timestamp>) {
    let run_id = ledger::run_id_from_environment();
    let state = state_file::load_state(project, run_id.as_ref()).ok().flatten();
    let pause_count = state.map_or(1, |state| state.lifecycle.consecutive_pauses());
    let milliseconds = match pause_end.and_then(clock::parse_timestamp) {
        Some(reset_time) => {
            pause::reset_wait_with_margin_ms((reset_time - clock::now()).num_seconds(), MEDIAN_JITTER)
        }
        None => pause::backoff_ms(pause_count, MEDIAN_JITTER),
    };
    std::thread::sleep(Duration::from_millis(milliseconds));
}
