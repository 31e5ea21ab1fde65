use super::*;
use chrono::Local;
use plimsoll_store::{Durability, clock, disk};
use serde_json::{Value, json};

fn line(document: &Value) -> Line {
    Line::read(document.to_string().as_bytes()).remove(0)
}

fn entry(event: &str, facts: &Value) -> Value {
    let mut document =
        json!({"at": "2026-01-06T21:04:11.000Z", "event": event, "run_id": "r1", "iteration": 5});
    document.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    document
}

fn words(event: &str, facts: &Value) -> String {
    EventPrinter::default().tell(&line(&entry(event, facts))).map(|told| told.words).unwrap_or_default()
}

fn page(lines: &[Line]) -> Vec<String> {
    let (mut teller, mut page) = (EventPrinter::default(), LogPage::new(false));
    lines
        .iter()
        .filter_map(|line| teller.tell(line))
        .flat_map(|told| page.lines(&told))
        .map(|line| line.to_terminal())
        .collect()
}

#[test]
fn a_session_is_told_in_the_order_of_its_life() {
    let at = |at: &str, event: &str, facts: Value| {
        let mut document = entry(event, &facts);
        document["at"] = at.into();
        line(&document)
    };
    let lines = [
        at("2026-01-06T12:04:11.000Z", "planned", json!({"resuming": true})),
        at("2026-01-06T12:04:11.000Z", "spawned", json!({"pid": 7})),
        at("2026-01-06T12:04:12.000Z", "session_start", json!({"source": "startup"})),
        at(
            "2026-01-06T12:19:40.000Z",
            "checkpoint",
            json!({
                "cause": "level", "level": "L2", "percent": 87,
                "handoff": ".claude/handoffs/2026-01-07-2219.md", "item": "Parse dates"
            }),
        ),
        at("2026-01-06T12:20:00.000Z", "iteration_closed", json!({"peak_percent": 88, "notes": true})),
        at(
            "2026-01-08T12:20:01.000Z",
            "verdict",
            json!({
                "marker": "RALPH_CONTINUE|next|2 open items", "ending": {"ending": "completed"},
                "ticked": ["Parse dates"], "cost_usd": 0.4
            }),
        ),
    ];
    let local =
        |at: &str, form: &str| clock::parse(at).unwrap().with_timezone(&Local).format(form).to_string();
    let time = |at: &str| local(at, "%H:%M:%S");
    assert_eq!(
        page(&lines),
        [
            local("2026-01-06T12:04:12Z", "── %A, %-d %B %Y"),
            format!("{}   5  session began (it resumes from the checkpoint)", time("2026-01-06T12:04:12Z")),
            format!(
                "{}   5  checkpoint L2 at 87%: .claude/handoffs/2026-01-07-2219.md (item \"Parse dates\")",
                time("2026-01-06T12:19:40Z")
            ),
            format!("{}   5  session ended, peak 88%", time("2026-01-06T12:20:00Z")),
            local("2026-01-08T12:20:01Z", "── %A, %-d %B %Y"),
            format!(
                "{}   5  ticked \"Parse dates\"; continues: 2 open items ($0.40 so far)",
                time("2026-01-08T12:20:01Z")
            ),
        ]
    );
}

#[test]
fn a_verdict_says_what_follows_and_why() {
    let until = clock::for_people(clock::parse("2026-01-07T05:00:02Z").unwrap());
    let verdict = |marker: &str| words("verdict", &json!({ "marker": marker }));
    for (marker, expected) in [
        ("RALPH_STOP|completed|3 items", "run completed: 3 items".to_owned()),
        ("RALPH_STOP|cancelled|", "run over (cancelled)".to_owned()),
        ("RALPH_STOP|fatal_error|no key", "run over (fatal_error): no key".to_owned()),
        ("RALPH_PAUSE|-|overloaded: 529", "paused: overloaded: 529".to_owned()),
        ("RALPH_CONTINUE|refused|1 item is open", "promise refused: 1 item is open".to_owned()),
        ("RALPH_CONTINUE|checkpoint|h.md", "continues from h.md".to_owned()),
        ("NEW|x", "verdict marker=NEW|x".to_owned()),
        (
            "RALPH_PAUSE|2026-01-07T05:00:02Z|usage limit: soon",
            plimsoll_domain::text::one_line(&format!("paused until {until}: usage limit: soon")),
        ),
    ] {
        assert_eq!(verdict(marker), expected);
    }
    let crashed = json!({
        "marker": "RALPH_STOP|max_iterations|9 iterations done",
        "ending": {"ending": "crashed", "detail": "was killed by signal 9"}, "no_change_count": 2
    });
    assert_eq!(
        words("verdict", &crashed),
        "the session ended as crashed (was killed by signal 9); run over (max_iterations): 9 iterations done [2 sessions without progress]"
    );
}

#[test]
fn an_event_of_a_newer_plimsoll_is_shown_with_all_it_says() {
    assert_eq!(
        words("night_shift", &json!({"lamp": "on", "bulbs": 3, "nested": {"a": [1]}})),
        "night_shift lamp=on bulbs=3 nested={\"a\":[1]}"
    );
}

