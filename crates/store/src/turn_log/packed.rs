//! The logs of closed sessions, compressed: `ID.jsonl.zst` instead of `ID.jsonl`, and `HASH.zst` instead of a large piece. Each is a
//! plain zstd file, which `zstd -d` reads. The chain is one of lines, so that nothing of it changes.
//!
//! Rules: a plain file goes before a compressed one, and goes away only once that one is whole and on the disk, so a kill leaves
//! both. Whoever writes to a log unpacks it first, under its lock. What was compressed is read back before the plain file goes.
//! A compressed file has the time of the plain one: nothing was written, so nothing becomes newer.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::{TurnLog, draft};
use crate::limited::LimitedFile;
use crate::{StoreError, disk, io, sessions};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENDING: &str = ".zst";
/// So much is compressed at a time, as a frame of its own: memory stays flat, and a frame that does not come back as it was is
/// noticed before anything is lost.
const FRAME: u64 = 4 * 1024 * 1024;
/// A project's files may have been written by anybody: none is read to more than this, nor to more than so many times its size,
/// so that a small file cannot fill a disk. What would exceed it is not compressed.
const MOST: u64 = crate::door::LARGEST_LOG;
const MOST_TIMES: u64 = 200;

/// What a compressed file of this size is read to at most.
fn most_of(size: u64) -> u64 {
    MOST.min(size.saturating_mul(MOST_TIMES) + 1024 * 1024)
}

/// The compressed form of a file.
pub(super) fn packed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

/// A large piece's name without the ending of its compressed form.
pub(super) fn plain_name(name: &str) -> &str {
    name.strip_suffix(ENDING).unwrap_or(name)
}

impl TurnLog {
    /// Compresses a log and its large pieces; answers how many bytes that saved. The caller knows that its session is over; a
    /// session that goes on all the same unpacks it.
    ///
    /// # Errors
    /// If the log's lock is held, or the disk is in trouble: then it is as it was.
    pub fn pack(&self, timeout: Duration) -> Result<u64, StoreError> {
        if !self.is_plain() || !self.may_be_packed {
            return Ok(0);
        }
        let mut writer = self.write(timeout)?;
        writer.settle()?;
        self.drop_drafts()?;
        let folder = self.blob_folder();
        let pieces =
            disk::names(&folder).into_iter().filter(|name| super::blobs::path(&folder, name).is_some());
        let mut saved = 0;
        for path in pieces.map(|name| folder.join(name)).chain([self.path()]) {
            saved += pack(&path)?;
        }
        drop(writer);
        Ok(saved)
    }

    /// True if the log is compressed.
    pub fn is_packed(&self) -> bool {
        !self.is_plain() && self.has_packed()
    }

    /// True if there is a compressed form, whether or not it counts.
    pub(super) fn has_packed(&self) -> bool {
        self.may_be_packed && disk::size(&packed(&self.path())).is_some()
    }

    /// The log as lines, wherever they are; none if there is no log.
    pub(super) fn opened(&self) -> Result<Option<(File, u64)>, StoreError> {
        let path = self.path();
        match disk::open_sized(&path)? {
            None if self.may_be_packed => match expanded(&packed(&path))? {
                // A writer has unpacked it between the two looks.
                None => disk::open_sized(&path),
                expanded => Ok(expanded),
            },
            plain => Ok(plain),
        }
    }

    /// What a packing or unpacking that was killed has left. The caller holds the lock.
    fn drop_drafts(&self) -> Result<(), StoreError> {
        self.drafts().iter().try_for_each(|path| disk::remove(path))
    }

    /// Makes a compressed log a plain one again; the caller holds its lock and knows that there is no plain one. A file that is
    /// damaged is moved aside, and the log goes on: `verify` names what is missing.
    pub(super) fn unpack(&self) -> Result<(), StoreError> {
        if !self.has_packed() {
            return Ok(());
        }
        self.drop_drafts()?;
        match unpack(&self.path()) {
            Err(StoreError::TooLarge { .. }) => sessions::set_aside(&packed(&self.path())).map(drop),
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                sessions::set_aside(&packed(&self.path())).map(drop)
            }
            unpacked => unpacked,
        }
    }
}

