//! What the user sees of a run: a bar on a terminal, plain lines elsewhere, JSON for scripts.

mod colours;
mod json;
pub mod telemetry;

use crate::allowed_tools::allowing;
use crate::console::{self, Painted};
use crate::duration::for_people;
use crate::figure_words::{api_trouble, terminal_lines};
use crate::signals;
use crate::worker_words;
use indicatif::{ProgressBar, ProgressStyle};
use json::Json;
pub use json::over;
use plimsoll_domain::level::Level;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_domain::{Ending, RunState, SessionRecord, Timestamp};
use plimsoll_flows::run::{Interrupt, Interrupts, Progress, RunObserver};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::statusline::{LoadView, View, load_line};
use plimsoll_store::clock;
use std::time::Duration;

/// How to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A live bar under the lines.
    Bar,
    /// Lines.
    Plain,
    /// One JSON object per event.
    Json,
}

impl Style {
    /// A bar for people, lines for files.
    pub fn fitting() -> Style {
        let both = console::is_error_terminal() && console::is_terminal();
        if both { Style::Bar } else { Style::Plain }
    }
}

/// A watcher that also counts Ctrl-C (and takes SIGTERM and SIGHUP for a request to end now). `continues` is what goes on later.
pub fn watcher(style: Style, continues: &str) -> std::io::Result<Box<dyn RunObserver>> {
    let interrupts = Interrupts::default();
    let ignored = plimsoll_launcher::process::ignored_signals();
    let bar = (style == Style::Bar).then(bar);
    // What was ignored when we were started (SIGHUP under nohup) stays ignored.
    let signals = [(2, Interrupt::Once), (15, Interrupt::Twice), (1, Interrupt::Twice)];
    for (signal, interrupt) in signals.into_iter().filter(|(signal, _)| ignored & (1 << (signal - 1)) == 0) {
        let counter = interrupts.clone();
        // At once, not when the client says something next: who hears nothing presses it again.
        let answer: Box<dyn Fn(Interrupt) + Send> = match (&bar, style) {
            (_, Style::Json) => Box::new(|_| ()),
            (bar, _) => {
                let (bar, continues) = (bar.clone(), continues.to_owned());
                Box::new(move |asked| {
                    print(bar.as_ref(), &format!("   {}", understood(asked, &continues)), None);
                })
            }
        };
        signals::listen(signal, move || counter.add(interrupt), answer)?;
    }
    Ok(match style {
        Style::Json => Box::new(Json::new(interrupts)),
        Style::Plain | Style::Bar => {
            Box::new(Lines { interrupts, bar, announced: Level::L0, has_workers: false })
        }
    })
}

/// What follows from an interrupt.
fn understood(asked: Interrupt, continues: &str) -> String {
    match asked {
        Interrupt::Once => {
            format!("stopping after the current session (Ctrl-C again ends it now); {continues} continues")
        }
        Interrupt::Twice | Interrupt::Again => "ending the session now".to_owned(),
    }
}

/// A line, above the bar where there is one; in a colour on a terminal that may have some.
fn print(bar: Option<&ProgressBar>, line: &str, colour: Option<&'static str>) {
    match (bar, colour.filter(|_| console::has_colours())) {
        (Some(bar), None) => console::say_above(bar, line),
        (Some(bar), colour) => line.lines().for_each(|line| {
            console::paint_above(bar, &Painted::default().then(colour, line));
        }),
        (None, _) => console::say(line),
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg} {elapsed_precise}"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

struct Lines {
    interrupts: Interrupts,
    bar: Option<ProgressBar>,
    /// The highest level that has been shown of the current session.
    announced: Level,
    /// True once the bar has a line for each worker.
    has_workers: bool,
}

impl RunObserver for Lines {
    fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    fn tell(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Load { state, record, figures } => self.load(state, record, figures),
            Progress::Iteration { .. } => self.announced = Level::L0,
            Progress::Figures { figures } => {
                if let Some(bar) = &self.bar {
                    if !std::mem::replace(&mut self.has_workers, true) {
                        bar.set_style(style("{msg}\n{spinner} {elapsed_precise}"));
                    }
                    console::set_lines(bar, &terminal_lines(figures));
                }
            }
            Progress::Waiting { until } => {
                if let Some(bar) = &self.bar {
                    let left = (*until - clock::now()).num_seconds().max(0);
                    let until = clock::for_people(*until);
                    console::set_message(bar, &format!("paused until {until}, {} left", for_people(left)));
                }
            }
            _ => {}
        }
        if let Some(line) = line(progress) {
            self.print(&line, colours::of(progress));
        }
    }
}

