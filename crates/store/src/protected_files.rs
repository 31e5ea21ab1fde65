//! Reads the content of a run's protected paths and stores the result. No symbolic link is followed, not even
//! in a parent folder: a link in place of a file counts as different content, wherever it leads.

use crate::{Durability, Project, StoreError, disk, ledger, sessions};
use plimsoll_domain::RunId;
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::protected::{
    MAX_FOLDER_DEPTH, MAX_PATH_BYTES, MAX_PROTECTED_BYTES, MAX_PROTECTED_ENTRIES, ProtectedContent,
    ProtectedEntry, ProtectedFiles,
};
use plimsoll_system::files::{FileType, Folder, FolderEntry, OpenOptions, file_metadata};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const RECORD_FILE: &str = "protected.json";
const TEMPORARY_INDEX_FILE: &str = "protected.index";

/// Writes the record of a run's protected paths and their content beside the run's ledger, outside the project.
pub fn write_protected_record(
    project: &Project,
    run_id: &RunId,
    files: &ProtectedFiles,
) -> Result<(), StoreError> {
    let no_home_error = || StoreError::NoHome { project: project.root().to_owned() };
    let folder = ledger::inherited_or_default_run_record_folder(project, run_id).ok_or_else(no_home_error)?;
    disk::replace(
        &folder.join(RECORD_FILE),
        &serde_json::to_vec(files).unwrap_or_default(),
        Durability::Durable,
    )
}

/// Reads the record of a run's protected paths. Returns `None` if it is missing or does not parse.
pub fn read_protected_record(project: &Project, run_id: &RunId) -> Option<ProtectedFiles> {
    sessions::read_json_if_valid(
        &ledger::inherited_or_default_run_record_folder(project, run_id)?.join(RECORD_FILE),
    )
}

/// Returns an unused path, outside the project, for a temporary git index. Creates its folder, and removes the
/// temporary indexes that killed processes left behind.
pub fn remove_stale_git_indexes_and_return_new_path(project: &Project) -> Result<PathBuf, StoreError> {
    let runs =
        project.runs_folder().ok_or_else(|| StoreError::NoHome { project: project.root().to_owned() })?;
    let index = runs.with_file_name(TEMPORARY_INDEX_FILE);
    disk::create_folder(&runs)?;
    disk::remove_leftover_temporary_files_of(&index);
    Ok(disk::new_temporary_path(&index))
}

/// Reads the files and links at and below these paths of a folder, without `.git` folders. The entries are sorted
/// by path. A path that does not exist has no entry. Content that exceeds a limit is left out, and an unreadable
/// entry reports that.
pub fn read_protected_entries(root: &Path, paths: &[String]) -> Vec<ProtectedEntry> {
    let mut reader = EntryReader {
        entries: Vec::new(),
        visited_count: 0,
        read_byte_count: 0,
        open_folder_depth: 0,
        has_reported_depth: false,
    };
    match Folder::open_listable(root) {
        Ok(folder) => paths.iter().for_each(|path| reader.read_path_without_following_links(&folder, path)),
        Err(error) => reader.add_unreadable(String::new(), &error),
    }
    reader.entries.sort_by(|left, right| left.path.cmp(&right.path));
    reader.entries.dedup();
    reader.entries
}

struct EntryReader {
    entries: Vec<ProtectedEntry>,
    /// The number of files, links and folders visited.
    visited_count: usize,
    read_byte_count: u64,
    /// The number of nested folders that are open now.
    open_folder_depth: usize,
    has_reported_depth: bool,
}

impl EntryReader {
    fn read_path_without_following_links(&mut self, root: &Folder, path: &str) {
        let mut parent_path = String::new();
        let mut parts = path.split('/').peekable();
        let mut parent_folder: Option<Folder> = None;
        while let Some(part) = parts.next() {
            let folder = parent_folder.as_ref().unwrap_or(root);
            let entry_path =
                if parent_path.is_empty() { part.to_owned() } else { format!("{parent_path}/{part}") };
            if parts.peek().is_none() {
                return self.read_entry_unless_over_limit(folder, OsStr::new(part), entry_path);
            }
            parent_folder = match folder.open_listable_subfolder(OsStr::new(part)) {
                Ok(subfolder) => Some(subfolder),
                // A link or a file in place of a folder becomes the entry itself.
                Err(_) => return self.read_entry_unless_over_limit(folder, OsStr::new(part), entry_path),
            };
            parent_path = entry_path;
        }
    }

