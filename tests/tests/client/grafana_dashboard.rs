//! docs/telemetry/grafana.json: each metric, label and field that a query names exists in the client's series or in
//! Plimsoll's logs.

use plimsoll_domain::journal::{JournalEvent, StreamEntry, StreamEvent};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::workspace_root;
use plimsoll_tests::collector::{Collector, CollectorBehavior, attributes_to_json, to_hex};
use plimsoll_tests::{ScriptedAgent, honest_agent, run_with_objective, world_with_plan_and_dates};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Plays a run with the real client and exports all of its telemetry to one collector.
fn export_real_run() -> Collector {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n- [ ] Item three\n");
    for (name, value) in [
        ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
        ("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "1"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
        ("OTEL_LOGS_EXPORT_INTERVAL", "500"),
        ("OTEL_TRACES_EXPORT_INTERVAL", "500"),
    ] {
        world.set_env(name, value);
    }
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call("echo begun > work.txt").with_input_tokens(30_000),
        (1, 1) => Step::bash_call("echo going on >> work.txt").with_input_tokens(870_000),
        _ => honest_agent(turn),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let has_last_log =
        || collector.received().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(has_last_log, "the last log");
    let has_last_span = || collector.received().spans.iter().any(|(_, span)| span.name == "plimsoll run");
    world.wait_until(has_last_span, "the last span");
    collector
}

/// Converts a name to the form that Prometheus and Loki use.
fn sanitize_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn attribute_names(attributes: &Value) -> BTreeSet<String> {
    attributes.as_object().into_iter().flatten().map(|(name, _)| sanitize_name(name)).collect()
}

/// Returns the client's series with their labels, named as Prometheus does it: a unit and `_total` are appended to a counter.
fn client_series(collector: &Collector) -> BTreeMap<String, BTreeSet<String>> {
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (resource, metric) in &collector.received().metrics {
        let Some(Data::Sum(sum)) = &metric.data else { continue };
        let unit =
            if metric.unit.is_empty() { String::new() } else { format!("_{}", sanitize_name(&metric.unit)) };
        let total = if sum.is_monotonic { "_total" } else { "" };
        let labels = all.entry(format!("{}{unit}{total}", sanitize_name(&metric.name))).or_default();
        labels.extend(attribute_names(resource));
        labels.extend(
            sum.data_points.iter().flat_map(|point| attribute_names(&attributes_to_json(&point.attributes))),
        );
    }
    all
}

/// Returns the fields of one of Plimsoll's events: those of the run's log records, or else those of the event type.
fn event_fields(collector: &Collector, event: &str) -> BTreeSet<String> {
    let received = collector.received();
    let event_logs = received.logs.iter().filter(|(_, log)| log.event_name == event);
    let mut field_names: BTreeSet<String> = event_logs
        .flat_map(|(resource, log)| {
            [attribute_names(resource), attribute_names(&attributes_to_json(&log.attributes))]
        })
        .flatten()
        .collect();
    if field_names.is_empty() {
        let name = event.strip_prefix("plimsoll.").expect("our name");
        // Only fields that have no default need a value here.
        let line = format!(r#"{{"event":"{name}","cause":"no_progress"}}"#);
        let entry = StreamEntry::from_line_bytes(line.as_bytes()).expect("an entry");
        let is_unknown = matches!(entry.event, StreamEvent::Journal(JournalEvent::Unknown(_)));
        assert!(!is_unknown, "{event} is no event");
        field_names = entry
            .event
            .fields_without_name()
            .keys()
            .map(|name| sanitize_name(&format!("plimsoll.{name}")))
            .collect();
        let any_log = received
            .logs
            .iter()
            .find(|(about, _)| about["service.name"] == "plimsoll")
            .expect("a log of ours");
        field_names.extend(attribute_names(&any_log.0));
        field_names.insert("event_name".to_owned());
    }
    field_names
}

/// Returns the words of a query outside of its strings, and the strings.
fn split_query(query: &str) -> (Vec<String>, Vec<String>) {
    let (mut outside, mut strings) = (String::new(), Vec::new());
    for (place, part) in query.split('"').enumerate() {
        if place % 2 == 0 {
            outside += part
        } else {
            strings.push(part.to_owned())
        }
        outside.push(' ');
    }
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_$.".contains(letter);
    let words = outside.split(|letter| !is_word(letter)).filter(|word| !word.is_empty());
    (words.map(str::to_owned).collect(), strings)
}

/// Keywords and variables of the two query languages.
const QUERY_KEYWORDS: [&str; 14] = [
    "sum",
    "by",
    "increase",
    "sort_desc",
    "max",
    "avg",
    "count_over_time",
    "max_over_time",
    "avg_over_time",
    "unwrap",
    "line_format",
    "label_values",
    "$__range",
    "$__interval",
];

#[test]
fn every_name_in_the_dashboard_is_exported_by_claude_code_or_plimsoll() {
    let collector = export_real_run();
    let text =
        std::fs::read_to_string(workspace_root().join("docs/telemetry/grafana.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let series = client_series(&collector);
    let (mut metrics, mut logs) = (0, 0);
    let mut check_query = |query: &str, legend: &str| {
        let (words, strings) = split_query(query);
        let metric = words.iter().find(|word| word.starts_with("claude_code_"));
        let known_names: BTreeSet<String> = match metric {
            Some(metric) => {
                metrics += 1;
                let labels = series.get(metric).unwrap_or_else(|| panic!("{metric}: {:?}", series.keys()));
                labels.iter().cloned().chain([metric.clone()]).collect()
            }
            None => {
                logs += 1;
                let events: Vec<_> = strings.iter().filter(|text| text.starts_with("plimsoll.")).collect();
                // A query without an event may use the fields that all events have.
                let fields_of = |event: &String| event_fields(&collector, event);
                let fields = events
                    .first()
                    .map_or_else(|| event_fields(&collector, "plimsoll.verdict"), |event| fields_of(event));
                let built_in = ["service_name".to_owned(), "severity_text".to_owned()];
                fields.into_iter().chain(built_in).collect()
            }
        };
        let is_known = |word: &str| {
            known_names.contains(word)
                || QUERY_KEYWORDS.contains(&word)
                || word == "$__rate_interval"
                || word == "$run"
        };
        let unknown: Vec<_> = words.iter().filter(|word| !is_known(word)).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {query}; known: {known_names:?}");
        let legend = legend.to_owned();
        let displayed_fields = strings.iter().chain([&legend]).flat_map(|text| {
            let fields = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
            fields.map(|field| field.trim_start_matches('.').to_owned()).collect::<Vec<_>>()
        });
        let unknown: Vec<_> = displayed_fields.filter(|field| !known_names.contains(field)).collect();
        assert!(unknown.is_empty(), "{unknown:?} shown of {query}; known: {known_names:?}");
    };
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("queries") {
            let text = |name: &str| target[name].as_str().unwrap_or_default().to_owned();
            check_query(&text("expr"), &text("legendFormat"));
        }
    }
    for annotation in dashboard["annotations"]["list"].as_array().expect("annotations") {
        check_query(
            annotation["expr"].as_str().expect("a query"),
            annotation["textFormat"].as_str().unwrap_or_default(),
        );
    }
    check_query(dashboard["templating"]["list"][2]["query"].as_str().expect("a query"), "");
    assert!(metrics >= 6 && logs >= 8, "{metrics} {logs}");

    // The client's own spans are children of Plimsoll's, in one trace.
    let received = collector.received();
    let is_plimsoll = |about: &Value| about["service.name"] == "plimsoll";
    let (plimsoll_spans, client_spans): (Vec<_>, Vec<_>) =
        received.spans.iter().partition(|(about, _)| is_plimsoll(about));
    let iterations: BTreeSet<String> = plimsoll_spans
        .iter()
        .filter(|(_, span)| span.name == "iteration")
        .map(|(_, span)| to_hex(&span.span_id))
        .collect();
    assert_eq!(iterations.len(), 3, "one ends at its checkpoint");
    let client_parents: BTreeSet<String> =
        client_spans.iter().map(|(_, span)| to_hex(&span.parent_span_id)).collect();
    assert!(iterations.is_subset(&client_parents), "{iterations:?}, the client's: {client_spans:#?}");
    let trace = to_hex(&plimsoll_spans[0].1.trace_id);
    assert!(received.spans.iter().all(|(_, span)| to_hex(&span.trace_id) == trace));
}
