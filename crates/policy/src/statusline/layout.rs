//! Fits a line into the terminal. The bar shrinks, long names are truncated, and groups and whole segments are dropped, the
//! least important first. The context usage segment stays. A line that is still too long is cut here, because the client would
//! cut it at an arbitrary place.

use super::segments::{FULL_BAR_CELLS, RenderedSegment, SegmentState};
use super::truncate::truncate_to_columns;
use super::{StatusLineView, theme};
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use unicode_width::UnicodeWidthStr;

/// One step that makes a line shorter.
enum Reduction {
    /// Drop all groups of the segment.
    DropAllGroups(SegmentKind),
    /// Drop the groups that show this field.
    DropGroupsWithField(SegmentKind, &'static str),
    /// Truncate the name, branch or path to this many columns.
    TruncateNameBranchOrPath(SegmentKind, usize),
    /// Drop the segment.
    DropSegment(SegmentKind),
    /// Drop the segment if its state is normal, for example a limit of which little is used.
    DropIfNormal(SegmentKind),
    /// Drop user-defined segments, and built-in ones for which no other reduction drops all groups or the segment.
    DropRemainingSegments,
    /// Halve the number of cells of the bar.
    HalveBar,
}

/// All reductions in the order in which they are applied. Information that the user acts on goes last: the percent, the remaining
/// tokens, a limit that is nearly reached, the remaining turns and the run.
const REDUCTIONS: [Reduction; 33] = [
    Reduction::HalveBar,
    Reduction::DropGroupsWithField(SegmentKind::ContextUsage, "window"),
    Reduction::DropSegment(SegmentKind::Version),
    Reduction::DropSegment(SegmentKind::Lines),
    Reduction::DropSegment(SegmentKind::Burn),
    Reduction::DropSegment(SegmentKind::ContextGrowth),
    Reduction::DropSegment(SegmentKind::Effort),
    Reduction::DropSegment(SegmentKind::Cache),
    Reduction::DropIfNormal(SegmentKind::Weekly),
    Reduction::DropIfNormal(SegmentKind::Spend),
    Reduction::TruncateNameBranchOrPath(SegmentKind::Directory, 20),
    Reduction::TruncateNameBranchOrPath(SegmentKind::Git, 24),
    Reduction::DropAllGroups(SegmentKind::Run),
    Reduction::DropRemainingSegments,
    Reduction::DropSegment(SegmentKind::Cost),
    Reduction::DropAllGroups(SegmentKind::Git),
    Reduction::TruncateNameBranchOrPath(SegmentKind::Directory, 10),
    Reduction::TruncateNameBranchOrPath(SegmentKind::Git, 12),
    Reduction::DropSegment(SegmentKind::Directory),
    Reduction::DropAllGroups(SegmentKind::Memory),
    Reduction::DropIfNormal(SegmentKind::FiveHour),
    Reduction::DropSegment(SegmentKind::Model),
    Reduction::DropSegment(SegmentKind::Git),
    Reduction::DropSegment(SegmentKind::Memory),
    Reduction::DropGroupsWithField(SegmentKind::ContextUsage, "turns"),
    Reduction::DropAllGroups(SegmentKind::Weekly),
    Reduction::DropAllGroups(SegmentKind::Spend),
    Reduction::DropAllGroups(SegmentKind::FiveHour),
    Reduction::DropAllGroups(SegmentKind::ContextUsage),
    Reduction::DropSegment(SegmentKind::Weekly),
    Reduction::DropSegment(SegmentKind::Spend),
    Reduction::DropSegment(SegmentKind::FiveHour),
    Reduction::DropSegment(SegmentKind::Run),
];

/// The client reserves this many columns and cuts longer lines (observed on 2.1.329).
const RESERVED_COLUMNS: usize = 4;

/// Shortens a line until it fits into the terminal. Returns it unchanged if it fits, or if the columns are unknown.
pub(super) fn fit_to_terminal_width<'a>(
    segments: Vec<RenderedSegment<'a>>,
    view: &StatusLineView,
    settings: &StatusLine,
) -> Vec<RenderedSegment<'a>> {
    let Some(max_width) = view.columns.map(|columns| columns.saturating_sub(RESERVED_COLUMNS).max(1)) else {
        return segments;
    };
    let line_width = |segments: &[RenderedSegment<'_>]| {
        let separators_width = theme::separator_and_padding_columns(segments.len(), settings, view.use_color);
        separators_width + segments.iter().map(|segment| segment.text.width()).sum::<usize>()
    };
    if line_width(&segments) <= max_width {
        return segments;
    }
    let mut fitted_segments = segments.clone();
    let mut applied_reductions = Vec::new();
    for reduction in &REDUCTIONS {
        let previous_width = line_width(&fitted_segments);
        if previous_width <= max_width {
            break;
        }
        fitted_segments = apply_reduction(fitted_segments, reduction, view);
        if line_width(&fitted_segments) < previous_width {
            applied_reductions.push(reduction);
        }
    }
    // A large segment that was dropped leaves room for smaller ones that were dropped before it. Each reduction is
    // undone if the line still fits without it, in reverse order, so that the most important segment comes back first.
    for index in (0..applied_reductions.len()).rev() {
        let other_reductions = applied_reductions
            .iter()
            .enumerate()
            .filter(|(other_index, _)| *other_index != index)
            .map(|(_, reduction)| *reduction);
        let candidate = other_reductions
            .fold(segments.clone(), |segments, reduction| apply_reduction(segments, reduction, view));
        if line_width(&candidate) <= max_width {
            fitted_segments = candidate;
            applied_reductions.remove(index);
        }
    }
    if applied_reductions.iter().any(|reduction| matches!(reduction, Reduction::HalveBar)) {
        let spare_columns = max_width.saturating_sub(line_width(&fitted_segments)) as u64;
        redraw_usage_bar(
            &mut fitted_segments,
            (FULL_BAR_CELLS / 2 + spare_columns).min(FULL_BAR_CELLS),
            view,
        );
    }
    shorten_health_then_last_segments_to_width(fitted_segments, max_width, line_width)
}

