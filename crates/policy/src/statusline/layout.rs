//! Fits a line into the terminal: first the bar shrinks, then long names are truncated, and groups and whole segments are dropped,
//! the least important first. The load line stays. A line that is still too long is cut here: the client would cut it anywhere.

use super::segments::{CELLS, Piece, Tone};
use super::truncate::truncate;
use super::{View, theme};
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use unicode_width::UnicodeWidthStr;

/// One thing to leave out.
enum Step {
    Groups(SegmentKind),
    /// The groups that show a field.
    Group(SegmentKind, &'static str),
    /// Truncate the name to this many columns.
    Truncate(SegmentKind, usize),
    Segment(SegmentKind),
    /// A limit that is far.
    Calm(SegmentKind),
    /// Those that the user has made, and those of ours that no other step names.
    Others,
    /// Half as many cells.
    Bar,
}

/// In this order: what one acts upon goes last, which is the percent, the tokens that are left, a limit that is near, what comes
/// next, and the run.
const STEPS: [Step; 33] = [
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
    Step::Truncate(SegmentKind::Directory, 20),
    Step::Truncate(SegmentKind::Git, 24),
    Step::Groups(SegmentKind::Run),
    Step::Others,
    Step::Segment(SegmentKind::Cost),
    Step::Groups(SegmentKind::Git),
    Step::Truncate(SegmentKind::Directory, 10),
    Step::Truncate(SegmentKind::Git, 12),
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
pub(super) fn fit<'a>(pieces: Vec<Piece<'a>>, view: &View, look: &StatusLine) -> Vec<Piece<'a>> {
    let Some(room) = view.columns.map(|columns| columns.saturating_sub(MARGIN).max(1)) else { return pieces };
    let width = |pieces: &[Piece<'_>]| {
        let between = theme::room_between(pieces.len(), look, view.colour);
        between + pieces.iter().map(|piece| piece.text.width()).sum::<usize>()
    };
    if width(&pieces) <= room {
        return pieces;
    }
    let mut shown = pieces.clone();
    let mut steps = Vec::new();
    for step in &STEPS {
        let before = width(&shown);
        if before <= room {
            break;
        }
        shown = reduce(shown, step, view);
        if width(&shown) < before {
            steps.push(step);
        }
    }
    // A large segment that had to go leaves room for smaller ones that went before it. The most important one comes back first.
    for place in (0..steps.len()).rev() {
        let others = steps.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, step)| *step);
        let fuller = others.fold(pieces.clone(), |pieces, step| reduce(pieces, step, view));
        if width(&fuller) <= room {
            shown = fuller;
            steps.remove(place);
        }
    }
    if steps.iter().any(|step| matches!(step, Step::Bar)) {
        let free = room.saturating_sub(width(&shown)) as u64;
        widen_bar(&mut shown, (CELLS / 2 + free).min(CELLS), view);
    }
    cut(shown, room, width)
}

fn widen_bar(shown: &mut [Piece<'_>], cells: u64, view: &View) {
    if let Some(load) = shown.iter_mut().find(|piece| piece.kind == Some(SegmentKind::Load))
        && let Some(wider) = load.clone().with_bar(cells, view)
    {
        *load = wider;
    }
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
            Some(left) => shown[place].text = truncate(&shown[place].text, left),
            None => drop(shown.remove(place)),
        }
    }
    shown
}

fn has_step(kind: Option<SegmentKind>) -> bool {
    let is_named = |kind| {
        STEPS.iter().any(|step| matches!(step, Step::Segment(named) | Step::Groups(named) if *named == kind))
    };
    // Words about ourselves go last.
    kind.is_some_and(|kind| kind == SegmentKind::Health || is_named(kind))
}

fn reduce<'a>(pieces: Vec<Piece<'a>>, step: &Step, view: &View) -> Vec<Piece<'a>> {
    let reduced = |piece: Piece<'a>| match step {
        Step::Groups(kind) if piece.kind == Some(*kind) => piece.shortened(),
        Step::Group(kind, field) if piece.kind == Some(*kind) => piece.without(field),
        Step::Truncate(kind, columns) if piece.kind == Some(*kind) => piece.truncated(*columns),
        Step::Segment(kind) if piece.kind == Some(*kind) => None,
        Step::Calm(kind) if piece.kind == Some(*kind) && piece.tone == Tone::Calm => None,
        Step::Others if !has_step(piece.kind) => None,
        Step::Bar if piece.kind == Some(SegmentKind::Load) => piece.with_bar(CELLS / 2, view),
        _ => Some(piece),
    };
    pieces.into_iter().filter_map(reduced).collect()
}