    fn read_entry_unless_over_limit(&mut self, folder: &Folder, name: &OsStr, path: String) {
        self.visited_count += 1;
        if self.visited_count > MAX_PROTECTED_ENTRIES {
            // One entry reports the limit; all later entries are left out.
            if self.visited_count == MAX_PROTECTED_ENTRIES + 1 {
                self.add_entry(
                    path,
                    unreadable_content(&format!(
                        "more than {MAX_PROTECTED_ENTRIES} files and folders are protected"
                    )),
                );
            }
            return;
        }
        if name.to_str().is_none() {
            // A lossy conversion could turn two different names into the same text.
            return self.add_entry(path, unreadable_content("its name is not UTF-8"));
        }
        let metadata = match folder.link_metadata_of(name) {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return;
            }
            Err(error) => return self.add_unreadable(path, &error),
        };
        match metadata.file_type() {
            FileType::Folder => self.read_folder_or_report_depth_limit_once(folder, name, path),
            FileType::Link => match folder.read_link(name) {
                Ok(target) => {
                    let target = target.as_os_str().as_encoded_bytes().escape_ascii().to_string();
                    self.add_entry(path, ProtectedContent::Link { target });
                }
                Err(error) => self.add_unreadable(path, &error),
            },
            FileType::Regular => match self.hash_file_within_total_limit(folder, name) {
                Ok(content) => self.add_entry(path, content),
                Err(error) => self.add_entry(path, unreadable_content(&error.to_string())),
            },
            // Not opened, because opening a pipe would block.
            _ => self.add_entry(path, unreadable_content("it is a pipe, a socket or a device")),
        }
    }

    /// Reads a folder unless it is nested too deeply or its path is too long; reports only the first such folder.
    /// A session can nest folders without limit, and each level takes a stack frame and an open file.
    fn read_folder_or_report_depth_limit_once(&mut self, parent_folder: &Folder, name: &OsStr, path: String) {
        if self.open_folder_depth < MAX_FOLDER_DEPTH && path.len() < MAX_PATH_BYTES {
            self.open_folder_depth += 1;
            self.read_folder_entries(parent_folder, name, &path);
            self.open_folder_depth -= 1;
        } else if !self.has_reported_depth {
            // One entry is enough to report the limit.
            self.has_reported_depth = true;
            let reason = format!(
                "it is more than {MAX_FOLDER_DEPTH} folders deep, or its path has over {MAX_PATH_BYTES} bytes"
            );
            self.add_entry(path, unreadable_content(&reason));
        }
    }

    fn read_folder_entries(&mut self, parent_folder: &Folder, name: &OsStr, path: &str) {
        let folder = match parent_folder.open_listable_subfolder(name) {
            Ok(folder) => folder,
            Err(error) => return self.add_unreadable(path.to_owned(), &error),
        };
        let names_result = folder.reopen_listable().and_then(Folder::into_entries).and_then(|entries| {
            let to_name = |entry: FolderEntry| entry.name().to_owned();
            // The listing stops soon after the limit on entries.
            let entries = entries.take(MAX_PROTECTED_ENTRIES + 1);
            entries.map(|entry| entry.map(to_name)).collect::<io::Result<Vec<OsString>>>()
        });
        let mut names = match names_result {
            Ok(names) => names,
            Err(error) => return self.add_unreadable(path.to_owned(), &error),
        };
        names.sort();
        for name in names.iter().filter(|name| *name != ".git") {
            self.read_entry_unless_over_limit(&folder, name, format!("{path}/{}", name.to_string_lossy()));
        }
    }

    fn hash_file_within_total_limit(
        &mut self,
        folder: &Folder,
        name: &OsStr,
    ) -> io::Result<ProtectedContent> {
        // Opening does not block on a pipe that has replaced the file after the check.
        let file = folder.open_file(name, OpenOptions::READ)?;
        let metadata = file_metadata(&file)?;
        if !metadata.is_file() {
            return Ok(unreadable_content("it is a pipe, a socket or a device"));
        }
        let remaining_bytes = MAX_PROTECTED_BYTES.saturating_sub(self.read_byte_count);
        let mut bytes = Vec::new();
        // Reads one byte more than allowed, to detect a file that exceeds the limit.
        file.take(remaining_bytes + 1).read_to_end(&mut bytes)?;
        self.read_byte_count += bytes.len() as u64;
        if bytes.len() as u64 > remaining_bytes {
            let max_mib = MAX_PROTECTED_BYTES >> 20;
            return Ok(unreadable_content(&format!(
                "the protected files are larger than {max_mib} MiB together"
            )));
        }
        let is_executable = metadata.mode() & 0o100 != 0;
        Ok(ProtectedContent::File { sha256: sha256_hex(&[&bytes]), is_executable })
    }

    fn add_entry(&mut self, path: String, content: ProtectedContent) {
        self.entries.push(ProtectedEntry { path, content });
    }

    fn add_unreadable(&mut self, path: String, error: &io::Error) {
        self.add_entry(path, unreadable_content(&error.to_string()));
    }
}

