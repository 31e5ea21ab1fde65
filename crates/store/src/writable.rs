//! Where a command writes if the project's folder among the user's state cannot be written: in the project itself. So it is in
//! Claude Code's sandbox, in which a session's commands may write the project and little else.
//!
//! The files move as a whole: from then on hooks, commands and servers, inside the sandbox or not, find the project's files in the
//! project ([`Project::of_session`]), as after `plimsoll init --local`. Nothing in a project's folder is trusted, so what is
//! written there completes no run and lifts no limit. Turn logs and handoffs stay where they are, and are found there
//! ([`Project::earlier`]); a session that goes on writes into the log that it has ([`crate::TurnLog::of`]).

use crate::{Durability, Project, StoreError, disk, hidden, layout, lock, memory, volume};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

/// A project whose files can be written.
#[derive(Debug)]
pub struct WritableProject {
    /// The project.
    pub project: Project,
    /// True if its files were moved into its folder just now.
    pub has_moved: bool,
}

/// What later sessions and commands look for in the folder of our files.
const MOVED: [&str; 4] = ["memory", "sessions", "journal.jsonl", "windows.json"];

/// Returns the project, with its files moved into its own folder if the one among the user's state cannot be written.
pub fn writable_project(project: Project) -> Result<WritableProject, StoreError> {
    let inside = Project::at(project.root());
    if project.own() == inside.own() || can_write_below(project.own()) {
        return Ok(WritableProject { project, has_moved: false });
    }
    copy_into_project(&project, &inside)?;
    Ok(WritableProject { project: inside, has_moved: true })
}

/// True if files can be made in a folder, which need not be there yet.
fn can_write_below(folder: &Path) -> bool {
    folder.ancestors().find_map(volume::rights).is_some_and(|rights| rights.writable)
}

/// A writer of the memory takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Copies the files while nobody writes the memory: a change behind the copy would be lost. Whoever waits for the memory meanwhile
/// then finds it in the project ([`lock::acquire_in`]). Where the lock is not available, as on NFS, the files move
/// all the same.
fn copy_into_project(from: &Project, to: &Project) -> Result<(), StoreError> {
    let _memory = lock::acquire_unwritable(&memory::log(from).lock_path(), TIMEOUT)?;
    copy_under_lock(from, to)
}

/// Copies the files into a folder beside, which then becomes the project's: a kill before that leaves the project as it was.
fn copy_under_lock(from: &Project, to: &Project) -> Result<(), StoreError> {
    // Nobody can have prepared a folder of this name: in the sandbox the numbers of processes begin at 2.
    let draft = to.handoffs().join(format!(".moving-{:016x}", RandomState::new().hash_one(0)));
    let moved = copy_into_draft(from, &draft).and_then(|()| {
        // A folder in which nothing is may have been there, and is in the way.
        if layout::is_empty(to.own()) {
            remove(to.own())?;
        }
        disk::rename(&draft, to.own())
    });
    if moved.is_err() {
        let _ = remove(&draft);
    }
    disk::sync_folder(to.handoffs().parent().unwrap_or(to.root()));
    // Another command may have moved them meanwhile.
    if layout::is_empty(to.own()) { moved } else { Ok(()) }
}

/// Copies the files into a new folder, and puts them on the disk: from the rename on they hide those that they were copied from.
fn copy_into_draft(from: &Project, draft: &Path) -> Result<(), StoreError> {
    disk::replace(&draft.join(hidden::FILE), hidden::TEXT, Durability::Lazy)?;
    MOVED.iter().try_for_each(|name| copy(&from.own().join(name), &draft.join(name)))?;
    disk::sync_volume(draft)
}

