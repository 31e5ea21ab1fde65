//! `plimsoll gate`: the judgement for shell loops. After the session it judges finally and plans the next one.

mod input;

use crate::{foreign_state, hook_answer};
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::fatal::{Fatal, FatalKind};
use plimsoll_domain::state::Phase;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::text::one_line;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Ending, Exit, RunState, SessionRecord, Timestamp, Verdict};
use plimsoll_flows::context::session_usage::complete_cost;
use plimsoll_flows::hooks::answer;
use plimsoll_flows::hooks::stop::stop_gate;
use plimsoll_flows::run::finish::{self, Finished, not_run_words};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::session_result::{SessionResult, failure_in};
use plimsoll_policy::pause;
use plimsoll_protocol::result::RunResult;
use plimsoll_store::ledger;
use plimsoll_store::{Project, clock, config, environment, lock, sessions, state_file};
use plimsoll_terminal::console::{fail_with, say, say_error};
use plimsoll_terminal::run_progress::verified;
use plimsoll_terminal::{console, standard_input};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Whether to sit through a pause.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GateArguments {
    /// Sleep through a pause, then exit with 1 (continue)
    #[arg(long)]
    wait: bool,
}

/// `plimsoll status` looks at the same lock for a moment.
const GLANCE: Duration = Duration::from_millis(200);
/// A shell loop is one run: it need not spread its tries.
const MIDDLE: f64 = 0.5;

const COST_UNKNOWN: &str = "the cost of this session is unknown, because there is neither a result object nor a transcript nor a turn log: it counts neither for --max-cost nor for --max-cost-per-day. Pipe the result object to the gate (`claude -p --output-format json … | plimsoll gate`)";

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
  0   stop the loop: the run is over, or there is none
  1   continue with a fresh session
  75  paused: try again later
  70  an internal error";

/// Judges: 0 stop the loop, 1 continue, 75 pause; 0 if there is no run; 70 for a fault of our own.
pub(crate) fn gate(arguments: &GateArguments) -> ExitCode {
    let project = Project::of_command();
    if let Some(code) = foreign_state::gate(&project) {
        return code;
    }
    let somebody_else = somebody_else(&project);
    let document = match somebody_else {
        Some(_) => standard_input::document(),
        None => input::document(&project),
    };
    if let Some(hook) = document.as_deref().filter(|document| is_hook(document)) {
        return hook_answer::print(&answer(hook, stop_gate));
    }
    if let Some(who) = somebody_else {
        return fail_with(who, ExitStatus::InternalError);
    }
    match judge(&project, document.as_deref()) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(verdict)) => {
            say(verdict.marker());
            apply(&project, &verdict, arguments.wait)
        }
        Err(error) => fail_with(error, ExitStatus::InternalError),
    }
}

/// A session that is still at work is not judged from inside it, nor one that `plimsoll run` judges itself.
fn somebody_else(project: &Project) -> Option<&'static str> {
    if is_inside_session() {
        return Some(
            "this is inside a session: run the gate in the loop around it, after the session has ended",
        );
    }
    is_run_active(project).then_some(RUN_IS_ACTIVE)
}

/// Why a session of `plimsoll run` is not judged by a command.
pub(super) const RUN_IS_ACTIVE: &str =
    "a `plimsoll run` is active in this project and judges its sessions itself";

/// True if a session's tool or hook started this process.
pub(super) fn is_inside_session() -> bool {
    environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).is_some()
}

/// True if a `plimsoll run` works on the run of this project.
pub(super) fn is_run_active(project: &Project) -> bool {
    let has_run = state_file::load(project, None).ok().flatten().is_some();
    has_run && lock::acquire_run(project, GLANCE).is_err()
}

fn is_hook(document: &[u8]) -> bool {
    plimsoll_protocol::Hook::parse(document).is_ok_and(|hook| !hook.event.name().is_empty())
}

/// The final verdict on the current iteration. A result object of `claude -p --output-format json` on standard
/// input is the best evidence; else the hooks' records are.
pub(super) fn judge(
    project: &Project,
    result: Option<&[u8]>,
) -> Result<Option<Verdict>, plimsoll_store::StoreError> {
    let run_id = ledger::run_of_environment();
    let Some(state) = state_file::load(project, run_id.as_ref())? else { return Ok(None) };
    if let Some(verdict) = waited_for(&state) {
        return Ok(Some(verdict));
    }
    let (settings, _) = config::load(project);
    // What is piped may be another session's result: its cost and ending are not this iteration's.
    let ours = |result: &RunResult| result.session_id.as_deref() == state.session_id.as_deref();
    let result = result.and_then(RunResult::find).filter(ours);
    if let Some(words) = result.as_ref().and_then(|result| result.result.as_deref()) {
        say_last_words(words);
    }
    let record = state.session_id.as_ref().map(|id| sessions::load(project, id)).unwrap_or_default();
    let ended = match result {
        Some(result) if state.iteration_record.phase != Phase::Planned => {
            let at = record.end.ended_at.as_ref().and_then(clock::moment);
            SessionResult::of_result(Some(&result), Exit::default(), at)
        }
        _ => by_record(project, &state, &settled(project, record)),
    };
    let finished =
        finish::finish(&RunContext { project, settings: &settings, run_id: &state.run_id }, &ended)?;
    if let Some(Finished { verify, taken_back, not_run, .. }) = &finished {
        let lines = (!verify.is_empty()).then(|| verified(verify)).into_iter();
        let lines =
            lines.chain(not_run.iter().map(not_run_words)).chain(taken_back.as_ref().map(TakenBack::words));
        lines.for_each(|line| say_error(&line));
    }
    // Loaded anew: the verdict is in the newest state, and whether the cost is known.
    let judged = state_file::load(project, Some(&state.run_id))?;
    if judged.is_some_and(|state| state.cost_is_unknown()) {
        say_error(&COST_UNKNOWN);
    }
    Ok(finished.map(|finished| finished.verdict))
}

