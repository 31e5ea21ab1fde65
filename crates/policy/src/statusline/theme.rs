//! Applies the theme to a line: separators, colors and ASCII glyphs.

use super::segments::{RenderedSegment, SegmentState};
use plimsoll_domain::statusline::{Background, Color, SegmentKind, StatusLine, Theme};
use unicode_width::UnicodeWidthStr;

/// Returns the text between two segments: the configured one, or the default of the theme.
fn segment_separator(settings: &StatusLine) -> &str {
    match (&settings.separator, settings.theme) {
        (Some(custom), _) => custom,
        (None, Theme::Plain) => " | ",
        (None, Theme::Colour | Theme::Powerline) => " │ ",
    }
}

/// Returns the columns that separators and padding add to this many segments.
pub(super) fn separator_and_padding_columns(
    segment_count: usize,
    settings: &StatusLine,
    use_color: bool,
) -> usize {
    match settings.theme {
        // Each segment has a space on both sides and an arrow after it.
        Theme::Powerline if use_color => 3 * segment_count,
        _ => segment_separator(settings).width() * segment_count.saturating_sub(1),
    }
}

/// Renders the segments as one line in the configured theme.
pub(super) fn render_line_in_theme(
    segments: &[RenderedSegment<'_>],
    settings: &StatusLine,
    use_color: bool,
) -> String {
    match settings.theme {
        Theme::Powerline if use_color => render_powerline(segments, settings.background),
        Theme::Powerline => {
            join_segments(segments, segment_separator(settings), |segment| segment.text.clone())
        }
        Theme::Plain => join_segments(segments, segment_separator(settings), |segment| {
            replace_glyphs_with_ascii(&segment.text)
        }),
        Theme::Colour => join_segments(segments, segment_separator(settings), |segment| {
            let segment_color = segment
                .color
                .or_else(|| segment.kind.and_then(|kind| default_color(kind, settings.background)));
            paint_text(
                &segment.text,
                state_to_show_by_color(segment),
                segment_color,
                settings.background,
                use_color,
            )
        }),
    }
}

fn join_segments(
    segments: &[RenderedSegment<'_>],
    separator: &str,
    render_text: impl Fn(&RenderedSegment<'_>) -> String,
) -> String {
    segments.iter().map(render_text).collect::<Vec<_>>().join(separator)
}

/// Returns the state that is shown by color: always for the context usage segment, otherwise only if it is not normal.
fn state_to_show_by_color(segment: &RenderedSegment<'_>) -> Option<SegmentState> {
    Some(segment.state)
        .filter(|state| *state != SegmentState::Normal || segment.kind == Some(SegmentKind::ContextUsage))
}

/// Returns a segment's default color, which applies if neither the user nor the state sets one. `None` keeps the terminal's
/// color.
fn default_color(kind: SegmentKind, background: Background) -> Option<Color> {
    match (kind, background) {
        (SegmentKind::Model, _) => Some(Color::Terminal(6)),
        (SegmentKind::Directory, _) => Some(Color::Terminal(4)),
        (SegmentKind::Git, _) => Some(Color::Terminal(2)),
        (SegmentKind::Effort | SegmentKind::Version | SegmentKind::ContextGrowth, Background::Dark) => {
            Some(Color::Palette(245))
        }
        (SegmentKind::Effort | SegmentKind::Version | SegmentKind::ContextGrowth, Background::Light) => {
            Some(Color::Palette(242))
        }
        _ => None,
    }
}

/// Colors text by its state. `segment_color` overrides a normal state. Without a state and a color the text is returned
/// unchanged.
pub(super) fn paint_text(
    text: &str,
    state: impl Into<Option<SegmentState>>,
    segment_color: Option<Color>,
    background: Background,
    use_color: bool,
) -> String {
    let sgr_codes = match (state.into(), segment_color) {
        _ if !use_color => return text.to_owned(),
        (Some(state), segment_color) if state != SegmentState::Normal || segment_color.is_none() => {
            state_sgr_codes(state, background).to_owned()
        }
        (_, Some(segment_color)) => segment_color.foreground_sgr_parameters(),
        (_, None) => return text.to_owned(),
    };
    format!("\u{1b}[{sgr_codes}m{text}\u{1b}[0m")
}

/// Returns the SGR codes for a state. A dark background uses the terminal's sixteen colors, which follow its theme; on a light
/// background the terminal's yellow is unreadable, so fixed colors are used.
fn state_sgr_codes(state: SegmentState, background: Background) -> &'static str {
    match (state, background) {
        (SegmentState::Unknown, _) => "2",
        (SegmentState::Normal, Background::Dark) => "32",
        (SegmentState::Warning, Background::Dark) => "33",
        (SegmentState::Checkpoint, Background::Dark) => "35",
        (SegmentState::Alarm, Background::Dark) => "1;31",
        (SegmentState::Normal, Background::Light) => "38;5;28",
        (SegmentState::Warning, Background::Light) => "38;5;130",
        (SegmentState::Checkpoint, Background::Light) => "38;5;90",
        (SegmentState::Alarm, Background::Light) => "1;38;5;160",
    }
}

/// Returns the text color and the background color of a powerline block. The background shows the state. If there is no state to
/// show, it is the segment's configured color or one of two alternating grays.
fn powerline_text_and_block_colors(
    segment: &RenderedSegment<'_>,
    index: usize,
    background: Background,
) -> (Color, Color) {
    let (light_text, dark_text) = (Color::Palette(255), Color::Palette(234));
    let (text_color, grays) = match background {
        Background::Dark => (light_text, [236, 239]),
        Background::Light => (dark_text, [254, 251]),
    };
    let state_color = state_to_show_by_color(segment).map(|state| match (state, background) {
        (SegmentState::Unknown, _) => grays[1],
        (SegmentState::Normal, Background::Dark) => 22,
        (SegmentState::Warning, Background::Dark) => 94,
        (SegmentState::Checkpoint, Background::Dark) => 90,
        (SegmentState::Alarm, Background::Dark) => 124,
        (SegmentState::Normal, Background::Light) => 157,
        (SegmentState::Warning, Background::Light) => 222,
        (SegmentState::Checkpoint, Background::Light) => 183,
        (SegmentState::Alarm, Background::Light) => 217,
    });
    let gray = grays[index % 2];
    let block_color = match state_color {
        Some(color_index) => Color::Palette(color_index),
        None => segment.color.unwrap_or(Color::Palette(gray)),
    };
    (text_color, block_color)
}

fn render_powerline(segments: &[RenderedSegment<'_>], background: Background) -> String {
    let mut line = String::new();
    let mut previous_block: Option<Color> = None;
    for (index, segment) in segments.iter().enumerate() {
        let (text_color, block_color) = powerline_text_and_block_colors(segment, index, background);
        if let Some(previous_block) = previous_block {
            line.push_str(&format!(
                "\u{1b}[{};{}m\u{e0b0}",
                previous_block.foreground_sgr_parameters(),
                block_color.background_sgr_parameters()
            ));
        }
        line.push_str(&format!(
            "\u{1b}[{};{}m {} ",
            text_color.foreground_sgr_parameters(),
            block_color.background_sgr_parameters(),
            segment.text
        ));
        previous_block = Some(block_color);
    }
    let line_end = previous_block.map(|previous_block| {
        format!("\u{1b}[0m\u{1b}[{}m\u{e0b0}\u{1b}[0m", previous_block.foreground_sgr_parameters())
    });
    line + &line_end.unwrap_or_default()
}

/// Replaces the status line's glyphs with ASCII characters. Other characters, such as those of a branch or a directory, are kept.
fn replace_glyphs_with_ascii(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '▕' => '[',
            '▏' => ']',
            '█' => '#',
            '░' => '.',
            '┆' => ':',
            '┃' => '|',
            '⎇' => '@',
            '↑' => '^',
            '↓' => 'v',
            '·' | '−' => '-',
            '↻' => '>',
            '⚠' => '!',
            '…' => '.',
            '▁' | '▂' => '_',
            '▃' | '▄' => '-',
            '▅' | '▆' => '=',
            '▇' => '#',
            other => other,
        })
        .collect()
}
