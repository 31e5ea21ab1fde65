//! The first screen: did it end well, what is done, what it cost, what to do now.

use super::{ReportPage, day_and_time, dollars};
use crate::commands::report::contents::{At, ItemOutcome, Report, Step};
use crate::commands::run::progress::for_people;
use chrono::Local;
use plimsoll_domain::Status;
use plimsoll_domain::text::{counted, tokens};

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    page.add("<header>\n<p class=\"brand\">Plimsoll · report of the run</p>\n<h1>");
    page.say(&report.name);
    page.add("</h1>\n");
    if !report.objective.is_empty() && report.objective != report.name {
        page.add("<p class=\"objective\">");
        page.say(&report.objective);
        page.add("</p>\n");
    }
    when(page, report);
    let (tone, sign, word) = verdict(report);
    page.add(&format!(
        "<p class=\"verdict {tone}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span> <strong>{word}</strong> "
    ));
    page.add("<span class=\"why\">");
    for (place, words) in report.standing.iter().enumerate() {
        page.add(if place > 0 { " " } else { "" });
        page.say(words);
    }
    page.add("</span></p>\n</header>\n");
    figures(page, report);
    steps(page, &report.steps);
}

fn when(page: &mut ReportPage, report: &Report) {
    let from = report.started.map_or("not recorded".to_owned(), day_and_time);
    let to = match report.ended {
        Some(ended) => format!("{from} – {}", until(report, ended)),
        None if report.status.is_over() => format!("{from} – not recorded"),
        None if report.status == Status::Paused => {
            format!("{from} – as of {}, not over yet", day_and_time(report.looked))
        }
        None if !report.is_live => format!("{from} – as of {}, not over yet", day_and_time(report.looked)),
        None => format!("{from} – as of {}, still running", day_and_time(report.looked)),
    };
    page.element("p", "when", &to);
    page.add("\n");
}

/// On the day on which it began the clock is enough.
fn until(report: &Report, ended: At) -> String {
    let day = |at: At| at.with_timezone(&Local).date_naive();
    match report.started.filter(|started| day(*started) == day(ended)) {
        Some(_) => ended.with_timezone(&Local).format("%H:%M").to_string(),
        None => day_and_time(ended),
    }
}

/// Colour, sign and word: each is enough alone.
fn verdict(report: &Report) -> (&'static str, &'static str, &'static str) {
    match report.status {
        Status::Completed => ("good", "✓", "Done."),
        Status::Running if !report.is_live => ("wait", "‖", "Interrupted."),
        Status::Running => ("going", "▸", "Still running."),
        Status::Paused => ("wait", "‖", "Paused."),
        Status::Blocked => ("wait", "?", "It needs an answer."),
        Status::MaxIterations => ("wait", "■", "Out of sessions."),
        Status::Budget => ("wait", "■", "Out of budget."),
        Status::Deadline => ("wait", "■", "Out of time."),
        Status::CircuitBreaker => ("bad", "✕", "Stuck."),
        Status::FatalError => ("bad", "✕", "It could not continue."),
        Status::Cancelled => ("wait", "■", "Cancelled."),
    }
}

fn figures(page: &mut ReportPage, report: &Report) {
    page.add("<dl class=\"figures\">\n");
    items(page, report);
    cost(page, report);
    tokens_used(page, report);
    time(page, report);
    sessions(page, report);
    page.add("</dl>\n");
}

/// No session was free: a missing figure was not recorded.
const NOT_TOLD: &str = "not recorded";

fn cost(page: &mut ReportPage, report: &Report) {
    let cost = report.cost;
    if cost.usd <= 0.0 {
        let note = cost
            .max_usd
            .map_or("the client reported none".to_owned(), |most| format!("of {}", dollars(most)));
        return figure(page, "Cost", NOT_TOLD, &note);
    }
    let about = if cost.is_reckoned { "about " } else { "" };
    let of = cost.max_usd.map(|most| format!("of {} · ", dollars(most))).unwrap_or_default();
    let reckoned =
        if cost.is_reckoned { "partly estimated by Plimsoll" } else { "as reported by Claude Code" };
    figure(page, "Cost", &format!("{about}{}", dollars(cost.usd)), &format!("{of}{reckoned}"));
}

