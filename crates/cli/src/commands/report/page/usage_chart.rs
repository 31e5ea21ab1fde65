//! The chart with the load line of the run: the usage of each session's window, the thresholds, and events. The chart
//! works without color and scripts: marks differ in shape and have titles, and the legend repeats them as text.

mod mark;

use super::render_section;
use super::scale::{CHART_HEIGHT, ChartScale};
use crate::commands::report::contents::{
    MarkKind, Report, RunPause, RunSession, ThresholdPercents, UsagePoint, UtcTime,
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
                (render_background_grid_and_time_axis(scale))
                @for pause in &report.pauses { (render_pause_band(scale, pause)) }
                @for (index, session) in report.sessions.iter().enumerate() { (render_peak_box_if_no_usage_line(report, scale, index, session)) }
                (render_usage_lines(report, scale))
                @if let Some(thresholds) = &report.thresholds { (render_threshold_lines(thresholds)) }
                (render_y_axis_labels_without_overlap(report.thresholds.as_ref()))
                (mark::render(scale, &report.marks))
            }
            (mark::render_legend_and_pause_list(report))
            figcaption { (caption_about_thresholds_and_missing_data(report)) }
        }
    }
}

/// Describes the chart in a sentence, for screen readers.
fn chart_description(report: &Report) -> String {
    let peaks = report.sessions.iter().filter_map(|session| session.peak_percent);
    let peak_text = peaks.max().map_or("not recorded".to_owned(), |peak| format!("{peak}% of the window"));
    let count = |kind: MarkKind| report.marks.iter().filter(|mark| mark.kind == kind).count();
    format!(
        "Usage of the context window over {}; highest: {peak_text}; {}, {}, {}",
        count_with_noun(report.sessions.len(), "session"),
        count_with_noun(count(MarkKind::Checkpoint), "checkpoint"),
        count_with_noun(count(MarkKind::Compaction), "compaction"),
        count_with_noun(report.pauses.len(), "pause"),
    )
}

