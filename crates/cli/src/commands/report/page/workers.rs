//! The section with the workers of a parallel run: a chart with one timeline for each worker and one for the merges, and
//! a table with the same data.

use super::scale::{CHART_HEIGHT, ChartScale};
use super::usage_chart::{format_clock_time, format_percent, render_time_axis, render_usage_line};
use super::{format_dollars, render_section, render_time};
use crate::commands::report::contents::{MergeEvent, MergeOutcome, Report, RunSession, WorkPeriod, Worker};
use maud::{Markup, html};
use plimsoll_domain::text::count_with_noun;

/// Height of a worker's timeline, and of the gap below it, in pixels.
const TIMELINE_HEIGHT: f64 = 56.0;
const TIMELINE_GAP: f64 = 12.0;
/// Height of the timeline with the merges, and of the time axis, in pixels.
const MERGE_TIMELINE_HEIGHT: f64 = 26.0;
const AXIS_HEIGHT: f64 = 24.0;

pub(super) fn render(report: &Report) -> Markup {
    if report.workers.is_empty() {
        return html! {};
    }
    let contents = html! {
        @if let Some(scale) = ChartScale::for_report(report) { (render_figure(report, &scale)) }
        (render_work_period_table(report))
        (render_merges(report))
    };
    render_section("workers", "The workers", &contents)
}

fn render_figure(report: &Report, scale: &ChartScale) -> Markup {
    let timelines_height = report.workers.len() as f64 * (TIMELINE_HEIGHT + TIMELINE_GAP);
    html! {
        figure.night {
            svg.chart.lanes width="100%" height=(timelines_height + MERGE_TIMELINE_HEIGHT + AXIS_HEIGHT) role="img" aria-labelledby="lanes" {
                title id="lanes" { (chart_description(report)) }
                (render_time_axis(scale, timelines_height + MERGE_TIMELINE_HEIGHT, timelines_height + MERGE_TIMELINE_HEIGHT + 16.0))
                @for (index, worker) in report.workers.iter().enumerate() {
                    (render_worker_usage_and_checkpoint_timeline(report, scale, worker, index as f64 * (TIMELINE_HEIGHT + TIMELINE_GAP)))
                }
                text.label x="-6" y=(timelines_height + MERGE_TIMELINE_HEIGHT / 2.0 + 4.0) text-anchor="end" { "merged" }
                @for merge in &report.merges { (render_merge_mark(scale, merge, timelines_height + MERGE_TIMELINE_HEIGHT / 2.0)) }
            }
            figcaption {
                "Each lane is a worker, from an empty window below to a full one above. In the lowest, a dot is what was merged, \
                 a cross what was sent back or set aside."
            }
        }
    }
}

fn chart_description(report: &Report) -> String {
    let periods = report.workers.iter().flat_map(|worker| &worker.work_periods);
    let session_count: usize = periods.map(|period| period.sessions.len()).sum();
    let count = |outcome| report.merges.iter().filter(|merge| merge.outcome == outcome).count();
    format!(
        "Usage of the context windows of {} in {}; {} merged, {} sent back, {} set aside",
        count_with_noun(report.workers.len(), "worker"),
        count_with_noun(session_count, "session"),
        count_with_noun(count(MergeOutcome::Merged), "item"),
        count_with_noun(count(MergeOutcome::Returned), "item"),
        count_with_noun(count(MergeOutcome::SetAside), "item"),
    )
}

fn render_worker_usage_and_checkpoint_timeline(
    report: &Report,
    scale: &ChartScale,
    worker: &Worker,
    top_y: f64,
) -> Markup {
    html! {
        text.label x="-6" y=(top_y + TIMELINE_HEIGHT / 2.0 + 4.0) text-anchor="end" { "worker " (worker.number) }
        rect.window x="0" y=(top_y) width="100%" height=(TIMELINE_HEIGHT) {}
        @for period in &worker.work_periods { (render_work_period_bar(report, scale, period, top_y)) }
        svg y=(top_y) width="100%" height=(TIMELINE_HEIGHT) viewBox={ "0 0 1000 " (CHART_HEIGHT) } preserveAspectRatio="none" {
            @for period in &worker.work_periods {
                @for session in &period.sessions { (render_usage_line(scale, session, session.iteration % 2 == 1, &session_tooltip_text(period, session))) }
            }
        }
        @for time in worker.work_periods.iter().flat_map(|period| &period.checkpoint_times) {
            svg.mark.checkpoint x=(format_percent(scale.x_percent(*time))) y=(top_y) { path d="M0 0 5 6 0 12-5 6Z" {} }
        }
    }
}

