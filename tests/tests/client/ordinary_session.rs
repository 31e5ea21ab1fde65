//! The hooks in a session of a person without a run: they advise, end nothing, write no state of a run, and the status
//! line shows the context usage.

use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE_DELAY, events_named, read_journal, world_with_hooks};
use std::fs;

const LAST_WORDS: &str = "My own last words: the work is finished.";

/// Creates a model that works on any prompt, with this usage at each step.
fn model_with_usage(usage_by_step: &'static [u64]) -> ScriptedModel {
    let mut steps: Vec<Step> = usage_by_step
        .iter()
        .enumerate()
        .map(|(number, usage)| {
            Step::bash_call(format!("echo step-{number}"))
                .with_input_tokens(*usage)
                .with_output_tokens(1)
                .with_delay(LIFELIKE_DELAY)
        })
        .collect();
    let last = usage_by_step.last().copied().unwrap_or(1_000);
    steps.push(
        Step::from_text(LAST_WORDS).with_input_tokens(last).with_output_tokens(1).with_delay(LIFELIKE_DELAY),
    );
    ScriptedModel::start_with_steps_repeating_last(steps)
}

fn handoff_names(world: &World) -> Vec<String> {
    let folder = world.path(".claude/handoffs");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names
}

/// Asserts that no file of a run exists.
fn assert_no_run(world: &World) {
    for path in [
        ".claude/ralph-state.json",
        ".claude/ralph-state.json.lock",
        ".claude/plimsoll/runs",
        "PROMPT.md",
        "progress.txt",
    ] {
        assert!(!world.exists(path), "{path} is a run's");
    }
}

/// Asserts that the model was sent each level's advice once, without instructions.
fn assert_each_level_advised_once(world: &World, last: &Request) {
    let text = last.full_text();
    let mut advice = String::new();
    for marker in ["CCS_WARNING|L1|72|", "CCS_WARNING|L2|87|", "CCS_WARNING|L3|97|"] {
        assert_eq!(text.matches(marker).count(), 1, "{marker} in\n{text}");
        let lines = text[text.find(marker).expect(marker)..].lines().take(2);
        lines.for_each(|line| advice += &format!("{line}\n"));
    }
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&advice), @"
    CCS_WARNING|L1|72|Context at 72%
    For information: the context window is 72% full (warn). Claude Code stops at about 98% (automatic compaction is off). No action is required.
    CCS_WARNING|L2|87|Context at 87%
    For information: the context window is 87% full (checkpoint). Claude Code stops at about 98% (automatic compaction is off). A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required.
    CCS_WARNING|L3|97|Context at 97%
    For information: the context window is 97% full (emergency). Claude Code stops at about 98% (automatic compaction is off). A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required.
    ");
    for word in ["CCS_WARNING", "CCS_CHECKPOINT", "RALPH_"] {
        assert_eq!(text.matches(word).count(), if word == "CCS_WARNING" { 3 } else { 0 }, "{word}");
    }
}

#[test]
fn in_print_mode_each_level_is_announced_once_and_nothing_ends() {
    // No step is larger than what the hook waits for the transcript's writer for (20 points of the window).
    // The client itself compacts at 96.7%: with compaction off it can be filled to 97 and 98.
    let model = model_with_usage(&[200_000, 550_000, 720_000, 730_000, 870_000, 880_000, 970_000, 975_000]);
    let mut world = world_with_hooks(&model);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    let finished = world
        .claude(&[
            "-p",
            "Please do the work.",
            "--model",
            "opus",
            "--allowedTools",
            "Bash",
            "--output-format",
            "json",
        ])
        .run()
        .expect_success();
    let result = finished.last_result();
    assert_eq!(
        (result["result"].as_str(), &result["is_error"]),
        (Some(LAST_WORDS), &false.into()),
        "{result:#}"
    );
    assert_eq!(result["terminal_reason"], "completed", "{result:#}");
    let requests = model.main_requests();
    assert_eq!(requests.len(), 9, "every step was taken");
    assert_each_level_advised_once(&world, requests.last().expect("requests"));
    let warnings_in = |count: usize| requests[count].full_text().matches("CCS_WARNING").count();
    let warning_counts: Vec<usize> = (0..9).map(warnings_in).collect();
    assert_eq!(
        warning_counts,
        [0, 0, 0, 1, 1, 2, 2, 3, 3],
        "each with the request after its level, none again"
    );
    assert_no_run(&world);
    let journal = read_journal(&world);
    let levels: Vec<_> = events_named(&journal, "warning")
        .iter()
        .map(|entry| entry["level"].as_str().expect("a level"))
        .collect();
    assert_eq!(levels, ["L1", "L2", "L3"]);
    assert!(
        events_named(&journal, "ended").is_empty() && events_named(&journal, "verdict").is_empty(),
        "{journal:#?}"
    );
    assert!(
        journal.iter().all(|entry| entry.get("run").is_none_or(serde_json::Value::is_null)),
        "{journal:#?}"
    );

    let last = requests.last().expect("requests").full_text();
    let names = handoff_names(&world);
    assert!(!names.is_empty());
    for name in &names {
        let handoff = world.read(format!(".claude/handoffs/{name}"));
        assert!(handoff.contains('%') && handoff.len() > 200, "{handoff}");
    }
    assert!(
        names.iter().any(|name| last.contains(&format!(".claude/handoffs/{name}"))),
        "its path is told: {names:?}"
    );
    assert!(
        world.git(&["status", "--porcelain"]).lines().all(|line| !line.contains("handoffs")),
        "git overlooks it"
    );
}

