//! The settings of the status line: which segments are in which line, and the format and color of each.

mod color;
pub mod format;
mod kind;

pub use color::{Color, UnknownColor};
pub use format::{SegmentFormat, SegmentFormatError};
pub use kind::SegmentKind;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The status line, as the settings describe it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StatusLine {
    /// ASCII without color, colored text, or colored blocks (needs a powerline font). NO_COLOR turns color off.
    pub theme: Theme,
    /// The terminal's background.
    pub background: Background,
    /// Text between two segments. Default: the theme's own.
    pub separator: Option<String>,
    /// The segments of each line. Also available: effort, growth, cache, burn, lines, version, and your own.
    pub lines: Vec<Vec<Cow<'static, str>>>,
    /// Changes to segments, and your own ones, by name.
    pub segments: BTreeMap<String, Segment>,
}

/// How the line is painted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// ASCII without color.
    Plain,
    /// Colored text.
    #[default]
    Colour,
    /// Colored blocks; needs a powerline font.
    Powerline,
}

/// What the line is painted on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// A dark background.
    #[default]
    Dark,
    /// A light background.
    Light,
}

/// Changes to one segment; only what differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Segment {
    /// Text, `{field}` and `[groups]`. A group disappears if a field is empty or the line too long. Escape with `\[`, `\]`,
    /// `\{`, `\}`. Your own segments have `{value}`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<SegmentFormat>,
    /// black, red, green, yellow, blue, magenta, cyan, white, one of these with `bright-` before it, 0 to 255, or #rrggbb.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    #[serde(rename = "colour", skip_serializing_if = "Option::is_none")]
    pub color: Option<Color>,
    /// Hides the segment in narrower terminals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_columns: Option<usize>,
    /// Warns from this value on: US dollars for `cost`, US dollars per hour for `burn`, percent for `five_hour`, `weekly`
    /// and `spend` (default 75).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<f64>,
    /// Alarms from this value on. Default: 90 for `five_hour`, `weekly` and `spend`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alarm: Option<f64>,
    /// Your own segment: a JSON pointer into the status line's payload, such as /output_style/name.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^/")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Your own segment: a program and its arguments, without a shell. It reads the payload and prints one line.
    #[cfg_attr(feature = "schema", schemars(extend("minItems" = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Timeout of the command, in milliseconds; for the `git` segment, of `git status`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_SEGMENT_TIMEOUT_MS), extend("default" = DEFAULT_SEGMENT_TIMEOUT_MS)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Default timeout of a segment's child process. It is short because the client ends a slow status line when the next one is
/// due.
pub const DEFAULT_SEGMENT_TIMEOUT_MS: u64 = 200;
/// Upper limit of a segment's timeout, whatever the settings say.
const MAX_SEGMENT_TIMEOUT_MS: u64 = 5_000;

impl Default for StatusLine {
    fn default() -> Self {
        let default_kinds = [
            SegmentKind::Model,
            SegmentKind::Directory,
            SegmentKind::Git,
            SegmentKind::ContextUsage,
            SegmentKind::Run,
            SegmentKind::Memory,
            SegmentKind::FiveHour,
            SegmentKind::Weekly,
            SegmentKind::Spend,
            SegmentKind::Cost,
            SegmentKind::Health,
        ];
        StatusLine {
            theme: Theme::default(),
            background: Background::default(),
            separator: None,
            lines: vec![default_kinds.map(|kind| Cow::Borrowed(kind.name())).to_vec()],
            segments: BTreeMap::new(),
        }
    }
}

impl StatusLine {
    /// Returns the user's settings of a segment, if there are any.
    pub fn segment_settings(&self, name: &str) -> Option<&Segment> {
        self.segments.get(name)
    }

    /// Returns true if a segment is in any line.
    pub fn has_segment(&self, kind: SegmentKind) -> bool {
        self.lines.iter().flatten().any(|name| name == kind.name())
    }

    /// Returns the format of a built-in segment: the user's, or the default.
    pub fn segment_format(&self, kind: SegmentKind) -> &str {
        let format = self.segment_settings(kind.name()).and_then(|segment| segment.format.as_ref());
        format.map_or(kind.default_format(), SegmentFormat::as_str)
    }

    /// Returns true if a segment is shown and its format contains one of these fields.
    pub fn uses_any_field(&self, kind: SegmentKind, fields: &[&str]) -> bool {
        self.has_segment(kind) && format::contains_any_field(self.segment_format(kind), fields)
    }

    /// Returns the timeout of a segment's child process.
    pub fn segment_timeout(&self, name: &str) -> std::time::Duration {
        let configured_ms = self.segment_settings(name).and_then(|segment| segment.timeout_ms);
        std::time::Duration::from_millis(
            configured_ms.unwrap_or(DEFAULT_SEGMENT_TIMEOUT_MS).min(MAX_SEGMENT_TIMEOUT_MS),
        )
    }

