//! Counts model responses in a file with one line for each, so that a response that changes nothing writes
//! neither the memory nor the record of what its conversation was shown.
//!
//! A line is [`LINE_BYTES`] bytes long and begins with the first bytes of its session's id. If a kill or a power
//! cut damages the file, the chunks of the memory only lose a few steps of their age.

#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::{Project, disk, size_limited_write};
use plimsoll_domain::SessionId;
use plimsoll_system::files::{OpenOptions, read_exact_at};
use plimsoll_system::paths::append_to_path;
use std::fs::File;
use std::path::PathBuf;

/// The length of a line in bytes: enough of the id to distinguish the sessions of a project, and a newline.
const LINE_BYTES: u64 = 16;
/// The maximum number of lines that are searched. If there are more, all are counted as the session's.
const MAX_SCANNED_LINES: u64 = 256;

// The memory's copy does not include this file, because its name begins with `seen`.
fn counter_path(project: &Project) -> PathBuf {
    append_to_path(project.data_folder(), &["/memory/seen.steps"])
}

fn encode_fixed_length_session_line(session_id: &SessionId) -> [u8; LINE_BYTES as usize] {
    let mut line = [b'\n'; LINE_BYTES as usize];
    let id_bytes = session_id.bytes().filter(|byte| *byte != b'\n');
    for (slot, byte) in
        line[..LINE_BYTES as usize - 1].iter_mut().zip(id_bytes.chain(std::iter::repeat(b' ')))
    {
        *slot = byte;
    }
    line
}

/// Counts a model response of a session by appending its line.
pub(super) fn append_response(project: &Project, session_id: &SessionId) {
    // An error is ignored: a response that is not counted only makes a chunk appear one step younger.
    let _ = disk::append(&counter_path(project), &encode_fixed_length_session_line(session_id));
}

/// Returns the number of model responses of all sessions so far.
pub(super) fn total_response_count(project: &Project) -> u64 {
    disk::file_size(&counter_path(project)).unwrap_or(0) / LINE_BYTES
}

/// Returns how many of the model responses after the first `leading_lines_to_skip` are from a session. If
/// more than [`MAX_SCANNED_LINES`] remain, returns the number of all of them.
pub(super) fn count_session_responses(
    project: &Project,
    session_id: &SessionId,
    leading_lines_to_skip: u64,
) -> u64 {
    let Ok(Some((file, size))) = disk::open_with_size_if_exists(&counter_path(project)) else { return 0 };
    count_session_lines_or_all_if_over_limit(&file, size, session_id, leading_lines_to_skip)
}

/// Returns the same count as [`count_session_responses`], and a handle for counting the next response. Returns
/// `(0, None)` if the file cannot be opened.
pub(super) fn count_session_responses_and_open_appender(
    project: &Project,
    session_id: &SessionId,
    leading_lines_to_skip: u64,
) -> (u64, Option<ResponseAppender>) {
    let Ok(opened) =
        disk::open_or_create_with_parents(&counter_path(project), OpenOptions::READ_WRITE.append().create())
    else {
        return (0, None);
    };
    let size = opened.size();
    (
        count_session_lines_or_all_if_over_limit(&opened.file, size, session_id, leading_lines_to_skip),
        Some(ResponseAppender(opened.file)),
    )
}

/// A handle for counting one more model response in the open file.
pub(super) struct ResponseAppender(File);

impl ResponseAppender {
    /// Counts a model response of a session.
    pub(super) fn append_response(self, session_id: &SessionId) {
        // An error is ignored, as in the function `append_response`.
        let _ = size_limited_write::write_all(&self.0, &encode_fixed_length_session_line(session_id));
    }
}

fn count_session_lines_or_all_if_over_limit(
    file: &File,
    size: u64,
    session_id: &SessionId,
    leading_lines_to_skip: u64,
) -> u64 {
    let line_count = (size / LINE_BYTES).saturating_sub(leading_lines_to_skip);
    if line_count > MAX_SCANNED_LINES {
        return line_count;
    }
    let mut bytes = vec![0; (line_count * LINE_BYTES) as usize];
    if read_exact_at(file, &mut bytes, leading_lines_to_skip * LINE_BYTES).is_err() {
        return 0;
    }
    bytes
        .chunks_exact(LINE_BYTES as usize)
        .filter(|chunk| *chunk == encode_fixed_length_session_line(session_id))
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_finds_its_own_marks() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let ids = ["d8e9da22-d41b-4824-a1be-f318ff23689b", "s-2", ""].map(SessionId::from);
        assert_eq!((total_response_count(&project), count_session_responses(&project, &ids[0], 0)), (0, 0));
        for (times, id) in [(3, &ids[0]), (2, &ids[1]), (1, &ids[0]), (1, &ids[2])] {
            (0..times).for_each(|_| append_response(&project, id));
        }
        assert_eq!(total_response_count(&project), 7);
        for (since, expected) in [(0, [4, 2, 1]), (2, [2, 2, 1]), (6, [0, 0, 1]), (7, [0; 3]), (9, [0; 3])] {
            assert_eq!(
                ids.each_ref().map(|id| count_session_responses(&project, id, since)),
                expected,
                "{since}"
            );
        }
        (0..=MAX_SCANNED_LINES).for_each(|_| append_response(&project, &ids[1]));
        assert_eq!(
            count_session_responses(&project, &ids[0], 0),
            MAX_SCANNED_LINES + 8,
            "too many to look through"
        );
    }
}
