//! The load-line curve: what was sent with each turn of the session's own stream, against the window, with the
//! checkpoints and the compactions.

use crate::commands::export::exported::Exported;
use maud::{Markup, html};
use plimsoll_domain::log_line::{MAIN, RecordKind};
use plimsoll_domain::text::tokens;
use plimsoll_flows::turns::Recorded;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 26.0;
/// Below this share of the window the curve would be at the bottom: it is then drawn relative to its own peak.
const LEAST_SHARE: f64 = 0.12;

/// A turn on the curve.
struct Point<'a> {
    record: &'a Recorded,
    sent: u64,
}

/// A place in the picture.
fn at(number: f64) -> String {
    format!("{number:.1}")
}

pub(super) fn render(exported: &Exported) -> Markup {
    let points: Vec<Point<'_>> = exported
        .main_turns()
        .filter_map(|record| Some(Point { record, sent: record.header.usage?.sent() }))
        .filter(|point| point.sent > 0)
        .collect();
    let Some(peak) = points.iter().map(|point| point.sent).max() else { return html! {} };
    let window = exported.window.as_ref().map(|window| window.tokens);
    let is_near = window.is_some_and(|window| peak as f64 >= LEAST_SHARE * window as f64);
    let top = if is_near { window.unwrap_or(peak).max(peak) as f64 } else { peak as f64 } * 1.04;
    let number = |point: Option<&Point<'_>>| point.and_then(|point| point.record.header.number);
    let chart =
        Chart { count: points.len(), first: number(points.first()), last: number(points.last()), top };
    html! {
        figure.curve {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="Input tokens per turn" {
                (chart.grid())
                @if let Some(window) = window.filter(|_| is_near) {
                    @let y = chart.y(window);
                    line.window x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at(y)) y2=(at(y)) {}
                    text.window x=(LEFT + 6.0) y=(at(y - 5.0)) { "window " (tokens(window)) }
                }
                (chart.compactions(exported, &points))
                (chart.checkpoints(exported, &points))
                (chart.line(exported, &points))
            }
            figcaption { (caption(exported, peak, window, is_near)) }
        }
    }
}

fn caption(exported: &Exported, peak: u64, window: Option<u64>, is_near: bool) -> String {
    let share = |window: u64| (peak as f64 * 100.0 / window.max(1) as f64).round();
    let window = match window {
        Some(window) if is_near => format!(" ({} % of the window)", share(window)),
        Some(window) => format!(
            " ({} % of the window of {}, which lies far above this curve)",
            share(window),
            tokens(window)
        ),
        None => " (the window is not known)".to_owned(),
    };
    let mut words = format!("Input tokens per turn. Peak {}{window}.", tokens(peak));
    let compactions = exported.records.iter().filter(|record| is_compaction(record)).count();
    for (count, noun) in [(exported.checkpoints.len(), "checkpoint"), (compactions, "compaction")] {
        if count > 0 {
            words += &format!(" {}.", plimsoll_domain::text::counted(count, noun));
        }
    }
    words
}

fn is_compaction(record: &Recorded) -> bool {
    record.header.kind == RecordKind::Compaction && record.header.stream == MAIN
}

struct Chart {
    count: usize,
    /// The numbers of the turns at both ends.
    first: Option<u64>,
    last: Option<u64>,
    top: f64,
}

impl Chart {
    /// The position of the turn at a place; one at a half is between two.
    fn x(&self, place: f64) -> f64 {
        let steps = self.count.saturating_sub(1).max(1) as f64;
        let room = WIDTH - LEFT - RIGHT;
        if self.count == 1 { LEFT + room / 2.0 } else { LEFT + room * place / steps }
    }

    fn y(&self, sent: u64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (sent as f64 / self.top).min(1.0)
    }

