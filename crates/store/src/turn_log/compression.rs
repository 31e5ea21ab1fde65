//! Compression of the logs of closed sessions: `ID.jsonl.zst` instead of `ID.jsonl`, and `HASH.zst` instead
//! of a blob. Each is an ordinary zstd file that `zstd -d` can read. The hash chain covers the uncompressed
//! lines, so compression does not change it.
//!
//! Rules: An uncompressed file takes precedence over a compressed one. It is removed only once the compressed
//! one is complete, synced and read back, so a kill leaves both. A writer expands the log first, under its
//! lock. A compressed file keeps the modification time of the original, because nothing was written.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::{TurnLog, temporary_file};
use crate::size_limited_write::SizeLimitedFile;
use crate::{StoreError, disk, io_error, sessions};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const COMPRESSED_SUFFIX: &str = ".zst";
/// How many bytes are compressed at a time, as a separate frame. This bounds memory, and a frame that does
/// not decompress to the original is noticed before anything is lost.
const FRAME_BYTES: u64 = 4 * 1024 * 1024;
/// Limits for expanding. Anybody may have written a project's files, so none is expanded to more than this
/// size, nor to more than this multiple of its own size: a small file must not fill a disk. A file that would
/// exceed a limit is not compressed.
const MAX_EXPANDED_BYTES: u64 = crate::safe_open::MAX_LOG_BYTES;
const MAX_EXPANSION_RATIO: u64 = 200;

/// Returns the maximum expanded size of a compressed file of this size.
fn max_expanded_size(compressed_size: u64) -> u64 {
    MAX_EXPANDED_BYTES.min(compressed_size.saturating_mul(MAX_EXPANSION_RATIO) + 1024 * 1024)
}

/// Returns the path of a file's compressed form.
pub(super) fn compressed_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED_SUFFIX);
    name.into()
}

/// Returns a blob's name without the suffix of its compressed form.
pub(super) fn without_compressed_suffix(name: &str) -> &str {
    name.strip_suffix(COMPRESSED_SUFFIX).unwrap_or(name)
}

impl TurnLog {
    /// Compresses a log and its blobs, and returns how many bytes that saved. The caller knows that the
    /// session has ended; if the session continues anyway, its writer expands the log again.
    ///
    /// # Errors
    /// If the log's lock is held, or a file cannot be read or written. The log is then unchanged.
    pub fn compress_log_and_blobs(&self, timeout: Duration) -> Result<u64, StoreError> {
        if !self.is_uncompressed() || !self.may_be_compressed {
            return Ok(0);
        }
        let mut writer = self.open_writer(timeout)?;
        writer.sync_and_save_head_if_unsynced()?;
        self.remove_leftover_temporary_files()?;
        let folder = self.blob_folder();
        let blob_names = disk::list_names(&folder)
            .into_iter()
            .filter(|name| super::blobs::blob_path(&folder, name).is_some());
        let mut saved_bytes = 0;
        for path in blob_names.map(|name| folder.join(name)).chain([self.path()]) {
            saved_bytes += replace_with_compressed_if_smaller(&path)?;
        }
        drop(writer);
        Ok(saved_bytes)
    }

    pub fn is_compressed(&self) -> bool {
        !self.is_uncompressed() && self.has_compressed_file()
    }

    /// Returns true if there is a compressed form, whether or not an uncompressed one takes precedence.
    pub(super) fn has_compressed_file(&self) -> bool {
        self.may_be_compressed && disk::file_size(&compressed_path(&self.path())).is_some()
    }

    /// Opens the log for reading, expanded if necessary. Returns `None` if there is no log.
    pub(super) fn open_expanded(&self) -> Result<Option<(File, u64)>, StoreError> {
        let path = self.path();
        match disk::open_with_size_if_exists(&path)? {
            None if self.may_be_compressed => match expand_to_temp_file(&compressed_path(&path))? {
                // A writer has expanded it between the two checks.
                None => disk::open_with_size_if_exists(&path),
                expanded => Ok(expanded),
            },
            uncompressed_file => Ok(uncompressed_file),
        }
    }

    /// Removes the temporary files that a killed compression or expansion left behind. The caller holds the
    /// lock.
    fn remove_leftover_temporary_files(&self) -> Result<(), StoreError> {
        self.find_leftover_temporary_log_files().iter().try_for_each(|path| disk::remove_if_exists(path))
    }

    /// Replaces a compressed log with its uncompressed form. The caller holds its lock and has checked that there
    /// is no uncompressed one. A damaged file is set aside and a new log is started; `verify` reports the missing
    /// records.
    pub(super) fn expand_log_or_set_aside_damaged(&self) -> Result<(), StoreError> {
        if !self.has_compressed_file() {
            return Ok(());
        }
        self.remove_leftover_temporary_files()?;
        match replace_with_expanded(&self.path()) {
            Err(StoreError::TooLarge { .. }) => {
                sessions::set_aside_corrupt_file_and_return_path(&compressed_path(&self.path())).map(drop)
            }
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                sessions::set_aside_corrupt_file_and_return_path(&compressed_path(&self.path())).map(drop)
            }
            result => result,
        }
    }
}

