//! Disks that are full, folders that cannot be written, links, and folders that vanish.

use crate::harness::{Place, TIMEOUT, files, large, log_at, prompt, said, test_name, texts};
use plimsoll_store::StoreError;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A small file system of its own; unmounted when dropped.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Result<SmallDisk, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(folder.path());
        match command.output() {
            Ok(output) if output.status.success() => Ok(SmallDisk { folder }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Something of ours may still hold a folder there open: it is gone from here all the same.
        let gone = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
        assert!(
            gone.is_ok_and(|status| status.success()),
            "{} is still mounted",
            self.folder.path().display()
        );
    }
}

const DISK: &str = "PLIMSOLL_SMALL_DISK";

#[test]
fn a_full_disk_is_an_error_spoils_nothing_and_is_forgotten_when_there_is_room() {
    if let Ok(folder) = std::env::var(DISK) {
        return fill(Path::new(&folder));
    }
    match SmallDisk::mount() {
        Ok(disk) => fill(disk.folder.path()),
        // Who may not mount may still do so in a name space of his own.
        Err(why) => {
            let folder = tempfile::tempdir().unwrap();
            let script = format!(
                "mount -t tmpfs -o size=256k tmpfs {0} && exec \"$0\" \"$@\"",
                folder.path().display()
            );
            let test = test_name(
                module_path!(),
                "a_full_disk_is_an_error_spoils_nothing_and_is_forgotten_when_there_is_room",
            );
            let output = Command::new("unshare")
                .args(["-rm", "sh", "-c", &script])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", &test])
                .env(DISK, folder.path())
                .output();
            // Without a test of this name the program would succeed with none.
            let is_done = |output: &std::process::Output| {
                output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
            };
            let done = output.as_ref().is_ok_and(is_done);
            assert!(done, "NOT TESTED: no small file system can be mounted here ({why}; {output:?})");
        }
    }
}

fn fill(folder: &Path) {
    let log = log_at(folder);
    for with_blobs in [false, true] {
        let ballast = folder.join("ballast");
        fs::write(&ballast, vec![0; 120 * 1024]).unwrap();
        let mut acknowledged = texts(&log);
        let mut failures = 0;
        for n in 0..2_000 {
            let text = if with_blobs { large(&format!("word{n}")) } else { format!("text {n} {with_blobs}") };
            let added = log.write(TIMEOUT).and_then(|mut writer| {
                writer.append(&[prompt(&text)])?;
                writer.close()
            });
            match added {
                Ok(()) => acknowledged.push(text),
                Err(error) => {
                    assert!(error.to_string().contains("space"), "{error}");
                    failures += 1;
                    if failures > 5 {
                        break;
                    }
                }
            }
        }
        assert!(failures > 5, "the disk was never full");
        let noted = log.note(&prompt("noted on a full disk"), Duration::ZERO);
        let found = texts(&log);
        let missing: Vec<_> = acknowledged.iter().filter(|text| !found.contains(text)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(log.verify().unwrap().is_whole(), "{}", said(&log.verify().unwrap()));
        fs::remove_file(&ballast).unwrap();
        log.note(&prompt("room again"), TIMEOUT).unwrap();
        let found = texts(&log);
        assert_eq!(found.last().map(String::as_str), Some("room again"));
        let times = found.iter().filter(|text| *text == "noted on a full disk").count();
        let all = found.len();
        assert!(times <= 1 + usize::from(with_blobs), "{times} in {all}");
        assert!(times >= usize::from(noted.is_ok()), "what was acknowledged is there");
        assert!(log.verify().unwrap().is_whole(), "{}", said(&log.verify().unwrap()));
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_and_loses_nothing() {
    let place = Place::with(2);
    let folder = place.turns();
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let is_powerless = fs::write(folder.join("probe"), "x").is_err();
    let added = place.log.note(&prompt("three"), TIMEOUT);
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    // Root writes everywhere. Anybody else adds to the log and cannot save its head: that is told, and comes once.
    assert!(is_powerless || added.is_ok());
    let found = place.texts();
    assert!(found.len() >= 2 + usize::from(added.is_ok()), "what was acknowledged is there: {found:?}");
    place.append(&[prompt("four")]);
    let times = place.texts().iter().filter(|text| *text == "three").count();
    assert!(times <= 1, "{:?}", place.texts());
    place.append(&[prompt("last")]);
    assert!(place.verify().is_whole());
}

#[test]
fn a_folder_that_is_a_file_is_an_error() {
    let place = Place::new();
    fs::create_dir_all(place.turns().parent().unwrap()).unwrap();
    fs::write(place.turns(), "not a folder").unwrap();
    assert!(place.log.note(&prompt("one"), TIMEOUT).is_err());
    assert!(place.texts().is_empty() && place.verify().is_whole());
    assert_eq!(fs::read(place.turns()).unwrap(), b"not a folder");
}

#[test]
fn a_linked_folder_is_refused_by_name_and_nothing_is_put_where_it_leads() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.turns().parent().unwrap()).unwrap();
    symlink(elsewhere.path(), place.turns()).unwrap();
    let error = place.log.write(TIMEOUT).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("turns"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A repository may hold links: nothing of ours writes through one to a file that is not ours.
#[test]
fn a_linked_log_is_refused_and_its_target_is_left_alone() {
    for extension in ["jsonl", "head", "torn", "lock"] {
        let place = Place::new();
        let victim = place.folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        fs::create_dir_all(place.turns()).unwrap();
        symlink(&victim, place.log.path().with_extension(extension)).unwrap();
        if extension == "torn" {
            // Only what was torn off is put there.
            fs::write(place.log.path(), "half a li").unwrap();
        }
        let error = place.log.write(TIMEOUT).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Linked { .. }), "{extension}: {error}");
        // What no transcript holds waits for better times.
        place.log.note(&prompt("waits"), TIMEOUT).unwrap();
        assert!(place.log.erase(&[1].into(), TIMEOUT).is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"mine", "{extension}");
        fs::remove_file(place.log.path().with_extension(extension)).unwrap();
        place.append(&[prompt("last")]);
        assert_eq!(place.texts(), ["waits", "last"], "{extension}");
    }
}

#[test]
fn a_folder_that_vanishes_between_two_records_is_made_again() {
    let place = Place::with(2);
    fs::remove_dir_all(place.turns()).unwrap();
    place.append(&[prompt("afterwards")]);
    assert_eq!(place.texts(), ["afterwards"]);
    assert!(place.verify().is_whole());

    // Also while somebody has the log open: what he adds then is not acknowledged as if it were there.
    let mut writer = place.log.write(TIMEOUT).unwrap();
    writer.append(&[prompt("one")]).unwrap();
    fs::remove_dir_all(place.turns()).unwrap();
    let closed = writer.append(&[prompt("two")]).and_then(|()| writer.close());
    let found = place.texts();
    assert!(closed.is_err() || found.len() == 3, "{closed:?} {found:?} {:?}", files(place.folder.path()));
    place.append(&[prompt("last")]);
    assert_eq!(place.texts().last().map(String::as_str), Some("last"));
}
