//! The first screen: did it end well, what is done, what it cost, what to do now.

use super::{day_and_time, dollars, section};
use crate::commands::report::contents::{At, ItemOutcome, Report, Step};
use crate::endings::badge;
use chrono::Local;
use maud::{Markup, html};
use plimsoll_domain::Status;
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::text::{counted, tokens};
use plimsoll_terminal::duration::for_people;

pub(super) fn render(report: &Report) -> Markup {
    let (tone, sign, word) = badge(report.status, report.is_live);
    html! {
        header {
            p.brand { "Plimsoll · report of the run" }
            h1 { (report.name) }
            @if !report.objective.is_empty() && report.objective != report.name {
                p.objective { (report.objective) }
            }
            p.when { (when(report)) }
            p.verdict.(tone) {
                span.sign aria-hidden="true" { (sign) } " "
                strong { (word) } " "
                span.why {
                    @for (place, words) in report.standing.iter().enumerate() { @if place > 0 { " " } (words) }
                }
            }
        }
        dl.figures {
            (items(report))
            (cost(report))
            (tokens_used(report))
            (time_taken(report))
            (sessions(report))
        }
        (steps(&report.steps))
    }
}

fn when(report: &Report) -> String {
    let from = report.started.map_or("not recorded".to_owned(), day_and_time);
    match report.ended {
        Some(ended) => format!("{from} – {}", until(report, ended)),
        None if report.status.is_over() => format!("{from} – not recorded"),
        None if report.status == Status::Paused => {
            format!("{from} – as of {}, not over yet", day_and_time(report.looked))
        }
        None if !report.is_live => format!("{from} – as of {}, not over yet", day_and_time(report.looked)),
        None => format!("{from} – as of {}, still running", day_and_time(report.looked)),
    }
}

/// On the day on which it began the clock is enough.
fn until(report: &Report, ended: At) -> String {
    let day = |at: At| at.with_timezone(&Local).date_naive();
    match report.started.filter(|started| day(*started) == day(ended)) {
        Some(_) => ended.with_timezone(&Local).format("%H:%M").to_string(),
        None => day_and_time(ended),
    }
}

/// No session was free: a missing figure was not recorded.
const NOT_TOLD: &str = "not recorded";

fn figure(name: &str, value: &str, note: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } dd.sub { (note) } } }
}

fn cost(report: &Report) -> Markup {
    let cost = report.cost;
    if cost.usd <= 0.0 {
        let note = cost
            .max_usd
            .map_or("the client reported none".to_owned(), |most| format!("of {}", dollars(most)));
        return figure("Cost", NOT_TOLD, &note);
    }
    let of = cost.max_usd.map(|most| format!("of {} · ", dollars(most))).unwrap_or_default();
    let source = match cost.basis {
        CostBasis::Reported => "as reported by Claude Code",
        CostBasis::Estimated => "partly estimated by Plimsoll",
        CostBasis::AtMost => "partly estimated by Plimsoll, a model without a known price at the highest one",
    };
    let reviews = match cost.reviews {
        0 => String::new(),
        count => format!(" · {} for {}", dollars(cost.review_usd), counted(count as usize, "review")),
    };
    figure(
        "Cost",
        &format!("{}{}", cost.basis.prefix(), dollars(cost.usd)),
        &format!("{of}{source}{reviews}"),
    )
}

fn tokens_used(report: &Report) -> Markup {
    let cost = report.cost;
    let of = cost
        .max_tokens
        .map_or("input and output, cache included".to_owned(), |most| format!("of {}", tokens(most)));
    let used = if cost.tokens == 0 { NOT_TOLD.to_owned() } else { tokens(cost.tokens) };
    figure("Tokens", &used, &of)
}

fn items(report: &Report) -> Markup {
    let count = |outcome: ItemOutcome| report.items.iter().filter(|item| item.outcome == outcome).count();
    let (done, all) = (count(ItemOutcome::Done), report.items.len());
    if all == 0 {
        return figure("Items", "none", "promise and verify commands decide");
    }
    let parts = [
        (count(ItemOutcome::Open), "open"),
        (count(ItemOutcome::SetAside), "set aside"),
        (count(ItemOutcome::Parked), "waiting for an answer"),
        (count(ItemOutcome::Gone), "gone from the plan"),
    ];
    let rest: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let rest = if rest.is_empty() { "none is open".to_owned() } else { rest.join(" · ") };
    let share = |outcome| format!("width:{:.2}%", count(outcome) as f64 * 100.0 / all as f64);
    let bar = [
        ("done", ItemOutcome::Done),
        ("open", ItemOutcome::Open),
        ("aside", ItemOutcome::SetAside),
        ("aside", ItemOutcome::Parked),
        ("gone", ItemOutcome::Gone),
    ];
    html! {
        div.wide {
            dt { "Items" }
            dd { (done) " of " (all) " done" }
            dd.bar aria-hidden="true" {
                @for (class, outcome) in bar { @if count(outcome) > 0 { span class=(class) style=(share(outcome)) {} } }
            }
            dd.sub { (rest) }
        }
    }
}

fn time_taken(report: &Report) -> Markup {
    let took = report.started.map(|started| (report.until() - started).num_seconds().max(0));
    let worked = report.worked().map_or(NOT_TOLD.to_owned(), for_people);
    let stood = match report.stood() {
        0 => String::new(),
        seconds => format!(" · {} paused", for_people(seconds)),
    };
    let verified = match report.verified {
        0 => String::new(),
        seconds => format!(" · {} in verify commands", for_people(seconds.cast_signed())),
    };
    figure(
        "Time",
        &took.map_or("?".to_owned(), for_people),
        &format!("{worked} in sessions{verified}{stood}"),
    )
}

fn sessions(report: &Report) -> Markup {
    let checkpoints = report.handoffs.len();
    let pauses = report.pauses.len();
    let all = report.all_sessions().count();
    let counting =
        if report.counted as usize == all { String::new() } else { format!("{} count, ", report.counted) };
    let mut notes = vec![format!("{counting}of at most {}", report.max_sessions)];
    notes.extend((checkpoints > 0).then(|| counted(checkpoints, "handoff")));
    notes.extend((pauses > 0).then(|| counted(pauses, "pause")));
    figure("Sessions", &all.to_string(), &notes.join(" · "))
}

fn steps(steps: &[Step]) -> Markup {
    let contents = html! {
        ol.steps {
            @for step in steps {
                li {
                    p { (step.words) }
                    @if let Some(command) = &step.command { pre.command { code { (command.text()) } } }
                }
            }
        }
    };
    section("next", "What to do now", &contents)
}
