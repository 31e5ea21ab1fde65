//! What of a line is shown where it is too long for the terminal: first the bar shrinks, then groups and whole segments go, the
//! least important first. The load line stays, and what is still too long is cut here: the client would cut it anywhere.

use super::segments::{Piece, Tone};
use super::{View, theme};
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One thing to leave out.
enum Step {
    Groups(SegmentKind),
    /// The groups that show a field.
    Group(SegmentKind, &'static str),
    Segment(SegmentKind),
    /// A limit that is far.
    Calm(SegmentKind),
    /// Those that the user has made.
    Own,
    /// Half as many cells.
    Bar,
}

/// In this order: what one acts upon goes last, which is the percent, the tokens that are left, a limit that is near, what comes
/// next, and the run.
const STEPS: [Step; 29] = [
    Step::Bar,
    Step::Group(SegmentKind::Load, "window"),
    Step::Segment(SegmentKind::Version),
    Step::Segment(SegmentKind::Lines),
    Step::Segment(SegmentKind::Burn),
    Step::Segment(SegmentKind::ItemCost),
    Step::Segment(SegmentKind::Effort),
    Step::Segment(SegmentKind::Cache),
    Step::Calm(SegmentKind::Weekly),
    Step::Calm(SegmentKind::Spend),
    Step::Groups(SegmentKind::Run),
    Step::Own,
    Step::Segment(SegmentKind::Cost),
    Step::Groups(SegmentKind::Git),
    Step::Segment(SegmentKind::Directory),
    Step::Groups(SegmentKind::Memory),
    Step::Calm(SegmentKind::FiveHour),
    Step::Segment(SegmentKind::Model),
    Step::Segment(SegmentKind::Git),
    Step::Segment(SegmentKind::Memory),
    Step::Group(SegmentKind::Load, "turns"),
    Step::Groups(SegmentKind::Weekly),
    Step::Groups(SegmentKind::Spend),
    Step::Groups(SegmentKind::FiveHour),
    Step::Groups(SegmentKind::Load),
    Step::Segment(SegmentKind::Weekly),
    Step::Segment(SegmentKind::Spend),
    Step::Segment(SegmentKind::FiveHour),
    Step::Segment(SegmentKind::Run),
];

/// The client keeps so many columns for itself, and cuts what is longer (observed on 2.1.329).
const MARGIN: usize = 4;

/// As much of a line as fits.
pub(super) fn fit<'a>(mut shown: Vec<Piece<'a>>, view: &View, look: &StatusLine) -> Vec<Piece<'a>> {
    let Some(room) = view.columns.map(|columns| columns.saturating_sub(MARGIN).max(1)) else { return shown };
    let width = |shown: &[Piece<'_>]| {
        let between = theme::room_between(shown.len(), look, view.colour);
        between + shown.iter().map(|piece| piece.text.width()).sum::<usize>()
    };
    for step in &STEPS {
        if width(&shown) <= room {
            break;
        }
        shown = shown.into_iter().filter_map(|piece| after(step, piece, view)).collect();
    }
    cut(shown, room, width)
}

/// What is left is cut: words about ourselves before the load line, and the last before the first. One stays; of the
/// load line its percent.
fn cut<'a>(mut shown: Vec<Piece<'a>>, room: usize, width: impl Fn(&[Piece<'_>]) -> usize) -> Vec<Piece<'a>> {
    while width(&shown) > room {
        let of_ourselves = shown.iter().rposition(|piece| piece.kind == Some(SegmentKind::Health));
        let Some(place) = of_ourselves.or(shown.len().checked_sub(1)) else { break };
        if let Some(percent) = shown[place].percent_alone() {
            shown[place].text = percent;
            continue;
        }
        let others = width(&shown) - shown[place].text.width();
        match room.checked_sub(others).filter(|left| *left > 0) {
            Some(left) => shown[place].text = within(&shown[place].text, left),
            None => drop(shown.remove(place)),
        }
    }
    shown
}

/// The longest beginning that is no wider, with `…` behind it.
fn within(text: &str, columns: usize) -> String {
    let mut room = columns;
    let fits = |letter: &char| {
        let wide = letter.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    // Letters that belong together may be wider than each by itself.
    loop {
        let cut = format!("{kept}…");
        if cut.width() <= columns || kept.pop().is_none() {
            return cut;
        }
    }
}

fn after<'a>(step: &Step, piece: Piece<'a>, view: &View) -> Option<Piece<'a>> {
    match step {
        Step::Groups(kind) if piece.kind == Some(*kind) => piece.shortened(),
        Step::Group(kind, field) if piece.kind == Some(*kind) => piece.without(field),
        Step::Segment(kind) if piece.kind == Some(*kind) => None,
        Step::Calm(kind) if piece.kind == Some(*kind) && piece.tone == Tone::Calm => None,
        Step::Own if piece.kind.is_none() => None,
        Step::Bar if piece.kind == Some(SegmentKind::Load) => piece.narrowed(view),
        _ => Some(piece),
    }
}