    fn grid(&self) -> Markup {
        html! {
            @for quarter in 0..=4_u32 {
                @let sent = (self.top / 1.04 * f64::from(quarter) / 4.0).round() as u64;
                @let y = self.y(sent);
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at(y)) y2=(at(y)) {}
                text x=(LEFT - 6.0) y=(at(y + 4.0)) text-anchor="end" { (tokens(sent)) }
            }
            @if self.count == 1 {
                (self.label(0, "middle", self.first))
            } @else {
                (self.label(0, "start", self.first))
                (self.label(self.count - 1, "end", self.last))
            }
        }
    }

    /// The number of a turn under the curve.
    fn label(&self, place: usize, anchor: &str, number: Option<u64>) -> Markup {
        html! {
            text x=(at(self.x(place as f64))) y=(HEIGHT - 8.0) text-anchor=(anchor) { "turn " (number.unwrap_or(0)) }
        }
    }

    /// The curve, broken at compactions, and its turns.
    fn line(&self, exported: &Exported, points: &[Point<'_>]) -> Markup {
        let breaks: Vec<u64> = exported
            .records
            .iter()
            .filter(|record| is_compaction(record))
            .map(|record| record.header.seq)
            .collect();
        let is_broken = |before: &Point<'_>, point: &Point<'_>| {
            breaks.iter().any(|seq| (before.record.header.seq..point.record.header.seq).contains(seq))
        };
        let mut place = 0;
        let mut pieces: Vec<Vec<String>> = Vec::new();
        for piece in points.chunk_by(|before, point| !is_broken(before, point)) {
            let places = (place..).zip(piece);
            pieces.push(
                places
                    .map(|(place, point)| format!("{},{}", at(self.x(place as f64)), at(self.y(point.sent))))
                    .collect(),
            );
            place += piece.len();
        }
        html! {
            @for piece in pieces.iter().filter(|piece| piece.len() > 1) { polyline.load points=(piece.join(" ")) {} }
            @for (place, point) in points.iter().enumerate() { (self.dot(place, point)) }
        }
    }

    fn dot(&self, place: usize, point: &Point<'_>) -> Markup {
        let header = &point.record.header;
        let number = header.number.unwrap_or(0);
        let failed = header.success == Some(false);
        let (x, y) = (at(self.x(place as f64)), at(self.y(point.sent)));
        let radius = if self.count > 150 { 2.0 } else { 4.0 };
        html! {
            a href={ "#t" (number) } {
                circle.dot.bad[failed] cx=(x) cy=(y) r=(radius) {
                    title { "turn " (number) ": " (point.sent) " tokens" }
                }
            }
        }
    }

    fn compactions(&self, exported: &Exported, points: &[Point<'_>]) -> Markup {
        html! {
            @for record in exported.records.iter().filter(|record| is_compaction(record)) {
                @let after = points.iter().filter(|point| point.record.header.seq < record.header.seq).count();
                (self.mark(after, "compaction", "compacted"))
            }
        }
    }

    fn checkpoints(&self, exported: &Exported, points: &[Point<'_>]) -> Markup {
        html! {
            @for checkpoint in &exported.checkpoints {
                @let after = points.iter().filter(|point| point.record.header.at <= checkpoint.at).count();
                @let percent = checkpoint.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
                (self.mark(after, "checkpoint", &format!("{}{percent}", checkpoint.level)))
            }
        }
    }

    /// An upright line between the turns before and after.
    fn mark(&self, after: usize, class: &str, label: &str) -> Markup {
        let last = self.count.saturating_sub(1) as f64;
        // Both may lie between the same two turns.
        let back = if class == "checkpoint" { 0.6 } else { 0.4 };
        let x = self.x((after as f64 - back).clamp(0.0, last));
        let (anchor, shift) = if x > WIDTH * 0.8 { ("end", -4.0) } else { ("start", 4.0) };
        let height = if class == "checkpoint" { TOP - 8.0 } else { TOP + 26.0 };
        html! {
            line class=(class) x1=(at(x)) x2=(at(x)) y1=(TOP) y2=(at(HEIGHT - BOTTOM)) {}
            text class=(class) x=(at(x + shift)) y=(at(height)) text-anchor=(anchor) { (label) }
        }
    }
}
