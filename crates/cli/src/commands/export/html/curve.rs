//! The load-line curve: what was sent with each turn of the session's own stream, against the window, with the
//! checkpoints and the compactions.

use crate::commands::export::exported::Exported;
use crate::render::web_page::escaped;
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

pub(super) fn render(exported: &Exported) -> String {
    let points: Vec<Point<'_>> = exported
        .main_turns()
        .filter_map(|record| Some(Point { record, sent: record.header.usage?.sent() }))
        .filter(|point| point.sent > 0)
        .collect();
    let Some(peak) = points.iter().map(|point| point.sent).max() else { return String::new() };
    let window = exported.window.as_ref().map(|window| window.tokens);
    let is_near = window.is_some_and(|window| peak as f64 >= LEAST_SHARE * window as f64);
    let top = if is_near { window.unwrap_or(peak).max(peak) as f64 } else { peak as f64 } * 1.04;
    let number = |point: Option<&Point<'_>>| point.and_then(|point| point.record.header.number);
    let chart =
        Chart { count: points.len(), first: number(points.first()), last: number(points.last()), top };
    let mut svg = format!(
        "<figure class=\"curve\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Input tokens per turn\">\n"
    );
    svg += &chart.grid();
    if is_near && let Some(window) = window {
        let y = chart.y(window);
        svg += &format!(
            "<line class=\"window\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"window\" x=\"{:.0}\" y=\"{:.1}\">window {}</text>\n",
            WIDTH - RIGHT,
            LEFT + 6.0,
            y - 5.0,
            tokens(window)
        );
    }
    svg += &chart.compactions(exported, &points);
    svg += &chart.checkpoints(exported, &points);
    svg += &chart.line(exported, &points);
    svg += "</svg>\n<figcaption>";
    svg += &escaped(&caption(exported, peak, window, is_near));
    svg += "</figcaption></figure>\n";
    svg
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

    fn grid(&self) -> String {
        let mut svg = String::new();
        for quarter in 0..=4_u32 {
            let sent = (self.top / 1.04 * f64::from(quarter) / 4.0).round() as u64;
            let y = self.y(sent);
            svg += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                tokens(sent)
            );
        }
        svg + &self.axis()
    }

    /// The first and the last turn under the curve.
    fn axis(&self) -> String {
        let label = |place: usize, anchor: &str, number: Option<u64>| {
            let (x, y) = (self.x(place as f64), HEIGHT - 8.0);
            let number = number.unwrap_or(0);
            format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">turn {number}</text>\n")
        };
        match self.count {
            1 => label(0, "middle", self.first),
            _ => label(0, "start", self.first) + &label(self.count - 1, "end", self.last),
        }
    }

    /// The curve, broken at compactions, and its turns.
    fn line(&self, exported: &Exported, points: &[Point<'_>]) -> String {
        let breaks: Vec<u64> = exported
            .records
            .iter()
            .filter(|record| is_compaction(record))
            .map(|record| record.header.seq)
            .collect();
        let mut pieces: Vec<Vec<String>> = vec![Vec::new()];
        let mut dots = String::new();
        let mut before = 0;
        for (place, point) in points.iter().enumerate() {
            let header = &point.record.header;
            if breaks.iter().any(|seq| (before..header.seq).contains(seq)) {
                pieces.push(Vec::new());
            }
            before = header.seq;
            let (x, y) = (self.x(place as f64), self.y(point.sent));
            pieces.iter_mut().next_back().into_iter().for_each(|piece| piece.push(format!("{x:.1},{y:.1}")));
            let class = if header.success == Some(false) { "dot bad" } else { "dot" };
            let number = header.number.unwrap_or(0);
            let radius = if self.count > 150 { 2.0 } else { 4.0 };
            dots += &format!(
                "<a href=\"#t{number}\"><circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
                 <title>turn {number}: {} tokens</title></circle></a>\n",
                point.sent
            );
        }
        let lines: String = pieces
            .iter()
            .filter(|piece| piece.len() > 1)
            .map(|piece| format!("<polyline class=\"load\" points=\"{}\"/>\n", piece.join(" ")))
            .collect();
        lines + &dots
    }

    fn compactions(&self, exported: &Exported, points: &[Point<'_>]) -> String {
        let mark = |record: &Recorded| {
            let after = points.iter().filter(|point| point.record.header.seq < record.header.seq).count();
            self.mark(after, "compaction", "compacted")
        };
        exported.records.iter().filter(|record| is_compaction(record)).map(mark).collect()
    }

    fn checkpoints(&self, exported: &Exported, points: &[Point<'_>]) -> String {
        let mark = |checkpoint: &crate::commands::export::exported::Checkpoint| {
            let after = points.iter().filter(|point| point.record.header.at <= checkpoint.at).count();
            let percent = checkpoint.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
            self.mark(after, "checkpoint", &format!("{}{percent}", checkpoint.level))
        };
        exported.checkpoints.iter().map(mark).collect()
    }

    /// An upright line between the turns before and after.
    fn mark(&self, after: usize, class: &str, label: &str) -> String {
        let last = self.count.saturating_sub(1) as f64;
        // Both may lie between the same two turns.
        let back = if class == "checkpoint" { 0.6 } else { 0.4 };
        let x = self.x((after as f64 - back).clamp(0.0, last));
        let (anchor, shift) = if x > WIDTH * 0.8 { ("end", -4.0) } else { ("start", 4.0) };
        let height = if class == "checkpoint" { TOP - 8.0 } else { TOP + 26.0 };
        format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
             <text class=\"{class}\" x=\"{:.1}\" y=\"{height:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            HEIGHT - BOTTOM,
            x + shift,
            escaped(label)
        )
    }
}