fn caption_about_thresholds_and_missing_data(report: &Report) -> String {
    let mut sentences = Vec::new();
    if let Some(thresholds) = &report.thresholds {
        let window = plimsoll_domain::text::format_tokens(thresholds.window_tokens);
        sentences.push(format!(
            "The dashed lines are the thresholds in a window of {window} tokens; at {:.0}% {}.",
            thresholds.auto_compact.round(),
            thresholds.auto_compact_action
        ));
        if thresholds.changed_during_run {
            sentences.push("The thresholds changed during the run; these are the last.".to_owned());
        }
    } else {
        sentences.push("The thresholds were not recorded.".to_owned());
    }
    let sessions_without_line = report.sessions.iter().filter(|session| session.load_line.is_empty());
    let (sessions_with_peak_only, sessions_without_data): (Vec<&RunSession>, Vec<&RunSession>) =
        sessions_without_line.partition(|session| session.peak_percent.is_some());
    if !sessions_with_peak_only.is_empty() {
        sentences.push(format!(
            "Of {} only the peak is known: an open box.",
            count_with_noun(sessions_with_peak_only.len(), "session")
        ));
    }
    if !sessions_without_data.is_empty() {
        sentences.push(format!(
            "Of {} no figure was recorded.",
            count_with_noun(sessions_without_data.len(), "session")
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

fn render_background_grid_and_time_axis(scale: &ChartScale) -> Markup {
    let middle_y = ChartScale::y_pixels(50.0);
    html! {
        rect.window x="0" y="0" width="100%" height=(CHART_HEIGHT) {}
        line.grid x1="0" x2="100%" y1=(middle_y) y2=(middle_y) {}
        (render_time_axis(scale, CHART_HEIGHT + 4.0, CHART_HEIGHT + 18.0))
    }
}

/// Renders the time axis: for each tick a vertical line from the top down to `line_end_y`, and its label at `label_y`.
pub(super) fn render_time_axis(scale: &ChartScale, line_end_y: f64, label_y: f64) -> Markup {
    html! {
        @for (tick_time, text) in scale.ticks() {
            @let x = scale.x_percent(tick_time);
            @let anchor = if x < 6.0 { "start" } else if x > 94.0 { "end" } else { "middle" };
            line.grid x1=(format_percent(x)) x2=(format_percent(x)) y1="0" y2=(line_end_y) {}
            text x=(format_percent(x)) y=(label_y) text-anchor=(anchor) { (text) }
        }
    }
}

fn render_pause_band(scale: &ChartScale, pause: &RunPause) -> Markup {
    let end_time = pause.ended_at.unwrap_or_else(|| scale.end_time());
    let (x, width) = x_and_width(scale, pause.started_at, end_time);
    let end_text =
        pause.ended_at.map_or("until now".to_owned(), |end| format!("to {}", format_clock_time(end)));
    html! {
        g.pause {
            title { "paused from " (format_clock_time(pause.started_at)) " " (end_text) ": " (pause.reason.text()) }
            rect x=(format_percent(x)) y="0" width=(format_percent(width)) height=(CHART_HEIGHT) {}
            @if width > 2.0 { text x=(format_percent(x + width / 2.0)) y=(CHART_HEIGHT - 8.0) text-anchor="middle" { "‖" } }
        }
    }
}

pub(super) fn format_clock_time(utc_time: UtcTime) -> String {
    utc_time.with_timezone(&chrono::Local).format("%H:%M:%S").to_string()
}

fn x_and_width(scale: &ChartScale, start: UtcTime, end: UtcTime) -> (f64, f64) {
    let x = scale.x_percent(start);
    (x, (scale.x_percent(end) - x).max(0.15))
}

/// Renders the peak of a session without a load line, as a box from its start to its end. Renders nothing for other sessions.
fn render_peak_box_if_no_usage_line(
    report: &Report,
    scale: &ChartScale,
    index: usize,
    session: &RunSession,
) -> Markup {
    let (Some(peak), Some(started_at), true) =
        (session.peak_percent, session.started_at, session.load_line.is_empty())
    else {
        return html! {};
    };
    let seconds = report.session_duration_seconds(session).unwrap_or(0);
    let (x, width) = x_and_width(scale, started_at, started_at + chrono::Duration::seconds(seconds));
    let y = ChartScale::y_pixels(peak as f64);
    html! {
        rect.peak x=(format_percent(x)) y=(format_pixels(y)) width=(format_percent(width)) height=(format_pixels(CHART_HEIGHT - y)) {
            title { (session_tooltip_text(index, session)) }
        }
    }
}

fn session_tooltip_text(index: usize, session: &RunSession) -> String {
    let item = session.ticked_items.first().or(session.item.as_ref());
    let item_text = item.map(|item| format!(", {}", item.text())).unwrap_or_default();
    let peak_text = session.peak_percent.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
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

/// Renders the load lines. Each rises from zero at the start of its session and falls to zero at the end. They are in a
/// separate SVG element, which is stretched to the width of the chart.
fn render_usage_lines(report: &Report, scale: &ChartScale) -> Markup {
    html! {
        svg width="100%" height=(CHART_HEIGHT) viewBox={ "0 0 1000 " (CHART_HEIGHT) } preserveAspectRatio="none" {
            @for (index, session) in report.sessions.iter().enumerate() {
                (render_usage_line(scale, session, index % 2 == 0, &session_tooltip_text(index, session)))
            }
        }
    }
}

/// Renders the load line of one session, with one path for each segment between two compactions.
pub(super) fn render_usage_line(
    scale: &ChartScale,
    session: &RunSession,
    use_even_style: bool,
    title: &str,
) -> Markup {
    let segment_count = session.load_line.len();
    html! {
        @for (segment_index, segment) in session.load_line.iter().enumerate() {
            @let line_start = if segment_index == 0 { session.started_at } else { None };
            @let line_end = if segment_index + 1 == segment_count { session.ended_at } else { None };
            path.load.(if use_even_style { "even" } else { "odd" }) d=(usage_line_svg_path_from_and_to_zero(scale, segment, line_start, line_end)) {
                title { (title) }
            }
        }
    }
}

fn usage_line_svg_path_from_and_to_zero(
    scale: &ChartScale,
    segment: &[UsagePoint],
    session_start: Option<UtcTime>,
    session_end: Option<UtcTime>,
) -> String {
    let x_coordinate = |time: UtcTime| scale.x_percent(time) * 10.0;
    let start_time =
        segment.first().map(|point| session_start.unwrap_or(point.measured_at).min(point.measured_at));
    let end_time =
        segment.last().map(|point| session_end.unwrap_or(point.measured_at).max(point.measured_at));
    let mut path =
        start_time.map(|time| format!("M{:.1} {CHART_HEIGHT}", x_coordinate(time))).unwrap_or_default();
    for point in segment {
        path +=
            &format!("L{:.1} {:.1}", x_coordinate(point.measured_at), ChartScale::y_pixels(point.percent));
    }
    // The usage stays constant from the last point to the end of the session.
    if let Some(end_time) = end_time {
        path += &format!("H{:.1}V{CHART_HEIGHT}", x_coordinate(end_time));
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
        @for (class, percent) in lines {
            @let y = format_pixels(ChartScale::y_pixels(percent));
            line.level.(class) x1="0" x2="100%" y1=(y) y2=(y) {}
        }
    }
}

/// Renders the labels beside the chart, from top to bottom. A label that would overlap the one above it is moved down.
fn render_y_axis_labels_without_overlap(thresholds: Option<&ThresholdPercents>) -> Markup {
    let mut labels =
        vec![("", "0".to_owned(), CHART_HEIGHT), ("", "50%".to_owned(), ChartScale::y_pixels(50.0))];
    match thresholds {
        None => labels.push(("", "100%".to_owned(), 0.0)),
        Some(threshold_percents) => labels.extend(
            [
                ("l1", "L1", threshold_percents.l1),
                ("l2", "L2", threshold_percents.l2),
                ("l3", "L3", threshold_percents.l3),
                ("ceiling", "max", threshold_percents.auto_compact),
            ]
            .map(|(class, name, percent)| {
                (class, format!("{name} {:.0}%", percent.round()), ChartScale::y_pixels(percent))
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
