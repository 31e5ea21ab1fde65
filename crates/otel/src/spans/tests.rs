use super::*;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use plimsoll_domain::journal::StreamEntry;

/// Builds the spans of a run from one event per line. The number is the event's time in seconds after 2026-01-07T10:00.
fn build_spans(traceparent: &str, lines: &[(u32, &str)]) -> Vec<Span> {
    let run_id = RunId::from("r1");
    let mut builder =
        SpanBuilder::new(&run_id, TraceContext::from_valid_traceparent_or_run_id(&run_id, Some(traceparent)));
    let mut ended_spans = Vec::new();
    for (second, facts) in lines {
        let line = format!(
            r#"{{"at":"2026-01-07T10:{:02}:{:02}Z","run_id":"r1",{facts}}}"#,
            second / 60,
            second % 60
        );
        let entry = StreamEntry::from_line_bytes(line.as_bytes()).expect("an entry");
        ended_spans.extend(builder.handle_entry_and_take_ended_spans(&entry));
    }
    ended_spans.extend(builder.end_all_and_mark_run_failed(u64::MAX));
    let mut ids: Vec<_> = ended_spans.iter().map(|span| span.span_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), ended_spans.len(), "each span has an id of its own");
    ended_spans
}

/// Renders each span as `name < parent, start-end` in seconds, in the order of their ends.
fn describe_spans(spans: &[Span]) -> Vec<String> {
    let start_of_run = unix_nanos(&Timestamp::from("2026-01-07T10:00:00Z"));
    let to_second = |nanos: u64| nanos.saturating_sub(start_of_run) / 1_000_000_000;
    let name_of = |id: &[u8]| spans.iter().find(|span| span.span_id == id).map_or("-", |span| &span.name);
    let describe_span = |span: &Span| {
        let failed_suffix = if span.status.is_some() { " failed" } else { "" };
        let (start_second, end_second) =
            (to_second(span.start_time_unix_nano), to_second(span.end_time_unix_nano));
        format!(
            "{} < {}, {start_second}-{end_second}{failed_suffix}",
            span.name,
            name_of(&span.parent_span_id)
        )
    };
    spans.iter().map(describe_span).collect()
}

fn attribute(span: &Span, key: &str) -> Option<Any> {
    span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value
}

const SESSION_ONE_FIELDS: &str = r#""iteration":1,"session_id":"s-1","#;

fn event_in_session_one(fields: &str) -> String {
    format!("{SESSION_ONE_FIELDS}{fields}")
}

