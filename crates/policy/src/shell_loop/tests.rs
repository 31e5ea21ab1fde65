use super::*;
use plimsoll_domain::settings::Levels;

/// A state document as the scripts write it, with some fields changed.
fn document(changes: Value) -> Value {
    let mut document = json!({
        "task_name": "Migrate", "objective": "Convert", "iteration": 5, "started_at": "2026-01-07T00:00:00Z",
        "status": "running", "no_change_count": 0, "last_diff_hash": "abc123", "error_hashes": [],
        "max_iterations": 50, "completion_promise": "COMPLETE", "todo_items": ["three", "four"],
        "completed_items": ["one", "two"],
        "context_checkpoint": {
            "active": false, "level": "L2", "percent_at_checkpoint": 87, "handoff_file": "h.md", "mine": 1
        },
        "context_history": [{"iteration": 5, "peak_percent": 40, "checkpoint": false}]
    });
    plimsoll_domain::state::merge_keeping_unknown_fields(&mut document, changes);
    document
}

const DONE: &str = "All done.\n\n<promise>COMPLETE</promise>\n";

#[test]
fn a_state_is_plimsolls_only_with_both_marker_fields() {
    for (changes, missing) in [
        (json!({}), &["run_id", "nonce"][..]),
        (json!({"run_id": "r1"}), &["nonce"]),
        (json!({"run_id": "", "nonce": "n"}), &["run_id"]),
        (json!({"run_id": 7, "nonce": null}), &["run_id", "nonce"]),
        (json!({"run_id": "r1", "nonce": "n"}), &[]),
    ] {
        assert_eq!(missing_run_marker_fields(&document(changes.clone())), missing, "{changes}");
    }
    assert_eq!(missing_run_marker_fields(&json!([])), RUN_MARKER_FIELDS);
}

#[test]
fn the_gate_decides_like_the_loops_own_script() {
    let none_open = json!({"todo_items": []});
    let with_checkpoint = json!({"context_checkpoint": {"active": true}});
    for (changes, message, expected, code) in [
        (json!({}), None, "RALPH_CONTINUE|next|2 items are open", 1),
        (json!({"todo_items": ["three"]}), None, "RALPH_CONTINUE|next|1 item is open", 1),
        (none_open.clone(), None, "RALPH_CONTINUE|next|0 items are open", 1),
        (none_open.clone(), Some(DONE), "RALPH_STOP|completed|promised, and no item is open", 0),
        (json!({}), Some(DONE), "RALPH_CONTINUE|refused|2 items are open", 1),
        // The promise must be the last line, alone, with the loop's own text.
        (
            none_open.clone(),
            Some("<promise>COMPLETE</promise>\nbut"),
            "RALPH_CONTINUE|next|0 items are open",
            1,
        ),
        (
            none_open.clone(),
            Some("I say <promise>COMPLETE</promise>"),
            "RALPH_CONTINUE|next|0 items are open",
            1,
        ),
        (
            json!({"todo_items": [], "completion_promise": "DONE"}),
            Some(DONE),
            "RALPH_CONTINUE|next|0 items are open",
            1,
        ),
        (
            json!({"todo_items": [], "completion_promise": "DONE"}),
            Some("<promise>DONE</promise>"),
            "RALPH_STOP|completed|promised, and no item is open",
            0,
        ),
        (json!({"iteration": 49}), None, "RALPH_CONTINUE|next|2 items are open", 1),
        (json!({"iteration": 50}), None, "RALPH_STOP|max_iterations|50 of 50 iterations are used", 0),
        (json!({"max_iterations": 3}), None, "RALPH_STOP|max_iterations|5 of 3 iterations are used", 0),
        (
            json!({"iteration": 50, "todo_items": []}),
            Some(DONE),
            "RALPH_STOP|completed|promised, and no item is open",
            0,
        ),
        (with_checkpoint.clone(), None, "RALPH_CONTINUE|checkpoint|h.md", 1),
        (
            json!({"iteration": 50, "context_checkpoint": {"active": true}}),
            None,
            "RALPH_STOP|max_iterations|50 of 50 iterations are used",
            0,
        ),
        (
            json!({"todo_items": [], "context_checkpoint": {"active": true}}),
            Some(DONE),
            "RALPH_STOP|completed|promised, and no item is open",
            0,
        ),
        (json!({"status": "completed"}), None, "RALPH_STOP|completed|the state says so", 0),
        (json!({"status": "in|progress\n"}), None, "RALPH_STOP|in progress|the state says so", 0),
        (json!({"status": 7}), None, "RALPH_STOP|unknown|the state has no status", 0),
        (json!({"active": false}), Some(DONE), "RALPH_STOP|inactive|the state says \"active\": false", 0),
    ] {
        let document = document(changes.clone());
        let evidence = LoopEvidence { last_message: message, ..LoopEvidence::default() };
        let verdict = judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&document), &evidence);
        assert_eq!(
            (verdict.to_marker_line().as_str(), verdict.exit_status().code()),
            (expected, code),
            "{changes} {message:?}"
        );
    }
}

