//! Reading a log, from its beginning or from its end; memory stays at a line, whatever the log's size.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::search::{first_break, last_break};
use crate::{StoreError, disk, door, io};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where a line begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineStart {
    /// The line's number in the file, from 1; 0 if not counted.
    pub line: u64,
    /// Its first byte.
    pub offset: u64,
}

/// One line of a file.
#[derive(Debug, Clone)]
pub struct RawLine {
    /// Where it begins.
    pub place: LineStart,
    /// Its bytes, without the break.
    pub bytes: Vec<u8>,
    /// False for a last line without a break.
    pub is_ended: bool,
}

/// Lines from a place on.
#[derive(Debug)]
pub struct Forwards {
    path: PathBuf,
    file: Option<BufReader<Rest>>,
    next: LineStart,
    /// No line that we or the client write is this long.
    longest: u64,
    /// True for a file of ours, where such a line is a fault and not merely useless.
    is_ours: bool,
}

impl Forwards {
    /// Opens a file at a place; one that is not there has no lines.
    pub fn open(path: &Path, from: LineStart) -> Result<Forwards, StoreError> {
        let file =
            disk::open_sized(path)?.map(|(file, size)| Rest { file, at: from.offset, end: size }.buffered());
        let next = LineStart { line: from.line + 1, offset: from.offset };
        let (longest, is_ours) = (door::longest_line(path), door::is_below_a_root(path));
        Ok(Forwards { path: path.to_owned(), file, next, longest, is_ours })
    }

    /// The lines of a file that is open at its start.
    pub(super) fn of(path: &Path, file: Option<(File, u64)>) -> Forwards {
        let file = file.map(|(file, size)| Rest { file, at: 0, end: size }.buffered());
        let next = LineStart { line: 1, offset: 0 };
        let (longest, is_ours) = (door::longest_line(path), door::is_below_a_root(path));
        Forwards { path: path.to_owned(), file, next, longest, is_ours }
    }

    /// The first byte that has not been read.
    pub fn offset(&self) -> u64 {
        self.next.offset
    }

    /// The next line into a buffer that is used again; false at the end. A line that is too long is an error in a file
    /// of ours, and stands as an empty one in a transcript, which we only watch.
    pub fn read_into(&mut self, line: &mut RawLine) -> Result<bool, StoreError> {
        line.bytes.clear();
        let Some(file) = &mut self.file else { return Ok(false) };
        let read = pass_line(file, self.longest, |bytes| line.bytes.extend_from_slice(bytes));
        let mut read = read.map_err(io("read", &self.path))?;
        if read == self.longest && line.bytes.last() != Some(&b'\n') {
            if self.is_ours {
                return Err(StoreError::TooLarge { path: self.path.clone(), most: self.longest });
            }
            line.bytes.clear();
            read += pass_line(file, u64::MAX, |_| {}).map_err(io("read", &self.path))?;
            line.bytes.push(b'\n');
        }
        line.place = self.next;
        line.is_ended = line.bytes.last() == Some(&b'\n');
        if line.is_ended {
            line.bytes.pop();
        }
        self.next = LineStart { line: self.next.line + 1, offset: self.next.offset + read };
        Ok(read > 0)
    }

    /// A line to read into.
    pub fn buffer() -> RawLine {
        RawLine { place: LineStart::default(), bytes: Vec::new(), is_ended: false }
    }
}

/// What a file had from a place on when it was opened: it is neither moved to that place nor asked for its end.
#[derive(Debug)]
struct Rest {
    file: File,
    at: u64,
    end: u64,
}

impl Rest {
    /// Read a piece at a time: a turn is a few KB.
    fn buffered(self) -> BufReader<Rest> {
        BufReader::with_capacity(self.left().clamp(4 * 1024, 256 * 1024), self)
    }

    fn left(&self) -> usize {
        usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX)
    }
}

impl Read for Rest {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = self.left().min(into.len());
        let read = if most > 0 { self.file.read_at(&mut into[..most], self.at)? } else { 0 };
        self.at += read as u64;
        Ok(read)
    }
}

/// Goes to the line after the current one, or over the bytes that may be read; answers with how many bytes that were.
fn pass_line(file: &mut BufReader<Rest>, most: u64, mut keep: impl FnMut(&[u8])) -> std::io::Result<u64> {
    let mut passed = 0;
    loop {
        let bytes = match file.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = &bytes[..bytes.len().min(usize::try_from(most - passed).unwrap_or(usize::MAX))];
        let end = first_break(bytes).map(|place| place + 1);
        let step = end.unwrap_or(bytes.len());
        keep(&bytes[..step]);
        file.consume(step);
        passed += step as u64;
        if end.is_some() || step == 0 {
            return Ok(passed);
        }
    }
}

