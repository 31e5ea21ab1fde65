//! Reads the user's requests and the client's own task list from the end of a transcript.

use super::visit_last_lines_backwards;
use crate::StoreError;
use crate::turn_log::{ForwardLines, LineStart};
use memchr::memmem;
use plimsoll_protocol::client_tasks::{self, ClientTask, ClientTaskList};
use plimsoll_protocol::user_request::{self, UserWords};
use std::ops::ControlFlow;
use std::path::Path;

/// How many bytes are read from the end; the same limit as for any backward read of a transcript.
pub const MAX_TAIL_BYTES: u64 = 8 * 1024 * 1024;
/// The first request begins within this many bytes, after the lines that the client writes before it.
const MAX_FIRST_REQUEST_OFFSET: u64 = 1024 * 1024;

/// The user's requests in a conversation, and the client's task list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestsAndTasks {
    /// The requests, oldest first. The first one is always known; those between it and the part that was read are not.
    pub requests: Vec<String>,
    pub tasks: Vec<ClientTask>,
}

/// Reads the requests and the task list in the last `max_bytes` bytes of a transcript, and the first request. A handoff
/// message counts as the requests that it quotes; those before it are not read again.
pub fn read_requests_and_tasks(path: &Path, max_bytes: u64) -> Result<RequestsAndTasks, StoreError> {
    let mut newest_first = Vec::new();
    let mut task_lines: Vec<Vec<u8>> = Vec::new();
    let mut reached_handoff_message = false;
    visit_last_lines_backwards(path, max_bytes, &mut |bytes| {
        let contains_any =
            |markers: &[&str]| markers.iter().any(|marker| memmem::find(bytes, marker.as_bytes()).is_some());
        if contains_any(&client_tasks::LINE_MARKERS) {
            task_lines.push(bytes.to_vec());
        }
        if !reached_handoff_message && may_be_user_request(bytes) {
            match user_request::parse_user_words(bytes) {
                Some(UserWords::Request(request)) => newest_first.push(request),
                Some(UserWords::QuotedByHandoff(requests)) => {
                    newest_first.extend(requests.into_iter().rev());
                    reached_handoff_message = true;
                }
                None => {}
            }
        }
        ControlFlow::Continue(())
    })?;
    let mut requests = newest_first;
    requests.reverse();
    if !reached_handoff_message
        && let Some(first_request) = find_first_request(path)?
        && requests.first() != Some(&first_request)
    {
        requests.insert(0, first_request);
    }
    let mut tasks = ClientTaskList::default();
    task_lines.iter().rev().for_each(|line| tasks.apply_transcript_line(line));
    Ok(RequestsAndTasks { requests, tasks: tasks.into_tasks() })
}

fn may_be_user_request(bytes: &[u8]) -> bool {
    let contains_marker = |marker: &str| memmem::find(bytes, marker.as_bytes()).is_some();
    user_request::LINE_MARKERS.iter().any(|marker| contains_marker(marker))
        && !contains_marker(user_request::EXCLUDED_MARKER)
}

fn find_first_request(path: &Path) -> Result<Option<String>, StoreError> {
    let mut lines = ForwardLines::open_at(path, LineStart::default())?;
    let mut line = ForwardLines::empty_line();
    while lines.read_line_into(&mut line)? && line.start.offset < MAX_FIRST_REQUEST_OFFSET {
        if may_be_user_request(&line.bytes)
            && let Some(words) = user_request::parse_user_words(&line.bytes)
        {
            return Ok(match words {
                UserWords::Request(request) => Some(request),
                UserWords::QuotedByHandoff(requests) => requests.into_iter().next(),
            });
        }
    }
    Ok(None)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lay out what is looked at")]
mod tests {
    use super::*;
    use plimsoll_protocol::handoff_message::{HandoffMessageKind, REQUESTS_HEADING, quote_requests};
    use serde_json::json;

    fn user_line(text: &str) -> String {
        json!({"type": "user", "message": {"content": text}}).to_string()
    }

    fn handoff_line(kind: HandoffMessageKind, requests: &[&str]) -> String {
        let requests: Vec<String> = requests.iter().map(|request| (*request).to_owned()).collect();
        user_line(&format!(
            "{}\n\n{REQUESTS_HEADING}\n\n{}\n# Handoff\n",
            kind.marker_line(),
            quote_requests(&requests)
        ))
    }

    #[test]
    fn requests_are_returned_once_in_order_and_a_handoff_message_counts_as_those_it_quotes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let tool_result_line =
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\"type\":\"user\""}]}}"#;
        let todo_call_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[{"content":"One","status":"pending"}]}}]}}"#;
        let todo_result_line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"Todos have been modified"}]},"toolUseResult":{"newTodos":[]}}"#;
        let (compaction, fresh) = (HandoffMessageKind::Compaction, HandoffMessageKind::FreshConversation);
        let cases: [(Vec<String>, &[&str]); 7] = [
            (vec![user_line("a")], &["a"]),
            (vec![user_line("a"), user_line("b")], &["a", "b"]),
            (vec![user_line("a"), user_line("b"), user_line("a")], &["a", "b", "a"]),
            (vec![user_line("a"), handoff_line(compaction, &["a"]), user_line("b")], &["a", "b"]),
            (
                vec![
                    user_line("a"),
                    handoff_line(compaction, &["a"]),
                    handoff_line(compaction, &["a"]),
                    handoff_line(compaction, &["a"]),
                ],
                &["a"],
            ),
            (vec![handoff_line(fresh, &["a", "b"]), user_line("c")], &["a", "b", "c"]),
            (vec![handoff_line(fresh, &[])], &[]),
        ];
        for (request_lines, expected) in cases {
            let lines: Vec<String> = request_lines
                .into_iter()
                .flat_map(|line| {
                    [
                        line,
                        tool_result_line.to_owned(),
                        todo_call_line.to_owned(),
                        todo_result_line.to_owned(),
                    ]
                })
                .collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
            let found = read_requests_and_tasks(&path, MAX_TAIL_BYTES).unwrap();
            assert_eq!(found.requests, expected, "{lines:#?}");
            assert_eq!(found.tasks.len(), 1);
        }
        assert_eq!(
            read_requests_and_tasks(&folder.path().join("none"), MAX_TAIL_BYTES).unwrap(),
            RequestsAndTasks::default()
        );
    }

    #[test]
    fn the_first_request_is_known_although_the_middle_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let padding_line = user_line(&"x".repeat(200));
        for first_line in
            [user_line("first"), handoff_line(HandoffMessageKind::FreshConversation, &["first", "second"])]
        {
            let lines = [&first_line, &padding_line, &padding_line, &user_line("last")];
            std::fs::write(&path, lines.map(String::as_str).join("\n")).unwrap();
            assert_eq!(read_requests_and_tasks(&path, 10).unwrap().requests, ["first", "last"]);
        }
    }
}