impl Lines {
    fn load(&mut self, state: &RunState, record: &SessionRecord, figures: &RunFigures) {
        if record.announced.level > self.announced {
            self.announced = record.announced.level;
            self.print(&announced(record), colours::of_level(self.announced));
        }
        if let Some(bar) = &self.bar {
            console::set_message(bar, &summary(state, record, figures));
        }
    }

    fn print(&self, line: &str, colour: Option<&'static str>) {
        print(self.bar.as_ref(), line, colour);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The level at which a session is, with the percent at which it was announced: it may be fuller by now.
fn announced(record: &SessionRecord) -> String {
    let handoff = record.checkpoint.handoff.as_ref().map(|file| format!(": {file}")).unwrap_or_default();
    let percent = record.announced.percent.unwrap_or(0);
    format!("   {} ({}) at {percent}%{handoff}", record.announced.level, record.announced.level.word())
}

/// Items, load line, cost: what a glance wants to know.
fn summary(state: &RunState, record: &SessionRecord, figures: &RunFigures) -> String {
    let (done, total) = (figures.items.done, figures.items.total);
    let items = if total > 0 {
        format!("[{}{}] {done}/{total} items", "■".repeat(done.min(20)), "·".repeat((total - done).min(20)))
    } else {
        String::new()
    };
    let reading = record.usage.reading.as_ref();
    let used = reading.map(|reading| reading.used);
    let load = LoadView { percent: record.usage.percent_used, used, ..LoadView::default() };
    let size = reading.map(|reading| format!(" {}", tokens(reading.used))).unwrap_or_default();
    let stops = if state.iteration_record.stops_after { " stops after this session" } else { "" };
    let trouble = state.iteration_record.api_trouble.as_ref();
    let trouble = trouble
        .map(|known| format!(" {}", api_trouble(known.status, &Timestamp::from(known.since.as_str()))))
        .unwrap_or_default();
    format!(
        "iteration {}/{} {items} {}{size} {}{stops}{trouble}",
        figures.sessions_started,
        state.options.max_iterations,
        load_line(&View { load, ..View::default() }, 20),
        figures.cost_basis.format_usd(figures.cost_usd)
    )
}

fn line(progress: &Progress<'_>) -> Option<String> {
    Some(match progress {
        Progress::Run { state } => {
            let todo = state
                .options
                .users_plan()
                .map(|file| format!(", {} in {file}", counted(state.items.todo_items.len(), "open item")))
                .unwrap_or_default();
            // What all machines of a fleet may begin is counted elsewhere.
            let is_of_fleet = state.options.workers.as_ref().is_some_and(|workers| workers.fleet.is_some());
            let most = format!(", at most {}", counted(state.options.max_iterations as usize, "session"));
            let most = if is_of_fleet { "" } else { &most };
            format!("run \"{}\" ({}){most}{todo}", one_line(&state.options.task_name), state.run_id)
        }
        Progress::Iteration { state, model } => {
            let item = item_in_hand(state).map(|item| format!(": {}", clip(item, 80))).unwrap_or_default();
            let resuming =
                if state.iteration_record.resuming { " (resuming from the checkpoint)" } else { "" };
            let model = model.map(|model| format!(" [{}]", one_line(model))).unwrap_or_default();
            let again = if state.is_iteration_repeated() { ", again" } else { "" };
            format!("── iteration {}{again}{item}{resuming}{model}", state.iteration)
        }
        Progress::Client { model, version } => format!("   client {version}, {model}"),
        Progress::Tool { name, detail } => format!("   {name} {detail}").trim_end().to_owned(),
        Progress::Retry { status, since } => {
            format!("   {}", api_trouble(*status, &Timestamp::from(since.as_str())))
        }
        Progress::Compacted => "   the client has compacted".to_owned(),
        Progress::Ended { iteration, ended, item } => {
            format!("   iteration {iteration} {}{}", ending(&ended.ending), still_open(*item))
        }
        Progress::Denied { state, tools } => format!("   {}", denied(state, tools)),
        Progress::Judged { state, verdict } => {
            let cost = state.spent.cost_basis().format_usd(state.spent.cost_usd);
            format!("   {}   ({cost})", verdict.marker())
        }
        Progress::Verified { outcomes } => format!("   {}", verified(outcomes)),
        Progress::Reviewed { reviewed } => format!("   {}", reviewed.words()),
        Progress::TakenBack { taken } => format!("   {}", taken.words()),
        Progress::Parked { question } => parked(question),
        Progress::Pause { until, seconds, reason } => format!(
            "   paused until {} ({}): {}",
            clock::for_people(*until),
            for_people(*seconds as i64),
            one_line(reason)
        ),
        Progress::Workers { event } => worker_words::words(event)?,
        Progress::Note(words) => format!("   {words}"),
        Progress::Fault { error, seconds } => format!("   {error}; trying again in {seconds} s"),
        // The exit code and standard error report it.
        Progress::Over { .. } | Progress::Failed { .. } => return None,
        // What Ctrl-C means was said when it was pressed.
        Progress::Load { .. }
        | Progress::Waiting { .. }
        | Progress::Figures { .. }
        | Progress::StopRequested => return None,
    })
}

/// Which verify commands passed, and how long they took.
pub fn verified(outcomes: &[VerifyOutcome]) -> String {
    let one = |outcome: &VerifyOutcome| {
        let how = if outcome.passed { "passed" } else { "failed" };
        format!("`{}` {how}", clip(&one_line(&outcome.command), 80))
    };
    let all: Vec<String> = outcomes.iter().map(one).collect();
    let seconds: u64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
    format!("verified: {} ({})", all.join(", "), for_people(seconds.cast_signed()))
}

fn parked(open: &OpenQuestion) -> String {
    format!(
        "   \"{}\" waits for your answer: {} (plimsoll status)",
        clip(&one_line(&open.item), 80),
        clip(&one_line(&open.question), 200)
    )
}

/// How a session ended, and who ended it: what follows "iteration 3".
fn ending(ending: &Ending) -> String {
    let words = |words: &str| clip(&one_line(words), 120);
    match ending {
        Ending::Completed => "ended its turn".to_owned(),
        Ending::HookStopped => "was ended by Plimsoll at its checkpoint".to_owned(),
        Ending::WindowFull(why) => format!("ended: the context window was full ({})", words(why)),
        Ending::ClientLimit(which) => format!("was ended by the client's {}", words(which)),
        Ending::Fatal(why) => format!("failed: {}", words(why.words())),
        Ending::Limit(why) => format!("met a usage limit: {}", words(why)),
        Ending::Overloaded(why) => format!("ended: the API failed ({})", words(why)),
        Ending::Silent(why) => format!("was ended by Plimsoll: {}", words(why)),
        Ending::OutOfTime => "was ended by Plimsoll: the deadline has passed".to_owned(),
        Ending::Interrupted => "was ended by you (Ctrl-C, or a signal)".to_owned(),
        Ending::Cancelled => "was ended by `plimsoll stop`".to_owned(),
        Ending::Crashed(how) => format!("crashed: the client {}", words(how)),
        Ending::Failed(why) => format!("failed: {}", words(why)),
        Ending::Unknown => "ended".to_owned(),
    }
}

/// A session that has ended has not finished its item for that.
fn still_open(item: Option<(&str, bool)>) -> String {
    let Some((item, is_open)) = item else { return String::new() };
    let stands = if is_open { "is still open" } else { "is ticked" };
    format!("; \"{}\" {stands}", clip(&one_line(item), 80))
}

fn denied(state: &RunState, tools: &[String]) -> String {
    let named = one_line(&tools.join(", "));
    let (tool, it) = if tools.len() == 1 { ("tool", "it") } else { ("tools", "them") };
    match allowing(state, tools, "--resume") {
        Some(command) => {
            format!("the client refused the {tool} {named}: allow {it}, after Ctrl-C, with: {command}")
        }
        None => format!("the client refused the {tool} {named}: your settings or arguments decide this"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::record::{Announced, UsageSeen};

    #[test]
    fn who_ended_a_session_is_said_and_what_of_its_item_is_open() {
        for (of, words) in [
            (Ending::Interrupted, "was ended by you (Ctrl-C, or a signal)"),
            (Ending::Cancelled, "was ended by `plimsoll stop`"),
            (Ending::Silent("no output for 30 min".into()), "was ended by Plimsoll: no output for 30 min"),
            (Ending::OutOfTime, "was ended by Plimsoll: the deadline has passed"),
            (Ending::Crashed("ended by signal 9".into()), "crashed: the client ended by signal 9"),
            (Ending::Completed, "ended its turn"),
        ] {
            assert_eq!(ending(&of), words);
        }
        assert_eq!(still_open(Some(("Item\ntwo", true))), "; \"Item two\" is still open");
        assert_eq!(still_open(Some(("Item two", false))), "; \"Item two\" is ticked");
        assert_eq!(still_open(None), "");
    }

    #[test]
    fn a_level_is_shown_with_the_percent_at_which_it_was_announced() {
        let record = SessionRecord {
            announced: Announced { level: Level::L1, percent: Some(71) },
            usage: UsageSeen { percent: Some(73), ..UsageSeen::default() },
            ..SessionRecord::default()
        };
        assert_eq!(announced(&record), "   L1 (warn) at 71%");
    }
}
