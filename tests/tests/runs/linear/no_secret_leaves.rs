//! What must not leave this computer, and what must not lie on it.

use crate::linear::harness::{PROMISES, note, run, sync, undelivered, world};
use plimsoll_testkit::linear::{Fault, KEY, LinearServer};
use std::path::Path;

/// The files below a folder that hold the word.
fn holders(folder: &Path, word: &[u8], found: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let kind = path.symlink_metadata().expect("it is there").file_type();
        if kind.is_dir() {
            holders(&path, word, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(word.len()).any(|window| window == word) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn the_key_lies_in_no_file_and_in_no_line_of_ours() {
    let echo = || Some(Fault::Refused("INPUT_ERROR", format!("the key {KEY} is strange")));
    let mut faults = [echo(), echo(), None, echo()].into_iter();
    let server = LinearServer::with_faults(move |_| faults.next().flatten());
    let world = world(&server);
    let telling =
        format!("begin; answers 30000; tick 'Item one'; answers 870000\nsays 'Summary: the key is {KEY}'\n");
    let finished = run(&world, &[&telling, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let outputs = [finished, sync(&world), world.plimsoll(&["linear", "check"]).run(), sync(&world)];
    for output in &outputs {
        assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{output:?}");
    }
    assert!(outputs[0].stdout.contains("the key (key) is strange"), "{}", outputs[0].stdout);
    assert_eq!(undelivered(&world), 0);
    // The stand-in's scripts hold what the agent said, and so does what records it.
    let mut found = Vec::new();
    holders(&world.home(), KEY.as_bytes(), &mut found);
    holders(&world.project(), KEY.as_bytes(), &mut found);
    let is_agents = |path: &String| path.ends_with("/sessions/1");
    let ours: Vec<&String> =
        found.iter().filter(|path| !is_agents(path) && path.contains("/linear/")).collect();
    assert_eq!(ours, Vec::<&String>::new());
    let body = &server.comments()[0].body;
    assert!(body.contains("Summary: the key is") && !body.contains(KEY), "{body}");
}

#[test]
fn a_night_leaves_the_key_nowhere() {
    let server = LinearServer::new();
    let world = world(&server);
    assert_eq!(
        run(&world, &[crate::linear::harness::CHECKPOINTS, crate::linear::harness::FINISHES, PROMISES]).code,
        Some(0)
    );
    assert_eq!(world.plimsoll(&["linear", "check"]).run().code, Some(0));
    let mut found = Vec::new();
    holders(&world.home(), KEY.as_bytes(), &mut found);
    holders(&world.project(), KEY.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn tokens_and_passwords_in_the_words_do_not_leave() {
    let server = LinearServer::new();
    let world = world(&server);
    let token = format!("{}{}", "ghp_", "a1".repeat(18));
    note(
        &world,
        "r1",
        1,
        &format!("pushed with {token} to postgres://me:hunter2hunter2@db/x, and all is well"),
    );
    let shown = world.plimsoll(&["linear", "sync", "--dry-run"]).run().expect_success().stdout;
    assert!(server.asked().is_empty(), "nothing is sent");
    insta::assert_snapshot!(world.stable_text(&shown), @r"
    to ENG-123:

    **Plimsoll: Dates** (run r1)

    **Iteration 1** · [DATE] [TIME] UTC · pushed with \[redacted:github-token\] to postgres://me:\[redacted:url-password\]\@db/x, and all is well
    ");
    assert_eq!(sync(&world).code, Some(0));
    let body = server.comments()[0].body.clone();
    assert!(shown.trim_end().ends_with(body.trim_end()), "{shown}\n{body}");
    assert!(!body.contains(&token) && !body.contains("hunter2") && body.contains("all is well"), "{body}");
}
