//! A run's own spans and logs: they arrive as one tree with the sessions', and whatever becomes of the collector, the run is the
//! same.

mod collector_faults;
mod consent;
mod otel_program;
mod workers;

use plimsoll_domain::{RunId, SessionId};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::collector::{Collector, Manner, attributes, hex, plain};
use plimsoll_tests::{ScriptedAgent, events, honest, journal, run, world};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TWO: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item three\n";

/// The user's environment with the client's telemetry on.
fn set_telemetry(world: &mut World, address: &str) {
    world.set_env("CLAUDE_CODE_ENABLE_TELEMETRY", "1");
    world.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
    world.set_env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
}

/// Our programs in a folder of their own, all but the exporter.
fn without_exporter(world: &World) -> PathBuf {
    let apart = world.home().join("apart");
    std::fs::create_dir_all(&apart).expect("a folder");
    for entry in std::fs::read_dir(bin_dir()).expect("our programs").flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("plimsoll") && !name.contains('.'));
        if is_ours && name != "plimsoll-otel" && entry.path().is_file() {
            let copy = apart.join(&name);
            if std::fs::hard_link(entry.path(), &copy).is_err() {
                std::fs::copy(entry.path(), &copy).expect("a copy");
            }
        }
    }
    apart
}

/// A run by the programs of another folder.
fn run_by(world: &World, programs: &Path) -> Finished {
    let words = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let all: Vec<&str> = words.into_iter().chain(client).collect();
    world.command(programs.join("plimsoll"), &all).run()
}

/// The same turn in a session whose first answer was something of its own.
fn without_first<'a>(turn: &Turn<'a>) -> Turn<'a> {
    Turn {
        request: turn.request,
        step: turn.step.saturating_sub(1),
        item: turn.item.clone(),
        iteration: turn.iteration,
        promise: turn.promise.clone(),
    }
}

/// A span as the tests look at it.
#[derive(Debug, Clone)]
struct Told {
    name: String,
    trace: String,
    id: String,
    parent: String,
    from: u64,
    to: u64,
    failed: bool,
    attributes: Value,
    resource: Value,
}

fn spans(collector: &Collector) -> Vec<Told> {
    let seen = collector.seen();
    let told = |(resource, span): &(Value, opentelemetry_proto::tonic::trace::v1::Span)| Told {
        name: span.name.clone(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        from: span.start_time_unix_nano,
        to: span.end_time_unix_nano,
        failed: span.status.as_ref().is_some_and(|status| status.code == 2),
        attributes: attributes(&span.attributes),
        resource: resource.clone(),
    };
    seen.spans.iter().map(told).collect()
}

fn named<'a>(spans: &'a [Told], name: &str) -> Vec<&'a Told> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Waits for the span of the run: it is sent last, after the run's end.
fn wait_for_end(world: &World, collector: &Collector) -> Vec<Told> {
    let arrived = || !named(&spans(collector), "plimsoll run").is_empty();
    world.wait_until(arrived, "the span of the run");
    // The logs have a way of their own.
    let is_told = || collector.seen().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(is_told, "the last log");
    spans(collector)
}

fn run_id(world: &World) -> RunId {
    RunId::from(world.json(".claude/ralph-state.json")["run_id"].as_str().expect("an id"))
}

