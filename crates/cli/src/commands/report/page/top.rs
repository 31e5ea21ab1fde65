//! The top of the page: the status of the run, its cost, tokens, items, time and sessions, and the next steps.

use super::{format_day_and_time, format_dollars, render_section};
use crate::commands::report::contents::{ItemOutcome, NextStep, Report, UtcTime};
use crate::endings::status_css_class_symbol_and_sentence;
use chrono::Local;
use maud::{Markup, html};
use plimsoll_domain::RunStatus;
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_terminal::duration::format_seconds;

pub(super) fn render(report: &Report) -> Markup {
    let (css_class, symbol, status_sentence) =
        status_css_class_symbol_and_sentence(report.status, report.is_live);
    html! {
        header {
            p.brand { "Plimsoll · report of the run" }
            h1 { (report.name) }
            @if !report.objective.is_empty() && report.objective != report.name {
                p.objective { (report.objective) }
            }
            p.when { (run_period_text(report)) }
            p.verdict.(css_class) {
                span.sign aria-hidden="true" { (symbol) } " "
                strong { (status_sentence) } " "
                span.why {
                    @for (index, status_text) in report.status_texts.iter().enumerate() { @if index > 0 { " " } (status_text) }
                }
            }
        }
        dl.figures {
            (render_item_counts_and_bar(report))
            (render_cost_figure(report))
            (render_token_figure(report))
            (render_time_figure(report))
            (render_session_count_figure(report))
        }
        (render_next_steps(&report.next_steps))
    }
}

fn run_period_text(report: &Report) -> String {
    let start_text = report.started_at.map_or("not recorded".to_owned(), format_day_and_time);
    match report.ended_at {
        Some(ended_at) => format!("{start_text} – {}", format_end_omitting_same_date(report, ended_at)),
        None if report.status.has_ended() => format!("{start_text} – not recorded"),
        None if report.status == RunStatus::Paused => {
            format!("{start_text} – as of {}, not over yet", format_day_and_time(report.observed_at))
        }
        None if !report.is_live => {
            format!("{start_text} – as of {}, not over yet", format_day_and_time(report.observed_at))
        }
        None => format!("{start_text} – as of {}, still running", format_day_and_time(report.observed_at)),
    }
}

/// Formats the end of the run, without the date if the run began on the same day.
fn format_end_omitting_same_date(report: &Report, ended_at: UtcTime) -> String {
    let local_date = |time: UtcTime| time.with_timezone(&Local).date_naive();
    match report.started_at.filter(|started| local_date(*started) == local_date(ended_at)) {
        Some(_) => ended_at.with_timezone(&Local).format("%H:%M").to_string(),
        None => format_day_and_time(ended_at),
    }
}

/// Shown instead of zero: every session uses tokens, so a zero means that nothing was recorded.
const NOT_RECORDED: &str = "not recorded";

fn render_figure(name: &str, value: &str, note: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } dd.sub { (note) } } }
}

fn render_cost_figure(report: &Report) -> Markup {
    let cost = report.cost;
    if cost.cost_usd <= 0.0 {
        let note = cost
            .max_cost_usd
            .map_or("Claude Code reported none".to_owned(), |limit| format!("of {}", format_dollars(limit)));
        return render_figure("Cost", NOT_RECORDED, &note);
    }
    let limit_text =
        cost.max_cost_usd.map(|limit| format!("of {} · ", format_dollars(limit))).unwrap_or_default();
    let source_text = match cost.cost_basis {
        CostBasis::Reported => "as reported by Claude Code",
        CostBasis::Estimated => "partly estimated by Plimsoll",
        CostBasis::AtMost => "partly estimated by Plimsoll, a model without a known price at the highest one",
    };
    let review_text = match cost.review_count {
        0 => String::new(),
        count => format!(
            " · {} for {}",
            format_dollars(cost.review_cost_usd),
            count_with_noun(count as usize, "review")
        ),
    };
    render_figure(
        "Cost",
        &format!("{}{}", cost.cost_basis.display_prefix(), format_dollars(cost.cost_usd)),
        &format!("{limit_text}{source_text}{review_text}"),
    )
}