/// Redraws the bar of the context usage segment with `cells` cells.
fn redraw_usage_bar(segments: &mut [RenderedSegment<'_>], cells: u64, view: &StatusLineView) {
    if let Some(usage_segment) =
        segments.iter_mut().find(|segment| segment.kind == Some(SegmentKind::ContextUsage))
        && let Some(redrawn_segment) = usage_segment.clone().with_bar_cells(cells, view)
    {
        *usage_segment = redrawn_segment;
    }
}

/// Truncates or removes segments until the line fits: first the health segment, then the others from the last to the
/// first. The context usage segment is first replaced by its percent alone.
fn shorten_health_then_last_segments_to_width<'a>(
    mut segments: Vec<RenderedSegment<'a>>,
    max_width: usize,
    line_width: impl Fn(&[RenderedSegment<'_>]) -> usize,
) -> Vec<RenderedSegment<'a>> {
    while line_width(&segments) > max_width {
        let health_index = segments.iter().rposition(|segment| segment.kind == Some(SegmentKind::Health));
        let Some(index) = health_index.or(segments.len().checked_sub(1)) else { break };
        if let Some(percent) = segments[index].usage_percent_if_shorter() {
            segments[index].text = percent;
            continue;
        }
        let other_width = line_width(&segments) - segments[index].text.width();
        match max_width.checked_sub(other_width).filter(|width_left| *width_left > 0) {
            Some(width_left) => segments[index].text = truncate_to_columns(&segments[index].text, width_left),
            None => drop(segments.remove(index)),
        }
    }
    segments
}

fn is_health_or_has_drop_reduction(kind: Option<SegmentKind>) -> bool {
    let is_listed = |kind| {
        REDUCTIONS.iter().any(|reduction| matches!(reduction, Reduction::DropSegment(listed_kind) | Reduction::DropAllGroups(listed_kind) if *listed_kind == kind))
    };
    // `DropRemainingSegments` must keep the health segment, which
    // `shorten_health_then_last_segments_to_width` shortens if necessary.
    kind.is_some_and(|kind| kind == SegmentKind::Health || is_listed(kind))
}

fn apply_reduction<'a>(
    segments: Vec<RenderedSegment<'a>>,
    reduction: &Reduction,
    view: &StatusLineView,
) -> Vec<RenderedSegment<'a>> {
    let reduce_segment = |segment: RenderedSegment<'a>| match reduction {
        Reduction::DropAllGroups(kind) if segment.kind == Some(*kind) => segment.without_groups(),
        Reduction::DropGroupsWithField(kind, field) if segment.kind == Some(*kind) => {
            segment.without_groups_containing(field)
        }
        Reduction::TruncateNameBranchOrPath(kind, columns) if segment.kind == Some(*kind) => {
            segment.with_truncated_name_branch_or_path(*columns)
        }
        Reduction::DropSegment(kind) if segment.kind == Some(*kind) => None,
        Reduction::DropIfNormal(kind)
            if segment.kind == Some(*kind) && segment.state == SegmentState::Normal =>
        {
            None
        }
        Reduction::DropRemainingSegments if !is_health_or_has_drop_reduction(segment.kind) => None,
        Reduction::HalveBar if segment.kind == Some(SegmentKind::ContextUsage) => {
            segment.with_bar_cells(FULL_BAR_CELLS / 2, view)
        }
        _ => Some(segment),
    };
    segments.into_iter().filter_map(reduce_segment).collect()
}
