//! Renders the status line. A segment with nothing to show is hidden, with a reason for it.

mod context_usage;
mod hidden_reason;
mod layout;
mod segments;
mod theme;
mod truncate;
mod view;

pub use context_usage::{median_growth, render_usage_bar_with_thresholds, tokens_added_per_response};
pub use hidden_reason::HiddenReason;
pub use view::{CacheView, ContextUsageView, GitView, LimitView, MemoryView, RunView, StatusLineView};

use plimsoll_domain::level::Level;
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use segments::RenderedSegment;
use std::borrow::Cow;

/// Renders the status line, which may have several lines. If all segments are hidden, it is `plimsoll`: with an empty
/// status line the client would show nothing, and the user would not know why.
pub fn render_lines_or_program_name(view: &StatusLineView, settings: &StatusLine) -> String {
    let painted_lines = settings.lines.iter().filter_map(|segment_names| {
        let segments = segment_names
            .iter()
            .filter_map(|name| segments::render_segment(name, view, settings).ok())
            .collect();
        let fitted_segments = layout::fit_to_terminal_width(segments, view, settings);
        (!fitted_segments.is_empty())
            .then(|| theme::render_line_in_theme(&fitted_segments, settings, view.use_color))
    });
    let lines: Vec<String> = painted_lines.collect();
    if lines.is_empty() { "plimsoll".to_owned() } else { lines.join("\n") }
}

/// Renders only the context usage bar with `cells` cells, followed by the percent.
pub fn render_bar_and_percent_in_level_color(view: &StatusLineView, cells: u64) -> String {
    let segment_state = segments::SegmentState::from_level_or_unknown(usage_level(view));
    let text = format!(
        "{} {}",
        render_usage_bar_with_thresholds(&view.context_usage, cells),
        context_usage::format_used_percent(&view.context_usage)
    );
    theme::paint_text(&text, segment_state, None, Default::default(), view.use_color)
}

fn usage_level(view: &StatusLineView) -> Option<Level> {
    view.context_usage
        .thresholds
        .zip(view.context_usage.used_tokens)
        .map(|(thresholds, used)| thresholds.level_at(used))
}

/// An explanation of one segment: its text and the source of its value, or why it is hidden.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentExplanation {
    pub name: String,
    /// The line that contains it, counted from 1; `None` if no line does.
    pub line_number: Option<usize>,
    pub description: String,
    /// The source of its value.
    pub source: String,
    /// Its text without colors, or why it is hidden.
    pub rendered: Result<String, HiddenReason>,
    /// The names and values of its fields.
    pub fields: Vec<(String, String)>,
}

/// Explains all segments, first the built-in and then the user-defined ones.
pub fn explain_segments(view: &StatusLineView, settings: &StatusLine) -> Vec<SegmentExplanation> {
    let builtin_names = SegmentKind::ALL.iter().map(|kind| kind.name());
    let custom_names =
        settings.segments.keys().map(String::as_str).filter(|name| SegmentKind::from_name(name).is_none());
    builtin_names.chain(custom_names).map(|name| explain_segment(name, view, settings)).collect()
}

fn explain_segment(name: &str, view: &StatusLineView, settings: &StatusLine) -> SegmentExplanation {
    let line_index =
        settings.lines.iter().position(|names| names.iter().any(|listed_name| listed_name == name));
    let rendered = segments::render_segment(name, view, settings);
    let fields = rendered.iter().flat_map(|segment| segment.fields.iter());
    let (description, source) = match (SegmentKind::from_name(name), settings.segment_settings(name)) {
        (Some(kind), _) => (kind.description().to_owned(), kind.data_source().to_owned()),
        (None, Some(segment)) => ("of your own".to_owned(), segments::describe_custom_value_source(segment)),
        (None, None) => Default::default(),
    };
    SegmentExplanation {
        name: name.to_owned(),
        line_number: line_index.map(|line| line + 1),
        description,
        source,
        fields: fields.map(|(field, value)| ((*field).to_owned(), value.clone())).collect(),
        rendered: rendered.and_then(|segment| {
            match line_index.map(|line| is_dropped_from_line(&segment, &settings.lines[line], view, settings))
            {
                None => Err(HiddenReason::NothingToShow("it is in no line of the settings")),
                Some(true) => Err(HiddenReason::LineTooLong { columns: view.columns.unwrap_or_default() }),
                Some(false) => Ok(segment.text),
            }
        }),
    }
}

fn is_dropped_from_line(
    segment: &RenderedSegment<'_>,
    segment_names: &[Cow<'static, str>],
    view: &StatusLineView,
    settings: &StatusLine,
) -> bool {
    let segments =
        segment_names.iter().filter_map(|name| segments::render_segment(name, view, settings).ok()).collect();
    !layout::fit_to_terminal_width(segments, view, settings)
        .iter()
        .any(|fitted_segment| fitted_segment.name == segment.name)
}

#[cfg(test)]
mod tests;