fn render_token_figure(report: &Report) -> Markup {
    let cost = report.cost;
    let limit_text = cost.max_tokens.map_or("input and output, cache included".to_owned(), |limit| {
        format!("of {}", format_tokens(limit))
    });
    let used_text = if cost.tokens == 0 { NOT_RECORDED.to_owned() } else { format_tokens(cost.tokens) };
    render_figure("Tokens", &used_text, &limit_text)
}

fn render_item_counts_and_bar(report: &Report) -> Markup {
    let count = |outcome: ItemOutcome| report.items.iter().filter(|item| item.outcome == outcome).count();
    let (done, total) = (count(ItemOutcome::Done), report.items.len());
    if total == 0 {
        return render_figure("Items", "none", "promise and verify commands decide");
    }
    let parts = [
        (count(ItemOutcome::Open), "open"),
        (count(ItemOutcome::SetAside), "set aside"),
        (count(ItemOutcome::Parked), "waiting for an answer"),
        (count(ItemOutcome::RemovedUnticked), "removed from the plan"),
    ];
    let open_texts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, label)| format!("{count} {label}"))
        .collect();
    let open_text = if open_texts.is_empty() { "none is open".to_owned() } else { open_texts.join(" · ") };
    let width_style = |outcome| format!("width:{:.2}%", count(outcome) as f64 * 100.0 / total as f64);
    let bar_segments = [
        ("done", ItemOutcome::Done),
        ("open", ItemOutcome::Open),
        ("aside", ItemOutcome::SetAside),
        ("aside", ItemOutcome::Parked),
        ("gone", ItemOutcome::RemovedUnticked),
    ];
    html! {
        div.wide {
            dt { "Items" }
            dd { (done) " of " (total) " done" }
            dd.bar aria-hidden="true" {
                @for (class, outcome) in bar_segments { @if count(outcome) > 0 { span class=(class) style=(width_style(outcome)) {} } }
            }
            dd.sub { (open_text) }
        }
    }
}

fn render_time_figure(report: &Report) -> Markup {
    let total_seconds = report.started_at.map(|started| (report.end_or_now() - started).num_seconds().max(0));
    let session_time = report.total_session_seconds().map_or(NOT_RECORDED.to_owned(), format_seconds);
    let paused_text = match report.total_paused_seconds() {
        0 => String::new(),
        seconds => format!(" · {} paused", format_seconds(seconds)),
    };
    let verify_text = match report.verify_seconds {
        0 => String::new(),
        seconds => format!(" · {} in verify commands", format_seconds(seconds.cast_signed())),
    };
    render_figure(
        "Time",
        &total_seconds.map_or("?".to_owned(), format_seconds),
        &format!("{session_time} in sessions{verify_text}{paused_text}"),
    )
}

fn render_session_count_figure(report: &Report) -> Markup {
    let handoff_count = report.handoffs.len();
    let pause_count = report.pauses.len();
    let session_count = report.all_sessions().count();
    let counted_text = if report.counted_sessions as usize == session_count {
        String::new()
    } else {
        format!("{} count, ", report.counted_sessions)
    };
    let mut notes = vec![format!("{counted_text}of at most {}", report.max_sessions)];
    notes.extend((handoff_count > 0).then(|| count_with_noun(handoff_count, "handoff")));
    notes.extend((pause_count > 0).then(|| count_with_noun(pause_count, "pause")));
    render_figure("Sessions", &session_count.to_string(), &notes.join(" · "))
}

fn render_next_steps(steps: &[NextStep]) -> Markup {
    let contents = html! {
        ol.steps {
            @for step in steps {
                li {
                    p { (step.description) }
                    @if let Some(command) = &step.command { pre.command { code { (command.text()) } } }
                }
            }
        }
    };
    render_section("next", "What to do now", &contents)
}
