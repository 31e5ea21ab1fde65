//! What is put in the place of a file, and what can be seen of a folder afterwards.

use plimsoll_testkit::world::World;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands in every file outside.
pub(crate) const SECRET: &str = "SECRET-OUTSIDE-THE-PROJECT";
/// Too large for a hook's memory.
const HUGE: u64 = 100 * 1024 * 1024;

/// What lies where a file of ours should.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trap {
    LinkToFile,
    HardLink,
    LinkToMissing,
    LinkToFolder,
    Pipe,
    LinkToZero,
    Folder,
    Huge,
}

/// A folder beside the project, with secrets.
pub(crate) fn outside(world: &World) -> PathBuf {
    let folder = world.home().join("outside");
    if !folder.exists() {
        fs::create_dir_all(folder.join("folder/info")).unwrap();
        fs::write(folder.join("file"), format!("{SECRET}\n- [ ] {SECRET}\n")).unwrap();
        fs::write(folder.join("folder/file"), SECRET).unwrap();
        // What a hard link shows is in the project, whoever made it: only what is written matters.
        fs::write(folder.join("plain"), "a file outside\n").unwrap();
    }
    folder
}

impl Trap {
    pub(crate) fn lay(self, world: &World, place: &str) {
        let (at, outside) = (world.path(place), outside(world));
        clear(&at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match self {
            Trap::LinkToFile => symlink(outside.join("file"), &at).unwrap(),
            Trap::HardLink => fs::hard_link(outside.join("plain"), &at).unwrap(),
            Trap::LinkToMissing => symlink(outside.join("missing"), &at).unwrap(),
            Trap::LinkToFolder => symlink(outside.join("folder"), &at).unwrap(),
            Trap::LinkToZero => symlink(zero(world), &at).unwrap(),
            Trap::Folder => fs::create_dir(&at).unwrap(),
            Trap::Pipe => assert!(Command::new("mkfifo").arg(&at).status().unwrap().success()),
            Trap::Huge => fs::File::create(&at).unwrap().set_len(HUGE).unwrap(),
        }
    }
}

/// A device without end. Who may replace the computer's own, as root may, gets one that nobody misses.
fn zero(world: &World) -> PathBuf {
    let own = world.home().join("zero");
    let made = Command::new("mknod")
        .arg(&own)
        .args(["c", "1", "5"])
        .output()
        .is_ok_and(|made| made.status.success());
    let is_safe =
        || Command::new("test").args(["-w", "/dev"]).status().is_ok_and(|writable| !writable.success());
    assert!(made || own.exists() || is_safe(), "no device to try it with");
    if own.exists() { own } else { PathBuf::from("/dev/zero") }
}

fn clear(at: &Path) {
    match at.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(at).unwrap(),
        Ok(_) => fs::remove_file(at).unwrap(),
        Err(_) => {}
    }
}

/// Every file, link and folder below a folder, with its bytes; of a huge file nothing.
pub(crate) fn sights(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if kind.is_dir() {
                found.insert(name + "/", Vec::new());
                folders.push(path);
            } else if kind.is_file() && entry.metadata().unwrap().len() < HUGE {
                found.insert(name, fs::read(&path).unwrap());
            } else {
                found.insert(name + "@", Vec::new());
            }
        }
    }
    found
}

/// The project as it was.
pub(crate) fn put_back(world: &World, whole: &BTreeMap<String, Vec<u8>>) {
    let project = world.project();
    for entry in fs::read_dir(&project).unwrap().flatten() {
        clear(&entry.path());
    }
    for (name, bytes) in whole {
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