/// The counters come from the file, and the limits from the user's settings.
#[test]
fn the_breaker_opens_at_the_limits_of_the_settings() {
    let errors = |hashes: &[&str]| json!({ "error_hashes": hashes });
    const IDLE: &str =
        "RALPH_STOP|circuit_breaker|3 sessions in a row changed nothing (no_change_count; the limit is 3)";
    const FAILING: &str = "RALPH_STOP|circuit_breaker|5 sessions in a row ended with the same error (error_hashes; the limit is 5)";
    const NEXT: &str = "RALPH_CONTINUE|next|2 items are open";
    let limits = BreakerLimits::default();
    let disabled = BreakerLimits { no_progress: 0, same_error: 0, ..limits };
    let resumed = json!({"no_change_count": 3, "context_checkpoint": {"active": true}});
    for (changes, limits, expected) in [
        (json!({"no_change_count": 2}), limits, NEXT),
        (json!({"no_change_count": 3}), limits, IDLE),
        (resumed, limits, IDLE),
        (json!({"no_change_count": 100}), disabled, NEXT),
        (json!({"no_change_count": "100"}), limits, NEXT),
        (errors(&["e"; 4]), limits, NEXT),
        (errors(&["e"; 5]), limits, FAILING),
        (errors(&["a", "e", "e", "e", "e", "e"]), limits, FAILING),
        (errors(&["e", "e", "e", "e", "e", "a"]), limits, NEXT),
        (errors(&["e"; 5]), disabled, NEXT),
    ] {
        let evidence = LoopEvidence { breaker_limits: limits, ..LoopEvidence::default() };
        let verdict = judge_loop(
            &ShellLoop::from_document_collecting_invalid_fields(&document(changes.clone())),
            &evidence,
        );
        assert_eq!(verdict.to_marker_line(), expected, "{changes}");
    }
    // A true promise counts despite the breaker, as with every other limit.
    let done = document(json!({"todo_items": [], "no_change_count": 100}));
    let evidence =
        LoopEvidence { last_message: Some(DONE), breaker_limits: limits, ..LoopEvidence::default() };
    assert_eq!(
        judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&done), &evidence)
            .exit_status()
            .code(),
        0
    );
    assert!(
        judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&done), &evidence)
            .to_marker_line()
            .starts_with("RALPH_STOP|completed|")
    );
}

#[test]
fn an_item_ticked_in_the_plan_file_is_not_open() {
    let todo = TodoList::parse("- [x] three\n- [x] four\n");
    let evidence = LoopEvidence { last_message: Some(DONE), todo: Some(&todo), ..LoopEvidence::default() };
    let marker =
        judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&document(json!({}))), &evidence)
            .to_marker_line();
    assert_eq!(marker, "RALPH_STOP|completed|promised, and no item is open");
    let half = TodoList::parse("- [x] three\n- [ ] four\n");
    let evidence = LoopEvidence { todo: Some(&half), ..evidence };
    assert_eq!(
        judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&document(json!({}))), &evidence)
            .to_marker_line(),
        "RALPH_CONTINUE|refused|1 item is open"
    );
}

#[test]
fn a_fatal_error_ends_the_loop() {
    let evidence =
        LoopEvidence { fatal_error: Some("authentication failed".to_owned()), ..LoopEvidence::default() };
    let marker =
        judge_loop(&ShellLoop::from_document_collecting_invalid_fields(&document(json!({}))), &evidence)
            .to_marker_line();
    assert_eq!(marker, "RALPH_STOP|fatal_error|authentication failed");
}

/// One loop counts in its script, and one leaves it to the gate: both end after the same number of sessions.
#[test]
fn iterations_are_counted_once_by_the_script_or_by_the_gate() {
    for script_counts in [true, false] {
        let mut document = document(json!({"iteration": 1, "max_iterations": 4}));
        let (mut previous, mut sessions) = (None, 0);
        loop {
            sessions += 1;
            assert!(sessions < 10, "it never ends");
            let shell_loop = ShellLoop::from_document_collecting_invalid_fields(&document);
            let evidence = LoopEvidence { last_judgment: previous.as_ref(), ..LoopEvidence::default() };
            let verdict = judge_loop(&shell_loop, &evidence);
            let last_judgement = build_gate_judgment(&shell_loop, &evidence);
            write_verdict_into_document(&mut document, &verdict, &last_judgement);
            let iteration = last_judgement.session_number;
            previous = Some(last_judgement);
            if verdict.exit_status().code() == 0 {
                break;
            }
            if script_counts {
                document["iteration"] = json!(iteration + 1);
            }
        }
        assert_eq!(sessions, 4, "script_counts: {script_counts}");
        assert_eq!(document["status"], "max_iterations");
    }
}

