//! Records that cannot be written at once wait in files of their own, and are added to the log exactly once.

use crate::harness::{
    TIMEOUT, TestLog, files_below, log_in_folder, prompt_record, render_findings, test_name,
};
use plimsoll_domain::SessionId;
use plimsoll_store::{Project, TurnLog, lock};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn acquire_log_lock(test_log: &TestLog) -> lock::Lock {
    lock::acquire(&test_log.log.path().with_extension("lock"), Duration::ZERO).unwrap()
}

fn pending_files(test_log: &TestLog) -> Vec<std::path::PathBuf> {
    files_below(&test_log.turns_folder().join("pending"))
}

#[test]
fn records_wait_for_a_held_lock_and_are_merged_once_in_order() {
    let test_log = TestLog::with_records(1);
    let lock = acquire_log_lock(&test_log);
    for n in 0..200 {
        test_log
            .log
            .append_or_write_to_pending_file(&prompt_record(&format!("waited {n}")), Duration::ZERO)
            .unwrap();
    }
    assert_eq!(pending_files(&test_log).len(), 200);
    assert_eq!(test_log.prompt_texts(), ["text 1"]);
    drop(lock);
    test_log.append(&[prompt_record("last")]);
    let texts = test_log.prompt_texts();
    assert_eq!((texts.len(), texts[1].as_str(), texts[201].as_str()), (202, "waited 0", "last"));
    assert!(texts[1..201].iter().enumerate().all(|(n, text)| *text == format!("waited {n}")), "{texts:?}");
    assert!(
        pending_files(&test_log).is_empty() && test_log.verify().is_intact(),
        "{}",
        render_findings(&test_log.verify())
    );
}

/// Starts this program again: it runs the test below, which merges the pending records of a folder and does
/// nothing in an ordinary run.
fn merge_in_another_process(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&test_name(module_path!(), "as_one_who_merges"), "--exact", "--test-threads=1"])
        .env("PLIMSOLL_MERGE", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn as_one_who_merges() {
    if let Some(folder) = std::env::var_os("PLIMSOLL_MERGE") {
        log_in_folder(Path::new(&folder)).open_writer(TIMEOUT).unwrap().close().unwrap();
    }
}

#[test]
fn a_kill_between_merging_and_removing_duplicates_nothing() {
    const COUNT: usize = 300;
    let mut killed_in_between = 0;
    for round in 0..40 {
        let test_log = TestLog::in_memory();
        test_log.append(&[prompt_record("text 1")]);
        let lock = acquire_log_lock(&test_log);
        (0..COUNT).for_each(|n| {
            test_log
                .log
                .append_or_write_to_pending_file(&prompt_record(&format!("{n}")), Duration::ZERO)
                .unwrap();
        });
        drop(lock);
        let mut child = merge_in_another_process(test_log.folder.path());
        // Killed at a different moment in each round, determined by the number of removed files.
        let removed_count = round * COUNT / 40;
        while child.try_wait().unwrap().is_none()
            && COUNT - pending_files(&test_log).len() < removed_count.max(1)
        {}
        let _ = child.kill();
        child.wait().unwrap();
        killed_in_between += usize::from(!pending_files(&test_log).is_empty());
        if round % 2 == 0 {
            let _ = fs::remove_file(test_log.log.path().with_extension("head"));
        }
        test_log.append(&[prompt_record("last")]);
        let mut texts = test_log.prompt_texts();
        assert_eq!(texts.len(), COUNT + 2, "round {round}");
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), COUNT + 2, "round {round}");
        assert!(pending_files(&test_log).is_empty());
        assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
    }
    assert!(killed_in_between > 10, "killed in between {killed_in_between} times");
}

#[test]
fn a_session_does_not_merge_records_of_another_session() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::with_local_files(folder.path());
    let [short_log, long_log] = ["abc", "abc.def"]
        .map(|id| TurnLog::for_session_where_started_or_current(&project, &SessionId::from(id)).unwrap());
    plimsoll_store::disk::create_folder(long_log.path().parent().unwrap()).unwrap();
    let lock_guard = lock::acquire(&long_log.path().with_file_name("abc.def.lock"), Duration::ZERO).unwrap();
    long_log.append_or_write_to_pending_file(&prompt_record("of the long one"), Duration::ZERO).unwrap();
    drop(lock_guard);
    short_log.append_or_write_to_pending_file(&prompt_record("of the short one"), TIMEOUT).unwrap();
    long_log.append_or_write_to_pending_file(&prompt_record("again"), TIMEOUT).unwrap();
    assert_eq!(crate::harness::prompt_texts(&short_log), ["of the short one"]);
    assert_eq!(crate::harness::prompt_texts(&long_log), ["of the long one", "again"]);
}

#[test]
fn an_unreadable_pending_file_stays_and_blocks_nobody() {
    let test_log = TestLog::with_records(1);
    let folder = test_log.turns_folder().join("pending");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}.20260107T120000000000.1.0.json", test_log.log.session_id()));
    fs::write(&path, "{ torn").unwrap();
    test_log.append(&[prompt_record("last")]);
    assert!(path.exists());
    assert_eq!(log_in_folder(test_log.folder.path()).current_head().unwrap().sequence_number, 2);
}
