//! Our own colours as ratatui has them: the few escape sequences that a status line is painted with.

use plimsoll_terminal::console::Painted;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A painted line.
pub(super) fn painted(line: &str) -> Line<'static> {
    let painted = Painted::status_line(line);
    painted.pieces().map(|(code, words)| Span::styled(words.to_owned(), style(code))).collect()
}

fn style(code: &str) -> Style {
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
