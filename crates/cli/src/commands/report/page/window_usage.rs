//! The section about what filled the context windows.

use super::render_section;
use crate::commands::report::contents::{LargeResult, Report, UsageCategory, WindowUsage};
use maud::{Markup, html};
use plimsoll_domain::text::{count_with_noun, format_tokens};

/// Maximum number of categories shown; the others are summed up.
const MAX_SHOWN_CATEGORIES: usize = 10;

pub(super) fn render(report: &Report) -> Markup {
    let window_usage = &report.window_usage;
    let contents = if window_usage.categories.is_empty() {
        html! { p.note { "Not recorded: there is no turn log of these sessions." } }
    } else {
        html! {
            (render_table(window_usage))
            p.note { (note_text(report)) }
            (render_largest_results(&window_usage.largest_results))
        }
    };
    render_section("window", "What filled the window", &contents)
}

fn render_table(window_usage: &WindowUsage) -> Markup {
    let total: u64 = window_usage.categories.iter().map(|part| part.tokens).sum();
    let rest = window_usage.categories.get(MAX_SHOWN_CATEGORIES..).unwrap_or_default();
    html! {
        table.filling {
            thead { tr { th scope="col" { "What" } th scope="col" { "Share" } th.number scope="col" { "Tokens" } } }
            tbody {
                @for part in window_usage.categories.iter().take(MAX_SHOWN_CATEGORIES) {
                    tr { th scope="row" { (render_category_name(part)) } (render_bar(part.tokens, total)) }
                }
                @if !rest.is_empty() {
                    @let sum = rest.iter().map(|part| part.tokens).sum();
                    tr { th scope="row" { (rest.len()) " more kinds" } (render_bar(sum, total)) }
                }
            }
        }
    }
}

fn render_category_name(category: &UsageCategory) -> Markup {
    let calls = count_with_noun(usize::try_from(category.call_count).unwrap_or(usize::MAX), "call");
    html! {
        (category.name)
        @if category.is_tool { " " small { (calls) @if category.failed_count > 0 { ", " (category.failed_count) " failed" } } }
    }
}

fn render_bar(token_count: u64, total: u64) -> Markup {
    let share = token_count as f64 * 100.0 / total.max(1) as f64;
    html! {
        td.share {
            span.track { span style=(format!("width:{share:.1}%")) {} } " "
            span.percent { (format!("{share:.0} %")) }
        }
        td.number { (format_tokens(token_count)) }
    }
}

fn note_text(report: &Report) -> String {
    let window_usage = &report.window_usage;
    let sessions_text = count_with_noun(window_usage.session_count, "session");
    let missing_text = match report.sessions.len().saturating_sub(window_usage.session_count) {
        0 => String::new(),
        missing => format!("; of {} no turn was recorded", count_with_noun(missing, "session")),
    };
    let subagent_text =
        window_usage.subagent_usage.render_summary().map(|words| format!(": {words}")).unwrap_or_default();
    format!(
        "Each part is counted once, when it enters the window of one of {sessions_text}{missing_text}. The model’s text and the \
         client’s own part are counted by the client; the rest is estimated at four bytes per token. Subagents have \
         windows of their own, which are not included{subagent_text}."
    )
}

fn render_largest_results(largest: &[LargeResult]) -> Markup {
    html! {
        @if !largest.is_empty() {
            h3 { "The largest single results" }
            ol.largest {
                @for large in largest {
                    li {
                        b { "about " (format_tokens(large.tokens)) } " · " (large.tool) " " code { (large.arguments) }
                        br;
                        span.note { code { "plimsoll turns show " (large.turn_name) } }
                    }
                }
            }
        }
    }
}
