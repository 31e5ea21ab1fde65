//! Finds the client's transcripts of all projects, and reads their lines on all processors. Memory does not depend on the size
//! of a file.
//!
//! [`crate::turn_log::ForwardLines`] would copy every line of gigabytes, and keeps a line that is far longer than any response.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::disk::{self, EntryKind};
use crate::{StoreError, environment, io_error};
use memchr::{memchr, memrchr};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Fits into a processor's cache together with what the kernel reads.
const CHUNK_BYTES: usize = 128 * 1024;
/// A longer line is skipped. No response is longer than a megabyte, and the API accepts no request with 32 MB.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// The folders below `projects` that the client creates are three levels deep.
const MAX_FOLDER_DEPTH: usize = 8;

/// A transcript of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    pub path: PathBuf,
    /// The session; empty for a subagent of an old client, which names it only in its lines.
    pub session_id: String,
    /// True for the transcript of a subagent.
    pub is_subagent: bool,
    /// True for the transcript of a session's main conversation, which can be resumed.
    pub is_session: bool,
}

/// The content of a transcript, and the parts that were not read.
#[derive(Debug)]
pub struct ScannedTranscript<T> {
    pub content: T,
    /// The number of lines that were skipped because they are too long.
    pub long_line_count: usize,
    /// Why the rest of the file could not be read.
    pub error: Option<StoreError>,
}

/// Returns the folders in which the client keeps transcripts, also those that do not exist: in `CLAUDE_CONFIG_DIR`, or else
/// in its default folder and in the XDG folder.
pub fn possible_transcript_folders() -> Vec<PathBuf> {
    let xdg_folder = || {
        let config_folder = environment::xdg_folder("XDG_CONFIG_HOME");
        let config_folder = config_folder.or_else(|| Some(environment::home_folder()?.join(".config")));
        config_folder.map(|folder| folder.join("claude"))
    };
    let config_folders: Vec<PathBuf> = match environment::variable("CLAUDE_CONFIG_DIR") {
        // It is one folder for the client. Users of ccusage may have a list.
        Some(list) if list.contains(',') && !disk::is_folder(Path::new(&list)) => {
            list.split(',').map(|folder| PathBuf::from(folder.trim())).collect()
        }
        Some(folder) => vec![PathBuf::from(folder)],
        None => environment::client_config_folder().into_iter().chain(xdg_folder()).collect(),
    };
    let mut folders: Vec<PathBuf> = config_folders.iter().map(|folder| folder.join("projects")).collect();
    // One may be a link to the other.
    folders.dedup_by_key(|folder| disk::canonicalize_or_keep(folder));
    folders
}

/// Lists the transcripts below these folders, sorted by path, and the paths that are skipped, with the reason. Links are not
/// followed.
pub fn list_transcripts(folders: &[PathBuf]) -> (Vec<TranscriptFile>, Vec<(PathBuf, String)>) {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for folder in folders.iter().filter(|folder| disk::is_folder(folder)) {
        add_transcripts_in_folder(folder, &mut Vec::new(), &mut files, &mut skipped);
    }
    files.sort_by(|first, second| first.path.cmp(&second.path));
    (files, skipped)
}

/// Adds the transcripts in a folder and its subfolders. `names` are the names of the folders that lead to it.
fn add_transcripts_in_folder(
    folder: &Path,
    names: &mut Vec<String>,
    files: &mut Vec<TranscriptFile>,
    skipped: &mut Vec<(PathBuf, String)>,
) {
    let entries = match disk::list_entries(folder) {
        Ok(entries) => entries,
        Err(error) => return skipped.push((folder.to_owned(), error.to_string())),
    };
    for (name, kind) in entries {
        let path = folder.join(&name);
        let name = name.to_string_lossy().into_owned();
        match kind {
            EntryKind::Folder if names.len() < MAX_FOLDER_DEPTH => {
                names.push(name);
                add_transcripts_in_folder(&path, names, files, skipped);
                names.pop();
            }
            EntryKind::File => {
                let Some(stem) = name.strip_suffix(".jsonl") else { continue };
                // PROJECT/SESSION.jsonl, PROJECT/SESSION/subagents/agent-ID.jsonl, and PROJECT/agent-ID.jsonl before 2.1.
                let is_subagent = stem.starts_with("agent-") || names.iter().any(|name| name == "subagents");
                let session_id = match names.get(1) {
                    Some(session_folder) => session_folder,
                    None if is_subagent => "",
                    None => stem,
                };
                let session_id = session_id.to_owned();
                let is_session = names.len() == 1 && !is_subagent;
                files.push(TranscriptFile { path, session_id, is_subagent, is_session });
            }
            EntryKind::Folder => skipped.push((path, "the folder is too deep".to_owned())),
            EntryKind::Other if disk::is_folder(&path) || name.ends_with(".jsonl") => {
                let reason =
                    if disk::is_link(&path) { "links are not followed" } else { "not a regular file" };
                skipped.push((path, reason.to_owned()));
            }
            EntryKind::Other => {}
        }
    }
}