/// Copies a file, or a folder with what is in it, without the files of locks: those are held on the files themselves.
fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    if disk::is_folder_itself(from) {
        let names = disk::names(from).into_iter().filter(|name| !name.ends_with(".lock"));
        return names.into_iter().try_for_each(|name| copy(&from.join(&name), &to.join(&name)));
    }
    match disk::read(from)? {
        Some(bytes) => disk::replace(to, &bytes, Durability::Lazy),
        None => Ok(()),
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    if !disk::is_folder_itself(path) {
        return disk::remove(path);
    }
    disk::names(path).iter().try_for_each(|name| remove(&path.join(name)))?;
    disk::remove_empty_folder(path);
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a test makes a file that is too large to be read")]
mod tests {
    use super::*;
    use crate::sessions;
    use plimsoll_domain::memory::Op;

    /// Makes a project below a folder, and returns it with its files outside and inside of it.
    fn make_project(folder: &Path) -> (Project, Project) {
        let root = folder.join("project");
        disk::create_folder(&root).unwrap();
        let inside = Project::at(&root);
        (inside.clone().with_own_folder(&folder.join("state")), inside)
    }

    #[test]
    fn files_are_moved_as_a_whole_and_hidden_from_git() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        for name in ["memory/log.jsonl", "memory/seen/s1.json", "sessions/s1.json", "turns/s1.jsonl"] {
            disk::replace(&outside.own().join(name), name.as_bytes(), Durability::Lazy).unwrap();
        }
        disk::replace(&outside.own().join("memory/log.lock"), b"", Durability::Lazy).unwrap();
        copy_into_project(&outside, &inside).unwrap();
        for name in ["memory/log.jsonl", "memory/seen/s1.json", "sessions/s1.json"] {
            assert_eq!(disk::read(&inside.own().join(name)).unwrap().as_deref(), Some(name.as_bytes()));
        }
        for name in ["memory/log.lock", "turns"] {
            assert!(!disk::exists(&inside.own().join(name)), "{name}");
        }
        assert_eq!(disk::read(&inside.own().join(hidden::FILE)).unwrap().as_deref(), Some(hidden::TEXT));
        assert_eq!(disk::names(&inside.handoffs()), [hidden::FILE], "no draft is left");
        // A second command that was as early finds them there, and leaves no draft either.
        copy_into_project(&outside, &inside).unwrap();
        assert_eq!(disk::names(&inside.handoffs()), [hidden::FILE]);
    }

    #[test]
    fn an_empty_folder_in_the_project_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        disk::replace(&outside.own().join("journal.jsonl"), b"{}", Durability::Lazy).unwrap();
        disk::replace(&inside.own().join(hidden::FILE), hidden::TEXT, Durability::Lazy).unwrap();
        outside.follow_move();
        assert!(!outside.is_inside(), "nothing has moved there");
        copy_into_project(&outside, &inside).unwrap();
        assert_eq!(disk::names(inside.own()), [hidden::FILE, "journal.jsonl"]);
        outside.follow_move();
        assert!(outside.is_inside());
    }

    fn note(name: &str) -> [Op; 1] {
        [Op::HeapAlloc { name: name.into(), content: "x".into(), description: String::new() }]
    }

    fn heap(project: &Project) -> Vec<String> {
        memory::load(project).unwrap().heap.iter().map(|chunk| chunk.name.clone()).collect()
    }

    /// Long enough for another thread to come to the lock that it waits for.
    const A_WHILE: Duration = Duration::from_millis(200);

    #[test]
    fn a_writer_that_waits_for_a_lock_while_the_files_move_writes_into_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        memory::change(&outside, "x", &note("before")).unwrap();
        sessions::update(&outside, &"s1".into(), TIMEOUT, |record| record.compactions = 1).unwrap();
        let memory_lock = lock::acquire(&memory::log(&outside).lock_path(), TIMEOUT).unwrap();
        let session_lock = sessions::lock(&outside, &"s1".into(), TIMEOUT).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| memory::change(&outside, "x", &note("waited")));
            let (session_id, other) = ("s1".into(), outside.clone());
            let session = scope.spawn(move || {
                sessions::update(&other, &session_id, TIMEOUT, |record| record.compactions += 1)
            });
            std::thread::sleep(A_WHILE);
            copy_under_lock(&outside, &inside).unwrap();
            drop((memory_lock, session_lock));
            writer.join().unwrap().unwrap();
            session.join().unwrap().unwrap();
        });
        assert_eq!(heap(&inside), ["before", "waited"]);
        assert_eq!(sessions::load(&inside, &"s1".into()).compactions, 2);
        assert_eq!(outside.own(), inside.own(), "whoever looked it up before follows");
    }

    #[test]
    fn files_move_only_once_the_memory_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        memory::change(&outside, "x", &note("before")).unwrap();
        let mut held = memory::hold(&outside, TIMEOUT).unwrap();
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| copy_into_project(&outside, &inside));
            std::thread::sleep(A_WHILE);
            assert!(!disk::exists(inside.own()));
            held.change("x", &note("during")[0]).unwrap();
            held.close().unwrap();
            mover.join().unwrap().unwrap();
        });
        assert_eq!(heap(&inside), ["before", "during"]);
    }

    #[test]
    fn what_lies_where_the_files_are_copied_first_is_not_taken_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        disk::replace(&outside.own().join("journal.jsonl"), b"{}", Durability::Lazy).unwrap();
        let prepared = inside.handoffs().join(format!(".moving-{}", std::process::id()));
        disk::replace(&prepared.join("sessions/forged.json"), b"{}", Durability::Lazy).unwrap();
        copy_into_project(&outside, &inside).unwrap();
        assert_eq!(disk::names(inside.own()), [hidden::FILE, "journal.jsonl"]);
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = make_project(folder.path());
        disk::replace(&outside.own().join("memory/log.jsonl"), b"{}", Durability::Lazy).unwrap();
        // A file that is too large to be read: the copy ends there.
        let large = std::fs::File::create(outside.own().join("windows.json")).unwrap();
        large.set_len(20 << 30).unwrap();
        copy_into_project(&outside, &inside).unwrap_err();
        assert!(!disk::exists(inside.own()));
        assert_eq!(disk::names(&inside.handoffs()), [hidden::FILE]);
    }

    #[test]
    fn a_folder_that_can_be_written_keeps_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        disk::create_folder(&root).unwrap();
        let outside = Project::at(&root).with_own_folder(&folder.path().join("not/yet/there"));
        let writable = writable_project(outside.clone()).unwrap();
        assert!(!writable.has_moved && writable.project.own() == outside.own());
        assert!(!disk::exists(&root.join(".claude")));
    }
}
