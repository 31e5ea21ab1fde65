//! docs/telemetry/grafana.json: each metric, label and field that a query names is one that the client's series or our logs have.

use plimsoll_domain::journal::{JournalEvent, StreamEntry, StreamEvent};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::workspace_root;
use plimsoll_tests::collector::{Collector, Manner, attributes, hex};
use plimsoll_tests::{ScriptedAgent, honest, run, world};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A run with the real client, everything of it exported to one collector.
fn recorded() -> Collector {
    let collector = Collector::start(Manner::Good);
    let mut world = world("# Plan\n\n- [ ] Item one\n- [ ] Item three\n");
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
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash("echo begun > work.txt").usage(30_000),
        (1, 1) => Step::bash("echo going on >> work.txt").usage(870_000),
        _ => honest(turn),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let is_over = || collector.seen().logs.iter().any(|(_, log)| log.event_name == "plimsoll.run_ended");
    world.wait_until(is_over, "the last log");
    let is_over = || collector.seen().spans.iter().any(|(_, span)| span.name == "plimsoll run");
    world.wait_until(is_over, "the last span");
    collector
}

/// A name as Prometheus and Loki have it.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn names(attributes: &Value) -> BTreeSet<String> {
    attributes.as_object().into_iter().flatten().map(|(name, _)| plain(name)).collect()
}

/// The client's series as Prometheus names them (a unit and `_total` behind a counter), with their labels.
fn series(collector: &Collector) -> BTreeMap<String, BTreeSet<String>> {
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (resource, metric) in &collector.seen().metrics {
        let Some(Data::Sum(sum)) = &metric.data else { continue };
        let unit = if metric.unit.is_empty() { String::new() } else { format!("_{}", plain(&metric.unit)) };
        let total = if sum.is_monotonic { "_total" } else { "" };
        let labels = all.entry(format!("{}{unit}{total}", plain(&metric.name))).or_default();
        labels.extend(names(resource));
        labels.extend(sum.data_points.iter().flat_map(|point| names(&attributes(&point.attributes))));
    }
    all
}

/// The fields of an event of ours: what the log records of the run have, else what the event is made of.
fn fields(collector: &Collector, event: &str) -> BTreeSet<String> {
    let seen = collector.seen();
    let of_event = seen.logs.iter().filter(|(_, log)| log.event_name == event);
    let mut found: BTreeSet<String> = of_event
        .flat_map(|(about, log)| [names(about), names(&attributes(&log.attributes))])
        .flatten()
        .collect();
    if found.is_empty() {
        let name = event.strip_prefix("plimsoll.").expect("our name");
        // What has no default beside it.
        let line = format!(r#"{{"event":"{name}","cause":"no_progress"}}"#);
        let entry = StreamEntry::from_line_bytes(line.as_bytes()).expect("an entry");
        let is_unknown = matches!(entry.event, StreamEvent::Journal(JournalEvent::Unknown(_)));
        assert!(!is_unknown, "{event} is no event");
        found = entry.event.facts().keys().map(|name| plain(&format!("plimsoll.{name}"))).collect();
        let any =
            seen.logs.iter().find(|(about, _)| about["service.name"] == "plimsoll").expect("a log of ours");
        found.extend(names(&any.0));
        found.insert("event_name".to_owned());
    }
    found
}

/// The words of a query outside of its strings, and the strings.
fn words(query: &str) -> (Vec<String>, Vec<String>) {
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

/// What the two languages are made of.
const LANGUAGE: [&str; 14] = [
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
fn each_name_in_the_dashboard_is_one_that_the_client_or_we_export() {
    let collector = recorded();
    let text =
        std::fs::read_to_string(workspace_root().join("docs/telemetry/grafana.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let series = series(&collector);
    let (mut metrics, mut logs) = (0, 0);
    let mut check = |query: &str, legend: &str| {
        let (words, strings) = words(query);
        let metric = words.iter().find(|word| word.starts_with("claude_code_"));
        let known: BTreeSet<String> = match metric {
            Some(metric) => {
                metrics += 1;
                let labels = series.get(metric).unwrap_or_else(|| panic!("{metric}: {:?}", series.keys()));
                labels.iter().cloned().chain([metric.clone()]).collect()
            }
            None => {
                logs += 1;
                let events: Vec<_> = strings.iter().filter(|text| text.starts_with("plimsoll.")).collect();
                // Without an event, what all have.
                let of = |event: &String| fields(&collector, event);
                let fields =
                    events.first().map_or_else(|| fields(&collector, "plimsoll.verdict"), |event| of(event));
                let shown = ["service_name".to_owned(), "severity_text".to_owned()];
                fields.into_iter().chain(shown).collect()
            }
        };
        let is_known = |word: &str| {
            known.contains(word) || LANGUAGE.contains(&word) || word == "$__rate_interval" || word == "$run"
        };
        let unknown: Vec<_> = words.iter().filter(|word| !is_known(word)).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {query}; known: {known:?}");
        let legend = legend.to_owned();
        let named = strings.iter().chain([&legend]).flat_map(|text| {
            let fields = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
            fields.map(|field| field.trim_start_matches('.').to_owned()).collect::<Vec<_>>()
        });
        let unknown: Vec<_> = named.filter(|field| !known.contains(field)).collect();
        assert!(unknown.is_empty(), "{unknown:?} shown of {query}; known: {known:?}");
    };
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("queries") {
            let text = |name: &str| target[name].as_str().unwrap_or_default().to_owned();
            check(&text("expr"), &text("legendFormat"));
        }
    }
    for note in dashboard["annotations"]["list"].as_array().expect("annotations") {
        check(note["expr"].as_str().expect("a query"), note["textFormat"].as_str().unwrap_or_default());
    }
    check(dashboard["templating"]["list"][2]["query"].as_str().expect("a query"), "");
    assert!(metrics >= 6 && logs >= 8, "{metrics} {logs}");

    // The client's own spans are below ours, in one trace.
    let seen = collector.seen();
    let is_ours = |about: &Value| about["service.name"] == "plimsoll";
    let (ours, clients): (Vec<_>, Vec<_>) = seen.spans.iter().partition(|(about, _)| is_ours(about));
    let iterations: BTreeSet<String> = ours
        .iter()
        .filter(|(_, span)| span.name == "iteration")
        .map(|(_, span)| hex(&span.span_id))
        .collect();
    assert_eq!(iterations.len(), 3, "one ends at its checkpoint");
    let below: BTreeSet<String> = clients.iter().map(|(_, span)| hex(&span.parent_span_id)).collect();
    assert!(iterations.is_subset(&below), "{iterations:?}, the client's: {clients:#?}");
    let trace = hex(&ours[0].1.trace_id);
    assert!(seen.spans.iter().all(|(_, span)| hex(&span.trace_id) == trace));
}