/// Returns the fingerprint of a project whose files have this content.
fn worktree_with(content: &str) -> WorktreeFingerprint {
    WorktreeFingerprint { files_digest: Some(format!("content:{content}")), ..WorktreeFingerprint::default() }
}

/// Judges the sessions one after another, each with its file content and the fields that the script writes.
/// Returns the count without a change after each.
fn judge_sessions(document: &mut Value, sessions: &[(&str, Value)]) -> Vec<Value> {
    let mut previous: Option<LastGateJudgment> = None;
    let mut counts = Vec::new();
    for (content, written_by_script) in sessions {
        plimsoll_domain::state::merge_keeping_unknown_fields(document, written_by_script.clone());
        let shell_loop = ShellLoop::from_document_collecting_invalid_fields(document);
        let evidence = LoopEvidence {
            last_judgment: previous.as_ref(),
            fingerprint: worktree_with(content),
            breaker_limits: BreakerLimits::default(),
            ..LoopEvidence::default()
        };
        let verdict = judge_loop(&shell_loop, &evidence);
        let last_judgement = build_gate_judgment(&shell_loop, &evidence);
        write_verdict_into_document(document, &verdict, &last_judgement);
        counts.push(document["no_change_count"].clone());
        previous = Some(last_judgement);
    }
    counts
}

#[test]
fn the_gate_counts_sessions_without_a_change_if_no_script_does() {
    let nothing = || json!({});
    let mut idle = document(json!({}));
    let sessions = [("a", nothing()), ("a", nothing()), ("b", nothing()), ("b", nothing()), ("b", nothing())];
    assert_eq!(judge_sessions(&mut idle, &sessions), [0, 1, 0, 1, 2]);
    assert_eq!(idle["status"], "running");
    let four = ["a"; 4].map(|content| (content, nothing()));
    let mut stuck = document(json!({}));
    assert_eq!(judge_sessions(&mut stuck, &four), [0, 1, 2, 3]);
    assert_eq!(stuck["status"], "circuit_breaker");
    // A moved item is progress, too.
    let mut moved = document(json!({}));
    let sessions = [("a", nothing()), ("a", nothing()), ("a", json!({"todo_items": ["four"]}))];
    assert_eq!(judge_sessions(&mut moved, &sessions), [0, 1, 0]);
}

#[test]
fn the_gate_leaves_a_counter_alone_that_the_scripts_change() {
    let script = |count: u64, hash: &str| json!({"no_change_count": count, "last_diff_hash": hash});
    let mut counted = document(json!({}));
    let sessions =
        [("a", script(0, "h1")), ("a", script(1, "h1")), ("a", script(2, "h1")), ("a", script(0, "h2"))];
    assert_eq!(judge_sessions(&mut counted, &sessions), [0, 1, 2, 0]);
    assert_eq!(counted["status"], "running");
}

#[test]
fn a_verdict_writes_only_what_the_script_would_have_written() {
    let waiting = json!({"context_checkpoint": {"active": true}, "mine": {"a": [1]}});
    let before = document(waiting);
    let mut after = before.clone();
    let last_judgement =
        |iteration| LastGateJudgment { session_number: iteration, ..LastGateJudgment::default() };
    assert!(write_verdict_into_document(
        &mut after,
        &LoopVerdict::Checkpoint("h.md".to_owned()),
        &last_judgement(5)
    ));
    let mut expected = before.clone();
    expected["context_checkpoint"]["active"] = json!(false);
    assert_eq!(after, expected);

    let mut after = before.clone();
    assert!(
        !write_verdict_into_document(&mut after, &LoopVerdict::NextItem(String::new()), &last_judgement(5)),
        "nothing has changed"
    );
    assert_eq!(after, before);

    let mut over = document(json!({"status": "fatal_error"}));
    let before = over.clone();
    assert!(!write_verdict_into_document(
        &mut over,
        &LoopVerdict::Stop("fatal_error".to_owned(), String::new()),
        &last_judgement(6)
    ));
    assert_eq!(over, before);
}

#[test]
fn the_monitor_warns_and_checkpoints_once_a_level() {
    let with_checkpoint = |level: &str| json!({"context_checkpoint": {"active": true, "level": level}});
    for (changes, level, expected) in [
        (json!({}), Level::L0, MonitorAction::Nothing),
        (json!({}), Level::L1, MonitorAction::Warn),
        (json!({}), Level::L2, MonitorAction::Checkpoint),
        (json!({}), Level::L3, MonitorAction::Checkpoint),
        (with_checkpoint("L2"), Level::L2, MonitorAction::RepeatMarker),
        (with_checkpoint("L2"), Level::L3, MonitorAction::Checkpoint),
        (with_checkpoint("L3"), Level::L2, MonitorAction::RepeatMarker),
        (with_checkpoint("L3"), Level::L3, MonitorAction::RepeatMarker),
        (json!({"status": "completed"}), Level::L3, MonitorAction::Nothing),
        (json!({"active": false}), Level::L3, MonitorAction::Nothing),
    ] {
        assert_eq!(
            monitor_action(
                &ShellLoop::from_document_collecting_invalid_fields(&document(changes.clone())),
                level
            ),
            expected,
            "{changes} {level}"
        );
    }
}

