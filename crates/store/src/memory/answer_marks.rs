//! Counts the model responses that the memory has seen, with one mark for each, so that a response that
//! changes nothing writes neither the memory nor the record of what its conversation was shown.
//!
//! A mark is [`MARK_BYTES`] bytes long and begins like the id of its session. If a kill or a power cut damages the
//! file, the chunks of the memory only lose a few steps of their age.

#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::layout::append_to_path;
use crate::{Project, disk, size_limited_write};
use plimsoll_domain::SessionId;
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The length of a mark in bytes: enough of the id to distinguish the sessions of a project, and a newline.
const MARK_BYTES: u64 = 16;
/// The maximum number of marks that are searched. With more marks, all are counted as the session's.
const MAX_SCANNED_MARKS: u64 = 256;

// Not part of the copy for a run, because its name begins with `seen`.
fn marks_path(project: &Project) -> PathBuf {
    append_to_path(project.data_folder(), &["/memory/seen.steps"])
}

fn session_mark(session_id: &SessionId) -> [u8; MARK_BYTES as usize] {
    let mut mark = [b'\n'; MARK_BYTES as usize];
    let id = session_id.bytes().filter(|byte| *byte != b'\n');
    for (slot, byte) in mark[..MARK_BYTES as usize - 1].iter_mut().zip(id.chain(std::iter::repeat(b' '))) {
        *slot = byte;
    }
    mark
}

/// Counts a model response of a session.
pub(super) fn count_answer(project: &Project, session_id: &SessionId) {
    // An error is ignored: a step that is not counted makes a chunk look younger.
    let _ = disk::append(&marks_path(project), &session_mark(session_id));
}

/// Returns the number of model responses so far.
pub(super) fn answer_count(project: &Project) -> u64 {
    disk::file_size(&marks_path(project)).unwrap_or(0) / MARK_BYTES
}

/// Returns how many of the model responses after the first `skipped_count` are from a session.
pub(super) fn answers_of_session(project: &Project, session_id: &SessionId, skipped_count: u64) -> u64 {
    let Ok(Some((file, size))) = disk::open_sized(&marks_path(project)) else { return 0 };
    count_session_marks(&file, size, session_id, skipped_count)
}

/// Returns how many of the model responses after the first `skipped_count` are from a session, and a handle
/// for counting the next one; (0, `None`) if the file cannot be opened.
pub(super) fn answers_of_session_and_appender(
    project: &Project,
    session_id: &SessionId,
    skipped_count: u64,
) -> (u64, Option<AnswerAppender>) {
    let Ok(opened) = disk::open_or_create(&marks_path(project), OFlags::RDWR | OFlags::APPEND) else {
        return (0, None);
    };
    let size = opened.size();
    (count_session_marks(&opened.file, size, session_id, skipped_count), Some(AnswerAppender(opened.file)))
}

/// A handle for counting one more model response in the open file.
pub(super) struct AnswerAppender(File);

impl AnswerAppender {
    /// Counts a model response of a session.
    pub(super) fn append_answer(self, session_id: &SessionId) {
        // An error is ignored, as in `count_answer`.
        let _ = size_limited_write::write_all(&self.0, &session_mark(session_id));
    }
}

fn count_session_marks(file: &File, size: u64, session_id: &SessionId, skipped_count: u64) -> u64 {
    let marks = (size / MARK_BYTES).saturating_sub(skipped_count);
    if marks > MAX_SCANNED_MARKS {
        return marks;
    }
    let mut bytes = vec![0; (marks * MARK_BYTES) as usize];
    if file.read_exact_at(&mut bytes, skipped_count * MARK_BYTES).is_err() {
        return 0;
    }
    bytes.chunks_exact(MARK_BYTES as usize).filter(|chunk| *chunk == session_mark(session_id)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_finds_its_own_marks() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let ids = ["d8e9da22-d41b-4824-a1be-f318ff23689b", "s-2", ""].map(SessionId::from);
        assert_eq!((answer_count(&project), answers_of_session(&project, &ids[0], 0)), (0, 0));
        for (times, id) in [(3, &ids[0]), (2, &ids[1]), (1, &ids[0]), (1, &ids[2])] {
            (0..times).for_each(|_| count_answer(&project, id));
        }
        assert_eq!(answer_count(&project), 7);
        for (since, expected) in [(0, [4, 2, 1]), (2, [2, 2, 1]), (6, [0, 0, 1]), (7, [0; 3]), (9, [0; 3])] {
            assert_eq!(ids.each_ref().map(|id| answers_of_session(&project, id, since)), expected, "{since}");
        }
        (0..=MAX_SCANNED_MARKS).for_each(|_| count_answer(&project, &ids[1]));
        assert_eq!(
            answers_of_session(&project, &ids[0], 0),
            MAX_SCANNED_MARKS + 8,
            "too many to look through"
        );
    }
}
