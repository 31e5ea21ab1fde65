//! The cost that `plimsoll usage` computes, reconciled with the cost that the real client reports.

use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE_DELAY;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

const SESSION_ID: &str = "11111111-1111-4111-8111-111111111111";

/// Plays a main conversation that calls one subagent per prompt. Each response has another usage, with cache writes of both
/// durations.
fn start_model() -> ScriptedModel {
    let response_count = AtomicU64::new(0);
    ScriptedModel::start(move |request| {
        let number = response_count.fetch_add(1, Ordering::SeqCst) + 1;
        let usage = json!({
            "input_tokens": 100 * number, "output_tokens": 30 * number, "cache_read_input_tokens": 20_000 + number,
            "cache_creation_input_tokens": 3_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
        });
        let has_subagent_answered = request.text_since_last_assistant_message().contains("looked around");
        let step = match request.kind {
            RequestKind::Subagent => Step::from_text("I looked around."),
            _ if has_subagent_answered => Step::from_text("Done."),
            _ => Step::default().with_tool_call(
                "Agent",
                json!({"description": "look around", "prompt": "Look.", "subagent_type": "Explore"}),
            ),
        };
        step.with_extra_usage_fields(&usage).with_delay(LIFELIKE_DELAY)
    })
}

/// Runs one prompt and returns the result object.
fn run_prompt(world: &World, session_arguments: &[&str]) -> Value {
    let arguments = ["-p", "Look around", "--model", "opus", "--allowedTools", "Agent"];
    let output_arguments = ["--output-format", "stream-json", "--verbose"];
    let arguments = [&arguments[..], session_arguments, &output_arguments].concat();
    world.claude(&arguments).run().expect_success().last_result()
}

fn usage_json(world: &World, list: &[&str]) -> Value {
    world.plimsoll(&[&["usage"], list, &["--json"]].concat()).run().expect_success().stdout_json()
}

fn assert_within_one_percent(document: &Value, expected_usd: f64) {
    let usd = document["totals"]["cost_usd"].as_f64().unwrap();
    assert!(
        (usd - expected_usd).abs() <= expected_usd / 100.0,
        "{usd} instead of {expected_usd}: {document:#}"
    );
}

#[test]
fn both_prices_of_resumed_forked_and_killed_sessions_agree_with_the_client() {
    let model = start_model();
    let mut world = World::without_plimsoll_files();
    world.put_client_on_path_with_model_and_settings(&model);
    run_prompt(&world, &["--session-id", SESSION_ID]);
    let resumed = run_prompt(&world, &["--resume", SESSION_ID]);
    let forked = run_prompt(&world, &["--resume", SESSION_ID, "--fork-session"]);
    let usd = |result: &Value| result["total_cost_usd"].as_f64().unwrap();
    assert!(usd(&forked) > usd(&resumed), "the fork continues the count: {forked:#}");

    // The original goes on, and does not know of the fork.
    let resumed_again = run_prompt(&world, &["--resume", SESSION_ID]);
    let expected_usd = usd(&forked) + usd(&resumed_again) - usd(&resumed);

    let reported = usage_json(&world, &[]);
    assert!((reported["totals"]["cost_usd"].as_f64().unwrap() - expected_usd).abs() < 1e-9, "{reported:#}");
    assert_eq!(reported["totals"]["cost_basis"], "reported");
    assert!(reported["totals"]["responses"].as_u64().unwrap() >= 12, "three of each prompt: {reported:#}");
    assert!(reported["totals"]["subagents"]["total_tokens"].as_u64().unwrap() >= 4 * 23_000, "{reported:#}");
    assert_eq!(reported["projects"][0]["project"], world.project().display().to_string());
    let arguments = ["sessions", "--search", "look AROUND", "--json"];
    let sessions = world.plimsoll(&arguments).run().expect_success().stdout_json();
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions:#}");
    assert_eq!(sessions[0]["session_id"], SESSION_ID, "the newest first");
    assert_eq!(sessions[1]["session_id"], forked["session_id"]);
    assert_eq!(sessions[0]["first_request"], "Look around");
    let sum: f64 =
        sessions.as_array().unwrap().iter().map(|session| session["cost_usd"].as_f64().unwrap()).sum();
    assert!((sum - expected_usd).abs() < 1e-9, "{sessions:#}");

    // The command resumes the session, also in the client.
    let resume_command = sessions[0]["resume_command"].as_str().unwrap();
    assert!(resume_command.ends_with(&format!("claude --resume {SESSION_ID}")), "{resume_command}");
    let script = format!("{resume_command} -p 'Look again' --model opus --output-format json");
    let resumed_by_command =
        world.command("sh", &["-c", &script]).cwd("/").run().expect_success().stdout_json();
    assert_eq!(resumed_by_command["session_id"], SESSION_ID);

    // After SIGKILL no process reports anything. The price table gives the same cost.
    let expected = usage_json(&world, &[])["totals"]["cost_usd"].as_f64().unwrap();
    for transcript in world.transcript_paths() {
        let text = std::fs::read_to_string(&transcript).unwrap();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.contains("\"type\":\"cost-state\"")).collect();
        std::fs::write(&transcript, lines.join("\n") + "\n").unwrap();
    }
    let estimated = usage_json(&world, &[]);
    assert_eq!(estimated["totals"]["cost_basis"], "estimated");
    assert_within_one_percent(&estimated, expected);
    println!("reported ${expected:.6}, estimated ${}", estimated["totals"]["cost_usd"]);
}
