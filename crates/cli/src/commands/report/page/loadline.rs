//! The chart with the load line of the run: the usage of each session's window, the thresholds, and events. The chart works without color
//! and scripts: marks differ in shape and have titles, and the legend repeats them as text.

mod mark;

use super::render_section;
use super::scale::{CHART_HEIGHT, ChartScale};
use crate::commands::report::contents::{
    LoadPoint, MarkKind, Report, RunPause, RunSession, ThresholdPercents, UtcTime,
};
use maud::{Markup, html};
use plimsoll_domain::text::count_with_noun;

/// Height below the chart for the time axis.
const AXIS_HEIGHT: f64 = 24.0;
/// Minimum distance between two labels beside the chart, in pixels.
const LABEL_HEIGHT: f64 = 13.0;

pub(super) fn render(report: &Report) -> Markup {
    let contents = match ChartScale::for_report(report) {
        Some(scale) if !report.sessions.is_empty() => render_figure(report, &scale),
        _ => html! { p.note { "No session has been recorded." } },
    };
    render_section("load", "The load line", &contents)
}

fn render_figure(report: &Report, scale: &ChartScale) -> Markup {
    html! {
        figure.night {
            svg.chart width="100%" height=(CHART_HEIGHT + AXIS_HEIGHT) role="img" aria-labelledby="chart" {
                title id="chart" { (chart_description(report)) }
                (render_grid(scale))
                @for pause in &report.pauses { (render_pause(scale, pause)) }
                @for (place, session) in report.sessions.iter().enumerate() { (render_peak_box(report, scale, place, session)) }
                (render_load_lines(report, scale))
                @if let Some(levels) = &report.thresholds { (render_threshold_lines(levels)) }
                (render_axis_labels(report.thresholds.as_ref()))
                (mark::render(scale, &report.marks))
            }
            (mark::render_legend(report))
            figcaption { (caption_text(report)) }
        }
    }
}

/// Describes the chart in a sentence, for screen readers.
fn chart_description(report: &Report) -> String {
    let peaks = report.sessions.iter().filter_map(|session| session.peak_percent);
    let highest = peaks.max().map_or("not recorded".to_owned(), |peak| format!("{peak} % of the window"));
    let count = |kind: MarkKind| report.marks.iter().filter(|moment| moment.kind == kind).count();
    format!(
        "Usage of the context window over {}; highest: {highest}; {}, {}, {}",
        count_with_noun(report.sessions.len(), "session"),
        count_with_noun(count(MarkKind::Checkpoint), "checkpoint"),
        count_with_noun(count(MarkKind::Compaction), "compaction"),
        count_with_noun(report.pauses.len(), "pause"),
    )
}

fn caption_text(report: &Report) -> String {
    let mut sentences = Vec::new();
    if let Some(levels) = &report.thresholds {
        let window = plimsoll_domain::text::format_tokens(levels.window_tokens);
        sentences.push(format!(
            "The dashed lines are the thresholds in a window of {window} tokens; at {:.0} % {}.",
            levels.auto_compact.round(),
            levels.auto_compact_action
        ));
        if levels.changed_during_run {
            sentences.push("The thresholds changed during the run; these are the last.".to_owned());
        }
    } else {
        sentences.push("The thresholds were not recorded.".to_owned());
    }
    let without_line = report.sessions.iter().filter(|session| session.load_line.is_empty());
    let (peak_only, without_figures): (Vec<&RunSession>, Vec<&RunSession>) =
        without_line.partition(|session| session.peak_percent.is_some());
    if !peak_only.is_empty() {
        sentences.push(format!(
            "Of {} only the peak is known: an open box.",
            count_with_noun(peak_only.len(), "session")
        ));
    }
    if !without_figures.is_empty() {
        sentences.push(format!(
            "Of {} no figure was recorded.",
            count_with_noun(without_figures.len(), "session")
        ));
    }
    sentences.join(" ")
}

/// Formats an x coordinate, in percent of the chart's width.
pub(super) fn format_percent(x: f64) -> String {
    format!("{x:.2}%")
}

/// Formats a y coordinate, in pixels.
fn format_pixels(y: f64) -> String {
    format!("{y:.1}")
}

fn render_grid(scale: &ChartScale) -> Markup {
    let middle = ChartScale::y_pixels(50.0);
    html! {
        rect.window x="0" y="0" width="100%" height=(CHART_HEIGHT) {}
        line.grid x1="0" x2="100%" y1=(middle) y2=(middle) {}
        (render_axis(scale, CHART_HEIGHT + 4.0, CHART_HEIGHT + 18.0))
    }
}

/// Renders the time axis: for each tick a vertical line from the top down to `line_to`, and its text at `text_at`.
pub(super) fn render_axis(scale: &ChartScale, line_to: f64, text_at: f64) -> Markup {
    html! {
        @for (at, text) in scale.ticks() {
            @let x = scale.x_percent(at);
            @let anchor = if x < 6.0 { "start" } else if x > 94.0 { "end" } else { "middle" };
            line.grid x1=(format_percent(x)) x2=(format_percent(x)) y1="0" y2=(line_to) {}
            text x=(format_percent(x)) y=(text_at) text-anchor=(anchor) { (text) }
        }
    }
}

fn render_pause(scale: &ChartScale, pause: &RunPause) -> Markup {
    let end_time = pause.ended_at.unwrap_or_else(|| scale.end_time());
    let (x, width) = x_and_width(scale, pause.started_at, end_time);
    let end_text =
        pause.ended_at.map_or("until now".to_owned(), |to| format!("to {}", format_clock_time(to)));
    html! {
        g.pause {
            title { "paused from " (format_clock_time(pause.started_at)) " " (end_text) ": " (pause.reason.text()) }
            rect x=(format_percent(x)) y="0" width=(format_percent(width)) height=(CHART_HEIGHT) {}
            @if width > 2.0 { text x=(format_percent(x + width / 2.0)) y=(CHART_HEIGHT - 8.0) text-anchor="middle" { "‖" } }
        }
    }
}

