//! The hooks in a session where a person works and no run goes on: they advise, end nothing, write no state of a
//! run, and the status line shows how full it is.

use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, events, installed, journal};
use std::fs;

const LAST_WORDS: &str = "My own last words: the work is finished.";

/// A model that works on whatever it is told, with this usage at each step.
fn rising(loads: &'static [u64]) -> ScriptedModel {
    let mut steps: Vec<Step> = loads
        .iter()
        .enumerate()
        .map(|(number, load)| {
            Step::bash(format!("echo step-{number}")).usage(*load).output_tokens(1).delay(LIFELIKE)
        })
        .collect();
    let last = loads.last().copied().unwrap_or(1_000);
    steps.push(Step::text(LAST_WORDS).usage(last).output_tokens(1).delay(LIFELIKE));
    ScriptedModel::steps(steps)
}

fn handoffs(world: &World) -> Vec<String> {
    let folder = world.path(".claude/handoffs");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names
}

/// Nothing of a run, anywhere.
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

/// Each level's advice stands once in what the model was sent, and orders nothing.
fn assert_advised_once(world: &World, last: &Request) {
    let text = last.text();
    let mut advice = String::new();
    for marker in ["CCS_WARNING|L1|72|", "CCS_WARNING|L2|87|", "CCS_WARNING|L3|97|"] {
        assert_eq!(text.matches(marker).count(), 1, "{marker} in\n{text}");
        let lines = text[text.find(marker).expect(marker)..].lines().take(2);
        lines.for_each(|line| advice += &format!("{line}\n"));
    }
    insta::assert_snapshot!(world.stable_text(&advice), @"
    CCS_WARNING|L1|72|Context at 72%
    For information: the context window is 72% full (warn). Claude Code stops at about 98% (automatic compaction is off). No action is required; this only helps you to plan.
    CCS_WARNING|L2|87|Context at 87%
    For information: the context window is 87% full (checkpoint). Claude Code stops at about 98% (automatic compaction is off). A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required; this only helps you to plan.
    CCS_WARNING|L3|97|Context at 97%
    For information: the context window is 97% full (emergency). Claude Code stops at about 98% (automatic compaction is off). A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required; this only helps you to plan.
    ");
    for word in ["CCS_WARNING", "CCS_CHECKPOINT", "RALPH_"] {
        assert_eq!(text.matches(word).count(), if word == "CCS_WARNING" { 3 } else { 0 }, "{word}");
    }
}

#[test]
fn in_print_mode_each_level_is_advice_once_and_nothing_ends() {
    // No step is larger than what the hook waits for the transcript's writer for (20 points of the window).
    // The client itself compacts at 96.7 %: with compaction off it can be filled to 97 and 98.
    let model = rising(&[200_000, 550_000, 720_000, 730_000, 870_000, 880_000, 970_000, 975_000]);
    let mut world = installed(&model);
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
    let result = finished.result();
    assert_eq!(
        (result["result"].as_str(), &result["is_error"]),
        (Some(LAST_WORDS), &false.into()),
        "{result:#}"
    );
    assert_eq!(result["terminal_reason"], "completed", "{result:#}");
    let requests = model.main_requests();
    assert_eq!(requests.len(), 9, "every step was taken");
    assert_advised_once(&world, requests.last().expect("requests"));
    let told = |count: usize| requests[count].text().matches("CCS_WARNING").count();
    let told: Vec<usize> = (0..9).map(told).collect();
    assert_eq!(told, [0, 0, 0, 1, 1, 2, 2, 3, 3], "each with the request after its level, none again");
    assert_no_run(&world);
    let journal = journal(&world);
    let levels: Vec<_> =
        events(&journal, "warning").iter().map(|entry| entry["level"].as_str().expect("a level")).collect();
    assert_eq!(levels, ["L1", "L2", "L3"]);
    assert!(events(&journal, "ended").is_empty() && events(&journal, "verdict").is_empty(), "{journal:#?}");
    assert!(
        journal.iter().all(|entry| entry.get("run").is_none_or(serde_json::Value::is_null)),
        "{journal:#?}"
    );

    let last = requests.last().expect("requests").text();
    let names = handoffs(&world);
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
fn a_full_session_with_compaction_is_advised_and_lives_on_through_it() {
    let model = ScriptedModel::start(|request| {
        let text = request.text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::text(LAST_WORDS).usage(40_000),
            0 => Step::bash("echo a-step").usage(870_000),
            _ => Step::bash("echo a-step").usage(968_000),
        }
        .delay(LIFELIKE)
    });
    let world = installed(&model);
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
        finished.result()["result"],
        LAST_WORDS,
        "{:?}",
        model.main_requests().last().map(Request::text)
    );
    assert_no_run(&world);
    assert!(events(&journal(&world), "ended").is_empty());
}

