//! The programs that the real client starts for an event, and what of their output reaches the model.

use crate::memory_in_requests::harness::{ScriptedResponse, ScriptedSessions, final_response};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::Step;

/// Makes the entries of the settings start scripts with the names of our programs, which record that they were started
/// and then run ours. Returns the file with the records.
fn record_program_starts(stage: &ScriptedSessions) -> std::path::PathBuf {
    let (folder, log) = (stage.world.home().join("noting"), stage.world.home().join("started.log"));
    for program in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let path = folder.join(program);
        let program_path = find_or_build_bin_dir().join(program);
        stage.world.write(
            &path,
            &format!(
                "#!/bin/sh\necho \"{program} $*\" >> '{}'\nexec '{}' \"$@\"\n",
                log.display(),
                program_path.display()
            ),
        );
        stage.world.command("/bin/chmod", &["755", &path.display().to_string()]).run().expect_success();
    }
    let settings_path = stage.world.path(".claude/settings.local.json");
    let before = stage.world.read(&settings_path);
    let after = before.replace(&find_or_build_bin_dir().display().to_string(), &folder.display().to_string());
    assert_ne!(after, before, "the entries name the programs by their paths");
    stage.world.write(&settings_path, &after);
    log
}

#[test]
fn a_batch_starts_one_program_and_monitor_and_memory_both_reach_the_model() {
    // The client writes a usage after it starts the hooks. The monitor waits for it only near a level; otherwise it
    // reads the usage with the next batch.
    let bash = |tokens: u64| ScriptedResponse::from(Step::bash_call("echo one").with_input_tokens(tokens));
    let acts = [
        bash(720_000).with_concurrent_write(&["set", "R4", "keep the API"]),
        bash(720_000),
        bash(720_000),
        final_response(),
    ];
    let stage = ScriptedSessions::new(&[("main", acts.to_vec())]);
    stage.write_as_other(&["set", "R0", "Build it"]);
    stage.write_as_other(&["alloc", "spec", "add(a, b)"]);
    let log = record_program_starts(&stage);
    let finished = stage.client_command("Work.", &[]).run();
    assert_eq!(finished.last_result()["result"], "done", "{finished:?}");
    stage.assert_requests_correct();
    let started = std::fs::read_to_string(log).unwrap();
    let count_starts =
        |line: &str| started.lines().filter(|started_line| started_line.trim_end() == line).count();
    assert_eq!(count_starts("plimsoll-post-tool memory"), 3, "one for each batch: {started}");
    assert_eq!(
        (
            count_starts("plimsoll-memory"),
            count_starts("plimsoll-session-start memory"),
            count_starts("plimsoll-stop-gate memory")
        ),
        (1, 1, 1)
    );
    let part_starts = started.lines().filter(|line| line.starts_with("plimsoll-memory part-")).count();
    assert_eq!(part_starts, 4, "{started}");
    let is_other = |line: &&str| {
        let batch_and_session_starts =
            ["plimsoll-post-tool memory", "plimsoll-session-start memory", "plimsoll-stop-gate memory"];
        !line.starts_with("plimsoll-memory") && !batch_and_session_starts.contains(&line.trim_end())
    };
    let others: Vec<&str> = started.lines().filter(is_other).map(str::trim_end).collect();
    assert_eq!(others, ["plimsoll-session-end"], "{started}");
    stage.inspect_requests("main", |seen| {
        let first = seen.first().expect("a request").request.full_text();
        assert!(first.contains("R0 GOAL: Build it") && first.contains("add(a, b)"), "{first}");
        let last = seen.last().expect("a request").request.full_text();
        for words in ["For information: the context window is 72% full", "R4 CONSTRAINTS: keep the API"] {
            assert_eq!(last.matches(words).count(), 1, "{words}: {last}");
        }
    });
}
