//! The screen: a pure function from what is known to at most 24 lines, whatever the run's size, and a line for each
//! further question.

use super::words::{next, standing, troubles};
use crate::branch;
use crate::changed_checks;
use crate::questions;
use crate::reviews;
use crate::run_status::View;
use plimsoll_domain::limits::QuotaWindow;
use plimsoll_domain::state::{Cause, HistoryEntry};
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_store::clock;
use plimsoll_terminal::columns;
use plimsoll_terminal::duration::for_people as duration;
use plimsoll_terminal::figure_words::{running_words, worker_parts};

/// How many done items, and how many open ones, are named at most.
const NAMED: usize = 3;
/// Where the words begin behind a title.
pub(super) const INDENT: usize = 13;

impl View {
    /// The lines. What has nothing to say is left out; what says much is cut.
    pub(super) fn lines(&self) -> Vec<String> {
        let state = &self.state;
        let mut lines = vec![columns::clip(
            &format!("{} ({})", plain(&state.options.task_name), state.run_id),
            self.width,
        )];
        lines.extend(self.wrapped("Status", &standing(self).to_string()));
        lines.extend(self.in_hand().map(|words| self.line("Current item", &words)));
        lines.extend(self.context.iter().map(|words| self.line("Context", words)));
        lines.extend(self.items());
        lines.extend(self.questions());
        lines.extend(self.workers());
        lines.push(self.line("Sessions", &self.sessions()));
        lines.extend(self.peaks().map(|words| self.line("Peaks", &words)));
        lines.extend(self.checkpoints().map(|words| self.line("Checkpoints", &words)));
        lines.push(self.line("Cost", &self.cost()));
        lines.extend(reviews::open(&self.state).map(|words| self.line("Reviews", &words)));
        lines.extend(self.quota().map(|words| self.line("Quota", &words)));
        lines.push(self.line("Time", &self.time()));
        lines.extend(
            changed_checks::protected_sentence(state)
                .map(|words| self.line("Protected", &words))
                .or_else(|| changed_checks::sentence(state).map(|words| self.line("Checks", &words))),
        );
        lines.extend(self.taken_back().or_else(|| self.refused()));
        lines.extend(troubles(state).map(|words| self.line("Trouble", &words)));
        lines.extend(self.branch());
        lines.extend(self.next());
        let recorded = self.recorded.as_ref().map(|words| format!("; recorded: {words}"));
        let more =
            format!("plimsoll report, plimsoll log, or {}{}", self.journal, recorded.unwrap_or_default());
        lines.push(self.line("More", &more));
        lines
    }

    fn line(&self, title: &str, words: &str) -> String {
        line(title, words, self.width)
    }

    fn wrapped(&self, title: &str, words: &str) -> Vec<String> {
        wrapped(title, words, self.width)
    }

    /// The command that merges it is there to be copied: it is neither cut nor broken.
    fn branch(&self) -> Option<String> {
        let name = self.state.options.branch.as_ref()?;
        let (_, command) = branch::merge_step(&self.state)?;
        let merge = command.map_or(String::new(), |command| format!("; to merge it: {command}"));
        Some(format!("{:<INDENT$}{}{merge}", "Branch", one_line(name)))
    }

    /// A whole command that is longer than the line is not cut: it is there to be copied.
    fn next(&self) -> Vec<String> {
        let words = one_line(&next(self));
        let (_, rest) = columns::broken(&words, self.width.saturating_sub(INDENT));
        if words.contains(" -- ") && !rest.is_empty() {
            vec![format!("{:<INDENT$}{words}", "Next")]
        } else {
            self.wrapped("Next", &words)
        }
    }

    pub(super) fn in_hand(&self) -> Option<String> {
        if self.has_workers() || self.state.lifecycle.is_over() || self.state.iteration == 0 {
            return None;
        }
        let item = item_in_hand(&self.state).map(|item| format!("\"{}\", ", clip(item, 60)));
        Some(format!("{}session {}", item.unwrap_or_default(), self.state.iteration))
    }

    pub(super) fn items(&self) -> Vec<String> {
        let counts = &self.figures.items;
        if counts.total == 0 {
            return vec![self.line("Items", "none: promise and verify commands decide")];
        }
        let of_them = |count: usize, words: &str| match count {
            0 => String::new(),
            count => format!(", {count} of them {words}"),
        };
        let aside = of_them(counts.set_aside, "set aside");
        // With one session after another the current item says it.
        let in_work = if self.has_workers() { of_them(counts.in_work, "in work") } else { String::new() };
        let to_merge = of_them(counts.to_merge, "to be merged");
        let parked = questions::waiting(&self.state).map(|words| format!(", {words}")).unwrap_or_default();
        let open = match counts.open {
            0 => String::new(),
            open => format!(", {open} open{in_work}{to_merge}{aside}{parked}"),
        };
        let mut lines = vec![self.line("Items", &format!("{} of {} done{open}", counts.done, counts.total))];
        let row = |mark: char, words: String| {
            columns::clip(&format!("  [{mark}] {}", one_line(&words)), self.width)
        };
        let (done, open) = (self.last_done(), self.next_open());
        // The count above says how many are done.
        lines.extend(done.into_iter().map(|item| row('x', item)));
        let more = self.state.items.todo_items.len() - open.len();
        let more_open = (more > 0).then(|| format!("      … {more} more"));
        lines.extend(open.into_iter().map(|item| row(' ', item)));
        lines.extend(more_open);
        lines
    }

