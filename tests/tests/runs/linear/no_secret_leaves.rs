//! Secrets that must not be sent from this computer, and must not be stored on it.

use crate::linear::harness::{
    PROMISE_SESSION, add_note, run_linear_sync, run_scripted_sessions, undelivered_count, world_with_linear,
};
use plimsoll_testkit::linear::{API_KEY, Fault, LinearServer};
use std::path::Path;

/// Collects the files below a folder that contain these bytes.
fn collect_files_containing(folder: &Path, needle: &[u8], paths: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let file_type = path.symlink_metadata().expect("it is there").file_type();
        if file_type.is_dir() {
            collect_files_containing(&path, needle, paths);
        } else if file_type.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(needle.len()).any(|window| window == needle) {
                paths.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn the_key_is_in_none_of_our_files_and_outputs() {
    let key_in_error = || Some(Fault::GraphqlErrors("INPUT_ERROR", format!("the key {API_KEY} is strange")));
    let mut faults = [key_in_error(), key_in_error(), None, key_in_error()].into_iter();
    let server = LinearServer::start_with_faults(move |_| faults.next().flatten());
    let world = world_with_linear(&server);
    let session_with_key = format!(
        "begin; answers 30000; tick 'Item one'; answers 870000\nsays 'Summary: the key is {API_KEY}'\n"
    );
    let finished = run_scripted_sessions(&world, &[&session_with_key, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let outputs = [
        finished,
        run_linear_sync(&world),
        world.plimsoll(&["linear", "check"]).run(),
        run_linear_sync(&world),
    ];
    for output in &outputs {
        assert!(!output.stdout.contains(API_KEY) && !output.stderr.contains(API_KEY), "{output:?}");
    }
    assert!(outputs[0].stdout.contains("the key (key) is strange"), "{}", outputs[0].stdout);
    assert_eq!(undelivered_count(&world), 0);
    // The stand-in's scripts contain what the agent said, and so does the record of it.
    let mut files_with_key = Vec::new();
    collect_files_containing(&world.home(), API_KEY.as_bytes(), &mut files_with_key);
    collect_files_containing(&world.project(), API_KEY.as_bytes(), &mut files_with_key);
    let is_session_script = |path: &String| path.ends_with("/sessions/1");
    let own_files: Vec<&String> =
        files_with_key.iter().filter(|path| !is_session_script(path) && path.contains("/linear/")).collect();
    assert_eq!(own_files, Vec::<&String>::new());
    let body = &server.comments()[0].body;
    assert!(body.contains("Summary: the key is") && !body.contains(API_KEY), "{body}");
}

#[test]
fn a_run_with_deliveries_leaves_the_key_in_no_file() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    assert_eq!(
        run_scripted_sessions(
            &world,
            &[
                crate::linear::harness::CHECKPOINT_SESSION,
                crate::linear::harness::FINISH_ITEM_SESSION,
                PROMISE_SESSION
            ]
        )
        .code,
        Some(0)
    );
    assert_eq!(world.plimsoll(&["linear", "check"]).run().code, Some(0));
    let mut files_with_key = Vec::new();
    collect_files_containing(&world.home(), API_KEY.as_bytes(), &mut files_with_key);
    collect_files_containing(&world.project(), API_KEY.as_bytes(), &mut files_with_key);
    assert_eq!(files_with_key, Vec::<String>::new());
}

#[test]
fn tokens_and_passwords_in_notes_are_redacted_before_sending() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    let token = format!("{}{}", "ghp_", "a1".repeat(18));
    add_note(
        &world,
        "r1",
        1,
        &format!("pushed with {token} to postgres://me:hunter2hunter2@db/x, and all is well"),
    );
    let dry_run_output = world.plimsoll(&["linear", "sync", "--dry-run"]).run().expect_success().stdout;
    assert!(server.requests().is_empty(), "nothing is sent");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&dry_run_output), @r"
    to ENG-123:

    **Plimsoll: Dates** (run r1)

    **Session 1** · [DATE] [TIME] UTC · pushed with \[redacted:github-token\] to postgres://me:\[redacted:url-password\]\@db/x, and all is well
    ");
    assert_eq!(run_linear_sync(&world).code, Some(0));
    let body = server.comments()[0].body.clone();
    assert!(dry_run_output.trim_end().ends_with(body.trim_end()), "{dry_run_output}\n{body}");
    assert!(!body.contains(&token) && !body.contains("hunter2") && body.contains("all is well"), "{body}");
}
