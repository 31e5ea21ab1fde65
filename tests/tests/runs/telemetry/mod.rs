//! A run's own spans and logs: they form one tree with the sessions' spans, and no fault of the collector changes the
//! run.

mod collector_faults;
mod consent;
mod otel_program;
mod workers;

use plimsoll_domain::{RunId, SessionId};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::collector::{Collector, CollectorBehavior, attributes_to_json, to_hex, value_to_json};
use plimsoll_tests::{
    ScriptedAgent, events_named, honest_agent, read_journal, run_with_objective, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TWO_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item three\n";

/// Sets the environment of a user who has the client's telemetry on.
fn enable_telemetry(world: &mut World, address: &str) {
    world.set_env("CLAUDE_CODE_ENABLE_TELEMETRY", "1");
    world.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
    world.set_env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
}

/// Copies our programs except the exporter into a new folder, and returns it.
fn copy_programs_without_exporter(world: &World) -> PathBuf {
    let folder = world.home().join("apart");
    std::fs::create_dir_all(&folder).expect("a folder");
    for entry in std::fs::read_dir(find_or_build_bin_dir()).expect("our programs").flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("plimsoll") && !name.contains('.'));
        if is_ours && name != "plimsoll-otel" && entry.path().is_file() {
            let copy = folder.join(&name);
            if std::fs::hard_link(entry.path(), &copy).is_err() {
                std::fs::copy(entry.path(), &copy).expect("a copy");
            }
        }
    }
    folder
}

/// Runs the plan with the programs of another folder.
fn run_with_programs(world: &World, program_folder: &Path) -> FinishedProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let arguments: Vec<&str> = run_arguments.into_iter().chain(client_arguments).collect();
    world.command(program_folder.join("plimsoll"), &arguments).run()
}

/// Returns the turn as it would be without the session's first response.
fn without_first_step<'a>(turn: &AgentTurn<'a>) -> AgentTurn<'a> {
    AgentTurn {
        request: turn.request,
        assistant_message_count: turn.assistant_message_count.saturating_sub(1),
        item_text: turn.item_text.clone(),
        iteration: turn.iteration,
        promise_line: turn.promise_line.clone(),
    }
}

/// A span as the collector received it.
#[derive(Debug, Clone)]
struct ReceivedSpan {
    name: String,
    trace_id: String,
    id: String,
    parent_id: String,
    started_at_nanos: u64,
    ended_at_nanos: u64,
    is_failed: bool,
    attributes: Value,
    resource: Value,
}

fn received_spans(collector: &Collector) -> Vec<ReceivedSpan> {
    let received = collector.received();
    let to_received_span =
        |(resource, span): &(Value, opentelemetry_proto::tonic::trace::v1::Span)| ReceivedSpan {
            name: span.name.clone(),
            trace_id: to_hex(&span.trace_id),
            id: to_hex(&span.span_id),
            parent_id: to_hex(&span.parent_span_id),
            started_at_nanos: span.start_time_unix_nano,
            ended_at_nanos: span.end_time_unix_nano,
            is_failed: span.status.as_ref().is_some_and(|status| status.code == 2),
            attributes: attributes_to_json(&span.attributes),
            resource: resource.clone(),
        };
    received.spans.iter().map(to_received_span).collect()
}

fn spans_named<'a>(spans: &'a [ReceivedSpan], name: &str) -> Vec<&'a ReceivedSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Waits for the span of the run, which is sent last, after the run's end. Returns all spans.
fn wait_for_run_span(world: &World, collector: &Collector) -> Vec<ReceivedSpan> {
    let has_run_span = || !spans_named(&received_spans(collector), "plimsoll run").is_empty();
    world.wait_until(has_run_span, "the span of the run");
    // Logs are sent separately from spans.
    let has_last_log =
        || collector.received().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(has_last_log, "the last log");
    received_spans(collector)
}

fn run_id(world: &World) -> RunId {
    RunId::from(world.read_json(".claude/ralph-state.json")["run_id"].as_str().expect("an id"))
}

