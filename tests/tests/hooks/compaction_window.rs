//! The window in which the client compacts may be set for a model, and in the middle of a session: `/autocompact` does so. The
//! levels come before it.

use plimsoll_testkit::world::World;
use plimsoll_tests::put_run;
use serde_json::{Value, json};

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";
const FOR_OPUS: &str = r#"{"modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#;

/// A session that a run has begun, and that the monitor measures.
struct Session {
    world: World,
}

impl Session {
    fn start() -> Session {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        put_run(&world, RUN, SESSION);
        let session = Session { world };
        session
            .hook("plimsoll-session-start", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        session
    }

    fn hook(&self, program: &str, event: &Value) -> Value {
        let mut event = event.clone();
        event["session_id"] = SESSION.into();
        event["cwd"] = self.world.project().display().to_string().into();
        event["transcript_path"] = self.world.home().join("transcript.jsonl").display().to_string().into();
        let hook = self.world.hook(program, &event).env("PLIMSOLL_RUN_ID", RUN);
        let hook = hook.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        // At L3 it also exits with 1, for shells.
        serde_json::from_str(&hook.run().stdout).unwrap_or_default()
    }

    /// The level that is announced after an answer of this model with so many tokens.
    fn level_at(&self, model: &str, tokens: u64) -> Option<String> {
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": model, "timestamp": "2026-01-07T11:45:00.000Z",
            "message": {
                "id": format!("msg_{tokens}"), "model": model, "role": "assistant",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
                "usage": { "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
            },
        });
        self.world.write(self.world.home().join("transcript.jsonl"), &format!("{line}\n"));
        let call =
            json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "" });
        let batch = json!({ "hook_event_name": "PostToolBatch", "tool_calls": [call] });
        let answer = self.hook("plimsoll-post-tool", &batch);
        Some(answer["systemMessage"].as_str()?.split('|').nth(1)?.to_owned())
    }

    fn write_user_settings(&self, text: &str) {
        self.world.write(self.world.home().join(".claude/settings.json"), text);
    }
}

#[test]
fn a_window_that_is_set_for_the_model_in_mid_session_moves_the_levels() {
    let session = Session::start();
    assert_eq!(session.level_at("claude-opus-5-5", 102_000), None, "of a million");
    session.write_user_settings(FOR_OPUS);
    // The client compacts at 117,000 from now on.
    assert_eq!(session.level_at("claude-opus-5-5", 103_000).as_deref(), Some("L2"));
    let record = session.world.json(format!(".claude/plimsoll/sessions/{SESSION}.json"));
    assert_eq!(
        record["client_settings"]["compaction_windows"],
        json!([{"model": "claude-opus-5-5", "tokens": 150_000}]),
        "the next hook need not read the files again: {record:#}"
    );
}

#[test]
fn the_nearest_settings_file_that_names_the_model_or_all_models_counts() {
    let local = ".claude/settings.local.json";
    for (own, model, level) in [
        (None, "claude-opus-5-5", Some("L2")),
        (None, "us.anthropic.claude-opus-5-5-20261001-v1:0", Some("L2")),
        (None, "claude-fable-5", None),
        (Some(r#"{"autoCompactWindow": 900000}"#), "claude-opus-5-5", None),
        (
            Some(r#"{"modelSettings": {"claude-opus-5-5": {"autoCompactWindow": "auto"}}}"#),
            "claude-opus-5-5",
            None,
        ),
        (
            Some(r#"{"modelSettings": {"claude-fable-5": {"autoCompactWindow": 900000}}}"#),
            "claude-opus-5-5",
            Some("L2"),
        ),
        (Some("not JSON"), "claude-opus-5-5", Some("L2")),
    ] {
        let session = Session::start();
        session.write_user_settings(FOR_OPUS);
        if let Some(text) = own {
            session.world.write(local, text);
        }
        assert_eq!(session.level_at(model, 103_000).as_deref(), level, "{own:?} {model}");
    }
}

#[test]
fn the_variable_goes_before_the_settings_and_is_read_as_the_client_reads_it() {
    // Only what the client can read as a number hides the settings.
    for (value, alone, with_settings) in [
        ("150_000", Some("L2"), Some("L2")),
        ("150k", Some("L2"), Some("L2")),
        ("900,000", None, None),
        ("auto", None, Some("L2")),
        ("0", None, Some("L2")),
    ] {
        for (settings, level) in [("{}", alone), (FOR_OPUS, with_settings)] {
            let mut session = Session::start();
            session.world.set_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", value);
            session.write_user_settings(settings);
            assert_eq!(session.level_at("claude-opus-5-5", 103_000).as_deref(), level, "{value} {settings}");
        }
    }
}

/// Until 2.1.132 the totals were those of the whole session, without what was read from the cache.
#[test]
fn the_status_line_of_an_older_client_says_what_the_last_response_used() {
    let session = Session::start();
    assert_eq!(session.level_at("claude-sonnet-4-6", 90_000), None);
    let payload = json!({
        "session_id": SESSION, "cwd": session.world.project(), "version": "2.1.101",
        "transcript_path": session.world.home().join("transcript.jsonl"),
        "model": { "id": "claude-sonnet-4-6", "display_name": "Sonnet 4.6" },
        "workspace": { "current_dir": session.world.project(), "project_dir": session.world.project() },
        "cost": { "total_cost_usd": 0.05, "total_duration_ms": 18_136 },
        "context_window": {
            "total_input_tokens": 500, "total_output_tokens": 195, "context_window_size": 200_000,
            "current_usage": {
                "input_tokens": 130, "output_tokens": 70,
                "cache_creation_input_tokens": 1_000, "cache_read_input_tokens": 163_000
            },
            "used_percentage": 82, "remaining_percentage": 18
        },
    });
    let show = |payload: &Value| {
        let line = session.world.hook("plimsoll-statusline", payload).env("NO_COLOR", "1");
        line.run().expect_success().stdout
    };
    let line = show(&payload);
    insta::assert_snapshot!(line, @"Sonnet 4.6 │ project │ ⎇ main ?2 │ ▕████████████████┃░░░▏ 82% 164k/200k · 3k left │ ralph 1/5 │ $0.05");
    assert_eq!(session.level_at("claude-sonnet-4-6", 90_000).as_deref(), Some("L3"), "the newer figure");
    // After a compaction the client says 0 until the next response: that is not known.
    let mut zeros = payload;
    zeros["context_window"] = json!({
        "total_input_tokens": 0, "total_output_tokens": 0, "context_window_size": 200_000, "used_percentage": 0,
        "current_usage": {
            "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
        },
    });
    let line = show(&zeros);
    insta::assert_snapshot!(line, @"Sonnet 4.6 │ project │ ⎇ main ?2 │ ▕░░░░░░░░░░┆░┆░░░┃░░░▏ ? │ ralph 1/5 · 0/1 items · Item one · checkpoint 82% │ $0.05");
}