/// The line of the screen that is ours.
fn load_line(screen: &str) -> String {
    let line = screen.lines().rev().find(|line| line.contains('▕') && line.contains('▏'));
    line.unwrap_or_else(|| panic!("no load line on\n{screen}")).trim().to_owned()
}

#[test]
fn on_screen_the_status_line_shows_the_fill_and_follows_it() {
    let model = ScriptedModel::start(|request| {
        let text = request.last_text();
        let load = text.rsplit("load=").next().and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        match load {
            Some(load) if text.contains("with a tool") => Step::bash("echo tool-ran").usage(load),
            Some(load) => Step::text(format!("Answered with {load}.")).usage(load),
            None => Step::text(LAST_WORDS).usage(975_000),
        }
        .output_tokens(1)
        .delay(LIFELIKE)
    });
    let mut world = installed(&model);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::claude(&world, &arguments, 130, 40);
    let screen = terminal.wait_for("▏ ?");
    let first = load_line(&screen);
    for part in ["Opus", "project", "⎇ main", "▕", "┆", "┃", "▏ ?"] {
        assert!(first.contains(part), "{part} in {first}");
    }
    assert!(!first.contains('█') && !first.contains('%'), "unknown is no 0 %: {first}");
    let mut last_cells = 0;
    for (load, percent) in [(50_000, "5%"), (424_999, "42%"), (720_000, "72%")] {
        terminal.type_text(&format!("please load={load} "));
        terminal.press_enter();
        let screen = terminal.wait_for(&format!("▏ {percent}"));
        let line = load_line(&screen);
        let cells = line.matches('█').count();
        assert!(cells > last_cells && line.contains('┃'), "{line}");
        assert_eq!(
            line.matches('┆').count(),
            if load < 700_000 { 2 } else { 1 },
            "the thresholds ahead: {line}"
        );
        last_cells = cells;
    }
    // A turn with a tool at 97 %: advice for the model, a marker for the user, and the turn goes to its own end.
    terminal.type_text("please work with a tool load=970000 ");
    terminal.press_enter();
    terminal.wait_for(LAST_WORDS);
    let screen = terminal.wait_for("▏ 98%");
    assert!(screen.contains("CCS_WARNING|L3|97|"), "the person is told:\n{screen}");
    let told = model.main_requests().last().expect("requests").text();
    assert_eq!(told.matches("CCS_WARNING|L3|97|").count(), 1, "{told}");
    assert!(told.contains("No action is required") && !told.contains("CCS_CHECKPOINT"), "{told}");
    // The session goes on working for its person.
    terminal.type_text("please load=971000 ");
    terminal.press_enter();
    terminal.wait_for("Answered with 971000.");
    terminal.wait_for("▏ 97%");
    assert_no_run(&world);
    assert_eq!(handoffs(&world).len(), 1);
    terminal.type_text("/exit");
    terminal.press_enter();
    let status = terminal.wait_exit();
    assert!(status.success(), "{status:?}");
    let ends = journal(&world);
    assert_eq!(events(&ends, "session_end").len(), 1, "{ends:#?}");
    assert_eq!(events(&ends, "session_end")[0]["reason"], "prompt_input_exit");
}

/// What `/autocompact 150k` writes: the client compacts at 117,000 of a million.
#[test]
fn a_compaction_window_of_the_model_is_warned_of_before_the_client_compacts() {
    let model = ScriptedModel::start(|request| {
        let text = request.text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::text(LAST_WORDS).usage(40_000),
            0 => Step::bash("echo a-step").usage(60_000),
            // A request holds what was called and what came of it. On a busy machine a hook reads the answer before its own.
            1..=2 => Step::bash("echo a-step").usage(96_000),
            3..=4 => Step::bash("echo a-step").usage(98_000),
            5..=6 => Step::bash("echo a-step").usage(100_000),
            _ => Step::bash("echo a-step").usage(118_000),
        }
        .delay(LIFELIKE)
    });
    let world = installed(&model);
    let settings = r#"{"modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#;
    world.write(world.home().join(".claude/settings.json"), settings);
    let arguments = ["-p", "Please do the work.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&arguments).run().expect_success();
    let all = model.requests();
    let compaction = all.iter().position(|request| request.kind == RequestKind::Compaction);
    let before = &all[..compaction.expect("the client compacts at 117,000")];
    let told = before.iter().map(Request::text).collect::<String>();
    assert!(told.contains("CCS_WARNING|L2|10|"), "{told}");
}