fn unpack(path: &Path) -> Result<(), StoreError> {
    let from = packed(path);
    let draft = disk::draft_beside(path);
    let written = (|| {
        let mut out = BufWriter::new(LimitedFile(disk::open_to_append(&draft)?));
        expand(&from, &mut out)?;
        draft::put_in_place(out, &draft, path, disk::modified(&from))
    })();
    written.inspect_err(|_| drop(disk::remove(&draft)))?;
    disk::remove(&from)
}

/// A large piece of which only the compressed form is there.
pub(super) fn piece(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    expand(&packed(path), &mut bytes).ok()?.then_some(bytes)
}

/// Puts the compressed form in the place of a file, if it is smaller; answers by how much.
fn pack(path: &Path) -> Result<u64, StoreError> {
    let Some((file, size)) = disk::open_sized(path)? else { return Ok(0) };
    if size > MOST {
        return Ok(0);
    }
    let (to, draft) = (packed(path), disk::draft_beside(path));
    let written = (|| {
        let mut out = BufWriter::new(LimitedFile(disk::open_to_append(&draft)?));
        let smaller = compress(BufReader::new(file), &mut out, path)?;
        if smaller >= size || size > most_of(smaller) {
            return Ok(None);
        }
        draft::put_in_place(out, &draft, &to, disk::modified(path))?;
        Ok(Some(size - smaller))
    })();
    let Some(saved) = written.inspect_err(|_| drop(disk::remove(&draft)))? else {
        disk::remove(&draft)?;
        return Ok(0);
    };
    disk::remove(path)?;
    Ok(saved)
}

/// Compresses frame by frame; answers how many bytes came out.
fn compress(mut from: impl Read, to: &mut impl Write, path: &Path) -> Result<u64, StoreError> {
    let mut written = 0;
    loop {
        let mut frame = Vec::new();
        (&mut from).take(FRAME).read_to_end(&mut frame).map_err(io("read", path))?;
        if frame.is_empty() {
            return Ok(written);
        }
        let small = compress_to_vec(&frame[..], CompressionLevel::Fastest);
        let mut back = Vec::with_capacity(frame.len());
        decode(&small[..], &mut back, FRAME, path)?;
        if back != frame {
            return Err(io("compress", path)(ErrorKind::InvalidData.into()));
        }
        to.write_all(&small).map_err(io("write", path))?;
        written += small.len() as u64;
    }
}

/// Into an unnamed file, of which nothing is left when it is closed; none if there is no such file.
fn expanded(from: &Path) -> Result<Option<(File, u64)>, StoreError> {
    if disk::size(from).is_none() {
        return Ok(None);
    }
    let mut file = LimitedFile(disk::scratch()?);
    if !expand(from, &mut BufWriter::new(&mut file))? {
        return Ok(None);
    }
    let LimitedFile(mut file) = file;
    let size = file.stream_position().map_err(io("read", from))?;
    file.seek(SeekFrom::Start(0)).map_err(io("read", from))?;
    Ok(Some((file, size)))
}

/// False if there is no such file.
fn expand(from: &Path, to: &mut impl Write) -> Result<bool, StoreError> {
    let Some((file, size)) = disk::open_sized(from)? else { return Ok(false) };
    decode(BufReader::new(file), to, most_of(size), from).map(|()| true)
}

/// All frames of a zstd file.
fn decode(mut from: impl BufRead, to: &mut impl Write, most: u64, path: &Path) -> Result<(), StoreError> {
    let damaged = |error: &dyn std::error::Error| {
        io("read", path)(std::io::Error::new(ErrorKind::InvalidData, error.to_string()))
    };
    let mut left = most;
    let mut buffer = vec![0; 128 * 1024];
    while !from.fill_buf().map_err(io("read", path))?.is_empty() {
        let mut frame = StreamingDecoder::new(&mut from).map_err(|error| damaged(&error))?;
        loop {
            let read = frame.read(&mut buffer).map_err(|error| damaged(&error))?;
            if read == 0 {
                break;
            }
            left = left
                .checked_sub(read as u64)
                .ok_or_else(|| StoreError::TooLarge { path: path.to_owned(), most })?;
            to.write_all(&buffer[..read]).map_err(io("write", path))?;
        }
    }
    to.flush().map_err(io("write", path))
}