fn unreadable_content(reason: &str) -> ProtectedContent {
    ProtectedContent::Unreadable { reason: reason.to_owned() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the tests make the files")]
mod tests {
    use super::*;
    use crate::test_links::symlink;
    use std::fs;

    fn entry_paths(entries: &[ProtectedEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    fn content_at(entries: &[ProtectedEntry], path: &str) -> ProtectedContent {
        entries.iter().find(|entry| entry.path == path).expect(path).content.clone()
    }

    #[test]
    fn files_and_links_are_read_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("tests/deep/.git")).unwrap();
        fs::create_dir(root.join("tests/empty")).unwrap();
        fs::write(root.join("tests/deep/.git/config"), "git's own").unwrap();
        fs::write(root.join("tests/deep/a.sh"), "one").unwrap();
        fs::write(root.join("outside"), "one").unwrap();
        symlink("../outside", root.join("tests/link")).unwrap();
        symlink("tests", root.join("linked")).unwrap();
        let read = |path: &str| read_protected_entries(root, &[path.to_owned()]);
        let before = read("tests");
        assert_eq!(entry_paths(&before), ["tests/deep/a.sh", "tests/link"]);
        assert_eq!(content_at(&before, "tests/link"), ProtectedContent::Link { target: "../outside".into() });
        // The path leads through a link, so the entry is the link itself.
        assert_eq!(entry_paths(&read("linked/deep/a.sh")), ["linked"]);
        assert_eq!(entry_paths(&read("tests/none")), [""; 0]);

        fs::write(root.join("tests/deep/a.sh"), "two").unwrap();
        let changed = read("tests");
        assert_ne!(content_at(&changed, "tests/deep/a.sh"), content_at(&before, "tests/deep/a.sh"));
        fs::write(root.join("tests/deep/a.sh"), "one").unwrap();
        assert_eq!(read("tests"), before);
        if cfg!(unix) {
            let file = fs::File::open(root.join("tests/deep/a.sh")).unwrap();
            plimsoll_system::files::set_mode(&file, 0o755).unwrap();
            assert_ne!(read("tests"), before, "run-parts leaves out what nobody may execute");
        }
    }

    #[test]
    fn entries_over_the_limits_are_reported_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("many")).unwrap();
        for number in 0..=MAX_PROTECTED_ENTRIES {
            fs::write(root.join(format!("many/{number}")), "").unwrap();
        }
        let entries = read_protected_entries(root, &["many".to_owned()]);
        assert_eq!(entries.len(), MAX_PROTECTED_ENTRIES);
        let is_unreadable =
            |entry: &&ProtectedEntry| matches!(entry.content, ProtectedContent::Unreadable { .. });
        assert_eq!(entries.iter().filter(is_unreadable).count(), 1);

        let large = fs::File::create(root.join("large")).unwrap();
        large.set_len(MAX_PROTECTED_BYTES + 1).unwrap();
        let entries = read_protected_entries(root, &["large".to_owned()]);
        assert!(is_unreadable(&&entries[0]), "{entries:?}");
    }

    // Windows refuses to create a folder whose path is too long.
    #[cfg(unix)]
    #[test]
    fn endlessly_nested_folders_become_one_unreadable_entry() {
        let folder = tempfile::tempdir().unwrap();
        let mut innermost_folder = Folder::open_listable(folder.path()).unwrap();
        // A session can create this with `cd`: the path of the innermost folder is too long to open in one
        // call.
        for name in std::iter::once("tests").chain(std::iter::repeat_n("nested-nested-nested-nested", 3_000))
        {
            innermost_folder.create_subfolder(OsStr::new(name), 0o700).unwrap();
            innermost_folder = innermost_folder.open_listable_subfolder(OsStr::new(name)).unwrap();
        }
        let entries = read_protected_entries(folder.path(), &["tests".to_owned()]);
        assert_eq!(entries.len(), 1, "{}", entries.len());
        assert!(matches!(entries[0].content, ProtectedContent::Unreadable { .. }), "{entries:?}");
        assert!(entries[0].path.len() < 2 * MAX_PATH_BYTES);

        // Few folders with long names, and a file beside them.
        let wide = folder.path().join("wide");
        let mut deepest = wide.clone();
        for _ in 0..30 {
            deepest.push("n".repeat(120));
        }
        fs::create_dir_all(&deepest).unwrap();
        fs::write(wide.join("a.sh"), "one").unwrap();
        assert_eq!(entry_paths(&read_protected_entries(folder.path(), &["wide".to_owned()])), ["wide/a.sh"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_utf8_counts_as_unreadable() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let name = OsStr::from_bytes(b"a\xff");
        // Some file systems reject such a name.
        if fs::write(folder.path().join(name), "x").is_ok() {
            let parent = folder.path().parent().unwrap();
            let folder_name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
            let entries = read_protected_entries(parent, &[folder_name]);
            assert!(matches!(entries[0].content, ProtectedContent::Unreadable { .. }), "{entries:?}");
        }
    }
}
