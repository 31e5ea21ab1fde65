//! The section with the workers of a parallel run: a chart with one lane for each worker, which shows the usage of its sessions and when
//! its work was merged, and a table with the same facts.

use super::loadline::{format_clock_time, format_percent, render_axis, render_load_line};
use super::scale::{CHART_HEIGHT, ChartScale};
use super::{format_dollars, render_section, render_time};
use crate::commands::report::contents::{MergeEvent, MergeOutcome, Report, RunSession, WorkPeriod, Worker};
use maud::{Markup, html};
use plimsoll_domain::text::count_with_noun;

/// Height of a worker's lane, and of the gap below it, in pixels.
const LANE_HEIGHT: f64 = 56.0;
const LANE_GAP: f64 = 12.0;
/// Height of the lane with the merges, and of the time axis.
const MERGE_LANE_HEIGHT: f64 = 26.0;
const AXIS_HEIGHT: f64 = 24.0;

pub(super) fn render(report: &Report) -> Markup {
    if report.workers.is_empty() {
        return html! {};
    }
    let contents = html! {
        @if let Some(scale) = ChartScale::for_report(report) { (render_figure(report, &scale)) }
        (render_table(report))
        (render_merges(report))
    };
    render_section("workers", "The workers", &contents)
}

fn render_figure(report: &Report, scale: &ChartScale) -> Markup {
    let lanes_height = report.workers.len() as f64 * (LANE_HEIGHT + LANE_GAP);
    html! {
        figure.night {
            svg.chart.lanes width="100%" height=(lanes_height + MERGE_LANE_HEIGHT + AXIS_HEIGHT) role="img" aria-labelledby="lanes" {
                title id="lanes" { (chart_description(report)) }
                (render_axis(scale, lanes_height + MERGE_LANE_HEIGHT, lanes_height + MERGE_LANE_HEIGHT + 16.0))
                @for (place, worker) in report.workers.iter().enumerate() {
                    (render_lane(report, scale, worker, place as f64 * (LANE_HEIGHT + LANE_GAP)))
                }
                text.label x="-6" y=(lanes_height + MERGE_LANE_HEIGHT / 2.0 + 4.0) text-anchor="end" { "merged" }
                @for merge in &report.merges { (render_merge_mark(scale, merge, lanes_height + MERGE_LANE_HEIGHT / 2.0)) }
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
    let sessions: usize = periods.map(|stint| stint.sessions.len()).sum();
    let count = |outcome| report.merges.iter().filter(|merge| merge.outcome == outcome).count();
    format!(
        "Usage of the context windows of {} in {}; {} merged, {} sent back, {} set aside",
        count_with_noun(report.workers.len(), "worker"),
        count_with_noun(sessions, "session"),
        count_with_noun(count(MergeOutcome::Merged), "item"),
        count_with_noun(count(MergeOutcome::Returned), "item"),
        count_with_noun(count(MergeOutcome::SetAside), "item"),
    )
}

fn render_lane(report: &Report, scale: &ChartScale, worker: &Worker, top: f64) -> Markup {
    html! {
        text.label x="-6" y=(top + LANE_HEIGHT / 2.0 + 4.0) text-anchor="end" { "worker " (worker.number) }
        rect.window x="0" y=(top) width="100%" height=(LANE_HEIGHT) {}
        @for stint in &worker.work_periods { (render_work_period(report, scale, stint, top)) }
        svg y=(top) width="100%" height=(LANE_HEIGHT) viewBox={ "0 0 1000 " (CHART_HEIGHT) } preserveAspectRatio="none" {
            @for stint in &worker.work_periods {
                @for session in &stint.sessions { (render_load_line(scale, session, session.iteration % 2 == 1, &session_title(stint, session))) }
            }
        }
        @for at in worker.work_periods.iter().flat_map(|stint| &stint.checkpoint_times) {
            svg.mark.checkpoint x=(format_percent(scale.x_percent(*at))) y=(top) { path d="M0 0 5 6 0 12-5 6Z" {} }
        }
    }
}

/// Renders the time that a worker spent on an item, also if its sessions are unknown.
fn render_work_period(report: &Report, scale: &ChartScale, period: &WorkPeriod, top: f64) -> Markup {
    let (start, end) = (
        scale.x_percent(period.started_at),
        scale.x_percent(period.ended_at.unwrap_or_else(|| report.end_or_now())),
    );
    html! {
        rect.stint x=(format_percent(start)) y=(top + LANE_HEIGHT) width=(format_percent((end - start).max(0.15))) height="3" {
            title { (period_title(period)) }
        }
    }
}

fn period_title(period: &WorkPeriod) -> String {
    let attempt = if period.attempt > 1 { format!(", attempt {}", period.attempt) } else { String::new() };
    format!("item {}, {}{attempt}: {}", period.item_number, period.item.text(), period.ending_text.text())
}

fn session_title(period: &WorkPeriod, session: &RunSession) -> String {
    let peak_text = session.peak_percent.map(|peak| format!(", peak {peak} %")).unwrap_or_default();
    format!("{}, session {}{peak_text}", period_title(period), session.iteration)
}

fn render_merge_mark(scale: &ChartScale, merge: &MergeEvent, y: f64) -> Markup {
    let (class, shape) = match merge.outcome {
        MergeOutcome::Merged => ("end", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z"),
        MergeOutcome::Returned | MergeOutcome::SetAside => ("broken", "M-4-4 4 4M4-4-4 4"),
    };
    html! {
        svg.mark.(class) x=(format_percent(scale.x_percent(merge.at))) y=(y) {
            path d=(shape) { title { (format_clock_time(merge.at)) " " (merge.description.text()) } }
        }
    }
}

fn render_table(report: &Report) -> Markup {
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
                        @for stint in &worker.work_periods { (render_row(report, worker.number, stint)) }
                    }
                }
            }
        }
    }
}

fn render_row(report: &Report, worker_number: usize, period: &WorkPeriod) -> Markup {
    let peak = period.sessions.iter().filter_map(|session| session.peak_percent).max();
    let costs: Vec<f64> = period.sessions.iter().filter_map(|session| session.cost_usd).collect();
    let number_cell = |value: Option<String>| html! { td.number { (value.as_deref().unwrap_or("?")) } };
    html! {
        tr {
            th scope="row" { (worker_number) }
            td { (render_time(report, period.started_at)) }
            (number_cell((!period.sessions.is_empty()).then(|| period.sessions.len().to_string())))
            (number_cell(peak.map(|peak| format!("{peak} %"))))
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
        h3 { "Where it came together" }
        ul.pauses {
            @for merge in &report.merges { li { (render_time(report, merge.at)) " " (merge.description) } }
        }
    }
}