#[test]
fn a_run_is_one_span_tree_with_the_sessions_below_its_iterations() {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    enable_telemetry(&mut world, collector.address());
    world.set_env("OTEL_RESOURCE_ATTRIBUTES", "team=night,service.namespace=x%2Cy");
    world.set_env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sesame%20open");
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => {
            let file_name = turn.item_text.clone().unwrap_or_default().replace(' ', "-");
            Step::bash_call(format!("echo \"$TRACEPARENT\" > '{file_name}.txt'; echo noted"))
        }
        _ => honest_agent(&without_first_step(turn)),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let spans = wait_for_run_span(&world, &collector);
    let run_id = run_id(&world);
    let root = spans_named(&spans, "plimsoll run")[0];
    assert_eq!((root.id.clone(), root.parent_id.as_str()), (trace::run_span_id(&run_id), ""));
    assert_eq!(root.attributes["plimsoll.exit_code"], 0);
    assert_eq!(root.attributes["plimsoll.items_done"], 2);
    for (key, value) in [
        ("service.name", "plimsoll"),
        ("service.namespace", "x,y"),
        ("team", "night"),
        ("plimsoll.run_id", run_id.as_str()),
        ("plimsoll.run_name", "Dates"),
    ] {
        assert_eq!(root.resource[key], value, "{key}");
    }
    let iterations = spans_named(&spans, "iteration");
    let items: Vec<_> = iterations.iter().map(|span| &span.attributes["plimsoll.item"]).collect();
    assert_eq!(items, ["Item one", "Item three"]);
    for (iteration, file) in iterations.iter().zip(["Item-one.txt", "Item-three.txt"]) {
        let session = SessionId::from(iteration.attributes["session.id"].as_str().expect("a session"));
        assert_eq!(
            (iteration.id.clone(), &iteration.parent_id),
            (trace::session_span_id(&run_id, &session), &root.id)
        );
        // The parent of the client's own spans.
        assert_eq!(
            world.read(file).trim(),
            TraceContext::from_valid_traceparent_or_run_id(&run_id, None).traceparent(&iteration.id)
        );
        let gate =
            spans.iter().find(|span| span.name == "gate" && span.parent_id == iteration.id).expect("a gate");
        let verify =
            spans.iter().find(|span| span.name == "verify" && span.parent_id == gate.id).expect("a check");
        assert_eq!(verify.attributes["plimsoll.passed"], true);
        for (inner, outer) in [(verify, gate), (gate, iteration), (*iteration, root)] {
            assert!(
                outer.started_at_nanos <= inner.started_at_nanos
                    && inner.started_at_nanos <= inner.ended_at_nanos
                    && inner.ended_at_nanos <= outer.ended_at_nanos,
                "{inner:?} in {outer:?}"
            );
        }
    }
    assert!(
        spans.iter().all(|span| span.trace_id
            == TraceContext::from_valid_traceparent_or_run_id(&run_id, None).trace_id
            && !span.is_failed),
        "{spans:#?}"
    );
    let heads = collector.received().request_heads.clone();
    assert!(heads.iter().all(|head| head.contains("x-key: sesame open\r\n")), "{heads:?}");
    let journal = world.read(".claude/plimsoll/journal.jsonl");
    assert!(!journal.contains("sesame") && !journal.contains("telemetry_lost"), "{journal}");
}

#[test]
fn journal_entries_arrive_once_as_logs_of_the_runs_trace() {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    enable_telemetry(&mut world, collector.address());
    // Slow enough for the monitor to take a reading.
    let _model = ScriptedAgent::new(|turn| honest_agent(turn).with_delay(Duration::from_millis(700)))
        .start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    wait_for_run_span(&world, &collector);
    // The end of the run is read from its own output, and may arrive before the journal's last line.
    let journal = read_journal(&world);
    let verdicts = events_named(&journal, "verdict").len();
    let sent_verdicts =
        || collector.received().logs.iter().filter(|(_, log)| log.event_name == "plimsoll.verdict").count();
    world.wait_until(|| sent_verdicts() >= verdicts, "the last verdict");
    let event_names: Vec<String> =
        collector.received().logs.iter().map(|(_, log)| log.event_name.replace("plimsoll.", "")).collect();
    let count = |name: &str| event_names.iter().filter(|told| *told == name).count();
    for name in ["planned", "spawned", "session_start", "verdict"] {
        let expected = journal.iter().filter(|entry| entry["event"] == name).count();
        assert!(expected > 0 && count(name) == expected, "{name}: {event_names:?}");
    }
    for (name, expected) in [("run_started", 1), ("run_ended", 1), ("iteration_closed", 2), ("tool", 0)] {
        assert_eq!(count(name), expected, "{name}: {event_names:?}");
    }
    assert!(count("reading") > 0, "{event_names:?}");
    let trace = TraceContext::from_valid_traceparent_or_run_id(&run_id(&world), None).trace_id;
    for (resource, log) in &collector.received().logs {
        assert_eq!((to_hex(&log.trace_id), &resource["plimsoll.run_name"]), (trace.clone(), &json!("Dates")));
        assert!(
            log.time_unix_nano > 0 && log.body.as_ref().is_some_and(|body| value_to_json(body) != ""),
            "{log:?}"
        );
    }
}

#[test]
fn spans_are_below_the_users_span_and_follow_its_sampling_flag() {
    let (trace_id, parent_id) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    for (flags, is_recorded) in [("01", true), ("00", false)] {
        let collector = Collector::start(CollectorBehavior::Accepting);
        let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
        enable_telemetry(&mut world, collector.address());
        world.set_env("TRACEPARENT", format!("00-{trace_id}-{parent_id}-{flags}"));
        let _model = ScriptedAgent::new(honest_agent).start(&mut world);
        assert_eq!(run_with_objective(&world, &[]).code, Some(0));
        let has_last_log =
            || collector.received().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
        world.wait_until(has_last_log, "the last log");
        let spans =
            if is_recorded { wait_for_run_span(&world, &collector) } else { received_spans(&collector) };
        assert_eq!(spans.is_empty(), !is_recorded);
        assert!(spans.iter().all(|span| span.trace_id == trace_id), "{spans:#?}");
        let roots: Vec<_> =
            spans_named(&spans, "plimsoll run").iter().map(|span| span.parent_id.clone()).collect();
        assert!(roots.iter().all(|root| root == parent_id), "{roots:?}");
    }
}
