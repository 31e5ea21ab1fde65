//! RULE: the only crate that touches disk, locks, environment and clock.
//!
//! [`Project`] says where the files of a folder are; one module has each kind of them: [`state_file`], [`sessions`], [`unread_sessions`],
//! [`journal`], [`turn_log`], [`memory`], [`outbox`], [`ledger`], [`config`]. A file is replaced by draft and rename, a log is
//! appended to; both go through one door, which follows no link out of a project. A change is read, made and written under
//! the file's lock ([`lock`]), by a closure that another process cannot come between.
//!
//! It promises: a reader sees an old file or a new one, never half of one; a file that does not parse is set aside and never
//! overwritten; a lock is waited for only for a bounded time; no link in a project leads out of it; a copy of the run's state
//! lies where `git clean -fdx` does not reach.
//!
//! Limits: it does not promise an order between two files. Code that writes two of them chooses the order so that a kill
//! between them is harmless, and says so there. It does not promise that a file is ours: an agent can write the project's.

pub mod authority;
pub mod clock;
pub mod config;
pub mod confined_folder;
pub mod context_windows;
pub mod disk;
pub mod environment;
pub mod faults;
pub mod formats;
mod gitignore;
pub mod handoff_index;
pub mod journal;
pub mod layout;
pub mod ledger;
pub mod lock;
pub mod memory;
pub mod outbox;
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
pub mod turn_log;
pub mod unread_sessions;
pub mod volume;
mod writable_project;

pub use disk::Durability;
pub use handoff_index::HandoffIndex;
pub use layout::Project;
pub use turn_log::TurnLog;
pub use writable_project::{WritableProject, move_into_project_if_unwritable};

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What went wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another program holds the lock.
    #[error("{path} is locked by another process (waited {waited_ms} ms)")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        waited_ms: u128,
    },
    /// A file of ours does not parse.
    #[error("{path} does not parse ({reason}){set_aside_note}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        reason: String,
        /// Where it has been moved, if it has; begins with `; `.
        set_aside_note: String,
    },
    /// A newer version of ours wrote the file: what it means, this one cannot know.
    #[error(
        "{path} is in format {format}, of a newer Plimsoll; this one knows format {}",
        plimsoll_domain::format::CURRENT_FORMAT
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A settings file holds something we do not understand.
    #[error("settings {path}: {reason}")]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A session in a project without files of ours, and no home to keep them in.
    #[error(
        "there is no folder for session records of {project}: neither HOME nor XDG_STATE_HOME is set to an absolute path"
    )]
    NoHome {
        /// The project.
        project: PathBuf,
    },
    /// A path that should be a plain file is something else.
    #[error("{path} is not a plain file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file of a project that was to be written in place has other names.
    #[error("{path} is not written: it is one of several hard links to the same file")]
    HardLinked {
        /// The path.
        path: PathBuf,
    },
    /// A link on the way leads out of the project.
    #[error("{path} leads out of the project: {link} is a link to {target}")]
    LinkLeadsOutside {
        /// The path.
        path: PathBuf,
        /// The link's name.
        link: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// A link where none is followed.
    #[error("{path} is not used through a link: {link} is one to {target}")]
    LinkNotFollowed {
        /// The path.
        path: PathBuf,
        /// The link's name.
        link: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// The log of a working memory is so long that nobody who waits reads it.
    #[error(
        "the memory's log {path} has more than {} MB that no snapshot covers, and is not read",
        memory::MAX_FOLDED_BYTES / 1024 / 1024
    )]
    MemoryLogTooLong {
        /// The log.
        path: PathBuf,
    },
    /// More than anything of its kind is.
    #[error("{path} is larger than {} MB", max_bytes / 1024 / 1024)]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// So many bytes are read at most.
        max_bytes: u64,
    },
}

impl StoreError {
    /// True if the place cannot be written: a read-only mount, or missing permissions.
    pub fn is_write_permission_error(&self) -> bool {
        let StoreError::Io { source, .. } = self else { return false };
        matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
    }

    /// What the user can do about it.
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
            StoreError::Settings { .. } => "correct the file; until then all of it is ignored",
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

/// Why a document of ours does not parse.
pub fn document_parse_error(path: &Path, document: &[u8], error: &serde_json::Error) -> StoreError {
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
