//! `plimsoll turns` over the recorded transcripts: what each command prints, also after the transcripts are deleted.

use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RECORDED_SESSIONS: [&str; 8] = [
    "api_error.529_after_tool",
    "compaction",
    "hook_stopped",
    "interactive_1m_suffix",
    "natural_sizes",
    "parallel_tools",
    "stop_block",
    "subagent.main",
];

/// Returns a project with the recorded sessions. Their transcripts are deleted once the log has them.
fn world_of_recorded_sessions() -> World {
    let world = World::without_git();
    for session in RECORDED_SESSIONS {
        let path = format!("recorded/{session}.jsonl");
        let text = std::fs::read_to_string(fixtures_dir().join(format!("transcripts/{session}.jsonl")));
        world.write(&path, &text.expect("a fixture"));
        if session == "subagent.main" {
            let sidechain_path = fixtures_dir().join("transcripts/subagent.sidechain.jsonl");
            let sidechain_text = std::fs::read_to_string(sidechain_path).expect("a fixture");
            world.write("recorded/subagent.main/subagents/agent-a60bf2aa187041951.jsonl", &sidechain_text);
        }
        let end = json!({
            "session_id": session, "transcript_path": world.path(&path), "cwd": world.project(),
            "hook_event_name": "SessionEnd", "reason": "other",
        });
        let finished = world.hook("plimsoll-session-end", &end).run().expect_success();
        assert_eq!(finished.stderr, "");
    }
    std::fs::remove_dir_all(world.path("recorded")).expect("the transcripts");
    world
}

fn run_turns_command(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.plimsoll(&[&["turns"], arguments].concat()).env("COLUMNS", "120").env("TZ", "UTC").run()
}

fn listed_turn_names(world: &World, arguments: &[&str]) -> Vec<String> {
    let list_arguments = [&["list", "-n", "100"], arguments].concat();
    let shown = run_turns_command(world, &list_arguments).expect_success().stdout;
    shown.lines().map(|line| line.split_whitespace().next().expect("a name").to_owned()).collect()
}

#[test]
fn list_shows_the_main_streams_of_all_sessions_in_time_order() {
    let world = world_of_recorded_sessions();
    let names = listed_turn_names(&world, &[]);
    assert_eq!(names.len(), 27, "{names:?}");
    assert_eq!(names.first().map(String::as_str), Some("hook_sto:1"));
    assert_eq!(names.last().map(String::as_str), Some("natural_:10"));
    let shown = run_turns_command(&world, &[]).expect_success().stdout;
    assert_eq!(shown.lines().count(), 20, "the last twenty");
    assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
}

#[test]
fn each_list_filter_shows_only_the_matching_turns() {
    let world = world_of_recorded_sessions();
    for (arguments, expected) in [
        (&["--failures"][..], &["parallel:1", "api_erro:2", "natural_:8"][..]),
        (&["--tool", "glob"], &["parallel:1"]),
        (&["--file", "src.py", "--session", "natural"], &["natural_:4", "natural_:5", "natural_:7"]),
        (&["--text", "after-compact"], &["compacti:4"]),
        (&["--session", "subagent.main"], &["subagent:1", "subagent:2", "subagent:3"]),
        (
            &["--since", "2026-11-21T04:08:30Z"],
            &[
                "natural_:4",
                "natural_:5",
                "natural_:6",
                "natural_:7",
                "natural_:8",
                "natural_:9",
                "natural_:10",
            ],
        ),
        (&["--iteration", "3"], &[]),
    ] {
        assert_eq!(listed_turn_names(&world, arguments), expected, "{arguments:?}");
    }
    assert_eq!(listed_turn_names(&world, &["--all-streams"]).len(), 30);
    let without_match = run_turns_command(&world, &["list", "--session", "zzz"]);
    assert_eq!(without_match.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_match.stderr), @r#"error: no session here starts with "zzz": see `plimsoll turns list`"#);
}

