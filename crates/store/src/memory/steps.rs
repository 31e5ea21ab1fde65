//! How many answers of models the memory has seen: a mark for each, so that an answer that changes nothing writes neither the
//! memory nor the record of what its conversation was told.
//!
//! A mark has the length of [`MARK`], and begins like the id of its session. Whatever a kill or a power cut takes of the file
//! costs the chunks a few steps of their age.

#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::layout::below;
use crate::{Project, disk, limited};
use plimsoll_domain::SessionId;
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The length of a mark, in bytes: what tells two sessions of a project apart, and a line's end.
const MARK: u64 = 16;
/// More marks than this are not looked through: as if the session had made them all.
const MOST: u64 = 256;

/// Not among what is copied for a run: its name begins like those of what sessions were told.
fn path(project: &Project) -> PathBuf {
    below(project.own(), &["/memory/seen.steps"])
}

fn mark(session_id: &SessionId) -> [u8; MARK as usize] {
    let mut mark = [b'\n'; MARK as usize];
    let id = session_id.bytes().filter(|byte| *byte != b'\n');
    for (place, byte) in mark[..MARK as usize - 1].iter_mut().zip(id.chain(std::iter::repeat(b' '))) {
        *place = byte;
    }
    mark
}

/// Counts an answer.
pub(super) fn add(project: &Project, session_id: &SessionId) {
    // A step that is not counted makes a chunk look younger.
    let _ = disk::append(&path(project), &mark(session_id));
}

/// The number of answers so far.
pub(super) fn count(project: &Project) -> u64 {
    disk::size(&path(project)).unwrap_or(0) / MARK
}

/// How many of the answers after the first `since` ones were of a session.
pub(super) fn own(project: &Project, session_id: &SessionId, since: u64) -> u64 {
    let Ok(Some((file, size))) = disk::open_sized(&path(project)) else { return 0 };
    own_of(&file, size, session_id, since)
}

/// The same, and a place to count the answer that is coming.
pub(super) fn own_and_next(project: &Project, session_id: &SessionId, since: u64) -> (u64, Option<Next>) {
    let Ok(opened) = disk::open_or_make(&path(project), OFlags::RDWR | OFlags::APPEND) else {
        return (0, None);
    };
    let size = opened.size();
    (own_of(&opened.file, size, session_id, since), Some(Next(opened.file)))
}

/// The place of the next mark.
pub(super) struct Next(File);

impl Next {
    /// Counts an answer.
    pub(super) fn add(self, session_id: &SessionId) {
        // As in `add`.
        let _ = limited::write_all(&self.0, &mark(session_id));
    }
}

fn own_of(file: &File, size: u64, session_id: &SessionId, since: u64) -> u64 {
    let marks = (size / MARK).saturating_sub(since);
    if marks > MOST {
        return marks;
    }
    let mut bytes = vec![0; (marks * MARK) as usize];
    if file.read_exact_at(&mut bytes, since * MARK).is_err() {
        return 0;
    }
    bytes.chunks_exact(MARK as usize).filter(|other| *other == mark(session_id)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_finds_its_own_answers_among_those_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let ids = ["d8e9da22-d41b-4824-a1be-f318ff23689b", "s-2", ""].map(SessionId::from);
        assert_eq!((count(&project), own(&project, &ids[0], 0)), (0, 0));
        for (times, id) in [(3, &ids[0]), (2, &ids[1]), (1, &ids[0]), (1, &ids[2])] {
            (0..times).for_each(|_| add(&project, id));
        }
        assert_eq!(count(&project), 7);
        for (since, expected) in [(0, [4, 2, 1]), (2, [2, 2, 1]), (6, [0, 0, 1]), (7, [0; 3]), (9, [0; 3])] {
            assert_eq!(ids.each_ref().map(|id| own(&project, id, since)), expected, "{since}");
        }
        (0..=MOST).for_each(|_| add(&project, &ids[1]));
        assert_eq!(own(&project, &ids[0], 0), MOST + 8, "too many to look through");
    }
}
