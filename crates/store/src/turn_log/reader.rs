//! Reads a file line by line, forwards or backwards. Memory use is bounded by one line, whatever the file's
//! size.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::search::{find_first_newline, find_last_newline};
use crate::{StoreError, disk, io_error, safe_open};
use plimsoll_system::files::read_at;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The position where a line begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineStart {
    /// The line's number in the file, from 1; 0 if lines are not counted.
    pub line_number: u64,
    /// The offset of its first byte.
    pub offset: u64,
}

#[derive(Debug, Clone)]
pub struct RawLine {
    /// Where the line begins.
    pub start: LineStart,
    /// Its bytes, without the line break.
    pub bytes: Vec<u8>,
    /// False for a last line without a line break.
    pub has_newline: bool,
}

/// The lines of a file from a position to the end, in order.
#[derive(Debug)]
pub struct ForwardLines {
    path: PathBuf,
    reader: Option<BufReader<FileRange>>,
    next_start: LineStart,
    /// Longer lines are skipped or refused: neither we nor the client write any.
    max_line_bytes: u64,
    /// True for a file of ours, where an overlong line is an error. In a transcript it is skipped.
    is_long_line_an_error: bool,
}

impl ForwardLines {
    /// Opens a file at a position. A missing file has no lines.
    pub fn open_at(path: &Path, start: LineStart) -> Result<ForwardLines, StoreError> {
        let reader = disk::open_with_size_if_exists(path)?
            .map(|(file, size)| FileRange { file, position: start.offset, end: size }.into_buf_reader());
        let first_line_start = LineStart { line_number: start.line_number + 1, offset: start.offset };
        let (max_line_bytes, is_below_root) =
            (safe_open::max_line_bytes(path), safe_open::is_below_root(path));
        Ok(ForwardLines {
            path: path.to_owned(),
            reader,
            next_start: first_line_start,
            max_line_bytes,
            is_long_line_an_error: is_below_root,
        })
    }

    /// Returns the lines of an open file, from its start.
    pub(super) fn from_open_file(path: &Path, file: Option<(File, u64)>) -> ForwardLines {
        let reader = file.map(|(file, size)| FileRange { file, position: 0, end: size }.into_buf_reader());
        let first_line_start = LineStart { line_number: 1, offset: 0 };
        let (max_line_bytes, is_below_root) =
            (safe_open::max_line_bytes(path), safe_open::is_below_root(path));
        ForwardLines {
            path: path.to_owned(),
            reader,
            next_start: first_line_start,
            max_line_bytes,
            is_long_line_an_error: is_below_root,
        }
    }

    /// Returns the offset of the first byte that has not been read.
    pub fn next_offset(&self) -> u64 {
        self.next_start.offset
    }

    /// Reads the next line into a reusable buffer, and returns false at the end. An overlong line is an error
    /// in a file of ours. In a transcript, which we only read, it becomes an empty line.
    pub fn read_line_into(&mut self, line: &mut RawLine) -> Result<bool, StoreError> {
        line.bytes.clear();
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let line_bytes =
            consume_line(reader, self.max_line_bytes, |bytes| line.bytes.extend_from_slice(bytes));
        let mut line_bytes = line_bytes.map_err(io_error("read", &self.path))?;
        if line_bytes == self.max_line_bytes && line.bytes.last() != Some(&b'\n') {
            if self.is_long_line_an_error {
                return Err(StoreError::TooLarge { path: self.path.clone(), max_bytes: self.max_line_bytes });
            }
            line.bytes.clear();
            line_bytes += consume_line(reader, u64::MAX, |_| {}).map_err(io_error("read", &self.path))?;
            line.bytes.push(b'\n');
        }
        line.start = self.next_start;
        line.has_newline = line.bytes.last() == Some(&b'\n');
        if line.has_newline {
            line.bytes.pop();
        }
        self.next_start = LineStart {
            line_number: self.next_start.line_number + 1,
            offset: self.next_start.offset + line_bytes,
        };
        Ok(line_bytes > 0)
    }

    /// Returns an empty line for [`ForwardLines::read_line_into`].
    pub fn empty_line() -> RawLine {
        RawLine { start: LineStart::default(), bytes: Vec::new(), has_newline: false }
    }
}

/// The part of a file from a position to where it ended when it was opened. Uses positioned reads, so no `seek`
/// is needed.
#[derive(Debug)]
struct FileRange {
    file: File,
    position: u64,
    end: u64,
}

