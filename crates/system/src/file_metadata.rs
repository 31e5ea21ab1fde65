//! Fields of a file's metadata that git stores in its index, converted as git does on this system.

#[cfg_attr(unix, path = "file_metadata/unix.rs")]
#[cfg_attr(windows, path = "file_metadata/windows.rs")]
mod platform;

use std::fs::Metadata;

/// A modification time since 1970, as git stores it in its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModificationTime {
    pub seconds: i64,
    pub nanoseconds: i64,
}

pub fn modification_time(metadata: &Metadata) -> ModificationTime {
    platform::modification_time(metadata)
}

/// Returns true if the owner may execute the file. Returns false if files have no such permission, as on Windows.
pub fn is_executable_by_owner(metadata: &Metadata) -> bool {
    platform::is_executable_by_owner(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modification_time_is_that_of_the_standard_library() {
        let path = std::env::current_exe().unwrap();
        let metadata = path.symlink_metadata().unwrap();
        let since_1970 = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let expected = ModificationTime {
            seconds: since_1970.as_secs().cast_signed(),
            nanoseconds: i64::from(since_1970.subsec_nanos()),
        };
        assert_eq!(modification_time(&metadata), expected);
        assert_eq!(is_executable_by_owner(&metadata), cfg!(unix));
    }
}
