//! The colors of the status line, as a user names them.

use serde::{Deserialize, Serialize};

/// A color of the terminal's 16 named colors (`red`, `bright-blue`), of its palette of 256 (`208`), or any RGB color
/// (`#ff8800`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Color {
    /// A named color, 0 to 15. The terminal's theme defines how it looks.
    Terminal(u8),
    /// A color of the fixed palette.
    Palette(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

const TERMINAL_COLOR_NAMES: [&str; 8] =
    ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

impl Color {
    /// Returns the parameters of the escape sequence (SGR) that sets this color as the foreground.
    pub fn foreground_sgr_parameters(self) -> String {
        match self {
            Color::Terminal(number @ 0..8) => (30 + number).to_string(),
            Color::Terminal(number) => (82 + number).to_string(),
            Color::Palette(number) => format!("38;5;{number}"),
            Color::Rgb(red, green, blue) => format!("38;2;{red};{green};{blue}"),
        }
    }

    /// Returns the parameters of the escape sequence (SGR) that sets this color as the background.
    pub fn background_sgr_parameters(self) -> String {
        match self {
            Color::Terminal(number @ 0..8) => (40 + number).to_string(),
            Color::Terminal(number) => (92 + number).to_string(),
            Color::Palette(number) => format!("48;5;{number}"),
            Color::Rgb(red, green, blue) => format!("48;2;{red};{green};{blue}"),
        }
    }
}

/// The error for a text that names no color.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a color: {names}, bright- before one of these, a number from 0 to 255, or \"#rrggbb\"",
    names = TERMINAL_COLOR_NAMES.join(", ")
)]
pub struct UnknownColor(String);

impl TryFrom<String> for Color {
    type Error = UnknownColor;

    fn try_from(name: String) -> Result<Color, UnknownColor> {
        let (bright_offset, base_name) = match name.strip_prefix("bright-") {
            Some(base) => (8, base),
            None => (0, name.as_str()),
        };
        let terminal_index = TERMINAL_COLOR_NAMES.iter().position(|color_name| *color_name == base_name);
        let parse_rgb = || {
            let hex_text =
                name.strip_prefix('#').filter(|hex_text| hex_text.len() == 6 && !hex_text.contains('+'))?;
            let parse_hex_pair = |start| u8::from_str_radix(hex_text.get(start..start + 2)?, 16).ok();
            Some(Color::Rgb(parse_hex_pair(0)?, parse_hex_pair(2)?, parse_hex_pair(4)?))
        };
        terminal_index
            .map(|number| Color::Terminal(number as u8 + bright_offset))
            .or_else(|| name.parse().ok().map(Color::Palette).filter(|color| String::from(*color) == name))
            .or_else(parse_rgb)
            .ok_or_else(|| UnknownColor(name.clone()))
    }
}

impl From<Color> for String {
    fn from(color: Color) -> String {
        match color {
            Color::Terminal(number @ 0..8) => TERMINAL_COLOR_NAMES[usize::from(number)].to_owned(),
            Color::Terminal(number) => format!("bright-{}", TERMINAL_COLOR_NAMES[usize::from(number) % 8]),
            Color::Palette(number) => number.to_string(),
            Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_is_parsed_from_its_name_and_written_back_as_it() {
        for (name, foreground, background) in [
            ("red", "31", "41"),
            ("bright-red", "91", "101"),
            ("208", "38;5;208", "48;5;208"),
            ("#ff8800", "38;2;255;136;0", "48;2;255;136;0"),
        ] {
            let color = Color::try_from(name.to_owned()).unwrap();
            assert_eq!(
                (color.foreground_sgr_parameters().as_str(), color.background_sgr_parameters().as_str()),
                (foreground, background)
            );
            assert_eq!(String::from(color), name);
        }
        for name in
            ["", "rouge", "256", "-1", "+1", "007", "#+f+f+f", "#ff880", "#gg0000", "#ééé", "bright-208"]
        {
            assert!(Color::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
