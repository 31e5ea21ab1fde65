//! Full disks, unwritable folders, links, and folders that vanish.

use crate::harness::{
    TIMEOUT, TestLog, files_below, large_text, log_in_folder, prompt_record, prompt_texts, render_findings,
    test_name,
};
use plimsoll_store::StoreError;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A small temporary file system, unmounted when dropped.
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
        // Lazily, because one of our processes may still have a folder on it open.
        let status = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} is still mounted",
            self.folder.path().display()
        );
    }
}

const SMALL_DISK_VARIABLE: &str = "PLIMSOLL_SMALL_DISK";

#[test]
fn a_full_disk_is_an_error_spoils_nothing_and_is_forgotten_when_there_is_room() {
    if let Ok(folder) = std::env::var(SMALL_DISK_VARIABLE) {
        return fill_disk_and_check_log(Path::new(&folder));
    }
    match SmallDisk::mount() {
        Ok(disk) => fill_disk_and_check_log(disk.folder.path()),
        // A user who may not mount can still do so in a user namespace.
        Err(reason) => {
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
                .env(SMALL_DISK_VARIABLE, folder.path())
                .output();
            // If no test had this name, the program would succeed without running one.
            let has_passed = |output: &std::process::Output| {
                output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
            };
            let has_passed_once = output.as_ref().is_ok_and(has_passed);
            assert!(
                has_passed_once,
                "NOT TESTED: no small file system can be mounted here ({reason}; {output:?})"
            );
        }
    }
}

fn fill_disk_and_check_log(folder: &Path) {
    let log = log_in_folder(folder);
    for with_blobs in [false, true] {
        let ballast = folder.join("ballast");
        fs::write(&ballast, vec![0; 120 * 1024]).unwrap();
        let mut acknowledged = prompt_texts(&log);
        let mut failures = 0;
        for n in 0..2_000 {
            let text =
                if with_blobs { large_text(&format!("word{n}")) } else { format!("text {n} {with_blobs}") };
            let result = log.open_writer(TIMEOUT).and_then(|mut writer| {
                writer.append_records_or_roll_back(&[prompt_record(&text)])?;
                writer.close()
            });
            match result {
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
        let deferred_result =
            log.append_or_write_to_pending_file(&prompt_record("noted on a full disk"), Duration::ZERO);
        let log_texts = prompt_texts(&log);
        let missing: Vec<_> = acknowledged.iter().filter(|text| !log_texts.contains(text)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(log.verify().unwrap().is_intact(), "{}", render_findings(&log.verify().unwrap()));
        fs::remove_file(&ballast).unwrap();
        log.append_or_write_to_pending_file(&prompt_record("room again"), TIMEOUT).unwrap();
        let log_texts = prompt_texts(&log);
        assert_eq!(log_texts.last().map(String::as_str), Some("room again"));
        let count = log_texts.iter().filter(|text| *text == "noted on a full disk").count();
        let total = log_texts.len();
        assert!(count <= 1 + usize::from(with_blobs), "{count} in {total}");
        assert!(count >= usize::from(deferred_result.is_ok()), "what was acknowledged is there");
        assert!(log.verify().unwrap().is_intact(), "{}", render_findings(&log.verify().unwrap()));
    }
}

#[test]
fn an_unwritable_folder_is_an_error_and_loses_nothing() {
    let test_log = TestLog::with_records(2);
    let folder = test_log.turns_folder();
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let cannot_write = fs::write(folder.join("probe"), "x").is_err();
    let result = test_log.log.append_or_write_to_pending_file(&prompt_record("three"), TIMEOUT);
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    // Root can write everywhere. Any other user appends to the log but cannot save its head: that is an
    // error, and the record is there once.
    assert!(cannot_write || result.is_ok());
    let log_texts = test_log.prompt_texts();
    assert!(
        log_texts.len() >= 2 + usize::from(result.is_ok()),
        "what was acknowledged is there: {log_texts:?}"
    );
    test_log.append(&[prompt_record("four")]);
    let count = test_log.prompt_texts().iter().filter(|text| *text == "three").count();
    assert!(count <= 1, "{:?}", test_log.prompt_texts());
    test_log.append(&[prompt_record("last")]);
    assert!(test_log.verify().is_intact());
}

#[test]
fn a_folder_that_is_a_file_is_an_error() {
    let test_log = TestLog::new();
    fs::create_dir_all(test_log.turns_folder().parent().unwrap()).unwrap();
    fs::write(test_log.turns_folder(), "not a folder").unwrap();
    assert!(test_log.log.append_or_write_to_pending_file(&prompt_record("one"), TIMEOUT).is_err());
    assert!(test_log.prompt_texts().is_empty() && test_log.verify().is_intact());
    assert_eq!(fs::read(test_log.turns_folder()).unwrap(), b"not a folder");
}

#[test]
fn a_linked_folder_is_refused_and_nothing_is_written_to_its_target() {
    let test_log = TestLog::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(test_log.turns_folder().parent().unwrap()).unwrap();
    symlink(elsewhere.path(), test_log.turns_folder()).unwrap();
    let error = test_log.log.open_writer(TIMEOUT).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("turns"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A repository may contain links: nothing of ours writes through one to a file that is not ours.
#[test]
fn a_linked_log_is_refused_and_its_target_is_unchanged() {
    for extension in ["jsonl", "head", "torn", "lock"] {
        let test_log = TestLog::new();
        let victim = test_log.folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        fs::create_dir_all(test_log.turns_folder()).unwrap();
        symlink(&victim, test_log.log.path().with_extension(extension)).unwrap();
        if extension == "torn" {
            // Only a torn end is written to this file.
            fs::write(test_log.log.path(), "half a li").unwrap();
        }
        let error = test_log.log.open_writer(TIMEOUT).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::LinkNotFollowed { .. }), "{extension}: {error}");
        // A record that no transcript contains waits until it can be added.
        test_log.log.append_or_write_to_pending_file(&prompt_record("waits"), TIMEOUT).unwrap();
        assert!(test_log.log.erase_records_and_finish_interrupted(&[1].into(), TIMEOUT).is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"mine", "{extension}");
        fs::remove_file(test_log.log.path().with_extension(extension)).unwrap();
        test_log.append(&[prompt_record("last")]);
        assert_eq!(test_log.prompt_texts(), ["waits", "last"], "{extension}");
    }
}

#[test]
fn a_folder_that_vanishes_between_two_records_is_created_again() {
    let test_log = TestLog::with_records(2);
    fs::remove_dir_all(test_log.turns_folder()).unwrap();
    test_log.append(&[prompt_record("afterwards")]);
    assert_eq!(test_log.prompt_texts(), ["afterwards"]);
    assert!(test_log.verify().is_intact());

    // Also while a writer is open: a record that it adds then is not acknowledged unless it is there.
    let mut writer = test_log.log.open_writer(TIMEOUT).unwrap();
    writer.append_records_or_roll_back(&[prompt_record("one")]).unwrap();
    fs::remove_dir_all(test_log.turns_folder()).unwrap();
    let result = writer.append_records_or_roll_back(&[prompt_record("two")]).and_then(|()| writer.close());
    let log_texts = test_log.prompt_texts();
    assert!(
        result.is_err() || log_texts.len() == 3,
        "{result:?} {log_texts:?} {:?}",
        files_below(test_log.folder.path())
    );
    test_log.append(&[prompt_record("last")]);
    assert_eq!(test_log.prompt_texts().last().map(String::as_str), Some("last"));
}
