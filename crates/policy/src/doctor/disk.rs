//! Checks permissions, locks, free space and git: whether Plimsoll can write its files, and whether they stay private.

use super::{Finding, Section};
use crate::messages::{HIDDEN_MEMORY_FIX, HIDDEN_MEMORY_WARNING};
use plimsoll_domain::text::{count_with_noun, format_bytes};

/// A folder or file that Plimsoll writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInfo {
    pub path: String,
    /// True if this user may write to it.
    pub is_writable: bool,
    pub permission_bits: u32,
    /// True if this user owns it.
    pub is_owned_by_user: bool,
    /// True if no other user should be able to read it.
    pub is_private: bool,
}

/// The kind of file system that holds the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// A local disk, or an unknown kind.
    Local,
    /// A network file system, where locks may not work, with the name of the protocol.
    Network(&'static str),
    /// A file system in user space.
    Fuse,
    /// A drive of Windows, as WSL shows it.
    WindowsDrive,
}

/// Whether a lock file is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockStatus {
    Free,
    /// Locked by the process with this id, if known. It may be this process.
    Held(Option<u32>),
}

#[derive(Debug, Clone)]
pub struct DiskInfo {
    /// The folders and files that exist; the project's folder first.
    pub paths: Vec<PathInfo>,
    /// The lock of the state file, after waiting briefly for it.
    pub state_lock: LockStatus,
    /// The file system of the project.
    pub file_system: FileSystem,
    /// Free bytes; `None` if unknown.
    pub free_bytes: Option<u64>,
    /// True if the project is a git repository.
    pub is_git_repository: bool,
    /// git's exclude file, if it does not list the run's files although it should.
    pub incomplete_exclude_file: Option<String>,
    /// Plimsoll's recorded files that git tracks.
    pub recorded_files_tracked_by_git: Vec<String>,
    /// Files written by a newer version of Plimsoll in a newer format.
    pub newer_format_files: Vec<String>,
    /// The folder of a second working memory of this project, which sessions do not see.
    pub unused_second_memory_folder: Option<String>,
    /// The log of the working memory, if it is too long for hooks to read.
    pub oversized_memory_log: Option<String>,
    /// This user's state folder, if it is on an in-memory file system and the project is not.
    pub in_memory_state_folder: Option<String>,
    /// The disk space used by this project's records; `None` if unknown.
    pub recorded_bytes: Option<RecordedBytes>,
}

/// The disk space used by records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedBytes {
    pub total: u64,
    /// The space that `plimsoll prune --older-than 30d` would free.
    pub older_than_30_days: u64,
}

/// An unattended run writes a few MB; the turn log of a long one takes some dozens of MB.
const LOW_SPACE_BYTES: u64 = 100_000_000;
/// With less free space not even a handoff can be written reliably.
const FULL_DISK_BYTES: u64 = 10_000_000;
/// Records of at least this size are reported.
const LARGE_RECORDS_BYTES: u64 = 1_000_000_000;
const WORLD_WRITABLE_BIT: u32 = 0o002;
const OTHERS_READABLE_BITS: u32 = 0o044;

pub(super) fn check_disk_git_and_recorded_files(disk: &DiskInfo) -> Section {
    let mut findings: Vec<Finding> = disk.paths.iter().filter_map(check_ownership_and_permissions).collect();
    findings.extend(check_low_disk_space(disk));
    if let LockStatus::Held(pid) = disk.state_lock {
        let holder_text = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
        let message = format!("{holder_text} holds the state's lock: hooks wait for it until they time out");
        findings.push(Finding::warning(
            "disk.locked",
            message,
            "check that process; the lock is released when it ends",
        ));
    }
    findings.extend(match disk.file_system {
        FileSystem::Local => None,
        FileSystem::Network(protocol) => Some(Finding::warning(
            "disk.network",
            format!(
                "the project is on a network file system ({protocol}): locks may not work, and hooks are slow"
            ),
            "work on a local disk, if you can",
        )),
        FileSystem::WindowsDrive => Some(Finding::warning(
            "disk.windows_drive",
            "the project is on a drive of Windows: hooks are slow there, and programs in Windows do not see our locks",
            "move the project into the file system of WSL, such as ~/project",
        )),
        FileSystem::Fuse => Some(Finding::note(
            "disk.fuse",
            "the project is on a file system in user space (FUSE): locks may not work there",
            "work on a local disk, if you can",
        )),
    });
    findings.extend(check_git_repository_and_exclude_file(disk));
    findings.extend(check_records_tracked_by_git(disk));
    findings.extend(check_files_of_newer_format(disk));
    findings.extend(disk.in_memory_state_folder.as_ref().map(|folder| {
        let message = "the state folder is in memory (tmpfs), as in a sandbox: its files are lost afterwards";
        let advice = "let the sandbox write your state folder, or run `plimsoll init --local`, which keeps the project's files in the project";
        Finding::warning("disk.fleeting_state", message, advice).with_path(folder.clone())
    }));
    findings.extend(disk.unused_second_memory_folder.as_ref().map(|folder| {
        Finding::warning("disk.hidden_memory", HIDDEN_MEMORY_WARNING, HIDDEN_MEMORY_FIX)
            .with_path(folder.clone())
    }));
    findings.extend(disk.oversized_memory_log.as_ref().map(|log| {
        let message =
            "the memory's log is too long for hooks, and no snapshot covers it: sessions do not see it";
        let advice =
            "if you wrote it, run `plimsoll memory`, which reads it once; if it came with a clone, delete it";
        Finding::warning("disk.long_memory", message, advice).with_path(log.clone())
    }));
    findings.extend(disk.recorded_bytes.and_then(note_if_records_are_large));
    let free_text =
        disk.free_bytes.map_or("? free".to_owned(), |free| format!("{} free", format_bytes(free)));
    let repository_text = if disk.is_git_repository { "git repository" } else { "no git repository" };
    let records_text = disk
        .recorded_bytes
        .map(|recorded_bytes| format!(", our records take {}", format_bytes(recorded_bytes.total)));
    Section::new(
        "Disk",
        format!("{free_text}, {repository_text}{}", records_text.unwrap_or_default()),
        findings,
    )
}

