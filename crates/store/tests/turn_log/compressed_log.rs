//! A compressed log reads as before, accepts new records, and never replaces the uncompressed form before it
//! is complete.

use crate::harness::{
    SESSION_ID, TIMEOUT, TestLog, files_below, large_text, prompt_record, prompt_texts, render_findings,
};
use plimsoll_store::StoreError;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Returns the log of a closed session, with blobs, and the modification time that its files have.
fn closed_log() -> (TestLog, SystemTime) {
    let test_log = TestLog::with_records(200);
    test_log
        .append(&[prompt_record(&large_text("a large piece")), prompt_record(&large_text("another one"))]);
    let written_at = SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for file in files_below(&test_log.turns_folder()) {
        fs::File::options().append(true).open(file).unwrap().set_modified(written_at).unwrap();
    }
    (test_log, written_at)
}

fn compressed_path(test_log: &TestLog) -> PathBuf {
    test_log.turns_folder().join(format!("{SESSION_ID}.jsonl.zst"))
}

fn total_size(test_log: &TestLog) -> u64 {
    files_below(&test_log.turns_folder()).iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}

#[test]
fn a_compressed_log_is_smaller_and_reads_as_before() {
    let (test_log, written_at) = closed_log();
    let (texts_before, size_before, head) =
        (test_log.prompt_texts(), total_size(&test_log), test_log.log.current_head());
    let read_backwards = || {
        let lines = test_log.log.backward_lines().unwrap().map(|line| line.unwrap());
        lines.map(|line| (line.start.offset, line.bytes)).collect::<Vec<_>>()
    };
    let backwards_before = read_backwards();
    let saved = test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert!(test_log.log.is_compressed() && test_log.log.exists());
    assert_eq!(total_size(&test_log), size_before - saved);
    assert!(saved > size_before / 2, "{saved} of {size_before}");
    assert!(
        !test_log.log.path().exists()
            && files_below(&test_log.turns_folder())
                .iter()
                .all(|file| !file.to_string_lossy().ends_with("draft"))
    );
    assert_eq!((test_log.prompt_texts(), test_log.log.current_head()), (texts_before, head));
    assert_eq!(read_backwards(), backwards_before);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
    let days_after_written =
        |time: SystemTime| time.duration_since(written_at).map_or(0, |duration| duration.as_secs() / 86_400);
    assert_eq!(test_log.log.modified_at().map(days_after_written), Some(0), "nothing was written to it");
    assert_eq!(test_log.log.compress_log_and_blobs(TIMEOUT).unwrap(), 0, "a second time changes nothing");
}

#[test]
fn records_added_later_follow_the_compressed_ones() {
    let (test_log, _) = closed_log();
    let before = test_log.prompt_texts();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    test_log.append(&[prompt_record("after it"), prompt_record(&large_text("a large piece"))]);
    assert!(!test_log.log.is_compressed() && !compressed_path(&test_log).exists());
    assert_eq!(
        test_log.prompt_texts(),
        [before, vec!["after it".to_owned(), large_text("a large piece")]].concat()
    );
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert!(
        test_log.log.is_compressed() && test_log.verify().is_intact(),
        "{}",
        render_findings(&test_log.verify())
    );
}

#[test]
fn a_missing_head_is_rebuilt_from_the_compressed_log() {
    let (test_log, _) = closed_log();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    fs::remove_file(test_log.turns_folder().join(format!("{SESSION_ID}.head"))).unwrap();
    test_log.append(&[prompt_record("after it")]);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
    assert_eq!(test_log.prompt_texts().last().map(String::as_str), Some("after it"));
}

/// A kill between the two steps leaves both forms: the uncompressed one counts, and may have grown since.
#[test]
fn the_uncompressed_form_takes_precedence() {
    let (test_log, _) = closed_log();
    let uncompressed = test_log.log_bytes();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    test_log.overwrite_log(&uncompressed);
    assert!(!test_log.log.is_compressed());
    test_log.append(&[prompt_record("after the kill")]);
    let texts_now = test_log.prompt_texts();
    assert_eq!(texts_now.last().map(String::as_str), Some("after the kill"));
    let project = plimsoll_store::Project::with_local_files(test_log.folder.path());
    assert_eq!(
        plimsoll_store::TurnLog::one_per_session_oldest_modified_first(&project).len(),
        1,
        "it is one log"
    );
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert_eq!(prompt_texts(&test_log.log), texts_now);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn a_damaged_compressed_log_is_reported_and_set_aside_by_a_writer() {
    let (test_log, _) = closed_log();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    let intact = fs::read(compressed_path(&test_log)).unwrap();
    for damaged in [intact[..intact.len() / 2].to_vec(), b"no zstd".to_vec(), [&intact[..], b"more"].concat()]
    {
        let (test_log, _) = closed_log();
        test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
        fs::write(compressed_path(&test_log), &damaged).unwrap();
        let message = test_log.log.forward_lines().map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("jsonl.zst"), "{message}");
        assert_eq!(fs::read(compressed_path(&test_log)).unwrap(), damaged, "a reader moves nothing");
        test_log.append(&[prompt_record("it goes on")]);
        assert_eq!(test_log.prompt_texts(), ["it goes on"]);
        let set_aside_file = files_below(&test_log.turns_folder())
            .into_iter()
            .find(|file| file.to_string_lossy().contains(".zst.corrupt-"));
        assert_eq!(fs::read(set_aside_file.expect("it is kept")).unwrap(), damaged);
        assert!(
            render_findings(&test_log.verify()).contains("lost"),
            "what is missing is named: {}",
            render_findings(&test_log.verify())
        );
        let project = plimsoll_store::Project::with_local_files(test_log.folder.path());
        plimsoll_store::records::remove_session_files(&project, &SESSION_ID.into()).unwrap();
        let remaining = files_below(&test_log.turns_folder())
            .into_iter()
            .filter(|file| !file.to_string_lossy().ends_with(".lock"));
        assert_eq!(remaining.count(), 0, "it goes with its session");
    }
}

