//! Shows the progress of a run: a progress bar on a terminal, plain lines elsewhere, JSON for scripts.

mod bar;
mod colors;
mod json;
mod outage;
pub mod telemetry;

use crate::allowed_tools::render_resume_command_if_tools_can_be_allowed;
use crate::console::{self, PaintedLine};
use crate::duration::format_seconds;
use crate::run_figure_text::render_api_retry;
use crate::signals;
use crate::worker_event_text;
use indicatif::ProgressBar;
use json::JsonObserver;
pub use json::render_run_ended_line;
use outage::OutageTracker;
use plimsoll_domain::cost::render_cost_without_title;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::level::Level;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, SessionEnding, SessionRecord, Timestamp, Verdict};
use plimsoll_flows::run::{Interrupt, InterruptCounter, RunEvent, RunObserver};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::run_figures::figures_of_sequential_run;
use plimsoll_store::clock;
use std::time::Instant;

/// How many columns further lines of a wrapped line are indented.
const WRAPPED_LINE_INDENT: usize = 2;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressFormat {
    /// Lines with a live progress bar below.
    Bar,
    /// Only lines.
    Plain,
    Json,
}

impl ProgressFormat {
    /// Returns `Bar` if standard output and standard error are terminals, otherwise `Plain`.
    pub fn for_current_terminal() -> ProgressFormat {
        let has_terminal = console::is_error_terminal() && console::is_terminal();
        if has_terminal { ProgressFormat::Bar } else { ProgressFormat::Plain }
    }
}

/// Creates an observer and installs signal handlers. Ctrl-C ends the run after the session, a second one at once; SIGTERM
/// and SIGHUP end it at once. `resume_command` is shown in the message for Ctrl-C.
pub fn new_run_observer_handling_signals(
    format: ProgressFormat,
    resume_command: &str,
) -> std::io::Result<Box<dyn RunObserver>> {
    let interrupts = InterruptCounter::default();
    let progress_bar = (format == ProgressFormat::Bar).then(bar::new_progress_bar);
    for signal in signals::end_signals_not_ignored_at_start() {
        let interrupt =
            if signal == signals::SIGINT { Interrupt::AfterSession } else { Interrupt::EndSession };
        let counter = interrupts.clone();
        // Report at once and not with the client's next output, because without a message the user would press Ctrl-C again.
        let report_interrupt: Box<dyn Fn(Interrupt) + Send> = match (&progress_bar, format) {
            (_, ProgressFormat::Json) => Box::new(|_| ()),
            (bar, _) => {
                let (progress_bar, resume_command) = (bar.clone(), resume_command.to_owned());
                Box::new(move |interrupt| {
                    print_colored_above_bar_or_plain_on_stdout(
                        progress_bar.as_ref(),
                        &format!("   {}", render_interrupt_message(interrupt, &resume_command)),
                        None,
                    );
                })
            }
        };
        signals::spawn_signal_record_and_respond_threads(
            signal,
            move || counter.add_interrupt(interrupt),
            report_interrupt,
        )?;
    }
    Ok(match format {
        ProgressFormat::Json => Box::new(JsonObserver::new(interrupts)),
        ProgressFormat::Plain | ProgressFormat::Bar => Box::new(LineObserver {
            interrupts,
            progress_bar,
            shown_level: Level::L0,
            has_worker_lines: false,
            outage_tracker: OutageTracker::default(),
            started_at: Instant::now(),
            remaining_work_of_parallel_run: None,
        }),
    })
}

/// Describes the effect of an interrupt.
fn render_interrupt_message(interrupt: Interrupt, resume_command: &str) -> String {
    match interrupt {
        Interrupt::AfterSession => {
            format!(
                "stopping after the current session (Ctrl-C again ends it now); {resume_command} continues"
            )
        }
        Interrupt::EndSession | Interrupt::Immediately => "ending the session now".to_owned(),
    }
}

/// Prints a line above the progress bar, colored if colors are enabled. Without a bar, prints it uncolored on standard output.
fn print_colored_above_bar_or_plain_on_stdout(
    bar: Option<&ProgressBar>,
    line: &str,
    color_code: Option<&'static str>,
) {
    match bar {
        Some(bar) => line.lines().for_each(|line| {
            let painted_line = PaintedLine::default().with_text(color_code, line);
            console::print_painted_above_bar(bar, &painted_line, WRAPPED_LINE_INDENT);
        }),
        None => console::print_text(line),
    }
}

