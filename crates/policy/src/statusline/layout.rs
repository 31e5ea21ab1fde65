//! What of a line is shown where it is too long for the terminal: first groups go, then whole segments, the least
//! important first. The load line stays.

use super::segments::{self, Piece};
use super::{View, theme};
use session::statusline::{Kind, StatusLine};
use unicode_width::UnicodeWidthStr;

/// A segment as it is shown.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) piece: Piece,
}

/// One thing to leave out.
enum Step {
    Groups(Kind),
    Segment(Kind),
    /// Those that the user has made.
    Own,
    /// Half as many cells.
    Bar,
}

/// In this order. Two reasons: what tells of the session's fill and of the run comes last, and so does what is seen nowhere else.
const STEPS: [Step; 20] = [
    Step::Groups(Kind::Load),
    Step::Segment(Kind::Version),
    Step::Segment(Kind::Lines),
    Step::Segment(Kind::Burn),
    Step::Segment(Kind::Growth),
    Step::Segment(Kind::Effort),
    Step::Segment(Kind::Cache),
    Step::Groups(Kind::Run),
    Step::Segment(Kind::Weekly),
    Step::Own,
    Step::Segment(Kind::Cost),
    Step::Groups(Kind::Git),
    Step::Segment(Kind::Directory),
    Step::Groups(Kind::Memory),
    Step::Segment(Kind::FiveHour),
    Step::Segment(Kind::Model),
    Step::Bar,
    Step::Segment(Kind::Git),
    Step::Segment(Kind::Memory),
    Step::Segment(Kind::Run),
];

/// The client keeps so many columns for itself, and cuts what is longer (observed on 2.1.329).
const MARGIN: usize = 4;

/// As much of a line as fits.
pub(super) fn fit(pieces: Vec<Piece>, view: &View, look: &StatusLine) -> Vec<Shown> {
    let mut shown: Vec<Shown> = pieces.into_iter().filter_map(|piece| written(piece, true)).collect();
    let Some(room) = view.columns.map(|columns| columns.saturating_sub(MARGIN)) else { return shown };
    let between = theme::separator(look).width();
    for step in &STEPS {
        if width(&shown, between) <= room {
            break;
        }
        shown = shown.into_iter().filter_map(|segment| after(step, segment, view)).collect();
    }
    shown
}

fn after(step: &Step, shown: Shown, view: &View) -> Option<Shown> {
    match step {
        Step::Groups(kind) if shown.piece.kind == Some(*kind) => written(shown.piece.clone(), false),
        Step::Segment(kind) if shown.piece.kind == Some(*kind) => None,
        Step::Own if shown.piece.kind.is_none() => None,
        Step::Bar if shown.piece.kind == Some(Kind::Load) => {
            let (fields, tone) = segments::load(view, segments::CELLS / 2);
            written(Piece { fields, tone, ..shown.piece }, false)
        }
        _ => Some(shown),
    }
}

fn written(piece: Piece, groups: bool) -> Option<Shown> {
    Some(Shown { name: piece.name.clone(), text: piece.text(groups)?, piece })
}

fn width(shown: &[Shown], between: usize) -> usize {
    let texts: usize = shown.iter().map(|shown| shown.text.width()).sum();
    texts + between * shown.len().saturating_sub(1)
}
