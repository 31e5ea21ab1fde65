//! Makes untrusted text safe to read: replaces characters that would move the cursor, change the writing
//! direction or be hidden with their escape sequences.

use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use serde_json::{Map, Value};

/// Returns the text with hidden characters escaped; line breaks and tabs are kept.
pub(crate) fn show_hidden_characters(text: &str) -> String {
    plimsoll_protocol::untrusted_text::escape_hidden_characters(text).into_owned()
}

/// Renders JSON for people: a string without quotes, any other value pretty-printed.
pub(crate) fn pretty_json(value: &Value) -> String {
    match value {
        Value::String(text) => show_hidden_characters(text),
        other => show_hidden_characters(&serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

/// Renders the arguments of a call for people: only the command if there is one, otherwise all arguments.
pub(crate) fn call_arguments_text(args: &Value) -> String {
    match args.get("command").and_then(Value::as_str) {
        Some(command) => show_hidden_characters(command),
        None => pretty_json(args),
    }
}

/// Returns a headline for a record that is not a turn, and its text if it has one.
pub(crate) fn event_headline_and_text(record: &LoggedRecord) -> (String, Option<String>) {
    let fields = match &record.body {
        RecordBody::Event(fields) => fields,
        RecordBody::Erased => return (format!("{} [erased]", record.header.kind.display_name()), None),
        RecordBody::DecodeError(reason) => {
            return (format!("{} [cannot be read: {reason}]", record.header.kind.display_name()), None);
        }
        RecordBody::Turn(_) => return (String::new(), None),
    };
    let visible_text = |name: &str| {
        fields.get(name).and_then(Value::as_str).map(show_hidden_characters).filter(|text| !text.is_empty())
    };
    let number_field = |name: &str| fields.get(name).and_then(Value::as_u64);
    match record.header.kind {
        RecordKind::Prompt if fields.get("meta") == Some(&Value::Bool(true)) => {
            ("prompt by Claude Code".to_owned(), visible_text("text"))
        }
        RecordKind::Prompt => ("prompt".to_owned(), visible_text("text")),
        RecordKind::Context => (
            format!("context: {}", visible_text("from").unwrap_or_else(|| "?".to_owned())),
            visible_text("text"),
        ),
        RecordKind::Compaction => {
            let tokens_text = |name: &str| {
                number_field(name).map_or_else(|| "?".to_owned(), plimsoll_domain::text::format_tokens)
            };
            let trigger = visible_text("trigger").unwrap_or_else(|| "unknown cause".to_owned());
            let sizes = format!("{} → {} tokens", tokens_text("tokens_before"), tokens_text("tokens_after"));
            (format!("compaction ({trigger}): {sizes}"), None)
        }
        RecordKind::SessionStart => {
            (format!("session start ({})", visible_text("source").unwrap_or_default()), None)
        }
        RecordKind::SessionEnd => {
            (format!("session end ({})", visible_text("reason").unwrap_or_default()), None)
        }
        RecordKind::Cost => {
            let usd = fields.get("usd").and_then(Value::as_f64);
            (usd.map_or_else(|| "cost".to_owned(), |usd| format!("cost: {usd:.4} USD")), None)
        }
        kind => (kind.display_name().to_owned(), Some(fields_json(fields))),
    }
}

fn fields_json(fields: &Map<String, Value>) -> String {
    pretty_json(&Value::Object(fields.clone()))
}

/// Returns the time of day of a timestamp, or the text itself if it is not a timestamp.
pub(crate) fn time_of_day_or_text(timestamp: &str) -> String {
    let time_of_day =
        timestamp.get(11..19).filter(|clock| clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b':'));
    time_of_day.map_or_else(|| show_hidden_characters(timestamp), str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::render::visible::show_hidden_characters;

    #[test]
    fn hidden_characters_are_shown_as_their_code_points() {
        assert_eq!(
            show_hidden_characters("a\u{1b}[31m\tb\r\nc\rd\0"),
            r"a\u{1b}[31m@b#c\u{d}d\u{0}".replace('@', "\t").replace('#', "\n")
        );
        assert_eq!(show_hidden_characters("x\u{202e}cod\u{200b}"), r"x\u{202e}cod\u{200b}");
        assert_eq!(show_hidden_characters("👩\u{200d}🔬 ünï"), "👩\u{200d}🔬 ünï");
    }
}
