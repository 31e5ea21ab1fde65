//! The load line of the whole night: how full each session's window was, the levels, and what happened when. The
//! picture needs no colour and no script: shapes differ, each has its title, and the same is in lines below.

mod mark;

use super::ReportPage;
use super::scale::{HEIGHT, Scale};
use crate::commands::report::contents::{At, Levels, Mark, Pause, Point, Report, RunSession};
use crate::render::web_page::escaped;
use plimsoll_domain::text::counted;

/// Room below the window for the axis.
const AXIS: f64 = 24.0;
/// Labels beside the window need this many pixels each.
const LABEL: f64 = 13.0;

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    page.section("load", "The load line");
    match Scale::of(report) {
        Some(scale) if !report.sittings.is_empty() => figure(page, report, &scale),
        _ => page.add("<p class=\"note\">No session has been recorded.</p>\n"),
    }
    page.end_section();
}

fn figure(page: &mut ReportPage, report: &Report, scale: &Scale) {
    page.add("<figure class=\"night\">\n");
    page.add(&format!(
        "<svg class=\"chart\" width=\"100%\" height=\"{}\" role=\"img\" aria-labelledby=\"chart\">\n<title id=\"chart\">{}</title>\n",
        HEIGHT + AXIS,
        escaped(&told(report))
    ));
    grid(page, scale);
    report.pauses.iter().for_each(|pause| stand(page, scale, pause));
    for (place, sitting) in report.sittings.iter().enumerate() {
        peak(page, report, scale, place, sitting);
    }
    traces(page, report, scale);
    if let Some(levels) = &report.levels {
        level_lines(page, levels);
    }
    labels(page, report.levels.as_ref());
    mark::render(page, scale, &report.moments);
    page.add("</svg>\n");
    mark::legend(page, report);
    page.element("figcaption", "", &caption(report));
    page.add("\n</figure>\n");
}