/// A clone may contain any file: a small one must fill neither the memory nor the disk of a reader.
#[test]
fn a_compressed_file_that_would_become_huge_is_refused() {
    let frame = vec![b'\n'; 4 * 1024 * 1024];
    let small = compress_to_vec(&frame[..], CompressionLevel::Fastest);
    let test_log = TestLog::new();
    fs::create_dir_all(test_log.turns_folder()).unwrap();
    fs::write(compressed_path(&test_log), small.repeat(500)).unwrap();
    let error = test_log.log.forward_lines().map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    test_log.append(&[prompt_record("it goes on")]);
    assert_eq!(test_log.prompt_texts(), ["it goes on"]);
    // Such a file is not written either.
    let repeated_text = "the same words ".repeat(100);
    let test_log = TestLog::new();
    (0..20).for_each(|_| {
        test_log.append(&(0..1_000).map(|_| prompt_record(&repeated_text)).collect::<Vec<_>>());
    });
    let before = test_log.prompt_texts().len();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert_eq!(test_log.prompt_texts().len(), before, "packed or not, it is read");
}

/// The memory's log is never compressed, so a file that looks like its compressed form is ignored.
#[test]
fn the_memory_log_is_never_expanded() {
    let test_log = TestLog::with_records(3);
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    let project = plimsoll_store::Project::with_local_files(test_log.folder.path());
    fs::create_dir_all(project.memory_folder()).unwrap();
    let forged = project.memory_folder().join("log.jsonl.zst");
    fs::copy(compressed_path(&test_log), &forged).unwrap();
    assert!(!plimsoll_store::memory::memory_exists(&project));
    let op = plimsoll_domain::memory::MemoryOp::BeginRun { objective: "Do it.".to_owned() };
    plimsoll_store::memory::apply_changes_atomically(&project, "test", &[op]).unwrap();
    assert!(forged.exists() && plimsoll_store::memory::read_changes(&project).unwrap().len() == 1);
}

#[test]
fn drafts_of_killed_compressions_are_removed() {
    let secret = "sk-very-secret";
    let test_log = TestLog::new();
    test_log.append(&[prompt_record("one"), prompt_record(secret)]);
    let uncompressed = test_log.log_bytes();
    let draft = test_log.turns_folder().join(format!(
        ".{SESSION_ID}.jsonl.7.0123456789abcdef{}",
        plimsoll_store::disk::TEMPORARY_FILE_SUFFIX
    ));
    fs::write(&draft, &uncompressed).unwrap();
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert!(!draft.exists());
    // Killed between the two forms, and then asked to erase.
    let compressed = fs::read(compressed_path(&test_log)).unwrap();
    test_log.append(&[prompt_record("three")]);
    fs::write(compressed_path(&test_log), compressed).unwrap();
    fs::write(&draft, &uncompressed).unwrap();
    assert_eq!(test_log.log.erase_records_and_finish_interrupted(&[2].into(), TIMEOUT).unwrap(), 1);
    assert!(!test_log.any_file_contains(secret) && !compressed_path(&test_log).exists() && !draft.exists());
    assert_eq!(test_log.prompt_texts(), ["one", "three"]);
}

#[test]
fn contents_erased_from_a_compressed_log_are_in_no_file() {
    let secret = "sk-very-secret";
    let test_log = TestLog::new();
    test_log.append(&[
        prompt_record("one"),
        prompt_record(secret),
        prompt_record(&large_text(secret)),
        prompt_record("four"),
    ]);
    test_log.log.compress_log_and_blobs(TIMEOUT).unwrap();
    assert_eq!(test_log.log.erase_records_and_finish_interrupted(&[2, 3].into(), TIMEOUT).unwrap(), 2);
    assert!(!test_log.any_file_contains(secret) && !compressed_path(&test_log).exists());
    let remaining = files_below(&test_log.turns_folder())
        .into_iter()
        .filter(|file| file.to_string_lossy().contains(".blobs/"));
    assert_eq!(remaining.count(), 0, "the compressed piece has gone too");
    assert_eq!(test_log.prompt_texts(), ["one", "four"]);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn a_log_that_is_being_written_is_not_compressed() {
    let (test_log, _) = closed_log();
    let _lock = test_log.log.acquire_lock(TIMEOUT).unwrap();
    let error = test_log.log.compress_log_and_blobs(Duration::ZERO).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(test_log.log.path().exists() && !compressed_path(&test_log).exists());
}