#[test]
fn run_span_contains_iterations_with_checkpoints_gates_and_verify_spans() {
    let spans = build_spans(
        "",
        &[
            (0, r#""event":"run_started","task_name":"Dates","max_iterations":5"#),
            (2, r#""event":"verified","verify":[{"command":"a","passed":true,"seconds":1}]"#),
            (3, &event_in_session_one(r#""event":"planned","item":"Item one","open":2"#)),
            (4, &event_in_session_one(r#""event":"client","model":"opus","version":"2.1.329""#)),
            (5, &event_in_session_one(r#""event":"reading","percent":71"#)),
            (6, &event_in_session_one(r#""event":"checkpoint","level":"L2","percent":87,"handoff":"a.md""#)),
            (
                10,
                &event_in_session_one(
                    r#""event":"session_end","ending":{"ending":"completed"},"cost_usd":0.25"#,
                ),
            ),
            (
                14,
                &event_in_session_one(
                    r#""event":"verified","verify":[{"command":"a","passed":true,"seconds":1},{"command":"b","passed":false,"seconds":2}]"#,
                ),
            ),
            (
                15,
                &event_in_session_one(
                    r#""event":"iteration_closed","peak_percent":87,"tokens":9,"ticked":1"#,
                ),
            ),
            (16, &event_in_session_one(r#""event":"verdict","marker":"RALPH_CONTINUE|next|go on""#)),
            (
                17,
                &event_in_session_one(
                    r#""event":"pause","until":"2026-01-07T10:00:19Z","seconds":2,"reason":"a limit""#,
                ),
            ),
            (19, &event_in_session_one(r#""event":"pause_over""#)),
            (20, r#""iteration":2,"session_id":"s-2","event":"planned","item":"Item two""#),
            (
                30,
                r#""iteration":2,"session_id":"s-2","event":"session_end","ending":{"ending":"crashed","detail":"signal 9"}"#,
            ),
            (31, r#""iteration":2,"session_id":"s-2","event":"checkpoint","level":"L2","handoff":"b.md""#),
            (
                31,
                r#""iteration":2,"session_id":"s-2","event":"verdict","marker":"RALPH_STOP|circuit_breaker|stuck""#,
            ),
            (
                32,
                r#""event":"run_ended","status":"circuit_breaker","exit_code":4,"open":1,"done":1,"marker":"RALPH_STOP|circuit_breaker|stuck""#,
            ),
        ],
    );
    assert_eq!(
        describe_spans(&spans),
        [
            "verify < plimsoll run, 1-2",
            "checkpoint < iteration, 6-6",
            "verify < gate, 11-12",
            "verify < gate, 12-14 failed",
            "gate < iteration, 10-16",
            "iteration < plimsoll run, 3-16",
            "pause < plimsoll run, 17-19",
            "checkpoint < iteration, 31-31",
            "gate < iteration, 30-31",
            "iteration < plimsoll run, 20-31 failed",
            "plimsoll run < -, 0-32 failed",
        ]
    );
    let run_id = RunId::from("r1");
    let iteration = &spans[5];
    assert_eq!(iteration.span_id, crate::ids::decode_hex(&trace::session_span_id(&run_id, &"s-1".into())));
    assert_eq!(attribute(iteration, "plimsoll.item"), Some(Any::StringValue("Item one".to_owned())));
    assert_eq!(attribute(iteration, "plimsoll.tokens"), Some(Any::IntValue(9)));
    assert_eq!(attribute(iteration, "plimsoll.model"), Some(Any::StringValue("opus".to_owned())));
    let run = spans.last().unwrap();
    assert_eq!(run.status.as_ref().unwrap().message, "RALPH_STOP|circuit_breaker|stuck");
    assert!(spans.iter().all(|span| span.trace_id == run.trace_id && span.trace_id.len() == 16));
}

#[test]
fn parallel_run_has_spans_of_items_and_merges() {
    let spans = build_spans(
        "",
        &[
            (0, r#""event":"run_started""#),
            (1, r#""event":"worker_began","worker":1,"item":"A","number":1,"attempt":1"#),
            (2, r#""event":"worker_began","worker":2,"item":"B","number":2,"attempt":1"#),
            (5, r#""event":"worker_ended","worker":1,"item":"A","how":"done","cost_usd":1,"sessions":2"#),
            (6, r#""event":"worker_ended","worker":2,"item":"B","how":"done","cost_usd":1,"sessions":2"#),
            (8, r#""event":"landed","items":["A"],"commit":"abc""#),
            (9, r#""event":"sent_back","item":"B","reason":"a conflict""#),
            (10, r#""event":"worker_began","worker":1,"item":"B","number":2,"attempt":2"#),
            (11, r#""event":"sent_back","item":"C","reason":"never begun""#),
            (12, r#""event":"run_ended","exit_code":130"#),
        ],
    );
    assert_eq!(
        describe_spans(&spans),
        [
            "item < plimsoll run, 1-5",
            "item < plimsoll run, 2-6",
            "merge < plimsoll run, 5-8",
            "merge < plimsoll run, 6-9 failed",
            "item < plimsoll run, 10-12",
            "plimsoll run < -, 0-12",
        ]
    );
    assert_eq!(spans[4].span_id, crate::ids::decode_hex(&trace::item_span_id(&"r1".into(), 2, 2)));
}

#[test]
fn item_continued_after_a_pause_has_a_second_span_below_the_first() {
    let spans = build_spans(
        "",
        &[
            (0, r#""event":"run_started""#),
            (1, r#""event":"worker_began","worker":1,"item":"A","number":1,"attempt":1"#),
            (2, r#""event":"worker_ended","worker":1,"item":"A","how":"paused: a limit""#),
            (5, r#""event":"worker_began","worker":1,"item":"A","number":1,"attempt":1,"goes_on":true"#),
            (6, r#""event":"worker_ended","worker":1,"item":"A","how":"is done""#),
            (8, r#""event":"run_ended","exit_code":0"#),
        ],
    );
    assert_eq!(
        describe_spans(&spans),
        ["item < plimsoll run, 1-2", "item < item, 5-6", "plimsoll run < -, 0-8"]
    );
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "each id is one span's");
}

#[test]
fn resumed_run_and_adopted_session_are_below_their_first_spans() {
    let run_id = RunId::from("r1");
    let lines = [
        (0, r#""event":"resumed""#),
        (9, r#""iteration":3,"session_id":"s-3","event":"session_end","ending":{"ending":"completed"}"#),
        (10, r#""iteration":3,"session_id":"s-3","event":"verdict","marker":"RALPH_CONTINUE|next|x""#),
    ];
    let spans = build_spans("", &lines);
    assert_eq!(
        describe_spans(&spans)[..2],
        ["gate < iteration, 9-10".to_owned(), "iteration < -, 0-10".to_owned()]
    );
    assert_eq!(
        spans[1].parent_span_id,
        crate::ids::decode_hex(&trace::session_span_id(&run_id, &"s-3".into()))
    );
    // The process was killed: the run's span is marked as failed and still exported.
    assert_eq!(spans[2].parent_span_id, crate::ids::decode_hex(&trace::run_span_id(&run_id)));
    assert_eq!(spans[2].status.as_ref().unwrap().message, "the process of the run ended without a result");
    // With the user's traceparent, the run's span is below the parent that it names.
    let header = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
    let spans = build_spans(&header, &lines);
    assert_eq!(spans[2].parent_span_id, [0xcd; 8]);
    assert_eq!(spans[2].trace_id, [0xab; 16]);
}

#[test]
fn events_without_their_start_events_cause_no_error() {
    let lines = [
        (1, r#""event":"pause_over""#),
        (2, r#""event":"worker_ended","worker":7,"item":"A""#),
        (3, r#""event":"landed","items":[],"commit":"""#),
        (4, r#""event":"checkpoint","level":"L2","handoff":"""#),
        (5, r#""event":"verdict","marker":"RALPH_STOP|cancelled|x""#),
        (6, r#""event":"run_ended","exit_code":9"#),
    ];
    assert_eq!(
        describe_spans(&build_spans("", &lines)),
        ["merge < -, 3-3", "checkpoint < -, 4-4", "gate < -, 5-5"]
    );
    // If the clock was set back, the span has zero length, not a negative one.
    let lines_with_clock_set_back =
        [(9, r#""event":"run_started""#), (5, r#""event":"run_ended","exit_code":0"#)];
    assert_eq!(describe_spans(&build_spans("", &lines_with_clock_set_back)), ["plimsoll run < -, 9-9"]);
}

#[test]
fn iteration_span_is_failed_if_the_session_ended_abnormally() {
    for (ending, expected) in [
        (r#"{"ending":"completed"}"#, None),
        (r#"{"ending":"hook_stopped"}"#, None),
        (r#"{"ending":"limit","detail":"5 h"}"#, None),
        (r#"{"ending":"window_full","detail":"too long"}"#, Some("window_full: too long")),
        (r#"{"ending":"client_limit","detail":"--max-turns"}"#, Some("client_limit: --max-turns")),
        (r#"{"ending":"crashed","detail":"signal 9"}"#, Some("crashed: signal 9")),
    ] {
        let planned = event_in_session_one(r#""event":"planned","item":"Item one","open":2"#);
        let ended = event_in_session_one(&format!(r#""event":"session_end","ending":{ending}"#));
        let spans =
            build_spans("", &[(0, &planned), (1, &ended), (2, r#""event":"run_ended","exit_code":0"#)]);
        let iteration = spans.iter().find(|span| span.name == "iteration").expect("a session");
        let error_message = iteration.status.as_ref().map(|status| status.message.as_str());
        assert_eq!(error_message, expected, "{ending}");
    }
}
