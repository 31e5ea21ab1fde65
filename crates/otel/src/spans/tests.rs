use super::*;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use plimsoll_domain::journal::StreamEntry;

/// What a run tells, a line an event; the second of 2026-01-07T10:00 stands before it.
fn played(trace: &str, lines: &[(u32, &str)]) -> Vec<Span> {
    let run_id = RunId::from("r1");
    let mut spans = Spans::of(&run_id, TraceContext::for_run(&run_id, Some(trace)));
    let mut all = Vec::new();
    for (second, facts) in lines {
        let line = format!(
            r#"{{"at":"2026-01-07T10:{:02}:{:02}Z","run_id":"r1",{facts}}}"#,
            second / 60,
            second % 60
        );
        let entry = StreamEntry::from_line_bytes(line.as_bytes()).expect("an entry");
        all.extend(spans.take(&entry));
    }
    all.extend(spans.cut_off(u64::MAX));
    let mut ids: Vec<_> = all.iter().map(|span| span.span_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "each span has an id of its own");
    all
}

/// `name below parent, from second to second`, in the order of their ends.
fn told(spans: &[Span]) -> Vec<String> {
    let beginning = nanos(&Timestamp::from("2026-01-07T10:00:00Z"));
    let second = |at: u64| at.saturating_sub(beginning) / 1_000_000_000;
    let name_of = |id: &[u8]| spans.iter().find(|span| span.span_id == id).map_or("-", |span| &span.name);
    let one = |span: &Span| {
        let failed = if span.status.is_some() { " failed" } else { "" };
        let (from, to) = (second(span.start_time_unix_nano), second(span.end_time_unix_nano));
        format!("{} < {}, {from}-{to}{failed}", span.name, name_of(&span.parent_span_id))
    };
    spans.iter().map(one).collect()
}

fn attribute(span: &Span, key: &str) -> Option<Any> {
    span.attributes.iter().find(|one| one.key == key)?.value.clone()?.value
}

const ONE: &str = r#""iteration":1,"session_id":"s-1","#;

fn one(rest: &str) -> String {
    format!("{ONE}{rest}")
}

