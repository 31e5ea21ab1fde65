//! The fields of `stat`.

use super::ModificationTime;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

pub(super) fn modification_time(metadata: &Metadata) -> ModificationTime {
    ModificationTime { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() }
}

pub(super) fn is_executable_by_owner(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o100 != 0
}