struct LineObserver {
    interrupts: InterruptCounter,
    progress_bar: Option<ProgressBar>,
    /// The highest level that was shown in the current session.
    shown_level: Level,
    /// Whether the progress bar has a line for each worker.
    has_worker_lines: bool,
    outage_tracker: OutageTracker,
    started_at: Instant,
    /// The last estimate of the remaining work of a parallel run.
    remaining_work_of_parallel_run: Option<String>,
}

impl RunObserver for LineObserver {
    fn interrupts(&self) -> &InterruptCounter {
        &self.interrupts
    }

    fn on_event(&mut self, run_event: &RunEvent<'_>) {
        match run_event {
            RunEvent::UsageUpdated { state, record, figures } => {
                self.print_raised_level_and_update_bar(state, record, figures);
            }
            RunEvent::IterationStarted { .. } => self.shown_level = Level::L0,
            RunEvent::FiguresUpdated { figures } => self.show_worker_figures(figures),
            RunEvent::PauseContinues { pause_end } => {
                if let Some(bar) = &self.progress_bar {
                    let seconds_left = (*pause_end - clock::now()).num_seconds().max(0);
                    let pause_end_text = clock::format_local_time_with_seconds(*pause_end);
                    console::set_bar_message(
                        bar,
                        &format!("paused until {pause_end_text}, {} left", format_seconds(seconds_left)),
                    );
                }
            }
            _ => {}
        }
        let line = render_progress_line(run_event);
        for line in self.outage_tracker.lines_to_print(run_event, line, clock::now()) {
            self.print_above_bar_or_on_stdout(&line, colors::run_event_color(run_event));
        }
        if self.progress_bar.is_none() {
            self.print_elapsed_and_remaining_work_after_session(run_event);
        }
    }
}

impl LineObserver {
    fn print_raised_level_and_update_bar(
        &mut self,
        state: &RunState,
        record: &SessionRecord,
        figures: &RunFigures,
    ) {
        if record.highest_announcement.level > self.shown_level {
            self.shown_level = record.highest_announcement.level;
            self.print_above_bar_or_on_stdout(
                &render_announced_level(record),
                colors::level_color(self.shown_level),
            );
        }
        if let Some(bar) = &self.progress_bar {
            bar::show_session(bar, state, record, figures);
        }
    }

    fn show_worker_figures(&mut self, figures: &RunFigures) {
        if let Some(bar) = &self.progress_bar {
            if !std::mem::replace(&mut self.has_worker_lines, true) {
                bar::use_worker_lines(bar);
            }
            bar::show_workers(bar, figures);
        }
        self.remaining_work_of_parallel_run = figures.render_remaining_work();
    }

    /// Prints the elapsed time and the estimate of the remaining work if a session has ended and another one will follow.
    fn print_elapsed_and_remaining_work_after_session(&self, run_event: &RunEvent<'_>) {
        let remaining_work = match run_event {
            RunEvent::VerdictReached { state, verdict: Verdict::Continue { .. } } => {
                figures_of_sequential_run(state, None).render_remaining_work()
            }
            RunEvent::WorkersEvent { event: JournalEvent::WorkerEnded(_) } => {
                self.remaining_work_of_parallel_run.clone()
            }
            _ => None,
        };
        if let Some(remaining_work) = remaining_work {
            let elapsed = format_seconds(self.started_at.elapsed().as_secs().cast_signed());
            self.print_above_bar_or_on_stdout(&format!("   {elapsed} elapsed · {remaining_work}"), None);
        }
    }

    fn print_above_bar_or_on_stdout(&self, line: &str, color_code: Option<&'static str>) {
        print_colored_above_bar_or_plain_on_stdout(self.progress_bar.as_ref(), line, color_code);
    }
}

impl Drop for LineObserver {
    fn drop(&mut self) {
        if let Some(bar) = &self.progress_bar {
            bar.finish_and_clear();
        }
    }
}

/// Renders the session's level with the percentage at its announcement, because usage may be higher now.
fn render_announced_level(record: &SessionRecord) -> String {
    let handoff_suffix =
        record.checkpoint_progress.last_handoff.as_ref().map(|file| format!(": {file}")).unwrap_or_default();
    let percent = record.highest_announcement.projected_percent.unwrap_or(0);
    format!(
        "   {} ({}) at {percent}%{handoff_suffix}",
        record.highest_announcement.level,
        record.highest_announcement.level.descriptive_name()
    )
}