/// What the picture shows, in a sentence.
fn told(report: &Report) -> String {
    let peaks = report.sittings.iter().filter_map(|sitting| sitting.peak);
    let highest = peaks.max().map_or("not recorded".to_owned(), |peak| format!("{peak} % of the window"));
    let count = |what: Mark| report.moments.iter().filter(|moment| moment.what == what).count();
    format!(
        "Usage of the context window over {}; highest: {highest}; {}, {}, {}",
        counted(report.sittings.len(), "session"),
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
    let untold = report.sittings.iter().filter(|sitting| sitting.trace.is_empty());
    let (bare, nothing): (Vec<&RunSession>, Vec<&RunSession>) =
        untold.partition(|sitting| sitting.peak.is_some());
    if !bare.is_empty() {
        words.push(format!("Of {} only the peak is known: an open box.", counted(bare.len(), "session")));
    }
    if !nothing.is_empty() {
        words.push(format!("Of {} no figure was recorded.", counted(nothing.len(), "session")));
    }
    words.join(" ")
}

fn grid(page: &mut ReportPage, scale: &Scale) {
    page.add(&format!("<rect class=\"window\" x=\"0\" y=\"0\" width=\"100%\" height=\"{HEIGHT}\"/>\n"));
    let middle = Scale::y(50.0);
    page.add(&format!("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{middle}\" y2=\"{middle}\"/>\n"));
    for (at, text) in scale.ticks() {
        let x = scale.x(at);
        let anchor = if x < 6.0 {
            "start"
        } else if x > 94.0 {
            "end"
        } else {
            "middle"
        };
        page.add(&format!(
            "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"{}\"/>\
             <text x=\"{x:.2}%\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
            HEIGHT + 4.0,
            HEIGHT + 18.0,
            escaped(&text)
        ));
    }
}

fn stand(page: &mut ReportPage, scale: &Scale, pause: &Pause) {
    let until = pause.to.unwrap_or_else(|| scale.end());
    let (x, width) = span(scale, pause.from, until);
    let to = pause.to.map_or("until now".to_owned(), |to| format!("to {}", clock(to)));
    let title = format!("paused from {} {to}: {}", clock(pause.from), pause.reason.text());
    page.add(&format!(
        "<g class=\"pause\"><title>{}</title><rect x=\"{x:.2}%\" y=\"0\" width=\"{width:.2}%\" height=\"{HEIGHT}\"/>",
        escaped(&title)
    ));
    if width > 2.0 {
        let middle = x + width / 2.0;
        page.add(&format!("<text x=\"{middle:.2}%\" y=\"{}\" text-anchor=\"middle\">‖</text>", HEIGHT - 8.0));
    }
    page.add("</g>\n");
}

fn clock(at: At) -> String {
    at.with_timezone(&chrono::Local).format("%H:%M:%S").to_string()
}

fn span(scale: &Scale, from: At, to: At) -> (f64, f64) {
    let x = scale.x(from);
    (x, (scale.x(to) - x).max(0.15))
}

/// Of a session without a load line its peak, from its beginning to its end.
fn peak(page: &mut ReportPage, report: &Report, scale: &Scale, place: usize, sitting: &RunSession) {
    if !sitting.trace.is_empty() {
        return;
    }
    let (Some(peak), Some(began)) = (sitting.peak, sitting.began) else { return };
    let lasted = report.lasted(sitting).unwrap_or(0);
    let (x, width) = span(scale, began, began + chrono::Duration::seconds(lasted));
    let y = Scale::y(peak as f64);
    let title = title(place, sitting);
    page.add(&format!(
        "<rect class=\"peak\" x=\"{x:.2}%\" y=\"{y:.1}\" width=\"{width:.2}%\" height=\"{:.1}\"><title>{}</title></rect>\n",
        HEIGHT - y,
        escaped(&title)
    ));
}

fn title(place: usize, sitting: &RunSession) -> String {
    let about = sitting.ticked.first().or(sitting.item.as_ref());
    let about = about.map(|item| format!(", {}", item.text())).unwrap_or_default();
    let peak = sitting.peak.map(|peak| format!(", peak {peak} %")).unwrap_or_default();
    format!("session {} (the {} of the run){about}{peak}", sitting.iteration, ordinal(place + 1))
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
fn traces(page: &mut ReportPage, report: &Report, scale: &Scale) {
    page.add(&format!(
        "<svg width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 1000 {HEIGHT}\" preserveAspectRatio=\"none\">\n"
    ));
    for (place, sitting) in report.sittings.iter().enumerate() {
        let tone = if place % 2 == 0 { "even" } else { "odd" };
        let pieces = sitting.trace.len();
        for (number, piece) in sitting.trace.iter().enumerate() {
            let from = if number == 0 { sitting.began } else { None };
            let to = if number + 1 == pieces { sitting.ended } else { None };
            page.add(&format!(
                "<path class=\"load {tone}\" d=\"{}\"><title>{}</title></path>\n",
                outline(scale, piece, from, to),
                escaped(&title(place, sitting))
            ));
        }
    }
    page.add("</svg>\n");
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

fn level_lines(page: &mut ReportPage, levels: &Levels) {
    for (class, percent) in
        [("l1", levels.l1), ("l2", levels.l2), ("l3", levels.l3), ("ceiling", levels.auto_compact)]
    {
        let y = Scale::y(percent);
        page.add(&format!(
            "<line class=\"level {class}\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"
        ));
    }
}

/// Beside the window, none over another: from the ground upwards, then from above down what did not fit.
fn labels(page: &mut ReportPage, levels: Option<&Levels>) {
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
    for (class, text, y) in labels {
        let y = (y + 4.0).max(least);
        least = y + LABEL;
        page.add(&format!(
            "<text class=\"label {class}\" x=\"-6\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>\n",
            escaped(&text)
        ));
    }
}
