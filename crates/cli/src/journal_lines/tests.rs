use super::*;
use chrono::Local;
use plimsoll_store::{Durability, clock, disk};
use serde_json::{Value, json};

fn journal_line(document: &Value) -> JournalLine {
    JournalLine::parse_line_and_appended_entry(document.to_string().as_bytes()).remove(0)
}

fn entry_json(event: &str, facts: &Value) -> Value {
    let mut document =
        json!({"at": "2026-01-06T21:04:11.000Z", "event": event, "run_id": "r1", "iteration": 5});
    document.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    document
}

fn describe(event: &str, facts: &Value) -> String {
    JournalDescriber::default()
        .describe_line(&journal_line(&entry_json(event, facts)))
        .map(|described| described.text)
        .unwrap_or_default()
}

fn rendered_page(lines: &[JournalLine]) -> Vec<String> {
    let (mut describer, mut page) = (JournalDescriber::default(), LogPage::new(false));
    lines
        .iter()
        .filter_map(|line| describer.describe_line(line))
        .flat_map(|described| page.render_line_with_heading_if_new_day(&described))
        .map(|line| line.to_text_with_ansi_colors())
        .collect()
}

#[test]
fn the_events_of_a_session_are_shown_in_order() {
    let line_at = |at: &str, event: &str, facts: Value| {
        let mut document = entry_json(event, &facts);
        document["at"] = at.into();
        journal_line(&document)
    };
    let lines = [
        line_at("2026-01-06T12:04:11.000Z", "planned", json!({"resuming": true})),
        line_at("2026-01-06T12:04:11.000Z", "spawned", json!({"pid": 7})),
        line_at("2026-01-06T12:04:12.000Z", "session_start", json!({"source": "startup"})),
        line_at(
            "2026-01-06T12:19:40.000Z",
            "checkpoint",
            json!({
                "cause": "level", "level": "L2", "percent": 87,
                "handoff": ".claude/handoffs/2026-01-07-2219.md", "item": "Parse dates"
            }),
        ),
        line_at("2026-01-06T12:20:00.000Z", "iteration_closed", json!({"peak_percent": 88, "notes": true})),
        line_at(
            "2026-01-08T12:20:01.000Z",
            "verdict",
            json!({
                "marker": "RALPH_CONTINUE|next|2 open items", "ending": {"ending": "completed"},
                "ticked": ["Parse dates"], "cost_usd": 0.4
            }),
        ),
    ];
    let local_time = |at: &str, form: &str| {
        clock::parse_rfc3339(at).unwrap().with_timezone(&Local).format(form).to_string()
    };
    let time = |at: &str| local_time(at, "%H:%M:%S");
    assert_eq!(
        rendered_page(&lines),
        [
            local_time("2026-01-06T12:04:12Z", "── %A, %-d %B %Y"),
            format!("{}   5  session began (it resumes from the checkpoint)", time("2026-01-06T12:04:12Z")),
            format!(
                "{}   5  checkpoint L2 at 87%: .claude/handoffs/2026-01-07-2219.md (item \"Parse dates\")",
                time("2026-01-06T12:19:40Z")
            ),
            format!("{}   5  session ended, peak 88%", time("2026-01-06T12:20:00Z")),
            local_time("2026-01-08T12:20:01Z", "── %A, %-d %B %Y"),
            format!(
                "{}   5  ticked \"Parse dates\"; continuing: 2 open items ($0.40 so far)",
                time("2026-01-08T12:20:01Z")
            ),
        ]
    );
}

#[test]
fn a_verdict_says_what_follows_and_why() {
    let until = clock::format_local_time_with_seconds(clock::parse_rfc3339("2026-01-07T05:00:02Z").unwrap());
    let verdict = |marker: &str| describe("verdict", &json!({ "marker": marker }));
    for (marker, expected) in [
        ("RALPH_STOP|completed|3 items", "run completed: 3 items".to_owned()),
        ("RALPH_STOP|cancelled|", "run canceled".to_owned()),
        ("RALPH_STOP|fatal_error|no key", "run failed: no key".to_owned()),
        ("RALPH_PAUSE|-|overloaded: 529", "paused: overloaded: 529".to_owned()),
        ("RALPH_CONTINUE|refused|1 item is open", "not done: 1 item is open".to_owned()),
        ("RALPH_CONTINUE|checkpoint|h.md", "continuing from h.md".to_owned()),
        ("NEW|x", "verdict marker=NEW|x".to_owned()),
        (
            "RALPH_PAUSE|2026-01-07T05:00:02Z|usage limit: soon",
            plimsoll_domain::text::to_safe_single_line(&format!("paused until {until}: usage limit: soon")),
        ),
    ] {
        assert_eq!(verdict(marker), expected);
    }
    let crashed = json!({
        "marker": "RALPH_STOP|max_iterations|9 iterations done",
        "ending": {"ending": "crashed", "detail": "was killed by signal 9"}, "no_change_count": 2
    });
    assert_eq!(
        describe("verdict", &crashed),
        "the session ended as crashed (was killed by signal 9); run out of sessions: 9 sessions done [2 sessions without progress]"
    );
}

#[test]
fn an_unknown_event_is_shown_with_all_its_facts() {
    assert_eq!(
        describe("night_shift", &json!({"lamp": "on", "bulbs": 3, "nested": {"a": [1]}})),
        "night_shift lamp=on bulbs=3 nested={\"a\":[1]}"
    );
}