fn render_progress_line(run_event: &RunEvent<'_>) -> Option<String> {
    Some(match run_event {
        RunEvent::RunStarted { state } => render_run_start(state),
        RunEvent::IterationStarted { state, model } => render_iteration_start(state, *model),
        RunEvent::ClientStarted { model, version } => format!("   client {version}, {model}"),
        RunEvent::ToolUsed { name, detail } => format!("   {name} {detail}").trim_end().to_owned(),
        RunEvent::ApiRetry { status, first_failed_at } => {
            format!("   {}", render_api_retry(*status, &Timestamp::from(first_failed_at.as_str())))
        }
        RunEvent::Compacted => "   Claude Code has compacted".to_owned(),
        RunEvent::IterationEnded { iteration, result, item } => {
            format!(
                "   session {iteration} {}{}",
                render_session_ending(&result.ending),
                render_item_state(*item)
            )
        }
        RunEvent::ToolsDenied { state, tools } => {
            format!("   {}", render_denied_tools_and_resume_command_if_any(state, tools))
        }
        RunEvent::VerdictReached { state, verdict } => {
            format!(
                "   {}   ({})",
                console::description_on_terminal_else_marker(&verdict.to_marker()),
                render_cost_so_far(state)
            )
        }
        RunEvent::VerifyCommandsFinished { outcomes } => format!("   {}", render_verify_outcomes(outcomes)),
        RunEvent::Reviewed { outcome } => format!("   {}", outcome.describe()),
        RunEvent::TicksReverted { reverted_ticks } => {
            format!("   {}", reverted_ticks.describe_revert())
        }
        RunEvent::QuestionAsked { question } => render_parked_question(question),
        RunEvent::PauseStarted { pause_end, seconds, reason } => format!(
            "   paused until {} ({}): {}",
            clock::format_local_time_with_seconds(*pause_end),
            format_seconds(*seconds as i64),
            to_safe_single_line(reason)
        ),
        RunEvent::WorkersEvent { event } => worker_event_text::render_parallel_run_or_note_event(event)?,
        RunEvent::Notice(text) => format!("   {text}"),
        RunEvent::TemporaryErrorRetry { error, retry_seconds } => {
            format!("   {error}; trying again in {retry_seconds} s")
        }
        // Reported by the exit code and standard error.
        RunEvent::ProgramEnded { .. } | RunEvent::RunFailed { .. } => return None,
        // The message for Ctrl-C was printed by the signal handler.
        RunEvent::ApiAnswered
        | RunEvent::UsageUpdated { .. }
        | RunEvent::PauseContinues { .. }
        | RunEvent::FiguresUpdated { .. }
        | RunEvent::StopRequested => return None,
    })
}

fn render_cost_so_far(state: &RunState) -> String {
    render_cost_without_title(state.spending.cost_basis(), state.spending.cost_usd, state.iteration)
}

fn render_run_start(state: &RunState) -> String {
    let plan_suffix = state
        .options
        .user_plan_path()
        .map(|plan_path| {
            format!(", {} in {plan_path}", count_with_noun(state.plan_items.todo_items.len(), "open item"))
        })
        .unwrap_or_default();
    // The session limit of a fleet applies to all machines together and is enforced by the fleet's board.
    let is_fleet_run = state.options.workers.as_ref().is_some_and(|workers| workers.fleet_name.is_some());
    let limit_suffix =
        format!(", at most {}", count_with_noun(state.options.max_iterations as usize, "session"));
    let limit_suffix = if is_fleet_run { "" } else { &limit_suffix };
    format!(
        "run \"{}\" ({}){limit_suffix}{plan_suffix}",
        to_safe_single_line(&state.options.task_name),
        state.run_id
    )
}

fn render_iteration_start(state: &RunState, model: Option<&str>) -> String {
    let item_suffix =
        current_unparked_item(state).map(|item| format!(": {}", truncate_end(item, 80))).unwrap_or_default();
    let resume_suffix =
        if state.iteration_record.resumes_checkpoint { " (resuming from the checkpoint)" } else { "" };
    let model_suffix = model.map(|model| format!(" [{}]", to_safe_single_line(model))).unwrap_or_default();
    let repeat_suffix = if state.has_iteration_number_been_used() { ", again" } else { "" };
    format!("── session {}{repeat_suffix}{item_suffix}{resume_suffix}{model_suffix}", state.iteration)
}

/// Renders which verify commands passed, and how long they took together.
pub fn render_verify_outcomes(outcomes: &[VerifyOutcome]) -> String {
    let render_outcome = |outcome: &VerifyOutcome| {
        let result_text = if outcome.passed { "passed" } else { "failed" };
        format!("`{}` {result_text}", truncate_end(&to_safe_single_line(&outcome.command), 80))
    };
    let outcome_texts: Vec<String> = outcomes.iter().map(render_outcome).collect();
    let seconds: u64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
    format!("verified: {} ({})", outcome_texts.join(", "), format_seconds(seconds.cast_signed()))
}