/// Renders a thin bar for the time that a worker spent on an item, even if no session of it was recorded.
fn render_work_period_bar(report: &Report, scale: &ChartScale, period: &WorkPeriod, top_y: f64) -> Markup {
    let (start, end) = (
        scale.x_percent(period.started_at),
        scale.x_percent(period.ended_at.unwrap_or_else(|| report.end_or_now())),
    );
    html! {
        rect.stint x=(format_percent(start)) y=(top_y + TIMELINE_HEIGHT) width=(format_percent((end - start).max(0.15))) height="3" {
            title { (item_attempt_and_ending_tooltip(period)) }
        }
    }
}

fn item_attempt_and_ending_tooltip(period: &WorkPeriod) -> String {
    let attempt_text =
        if period.attempt > 1 { format!(", attempt {}", period.attempt) } else { String::new() };
    format!(
        "item {}, {}{attempt_text}: {}",
        period.item_number,
        period.item.text(),
        period.ending_text.text()
    )
}

fn session_tooltip_text(period: &WorkPeriod, session: &RunSession) -> String {
    let peak_text = session.peak_percent.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
    format!("{}, session {}{peak_text}", item_attempt_and_ending_tooltip(period), session.iteration)
}

fn render_merge_mark(scale: &ChartScale, merge: &MergeEvent, y: f64) -> Markup {
    let (class, svg_path) = match merge.outcome {
        MergeOutcome::Merged => ("end", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z"),
        MergeOutcome::Returned | MergeOutcome::SetAside => ("broken", "M-4-4 4 4M4-4-4 4"),
    };
    html! {
        svg.mark.(class) x=(format_percent(scale.x_percent(merge.occurred_at))) y=(y) {
            path d=(svg_path) { title { (format_clock_time(merge.occurred_at)) " " (merge.description.text()) } }
        }
    }
}

fn render_work_period_table(report: &Report) -> Markup {
    html! {
        div.scroll role="region" aria-labelledby="workers" tabindex="0" {
            table.sessions {
                thead {
                    tr {
                        th scope="col" { "Worker" }
                        th scope="col" { "Began" }
                        th.number scope="col" { "Sessions" }
                        th.number scope="col" { "Peak" }
                        th.number scope="col" { "Cost" }
                        th scope="col" { "Item" }
                        th scope="col" { "Came to" }
                    }
                }
                tbody {
                    @for worker in &report.workers {
                        @for period in &worker.work_periods { (render_work_period_row(report, worker.number, period)) }
                    }
                }
            }
        }
    }
}

fn render_work_period_row(report: &Report, worker_number: usize, period: &WorkPeriod) -> Markup {
    let peak = period.sessions.iter().filter_map(|session| session.peak_percent).max();
    let costs: Vec<f64> = period.sessions.iter().filter_map(|session| session.cost_usd).collect();
    let number_cell = |value: Option<String>| html! { td.number { (value.as_deref().unwrap_or("?")) } };
    html! {
        tr {
            th scope="row" { (worker_number) }
            td { (render_time(report, period.started_at)) }
            (number_cell((!period.sessions.is_empty()).then(|| period.sessions.len().to_string())))
            (number_cell(peak.map(|peak| format!("{peak}%"))))
            (number_cell((!costs.is_empty()).then(|| format_dollars(costs.iter().sum()))))
            td.item {
                (period.item)
                @if period.attempt > 1 { " (attempt " (period.attempt) ")" }
            }
            td { @if period.ended_at.is_some() { (period.ending_text) } @else { "at work" } }
        }
    }
}

fn render_merges(report: &Report) -> Markup {
    if report.merges.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Merges" }
        ul.pauses {
            @for merge in &report.merges { li { (render_time(report, merge.occurred_at)) " " (merge.description) } }
        }
    }
}