/// In a pipe the gate takes what the client printed: it shows the session's answer in its place.
fn say_last_words(words: &str) {
    for line in words.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        console::note(format!("{indent}{}", one_line(line)));
    }
}

/// A pause that was judged before: the loop has waited by itself, or has to wait on.
fn waited_for(state: &RunState) -> Option<Verdict> {
    if state.iteration_record.phase != Phase::Judged {
        return None;
    }
    let Some(Verdict::Pause { kind, until, .. }) = state.lifecycle.last_verdict() else { return None };
    let has_passed = until.as_ref().and_then(clock::moment).is_none_or(|until| until <= clock::now());
    let goes_on = Verdict::Continue { kind: ContinueKind::Next, reason: "the pause is over".to_owned() };
    (kind.passes() && has_passed).then_some(goes_on)
}

/// Waits a moment for a session that has reported nothing about its end: a headless client (2.1.329) exits without waiting
/// for its StopFailure hook, which then may never run, and a limit would look like a session that simply ended. The transcript
/// has the error in any case.
fn settled(project: &Project, mut record: SessionRecord) -> SessionRecord {
    const MOMENT: Duration = Duration::from_secs(2);
    const LOOK: Duration = Duration::from_millis(20);
    let tells = |record: &SessionRecord| {
        record.end.stop.is_some() || record.end.failure.is_some() || record.end.ended_by_us.is_some()
    };
    record = with_failure(record);
    let started = Instant::now();
    while !tells(&record) && !record.session_id.is_empty() && started.elapsed() < MOMENT {
        std::thread::sleep(LOOK);
        record = sessions::load(project, &record.session_id);
    }
    // The client's writer may have put the error down meanwhile.
    if tells(&record) { record } else { with_failure(record) }
}

/// With the error of the transcript's end, where neither its hook nor we have said anything.
fn with_failure(mut record: SessionRecord) -> SessionRecord {
    if record.end.failure.is_none() && record.end.ended_by_us.is_none() {
        record.end.failure = record.start.transcript_path.as_deref().map(Path::new).and_then(failure_in);
    }
    record
}

fn by_record(project: &Project, state: &RunState, record: &SessionRecord) -> SessionResult {
    if state.iteration_record.phase == Phase::Planned {
        let words = ": is PLIMSOLL_RUN_ID exported, and are the hooks installed (`plimsoll init`)?";
        let ending = Ending::Fatal(Fatal::new(FatalKind::Hooks, words));
        return SessionResult { ending, ..SessionResult::default() };
    }
    let session_id = state.session_id.clone().unwrap_or_default();
    complete_cost(project, &session_id, record, SessionResult::by_record(record))
}

fn apply(project: &Project, verdict: &Verdict, wait: bool) -> ExitCode {
    match verdict {
        Verdict::Stop { .. } => verdict.gate_exit_status().into(),
        Verdict::Pause { kind, .. } if !wait || !kind.passes() => {
            restore_prompt(project);
            verdict.gate_exit_status().into()
        }
        Verdict::Pause { until, .. } => {
            sleep_through(project, until.as_ref());
            plan_next(project)
        }
        Verdict::Continue { .. } => plan_next(project),
    }
}

/// The loop ends here; the next plan writes our block again.
pub(super) fn restore_prompt(project: &Project) {
    let run_id = ledger::run_of_environment();
    if let Ok(Some(state)) = state_file::load(project, run_id.as_ref()) {
        let _ = plimsoll_flows::run::prompt::put_back(project, &state);
    }
}

fn plan_next(project: &Project) -> ExitCode {
    let run_id = ledger::run_of_environment();
    let planned = match state_file::load(project, run_id.as_ref()) {
        Ok(Some(state)) => lifecycle::plan(project, &state.run_id, None),
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(error, ExitStatus::InternalError),
    };
    match planned {
        // A run that was cancelled while we waited.
        Ok(state) if state.lifecycle.is_over() => ExitCode::SUCCESS,
        Ok(_) => ExitStatus::Failure.into(),
        Err(error) => fail_with(error, ExitStatus::InternalError),
    }
}

/// Until the known time; without one, a few seconds more at each pause in a row.
fn sleep_through(project: &Project, until: Option<&Timestamp>) {
    let run_id = ledger::run_of_environment();
    let state = state_file::load(project, run_id.as_ref()).ok().flatten();
    let tries = state.map_or(1, |state| state.lifecycle.pauses_in_a_row());
    let milliseconds = match until.and_then(clock::moment) {
        Some(reset) => pause::until_reset_ms((reset - clock::now()).num_seconds(), MIDDLE),
        None => pause::backoff_ms(tries, MIDDLE),
    };
    std::thread::sleep(Duration::from_millis(milliseconds));
}
