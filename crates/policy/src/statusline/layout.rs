//! What of a line is shown where it is too long for the terminal: first groups go, then whole segments, the least
//! important first. The load line stays.

use super::segments::Piece;
use super::{View, theme};
use session::statusline::{Kind, StatusLine};
use unicode_width::UnicodeWidthStr;

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
pub(super) fn fit<'a>(mut shown: Vec<Piece<'a>>, view: &View, look: &StatusLine) -> Vec<Piece<'a>> {
    let Some(room) = view.columns.map(|columns| columns.saturating_sub(MARGIN)) else { return shown };
    for step in &STEPS {
        let between = theme::room_between(shown.len(), look, view.colour);
        if between + shown.iter().map(|piece| piece.text.width()).sum::<usize>() <= room {
            break;
        }
        shown = shown.into_iter().filter_map(|piece| after(step, piece, view)).collect();
    }
    shown
}

fn after<'a>(step: &Step, piece: Piece<'a>, view: &View) -> Option<Piece<'a>> {
    match step {
        Step::Groups(kind) if piece.kind == Some(*kind) => piece.shortened(),
        Step::Segment(kind) if piece.kind == Some(*kind) => None,
        Step::Own if piece.kind.is_none() => None,
        Step::Bar if piece.kind == Some(Kind::Load) => piece.narrowed(view),
        _ => Some(piece),
    }
}