#[test]
fn torn_and_foreign_lines_are_shown_as_such_and_nothing_of_them_moves_the_cursor() {
    let hostile = json!({"at": "yesterday", "event": "cl\u{7}ear\n", "x": "\u{1b}[2J\u{9b}1m"}).to_string();
    let texts: [&[u8]; 6] =
        [b"{\"at\":\"2026", b"hello \x1b[31m\xff", b"", b"[1]", b"{\"at\":5}", hostile.as_bytes()];
    let lines: Vec<Line> = texts.into_iter().flat_map(Line::read).collect();
    let page = page(&lines);
    assert_eq!(page.len(), 5, "{page:?}");
    assert_eq!(page[0], "--:--:--   -  (a torn line) {\"at\":\"2026");
    assert!(page[1].starts_with("--:--:--   -  (not a line of ours) hello"), "{page:?}");
    assert!(page[4].contains(r"cl\u{7}ear x=\u{1b}[2J\u{9b}1m"), "{page:?}");
    assert!(!page.concat().chars().any(char::is_control), "{page:?}");
}

#[test]
fn at_first_everything_is_shown_since_the_present_run_began() {
    let of = |run: Option<&str>, what: usize| {
        line(&json!({"event": "state_mended", "what": what.to_string(), "run_id": run}))
    };
    let mut lines: Vec<Line> = (0..60).map(|number| of(Some("r0"), number)).collect();
    lines.extend([of(Some("r1"), 60), of(None, 61), of(Some("r1"), 62)]);
    let shown = |run: Option<&str>, most: Option<usize>| {
        chosen(&mut EventPrinter::default(), &lines, run.map(Into::into).as_ref(), most).len()
    };
    assert_eq!(shown(Some("r1"), None), 3);
    assert_eq!(shown(Some("r1"), Some(2)), 2);
    assert_eq!(shown(Some("r1"), Some(5)), 5, "a number means the journal's newest");
    assert_eq!((shown(None, None), shown(Some("r2"), None)), (USUAL, USUAL));
}

#[test]
fn sessions_of_no_run_are_named_as_such() {
    let other = json!({"event": "warning", "level": "L1", "percent": 72, "session_id": "12345678-90ab"});
    let told = EventPrinter::default().tell(&line(&other)).unwrap();
    assert_eq!(told.words, "warning L1 at 72% [session 12345678… of no run]");
    let end = json!({"event": "session_end", "reason": "clear", "peak_percent": 72, "session_id": "1"});
    let told = EventPrinter::default().tell(&line(&end)).unwrap();
    assert_eq!(told.words, "session ended, peak 72% (clear) [session 1 of no run]");
}

#[test]
fn a_journal_that_is_replaced_cut_short_or_gone_is_read_on_and_nothing_is_said_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let put = |text: &str| disk::replace(&path, text.as_bytes(), Durability::Lazy).unwrap();
    let mut journal = Journal::new(path.clone());
    let mut news = || {
        let lines = journal.news().unwrap();
        lines.iter().map(|line| format!("{line:?}").replace("Foreign", "")).collect::<Vec<_>>().concat()
    };
    assert_eq!(news(), "", "not there yet");
    put("one\ntwo");
    assert_eq!(news(), "(\"one\")", "a line is read when it is whole");
    disk::append(&path, b"\ntwo\n").unwrap();
    assert_eq!(news(), "(\"two\")(\"two\")");
    disk::remove(&path).unwrap();
    assert_eq!(news(), "");
    put("three\n");
    assert_eq!(news(), "(\"three\")", "taken away and begun anew");
    put("one\ntwo\ntwo\nthree\nfour\n");
    assert_eq!(news(), "(\"four\")", "mended");
    put("one\n");
    assert_eq!(news(), "", "cut short");
    put("one\nfive\n");
    assert_eq!(news(), "(\"five\")");
}

#[test]
fn an_entry_behind_one_that_was_cut_off_is_not_lost() {
    let whole = entry("cancelled", &json!({})).to_string();
    let page = page(&Line::read(format!("{{\"at\":\"2026-01-06T21{whole}").as_bytes()));
    assert_eq!(page[0], "--:--:--   -  (a torn line) {\"at\":\"2026-01-06T21");
    assert!(page[2].ends_with("5  run cancelled with `plimsoll stop`"), "{page:?}");
}

#[test]
fn verdicts_have_colours_where_they_are_wanted_and_nothing_else_does() {
    let painted = |marker: &str| {
        let told =
            EventPrinter::default().tell(&line(&entry("verdict", &json!({ "marker": marker })))).unwrap();
        LogPage::new(true).lines(&told).pop().unwrap().to_terminal()
    };
    assert!(painted("RALPH_STOP|completed|x").ends_with("\u{1b}[1;32mrun completed: x\u{1b}[0m"));
    assert!(painted("RALPH_STOP|blocked|x").contains("\u{1b}[1;31m"));
    assert!(painted("RALPH_CONTINUE|next|x").contains("\u{1b}[1mcontinues"));
    let told = EventPrinter::default().tell(&line(&entry("todo_mended", &json!({})))).unwrap();
    assert!(!LogPage::new(true).lines(&told)[1].to_terminal().contains('\u{1b}'));
}
