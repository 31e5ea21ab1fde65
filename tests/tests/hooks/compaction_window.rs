//! The window that triggers the client's compaction can be set per model and during a session (`/autocompact`). The thresholds must
//! stay below it.

use plimsoll_testkit::world::World;
use plimsoll_tests::create_run;
use serde_json::{Value, json};

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";
const FOR_OPUS: &str = r#"{"modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#;

/// A session of a run, measured by the monitor.
struct MeasuredSession {
    world: World,
}

impl MeasuredSession {
    fn start() -> MeasuredSession {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        create_run(&world, RUN, SESSION);
        let session = MeasuredSession { world };
        session.run_hook(
            "plimsoll-session-start",
            &json!({"hook_event_name": "SessionStart", "source": "startup"}),
        );
        session
    }

    fn run_hook(&self, program: &str, event: &Value) -> Value {
        let mut event = event.clone();
        event["session_id"] = SESSION.into();
        event["cwd"] = self.world.project().display().to_string().into();
        event["transcript_path"] = self.world.home().join("transcript.jsonl").display().to_string().into();
        let hook = self.world.hook(program, &event).env("PLIMSOLL_RUN_ID", RUN);
        let hook = hook.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        // At L3 the hook also exits with 1, for shell loops.
        serde_json::from_str(&hook.run().stdout).unwrap_or_default()
    }

    /// Returns the level that the monitor announces after a response of this model with this many input tokens.
    fn level_announced_at(&self, model: &str, tokens: u64) -> Option<String> {
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
        let response = self.run_hook("plimsoll-post-tool", &batch);
        Some(plimsoll_tests::marker_in_user_message(&response).split('|').nth(1)?.to_owned())
    }

    fn write_user_settings(&self, text: &str) {
        self.world.write(self.world.home().join(".claude/settings.json"), text);
    }
}

#[test]
fn setting_the_models_window_mid_session_moves_the_levels() {
    let session = MeasuredSession::start();
    assert_eq!(session.level_announced_at("claude-opus-5-5", 102_000), None, "of a million");
    session.write_user_settings(FOR_OPUS);
    // With this setting the client compacts at 117,000 tokens.
    assert_eq!(session.level_announced_at("claude-opus-5-5", 103_000).as_deref(), Some("L2"));
    let record = session.world.read_json(format!(".claude/plimsoll/sessions/{SESSION}.json"));
    assert_eq!(
        record["client_settings"]["compaction_windows"],
        json!([{"model": "claude-opus-5-5", "tokens": 150_000}]),
        "the next hook need not read the files again: {record:#}"
    );
}

#[test]
fn nearest_settings_file_for_the_model_or_all_models_applies() {
    let local = ".claude/settings.local.json";
    for (local_settings, model, level) in [
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
        let session = MeasuredSession::start();
        session.write_user_settings(FOR_OPUS);
        if let Some(text) = local_settings {
            session.world.write(local, text);
        }
        assert_eq!(
            session.level_announced_at(model, 103_000).as_deref(),
            level,
            "{local_settings:?} {model}"
        );
    }
}

#[test]
fn window_variable_overrides_settings_and_is_parsed_like_in_the_client() {
    // The variable overrides the settings only if the client can parse it as a number.
    for (value, level_without_settings, level_with_settings) in [
        ("150_000", Some("L2"), Some("L2")),
        ("150k", Some("L2"), Some("L2")),
        ("900,000", None, None),
        ("auto", None, Some("L2")),
        ("0", None, Some("L2")),
    ] {
        for (settings, level) in [("{}", level_without_settings), (FOR_OPUS, level_with_settings)] {
            let mut session = MeasuredSession::start();
            session.world.set_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", value);
            session.write_user_settings(settings);
            assert_eq!(
                session.level_announced_at("claude-opus-5-5", 103_000).as_deref(),
                level,
                "{value} {settings}"
            );
        }
    }
}

/// Until 2.1.132 the totals covered the whole session and left out cache reads.
#[test]
fn old_clients_status_line_reports_the_usage_of_the_last_response() {
    let session = MeasuredSession::start();
    assert_eq!(session.level_announced_at("claude-sonnet-4-6", 90_000), None);
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
    let render_status_line = |payload: &Value| {
        let line = session.world.hook("plimsoll-statusline", payload).env("NO_COLOR", "1");
        line.run().expect_success().stdout
    };
    let line = render_status_line(&payload);
    insta::assert_snapshot!(line, @"Sonnet 4.6 │ project │ ⎇ main ?2 │ ▕████████████████┃░░░▏ 82% 164k/200k · 3k left │ ralph 1/5 │ $0.05");
    assert_eq!(
        session.level_announced_at("claude-sonnet-4-6", 90_000).as_deref(),
        Some("L3"),
        "the newer figure"
    );
    // After a compaction the client reports 0 until the next response, which means that the usage is unknown.
    let mut zeros = payload;
    zeros["context_window"] = json!({
        "total_input_tokens": 0, "total_output_tokens": 0, "context_window_size": 200_000, "used_percentage": 0,
        "current_usage": {
            "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
        },
    });
    let line = render_status_line(&zeros);
    insta::assert_snapshot!(line, @"Sonnet 4.6 │ project │ ⎇ main ?2 │ ▕░░░░░░░░░░┆░┆░░░┃░░░▏ ? │ ralph 1/5 · 0/1 items · Item one · checkpoint 82% │ $0.05");
}
