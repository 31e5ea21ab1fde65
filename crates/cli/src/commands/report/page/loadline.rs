//! The load line of the whole night: how full each session's window was, the levels, and what happened when. The
//! picture needs no colour and no script: shapes differ, each has its title, and the same is in lines below.

mod mark;

use super::scale::{HEIGHT, Scale};
use super::section;
use crate::commands::report::contents::{At, Levels, Mark, Pause, Point, Report, RunSession};
use maud::{Markup, html};
use plimsoll_domain::text::counted;

/// Room below the window for the axis.
const AXIS: f64 = 24.0;
/// Labels beside the window need this many pixels each.
const LABEL: f64 = 13.0;

pub(super) fn render(report: &Report) -> Markup {
    let contents = match Scale::of(report) {
        Some(scale) if !report.sessions.is_empty() => figure(report, &scale),
        _ => html! { p.note { "No session has been recorded." } },
    };
    section("load", "The load line", &contents)
}

fn figure(report: &Report, scale: &Scale) -> Markup {
    html! {
        figure.night {
            svg.chart width="100%" height=(HEIGHT + AXIS) role="img" aria-labelledby="chart" {
                title id="chart" { (description(report)) }
                (grid(scale))
                @for pause in &report.pauses { (stand(scale, pause)) }
                @for (place, session) in report.sessions.iter().enumerate() { (peak(report, scale, place, session)) }
                (traces(report, scale))
                @if let Some(levels) = &report.levels { (level_lines(levels)) }
                (labels(report.levels.as_ref()))
                (mark::render(scale, &report.moments))
            }
            (mark::legend(report))
            figcaption { (caption(report)) }
        }
    }
}

/// What the picture shows, in a sentence.
fn description(report: &Report) -> String {
    let peaks = report.sessions.iter().filter_map(|session| session.peak);
    let highest = peaks.max().map_or("not recorded".to_owned(), |peak| format!("{peak} % of the window"));
    let count = |what: Mark| report.moments.iter().filter(|moment| moment.what == what).count();
    format!(
        "Usage of the context window over {}; highest: {highest}; {}, {}, {}",
        counted(report.sessions.len(), "session"),
        counted(count(Mark::Checkpoint), "checkpoint"),
        counted(count(Mark::Compaction), "compaction"),
        counted(report.pauses.len(), "pause"),
    )
}

fn caption(report: &Report) -> String {
    let mut words = Vec::new();
    if let Some(levels) = &report.levels {
        let window = plimsoll_domain::text::tokens(levels.window);
        words.push(format!(
            "The dashed lines are the thresholds in a window of {window} tokens; at {:.0} % {}.",
            levels.auto_compact.round(),
            levels.auto_compact_does
        ));
        if levels.moved {
            words.push("The thresholds changed during the run; these are the last.".to_owned());
        }
    } else {
        words.push("The thresholds were not recorded.".to_owned());
    }
    let untold = report.sessions.iter().filter(|session| session.trace.is_empty());
    let (bare, nothing): (Vec<&RunSession>, Vec<&RunSession>) =
        untold.partition(|session| session.peak.is_some());
    if !bare.is_empty() {
        words.push(format!("Of {} only the peak is known: an open box.", counted(bare.len(), "session")));
    }
    if !nothing.is_empty() {
        words.push(format!("Of {} no figure was recorded.", counted(nothing.len(), "session")));
    }
    words.join(" ")
}

/// Moments, in percent of the picture's width.
pub(super) fn percent(x: f64) -> String {
    format!("{x:.2}%")
}

/// Shares, in pixels of its height.
fn pixels(y: f64) -> String {
    format!("{y:.1}")
}

fn grid(scale: &Scale) -> Markup {
    let middle = Scale::y(50.0);
    html! {
        rect.window x="0" y="0" width="100%" height=(HEIGHT) {}
        line.grid x1="0" x2="100%" y1=(middle) y2=(middle) {}
        (axis(scale, HEIGHT + 4.0, HEIGHT + 18.0))
    }
}

/// The wall clock: a line from above down to a place for each tick, and its text below.
pub(super) fn axis(scale: &Scale, line_to: f64, text_at: f64) -> Markup {
    html! {
        @for (at, text) in scale.ticks() {
            @let x = scale.x(at);
            @let anchor = if x < 6.0 { "start" } else if x > 94.0 { "end" } else { "middle" };
            line.grid x1=(percent(x)) x2=(percent(x)) y1="0" y2=(line_to) {}
            text x=(percent(x)) y=(text_at) text-anchor=(anchor) { (text) }
        }
    }
}

fn stand(scale: &Scale, pause: &Pause) -> Markup {
    let until = pause.to.unwrap_or_else(|| scale.end());
    let (x, width) = span(scale, pause.from, until);
    let to = pause.to.map_or("until now".to_owned(), |to| format!("to {}", clock(to)));
    html! {
        g.pause {
            title { "paused from " (clock(pause.from)) " " (to) ": " (pause.reason.text()) }
            rect x=(percent(x)) y="0" width=(percent(width)) height=(HEIGHT) {}
            @if width > 2.0 { text x=(percent(x + width / 2.0)) y=(HEIGHT - 8.0) text-anchor="middle" { "‖" } }
        }
    }
}

