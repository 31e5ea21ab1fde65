//! The tokens of a session without a known result, from its transcripts.

use crate::turns::capture::Source;
use plimsoll_protocol::transcript::Line;
use plimsoll_store::turn_log::{Forwards, LineStart};
use std::collections::BTreeMap;
use std::path::Path;

/// All tokens of a session and its subagents, each response counted once. What cannot be read counts nothing: it is a
/// figure, and no reason to fail.
pub fn in_session(transcript: &Path) -> u64 {
    Source::all(transcript).iter().map(|source| in_transcript(&source.path)).fold(0, u64::saturating_add)
}

fn in_transcript(path: &Path) -> u64 {
    let lines = Forwards::open(path, LineStart::default()).into_iter().flatten().map_while(Result::ok);
    let mut responses = BTreeMap::new();
    for line in lines.filter_map(|line| Line::parse_usage(&line.bytes)) {
        let is_answer = line.kind.as_deref() == Some("assistant") && !line.is_api_error_message;
        if !is_answer {
            continue;
        }
        let (Some(id), Some(usage)) = (line.message.id, line.message.usage) else { continue };
        // A response has a line for each of its parts; the output grows to the last.
        let tokens = usage.input().saturating_add(usage.output());
        let known: &mut u64 = responses.entry(id).or_default();
        *known = tokens.max(*known);
    }
    responses.values().fold(0, |sum, tokens| sum.saturating_add(*tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_response_counts_once_with_its_largest_figure_and_subagents_count_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.jsonl");
        let answer = |id: &str, output: u64| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","usage":{{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":{output}}}}}}}"#
            )
        };
        let user = r#"{"type":"user","message":{"content":"x"}}"#;
        let torn = r#"{"type":"assistant","message":{"id":"m9","us"#;
        let lines = [answer("m1", 1), answer("m1", 5), user.to_owned(), answer("m2", 7), torn.to_owned()];
        let write = |path: &Path, text: String| {
            plimsoll_store::disk::replace(path, text.as_bytes(), plimsoll_store::Durability::Lazy)
        };
        write(&path, lines.join("\n")).unwrap();
        assert_eq!(in_session(&path), 115 + 117);
        write(&folder.path().join("s1/subagents/agent-a1.jsonl"), answer("m3", 3)).unwrap();
        assert_eq!(in_session(&path), 115 + 117 + 113);
        assert_eq!(in_session(&folder.path().join("none.jsonl")), 0);
    }
}