    /// A line for each worker, and for each item that waits for something else.
    pub(super) fn workers(&self) -> Vec<String> {
        let workers = self.figures.workers.iter().map(|worker| worker_parts(worker).join(": "));
        let titles = std::iter::once("Workers").chain(std::iter::repeat(""));
        let lines = workers.chain(self.pending_items.iter().cloned());
        lines.zip(titles).map(|(words, title)| self.line(title, &words)).collect()
    }

    /// All open questions, because their numbers are learned here, and how to answer.
    fn questions(&self) -> Vec<String> {
        let parked = &self.state.items.parked;
        let titles = std::iter::once("Question").chain(std::iter::repeat(""));
        let answer = (!parked.is_empty()).then(|| questions::command(1));
        let all = (1..).zip(parked).map(|(number, open)| questions::line(number, open));
        all.chain(answer).zip(titles).map(|(words, title)| self.line(title, &words)).collect()
    }

    /// In the order in which they were ticked, as far as that was seen.
    fn last_done(&self) -> Vec<String> {
        let state = &self.state;
        let seen = |item: &&String| state.items.ever_done.contains(item);
        let unseen = state.items.completed_items.iter().filter(|item| !seen(item));
        let in_order = state.items.ever_done.iter().filter(|item| state.items.completed_items.contains(item));
        let all: Vec<&String> = unseen.chain(in_order).collect();
        all.iter().skip(all.len().saturating_sub(NAMED)).map(|item| (*item).clone()).collect()
    }

    /// The next ones; one that is set aside or waits for an answer is always named.
    fn next_open(&self) -> Vec<String> {
        let is_parked = |item: &String| self.state.is_parked(item);
        let aside = |item: &&String| self.state.items.set_aside.contains(item) || is_parked(item);
        let all = &self.state.items.todo_items;
        let (set_aside, ahead): (Vec<&String>, Vec<&String>) = all.iter().partition(aside);
        let room = if set_aside.is_empty() || all.len() <= NAMED { NAMED } else { NAMED - 1 };
        let ahead = ahead.into_iter().take(room).cloned();
        let set_aside = set_aside.iter().map(|item| {
            let why = if is_parked(item) { "waits for your answer" } else { "set aside" };
            format!("{} ({why})", clip(&one_line(item), 80))
        });
        ahead.chain(set_aside).take(NAMED).collect()
    }

    fn sessions(&self) -> String {
        let state = &self.state;
        let pauses = match state.lifecycle.pauses() {
            0 => String::new(),
            number => format!(", {}", counted(number as usize, "pause")),
        };
        let running = running_words(&self.figures);
        format!(
            "{} of at most {}{running}{pauses}",
            self.figures.sessions_started, state.options.max_iterations
        )
    }

    fn peaks(&self) -> Option<String> {
        let history = &self.state.context_history;
        let legend = if history.iter().any(|entry| entry.checkpoint) { " (* checkpoint)" } else { "" };
        let room = self.width.saturating_sub(INDENT + legend.chars().count() + 2);
        let peaks = newest(history, room);
        (!peaks.is_empty()).then(|| format!("{peaks}{legend}"))
    }

    pub(super) fn checkpoints(&self) -> Option<String> {
        let last = &self.state.context_checkpoint;
        if last.handoff_file.is_empty() {
            return None;
        }
        let number = self.state.context_history.iter().filter(|entry| entry.checkpoint).count();
        let percent = last.percent_at_checkpoint.map(|percent| format!(" at {percent}%")).unwrap_or_default();
        let cause = match last.cause {
            Cause::Level => last.level.to_string(),
            cause => cause.shown_word().to_owned(),
        };
        let of = format!("({cause}{percent}, session {})", last.iteration);
        Some(format!("{}the last: {} {of}", with_one(number), last.handoff_file))
    }

    /// What all runs have spent on the day, as this one last added it up.
    fn of_day(&self) -> String {
        let most = self.state.options.limits.max_cost_per_day_usd;
        let today = self.state.spent.spent_today.as_ref();
        let words = most.zip(today).map(|(most, today)| {
            format!(" (all runs {} of ${most:.2} a day)", today.basis.format_usd(today.usd))
        });
        words.unwrap_or_default()
    }