#[test]
fn torn_and_foreign_lines_are_shown_without_control_characters() {
    let hostile = json!({"at": "yesterday", "event": "cl\u{7}ear\n", "x": "\u{1b}[2J\u{9b}1m"}).to_string();
    let texts: [&[u8]; 6] =
        [b"{\"at\":\"2026", b"hello \x1b[31m\xff", b"", b"[1]", b"{\"at\":5}", hostile.as_bytes()];
    let lines: Vec<JournalLine> =
        texts.into_iter().flat_map(JournalLine::parse_line_and_appended_entry).collect();
    let page = rendered_page(&lines);
    assert_eq!(page.len(), 5, "{page:?}");
    assert_eq!(page[0], "--:--:--   -  (a torn line) {\"at\":\"2026");
    assert!(page[1].starts_with("--:--:--   -  (not a line of ours) hello"), "{page:?}");
    assert!(page[4].contains(r"cl\u{7}ear x=\u{1b}[2J\u{9b}1m"), "{page:?}");
    assert!(!page.concat().chars().any(char::is_control), "{page:?}");
}

#[test]
fn the_first_lines_are_those_since_the_current_run_began() {
    let line_of_run = |run: Option<&str>, what: usize| {
        journal_line(&json!({"event": "state_mended", "what": what.to_string(), "run_id": run}))
    };
    let mut lines: Vec<JournalLine> = (0..60).map(|number| line_of_run(Some("r0"), number)).collect();
    lines.extend([line_of_run(Some("r1"), 60), line_of_run(None, 61), line_of_run(Some("r1"), 62)]);
    let shown_count = |run: Option<&str>, most: Option<usize>| {
        initial_lines(&mut JournalDescriber::default(), &lines, run.map(Into::into).as_ref(), most).len()
    };
    assert_eq!(shown_count(Some("r1"), None), 3);
    assert_eq!(shown_count(Some("r1"), Some(2)), 2);
    assert_eq!(shown_count(Some("r1"), Some(5)), 5, "a number means the journal's newest");
    assert_eq!(
        (shown_count(None, None), shown_count(Some("r2"), None)),
        (DEFAULT_LINE_COUNT, DEFAULT_LINE_COUNT)
    );
}

#[test]
fn a_session_without_a_run_is_named() {
    let other = json!({"event": "warning", "level": "L1", "percent": 72, "session_id": "12345678-90ab"});
    let described = JournalDescriber::default().describe_line(&journal_line(&other)).unwrap();
    assert_eq!(described.text, "warning L1 at 72% [session 12345678… of no run]");
    let end = json!({"event": "session_end", "reason": "clear", "peak_percent": 72, "session_id": "1"});
    let described = JournalDescriber::default().describe_line(&journal_line(&end)).unwrap();
    assert_eq!(described.text, "session ended, peak 72% (clear) [session 1 of no run]");
}

#[test]
fn a_replaced_or_truncated_journal_repeats_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let write_journal = |text: &str| disk::replace(&path, text.as_bytes(), Durability::Lazy).unwrap();
    let mut journal = JournalReader::new(path.clone());
    let mut new_lines = || {
        let lines = journal.read_new_complete_lines().unwrap();
        lines.iter().map(|line| format!("{line:?}").replace("Foreign", "")).collect::<Vec<_>>().concat()
    };
    assert_eq!(new_lines(), "", "not there yet");
    write_journal("one\ntwo");
    assert_eq!(new_lines(), "(\"one\")", "a line is read when it is whole");
    disk::append(&path, b"\ntwo\n").unwrap();
    assert_eq!(new_lines(), "(\"two\")(\"two\")");
    disk::remove_if_exists(&path).unwrap();
    assert_eq!(new_lines(), "");
    write_journal("three\n");
    assert_eq!(new_lines(), "(\"three\")", "taken away and begun anew");
    write_journal("one\ntwo\ntwo\nthree\nfour\n");
    assert_eq!(new_lines(), "(\"four\")", "mended");
    write_journal("one\n");
    assert_eq!(new_lines(), "", "cut short");
    write_journal("one\nfive\n");
    assert_eq!(new_lines(), "(\"five\")");
}

#[test]
fn an_entry_after_a_torn_one_is_not_lost() {
    let whole = entry_json("cancelled", &json!({})).to_string();
    let page = rendered_page(&JournalLine::parse_line_and_appended_entry(
        format!("{{\"at\":\"2026-01-06T21{whole}").as_bytes(),
    ));
    assert_eq!(page[0], "--:--:--   -  (a torn line) {\"at\":\"2026-01-06T21");
    assert!(page[2].ends_with("5  run canceled with `plimsoll stop`"), "{page:?}");
}

#[test]
fn only_verdicts_have_colors_and_only_if_colors_are_on() {
    let painted = |marker: &str| {
        let described = JournalDescriber::default()
            .describe_line(&journal_line(&entry_json("verdict", &json!({ "marker": marker }))))
            .unwrap();
        LogPage::new(true)
            .render_line_with_heading_if_new_day(&described)
            .pop()
            .unwrap()
            .to_text_with_ansi_colors()
    };
    assert!(painted("RALPH_STOP|completed|x").ends_with("\u{1b}[1;32mrun completed: x\u{1b}[0m"));
    assert!(painted("RALPH_STOP|blocked|x").contains("\u{1b}[1;31m"));
    assert!(painted("RALPH_CONTINUE|next|x").contains("\u{1b}[1mcontinuing"));
    let described = JournalDescriber::default()
        .describe_line(&journal_line(&entry_json("todo_mended", &json!({}))))
        .unwrap();
    assert!(
        !LogPage::new(true).render_line_with_heading_if_new_day(&described)[1]
            .to_text_with_ansi_colors()
            .contains('\u{1b}')
    );
}