fn render_parked_question(question: &OpenQuestion) -> String {
    format!(
        "   \"{}\" waits for your answer: {} (plimsoll status)",
        truncate_end(&to_safe_single_line(&question.item), 80),
        truncate_end(&to_safe_single_line(&question.question), 200)
    )
}

/// Describes how a session ended and what ended it. The text follows "session 3".
fn render_session_ending(ending: &SessionEnding) -> String {
    let clip_text = |text: &str| truncate_end(&to_safe_single_line(text), 120);
    match ending {
        SessionEnding::Completed => "ended its turn".to_owned(),
        SessionEnding::HookStopped => "was ended by Plimsoll at its checkpoint".to_owned(),
        SessionEnding::WindowFull(reason) => {
            format!("ended: the context window was full ({})", clip_text(reason))
        }
        SessionEnding::ClientLimit(limit) => format!("was ended by Claude Code's {}", clip_text(limit)),
        SessionEnding::Fatal(error) => format!("failed: {}", clip_text(error.message())),
        SessionEnding::Limit(reason) => format!("met a usage limit: {}", clip_text(reason)),
        SessionEnding::Overloaded(reason) => format!("ended: the API failed ({})", clip_text(reason)),
        SessionEnding::IdleTimeout(reason) => format!("was ended by Plimsoll: {}", clip_text(reason)),
        SessionEnding::DeadlineReached => "was ended by Plimsoll: the deadline has passed".to_owned(),
        SessionEnding::Interrupted => "was ended by you (Ctrl-C, or a signal)".to_owned(),
        SessionEnding::Canceled => "was ended by `plimsoll stop`".to_owned(),
        SessionEnding::Crashed(exit_description) => {
            format!("crashed: Claude Code {}", clip_text(exit_description))
        }
        SessionEnding::Failed(reason) => format!("failed: {}", clip_text(reason)),
        SessionEnding::Unknown => "ended".to_owned(),
    }
}

/// Describes whether the session's item is still open, because a session may end before it finishes the item.
fn render_item_state(item: Option<(&str, bool)>) -> String {
    let Some((item, is_open)) = item else { return String::new() };
    let state_text = if is_open { "is still open" } else { "is ticked" };
    format!("; \"{}\" {state_text}", truncate_end(&to_safe_single_line(item), 80))
}

fn render_denied_tools_and_resume_command_if_any(state: &RunState, tools: &[String]) -> String {
    let tool_names = to_safe_single_line(&tools.join(", "));
    let (tool, pronoun) = if tools.len() == 1 { ("tool", "it") } else { ("tools", "them") };
    match render_resume_command_if_tools_can_be_allowed(state, tools, "--resume") {
        Some(command) => {
            format!(
                "Claude Code refused the {tool} {tool_names}: allow {pronoun}, after Ctrl-C, with: {command}"
            )
        }
        None => {
            format!("Claude Code refused the {tool} {tool_names}: your settings or arguments decide this")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::record::{LastUsage, LevelAnnouncement};

    #[test]
    fn the_end_of_a_session_says_who_ended_it_and_whether_its_item_is_open() {
        for (session_ending, expected) in [
            (SessionEnding::Interrupted, "was ended by you (Ctrl-C, or a signal)"),
            (SessionEnding::Canceled, "was ended by `plimsoll stop`"),
            (
                SessionEnding::IdleTimeout("no output for 30 min".into()),
                "was ended by Plimsoll: no output for 30 min",
            ),
            (SessionEnding::DeadlineReached, "was ended by Plimsoll: the deadline has passed"),
            (SessionEnding::Crashed("ended by signal 9".into()), "crashed: Claude Code ended by signal 9"),
            (SessionEnding::Completed, "ended its turn"),
        ] {
            assert_eq!(render_session_ending(&session_ending), expected);
        }
        assert_eq!(render_item_state(Some(("Item\ntwo", true))), "; \"Item two\" is still open");
        assert_eq!(render_item_state(Some(("Item two", false))), "; \"Item two\" is ticked");
        assert_eq!(render_item_state(None), "");
    }

    #[test]
    fn a_level_is_shown_with_the_percentage_when_it_was_announced() {
        let record = SessionRecord {
            highest_announcement: LevelAnnouncement { level: Level::L1, projected_percent: Some(71) },
            usage: LastUsage { projected_percent: Some(73), ..LastUsage::default() },
            ..SessionRecord::default()
        };
        assert_eq!(render_announced_level(&record), "   L1 (warn) at 71%");
    }
}
