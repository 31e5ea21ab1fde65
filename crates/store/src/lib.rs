//! RULE: the only crate that accesses disk, locks, environment and clock.
//!
//! [`Project`] has the paths of a project's files. Each kind of file has one module: [`state_file`], [`sessions`],
//! [`unread_sessions`], [`journal`], [`turn_log`], [`memory`], [`outbox`], [`ledger`], [`config`]. A file is
//! replaced by writing a temporary file and renaming it, and a log is appended to. Both go through [`disk`],
//! which follows no link out of a project. A file is read, changed and written by a closure that runs under
//! the file's lock ([`lock`]), so that no other process interferes.
//!
//! Guarantees: a reader sees the old file or the new one, never a mix. A file that does not parse is set aside and never
//! overwritten. Waiting for a lock has a timeout. No link in a project leads out of it. A copy of the run's state is stored
//! where `git clean -fdx` does not remove it.
//!
//! Not guaranteed: an order between writes to two files. Code that writes two files chooses the order in which a kill between
//! them is harmless, and explains it in a comment. A file may also not be ours: an agent can write the project's files.

pub mod authority;
pub mod clock;
pub mod config;
pub mod confined_folder;
pub mod context_windows;
pub mod disk;
pub mod environment;
pub mod formats;
mod gitignore;
pub mod handoff_index;
pub mod hook_failures;
pub mod journal;
pub mod layout;
pub mod ledger;
pub mod lock;
pub mod memory;
pub mod outbox;
mod path_identity;
mod plain_path;
pub mod protected_files;
pub mod receipts;
pub mod records;
mod safe_open;
mod search;
pub mod sessions;
mod size_limited_write;
pub mod state_file;
pub mod tail;
#[cfg(test)]
mod test_links;
pub mod transcripts;
pub mod turn_log;
pub mod unread_sessions;
pub mod volume;
mod writable_project;

pub use disk::Durability;
pub use handoff_index::HandoffIndex;
pub use layout::Project;
pub use turn_log::TurnLog;
pub use writable_project::{WritableProject, copy_data_folder_into_project_if_unwritable};

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An error of the store. [`StoreError::hint`] says what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system returned an error.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted operation, such as `read`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Another process holds the lock.
    #[error("{path} is locked by another process (waited {waited_ms} ms)")]
    Locked {
        /// The lock file.
        path: PathBuf,
        waited_ms: u128,
    },
    /// A file of ours does not parse.
    #[error("{path} does not parse ({reason}){set_aside_note}")]
    Corrupt {
        path: PathBuf,
        /// The parser's message.
        reason: String,
        /// Says where the file was moved; begins with `; `. Empty if it was not moved.
        set_aside_note: String,
    },
    /// The file was written by a newer version of Plimsoll, in a format that this one does not know.
    #[error(
        "{path} is in format {format}, of a newer Plimsoll; this one knows format {}",
        plimsoll_domain::format::CURRENT_FORMAT
    )]
    NewerFormat { path: PathBuf, format: u32 },
    /// A settings file is invalid.
    #[error("settings {path}: {reason}")]
    Settings { path: PathBuf, reason: String },
    /// The project has no files of ours, and without a home there is no folder for its session records.
    #[error(
        "there is no folder for session records of {project}: neither HOME nor XDG_STATE_HOME is set to an absolute path"
    )]
    NoHome {
        /// The root of the project.
        project: PathBuf,
    },
    /// A path that should be a plain file is something else.
    #[error("{path} is not a plain file")]
    NotAFile { path: PathBuf },
    /// A file of a project that must be written in place has several hard links.
    #[error("{path} is not written: it is one of several hard links to the same file")]
    HardLinked { path: PathBuf },
    /// A link in the path leads out of the project.
    #[error("{path} leads out of the project: {link} is a link to {target}")]
    LinkLeadsOutside {
        path: PathBuf,
        /// The name of the link.
        link: String,
        target: PathBuf,
    },
    /// The path contains a link where links are not followed.
    #[error("{path} is not used through a link: {link} is one to {target}")]
    LinkNotFollowed {
        path: PathBuf,
        /// The name of the link.
        link: String,
        target: PathBuf,
    },
    /// The part of the memory's log without a snapshot is too long to be read while a process waits.
    #[error(
        "the memory's log {path} has more than {} MB that no snapshot covers, and is not read",
        memory::MAX_REPLAYED_LOG_BYTES / 1024 / 1024
    )]
    MemoryLogTooLong { path: PathBuf },
    /// The file is larger than any legitimate file of its kind.
    #[error("{path} is larger than {} MB", max_bytes / 1024 / 1024)]
    TooLarge {
        path: PathBuf,
        /// The maximum number of bytes that is read.
        max_bytes: u64,
    },
}

impl StoreError {
    /// Returns true if the path cannot be written: a read-only file system, or missing permissions.
    pub fn is_write_permission_error(&self) -> bool {
        let StoreError::Io { source, .. } = self else { return false };
        matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
    }

    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Io { .. } => "check the path, its permissions and the free space",
            StoreError::Locked { .. } => {
                "try again; if no Plimsoll process is running, another program holds the lock"
            }
            StoreError::Corrupt { .. } => "check the file, then fix or delete it",
            StoreError::NewerFormat { .. } => {
                "the file stays as it is; update Plimsoll (`plimsoll --version`)"
            }
            StoreError::Settings { .. } => "correct the file; the whole file is ignored until it parses",
            StoreError::NoHome { .. } => "set HOME, or run `plimsoll init --local` in the project",
            StoreError::NotAFile { .. } => "replace it by a plain file",
            StoreError::HardLinked { .. } => "replace it by a copy: cp FILE COPY && mv COPY FILE",
            StoreError::LinkLeadsOutside { .. } | StoreError::LinkNotFollowed { .. } => {
                "replace the link by the file itself"
            }
            StoreError::MemoryLogTooLong { .. } => {
                "if you wrote it, run `plimsoll memory`, which reads it once; if it came with a clone, delete it"
            }
            StoreError::TooLarge { .. } => "check the file, and move it away",
        }
    }
}

/// Returns the error for a document of ours that does not parse: a newer format, or a corrupt file.
pub fn newer_format_or_corrupt_error(path: &Path, document: &[u8], error: &serde_json::Error) -> StoreError {
    let path = path.to_owned();
    match plimsoll_domain::format::newer_format_of_document(document) {
        Some(format) => StoreError::NewerFormat { path, format },
        None => StoreError::Corrupt { path, reason: error.to_string(), set_aside_note: String::new() },
    }
}

pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}