#[test]
fn a_percentage_is_mapped_to_the_level_of_the_settings() {
    let levels = Levels { l1: 70.0, l2: 85.0, l3: 95.0 };
    for (percent, expected) in [
        (0, Level::L0),
        (69, Level::L0),
        (70, Level::L1),
        (84, Level::L1),
        (85, Level::L2),
        (95, Level::L3),
        (130, Level::L3),
    ] {
        assert_eq!(level_for_percent(percent, &levels), expected, "{percent}");
    }
}

#[test]
fn a_checkpoint_is_recorded_in_the_scripts_own_fields() {
    let mut state = document(json!({}));
    let facts = CheckpointInput {
        timestamp: "2026-01-07T11:45:00Z".into(),
        handoff: "h2.md".into(),
        ..CheckpointInput::default()
    };
    write_checkpoint_and_history_into_document(&mut state, Level::L2, 87, &facts);
    let checkpoint = &state["context_checkpoint"];
    assert_eq!((&checkpoint["active"], &checkpoint["level"]), (&json!(true), &json!("L2")));
    assert_eq!(checkpoint["current_todo_item"], "three");
    assert_eq!(checkpoint["mine"], 1, "what others keep there stays");
    assert_eq!(state["context_history"], json!([{"iteration": 5, "peak_percent": 87, "checkpoint": true}]));

    let mut bare = json!({"status": "running", "iteration": 2});
    write_checkpoint_and_history_into_document(&mut bare, Level::L3, 96, &facts);
    assert_eq!(bare["context_history"], json!([{"iteration": 2, "peak_percent": 96, "checkpoint": true}]));
    assert_eq!(bare["context_checkpoint"]["handoff_file"], "h2.md");
}

#[test]
fn fields_of_an_unexpected_type_are_reported_and_ignored() {
    let shell_loop = ShellLoop::from_document_collecting_invalid_fields(&document(
        json!({"iteration": "5", "max_iterations": 9.5, "todo_items": [{"text": "x"}], "status": 1}),
    ));
    assert_eq!(
        (
            shell_loop.iteration,
            shell_loop.max_iterations,
            shell_loop.open_items.len(),
            shell_loop.status.clone()
        ),
        (0, 50, 0, None)
    );
    insta::assert_snapshot!(shell_loop.invalid_fields.join("\n"), @r#"
    status is 1, not a text
    iteration is "5", not a whole number
    max_iterations is 9.5, not a whole number
    todo_items is [{"text":"x"}], not a list of texts
    "#);
    insta::assert_snapshot!(render_no_run_here_and_loop_status(".claude/ralph-state.json", &RUN_MARKER_FIELDS, &shell_loop), @r#"
    There is no Plimsoll run here. .claude/ralph-state.json exists, but Plimsoll did not write it (it has no run_id and no nonce).
    It says: no status, session 0 of 50, 0 items open.
    Not understood: status is 1, not a text.
    Not understood: iteration is "5", not a whole number.
    Not understood: max_iterations is 9.5, not a whole number.
    Not understood: todo_items is [{"text":"x"}], not a list of texts.
    `plimsoll gate` and `plimsoll monitor` judge for its loop.
    "#);
}

#[test]
fn messages_name_the_file_the_missing_fields_and_the_command() {
    let file = ".claude/ralph-state.json";
    insta::assert_snapshot!(describe_no_run_to_resume_and_fix(file, &RUN_MARKER_FIELDS), @"there is no run to resume: .claude/ralph-state.json exists, but Plimsoll did not write it (it has no run_id and no nonce); to start a new run without it: mv .claude/ralph-state.json .claude/ralph-state.json.before");
    insta::assert_snapshot!(describe_no_run_to_resume_and_fix(file, &[]), @"there is no run to resume: .claude/ralph-state.json exists, but your state folder has no record of such a run in this folder (it came with a clone, was moved, or its record was lost); to start a new run without it: mv .claude/ralph-state.json .claude/ralph-state.json.before");
    insta::assert_snapshot!(describe_state_file_blocking_new_run(file, &["nonce"]), @".claude/ralph-state.json exists, and Plimsoll did not write it (it has no nonce); to start without it: mv .claude/ralph-state.json .claude/ralph-state.json.before");
}