fn tokens_used(page: &mut ReportPage, report: &Report) {
    let cost = report.cost;
    let of = cost
        .max_tokens
        .map_or("input and output, cache included".to_owned(), |most| format!("of {}", tokens(most)));
    let used = if cost.tokens == 0 { NOT_TOLD.to_owned() } else { tokens(cost.tokens) };
    figure(page, "Tokens", &used, &of);
}

fn figure(page: &mut ReportPage, name: &str, value: &str, note: &str) {
    page.add("<div>");
    page.element("dt", "", name);
    page.element("dd", "", value);
    page.element("dd", "sub", note);
    page.add("</div>\n");
}

fn items(page: &mut ReportPage, report: &Report) {
    let count = |fate: ItemOutcome| report.items.iter().filter(|item| item.fate == fate).count();
    let (done, all) = (count(ItemOutcome::Done), report.items.len());
    if all == 0 {
        return figure(page, "Items", "none", "promise and verify commands decide");
    }
    let parts = [
        (count(ItemOutcome::Open), "open"),
        (count(ItemOutcome::SetAside), "set aside"),
        (count(ItemOutcome::Gone), "gone from the plan"),
    ];
    let rest: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let rest = if rest.is_empty() { "none is open".to_owned() } else { rest.join(" · ") };
    page.add("<div class=\"wide\">");
    page.element("dt", "", "Items");
    page.element("dd", "", &format!("{done} of {all} done"));
    let share = |count: usize| count as f64 * 100.0 / all as f64;
    page.add("<dd class=\"bar\" aria-hidden=\"true\">");
    for (class, fate) in [
        ("done", ItemOutcome::Done),
        ("open", ItemOutcome::Open),
        ("aside", ItemOutcome::SetAside),
        ("gone", ItemOutcome::Gone),
    ] {
        if count(fate) > 0 {
            page.add(&format!("<span class=\"{class}\" style=\"width:{:.2}%\"></span>", share(count(fate))));
        }
    }
    page.add("</dd>");
    page.element("dd", "sub", &rest);
    page.add("</div>\n");
}

fn time(page: &mut ReportPage, report: &Report) {
    let took = report.started.map(|started| (report.until() - started).num_seconds().max(0));
    let worked = report.worked().map_or(NOT_TOLD.to_owned(), for_people);
    let stood = match report.stood() {
        0 => String::new(),
        seconds => format!(" · {} paused", for_people(seconds)),
    };
    figure(page, "Time", &took.map_or("?".to_owned(), for_people), &format!("{worked} in sessions{stood}"));
}

fn sessions(page: &mut ReportPage, report: &Report) {
    let checkpoints = report.handoffs.len();
    let pauses = report.pauses.len();
    let all = report.sittings.len();
    let counting =
        if report.counted as usize == all { String::new() } else { format!("{} count, ", report.counted) };
    let mut notes = vec![format!("{counting}of at most {}", report.max_sessions)];
    notes.extend((checkpoints > 0).then(|| counted(checkpoints, "handoff")));
    notes.extend((pauses > 0).then(|| counted(pauses, "pause")));
    figure(page, "Sessions", &all.to_string(), &notes.join(" · "));
}

fn steps(page: &mut ReportPage, steps: &[Step]) {
    page.section("next", "What to do now");
    page.add("<ol class=\"steps\">\n");
    for step in steps {
        page.add("<li><p>");
        page.say(&step.words);
        page.add("</p>");
        if let Some(command) = &step.command {
            page.command(command);
        }
        page.add("</li>\n");
    }
    page.add("</ol>\n");
    page.end_section();
}