/// Replaces a compressed file with its uncompressed form.
fn replace_with_expanded(path: &Path) -> Result<(), StoreError> {
    let compressed = compressed_path(path);
    let temporary_path = disk::new_temporary_path(path);
    let result = (|| {
        let mut writer = BufWriter::new(SizeLimitedFile(disk::open_for_append(&temporary_path)?));
        expand_into(&compressed, &mut writer)?;
        temporary_file::sync_and_rename_temporary_file(
            writer,
            &temporary_path,
            path,
            disk::modified_at(&compressed),
        )
    })();
    result.inspect_err(|_| drop(disk::remove_if_exists(&temporary_path)))?;
    disk::remove_if_exists(&compressed)
}

/// Reads a blob of which only the compressed form exists.
pub(super) fn read_compressed_blob(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    expand_into(&compressed_path(path), &mut bytes).ok()?.then_some(bytes)
}

/// Replaces a file with its compressed form if that is smaller. Returns the number of bytes saved.
fn replace_with_compressed_if_smaller(path: &Path) -> Result<u64, StoreError> {
    let Some((file, size)) = disk::open_with_size_if_exists(path)? else { return Ok(0) };
    if size > MAX_EXPANDED_BYTES {
        return Ok(0);
    }
    let (compressed, temporary_path) = (compressed_path(path), disk::new_temporary_path(path));
    let result = (|| {
        let mut writer = BufWriter::new(SizeLimitedFile(disk::open_for_append(&temporary_path)?));
        let compressed_size = compress_and_verify_frames(BufReader::new(file), &mut writer, path)?;
        if compressed_size >= size || size > max_expanded_size(compressed_size) {
            return Ok(None);
        }
        temporary_file::sync_and_rename_temporary_file(
            writer,
            &temporary_path,
            &compressed,
            disk::modified_at(path),
        )?;
        Ok(Some(size - compressed_size))
    })();
    let Some(saved_bytes) = result.inspect_err(|_| drop(disk::remove_if_exists(&temporary_path)))? else {
        disk::remove_if_exists(&temporary_path)?;
        return Ok(0);
    };
    disk::remove_if_exists(path)?;
    Ok(saved_bytes)
}

/// Compresses frame by frame, checks that each frame decodes to the original, and returns the compressed size.
fn compress_and_verify_frames(
    mut source: impl Read,
    output: &mut impl Write,
    path: &Path,
) -> Result<u64, StoreError> {
    let mut compressed_size = 0;
    loop {
        let mut frame = Vec::new();
        (&mut source).take(FRAME_BYTES).read_to_end(&mut frame).map_err(io_error("read", path))?;
        if frame.is_empty() {
            return Ok(compressed_size);
        }
        let compressed = compress_to_vec(&frame[..], CompressionLevel::Fastest);
        let mut decoded = Vec::with_capacity(frame.len());
        decode_frames(&compressed[..], &mut decoded, FRAME_BYTES, path)?;
        if decoded != frame {
            return Err(io_error("compress", path)(ErrorKind::InvalidData.into()));
        }
        output.write_all(&compressed).map_err(io_error("write", path))?;
        compressed_size += compressed.len() as u64;
    }
}

/// Expands into an unnamed temporary file, which vanishes when closed. Returns `None` if the source does not
/// exist.
fn expand_to_temp_file(compressed: &Path) -> Result<Option<(File, u64)>, StoreError> {
    if disk::file_size(compressed).is_none() {
        return Ok(None);
    }
    let mut file = SizeLimitedFile(disk::open_unnamed_temp_file()?);
    if !expand_into(compressed, &mut BufWriter::new(&mut file))? {
        return Ok(None);
    }
    let SizeLimitedFile(mut file) = file;
    let size = file.stream_position().map_err(io_error("read", compressed))?;
    file.seek(SeekFrom::Start(0)).map_err(io_error("read", compressed))?;
    Ok(Some((file, size)))
}

/// Writes the expanded content to `output`. Returns false if the compressed file does not exist.
fn expand_into(compressed: &Path, output: &mut impl Write) -> Result<bool, StoreError> {
    let Some((file, size)) = disk::open_with_size_if_exists(compressed)? else { return Ok(false) };
    decode_frames(BufReader::new(file), output, max_expanded_size(size), compressed).map(|()| true)
}

/// Decodes all frames of a zstd file, to at most `max_bytes`.
fn decode_frames(
    mut source: impl BufRead,
    output: &mut impl Write,
    max_bytes: u64,
    path: &Path,
) -> Result<(), StoreError> {
    let invalid_data_error = |error: &dyn std::error::Error| {
        io_error("read", path)(std::io::Error::new(ErrorKind::InvalidData, error.to_string()))
    };
    let mut remaining_bytes = max_bytes;
    let mut buffer = vec![0; 128 * 1024];
    while !source.fill_buf().map_err(io_error("read", path))?.is_empty() {
        let mut decoder = StreamingDecoder::new(&mut source).map_err(|error| invalid_data_error(&error))?;
        loop {
            let read_bytes = decoder.read(&mut buffer).map_err(|error| invalid_data_error(&error))?;
            if read_bytes == 0 {
                break;
            }
            remaining_bytes = remaining_bytes
                .checked_sub(read_bytes as u64)
                .ok_or_else(|| StoreError::TooLarge { path: path.to_owned(), max_bytes })?;
            output.write_all(&buffer[..read_bytes]).map_err(io_error("write", path))?;
        }
    }
    output.flush().map_err(io_error("write", path))
}