impl FileRange {
    /// Returns a buffered reader. A short range gets a small buffer: a turn is a few KB.
    fn into_buf_reader(self) -> BufReader<FileRange> {
        BufReader::with_capacity(self.remaining_bytes().clamp(4 * 1024, 256 * 1024), self)
    }

    fn remaining_bytes(&self) -> usize {
        usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX)
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let max_bytes = self.remaining_bytes().min(buffer.len());
        let read_bytes =
            if max_bytes > 0 { read_at(&self.file, &mut buffer[..max_bytes], self.position)? } else { 0 };
        self.position += read_bytes as u64;
        Ok(read_bytes)
    }
}

/// Consumes the bytes up to the end of the line, at most `max_bytes`, and passes them to `visit`. Returns how
/// many bytes were consumed.
fn consume_line(
    reader: &mut BufReader<FileRange>,
    max_bytes: u64,
    mut visit: impl FnMut(&[u8]),
) -> std::io::Result<u64> {
    let mut consumed_bytes = 0;
    loop {
        let bytes = match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        let bytes =
            &bytes[..bytes.len().min(usize::try_from(max_bytes - consumed_bytes).unwrap_or(usize::MAX))];
        let line_end = find_first_newline(bytes).map(|newline| newline + 1);
        let part_bytes = line_end.unwrap_or(bytes.len());
        visit(&bytes[..part_bytes]);
        reader.consume(part_bytes);
        consumed_bytes += part_bytes as u64;
        if line_end.is_some() || part_bytes == 0 {
            return Ok(consumed_bytes);
        }
    }
}

