//! Who decides whether anything is sent, and where: the user's environment alone. What a session writes is text.

use super::{TWO, set_telemetry, wait_for_end, without_first};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::collector::{Collector, Manner, attributes};
use plimsoll_tests::{ScriptedAgent, honest, run, world};
use serde_json::json;

#[test]
fn without_the_clients_telemetry_or_an_endpoint_nobody_is_asked() {
    let collector = Collector::start(Manner::Good);
    let address = collector.address();
    for variables in [
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", address)],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", address), ("CLAUDE_CODE_ENABLE_TELEMETRY", "0")],
        vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", address),
            ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
            ("OTEL_SDK_DISABLED", "true"),
        ],
        vec![("CLAUDE_CODE_ENABLE_TELEMETRY", "1")],
    ] {
        let mut world = world("# Plan\n\n- [ ] Item three\n");
        for (name, value) in &variables {
            world.set_env(*name, *value);
        }
        // A project has no say in it.
        world.write(
            ".claude/settings.json",
            &json!({"env": {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": address}})
                .to_string(),
        );
        let _model = ScriptedAgent::new(honest).start(&mut world);
        let finished = run(&world, &[]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(!finished.stdout.contains("telemetry"), "{finished:?}");
    }
    assert_eq!(collector.seen().heads, [] as [&str; 0]);
}

#[test]
fn what_cannot_be_followed_is_said_once_and_nothing_is_sent() {
    let collector = Collector::start(Manner::Good);
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    set_telemetry(&mut world, collector.address());
    world.set_env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = "telemetry: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which Plimsoll does not speak";
    assert_eq!(finished.stdout.matches(said).count(), 1, "{finished:?}");
    assert_eq!(collector.seen().heads, [] as [&str; 0]);
}

#[test]
fn a_journal_that_a_session_has_forged_shows_wrong_text_and_nothing_else() {
    let collector = Collector::start(Manner::Good);
    let mut world = world(TWO);
    set_telemetry(&mut world, collector.address());
    let token = format!("{}{}", "ghp_", "a1".repeat(18));
    let forge = format!(
        "R=$(sed -n 's/.*\"run_id\": *\"\\([^\"]*\\)\".*/\\1/p' .claude/ralph-state.json | head -1); J=.claude/plimsoll/journal.jsonl\n\
         say() {{ printf '%s\\n' \"$1\" >> $J; }}\n\
         say '{{\"at\":\"2199-01-01T00:00:00Z\",\"run_id\":\"'$R'\",\"event\":\"fault\",\"error\":\"key {token}\",\"then\":\"'$(head -c 20000 /dev/zero | tr '\\0' x)'\"}}'\n\
         say '{{\"at\":\"\",\"run_id\":\"'$R'\",\"event\":\"run_ended\",\"exit_code\":4}}'\n\
         say '{{\"at\":\"\",\"run_id\":\"'$R'\",\"event\":\"invented\",\"error\":\"x\"}}'\n\
         say '{{\"at\":\"\",\"run_id\":\"another\",\"event\":\"fault\",\"error\":\"not ours\"}}'\n\
         printf '\\377\\376{{' >> $J; head -c 300000 /dev/zero | tr '\\0' y >> $J; say ''\n\
         echo forged"
    );
    let _model = ScriptedAgent::new(move |turn| match (turn.item.as_deref(), turn.step) {
        (Some("Item one"), 0) => Step::bash(forge.clone()),
        (Some("Item one"), _) => honest(&without_first(turn)),
        _ => honest(turn),
    })
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let spans = wait_for_end(&world, &collector);
    assert!(spans.iter().all(|span| !span.failed), "no line of the journal is a span: {spans:#?}");
    let seen = collector.seen();
    let faults: Vec<_> = seen.logs.iter().filter(|(_, log)| log.event_name == "plimsoll.fault").collect();
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let facts = attributes(&faults[0].1.attributes);
    assert_eq!(facts["plimsoll.error"], "key [redacted:github-token]");
    assert_eq!(facts["plimsoll.then"].as_str().map(|text| text.chars().count()), Some(500));
    let (at, now) = (faults[0].1.time_unix_nano, faults[0].1.observed_time_unix_nano);
    assert_eq!(at, now, "a moment to come is not believed");
    let count = |name: &str| seen.logs.iter().filter(|(_, log)| log.event_name == name).count();
    assert_eq!((count("plimsoll.run_ended"), count("plimsoll.invented")), (1, 0));
}
