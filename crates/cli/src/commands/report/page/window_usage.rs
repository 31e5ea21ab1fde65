//! The section about the contents of the context windows: tokens by category, and the largest tool results.

use super::render_section;
use crate::commands::report::contents::{LargeResult, Report, UsageCategory, WindowUsage};
use maud::{Markup, html};
use plimsoll_domain::text::{count_with_noun, format_tokens};

/// Maximum number of categories shown. The remaining ones are summed in one row.
const MAX_SHOWN_CATEGORIES: usize = 10;

pub(super) fn render(report: &Report) -> Markup {
    let window_usage = &report.window_usage;
    let contents = if window_usage.categories.is_empty() {
        html! { p.note { "Not recorded: there is no turn log of these sessions." } }
    } else {
        html! {
            (render_top_categories_and_sum_of_rest(window_usage))
            p.note { (counting_method_note(report)) }
            (render_largest_results(&window_usage.largest_results))
        }
    };
    render_section("window", "What filled the window", &contents)
}

fn render_top_categories_and_sum_of_rest(window_usage: &WindowUsage) -> Markup {
    let total: u64 = window_usage.categories.iter().map(|category| category.tokens).sum();
    let remaining_categories = window_usage.categories.get(MAX_SHOWN_CATEGORIES..).unwrap_or_default();
    html! {
        table.filling {
            thead { tr { th scope="col" { "What" } th scope="col" { "Share" } th.number scope="col" { "Tokens" } } }
            tbody {
                @for category in window_usage.categories.iter().take(MAX_SHOWN_CATEGORIES) {
                    tr { th scope="row" { (render_category_name_and_calls(category)) } (render_share_and_token_cells(category.tokens, total)) }
                }
                @if !remaining_categories.is_empty() {
                    @let sum = remaining_categories.iter().map(|category| category.tokens).sum();
                    tr { th scope="row" { (remaining_categories.len()) " more kinds" } (render_share_and_token_cells(sum, total)) }
                }
            }
        }
    }
}

fn render_category_name_and_calls(category: &UsageCategory) -> Markup {
    let calls_text = count_with_noun(usize::try_from(category.call_count).unwrap_or(usize::MAX), "call");
    html! {
        (category.name)
        @if category.is_tool { " " small { (calls_text) @if category.failed_call_count > 0 { ", " (category.failed_call_count) " failed" } } }
    }
}

fn render_share_and_token_cells(token_count: u64, total: u64) -> Markup {
    let share = token_count as f64 * 100.0 / total.max(1) as f64;
    html! {
        td.share {
            span.track { span style=(format!("width:{share:.1}%")) {} } " "
            span.percent { (format!("{share:.0}%")) }
        }
        td.number { (format_tokens(token_count)) }
    }
}

fn counting_method_note(report: &Report) -> String {
    let window_usage = &report.window_usage;
    let sessions_text = count_with_noun(window_usage.session_count, "session");
    let missing_text = match report.sessions.len().saturating_sub(window_usage.session_count) {
        0 => String::new(),
        missing => format!("; of {} no turn was recorded", count_with_noun(missing, "session")),
    };
    let subagent_text = window_usage
        .subagent_usage
        .render_summary()
        .map(|summary| format!(": {summary}"))
        .unwrap_or_default();
    format!(
        "Each part is counted once, when it enters the window of one of {sessions_text}{missing_text}. The model’s text and the \
         client’s own part are counted by the client; the rest is estimated at four bytes per token. Subagents have \
         windows of their own, which are not included{subagent_text}."
    )
}

fn render_largest_results(results: &[LargeResult]) -> Markup {
    html! {
        @if !results.is_empty() {
            h3 { "The largest single results" }
            ol.largest {
                @for result in results {
                    li {
                        b { "about " (format_tokens(result.tokens)) } " · " (result.tool) " " code { (result.arguments) }
                        br;
                        span.note { code { "plimsoll turns show " (result.turn_name) } }
                    }
                }
            }
        }
    }
}
