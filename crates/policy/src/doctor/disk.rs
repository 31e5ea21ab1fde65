//! Rights, locks, space: whether what we know can be written.

use super::{Finding, Section};
use crate::words::{HIDDEN_MEMORY, SHOW_HIDDEN_MEMORY};
use plimsoll_domain::text::{bytes, counted};

/// A folder or file that we write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path.
    pub path: String,
    /// True when we may write into it.
    pub writable: bool,
    /// Its permission bits.
    pub mode: u32,
    /// True when it is ours.
    pub own: bool,
    /// True when no other user should even read it.
    pub private: bool,
}

/// Where the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// On a disk of this computer, as far as known.
    Local,
    /// On another computer: locks may not hold.
    Network(&'static str),
    /// A program is in between.
    Fuse,
}

/// A lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It is free.
    Free,
    /// It is held, perhaps by this process.
    Held(Option<u32>),
}

/// Rights, locks, space.
#[derive(Debug, Clone)]
pub struct DiskFacts {
    /// What we write, as far as it is there; the project's own folder first.
    pub folders: Vec<Folder>,
    /// The state's lock, after a moment's timeout.
    pub state_lock: Lock,
    /// Where the files are.
    pub file_system: FileSystem,
    /// Free bytes; none if unknown.
    pub free: Option<u64>,
    /// True in a git repository.
    pub repository: bool,
    /// The exclude file, where it should list our run files and does not.
    pub not_excluded: Option<String>,
    /// What we have recorded and git tracks.
    pub tracked: Vec<String>,
    /// Files of ours that a newer version has written.
    pub newer: Vec<String>,
    /// The folder of another working memory of this project, which sessions are not told.
    pub hidden_memory: Option<String>,
    /// The log of the working memory, where it is too long for hooks to read.
    pub long_memory: Option<String>,
    /// Our folder among the user's state, where it is in the computer's memory and the project is not.
    pub fleeting_state: Option<String>,
    /// What our records of this project take; none if that is unknown.
    pub records: Option<RecordedBytes>,
}

/// What records take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedBytes {
    /// All of them.
    pub all: u64,
    /// What `plimsoll prune --older-than 30d` would free.
    pub old: u64,
}

/// A night writes a few MB, a turn log of a long one some dozens.
const LITTLE: u64 = 100_000_000;
/// Not even a handoff is sure.
const NOTHING: u64 = 10_000_000;
/// Records of this size are worth a word.
const MUCH_RECORDED: u64 = 1_000_000_000;
const ANYBODY_WRITES: u32 = 0o002;
const OTHERS_READ: u32 = 0o044;

pub(super) fn section(facts: &DiskFacts) -> Section {
    let mut findings: Vec<Finding> = facts.folders.iter().filter_map(rights).collect();
    findings.extend(space(facts));
    if let Lock::Held(holder) = facts.state_lock {
        let who = holder.map_or("another process".to_owned(), |pid| format!("process {pid}"));
        let what = format!("{who} holds the state's lock: hooks wait for it until they time out");
        findings.push(Finding::warning(
            "disk.locked",
            what,
            "check that process; the lock is released when it ends",
        ));
    }
    findings.extend(match facts.file_system {
        FileSystem::Local => None,
        FileSystem::Network(kind) => Some(Finding::warning(
            "disk.network",
            format!(
                "the project is on a network file system ({kind}): locks may not work, and hooks are slow"
            ),
            "work on a local disk, if you can",
        )),
        FileSystem::Fuse => Some(Finding::note(
            "disk.fuse",
            "the project is on a file system in user space (FUSE): locks may not work there",
            "work on a local disk, if you can",
        )),
    });
    findings.extend(git(facts));
    findings.extend(tracked(facts));
    findings.extend(newer(facts));
    findings.extend(facts.fleeting_state.as_ref().map(|folder| {
        let what = "the state folder is a file system in memory (tmpfs), as in a sandbox: what is written there is gone afterwards";
        let todo = "let the sandbox write your state folder, or run `plimsoll init --local`, which keeps the project's files in the project";
        Finding::warning("disk.fleeting_state", what, todo).at(folder.clone())
    }));
    findings.extend(facts.hidden_memory.as_ref().map(|folder| {
        Finding::warning("disk.hidden_memory", HIDDEN_MEMORY, SHOW_HIDDEN_MEMORY).at(folder.clone())
    }));
    findings.extend(facts.long_memory.as_ref().map(|log| {
        let what = "the memory's log is longer than hooks read, and no snapshot covers it: sessions are told nothing of it";
        let todo = "if you wrote it, run `plimsoll memory`, which reads it once; if it came with a clone, delete it";
        Finding::warning("disk.long_memory", what, todo).at(log.clone())
    }));
    findings.extend(facts.records.and_then(recorded));
    let free = facts.free.map_or("? free".to_owned(), |free| format!("{} free", bytes(free)));
    let repository = if facts.repository { "git repository" } else { "no git repository" };
    let records = facts.records.map(|records| format!(", our records take {}", bytes(records.all)));
    Section::new("Disk", format!("{free}, {repository}{}", records.unwrap_or_default()), findings)
}

