//! Text from outside, made harmless to read: what would move the cursor, turn the writing round or hide is shown by
//! its number.

use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::{Map, Value};

/// The text with what would hide in it shown; line breaks and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    plimsoll_protocol::foreign_words::visible(text).into_owned()
}

/// JSON for people: a single text as it is, an object over several lines.
pub(crate) fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        other => visible(&serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

/// What a call was asked, for people: a command or a path alone stands for itself.
pub(crate) fn asked(args: &Value) -> String {
    match args.get("command").and_then(Value::as_str) {
        Some(command) => visible(command),
        None => pretty(args),
    }
}

/// An event in one line, and the words behind it.
pub(crate) fn event(record: &Recorded) -> (String, Option<String>) {
    let fields = match &record.body {
        Body::Event(fields) => fields,
        Body::Erased => return (format!("{} [erased]", record.header.kind.word()), None),
        Body::DecodeError(why) => {
            return (format!("{} [cannot be read: {why}]", record.header.kind.word()), None);
        }
        Body::Turn(_) => return (String::new(), None),
    };
    let text =
        |name: &str| fields.get(name).and_then(Value::as_str).map(visible).filter(|text| !text.is_empty());
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    match record.header.kind {
        RecordKind::Prompt if fields.get("meta") == Some(&Value::Bool(true)) => {
            ("prompt by the client".to_owned(), text("text"))
        }
        RecordKind::Prompt => ("prompt".to_owned(), text("text")),
        RecordKind::Context => {
            (format!("context: {}", text("from").unwrap_or_else(|| "?".to_owned())), text("text"))
        }
        RecordKind::Compaction => {
            let tokens =
                |name: &str| number(name).map_or_else(|| "?".to_owned(), plimsoll_domain::text::tokens);
            let trigger = text("trigger").unwrap_or_else(|| "unknown cause".to_owned());
            let sizes = format!("{} → {} tokens", tokens("tokens_before"), tokens("tokens_after"));
            (format!("compaction ({trigger}): {sizes}"), None)
        }
        RecordKind::SessionStart => (format!("session start ({})", text("source").unwrap_or_default()), None),
        RecordKind::SessionEnd => (format!("session end ({})", text("reason").unwrap_or_default()), None),
        RecordKind::Cost => {
            let usd = fields.get("usd").and_then(Value::as_f64);
            (usd.map_or_else(|| "cost".to_owned(), |usd| format!("cost: {usd:.4} USD")), None)
        }
        kind => (kind.word().to_owned(), Some(rest(fields))),
    }
}

fn rest(fields: &Map<String, Value>) -> String {
    pretty(&Value::Object(fields.clone()))
}

/// The clock time of a moment, as far as it is one.
pub(crate) fn time(at: &str) -> String {
    let clock =
        at.get(11..19).filter(|clock| clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b':'));
    clock.map_or_else(|| visible(at), str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::render::visible::visible;

    #[test]
    fn what_would_hide_is_shown() {
        assert_eq!(
            visible("a\u{1b}[31m\tb\r\nc\rd\0"),
            r"a\u{1b}[31m@b#c\u{d}d\u{0}".replace('@', "\t").replace('#', "\n")
        );
        assert_eq!(visible("x\u{202e}cod\u{200b}"), r"x\u{202e}cod\u{200b}");
        assert_eq!(visible("👩\u{200d}🔬 ünï"), "👩\u{200d}🔬 ünï");
    }
}