fn check_files_of_newer_format(disk: &DiskInfo) -> Option<Finding> {
    let first_file = disk.newer_format_files.first()?;
    let files_text = count_with_noun(disk.newer_format_files.len(), "file");
    let message = format!(
        "{files_text} in the format of a newer Plimsoll: commands that need them fail; the files stay unchanged"
    );
    Some(Finding::problem("disk.newer_format", message, "update Plimsoll").with_path(first_file.clone()))
}

fn note_if_records_are_large(recorded_bytes: RecordedBytes) -> Option<Finding> {
    let message = format!("our records of this project take {}", format_bytes(recorded_bytes.total));
    let prunable_text = format_bytes(recorded_bytes.older_than_30_days);
    let advice = format!(
        "`plimsoll prune --older-than 30d` would free {prunable_text}, `--max-size 500M` more; the settings keep.days and keep.megabytes do it by themselves"
    );
    (recorded_bytes.total >= LARGE_RECORDS_BYTES).then(|| Finding::note("disk.records", message, &advice))
}

fn check_ownership_and_permissions(path_info: &PathInfo) -> Option<Finding> {
    let finding = if !path_info.is_writable {
        let advice = "give yourself write permission (`ls -ld` shows the owner)";
        Finding::problem(
            "disk.not_writable",
            "Plimsoll may not write here: nothing would be measured or recorded",
            advice,
        )
    } else if !path_info.is_owned_by_user {
        Finding::warning("disk.not_own", "this belongs to another user", "`chown` it, or work as that user")
    } else if path_info.permission_bits & WORLD_WRITABLE_BIT != 0 {
        let message = "every user of this computer may write here: our hooks trust what is in it";
        Finding::warning("disk.world_writable", message, "`chmod o-w` it")
    } else if path_info.is_private && path_info.permission_bits & OTHERS_READABLE_BITS != 0 {
        let message = "other users may read here: turn logs and handoffs contain what the session saw";
        Finding::note("disk.readable", message, "`chmod go-rx` it")
    } else {
        return None;
    };
    Some(finding.with_path(path_info.path.clone()))
}

fn check_low_disk_space(disk: &DiskInfo) -> Option<Finding> {
    let free_bytes = disk.free_bytes.filter(|free| *free < LOW_SPACE_BYTES)?;
    let message = format!("only {} are free", format_bytes(free_bytes));
    let advice = "free some space; on a full disk no checkpoint can be written";
    Some(if free_bytes < FULL_DISK_BYTES {
        Finding::problem("disk.full", message, advice)
    } else {
        Finding::warning("disk.nearly_full", message, advice)
    })
}

fn check_git_repository_and_exclude_file(disk: &DiskInfo) -> Option<Finding> {
    if !disk.is_git_repository {
        let message =
            "not a git repository: handoffs contain fewer facts, and no work in progress is committed";
        return Some(Finding::note("disk.no_repository", message, "run `git init` if you want that"));
    }
    let exclude_file = disk.incomplete_exclude_file.as_ref()?;
    let message = "git's exclude file (which a clone does not include) does not list our run files: an agent's `git add -A` \
                would commit ralph-state.json (our folders hide themselves)";
    Some(
        Finding::warning(
            "disk.not_excluded",
            message,
            "run `plimsoll init --local` again (or --project --entries, as your hooks are)",
        )
        .with_path(exclude_file.clone()),
    )
}