impl Iterator for ForwardLines {
    type Item = Result<RawLine, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = ForwardLines::empty_line();
        match self.read_line_into(&mut line) {
            Ok(true) => Some(Ok(line)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// The lines of a file from the last to the first.
#[derive(Debug)]
pub struct BackwardLines {
    path: PathBuf,
    file: Option<File>,
    /// The file offset where the buffered bytes begin.
    buffer_start: u64,
    /// Bytes that were read and not yet returned.
    buffer: Vec<u8>,
    is_at_file_end: bool,
    max_line_bytes: u64,
}

const CHUNK_BYTES: u64 = 64 * 1024;

impl BackwardLines {
    /// Opens a file. A missing file has no lines.
    pub fn open(path: &Path) -> Result<BackwardLines, StoreError> {
        Ok(BackwardLines::from_open_file(path, disk::open_with_size_if_exists(path)?))
    }

    /// Returns the lines of an open file with this size.
    pub(super) fn from_open_file(path: &Path, file: Option<(File, u64)>) -> BackwardLines {
        let (file, size) = file.unzip();
        let (buffer_start, max_line_bytes) = (size.unwrap_or(0), safe_open::max_line_bytes(path));
        BackwardLines {
            path: path.to_owned(),
            file,
            buffer_start,
            buffer: Vec::new(),
            is_at_file_end: true,
            max_line_bytes,
        }
    }

    /// Reads the chunk before the buffered bytes into the front of the buffer. Returns an error if the line that
    /// is being read is too long.
    fn prepend_previous_chunk(&mut self) -> Result<(), StoreError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.buffer.len() as u64 > self.max_line_bytes {
            return Err(StoreError::TooLarge { path: self.path.clone(), max_bytes: self.max_line_bytes });
        }
        // The chunk doubles with the buffer, so a long line costs no more than twice its length.
        let chunk_bytes = CHUNK_BYTES.max(self.buffer.len() as u64).min(self.buffer_start);
        let mut bytes = vec![0; usize::try_from(chunk_bytes).unwrap_or(0)];
        let result = file
            .seek(SeekFrom::Start(self.buffer_start - chunk_bytes))
            .and_then(|_| file.read_exact(&mut bytes));
        result.map_err(io_error("read", &self.path))?;
        bytes.append(&mut self.buffer);
        self.buffer = bytes;
        self.buffer_start -= chunk_bytes;
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<RawLine>, StoreError> {
        if self.is_at_file_end {
            self.is_at_file_end = false;
            if self.buffer_start > 0 {
                self.prepend_previous_chunk()?;
            }
            if self.buffer.last() == Some(&b'\n') {
                self.buffer.pop();
            } else if !self.buffer.is_empty() {
                return self.take_last_line_reading_chunks(false);
            }
        }
        self.take_last_line_reading_chunks(true)
    }

    /// Removes the last line from the buffer and returns it. Reads more chunks until the line is complete.
    fn take_last_line_reading_chunks(&mut self, has_newline: bool) -> Result<Option<RawLine>, StoreError> {
        loop {
            if let Some(newline) = find_last_newline(&self.buffer) {
                let bytes = self.buffer.split_off(newline + 1);
                self.buffer.pop();
                let offset = self.buffer_start + newline as u64 + 1;
                return Ok(Some(RawLine { start: LineStart { line_number: 0, offset }, bytes, has_newline }));
            }
            if self.buffer_start == 0 {
                let bytes = std::mem::take(&mut self.buffer);
                self.file = None;
                let line = RawLine { start: LineStart::default(), bytes, has_newline };
                return Ok((!line.bytes.is_empty()).then_some(line));
            }
            self.prepend_previous_chunk()?;
        }
    }
}

impl Iterator for BackwardLines {
    type Item = Result<RawLine, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Project;
    use std::io::Write;

    #[test]
    fn both_directions_return_the_same_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for text in ["", "a\n", "a", "a\nb\n", "a\n\nb", "\n", "\n\na\n"] {
            disk::remove_if_exists(&path).unwrap();
            disk::append(&path, text.as_bytes()).unwrap();
            let without_empty_lines = |lines: Vec<RawLine>| -> Vec<(u64, Vec<u8>, bool)> {
                lines
                    .into_iter()
                    .filter(|line| !line.bytes.is_empty())
                    .map(|line| (line.start.offset, line.bytes, line.has_newline))
                    .collect()
            };
            let forwards: Vec<RawLine> =
                ForwardLines::open_at(&path, LineStart::default()).unwrap().map(Result::unwrap).collect();
            let mut backwards: Vec<RawLine> =
                BackwardLines::open(&path).unwrap().map(Result::unwrap).collect();
            backwards.reverse();
            assert_eq!(without_empty_lines(forwards), without_empty_lines(backwards), "{text:?}");
        }
    }

    /// Writes one overlong line between two others, `times` the limit long. Returns the offset of the last
    /// line.
    fn write_overlong_line(path: &Path, times: u64) -> u64 {
        let mut file = File::create(path).unwrap();
        file.write_all(b"first\n").unwrap();
        let length = times * safe_open::max_line_bytes(path) + 1;
        file.set_len(6 + length).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\nlast\n").unwrap();
        6 + length + 1
    }

    #[test]
    fn an_overlong_transcript_line_is_skipped_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let last_start = write_overlong_line(&path, 1);
        let mut lines = ForwardLines::open_at(&path, LineStart::default()).unwrap();
        let mut line = ForwardLines::empty_line();
        let mut seen = Vec::new();
        while lines.read_line_into(&mut line).unwrap() {
            seen.push((line.start, line.bytes.clone(), lines.next_offset()));
        }
        let place = |line, offset| LineStart { line_number: line, offset };
        assert_eq!(
            seen,
            [
                (place(1, 0), b"first".to_vec(), 6),
                (place(2, 6), Vec::new(), last_start),
                (place(3, last_start), b"last".to_vec(), last_start + 5)
            ]
        );
    }

    #[test]
    fn an_overlong_line_in_an_own_file_is_an_error_in_both_directions() {
        let folder = tempfile::tempdir().unwrap();
        let _project = Project::with_local_files(folder.path());
        let path = folder.path().join("x");
        // Backwards the error comes only after twice the limit has been read.
        write_overlong_line(&path, 4);
        let names_path = |error: &StoreError| error.to_string().contains(&path.display().to_string());
        let error =
            ForwardLines::open_at(&path, LineStart::default()).unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, StoreError::TooLarge { .. }) && names_path(&error), "{error}");
        let error = BackwardLines::open(&path).unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, StoreError::TooLarge { .. }) && names_path(&error), "{error}");
    }

    #[test]
    fn long_lines_are_returned_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let long = "x".repeat(700_000);
        disk::append(&path, format!("first\n{long}\nlast\n").as_bytes()).unwrap();
        let lines: Vec<usize> =
            BackwardLines::open(&path).unwrap().map(|line| line.unwrap().bytes.len()).collect();
        assert_eq!(lines, [4, 700_000, 5]);
    }
}
