//! What the user asked for and the client's own task list, from the end of a transcript.

use super::recent;
use crate::StoreError;
use crate::turn_log::{Forwards, LineStart};
use memchr::memmem;
use plimsoll_protocol::client_tasks::{self, ClientTask, ClientTasks};
use plimsoll_protocol::user_request;
use std::ops::ControlFlow;
use std::path::Path;

/// So much of the end is looked at: as far as a transcript is read backwards at all.
const NEAR: u64 = 8 * 1024 * 1024;
/// The first request is among the first lines, behind what the client puts before it.
const BEGINNING: u64 = 1024 * 1024;

/// What a transcript says of the user's side of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The first request; none if it is among the last ones.
    pub first_request: Option<String>,
    /// The last requests, the newest last.
    pub last_requests: Vec<String>,
    /// The client's task list.
    pub tasks: Vec<ClientTask>,
}

/// The first request of a session, its last ones (so many at most), and its task list.
pub fn conversation(path: &Path, most: usize) -> Result<Conversation, StoreError> {
    let mut last_requests = Vec::new();
    let mut of_tasks: Vec<Vec<u8>> = Vec::new();
    let mut is_all = true;
    recent(path, NEAR, &mut |bytes| {
        let has = |marks: &[&str]| marks.iter().any(|mark| memmem::find(bytes, mark.as_bytes()).is_some());
        if has(&client_tasks::MARKS) {
            of_tasks.push(bytes.to_vec());
        }
        if is_request(bytes)
            && let Some(request) = user_request::request(bytes)
        {
            is_all = last_requests.len() < most;
            if is_all {
                last_requests.push(request);
            }
        }
        ControlFlow::Continue(())
    })?;
    last_requests.reverse();
    let mut tasks = ClientTasks::default();
    of_tasks.iter().rev().for_each(|line| tasks.take(line));
    let first_request = first_request(path)?;
    let first_request = first_request.filter(|first| !is_all || last_requests.first() != Some(first));
    Ok(Conversation { first_request, last_requests, tasks: tasks.list() })
}

fn is_request(bytes: &[u8]) -> bool {
    let has = |mark: &str| memmem::find(bytes, mark.as_bytes()).is_some();
    user_request::MARKS.iter().any(|mark| has(mark)) && !has(user_request::NOT_MARK)
}

fn first_request(path: &Path) -> Result<Option<String>, StoreError> {
    let mut lines = Forwards::open(path, LineStart::default())?;
    let mut line = Forwards::buffer();
    while lines.read_into(&mut line)? && line.place.offset < BEGINNING {
        if is_request(&line.bytes)
            && let Some(request) = user_request::request(&line.bytes)
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
    fn the_first_request_and_the_last_ones_are_told_once_each_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let asks = |words: &str| format!(r#"{{"type":"user","message":{{"content":"{words}"}}}}"#);
        let answers =
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\"type\":\"user\""}]}}"#;
        let todo = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[{"content":"One","status":"pending"}]}}]}}"#;
        let done = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"Todos have been modified"}]},"toolUseResult":{"newTodos":[]}}"#;
        for (asked, first, last) in [
            (&["a"][..], None, &["a"][..]),
            (&["a", "b"], None, &["a", "b"]),
            (&["a", "b", "c"], Some("a"), &["b", "c"]),
            (&["a", "b", "a"], Some("a"), &["b", "a"]),
        ] {
            let lines: Vec<String> = asked
                .iter()
                .flat_map(|words| [asks(words), answers.to_owned(), todo.to_owned(), done.to_owned()])
                .collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
            let found = conversation(&path, 2).unwrap();
            assert_eq!(
                (found.first_request.as_deref(), found.last_requests),
                (first, last.iter().map(|words| (*words).to_owned()).collect()),
                "{asked:?}"
            );
            assert_eq!(found.tasks.len(), 1);
        }
        assert_eq!(conversation(&folder.path().join("none"), 2).unwrap(), Conversation::default());
    }
}