    /// Describes the first value that parses but is invalid; `None` if all are valid.
    pub fn find_validation_error(&self) -> Option<String> {
        if self.separator.as_ref().is_some_and(|text| text.contains(char::is_control)) {
            return Some(
                "statusline.separator has a control character, which a terminal may interpret".to_owned(),
            );
        }
        // Only the names in the default lines are borrowed, and they are valid.
        let is_unknown_segment = |name: &&Cow<'static, str>| {
            matches!(name, Cow::Owned(_))
                && SegmentKind::from_name(name).is_none()
                && !self.segments.contains_key(name.as_ref())
        };
        if let Some(name) = self.lines.iter().flatten().find(is_unknown_segment) {
            return Some(format!(
                "statusline.lines names {name:?}, which is not a segment: there are {}, and those of statusline.segments",
                SegmentKind::comma_separated_names()
            ));
        }
        self.segments.iter().find_map(|(name, segment)| {
            Some(format!("statusline.segments.{name}: {}", segment.find_validation_error(name)?))
        })
    }
}

impl Segment {
    fn find_validation_error(&self, name: &str) -> Option<String> {
        let fields: Vec<&str> = match (SegmentKind::from_name(name), &self.pointer, &self.command) {
            (Some(kind), None, None) => kind.fields().iter().map(|(field, _)| *field).collect(),
            (Some(_), ..) => {
                return Some("is a built-in segment: a pointer or a command needs a name of its own".into());
            }
            (None, Some(_), Some(_)) => {
                return Some("has a pointer and a command: give only one".into());
            }
            (None, None, None) => {
                return Some(format!(
                    "is not a built-in segment ({}), and has no pointer and no command",
                    SegmentKind::comma_separated_names()
                ));
            }
            (None, ..) => vec!["value"],
        };
        if let Some(pointer) = self.pointer.as_ref().filter(|pointer| !pointer.starts_with('/')) {
            return Some(format!("pointer {pointer:?} must begin with a slash: \"/model/id\""));
        }
        if self.command.as_ref().is_some_and(|command| command.first().is_none_or(String::is_empty)) {
            return Some("command names no program: give a list of the program and its arguments".into());
        }
        let unknown_field = format::field_names(self.format.as_ref()?.as_str())
            .into_iter()
            .find(|field| !fields.contains(field))?;
        Some(format!("format has {{{unknown_field}}}, but its fields are {}", fields.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validation_error_of_json(json: &str) -> Option<String> {
        match serde_json::from_str::<StatusLine>(json) {
            Ok(line) => line.find_validation_error(),
            Err(error) => Some(error.to_string()),
        }
    }

    #[test]
    fn invalid_settings_are_reported_with_their_place() {
        for (json, words) in [
            (r#"{"lines": [["model", "modell"]]}"#, "\"modell\""),
            (r#"{"segments": {"x": {}}}"#, "segments.x: is not a built-in segment"),
            (r#"{"segments": {"model": {"pointer": "/a"}}}"#, "segments.model: is a built-in segment"),
            (r#"{"segments": {"x": {"pointer": "/a", "command": ["b"]}}}"#, "give only one"),
            (r#"{"segments": {"x": {"pointer": "a"}}}"#, "begin with a slash"),
            (r#"{"segments": {"x": {"command": []}}}"#, "names no program"),
            (r#"{"segments": {"model": {"format": "{nam}"}}}"#, "{nam}, but its fields are name, id"),
            (r#"{"segments": {"model": {"format": "{name"}}}"#, "`{` is never closed"),
            (r#"{"segments": {"model": {"colour": "rosé"}}}"#, "rosé"),
            (r#"{"theme": "dark"}"#, "plain"),
            (r#"{"separator": "\u001b[2J"}"#, "separator has a control character"),
            (r#"{"segment": {}}"#, "segment"),
        ] {
            let error_text = validation_error_of_json(json).unwrap_or_default();
            assert!(error_text.contains(words), "{json}: {error_text:?}");
        }
        let good = r##"{"theme": "powerline", "lines": [["load"], ["x", "git"]], "separator": " ",
            "segments": {"x": {"pointer": "/a/0", "format": "x {value}", "colour": "#ff8800", "warn": 3},
                         "git": {"format": "{branch}[ {modified}]", "colour": "208", "min_columns": 80}}}"##;
        assert_eq!(validation_error_of_json(good), None);
        assert_eq!(StatusLine::default().find_validation_error(), None);
    }

    #[test]
    fn settings_survive_a_round_trip() {
        let json = r##"{"theme":"plain","background":"light","separator":null,"lines":[["load"]],"segments":{"git":{"format":"{branch}[ !{modified}]","colour":"#ff8800"},"x":{"command":["date","+%H"],"timeout_ms":50}}}"##;
        let line: StatusLine = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), json);
    }
}
