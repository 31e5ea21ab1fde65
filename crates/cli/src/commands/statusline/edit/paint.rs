//! Our own colours as ratatui has them: the few escape sequences that a status line is painted with.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A painted line.
pub(super) fn painted(text: &str) -> Line<'static> {
    let mut style = Style::default();
    let mut spans = Vec::new();
    for (number, part) in text.split("\u{1b}[").enumerate() {
        let plain = match part.split_once('m') {
            Some((codes, rest)) if number > 0 => {
                style = after(style, codes);
                rest
            }
            _ => part,
        };
        if !plain.is_empty() {
            spans.push(Span::styled(plain.to_owned(), style));
        }
    }
    Line::from(spans)
}

fn after(mut style: Style, codes: &str) -> Style {
    let mut numbers = codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        style = match number {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            30..=37 => style.fg(Color::Indexed(number - 30)),
            90..=97 => style.fg(Color::Indexed(number - 82)),
            40..=47 => style.bg(Color::Indexed(number - 40)),
            100..=107 => style.bg(Color::Indexed(number - 92)),
            38 => style.fg(extended(&mut numbers)),
            48 => style.bg(extended(&mut numbers)),
            _ => style,
        };
    }
    style
}

fn extended(numbers: &mut impl Iterator<Item = u8>) -> Color {
    let kind = numbers.next();
    let mut number = || numbers.next().unwrap_or(0);
    match kind {
        Some(5) => Color::Indexed(number()),
        _ => Color::Rgb(number(), number(), number()),
    }
}
