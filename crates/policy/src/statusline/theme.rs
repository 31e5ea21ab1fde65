//! How a line is painted.

use super::segments::{Piece, Tone};
use plimsoll_domain::statusline::{Background, Colour, SegmentKind, StatusLine, Theme};
use unicode_width::UnicodeWidthStr;

/// What is between two segments.
fn separator(look: &StatusLine) -> &str {
    match (&look.separator, look.theme) {
        (Some(own), _) => own,
        (None, Theme::Plain) => " | ",
        (None, Theme::Colour | Theme::Powerline) => " │ ",
    }
}

/// The cells that so many segments need beside their own.
pub(super) fn room_between(count: usize, look: &StatusLine, colour: bool) -> usize {
    match look.theme {
        // Each has room on both of its sides, and an arrow behind it.
        Theme::Powerline if colour => 3 * count,
        _ => separator(look).width() * count.saturating_sub(1),
    }
}

/// A line.
pub(super) fn paint(shown: &[Piece<'_>], look: &StatusLine, colour: bool) -> String {
    match look.theme {
        Theme::Powerline if colour => powerline(shown, look.background),
        Theme::Powerline => joined(shown, separator(look), |piece| piece.text.clone()),
        Theme::Plain => joined(shown, separator(look), |piece| ascii(&piece.text)),
        Theme::Colour => joined(shown, separator(look), |piece| {
            let own = piece.colour.or_else(|| piece.kind.and_then(|kind| usual(kind, look.background)));
            self::colour(&piece.text, tone_of(piece), own, look.background, colour)
        }),
    }
}

fn joined(shown: &[Piece<'_>], between: &str, text: impl Fn(&Piece<'_>) -> String) -> String {
    shown.iter().map(text).collect::<Vec<_>>().join(between)
}

/// The load line always shows its state by its colour, the others only if it is not normal.
fn tone_of(piece: &Piece<'_>) -> Option<Tone> {
    Some(piece.tone).filter(|tone| *tone != Tone::Calm || piece.kind == Some(SegmentKind::Load))
}

/// What a segment has unless the user or its tone say otherwise; the others have the terminal's own.
fn usual(kind: SegmentKind, ground: Background) -> Option<Colour> {
    match (kind, ground) {
        (SegmentKind::Model, _) => Some(Colour::Named(6)),
        (SegmentKind::Directory, _) => Some(Colour::Named(4)),
        (SegmentKind::Git, _) => Some(Colour::Named(2)),
        (SegmentKind::Effort | SegmentKind::Version | SegmentKind::ItemCost, Background::Dark) => {
            Some(Colour::Index(245))
        }
        (SegmentKind::Effort | SegmentKind::Version | SegmentKind::ItemCost, Background::Light) => {
            Some(Colour::Index(242))
        }
        _ => None,
    }
}

/// Some text in the colour of its tone, else in its own.
pub(super) fn colour(
    text: &str,
    tone: impl Into<Option<Tone>>,
    own: Option<Colour>,
    ground: Background,
    is_on: bool,
) -> String {
    let letters = match (tone.into(), own) {
        _ if !is_on => return text.to_owned(),
        (Some(tone), own) if tone != Tone::Calm || own.is_none() => letters(tone, ground).to_owned(),
        (_, Some(own)) => own.letters(),
        (_, None) => return text.to_owned(),
    };
    format!("\u{1b}[{letters}m{text}\u{1b}[0m")
}

/// On dark ground the terminal's own sixteen, which follow its theme; on light ground its yellow is not to be read.
fn letters(tone: Tone, ground: Background) -> &'static str {
    match (tone, ground) {
        (Tone::Unknown, _) => "2",
        (Tone::Calm, Background::Dark) => "32",
        (Tone::Warn, Background::Dark) => "33",
        (Tone::Checkpoint, Background::Dark) => "35",
        (Tone::Alarm, Background::Dark) => "1;31",
        (Tone::Calm, Background::Light) => "38;5;28",
        (Tone::Warn, Background::Light) => "38;5;130",
        (Tone::Checkpoint, Background::Light) => "38;5;90",
        (Tone::Alarm, Background::Light) => "1;38;5;160",
    }
}

/// The ground of a block, by its tone; two greys in turn for the rest.
fn block(piece: &Piece<'_>, number: usize, ground: Background) -> (Colour, Colour) {
    let (dark, light) = (Colour::Index(255), Colour::Index(234));
    let (letters, greys) = match ground {
        Background::Dark => (dark, [236, 239]),
        Background::Light => (light, [254, 251]),
    };
    let by_tone = tone_of(piece).map(|tone| match (tone, ground) {
        (Tone::Unknown, _) => greys[1],
        (Tone::Calm, Background::Dark) => 22,
        (Tone::Warn, Background::Dark) => 94,
        (Tone::Checkpoint, Background::Dark) => 90,
        (Tone::Alarm, Background::Dark) => 124,
        (Tone::Calm, Background::Light) => 157,
        (Tone::Warn, Background::Light) => 222,
        (Tone::Checkpoint, Background::Light) => 183,
        (Tone::Alarm, Background::Light) => 217,
    });
    let grey = greys[number % 2];
    let block = match by_tone {
        Some(tone) => Colour::Index(tone),
        None => piece.colour.unwrap_or(Colour::Index(grey)),
    };
    (letters, block)
}

fn powerline(shown: &[Piece<'_>], ground: Background) -> String {
    let mut line = String::new();
    let mut before: Option<Colour> = None;
    for (number, segment) in shown.iter().enumerate() {
        let (letters, block) = block(segment, number, ground);
        if let Some(before) = before {
            line.push_str(&format!("\u{1b}[{};{}m\u{e0b0}", before.letters(), block.ground()));
        }
        line.push_str(&format!("\u{1b}[{};{}m {} ", letters.letters(), block.ground(), segment.text));
        before = Some(block);
    }
    let end = before.map(|before| format!("\u{1b}[0m\u{1b}[{}m\u{e0b0}\u{1b}[0m", before.letters()));
    line + &end.unwrap_or_default()
}

/// Our own letters in ASCII; foreign ones (a branch, a directory) stay as they are.
fn ascii(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
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
            letter => letter,
        })
        .collect()
}