/// Reads transcripts on all processors. Calls `visit` for each line, with a value that `new_content` created for its file, and
/// whether the line has a line end. Returns the values in the order of the files.
pub fn scan_transcripts<T: Send>(
    files: &[TranscriptFile],
    new_content: impl Fn(&TranscriptFile) -> T + Sync,
    visit: impl Fn(&mut T, &[u8], bool) + Sync,
) -> Vec<ScannedTranscript<T>> {
    let next_index = AtomicUsize::new(0);
    let scanned = Mutex::new(Vec::with_capacity(files.len()));
    let scan_next_files = || {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let index = next_index.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return };
            let mut content = new_content(file);
            let result =
                visit_lines_of_file_and_count_skipped(&file.path, &mut buffer, &mut |line, has_line_end| {
                    visit(&mut content, line, has_line_end);
                });
            let (long_line_count, error) =
                result.map_or_else(|error| (0, Some(error)), |count| (count, None));
            let transcript = ScannedTranscript { content, long_line_count, error };
            scanned.lock().unwrap_or_else(PoisonError::into_inner).push((index, transcript));
        }
    };
    std::thread::scope(|scope| {
        let thread_count = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
        (1..thread_count).for_each(|_| drop(scope.spawn(scan_next_files)));
        scan_next_files();
    });
    let mut scanned = scanned.into_inner().unwrap_or_else(PoisonError::into_inner);
    scanned.sort_by_key(|(index, _)| *index);
    scanned.into_iter().map(|(_, transcript)| transcript).collect()
}

/// Visits the lines of a file. Returns the number of lines that were too long.
fn visit_lines_of_file_and_count_skipped(
    path: &Path,
    buffer: &mut Vec<u8>,
    visit: &mut dyn FnMut(&[u8], bool),
) -> Result<usize, StoreError> {
    let file = disk::open_without_following_link(path).map_err(io_error("read", path))?;
    let long_line_count = visit_lines_and_count_skipped(file, buffer, visit).map_err(io_error("read", path));
    buffer.truncate(CHUNK_BYTES);
    buffer.shrink_to_fit();
    long_line_count
}

fn visit_lines_and_count_skipped(
    mut file: File,
    buffer: &mut Vec<u8>,
    visit: &mut dyn FnMut(&[u8], bool),
) -> std::io::Result<usize> {
    let (mut length, mut long_line_count, mut is_in_long_line) = (0, 0, false);
    loop {
        if length == buffer.len() && length < MAX_LINE_BYTES {
            buffer.resize(2 * length, 0);
        } else if length == buffer.len() {
            (length, is_in_long_line) = (0, true);
            long_line_count += 1;
        }
        let byte_count = match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(byte_count) => byte_count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (mut searched_length, mut new_length) = (length, length + byte_count);
        if is_in_long_line {
            let line_end = memchr(b'\n', &buffer[..new_length]);
            is_in_long_line = line_end.is_none();
            let next_line = line_end.map_or(new_length, |index| index + 1);
            buffer.copy_within(next_line..new_length, 0);
            (searched_length, new_length) = (0, new_length - next_line);
        }
        length = new_length;
        if let Some(line_end) = memrchr(b'\n', &buffer[searched_length..new_length]) {
            let next_line = searched_length + line_end + 1;
            visit_buffered_lines(&buffer[..next_line], visit);
            buffer.copy_within(next_line..new_length, 0);
            length = new_length - next_line;
        }
    }
    visit_buffered_lines(&buffer[..length], visit);
    Ok(long_line_count)
}

