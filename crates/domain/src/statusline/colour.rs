//! A colour as a user names it.

use serde::{Deserialize, Serialize};

/// One of the terminal's sixteen (`red`, `bright-blue`), of its 256 (`208`), or any (`#ff8800`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Colour {
    /// The terminal's own, 0 to 15: as the user's theme has them.
    Named(u8),
    /// Of the fixed palette.
    Index(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

const NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

impl Colour {
    /// The parameters of the escape sequence that paints letters in it.
    pub fn letters(self) -> String {
        match self {
            Colour::Named(number @ 0..8) => (30 + number).to_string(),
            Colour::Named(number) => (82 + number).to_string(),
            Colour::Index(number) => format!("38;5;{number}"),
            Colour::Rgb(red, green, blue) => format!("38;2;{red};{green};{blue}"),
        }
    }

    /// The same for the ground.
    pub fn ground(self) -> String {
        match self {
            Colour::Named(number @ 0..8) => (40 + number).to_string(),
            Colour::Named(number) => (92 + number).to_string(),
            Colour::Index(number) => format!("48;5;{number}"),
            Colour::Rgb(red, green, blue) => format!("48;2;{red};{green};{blue}"),
        }
    }
}

/// A name that no colour has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no colour: {names}, bright- before one of these, a number from 0 to 255, or \"#rrggbb\"",
    names = NAMES.join(", ")
)]
pub struct UnknownColour(String);

impl TryFrom<String> for Colour {
    type Error = UnknownColour;

    fn try_from(name: String) -> Result<Colour, UnknownColour> {
        let (bright, base) = match name.strip_prefix("bright-") {
            Some(base) => (8, base),
            None => (0, name.as_str()),
        };
        let named = NAMES.iter().position(|known| *known == base);
        let rgb = || {
            let digits =
                name.strip_prefix('#').filter(|digits| digits.len() == 6 && !digits.contains('+'))?;
            let pair = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            Some(Colour::Rgb(pair(0)?, pair(2)?, pair(4)?))
        };
        named
            .map(|number| Colour::Named(number as u8 + bright))
            .or_else(|| name.parse().ok().map(Colour::Index).filter(|colour| String::from(*colour) == name))
            .or_else(rgb)
            .ok_or_else(|| UnknownColour(name.clone()))
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> String {
        match colour {
            Colour::Named(number @ 0..8) => NAMES[usize::from(number)].to_owned(),
            Colour::Named(number) => format!("bright-{}", NAMES[usize::from(number) % 8]),
            Colour::Index(number) => number.to_string(),
            Colour::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_what_its_name_says_and_comes_back_by_it() {
        for (name, letters, ground) in [
            ("red", "31", "41"),
            ("bright-red", "91", "101"),
            ("208", "38;5;208", "48;5;208"),
            ("#ff8800", "38;2;255;136;0", "48;2;255;136;0"),
        ] {
            let colour = Colour::try_from(name.to_owned()).unwrap();
            assert_eq!((colour.letters().as_str(), colour.ground().as_str()), (letters, ground));
            assert_eq!(String::from(colour), name);
        }
        for name in
            ["", "rouge", "256", "-1", "+1", "007", "#+f+f+f", "#ff880", "#gg0000", "#ééé", "bright-208"]
        {
            assert!(Colour::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
