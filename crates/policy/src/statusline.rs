//! The status line: each segment shows or leaves itself out by itself, and says why.

mod hidden;
mod layout;
mod load;
mod segments;
mod theme;
mod truncate;
mod view;

pub use hidden::Hidden;
pub use load::{bar, growths, median};
pub use view::{CacheView, GitView, LimitView, LoadView, MemoryView, RunView, View};

use plimsoll_domain::level::Level;
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use segments::Piece;
use std::borrow::Cow;

/// The line, or lines. Never empty: without a line the client would show nothing, without a reason.
pub fn render(view: &View, look: &StatusLine) -> String {
    let painted = look.lines.iter().filter_map(|names| {
        let pieces = names.iter().filter_map(|name| segments::piece(name, view, look).ok()).collect();
        let shown = layout::fit(pieces, view, look);
        (!shown.is_empty()).then(|| theme::paint(&shown, look, view.colour))
    });
    let lines: Vec<String> = painted.collect();
    if lines.is_empty() { "plimsoll".to_owned() } else { lines.join("\n") }
}

/// The load line alone, as wide as asked for: bar and percent.
pub fn load_line(view: &View, cells: u64) -> String {
    let tone = segments::Tone::of_level(level(view));
    let text = format!("{} {}", bar(&view.load, cells), load::percent(&view.load));
    theme::colour(&text, tone, None, Default::default(), view.colour)
}

fn level(view: &View) -> Option<Level> {
    view.load.thresholds.zip(view.load.used).map(|(thresholds, used)| thresholds.level(used))
}

/// What is to be said of one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Its name.
    pub name: String,
    /// The line it is in, from 1; none if it is in none.
    pub line: Option<usize>,
    /// What it shows.
    pub words: String,
    /// Where that comes from.
    pub source: String,
    /// As it is written, without colours; or why it is hidden.
    pub shown: Result<String, Hidden>,
    /// Its fields.
    pub fields: Vec<(String, String)>,
}

/// What each segment shows, from where, and why it does not.
pub fn explain(view: &View, look: &StatusLine) -> Vec<Explained> {
    let ours = SegmentKind::ALL.iter().map(|kind| kind.name());
    let own = look.segments.keys().map(String::as_str).filter(|name| SegmentKind::named(name).is_none());
    ours.chain(own).map(|name| explained(name, view, look)).collect()
}

fn explained(name: &str, view: &View, look: &StatusLine) -> Explained {
    let line = look.lines.iter().position(|names| names.iter().any(|other| other == name));
    let piece = segments::piece(name, view, look);
    let fields = piece.iter().flat_map(|piece| piece.fields.iter());
    let (words, source) = match (SegmentKind::named(name), look.of(name)) {
        (Some(kind), _) => (kind.words().to_owned(), kind.source().to_owned()),
        (None, Some(segment)) => ("of your own".to_owned(), segments::source(segment)),
        (None, None) => Default::default(),
    };
    Explained {
        name: name.to_owned(),
        line: line.map(|line| line + 1),
        words,
        source,
        fields: fields.map(|(field, value)| ((*field).to_owned(), value.clone())).collect(),
        shown: piece.and_then(|piece| {
            match line.map(|line| left_out(&piece, &look.lines[line], view, look)) {
                None => Err(Hidden::Nothing("it is in no line of the settings")),
                Some(true) => Err(Hidden::NoRoom { columns: view.columns.unwrap_or_default() }),
                Some(false) => Ok(piece.text),
            }
        }),
    }
}

fn left_out(piece: &Piece<'_>, names: &[Cow<'static, str>], view: &View, look: &StatusLine) -> bool {
    let pieces = names.iter().filter_map(|name| segments::piece(name, view, look).ok()).collect();
    !layout::fit(pieces, view, look).iter().any(|shown| shown.name == piece.name)
}

#[cfg(test)]
mod tests;