fn newer(facts: &DiskFacts) -> Option<Finding> {
    let first = facts.newer.first()?;
    let files = counted(facts.newer.len(), "file");
    let what = format!(
        "{files} of ours in a format of a newer Plimsoll: what needs them fails, and they stay as they are"
    );
    Some(Finding::problem("disk.newer_format", what, "update Plimsoll").at(first.clone()))
}

fn recorded(records: RecordedBytes) -> Option<Finding> {
    let what = format!("our records of this project take {}", bytes(records.all));
    let old = bytes(records.old);
    let todo = format!(
        "`plimsoll prune --older-than 30d` would free {old}, `--max-size 500M` more; the settings keep.days and keep.megabytes do it by themselves"
    );
    (records.all >= MUCH_RECORDED).then(|| Finding::note("disk.records", what, &todo))
}

fn rights(folder: &Folder) -> Option<Finding> {
    let finding = if !folder.writable {
        let todo = "give yourself write permission (`ls -ld` shows the owner)";
        Finding::problem(
            "disk.not_writable",
            "Plimsoll may not write here: nothing would be measured or recorded",
            todo,
        )
    } else if !folder.own {
        Finding::warning("disk.not_own", "this belongs to another user", "`chown` it, or work as that user")
    } else if folder.mode & ANYBODY_WRITES != 0 {
        let what = "every user of this computer may write here: our hooks trust what is in it";
        Finding::warning("disk.world_writable", what, "`chmod o-w` it")
    } else if folder.private && folder.mode & OTHERS_READ != 0 {
        let what = "other users may read here: turn logs and handoffs contain what the session saw";
        Finding::note("disk.readable", what, "`chmod go-rx` it")
    } else {
        return None;
    };
    Some(finding.at(folder.path.clone()))
}

fn space(facts: &DiskFacts) -> Option<Finding> {
    let free = facts.free.filter(|free| *free < LITTLE)?;
    let what = format!("only {} are free", bytes(free));
    let todo = "free some space; on a full disk no checkpoint can be written";
    Some(if free < NOTHING {
        Finding::problem("disk.full", what, todo)
    } else {
        Finding::warning("disk.nearly_full", what, todo)
    })
}

fn git(facts: &DiskFacts) -> Option<Finding> {
    if !facts.repository {
        let what = "not a git repository: handoffs contain fewer facts, and no work in progress is committed";
        return Some(Finding::note("disk.no_repository", what, "run `git init` if you want that"));
    }
    let file = facts.not_excluded.as_ref()?;
    let what = "git's exclude file (which a clone does not include) does not list our run files: an agent's `git add -A` \
                would commit ralph-state.json (our folders hide themselves)";
    Some(
        Finding::warning(
            "disk.not_excluded",
            what,
            "run `plimsoll init --local` again (or --project --entries, as your hooks are)",
        )
        .at(file.clone()),
    )
}