#[test]
fn a_run_is_a_tree_of_iterations_with_their_checkpoints_gates_and_verify_commands() {
    let spans = played(
        "",
        &[
            (0, r#""event":"run_started","task_name":"Dates","max_iterations":5"#),
            (2, r#""event":"verified","verify":[{"command":"a","passed":true,"seconds":1}]"#),
            (3, &one(r#""event":"planned","item":"Item one","open":2"#)),
            (4, &one(r#""event":"client","model":"opus","version":"2.1.329""#)),
            (5, &one(r#""event":"reading","percent":71"#)),
            (6, &one(r#""event":"checkpoint","level":"L2","percent":87,"handoff":"a.md""#)),
            (10, &one(r#""event":"session_end","ending":{"ending":"completed"},"cost_usd":0.25"#)),
            (
                14,
                &one(
                    r#""event":"verified","verify":[{"command":"a","passed":true,"seconds":1},{"command":"b","passed":false,"seconds":2}]"#,
                ),
            ),
            (15, &one(r#""event":"iteration_closed","peak_percent":87,"tokens":9,"ticked":1"#)),
            (16, &one(r#""event":"verdict","marker":"RALPH_CONTINUE|next|go on""#)),
            (17, &one(r#""event":"pause","until":"2026-01-07T10:00:19Z","seconds":2,"reason":"a limit""#)),
            (19, &one(r#""event":"pause_over""#)),
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
        told(&spans),
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
    assert_eq!(iteration.span_id, crate::ids::bytes_of(&trace::session_span_id(&run_id, &"s-1".into())));
    assert_eq!(attribute(iteration, "plimsoll.item"), Some(Any::StringValue("Item one".to_owned())));
    assert_eq!(attribute(iteration, "plimsoll.tokens"), Some(Any::IntValue(9)));
    assert_eq!(attribute(iteration, "plimsoll.model"), Some(Any::StringValue("opus".to_owned())));
    let run = spans.last().unwrap();
    assert_eq!(run.status.as_ref().unwrap().message, "RALPH_STOP|circuit_breaker|stuck");
    assert!(spans.iter().all(|span| span.trace_id == run.trace_id && span.trace_id.len() == 16));
}

#[test]
fn a_run_of_several_workers_has_its_items_and_merges() {
    let spans = played(
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
        told(&spans),
        [
            "item < plimsoll run, 1-5",
            "item < plimsoll run, 2-6",
            "merge < plimsoll run, 5-8",
            "merge < plimsoll run, 6-9 failed",
            "item < plimsoll run, 10-12",
            "plimsoll run < -, 0-12",
        ]
    );
    assert_eq!(spans[4].span_id, crate::ids::bytes_of(&trace::item_span_id(&"r1".into(), 2, 2)));
}

#[test]
fn an_item_that_goes_on_after_a_pause_has_a_span_of_its_own_below_the_first() {
    let spans = played(
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
    assert_eq!(told(&spans), ["item < plimsoll run, 1-2", "item < item, 5-6", "plimsoll run < -, 0-8"]);
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "each id is one span's");
}

#[test]
fn a_run_that_goes_on_is_below_its_first_process_and_what_that_began_below_the_session() {
    let run_id = RunId::from("r1");
    let lines = [
        (0, r#""event":"resumed""#),
        (9, r#""iteration":3,"session_id":"s-3","event":"session_end","ending":{"ending":"completed"}"#),
        (10, r#""iteration":3,"session_id":"s-3","event":"verdict","marker":"RALPH_CONTINUE|next|x""#),
    ];
    let spans = played("", &lines);
    assert_eq!(told(&spans)[..2], ["gate < iteration, 9-10".to_owned(), "iteration < -, 0-10".to_owned()]);
    assert_eq!(
        spans[1].parent_span_id,
        crate::ids::bytes_of(&trace::session_span_id(&run_id, &"s-3".into()))
    );
    // Its process was killed: that is said, and all of it is there.
    assert_eq!(spans[2].parent_span_id, crate::ids::bytes_of(&trace::run_span_id(&run_id)));
    assert_eq!(spans[2].status.as_ref().unwrap().message, "the process of the run ended without a word");
    // In a trace of the user's it is below what they have named.
    let header = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
    let spans = played(&header, &lines);
    assert_eq!(spans[2].parent_span_id, [0xcd; 8]);
    assert_eq!(spans[2].trace_id, [0xab; 16]);
}

#[test]
fn events_without_their_beginnings_make_no_trouble() {
    let lines = [
        (1, r#""event":"pause_over""#),
        (2, r#""event":"worker_ended","worker":7,"item":"A""#),
        (3, r#""event":"landed","items":[],"commit":"""#),
        (4, r#""event":"checkpoint","level":"L2","handoff":"""#),
        (5, r#""event":"verdict","marker":"RALPH_STOP|cancelled|x""#),
        (6, r#""event":"run_ended","exit_code":9"#),
    ];
    assert_eq!(told(&played("", &lines)), ["merge < -, 3-3", "checkpoint < -, 4-4", "gate < -, 5-5"]);
    // A clock that was set back makes no span of less than nothing.
    let back = [(9, r#""event":"run_started""#), (5, r#""event":"run_ended","exit_code":0"#)];
    assert_eq!(told(&played("", &back)), ["plimsoll run < -, 9-9"]);
}

#[test]
fn the_span_of_a_session_is_an_error_if_the_session_broke_off() {
    for (ending, expected) in [
        (r#"{"ending":"completed"}"#, None),
        (r#"{"ending":"hook_stopped"}"#, None),
        (r#"{"ending":"limit","detail":"5 h"}"#, None),
        (r#"{"ending":"window_full","detail":"too long"}"#, Some("window_full: too long")),
        (r#"{"ending":"client_limit","detail":"--max-turns"}"#, Some("client_limit: --max-turns")),
        (r#"{"ending":"crashed","detail":"signal 9"}"#, Some("crashed: signal 9")),
    ] {
        let planned = one(r#""event":"planned","item":"Item one","open":2"#);
        let ended = one(&format!(r#""event":"session_end","ending":{ending}"#));
        let spans = played("", &[(0, &planned), (1, &ended), (2, r#""event":"run_ended","exit_code":0"#)]);
        let iteration = spans.iter().find(|span| span.name == "iteration").expect("a session");
        let failed = iteration.status.as_ref().map(|status| status.message.as_str());
        assert_eq!(failed, expected, "{ending}");
    }
}
