//! One turn on one line.

use crate::status::columns::clip;
use flows::turns::{Body, Recorded};
use serde_json::Value;
use session::text::{one_line, tokens};
use session::turn::Turn;
use store::clock;

/// Name, time, tokens, outcome, what; as wide as the terminal.
pub(super) fn row(recorded: &Recorded, width: usize) -> String {
    let header = &recorded.header;
    let at = clock::parse(&header.at).map(clock::for_people).unwrap_or_default();
    let sent = header
        .usage
        .map(|usage| tokens(usage.sent()))
        .filter(|_| header.usage.is_some_and(|usage| usage.sent() > 0));
    let outcome = match (header.success, header.reason) {
        (Some(true), _) => "ok",
        (_, Some(reason)) => reason.word(),
        _ => "?",
    };
    let start = format!("{:<13} {at}  {:>5}  {outcome:<12} ", recorded.name(), sent.unwrap_or_default());
    let room = width.saturating_sub(start.chars().count()).max(20);
    format!("{start}{}", clip(&what(recorded), room))
}

fn what(recorded: &Recorded) -> String {
    match &recorded.body {
        Body::Turn(turn) => summary(turn),
        Body::Event(_) => recorded.header.kind.word().to_owned(),
        Body::Erased => "[erased]".to_owned(),
        Body::Unsound(why) => format!("[{why}]"),
    }
}

/// The calls with what they are about; else the words.
fn summary(turn: &Turn) -> String {
    let calls: Vec<String> = turn.tool_calls().iter().map(|call| about(&call.name, &call.args)).collect();
    let text = plain(&one_line(&turn.text()));
    match (calls.is_empty(), text.is_empty()) {
        (true, _) => text,
        (false, true) => calls.join(" · "),
        (false, false) => format!("{} — {text}", calls.join(" · ")),
    }
}

/// A call in a few words.
pub(super) fn about(name: &str, args: &Value) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "description", "url", "query", "path", "prompt"];
    let told = TELLING.into_iter().find_map(|key| args.get(key)?.as_str());
    match told {
        Some(words) => format!("{name}({})", plain(&session::text::clip(&one_line(words), 60))),
        None => name.to_owned(),
    }
}

/// Text that cannot steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    let is_kept = |letter: &char| matches!(letter, '\n' | '\t') || !letter.is_control() && !is_bidi(*letter);
    text.chars().map(|letter| if is_kept(&letter) { letter } else { '\u{fffd}' }).collect()
}

fn is_bidi(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