fn visit_buffered_lines(mut bytes: &[u8], visit: &mut dyn FnMut(&[u8], bool)) {
    while !bytes.is_empty() {
        let line_end = memchr(b'\n', bytes);
        visit(&bytes[..line_end.unwrap_or(bytes.len())], line_end.is_some());
        bytes = line_end.map_or(&[], |index| &bytes[index + 1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_lines(text: &[u8]) -> (Vec<(Vec<u8>, bool)>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        disk::replace(&path, text, crate::Durability::Lazy).unwrap();
        let mut lines = Vec::new();
        let long_line_count = visit_lines_of_file_and_count_skipped(
            &path,
            &mut vec![0; CHUNK_BYTES],
            &mut |line, has_line_end| {
                lines.push((line.to_vec(), has_line_end));
            },
        );
        (lines, long_line_count.unwrap())
    }

    #[test]
    fn each_line_is_visited_once_whatever_the_chunks_are() {
        for padding in
            [0, 1, 100, CHUNK_BYTES - 20, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 5, 3 * CHUNK_BYTES]
        {
            let (first, second) = ("x".repeat(padding), "y".repeat(padding));
            for (last, has_line_end) in [("last", false), ("last\n", true)] {
                let (lines, long_line_count) = read_lines(format!("{first}\n\n{second}\n{last}").as_bytes());
                let expected = [(first.as_str(), true), ("", true), (&second, true), ("last", has_line_end)];
                let expected = expected.map(|(line, has_line_end)| (line.as_bytes().to_vec(), has_line_end));
                assert!(lines == expected, "{padding}");
                assert_eq!(long_line_count, 0);
            }
        }
        assert_eq!(read_lines(b""), (vec![], 0));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_counted() {
        let long_line = "x".repeat(MAX_LINE_BYTES + CHUNK_BYTES);
        for (text, expected_lines, expected_count) in [
            (format!("1\n{long_line}\n2\n3\n"), vec!["1", "2", "3"], 1),
            (long_line.clone(), vec![], 1),
            (format!("{long_line}\n{long_line}\n3"), vec!["3"], 2),
        ] {
            let (lines, long_line_count) = read_lines(text.as_bytes());
            let lines: Vec<&[u8]> = lines.iter().map(|(line, _)| line.as_slice()).collect();
            assert_eq!(lines, expected_lines.iter().map(|line| line.as_bytes()).collect::<Vec<_>>());
            assert_eq!(long_line_count, expected_count);
        }
    }

    #[test]
    fn sessions_and_subagents_are_told_apart_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("p/s.jsonl", ("s", false, true)),
            ("p/s/subagents/agent-a.jsonl", ("s", true, false)),
            ("p/s/subagents/workflows/w/agent-b.jsonl", ("s", true, false)),
            ("p/agent-c.jsonl", ("", true, false)),
            ("p/s/chat.jsonl", ("s", false, false)),
        ];
        for path in files.iter().map(|(path, _)| *path).chain(["p/notes.md", "1/2/3/4/5/6/7/8/9/deep.jsonl"])
        {
            disk::replace(&folder.path().join(path), b"{}", crate::Durability::Lazy).unwrap();
        }
        for link in ["link", "p/link.jsonl", "p/other-link"] {
            let target = if link == "link" { "p" } else { "nowhere" };
            disk::create_link_if_missing(target, &folder.path().join(link)).unwrap();
        }
        let missing = folder.path().join("missing");
        let (mut found, skipped) = list_transcripts(&[folder.path().to_owned(), missing.clone()]);
        let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().to_owned();
        let found_names: Vec<_> = found
            .iter()
            .map(|file| (name(&file.path), (file.session_id.as_str(), file.is_subagent, file.is_session)))
            .collect();
        let mut expected: Vec<_> = files.iter().map(|(path, kind)| (PathBuf::from(path), *kind)).collect();
        expected.sort();
        assert_eq!(found_names, expected);
        let skipped_names: Vec<PathBuf> = skipped.iter().map(|(path, _)| name(path)).collect();
        assert_eq!(skipped_names, ["1/2/3/4/5/6/7/8/9", "link", "p/link.jsonl"].map(PathBuf::from));
        // A file that disappears after it was listed has an error, and the others are read.
        found[1].path = missing;
        let scanned = scan_transcripts(&found, |_| 0, |line_count, _, _| *line_count += 1);
        let line_counts: Vec<i32> = scanned.iter().map(|transcript| transcript.content).collect();
        assert_eq!(line_counts, [1, 0, 1, 1, 1]);
        assert!(scanned[1].error.is_some());
    }
}