impl Iterator for Forwards {
    type Item = Result<RawLine, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Forwards::buffer();
        match self.read_into(&mut line) {
            Ok(true) => Some(Ok(line)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Lines from the end of a file.
#[derive(Debug)]
pub struct Backwards {
    path: PathBuf,
    file: Option<File>,
    /// Where the bytes that are kept begin in the file.
    from: u64,
    /// Bytes that have been read and not given out.
    kept: Vec<u8>,
    at_end: bool,
    longest: u64,
}

const CHUNK: u64 = 64 * 1024;

impl Backwards {
    /// Opens a file; one that is not there has no lines.
    pub fn open(path: &Path) -> Result<Backwards, StoreError> {
        Ok(Backwards::of(path, disk::open_sized(path)?))
    }

    /// The same of a file that is open, with its size.
    pub(super) fn of(path: &Path, file: Option<(File, u64)>) -> Backwards {
        let (file, size) = file.unzip();
        let (from, longest) = (size.unwrap_or(0), door::longest_line(path));
        Backwards { path: path.to_owned(), file, from, kept: Vec::new(), at_end: true, longest }
    }

    fn read_more(&mut self) -> Result<(), StoreError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.kept.len() as u64 > self.longest {
            return Err(StoreError::TooLarge { path: self.path.clone(), most: self.longest });
        }
        // A long line costs no more than twice its length.
        let step = CHUNK.max(self.kept.len() as u64).min(self.from);
        let mut bytes = vec![0; usize::try_from(step).unwrap_or(0)];
        let read = file.seek(SeekFrom::Start(self.from - step)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(io("read", &self.path))?;
        bytes.append(&mut self.kept);
        self.kept = bytes;
        self.from -= step;
        Ok(())
    }

    fn step(&mut self) -> Result<Option<RawLine>, StoreError> {
        if self.at_end {
            self.at_end = false;
            if self.from > 0 {
                self.read_more()?;
            }
            if self.kept.last() == Some(&b'\n') {
                self.kept.pop();
            } else if !self.kept.is_empty() {
                return self.take(false);
            }
        }
        self.take(true)
    }

    fn take(&mut self, is_ended: bool) -> Result<Option<RawLine>, StoreError> {
        loop {
            if let Some(place) = last_break(&self.kept) {
                let bytes = self.kept.split_off(place + 1);
                self.kept.pop();
                let offset = self.from + place as u64 + 1;
                return Ok(Some(RawLine { place: LineStart { line: 0, offset }, bytes, is_ended }));
            }
            if self.from == 0 {
                let bytes = std::mem::take(&mut self.kept);
                self.file = None;
                let line = RawLine { place: LineStart::default(), bytes, is_ended };
                return Ok((!line.bytes.is_empty()).then_some(line));
            }
            self.read_more()?;
        }
    }
}

impl Iterator for Backwards {
    type Item = Result<RawLine, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Project;
    use std::io::Write;

    #[test]
    fn both_ways_see_the_same_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for text in ["", "a\n", "a", "a\nb\n", "a\n\nb", "\n", "\n\na\n"] {
            disk::remove(&path).unwrap();
            disk::append(&path, text.as_bytes()).unwrap();
            let lines = |all: Vec<RawLine>| -> Vec<(u64, Vec<u8>, bool)> {
                all.into_iter()
                    .filter(|line| !line.bytes.is_empty())
                    .map(|line| (line.place.offset, line.bytes, line.is_ended))
                    .collect()
            };
            let forwards: Vec<RawLine> =
                Forwards::open(&path, LineStart::default()).unwrap().map(Result::unwrap).collect();
            let mut backwards: Vec<RawLine> = Backwards::open(&path).unwrap().map(Result::unwrap).collect();
            backwards.reverse();
            assert_eq!(lines(forwards), lines(backwards), "{text:?}");
        }
    }

    /// A line so often too long between two others; answers where the last one begins.
    fn write_a_line_too_long(path: &Path, times: u64) -> u64 {
        let mut file = File::create(path).unwrap();
        file.write_all(b"first\n").unwrap();
        let length = times * door::longest_line(path) + 1;
        file.set_len(6 + length).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\nlast\n").unwrap();
        6 + length + 1
    }

    #[test]
    fn a_line_too_long_for_a_transcript_is_passed_over_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let end = write_a_line_too_long(&path, 1);
        let mut lines = Forwards::open(&path, LineStart::default()).unwrap();
        let mut line = Forwards::buffer();
        let mut seen = Vec::new();
        while lines.read_into(&mut line).unwrap() {
            seen.push((line.place, line.bytes.clone(), lines.offset()));
        }
        let place = |line, offset| LineStart { line, offset };
        assert_eq!(
            seen,
            [
                (place(1, 0), b"first".to_vec(), 6),
                (place(2, 6), Vec::new(), end),
                (place(3, end), b"last".to_vec(), end + 5)
            ]
        );
    }

    #[test]
    fn a_line_too_long_in_a_file_of_ours_is_named_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let _project = Project::at(folder.path());
        let path = folder.path().join("x");
        // Backwards it is seen when twice as much has been read.
        write_a_line_too_long(&path, 4);
        let is_named = |error: &StoreError| error.to_string().contains(&path.display().to_string());
        let error = Forwards::open(&path, LineStart::default()).unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, StoreError::TooLarge { .. }) && is_named(&error), "{error}");
        let error = Backwards::open(&path).unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, StoreError::TooLarge { .. }) && is_named(&error), "{error}");
    }

    #[test]
    fn long_lines_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let long = "x".repeat(700_000);
        disk::append(&path, format!("first\n{long}\nlast\n").as_bytes()).unwrap();
        let lines: Vec<usize> =
            Backwards::open(&path).unwrap().map(|line| line.unwrap().bytes.len()).collect();
        assert_eq!(lines, [4, 700_000, 5]);
    }
}
