//! Reads the user's requests and the client's own task list from the end of a transcript.

use super::visit_last_lines_backwards;
use crate::StoreError;
use crate::turn_log::{ForwardLines, LineStart};
use memchr::memmem;
use plimsoll_protocol::client_tasks::{self, ClientTask, ClientTaskList};
use plimsoll_protocol::user_request;
use std::ops::ControlFlow;
use std::path::Path;

/// How many bytes are read from the end; the same limit as for any backward read of a transcript.
const MAX_TAIL_BYTES: u64 = 8 * 1024 * 1024;
/// The first request begins within this many bytes, after the lines that the client writes before it.
const MAX_FIRST_REQUEST_OFFSET: u64 = 1024 * 1024;

/// The user's requests in a session, and the client's task list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestsAndTasks {
    /// The first request. `None` if it is among the last ones.
    pub first_request: Option<String>,
    /// The last requests, oldest first.
    pub last_requests: Vec<String>,
    pub tasks: Vec<ClientTask>,
}

/// Reads the first request of a session, its last ones (at most `max_requests`), and its task list.
pub fn read_last_requests_omitted_first_and_tasks(
    path: &Path,
    max_requests: usize,
) -> Result<RequestsAndTasks, StoreError> {
    let mut last_requests = Vec::new();
    let mut task_lines: Vec<Vec<u8>> = Vec::new();
    let mut last_requests_are_all = true;
    visit_last_lines_backwards(path, MAX_TAIL_BYTES, &mut |bytes| {
        let contains_any =
            |markers: &[&str]| markers.iter().any(|marker| memmem::find(bytes, marker.as_bytes()).is_some());
        if contains_any(&client_tasks::LINE_MARKERS) {
            task_lines.push(bytes.to_vec());
        }
        if may_be_user_request(bytes)
            && let Some(request) = user_request::parse_user_request(bytes)
        {
            last_requests_are_all = last_requests.len() < max_requests;
            if last_requests_are_all {
                last_requests.push(request);
            }
        }
        ControlFlow::Continue(())
    })?;
    last_requests.reverse();
    let mut tasks = ClientTaskList::default();
    task_lines.iter().rev().for_each(|line| tasks.apply_transcript_line(line));
    let first_request = find_first_request(path)?;
    let first_request =
        first_request.filter(|request| !last_requests_are_all || last_requests.first() != Some(request));
    Ok(RequestsAndTasks { first_request, last_requests, tasks: tasks.into_tasks() })
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
            && let Some(request) = user_request::parse_user_request(&line.bytes)
        {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lay out what is looked at")]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_last_requests_are_returned_once_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let request_line = |text: &str| format!(r#"{{"type":"user","message":{{"content":"{text}"}}}}"#);
        let tool_result_line =
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\"type\":\"user\""}]}}"#;
        let todo_call_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[{"content":"One","status":"pending"}]}}]}}"#;
        let todo_result_line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"Todos have been modified"}]},"toolUseResult":{"newTodos":[]}}"#;
        for (requests, first, last) in [
            (&["a"][..], None, &["a"][..]),
            (&["a", "b"], None, &["a", "b"]),
            (&["a", "b", "c"], Some("a"), &["b", "c"]),
            (&["a", "b", "a"], Some("a"), &["b", "a"]),
        ] {
            let lines: Vec<String> = requests
                .iter()
                .flat_map(|text| {
                    [
                        request_line(text),
                        tool_result_line.to_owned(),
                        todo_call_line.to_owned(),
                        todo_result_line.to_owned(),
                    ]
                })
                .collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
            let result = read_last_requests_omitted_first_and_tasks(&path, 2).unwrap();
            assert_eq!(
                (result.first_request.as_deref(), result.last_requests),
                (first, last.iter().map(|text| (*text).to_owned()).collect()),
                "{requests:?}"
            );
            assert_eq!(result.tasks.len(), 1);
        }
        assert_eq!(
            read_last_requests_omitted_first_and_tasks(&folder.path().join("none"), 2).unwrap(),
            RequestsAndTasks::default()
        );
    }
}