fn check_records_tracked_by_git(disk: &DiskInfo) -> Option<Finding> {
    let first_file = disk.recorded_files_tracked_by_git.first()?;
    let files_text = count_with_noun(disk.recorded_files_tracked_by_git.len(), "file");
    let message = format!(
        "{files_text} of our recorded files, such as this one, are tracked by git: transcripts and handoffs contain what the sessions saw"
    );
    let mut record_roots: Vec<&str> =
        disk.recorded_files_tracked_by_git.iter().map(|path| containing_record_folder(path)).collect();
    record_roots.dedup();
    let advice = format!(
        "`git rm -r --cached {}`, then commit (the files stay); what was pushed stays in the history",
        record_roots.join(" ")
    );
    Some(Finding::problem("disk.tracked", message, &advice).with_path(first_file.clone()))
}

/// Returns the Plimsoll folder that contains the file, or the file itself if it is outside of them.
fn containing_record_folder(path: &str) -> &str {
    let plimsoll_folders = [".claude/plimsoll", ".claude/handoffs"];
    plimsoll_folders.into_iter().find(|folder| path.starts_with(folder)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    /// A change to the disk information, and the codes of the expected findings.
    type Case = (fn(&mut DiskInfo), &'static [&'static str]);

    #[test]
    fn permissions_locks_and_space_are_checked() {
        let check_changed = |change: fn(&mut DiskInfo)| {
            let folder = PathInfo {
                path: ".claude/plimsoll".to_owned(),
                is_writable: true,
                permission_bits: 0o700,
                is_owned_by_user: true,
                is_private: true,
            };
            let mut facts = DiskInfo {
                paths: vec![folder],
                state_lock: LockStatus::Free,
                file_system: FileSystem::Local,
                free_bytes: Some(5_000_000_000),
                is_git_repository: true,
                incomplete_exclude_file: None,
                newer_format_files: Vec::new(),
                recorded_files_tracked_by_git: Vec::new(),
                in_memory_state_folder: None,
                unused_second_memory_folder: None,
                oversized_memory_log: None,
                recorded_bytes: Some(RecordedBytes { total: 30_000_000, older_than_30_days: 0 }),
            };
            change(&mut facts);
            check_disk_git_and_recorded_files(&facts)
        };
        let cases: [Case; 21] = [
            (|_| (), &[]),
            (
                |facts| {
                    facts.recorded_files_tracked_by_git = vec![".claude/plimsoll/journal.jsonl".to_owned()];
                },
                &["disk.tracked"],
            ),
            (|facts| facts.paths[0].is_writable = false, &["disk.not_writable"]),
            (|facts| facts.paths[0].is_owned_by_user = false, &["disk.not_own"]),
            (|facts| facts.paths[0].permission_bits = 0o777, &["disk.world_writable"]),
            (|facts| facts.paths[0].permission_bits = 0o755, &["disk.readable"]),
            (|facts| (facts.paths[0].permission_bits, facts.paths[0].is_private) = (0o755, false), &[]),
            (|facts| facts.free_bytes = Some(50_000_000), &["disk.nearly_full"]),
            (|facts| facts.free_bytes = Some(5_000_000), &["disk.full"]),
            (|facts| facts.free_bytes = None, &[]),
            (|facts| facts.state_lock = LockStatus::Held(Some(7)), &["disk.locked"]),
            (|facts| facts.file_system = FileSystem::Network("NFS"), &["disk.network"]),
            (|facts| facts.file_system = FileSystem::Fuse, &["disk.fuse"]),
            (|facts| facts.file_system = FileSystem::WindowsDrive, &["disk.windows_drive"]),
            (
                |facts| {
                    facts.recorded_bytes =
                        Some(RecordedBytes { total: 2_000_000_000, older_than_30_days: 1 });
                },
                &["disk.records"],
            ),
            (|facts| facts.is_git_repository = false, &["disk.no_repository"]),
            (
                |facts| facts.incomplete_exclude_file = Some(".git/info/exclude".to_owned()),
                &["disk.not_excluded"],
            ),
            (|facts| facts.in_memory_state_folder = Some("state".to_owned()), &["disk.fleeting_state"]),
            (|facts| facts.unused_second_memory_folder = Some("memory".to_owned()), &["disk.hidden_memory"]),
            (|facts| facts.oversized_memory_log = Some("log.jsonl".to_owned()), &["disk.long_memory"]),
            (
                |facts| facts.newer_format_files.push(".claude/ralph-state.json".to_owned()),
                &["disk.newer_format"],
            ),
        ];
        for (change, expected) in cases {
            let section = check_changed(change);
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
    }
}