fn tracked(facts: &DiskFacts) -> Option<Finding> {
    let first = facts.tracked.first()?;
    let number = counted(facts.tracked.len(), "file");
    let what = format!(
        "{number} of our recorded files, such as this one, are tracked by git: transcripts and handoffs contain what the sessions saw"
    );
    let mut roots: Vec<&str> = facts.tracked.iter().map(|path| root_of(path)).collect();
    roots.dedup();
    let todo = format!(
        "`git rm -r --cached {}`, then commit (the files stay); what was pushed stays in the history",
        roots.join(" ")
    );
    Some(Finding::problem("disk.tracked", what, &todo).at(first.clone()))
}

/// The folder of ours that a file is in, or the file.
fn root_of(path: &str) -> &str {
    let ours = [".claude/plimsoll", ".claude/handoffs"];
    ours.into_iter().find(|ours| path.starts_with(ours)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    /// What is changed, and the codes that follow.
    type Case = (fn(&mut DiskFacts), &'static [&'static str]);

    #[test]
    fn rights_locks_and_space_are_judged() {
        let look = |change: fn(&mut DiskFacts)| {
            let folder = Folder {
                path: ".claude/plimsoll".to_owned(),
                writable: true,
                mode: 0o700,
                own: true,
                private: true,
            };
            let mut facts = DiskFacts {
                folders: vec![folder],
                state_lock: Lock::Free,
                file_system: FileSystem::Local,
                free: Some(5_000_000_000),
                repository: true,
                not_excluded: None,
                newer: Vec::new(),
                tracked: Vec::new(),
                fleeting_state: None,
                hidden_memory: None,
                long_memory: None,
                records: Some(RecordedBytes { all: 30_000_000, old: 0 }),
            };
            change(&mut facts);
            section(&facts)
        };
        let cases: [Case; 20] = [
            (|_| (), &[]),
            (|facts| facts.tracked = vec![".claude/plimsoll/journal.jsonl".to_owned()], &["disk.tracked"]),
            (|facts| facts.folders[0].writable = false, &["disk.not_writable"]),
            (|facts| facts.folders[0].own = false, &["disk.not_own"]),
            (|facts| facts.folders[0].mode = 0o777, &["disk.world_writable"]),
            (|facts| facts.folders[0].mode = 0o755, &["disk.readable"]),
            (|facts| (facts.folders[0].mode, facts.folders[0].private) = (0o755, false), &[]),
            (|facts| facts.free = Some(50_000_000), &["disk.nearly_full"]),
            (|facts| facts.free = Some(5_000_000), &["disk.full"]),
            (|facts| facts.free = None, &[]),
            (|facts| facts.state_lock = Lock::Held(Some(7)), &["disk.locked"]),
            (|facts| facts.file_system = FileSystem::Network("NFS"), &["disk.network"]),
            (|facts| facts.file_system = FileSystem::Fuse, &["disk.fuse"]),
            (|facts| facts.records = Some(RecordedBytes { all: 2_000_000_000, old: 1 }), &["disk.records"]),
            (|facts| facts.repository = false, &["disk.no_repository"]),
            (|facts| facts.not_excluded = Some(".git/info/exclude".to_owned()), &["disk.not_excluded"]),
            (|facts| facts.fleeting_state = Some("state".to_owned()), &["disk.fleeting_state"]),
            (|facts| facts.hidden_memory = Some("memory".to_owned()), &["disk.hidden_memory"]),
            (|facts| facts.long_memory = Some("log.jsonl".to_owned()), &["disk.long_memory"]),
            (|facts| facts.newer.push(".claude/ralph-state.json".to_owned()), &["disk.newer_format"]),
        ];
        for (change, expected) in cases {
            let section = look(change);
            assert_eq!(codes(&section), expected, "{section:?}");
        }
    }
}