pub(super) fn clock(at: At) -> String {
    at.with_timezone(&chrono::Local).format("%H:%M:%S").to_string()
}

fn span(scale: &Scale, from: At, to: At) -> (f64, f64) {
    let x = scale.x(from);
    (x, (scale.x(to) - x).max(0.15))
}

/// Of a session without a load line its peak, from its beginning to its end.
fn peak(report: &Report, scale: &Scale, place: usize, session: &RunSession) -> Markup {
    let (Some(peak), Some(began), true) = (session.peak, session.began, session.trace.is_empty()) else {
        return html! {};
    };
    let lasted = report.lasted(session).unwrap_or(0);
    let (x, width) = span(scale, began, began + chrono::Duration::seconds(lasted));
    let y = Scale::y(peak as f64);
    html! {
        rect.peak x=(percent(x)) y=(pixels(y)) width=(percent(width)) height=(pixels(HEIGHT - y)) {
            title { (title(place, session)) }
        }
    }
}

fn title(place: usize, session: &RunSession) -> String {
    let about = session.ticked.first().or(session.item.as_ref());
    let about = about.map(|item| format!(", {}", item.text())).unwrap_or_default();
    let peak = session.peak.map(|peak| format!(", peak {peak} %")).unwrap_or_default();
    format!("session {} (the {} of the run){about}{peak}", session.iteration, ordinal(place + 1))
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// The load lines: each rises from the ground where its session began, and falls where it ended. They are drawn in a
/// picture of their own, that is stretched to the width.
fn traces(report: &Report, scale: &Scale) -> Markup {
    html! {
        svg width="100%" height=(HEIGHT) viewBox={ "0 0 1000 " (HEIGHT) } preserveAspectRatio="none" {
            @for (place, session) in report.sessions.iter().enumerate() {
                (trace(scale, session, place % 2 == 0, &title(place, session)))
            }
        }
    }
}

/// The load line of one session: a piece for each conversation between two compactions.
pub(super) fn trace(scale: &Scale, session: &RunSession, is_even: bool, title: &str) -> Markup {
    let pieces = session.trace.len();
    html! {
        @for (number, piece) in session.trace.iter().enumerate() {
            @let from = if number == 0 { session.began } else { None };
            @let to = if number + 1 == pieces { session.ended } else { None };
            path.load.(if is_even { "even" } else { "odd" }) d=(outline(scale, piece, from, to)) {
                title { (title) }
            }
        }
    }
}

fn outline(scale: &Scale, piece: &[Point], from: Option<At>, to: Option<At>) -> String {
    let x = |at: At| scale.x(at) * 10.0;
    let first = piece.first().map(|point| from.unwrap_or(point.at).min(point.at));
    let last = piece.last().map(|point| to.unwrap_or(point.at).max(point.at));
    let mut path = first.map(|at| format!("M{:.1} {HEIGHT}", x(at))).unwrap_or_default();
    for point in piece {
        path += &format!("L{:.1} {:.1}", x(point.at), Scale::y(point.percent));
    }
    // It stays as full as it was until it ends.
    if let Some(last) = last {
        path += &format!("H{:.1}V{HEIGHT}", x(last));
    }
    path
}

fn level_lines(levels: &Levels) -> Markup {
    let lines = [("l1", levels.l1), ("l2", levels.l2), ("l3", levels.l3), ("ceiling", levels.auto_compact)];
    html! {
        @for (class, share) in lines {
            @let y = pixels(Scale::y(share));
            line.level.(class) x1="0" x2="100%" y1=(y) y2=(y) {}
        }
    }
}

/// Beside the window, none over another: from the ground upwards, then from above down what did not fit.
fn labels(levels: Option<&Levels>) -> Markup {
    let mut labels = vec![("", "0".to_owned(), HEIGHT), ("", "50 %".to_owned(), Scale::y(50.0))];
    match levels {
        None => labels.push(("", "100 %".to_owned(), 0.0)),
        Some(levels) => labels.extend(
            [
                ("l1", "L1", levels.l1),
                ("l2", "L2", levels.l2),
                ("l3", "L3", levels.l3),
                ("ceiling", "max", levels.auto_compact),
            ]
            .map(|(class, name, percent)| {
                (class, format!("{name} {:.0} %", percent.round()), Scale::y(percent))
            }),
        ),
    }
    labels.sort_by(|one, other| one.2.total_cmp(&other.2));
    let mut least = 4.0_f64;
    for (_, _, y) in &mut labels {
        *y = (*y + 4.0).max(least);
        least = *y + LABEL;
    }
    html! {
        @for (class, text, y) in labels {
            text.label.(class) x="-6" y=(pixels(y)) text-anchor="end" { (text) }
        }
    }
}
