//! What is put in the place of a file, and a snapshot of a folder to compare with afterwards.

use plimsoll_testkit::world::World;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text of the files outside the project, which no program may read.
pub(crate) const SECRET: &str = "SECRET-OUTSIDE-THE-PROJECT";
/// Size in bytes that is too large for a hook's memory.
const HUGE: u64 = 100 * 1024 * 1024;

/// What is in the place of one of our files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trap {
    LinkToFile,
    HardLink,
    LinkToMissing,
    LinkToFolder,
    Pipe,
    LinkToEndlessDevice,
    Folder,
    Huge,
}

/// Returns a folder beside the project, with secrets. Creates it if it is missing.
pub(crate) fn outside_folder(world: &World) -> PathBuf {
    let folder = world.home().join("outside");
    if !folder.exists() {
        fs::create_dir_all(folder.join("folder/info")).unwrap();
        fs::write(folder.join("file"), format!("{SECRET}\n- [ ] {SECRET}\n")).unwrap();
        fs::write(folder.join("folder/file"), SECRET).unwrap();
        // A hard link shows its content inside the project, whoever made it, so only what is written matters.
        fs::write(folder.join("plain"), "a file outside\n").unwrap();
    }
    folder
}

impl Trap {
    pub(crate) fn plant(self, world: &World, place: &str) {
        let (path, outside) = (world.path(place), outside_folder(world));
        remove_if_present(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match self {
            Trap::LinkToFile => symlink(outside.join("file"), &path).unwrap(),
            Trap::HardLink => fs::hard_link(outside.join("plain"), &path).unwrap(),
            Trap::LinkToMissing => symlink(outside.join("missing"), &path).unwrap(),
            Trap::LinkToFolder => symlink(outside.join("folder"), &path).unwrap(),
            Trap::LinkToEndlessDevice => symlink(endless_device(world), &path).unwrap(),
            Trap::Folder => fs::create_dir(&path).unwrap(),
            Trap::Pipe => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            Trap::Huge => fs::File::create(&path).unwrap().set_len(HUGE).unwrap(),
        }
    }
}

/// Returns a device without end. Makes a new one if possible, so that a test that runs as root cannot replace the
/// computer's own `/dev/zero`.
fn endless_device(world: &World) -> PathBuf {
    let own_device = world.home().join("zero");
    let is_made = Command::new("mknod")
        .arg(&own_device)
        .args(["c", "1", "5"])
        .output()
        .is_ok_and(|output| output.status.success());
    let is_safe =
        || Command::new("test").args(["-w", "/dev"]).status().is_ok_and(|writable| !writable.success());
    assert!(is_made || own_device.exists() || is_safe(), "no device to try it with");
    if own_device.exists() { own_device } else { PathBuf::from("/dev/zero") }
}

fn remove_if_present(path: &Path) {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Returns every file, link and folder below a folder with its bytes; links, special files and huge files have no
/// bytes.
pub(crate) fn folder_snapshot(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut snapshot = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if kind.is_dir() {
                snapshot.insert(name + "/", Vec::new());
                folders.push(path);
            } else if kind.is_file() && entry.metadata().unwrap().len() < HUGE {
                snapshot.insert(name, fs::read(&path).unwrap());
            } else {
                snapshot.insert(name + "@", Vec::new());
            }
        }
    }
    snapshot
}

/// Restores the contents of the project.
pub(crate) fn restore_project(world: &World, snapshot: &BTreeMap<String, Vec<u8>>) {
    let project = world.project();
    for entry in fs::read_dir(&project).unwrap().flatten() {
        remove_if_present(&entry.path());
    }
    for (name, bytes) in snapshot {
        let path = project.join(name);
        match name.strip_suffix('/') {
            Some(_) => fs::create_dir_all(&path).unwrap(),
            None => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, bytes).unwrap();
            }
        }
    }
}
