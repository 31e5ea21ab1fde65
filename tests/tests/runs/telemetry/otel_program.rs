//! `plimsoll-otel` by itself: what it says of wrong words and of wrong files.

use super::{run_by, set_telemetry, without_exporter};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::collector::{Collector, Manner};
use plimsoll_tests::{ScriptedAgent, events, honest, journal, run, world};

#[test]
fn it_says_what_it_is_and_refuses_what_it_does_not_know() {
    let world = World::without_git();
    let ask = |words: &[&str], input: &str| {
        world.command(bin_dir().join("plimsoll-otel"), words).stdin(input).run()
    };
    let version = ask(&["--version"], "").expect_success().stdout;
    assert_eq!(version, format!("plimsoll-otel {}\n", env!("CARGO_PKG_VERSION")));
    let help = ask(&["--help"], "").expect_success().stdout;
    insta::assert_snapshot!(help, @"
    Sends the spans and the journal of Plimsoll's runs to an OpenTelemetry collector.

    Usage: plimsoll-otel --version         print the version; with --json also target and commit
           plimsoll-otel --help            print this

    `plimsoll run` starts it where CLAUDE_CODE_ENABLE_TELEMETRY=1 and OTEL_EXPORTER_OTLP_ENDPOINT are set.
    ");
    for words in [&["send"][..], &[], &["follow", "soon"]] {
        let finished = ask(words, "");
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        let expected = format!("plimsoll: plimsoll-otel does not know the arguments {words:?}\n\n{help}");
        assert_eq!(finished.stderr, expected);
    }
    // A run that is none: it ends at once, and nothing is written.
    for input in ["", "not an event\n", "{\"at\":\"\",\"event\":\"run_started\"}\n"] {
        ask(&["follow", "0"], input).expect_success();
    }
    assert!(!world.exists(".claude/plimsoll/journal.jsonl"));
}

#[test]
fn one_in_the_project_or_at_a_relative_entry_of_the_path_is_not_started_and_nothing_is_missed() {
    let collector = Collector::start(Manner::Good);
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    set_telemetry(&mut world, collector.address());
    let trap = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", world.home().join("started").display());
    for place in ["plimsoll-otel", "bin/plimsoll-otel", "relative/plimsoll-otel"] {
        world.write_program(place, &trap);
    }
    let apart = without_exporter(&world);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let client = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let own = world.path("bin").display().to_string();
    let tests = bin_dir().display().to_string();
    let usual = client.split(':').filter(|entry| *entry != tests).map(str::to_owned);
    let path: Vec<String> = [own, "relative".to_owned(), ".".to_owned(), apart.display().to_string()]
        .into_iter()
        .chain(usual)
        .collect();
    world.set_env("PATH", path.join(":"));
    let finished = run_by(&world, &apart);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("telemetry"), "it is optional: {finished:?}");
    assert!(!world.home().join("started").exists(), "{}", world.read(world.home().join("started")));
    assert_eq!(collector.seen().heads, [] as [&str; 0]);
}

#[test]
fn a_certificate_that_is_none_is_named_and_costs_the_run_nothing() {
    for (text, said) in [(None, "is not there"), (Some("no certificate"), "holds no certificate")] {
        let mut world = world("# Plan\n\n- [ ] Item three\n");
        set_telemetry(&mut world, "https://127.0.0.1:9");
        let path = world.home().join("ca.pem");
        if let Some(text) = text {
            world.write(&path, text);
        }
        world.set_env("OTEL_EXPORTER_OTLP_CERTIFICATE", path.display().to_string());
        let _model = ScriptedAgent::new(honest).start(&mut world);
        assert_eq!(run(&world, &[]).code, Some(0));
        let is_told = || !events(&journal(&world), "telemetry_lost").is_empty();
        world.wait_until(is_told, "what was lost");
        let journal = journal(&world);
        let trouble = events(&journal, "telemetry_lost")[0]["trouble"].as_str().expect("words");
        assert!(trouble.contains(said) && trouble.contains("ca.pem"), "{trouble}");
        let shown = world.plimsoll(&["log"]).run().expect_success().stdout;
        assert!(shown.contains("did not reach the collector"), "{shown}");
    }
}

#[test]
fn one_signal_alone_goes_where_it_is_sent() {
    let (traces, logs) = (Collector::start(Manner::Good), Collector::start(Manner::Good));
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    set_telemetry(&mut world, "http://127.0.0.1:9");
    world.set_env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/own/v1/traces", traces.address()));
    world.set_env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", format!("{}/v1/logs", logs.address()));
    let _model = ScriptedAgent::new(honest).start(&mut world);
    assert_eq!(run(&world, &[]).code, Some(0));
    let is_told = || logs.seen().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(is_told, "the last log");
    let is_told = || !super::named(&super::spans(&traces), "plimsoll run").is_empty();
    world.wait_until(is_told, "the span of the run");
    assert!(logs.seen().spans.is_empty() && traces.seen().logs.is_empty());
}