#[test]
fn a_full_session_continues_through_automatic_compaction() {
    let model = ScriptedModel::start(|request| {
        let text = request.full_text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::from_text(LAST_WORDS).with_input_tokens(40_000),
            0 => Step::bash_call("echo a-step").with_input_tokens(870_000),
            _ => Step::bash_call("echo a-step").with_input_tokens(968_000),
        }
        .with_delay(LIFELIKE_DELAY)
    });
    let world = world_with_hooks(&model);
    let finished = world
        .claude(&[
            "-p",
            "Please do the work.",
            "--model",
            "opus",
            "--allowedTools",
            "Bash",
            "--output-format",
            "json",
        ])
        .run()
        .expect_success();
    assert_eq!(
        finished.last_result()["result"],
        LAST_WORDS,
        "{:?}",
        model.main_requests().last().map(Request::full_text)
    );
    assert_no_run(&world);
    assert!(events_named(&read_journal(&world), "ended").is_empty());
}

/// Returns Plimsoll's line of the screen.
fn status_line_on_screen(screen: &str) -> String {
    let line = screen.lines().rev().find(|line| line.contains('▕') && line.contains('▏'));
    line.unwrap_or_else(|| panic!("no load line on\n{screen}")).trim().to_owned()
}

#[test]
fn the_status_line_on_screen_follows_the_context_usage() {
    let model = ScriptedModel::start(|request| {
        let text = request.text_since_last_assistant_message();
        let load = text.rsplit("load=").next().and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        match load {
            Some(load) if text.contains("with a tool") => {
                Step::bash_call("echo tool-ran").with_input_tokens(load)
            }
            Some(load) => Step::from_text(format!("Answered with {load}.")).with_input_tokens(load),
            None => Step::from_text(LAST_WORDS).with_input_tokens(975_000),
        }
        .with_output_tokens(1)
        .with_delay(LIFELIKE_DELAY)
    });
    let mut world = world_with_hooks(&model);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::start_claude(&world, &arguments, 130, 40);
    let screen = terminal.wait_for_text("▏ ?");
    let first = status_line_on_screen(&screen);
    for part in ["Opus", "project", "⎇ main", "▕", "┆", "┃", "▏ ?"] {
        assert!(first.contains(part), "{part} in {first}");
    }
    assert!(!first.contains('█') && !first.contains('%'), "unknown is no 0 %: {first}");
    let mut last_cells = 0;
    for (load, percent) in [(50_000, "5%"), (424_999, "42%"), (720_000, "72%")] {
        terminal.submit_prompt(&format!("please load={load} "));
        let screen = terminal.wait_for_text(&format!("▏ {percent}"));
        let line = status_line_on_screen(&screen);
        let cells = line.matches('█').count();
        assert!(cells > last_cells && line.contains('┃'), "{line}");
        assert_eq!(
            line.matches('┆').count(),
            if load < 700_000 { 2 } else { 1 },
            "the thresholds ahead: {line}"
        );
        last_cells = cells;
    }
    // A turn with a tool at 97%: advice for the model, a marker for the user, and the turn ends normally.
    terminal.submit_prompt("please work with a tool load=970000 ");
    terminal.wait_for_text(LAST_WORDS);
    let screen = terminal.wait_for_text("▏ 98%");
    assert!(screen.contains("CCS_WARNING|L3|97|"), "the person is told:\n{screen}");
    let last_request = model.main_requests().last().expect("requests").full_text();
    assert_eq!(last_request.matches("CCS_WARNING|L3|97|").count(), 1, "{last_request}");
    assert!(
        last_request.contains("No action is required") && !last_request.contains("CCS_CHECKPOINT"),
        "{last_request}"
    );
    // The session keeps working for its user.
    terminal.submit_prompt("please load=971000 ");
    terminal.wait_for_text("Answered with 971000.");
    terminal.wait_for_text("▏ 97%");
    assert_no_run(&world);
    assert_eq!(handoff_names(&world).len(), 1);
    terminal.submit_prompt("/exit");
    let status = terminal.wait_for_exit();
    assert!(status.success(), "{status:?}");
    let journal_entries = read_journal(&world);
    assert_eq!(events_named(&journal_entries, "session_end").len(), 1, "{journal_entries:#?}");
    assert_eq!(events_named(&journal_entries, "session_end")[0]["reason"], "prompt_input_exit");
}

/// `/autocompact 150k` writes this setting: the client compacts at 117,000 of a million tokens.
#[test]
fn a_models_compaction_window_triggers_l2_before_the_client_compacts() {
    let model = ScriptedModel::start(|request| {
        let text = request.full_text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::from_text(LAST_WORDS).with_input_tokens(40_000),
            0 => Step::bash_call("echo a-step").with_input_tokens(60_000),
            // A request contains each call and its result. On a busy machine a hook reads the response before its own.
            1..=2 => Step::bash_call("echo a-step").with_input_tokens(96_000),
            3..=4 => Step::bash_call("echo a-step").with_input_tokens(98_000),
            5..=6 => Step::bash_call("echo a-step").with_input_tokens(100_000),
            _ => Step::bash_call("echo a-step").with_input_tokens(118_000),
        }
        .with_delay(LIFELIKE_DELAY)
    });
    let world = world_with_hooks(&model);
    let settings = r#"{"modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#;
    world.write(world.home().join(".claude/settings.json"), settings);
    let arguments = ["-p", "Please do the work.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&arguments).run().expect_success();
    let requests = model.requests();
    let compaction = requests.iter().position(|request| request.kind == RequestKind::Compaction);
    let requests_before = &requests[..compaction.expect("the client compacts at 117,000")];
    let sent_text = requests_before.iter().map(Request::full_text).collect::<String>();
    assert!(sent_text.contains("CCS_WARNING|L2|10|"), "{sent_text}");
}