    pub(super) fn cost(&self) -> String {
        let (state, limits) = (&self.state, &self.state.options.limits);
        let money = limits.max_cost_usd.map(|most| format!(" of ${most:.2}")).unwrap_or_default();
        let money = money + &self.of_day();
        let most = limits.max_tokens.map(|most| format!(" of {}", tokens(most))).unwrap_or_default();
        let spent = self.figures.cost_basis.format_usd(self.figures.cost_usd);
        let reviews = reviews::cost(state).map(|words| format!(", {words}")).unwrap_or_default();
        format!("{spent}{money}, {}{most} tokens{reviews}", tokens(self.figures.tokens))
    }

    pub(super) fn quota(&self) -> Option<String> {
        let quota = &self.state.spent.quota;
        let windows = [("five-hour", &quota.five_hour), ("weekly", &quota.seven_day)];
        let known: Vec<String> = windows
            .into_iter()
            .filter_map(|(name, window)| window.as_ref().map(|window| quota_words(name, window)))
            .collect();
        let stop = self.state.options.limits.stop_at_limit_percent;
        let stop = stop.map(|percent| format!("; waits at {percent}%")).unwrap_or_default();
        (!known.is_empty()).then(|| format!("{}{stop}", known.join(", ")))
    }

    pub(super) fn time(&self) -> String {
        let state = &self.state;
        let started = clock::moment(&state.at_start.started_at);
        let ended = state.lifecycle.ended_at().and_then(clock::moment);
        let took =
            started.map(|started| duration((ended.unwrap_or(self.now) - started).num_seconds().max(0)));
        let took = took.unwrap_or_else(|| "?".to_owned());
        let started = started.map_or("?".to_owned(), clock::for_people);
        let so_far = match ended {
            Some(ended) => format!(", ended {}, took {took}", clock::for_people(ended)),
            None => format!(", {took} ago"),
        };
        let deadline = state.options.limits.deadline.as_ref().and_then(clock::moment).map(clock::for_people);
        let deadline = deadline.map(|deadline| format!(", deadline {deadline}")).unwrap_or_default();
        let verified = match state.spent.verify_seconds {
            0 => String::new(),
            seconds => format!(", {} in verify commands", duration(seconds.cast_signed())),
        };
        format!("started {started}{so_far}{deadline}{verified}")
    }

    /// A promise that came with ticks which did not hold was refused for these.
    fn taken_back(&self) -> Option<String> {
        let taken = self.state.outcomes.taken_back.as_ref()?;
        Some(self.line("Taken back", &format!("{} (session {})", taken.words(), taken.iteration)))
    }

    fn refused(&self) -> Option<String> {
        let reasons = &self.state.outcomes.refusals;
        let first = reasons.first()?.lines().next()?;
        let more =
            if reasons.len() > 1 { format!(" (and {} more)", reasons.len() - 1) } else { String::new() };
        let room = self.width.saturating_sub(INDENT + more.chars().count());
        Some(self.line("Refused", &format!("{}{more}", columns::clip(&one_line(first), room))))
    }
}

fn plain(name: &str) -> String {
    clip(&one_line(name), 60)
}

/// A session has one handoff: this many of them ended at theirs.
fn with_one(sessions: usize) -> String {
    match sessions {
        0 => String::new(),
        number => format!("{}, ", counted(number, "session")),
    }
}

fn quota_words(name: &str, window: &QuotaWindow) -> String {
    let resets = window.resets_at.as_ref().and_then(clock::moment).map(clock::for_people);
    let resets = resets.map(|at| format!(" (resets {at})")).unwrap_or_default();
    format!("{name} {:.0}%{resets}", window.percent)
}

/// A title and words on one line, cut at the width.
fn line(title: &str, words: &str, width: usize) -> String {
    columns::clip(format!("{title:<INDENT$}{}", one_line(words)).trim_end(), width)
}

/// A title and words on one line or two.
pub(super) fn wrapped(title: &str, words: &str, width: usize) -> Vec<String> {
    let words = one_line(words);
    let (first, rest) = columns::broken(&words, width.saturating_sub(INDENT));
    let second = (!rest.is_empty()).then(|| line("", rest, width));
    [line(title, first, width)].into_iter().chain(second).collect()
}

/// The newest peaks that fit, oldest of them first; `…` where older ones are left out.
fn newest(history: &[HistoryEntry], room: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut length = 0;
    for peak in history.iter().rev().map(peak) {
        length += peak.chars().count() + 1;
        if length > room {
            shown.push("…".to_owned());
            break;
        }
        shown.push(peak);
    }
    shown.reverse();
    shown.join(" ")
}

fn peak(entry: &HistoryEntry) -> String {
    let star = if entry.checkpoint { "*" } else { "" };
    match entry.peak_percent {
        0 => format!("?{star}"),
        percent => format!("{percent}%{star}"),
    }
}