#[test]
fn a_run_is_one_tree_of_spans_with_the_sessions_below_its_iterations() {
    let collector = Collector::start(Manner::Good);
    let mut world = world(TWO);
    set_telemetry(&mut world, collector.address());
    world.set_env("OTEL_RESOURCE_ATTRIBUTES", "team=night,service.namespace=x%2Cy");
    world.set_env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sesame%20open");
    let _model = ScriptedAgent::new(|turn| match turn.step {
        0 => {
            let parent = turn.item.clone().unwrap_or_default().replace(' ', "-");
            Step::bash(format!("echo \"$TRACEPARENT\" > '{parent}.txt'; echo noted"))
        }
        _ => honest(&without_first(turn)),
    })
    .start(&mut world);
    let finished = run(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let spans = wait_for_end(&world, &collector);
    let run_id = run_id(&world);
    let root = named(&spans, "plimsoll run")[0];
    assert_eq!((root.id.clone(), root.parent.as_str()), (trace::run_span_id(&run_id), ""));
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
    let iterations = named(&spans, "iteration");
    let items: Vec<_> = iterations.iter().map(|span| &span.attributes["plimsoll.item"]).collect();
    assert_eq!(items, ["Item one", "Item three"]);
    for (iteration, file) in iterations.iter().zip(["Item-one.txt", "Item-three.txt"]) {
        let session = SessionId::from(iteration.attributes["session.id"].as_str().expect("a session"));
        assert_eq!(
            (iteration.id.clone(), &iteration.parent),
            (trace::session_span_id(&run_id, &session), &root.id)
        );
        // What the client's own spans are below.
        assert_eq!(world.read(file).trim(), TraceContext::for_run(&run_id, None).traceparent(&iteration.id));
        let gate =
            spans.iter().find(|span| span.name == "gate" && span.parent == iteration.id).expect("a gate");
        let verify =
            spans.iter().find(|span| span.name == "verify" && span.parent == gate.id).expect("a check");
        assert_eq!(verify.attributes["plimsoll.passed"], true);
        for (inner, outer) in [(verify, gate), (gate, iteration), (*iteration, root)] {
            assert!(
                outer.from <= inner.from && inner.from <= inner.to && inner.to <= outer.to,
                "{inner:?} in {outer:?}"
            );
        }
    }
    assert!(
        spans.iter().all(|span| span.trace == TraceContext::for_run(&run_id, None).trace_id && !span.failed),
        "{spans:#?}"
    );
    let heads = collector.seen().heads.clone();
    assert!(heads.iter().all(|head| head.contains("x-key: sesame open\r\n")), "{heads:?}");
    let journal = world.read(".claude/plimsoll/journal.jsonl");
    assert!(!journal.contains("sesame") && !journal.contains("telemetry_lost"), "{journal}");
}

#[test]
fn the_journal_arrives_as_logs_once_and_in_the_runs_trace() {
    let collector = Collector::start(Manner::Good);
    let mut world = world(TWO);
    set_telemetry(&mut world, collector.address());
    // Long enough to be looked at: there is a reading.
    let _model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_millis(700))).start(&mut world);
    let finished = run(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    wait_for_end(&world, &collector);
    // The end of the run is read from the run's own output, and may arrive before the journal's last line.
    let journal = journal(&world);
    let verdicts = events(&journal, "verdict").len();
    let sent_verdicts =
        || collector.seen().logs.iter().filter(|(_, log)| log.event_name == "plimsoll.verdict").count();
    world.wait_until(|| sent_verdicts() >= verdicts, "the last verdict");
    let told: Vec<String> =
        collector.seen().logs.iter().map(|(_, log)| log.event_name.replace("plimsoll.", "")).collect();
    let count = |name: &str| told.iter().filter(|told| *told == name).count();
    for name in ["planned", "spawned", "session_start", "verdict"] {
        let expected = journal.iter().filter(|entry| entry["event"] == name).count();
        assert!(expected > 0 && count(name) == expected, "{name}: {told:?}");
    }
    for (name, expected) in [("run_started", 1), ("run_ended", 1), ("iteration_closed", 2), ("tool", 0)] {
        assert_eq!(count(name), expected, "{name}: {told:?}");
    }
    assert!(count("reading") > 0, "{told:?}");
    let trace = TraceContext::for_run(&run_id(&world), None).trace_id;
    for (resource, log) in &collector.seen().logs {
        assert_eq!((hex(&log.trace_id), &resource["plimsoll.run_name"]), (trace.clone(), &json!("Dates")));
        assert!(log.time_unix_nano > 0 && log.body.as_ref().is_some_and(|body| plain(body) != ""), "{log:?}");
    }
}

#[test]
fn spans_hang_below_the_users_own_and_are_not_made_where_theirs_is_not_recorded() {
    let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    for (flags, is_recorded) in [("01", true), ("00", false)] {
        let collector = Collector::start(Manner::Good);
        let mut world = world("# Plan\n\n- [ ] Item three\n");
        set_telemetry(&mut world, collector.address());
        world.set_env("TRACEPARENT", format!("00-{id}-{parent}-{flags}"));
        let _model = ScriptedAgent::new(honest).start(&mut world);
        assert_eq!(run(&world, &[]).code, Some(0));
        let is_told = || collector.seen().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
        world.wait_until(is_told, "the last log");
        let spans = if is_recorded { wait_for_end(&world, &collector) } else { spans(&collector) };
        assert_eq!(spans.is_empty(), !is_recorded);
        assert!(spans.iter().all(|span| span.trace == id), "{spans:#?}");
        let roots: Vec<_> = named(&spans, "plimsoll run").iter().map(|span| span.parent.clone()).collect();
        assert!(roots.iter().all(|root| root == parent), "{roots:?}");
    }
}