pub(super) fn format_clock_time(at: UtcTime) -> String {
    at.with_timezone(&chrono::Local).format("%H:%M:%S").to_string()
}

fn x_and_width(scale: &ChartScale, start: UtcTime, end: UtcTime) -> (f64, f64) {
    let x = scale.x_percent(start);
    (x, (scale.x_percent(end) - x).max(0.15))
}

/// Renders the peak of a session without a load line, as a box from its start to its end.
fn render_peak_box(report: &Report, scale: &ChartScale, index: usize, session: &RunSession) -> Markup {
    let (Some(peak), Some(began), true) =
        (session.peak_percent, session.started_at, session.load_line.is_empty())
    else {
        return html! {};
    };
    let seconds = report.session_duration(session).unwrap_or(0);
    let (x, width) = x_and_width(scale, began, began + chrono::Duration::seconds(seconds));
    let y = ChartScale::y_pixels(peak as f64);
    html! {
        rect.peak x=(format_percent(x)) y=(format_pixels(y)) width=(format_percent(width)) height=(format_pixels(CHART_HEIGHT - y)) {
            title { (session_title(index, session)) }
        }
    }
}

fn session_title(index: usize, session: &RunSession) -> String {
    let item = session.ticked_items.first().or(session.item.as_ref());
    let item_text = item.map(|item| format!(", {}", item.text())).unwrap_or_default();
    let peak_text = session.peak_percent.map(|peak| format!(", peak {peak} %")).unwrap_or_default();
    format!(
        "session {} (the {} of the run){item_text}{peak_text}",
        session.iteration,
        format_ordinal(index + 1)
    )
}

fn format_ordinal(number: usize) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// Renders the load lines. Each rises from zero where its session began, and falls to zero where it ended. They are in an SVG element of
/// their own, which is stretched to the width.
fn render_load_lines(report: &Report, scale: &ChartScale) -> Markup {
    html! {
        svg width="100%" height=(CHART_HEIGHT) viewBox={ "0 0 1000 " (CHART_HEIGHT) } preserveAspectRatio="none" {
            @for (place, session) in report.sessions.iter().enumerate() {
                (render_load_line(scale, session, place % 2 == 0, &session_title(place, session)))
            }
        }
    }
}

/// Renders the load line of one session, in one piece for each conversation between two compactions.
pub(super) fn render_load_line(
    scale: &ChartScale,
    session: &RunSession,
    is_even: bool,
    title: &str,
) -> Markup {
    let piece_count = session.load_line.len();
    html! {
        @for (number, piece) in session.load_line.iter().enumerate() {
            @let from = if number == 0 { session.started_at } else { None };
            @let to = if number + 1 == piece_count { session.ended_at } else { None };
            path.load.(if is_even { "even" } else { "odd" }) d=(load_line_path(scale, piece, from, to)) {
                title { (title) }
            }
        }
    }
}

fn load_line_path(
    scale: &ChartScale,
    piece: &[LoadPoint],
    start: Option<UtcTime>,
    end: Option<UtcTime>,
) -> String {
    let x = |at: UtcTime| scale.x_percent(at) * 10.0;
    let start_time = piece.first().map(|point| start.unwrap_or(point.at).min(point.at));
    let end_time = piece.last().map(|point| end.unwrap_or(point.at).max(point.at));
    let mut path = start_time.map(|at| format!("M{:.1} {CHART_HEIGHT}", x(at))).unwrap_or_default();
    for point in piece {
        path += &format!("L{:.1} {:.1}", x(point.at), ChartScale::y_pixels(point.percent));
    }
    // The usage stays constant from the last point to the end of the session.
    if let Some(end_time) = end_time {
        path += &format!("H{:.1}V{CHART_HEIGHT}", x(end_time));
    }
    path
}

fn render_threshold_lines(thresholds: &ThresholdPercents) -> Markup {
    let lines = [
        ("l1", thresholds.l1),
        ("l2", thresholds.l2),
        ("l3", thresholds.l3),
        ("ceiling", thresholds.auto_compact),
    ];
    html! {
        @for (class, share) in lines {
            @let y = format_pixels(ChartScale::y_pixels(share));
            line.level.(class) x1="0" x2="100%" y1=(y) y2=(y) {}
        }
    }
}

/// Renders the labels beside the chart, from top to bottom. A label that would overlap the one above it is moved down.
fn render_axis_labels(thresholds: Option<&ThresholdPercents>) -> Markup {
    let mut labels =
        vec![("", "0".to_owned(), CHART_HEIGHT), ("", "50 %".to_owned(), ChartScale::y_pixels(50.0))];
    match thresholds {
        None => labels.push(("", "100 %".to_owned(), 0.0)),
        Some(levels) => labels.extend(
            [
                ("l1", "L1", levels.l1),
                ("l2", "L2", levels.l2),
                ("l3", "L3", levels.l3),
                ("ceiling", "max", levels.auto_compact),
            ]
            .map(|(class, name, percent)| {
                (class, format!("{name} {:.0} %", percent.round()), ChartScale::y_pixels(percent))
            }),
        ),
    }
    labels.sort_by(|left, right| left.2.total_cmp(&right.2));
    let mut min_y = 4.0_f64;
    for (_, _, y) in &mut labels {
        *y = (*y + 4.0).max(min_y);
        min_y = *y + LABEL_HEIGHT;
    }
    html! {
        @for (class, text, y) in labels {
            text.label.(class) x="-6" y=(format_pixels(y)) text-anchor="end" { (text) }
        }
    }
}
