//! The workers of a parallel run, one below the other over the same hours: how full their sessions were, and when what they did
//! was merged. The same is in a table below.

use super::loadline::{axis, clock, percent, trace};
use super::scale::{HEIGHT, Scale};
use super::{dollars, section, time};
use crate::commands::report::contents::{Merge, MergeOutcome, Report, RunSession, Stint, Worker};
use maud::{Markup, html};
use plimsoll_domain::text::counted;

/// How high a worker's lane is drawn, with the room below it.
const LANE: f64 = 56.0;
const GAP: f64 = 12.0;
/// The lane of what is merged, and the axis.
const QUEUE: f64 = 26.0;
const AXIS: f64 = 24.0;

pub(super) fn render(report: &Report) -> Markup {
    if report.workers.is_empty() {
        return html! {};
    }
    let contents = html! {
        @if let Some(scale) = Scale::of(report) { (figure(report, &scale)) }
        (table(report))
        (merges(report))
    };
    section("workers", "The workers", &contents)
}

fn figure(report: &Report, scale: &Scale) -> Markup {
    let below = report.workers.len() as f64 * (LANE + GAP);
    html! {
        figure.night {
            svg.chart.lanes width="100%" height=(below + QUEUE + AXIS) role="img" aria-labelledby="lanes" {
                title id="lanes" { (description(report)) }
                (axis(scale, below + QUEUE, below + QUEUE + 16.0))
                @for (place, worker) in report.workers.iter().enumerate() {
                    (lane(report, scale, worker, place as f64 * (LANE + GAP)))
                }
                text.label x="-6" y=(below + QUEUE / 2.0 + 4.0) text-anchor="end" { "merged" }
                @for merge in &report.merges { (mark(scale, merge, below + QUEUE / 2.0)) }
            }
            figcaption {
                "Each lane is a worker, from an empty window below to a full one above. In the lowest, a dot is what was merged, \
                 a cross what was sent back or set aside."
            }
        }
    }
}

fn description(report: &Report) -> String {
    let stints = report.workers.iter().flat_map(|worker| &worker.stints);
    let sessions: usize = stints.map(|stint| stint.sessions.len()).sum();
    let count = |what| report.merges.iter().filter(|merge| merge.outcome == what).count();
    format!(
        "Usage of the context windows of {} in {}; {} merged, {} sent back, {} set aside",
        counted(report.workers.len(), "worker"),
        counted(sessions, "session"),
        counted(count(MergeOutcome::Merged), "item"),
        counted(count(MergeOutcome::SentBack), "item"),
        counted(count(MergeOutcome::SetAside), "item"),
    )
}

fn lane(report: &Report, scale: &Scale, worker: &Worker, top: f64) -> Markup {
    html! {
        text.label x="-6" y=(top + LANE / 2.0 + 4.0) text-anchor="end" { "worker " (worker.number) }
        rect.window x="0" y=(top) width="100%" height=(LANE) {}
        @for stint in &worker.stints { (at_work(report, scale, stint, top)) }
        svg y=(top) width="100%" height=(LANE) viewBox={ "0 0 1000 " (HEIGHT) } preserveAspectRatio="none" {
            @for stint in &worker.stints {
                @for session in &stint.sessions { (trace(scale, session, session.iteration % 2 == 1, &session_title(stint, session))) }
            }
        }
        @for at in worker.stints.iter().flat_map(|stint| &stint.checkpoints) {
            svg.mark.checkpoint x=(percent(scale.x(*at))) y=(top) { path d="M0 0 5 6 0 12-5 6Z" {} }
        }
    }
}

/// The time that a worker spent at an item: also where nothing is known of its sessions.
fn at_work(report: &Report, scale: &Scale, stint: &Stint, top: f64) -> Markup {
    let (from, to) = (scale.x(stint.from), scale.x(stint.to.unwrap_or_else(|| report.until())));
    html! {
        rect.stint x=(percent(from)) y=(top + LANE) width=(percent((to - from).max(0.15))) height="3" {
            title { (title(stint)) }
        }
    }
}

fn title(stint: &Stint) -> String {
    let attempt = if stint.attempt > 1 { format!(", attempt {}", stint.attempt) } else { String::new() };
    format!("item {}, {}{attempt}: {}", stint.item_number, stint.item.text(), stint.how.text())
}

fn session_title(stint: &Stint, session: &RunSession) -> String {
    let peak = session.peak.map(|peak| format!(", peak {peak} %")).unwrap_or_default();
    format!("{}, session {}{peak}", title(stint), session.iteration)
}

fn mark(scale: &Scale, merge: &Merge, y: f64) -> Markup {
    let (class, shape) = match merge.outcome {
        MergeOutcome::Merged => ("end", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z"),
        MergeOutcome::SentBack | MergeOutcome::SetAside => ("broken", "M-4-4 4 4M4-4-4 4"),
    };
    html! {
        svg.mark.(class) x=(percent(scale.x(merge.at))) y=(y) {
            path d=(shape) { title { (clock(merge.at)) " " (merge.words.text()) } }
        }
    }
}

fn table(report: &Report) -> Markup {
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
                        @for stint in &worker.stints { (row(report, worker.number, stint)) }
                    }
                }
            }
        }
    }
}

fn row(report: &Report, worker: usize, stint: &Stint) -> Markup {
    let peak = stint.sessions.iter().filter_map(|session| session.peak).max();
    let costs: Vec<f64> = stint.sessions.iter().filter_map(|session| session.usd).collect();
    let known = |figure: Option<String>| html! { td.number { (figure.as_deref().unwrap_or("?")) } };
    html! {
        tr {
            th scope="row" { (worker) }
            td { (time(report, stint.from)) }
            (known((!stint.sessions.is_empty()).then(|| stint.sessions.len().to_string())))
            (known(peak.map(|peak| format!("{peak} %"))))
            (known((!costs.is_empty()).then(|| dollars(costs.iter().sum()))))
            td.item {
                (stint.item)
                @if stint.attempt > 1 { " (attempt " (stint.attempt) ")" }
            }
            td { @if stint.to.is_some() { (stint.how) } @else { "at work" } }
        }
    }
}

fn merges(report: &Report) -> Markup {
    if report.merges.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Where it came together" }
        ul.pauses {
            @for merge in &report.merges { li { (time(report, merge.at)) " " (merge.words) } }
        }
    }
}
