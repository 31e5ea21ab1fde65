//! What the real client starts for an event, and what of it reaches the model.

use crate::memory_in_requests::harness::{Act, Stage, done};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::Step;

/// Lets the entries of the settings start programs of our names that note that they were started, and start ours. Returns the file
/// with the notes.
fn noting(stage: &Stage) -> std::path::PathBuf {
    let (folder, log) = (stage.world.home().join("noting"), stage.world.home().join("started.log"));
    for program in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let path = folder.join(program);
        let real = bin_dir().join(program);
        stage.world.write(
            &path,
            &format!(
                "#!/bin/sh\necho \"{program} $*\" >> '{}'\nexec '{}' \"$@\"\n",
                log.display(),
                real.display()
            ),
        );
        stage.world.command("/bin/chmod", &["755", &path.display().to_string()]).run().expect_success();
    }
    let settings = stage.world.path(".claude/settings.local.json");
    let before = stage.world.read(&settings);
    let after = before.replace(&bin_dir().display().to_string(), &folder.display().to_string());
    assert_ne!(after, before, "the entries name the programs by their paths");
    stage.world.write(&settings, &after);
    log
}

#[test]
fn a_batch_starts_one_program_and_monitor_and_memory_both_reach_the_model() {
    // The client writes a usage after it starts the hooks: the monitor waits for it only near a level, else it finds it with
    // the next batch.
    let bash = |tokens: u64| Act::from(Step::bash("echo one").usage(tokens));
    let acts =
        [bash(720_000).meanwhile(&["set", "R4", "keep the API"]), bash(720_000), bash(720_000), done()];
    let stage = Stage::new(&[("main", acts.to_vec())]);
    stage.write(&["set", "R0", "Build it"]);
    stage.write(&["alloc", "spec", "add(a, b)"]);
    let log = noting(&stage);
    let finished = stage.client("Work.", &[]).run();
    assert_eq!(finished.result()["result"], "done", "{finished:?}");
    stage.check();
    let started = std::fs::read_to_string(log).unwrap();
    let of = |line: &str| started.lines().filter(|other| other.trim_end() == line).count();
    assert_eq!(of("plimsoll-post-tool memory"), 3, "one for each batch: {started}");
    assert_eq!(
        (of("plimsoll-memory"), of("plimsoll-session-start memory"), of("plimsoll-stop-gate memory")),
        (1, 1, 1)
    );
    let parts = started.lines().filter(|line| line.starts_with("plimsoll-memory part-")).count();
    assert_eq!(parts, 4, "{started}");
    let is_other = |line: &&str| {
        let ours =
            ["plimsoll-post-tool memory", "plimsoll-session-start memory", "plimsoll-stop-gate memory"];
        !line.starts_with("plimsoll-memory") && !ours.contains(&line.trim_end())
    };
    let others: Vec<&str> = started.lines().filter(is_other).map(str::trim_end).collect();
    assert_eq!(others, ["plimsoll-session-end"], "{started}");
    stage.seen("main", |seen| {
        let first = seen.first().expect("a request").request.text();
        assert!(first.contains("R0 GOAL: Build it") && first.contains("add(a, b)"), "{first}");
        let last = seen.last().expect("a request").request.text();
        for words in ["For information: the context window is 72% full", "R4 CONSTRAINTS: keep the API"] {
            assert_eq!(last.matches(words).count(), 1, "{words}: {last}");
        }
    });
}
