//! `plimsoll-otel` by itself: how it handles wrong arguments and wrong files.

use super::{copy_programs_without_exporter, enable_telemetry, run_with_programs};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::collector::{Collector, CollectorBehavior};
use plimsoll_tests::{
    ScriptedAgent, events_named, honest_agent, read_journal, run_with_objective, world_with_plan_and_dates,
};

#[test]
fn it_prints_version_and_help_and_refuses_unknown_arguments() {
    let world = World::without_git();
    let run_program = |words: &[&str], input: &str| {
        world.command(find_or_build_bin_dir().join("plimsoll-otel"), words).stdin(input).run()
    };
    let version = run_program(&["--version"], "").expect_success().stdout;
    assert_eq!(version, format!("plimsoll-otel {}\n", env!("CARGO_PKG_VERSION")));
    let help = run_program(&["--help"], "").expect_success().stdout;
    insta::assert_snapshot!(help, @"
    Sends the spans and the journal of Plimsoll's runs to an OpenTelemetry collector.

    Usage: plimsoll-otel --version         print the version; with --json also target and commit
           plimsoll-otel --help            print this

    `plimsoll run` starts it where CLAUDE_CODE_ENABLE_TELEMETRY=1 and OTEL_EXPORTER_OTLP_ENDPOINT are set.
    ");
    for (arguments, problem) in [
        (&["send"][..], "unknown arguments: send"),
        (&[], "a command is missing"),
        (&["follow", "soon"], "unknown arguments: follow soon"),
    ] {
        let finished = run_program(arguments, "");
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        let expected = format!("error: {problem}\n\n{help}");
        assert_eq!(finished.stderr, expected);
    }
    // Input that is no run: it ends at once and writes nothing.
    for input in ["", "not an event\n", "{\"at\":\"\",\"event\":\"run_started\"}\n"] {
        run_program(&["follow", "0"], input).expect_success();
    }
    assert!(!world.exists(".claude/plimsoll/journal.jsonl"));
}

#[test]
fn an_exporter_in_the_project_or_a_relative_path_entry_is_not_started() {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    enable_telemetry(&mut world, collector.address());
    let trap = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", world.home().join("started").display());
    for path in ["plimsoll-otel", "bin/plimsoll-otel", "relative/plimsoll-otel"] {
        world.write_program(path, &trap);
    }
    let program_folder = copy_programs_without_exporter(&world);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let original_path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let project_bin = world.path("bin").display().to_string();
    let test_bin = find_or_build_bin_dir().display().to_string();
    let other_entries = original_path.split(':').filter(|entry| *entry != test_bin).map(str::to_owned);
    let path: Vec<String> =
        [project_bin, "relative".to_owned(), ".".to_owned(), program_folder.display().to_string()]
            .into_iter()
            .chain(other_entries)
            .collect();
    world.set_env("PATH", path.join(":"));
    let finished = run_with_programs(&world, &program_folder);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("telemetry"), "it is optional: {finished:?}");
    assert!(!world.home().join("started").exists(), "{}", world.read(world.home().join("started")));
    assert_eq!(collector.received().request_heads, [] as [&str; 0]);
}

#[test]
fn an_invalid_certificate_is_reported_and_does_not_fail_the_run() {
    for (text, expected_text) in [(None, "does not exist"), (Some("no certificate"), "has no certificate")] {
        let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
        enable_telemetry(&mut world, "https://127.0.0.1:9");
        let path = world.home().join("ca.pem");
        if let Some(text) = text {
            world.write(&path, text);
        }
        world.set_env("OTEL_EXPORTER_OTLP_CERTIFICATE", path.display().to_string());
        let _model = ScriptedAgent::new(honest_agent).start(&mut world);
        assert_eq!(run_with_objective(&world, &[]).code, Some(0));
        let is_reported = || !events_named(&read_journal(&world), "telemetry_lost").is_empty();
        world.wait_until(is_reported, "what was lost");
        let journal = read_journal(&world);
        let trouble = events_named(&journal, "telemetry_lost")[0]["trouble"].as_str().expect("words");
        assert!(trouble.contains(expected_text) && trouble.contains("ca.pem"), "{trouble}");
        let log = world.plimsoll(&["log"]).run().expect_success().stdout;
        assert!(log.contains("did not reach the collector"), "{log}");
    }
}

#[test]
fn traces_and_logs_go_to_their_own_endpoints() {
    let (traces, logs) =
        (Collector::start(CollectorBehavior::Accepting), Collector::start(CollectorBehavior::Accepting));
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    enable_telemetry(&mut world, "http://127.0.0.1:9");
    world.set_env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/own/v1/traces", traces.address()));
    world.set_env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", format!("{}/v1/logs", logs.address()));
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    assert_eq!(run_with_objective(&world, &[]).code, Some(0));
    let has_last_log = || logs.received().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(has_last_log, "the last log");
    let has_run_span = || !super::spans_named(&super::received_spans(&traces), "plimsoll run").is_empty();
    world.wait_until(has_run_span, "the span of the run");
    assert!(logs.received().spans.is_empty() && traces.received().logs.is_empty());
}
