//! Converts the colors of a rendered status line to ratatui's styles. Supports only the escape sequences that a status line uses.

use plimsoll_terminal::console::PaintedLine;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Converts a line with ANSI colors.
pub(super) fn to_ratatui_line(line: &str) -> Line<'static> {
    let painted_line = PaintedLine::from_line_with_ansi_colors(line);
    painted_line
        .colors_and_texts()
        .map(|(code, text)| Span::styled(text.to_owned(), style_of_sgr_code(code)))
        .collect()
}

fn style_of_sgr_code(code: &str) -> Style {
    let mut numbers = code.split(';').map(|number| number.parse::<u8>().unwrap_or(0));
    let mut style = Style::default();
    while let Some(number) = numbers.next() {
        style = match number {
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            30..=37 => style.fg(Color::Indexed(number - 30)),
            90..=97 => style.fg(Color::Indexed(number - 82)),
            40..=47 => style.bg(Color::Indexed(number - 40)),
            100..=107 => style.bg(Color::Indexed(number - 92)),
            38 => style.fg(parse_indexed_else_rgb_color(&mut numbers)),
            48 => style.bg(parse_indexed_else_rgb_color(&mut numbers)),
            _ => style,
        };
    }
    style
}

fn parse_indexed_else_rgb_color(numbers: &mut impl Iterator<Item = u8>) -> Color {
    let kind = numbers.next();
    let mut next_number = || numbers.next().unwrap_or(0);
    match kind {
        Some(5) => Color::Indexed(next_number()),
        _ => Color::Rgb(next_number(), next_number(), next_number()),
    }
}