#[test]
fn arc_001_and_dbg_002_every_listed_turn_has_the_eight_fields_by_name() {
    let world = world_of_recorded_sessions();
    let listed_turns: Vec<Value> =
        serde_json::from_str(&run_turns_command(&world, &["list", "-n", "100", "--json"]).stdout)
            .expect("an array");
    assert_eq!(listed_turns.len(), 27);
    let fields =
        ["number", "raw_response", "program", "result", "prints", "tool_calls", "memory", "success", "ext"];
    for turn in &listed_turns {
        let keys: BTreeSet<&str> = turn.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(fields), "{turn}");
        assert!(!turn["raw_response"].as_array().expect("blocks").is_empty(), "ARC-010");
    }
    let parallel =
        listed_turns.iter().find(|turn| turn["ext"]["session_id"] == "parallel_tools").expect("it");
    assert_eq!(parallel["success"], false);
    assert_eq!(parallel["result"]["reason"], "tool_error");
    assert_eq!(parallel["tool_calls"].as_array().map(Vec::len), Some(5));
    assert_eq!(parallel["prints"], json!(["A", "B"]));
    let program = parallel["program"].as_str().expect("a program");
    assert_eq!(program.lines().next(), Some(r#"Bash {"command":"echo A","description":"x"}"#), "DBG-001");
}

#[test]
fn show_prints_large_pieces_completely() {
    let world = world_of_recorded_sessions();
    let turn = run_turns_command(&world, &["show", "natural_:6", "--json"]).expect_success().stdout_json();
    let content = turn["tool_calls"][0]["args"]["content"].as_str().expect("a content");
    assert!(content.len() > 20_000, "{}", content.len());
    let program = run_turns_command(&world, &["show", "natural_:6", "--program"]).expect_success().stdout;
    assert!(program.contains(&content[content.len() - 100..].replace('\n', "\\n")), "the program is whole");
    let raw = run_turns_command(&world, &["show", "natural_:6", "--raw"]).expect_success().stdout;
    assert_eq!(raw.lines().count(), turn["raw_response"].as_array().expect("blocks").len());
}

#[test]
fn show_prints_one_turn_and_with_saw_the_context_before_it() {
    let world = world_of_recorded_sessions();
    let shown = run_turns_command(&world, &["show", "parallel:1"]).expect_success().stdout;
    insta::assert_snapshot!(shown, @"
    Turn parallel:1   Sat 21 Nov 03:10:45   (record 11)
    Session  parallel_tools, stream main
    Model    claude-opus-5-5, stopped for tool_use, reasoning none
    Tokens   10 input (0 from the cache), 50 output
    Failed   tool_error: Exit code 3

    w

    → Bash(echo A)   [ok, 0.4 s]
      | A

    → Bash(sleep 0.2; echo B)   [ok, 0.6 s]
      | B

    → Bash(exit 3)   [failed, 0.9 s]
      | Exit code 3

    → Read(/etc/hostname)   [ok, 1.1 s]
      | 1	vm
      | 2	

    → Glob(*.zzz)   [failed, 0.1 s]
      | <tool_use_error>Error: No such tool available: Glob. Glob is not available in this session — find files with `find` via the Bash tool instead.</tool_use_error>
    ");
    let context_before_turn =
        |turn: &str| run_turns_command(&world, &["show", turn, "--saw"]).expect_success().stdout;
    insta::assert_snapshot!(context_before_turn("parallel:2"), @"
    ── hook_additional_context PostToolUse:Bash
    <text 84 chars>
    ── hook_additional_context PostToolUse:Bash
    <text 84 chars>
    ── hook_additional_context PostToolUse:Read
    <text 84 chars>
    ── hook_additional_context PostToolBatch
    <text 84 chars>
    ");
    insta::assert_snapshot!(context_before_turn("parallel:1"), @"
    ── prompt
    do it
    ── environment
    <text 813 chars>
    ── model
    <text 161 chars>
    ── deferred_tools_delta
    <text 404 chars>
    ── agent_listing_delta
    <text 1673 chars>
    ── skill_listing
    <text 6312 chars>
    ── auto_mode
    <text 530 chars>
    ── session_context
    <text 559 chars>
    ── date
    <text 64 chars>
    ── remote_session_change
    <text 579 chars>
    ");
    let usage = run_turns_command(&world, &["show", "parallel:1", "--usage"]).expect_success().stdout_json();
    assert_eq!(usage["output_tokens"], 50);
    for name in ["1", "record:11"] {
        let by_number =
            run_turns_command(&world, &["show", name, "--session", "parallel"]).expect_success().stdout;
        assert_eq!(by_number, shown, "{name}");
    }
    let linked = run_turns_command(&world, &["show", "subagent:1"]).expect_success().stdout;
    insta::assert_snapshot!(linked, @"
    Turn subagent:1   Sat 21 Nov 03:42:41   (record 11)
    Session  subagent.main, stream main
    Model    claude-opus-5-5, stopped for tool_use, reasoning none
    Tokens   5k input (5k from the cache), 50 output

    delegating

    → Agent(alpha)   [ok, 1.1 s, subagent a60bf2aa187041951]
      | <text 747 chars>
    ");
    let missing = run_turns_command(&world, &["show", "parallel:9"]);
    assert_eq!(missing.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&missing.stderr), @"error: there is no turn parallel:9: name it as `plimsoll turns list` does, SESSION:NUMBER");
}

#[test]
fn grep_and_query_find_the_matching_turns() {
    let world = world_of_recorded_sessions();
    let matches = run_turns_command(&world, &["grep", "-i", "NO SUCH tool"]).expect_success().stdout;
    insta::assert_snapshot!(matches, @"parallel:1  result: <tool_use_error>Error: No such tool available: Glob. Glob is not available in this session — find f…");
    assert_eq!(run_turns_command(&world, &["grep", "not anywhere at all"]).code, Some(1), "as grep says it");
    insta::assert_snapshot!(run_turns_command(&world, &["grep", "("]).stderr, @"
    error: the pattern cannot be read: regex parse error:
        (
        ^
    error: unclosed group
    ");
    let failed =
        world.plimsoll(&["query", "--on", "turns", "-r", "select(.success | not) | .result.reason"]).run();
    let reasons: BTreeSet<&str> = failed.stdout.lines().collect();
    assert_eq!(reasons, BTreeSet::from(["api_error", "tool_error"]), "{failed:?}");
}

#[test]
fn stats_agree_with_the_clients_own_account() {
    let world = world_of_recorded_sessions();
    // The client's account also includes the requests that are no turn: titles, the summary of a compaction.
    for session in ["parallel_tools", "natural_sizes", "stop_block", "hook_stopped", "api_error"] {
        let stats = run_turns_command(&world, &["stats", "--session", session, "--json"])
            .expect_success()
            .stdout_json();
        assert_eq!(stats["client_account"], stats["turns_account"], "{session}: {stats}");
        assert!(stats["cost_usd"].as_f64().is_some_and(|usd| usd > 0.0), "{stats}");
    }
    let all_stats = run_turns_command(&world, &["stats", "--json"]).expect_success().stdout_json();
    assert_eq!(
        (&all_stats["turns"], &all_stats["sessions"], &all_stats["compactions"]),
        (&json!(27), &json!(8), &json!(1))
    );
    assert_eq!(all_stats["failures"], json!({"api_error": 1, "tool_error": 2}));
    assert_eq!(all_stats["tools"]["Bash"]["failed"], 2);
    let stats_text = run_turns_command(&world, &["stats"]).expect_success().stdout;
    insta::assert_snapshot!(stats_text, @"
    Turns      27 in 8 sessions, 3 failed (1 api_error, 2 tool_error)
    Tokens     1.8M input (1.5M from the cache), 14k output; median per turn: 14k input, 50 output
    Window     peak 976k tokens, 1 compaction; added per turn: median 1k, 90th percentile 47k
    Cost       $1.53 as reported by Claude Code, which counts 1.9M input and 15k output tokens, the turns 1.9M and 14k: Claude Code also requests titles and summaries
    Subagents  about 20k tokens stayed with 1 subagent

    Tool                      calls  failed   seconds  tokens added     median  90th percentile
    Bash                         16       2       7.5          1.3M        950              45k
    Edit                          1       0       0.1           42k        42k              42k
    Read                          5       0       1.5           33k          0                0
    Agent                         1       0       1.1           950        950              950
    Glob                          1       1       0.1             0          0                0
    Write                         1       0       0.1             0          0                0
    ");
}

#[test]
fn verify_names_a_changed_record_and_erase_keeps_the_chain_valid() {
    let world = world_of_recorded_sessions();
    let verified = run_turns_command(&world, &["verify"]).expect_success().stdout;
    let mut verified: Vec<&str> = verified.lines().collect();
    verified.sort_unstable();
    insta::assert_snapshot!(verified.join("\n"), @"
    api_error.529_after_tool  intact: 14 records, 2 turns
    compaction  intact: 26 records, 4 turns
    hook_stopped  intact: 15 records, 1 turn
    interactive_1m_suffix  intact: 18 records, 3 turns
    natural_sizes  intact: 22 records, 10 turns
    parallel_tools  intact: 18 records, 2 turns
    stop_block  intact: 16 records, 2 turns
    subagent.main  intact: 28 records, 6 turns
    ");
    let secret = "after-compact";
    let log = ".claude/plimsoll/turns/compaction.jsonl";
    assert!(world.read(log).contains(secret));
    let erased = run_turns_command(&world, &["erase", "compacti:4"]).expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&erased), @"
    compacti:4 (record 24)
    1 record erased here permanently. Claude Code's own transcript keeps the contents until Claude Code deletes it.
    ");
    assert!(!world.read(log).contains(secret));
    let verified = run_turns_command(&world, &["verify", "--session", "compaction"]).expect_success().stdout;
    insta::assert_snapshot!(verified, @"
    compaction  intact: 27 records, 4 turns, 1 erased
      · line 24, record 24: erased
    ");
    insta::assert_snapshot!(run_turns_command(&world, &["list", "--session", "compaction"]).stdout, @"
    compacti:1    Sat 21 Nov 03:36:24    21k  ok           Bash(echo x) — w
    compacti:2    Sat 21 Nov 03:36:25    31k  ok           Bash(echo x) — w
    compacti:3    Sat 21 Nov 03:36:26   976k  ok           Bash(echo x) — w
    compacti:4    Sat 21 Nov 03:36:28     6k  ok           [erased]
    ");
    insta::assert_snapshot!(run_turns_command(&world, &["show", "compacti:4"]).stdout, @"compacti:4 [erased]");

    let log = ".claude/plimsoll/turns/stop_block.jsonl";
    world.write(log, &world.read(log).replace("reply one", "reply two"));
    let changed = run_turns_command(&world, &["verify"]);
    assert_eq!(changed.code, Some(1));
    let report = changed.stdout.split_once("stop_block").map(|(_, report)| report).expect("the session");
    let report: Vec<&str> = report.lines().take(2).collect();
    insta::assert_snapshot!(report.join("\n"), @"
    DAMAGED: 16 records, 2 turns
    ! line 11, record 11: its content is not what was written
    ");
}

#[test]
fn sync_reads_a_transcript_that_no_hook_saw_and_repeats_no_turn() {
    let world = World::without_git();
    let none = run_turns_command(&world, &["list"]);
    assert_eq!(none.code, Some(0));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&none.stderr), @"No turn has been recorded in [PROJECT]: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`.");
    let file = fixtures_dir().join("transcripts/parallel_tools.jsonl").display().to_string();
    assert_eq!(run_turns_command(&world, &["sync", &file]).expect_success().stdout, "2 new turns\n");
    assert_eq!(run_turns_command(&world, &["sync", &file]).expect_success().stdout, "0 new turns\n");
    assert_eq!(listed_turn_names(&world, &[]), ["parallel:1", "parallel:2"]);
    insta::assert_snapshot!(run_turns_command(&world, &["sync", "/no/such/file"]).stderr, @"error: /no/such/file is not a transcript: expected a file SESSION.jsonl");
}

#[test]
fn the_last_twenty_of_a_hundred_thousand_turns_are_listed_within_100_ms() {
    use std::fmt::Write;
    const TURNS: usize = 100_000;
    let world = World::without_git();
    let mut text = String::with_capacity(TURNS * 520);
    for n in 0..TURNS {
        let at = format!(
            "2026-01-07T{:02}:{:02}:{:02}.{:03}Z",
            n / 36_000,
            n / 600 % 60,
            n / 10 % 60,
            n % 10 * 100
        );
        writeln!(text, r#"{{"type":"assistant","timestamp":"{at}","message":{{"id":"m{n}","role":"assistant","content":[{{"type":"tool_use","id":"t{n}","name":"Bash","input":{{"command":"sed -n {n}p a"}}}}],"stop_reason":"tool_use","usage":{{"input_tokens":{n},"output_tokens":5}}}}}}"#).unwrap();
        writeln!(text, r#"{{"type":"user","timestamp":"{at}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{n}","content":"line {n}"}}]}}}}"#).unwrap();
    }
    world.write("many.jsonl", &text);
    let file = world.path("many.jsonl").display().to_string();
    assert_eq!(run_turns_command(&world, &["sync", &file]).expect_success().stdout, "100000 new turns\n");
    std::fs::remove_file(&file).expect("the transcript");
    let times: Vec<_> =
        (0..5).map(|_| run_turns_command(&world, &["list"]).expect_success().elapsed).collect();
    let best = times.iter().min().expect("five");
    assert!(best.as_millis() <= 100, "{times:?}");
    let shown = run_turns_command(&world, &["list"]).stdout;
    assert_eq!(shown.lines().count(), 20);
    assert!(shown.lines().last().is_some_and(|line| line.starts_with("many:100000")), "{shown}");
}
