//! The logs of closed sessions, compressed: `ID.jsonl.zst` instead of `ID.jsonl`, and `HASH.zst` instead of a large piece. Each is a
//! plain zstd file, which `zstd -d` reads. The chain is one of lines, so that nothing of it changes.
//!
//! Rules: a plain file goes before a compressed one, and goes away only once that one is whole and on the disk, so a kill leaves
//! both. Whoever writes to a log unpacks it first, under its lock. What was compressed is read back before the plain file goes.
//! A compressed file has the time of the plain one: nothing was written, so nothing becomes newer.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::TurnLog;
use crate::{StoreError, disk, io};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENDING: &str = ".zst";
/// So much is compressed at a time, as a frame of its own: memory stays flat, and a frame that does not come back as it was is
/// noticed before anything is lost.
const FRAME: u64 = 4 * 1024 * 1024;
/// A project's files may have been written by anybody: no log is read to more than this, and no large piece.
const MOST: u64 = 8 * 1024 * 1024 * 1024;
const MOST_OF_A_PIECE: u64 = 256 * 1024 * 1024;

/// The compressed form of a file.
pub(super) fn packed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

/// True if there is a compressed form.
pub(super) fn is_there(path: &Path) -> bool {
    disk::size(&packed(path)).is_some()
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
        if disk::size(&self.path()).is_none() {
            return Ok(0);
        }
        let mut writer = self.write(timeout)?;
        writer.settle()?;
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
        !self.is_plain() && is_there(&self.path())
    }

    /// The log as lines, wherever they are; none if there is no log.
    pub(super) fn opened(&self) -> Result<Option<(File, u64)>, StoreError> {
        let path = self.path();
        match disk::open_sized(&path)? {
            None if is_there(&path) => expanded(&packed(&path)).map(Some),
            plain => Ok(plain),
        }
    }
}

/// Makes a compressed log a plain one again; the caller holds its lock.
pub(super) fn unpack(path: &Path) -> Result<(), StoreError> {
    let from = packed(path);
    if disk::size(&from).is_none() {
        return Ok(());
    }
    let draft = draft_of(path);
    let written = (|| {
        let mut out = BufWriter::new(disk::open_to_append(&draft)?);
        expand(&from, &mut out, MOST)?;
        put_in_place(out, &draft, path, disk::modified(&from))
    })();
    written.inspect_err(|_| drop(disk::remove(&draft)))?;
    disk::remove(&from)
}

/// A large piece of which only the compressed form is there.
pub(super) fn piece(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    expand(&packed(path), &mut bytes, MOST_OF_A_PIECE).ok()?;
    Some(bytes)
}

/// Puts the compressed form in the place of a file, if it is smaller; answers by how much.
fn pack(path: &Path) -> Result<u64, StoreError> {
    let Some((file, size)) = disk::open_sized(path)? else { return Ok(0) };
    let (to, draft) = (packed(path), draft_of(path));
    let written = (|| {
        let mut out = BufWriter::new(disk::open_to_append(&draft)?);
        let smaller = compress(BufReader::new(file), &mut out, path)?;
        if smaller >= size {
            return Ok(None);
        }
        put_in_place(out, &draft, &to, disk::modified(path))?;
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

/// Into an unnamed file, of which nothing is left when it is closed.
fn expanded(from: &Path) -> Result<(File, u64), StoreError> {
    let mut file = disk::scratch()?;
    expand(from, &mut BufWriter::new(&mut file), MOST)?;
    let size = file.stream_position().map_err(io("read", from))?;
    file.seek(SeekFrom::Start(0)).map_err(io("read", from))?;
    Ok((file, size))
}

fn expand(from: &Path, to: &mut impl Write, most: u64) -> Result<(), StoreError> {
    match disk::open_sized(from)? {
        Some((file, _)) => decode(BufReader::new(file), to, most, from),
        None => Err(io("read", from)(ErrorKind::NotFound.into())),
    }
}

/// All frames of a zstd file.
fn decode(mut from: impl BufRead, to: &mut impl Write, most: u64, path: &Path) -> Result<(), StoreError> {
    let mut left = most;
    while !from.fill_buf().map_err(io("read", path))?.is_empty() {
        let damaged =
            |error: &dyn std::error::Error| std::io::Error::new(ErrorKind::InvalidData, error.to_string());
        let mut frame =
            StreamingDecoder::new(&mut from).map_err(|error| io("read", path)(damaged(&error)))?;
        let copied = std::io::copy(&mut (&mut frame).take(left + 1), to).map_err(io("read", path))?;
        if copied > left {
            return Err(StoreError::TooLarge { path: path.to_owned(), most });
        }
        left -= copied;
    }
    to.flush().map_err(io("write", path))
}

/// A name that the sweeping of drafts knows.
fn draft_of(path: &Path) -> PathBuf {
    let number = RandomState::new().hash_one(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{}.{number:016x}{}", std::process::id(), disk::DRAFT))
}

/// On the disk before it takes the name: a power cut finds the whole of it, or the file that it stands for.
fn put_in_place(
    out: BufWriter<File>,
    draft: &Path,
    path: &Path,
    written_at: Option<std::time::SystemTime>,
) -> Result<(), StoreError> {
    let file = out.into_inner().map_err(|error| io("write", draft)(error.into_error()))?;
    if let Some(moment) = written_at {
        file.set_modified(moment).map_err(io("write", draft))?;
    }
    file.sync_all().map_err(io("sync", draft))?;
    disk::rename(draft, path)?;
    disk::sync_folder(path.parent().unwrap_or(Path::new(".")));
    Ok(())
}
