//! A line in colours: these are ours alone, for words are cleaned before they are painted.

use plimsoll_domain::text::SafeText;

/// One line, piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Painted(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// The parameters of the escape sequence that paints it; none for the terminal's own colour.
    code: Option<String>,
    words: SafeText,
}

impl Painted {
    /// A line of words without colours.
    pub fn plain(words: &str) -> Painted {
        Painted::default().then(None, words)
    }

    /// The line with more words behind it, in this colour (`1;32`).
    pub fn then(mut self, code: Option<&'static str>, words: &str) -> Painted {
        self.push(code.map(str::to_owned), words);
        self
    }

    /// A status line as the policy has painted it: its colours are ours, for every value in it was cleaned. Of all escape
    /// sequences only colours are taken for such.
    pub fn status_line(line: &str) -> Painted {
        let mut painted = Painted::default();
        let mut code = None;
        for (index, part) in line.split("\u{1b}[").enumerate() {
            let end = part.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'));
            let colour = end.filter(|end| index > 0 && part[*end..].starts_with('m'));
            match colour {
                Some(end) => {
                    code = Some(part[..end].to_owned());
                    painted.push(code.clone(), &part[end + 1..]);
                }
                None if index > 0 => painted.push(code.clone(), &format!("\u{1b}[{part}")),
                None => painted.push(None, part),
            }
        }
        painted
    }

    fn push(&mut self, code: Option<String>, words: &str) {
        if !words.is_empty() {
            self.0.push(Piece { code, words: SafeText::line(words) });
        }
    }

    /// The pieces: the parameters of their escape sequences, empty for the terminal's own colour, and their words.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|piece| (piece.code.as_deref().unwrap_or_default(), piece.words.as_str()))
    }

    /// The line without its colours.
    pub fn to_plain(&self) -> String {
        self.0.iter().map(|piece| piece.words.as_str()).collect()
    }

    /// The line as a terminal gets it.
    pub fn to_terminal(&self) -> String {
        let piece = |piece: &Piece| match piece.code.as_deref() {
            None | Some("" | "0") => piece.words.as_str().to_owned(),
            Some(code) => format!("\u{1b}[{code}m{}\u{1b}[0m", piece.words.as_str()),
        };
        self.0.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_are_left() {
        let hostile = "a\u{1b}[31mb\u{1b}]0;x\u{7}\nc";
        let line = Painted::plain("> ").then(Some("1;32"), hostile).to_terminal();
        assert_eq!(line, "> \u{1b}[1;32ma\\u{1b}[31mb\\u{1b}]0;x\\u{7} c\u{1b}[0m");
    }

    #[test]
    fn a_status_line_keeps_its_colours_and_nothing_else() {
        for (line, expected) in [
            ("a \u{1b}[33mb\u{1b}[0m c", "a \u{1b}[33mb\u{1b}[0m c"),
            (
                "\u{1b}[37;44m x \u{1b}[34m\u{e0b0}\u{1b}[0m",
                "\u{1b}[37;44m x \u{1b}[0m\u{1b}[34m\u{e0b0}\u{1b}[0m",
            ),
            ("a\u{1b}[2Jb\u{1b}c\u{9b}d", "a\\u{1b}[2Jb\\u{1b}c\\u{9b}d"),
            ("\u{1b}[31", "\\u{1b}[31"),
        ] {
            assert_eq!(Painted::status_line(line).to_terminal(), expected, "{line:?}");
        }
    }
}
