//! The price table, compared with the real client: usage as input, `total_cost_usd` as output.

use plimsoll_policy::prices::{BilledTokens, PRICE_TABLE, Tariff};
use plimsoll_protocol::billing::BilledUsage;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_tests::world_with_plan_and_dates;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Returns a usage with counts for which no two wrong prices can compensate each other, and with these fields changed.
fn usage_with(changed_fields: &Value) -> Value {
    let mut usage = json!({
        "input_tokens": 1_009, "output_tokens": 2_003, "cache_read_input_tokens": 40_009,
        "cache_creation_input_tokens": 10_007,
        "cache_creation": {"ephemeral_5m_input_tokens": 3_001, "ephemeral_1h_input_tokens": 7_006},
    });
    for (field, value) in changed_fields.as_object().into_iter().flatten() {
        usage[field] = value.clone();
    }
    usage
}

/// Returns usages with one kind of token each, and with each field that changes the price.
fn single_kind_usages() -> Vec<Value> {
    let zero_usage = json!({"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0});
    [
        json!({"input_tokens": 10_000}),
        json!({"output_tokens": 10_000}),
        json!({"cache_read_input_tokens": 10_000}),
        json!({"cache_creation_input_tokens": 10_000}),
        json!({"cache_creation_input_tokens": 10_000, "cache_creation": {"ephemeral_1h_input_tokens": 10_000}}),
        json!({"cache_creation": {"ephemeral_5m_input_tokens": 5_000, "ephemeral_1h_input_tokens": 5_000}}),
        json!({"server_tool_use": {"web_search_requests": 3}, "speed": "fast", "inference_geo": "us"}),
        json!({"input_tokens": 10_000, "inference_geo": "eu", "service_tier": "priority"}),
        // More than 200,000 tokens of context cost the same.
        json!({"cache_read_input_tokens": 250_000}),
        json!({}),
    ]
    .into_iter()
    .map(|kind| {
        let mut usage = zero_usage.clone();
        usage.as_object_mut().expect("an object").extend(kind.as_object().expect("an object").clone());
        usage
    })
    .collect()
}

/// Returns the model id to request from the client for a row of the table.
fn model_id(family: &str) -> String {
    match family {
        // On Anthropic's own API the client replaces this model by the newest Opus.
        "opus-4-1" => "us.anthropic.claude-opus-4-1-20250805-v1:0".to_owned(),
        _ => format!("claude-{family}"),
    }
}

/// Returns the turns of the session: a model, and the usage that its response reports.
fn session_turns() -> Vec<(String, Value)> {
    let mut turns: Vec<(String, Value)> =
        single_kind_usages().into_iter().map(|usage| ("claude-opus-5-5".to_owned(), usage)).collect();
    for row in PRICE_TABLE {
        turns.push((model_id(row.model), usage_with(&json!({"speed": "fast", "inference_geo": "us"}))));
        // Without a speed factor the previous turn has covered all prices of the model.
        if row.fast_factor > 1.0 {
            turns.push((model_id(row.model), usage_with(&json!({}))));
        }
    }
    for name in [
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5[1m]",
        "claude-sonnet-4-5@20250929",
        "claude-sonnet-4-0",
    ] {
        turns.push((name.to_owned(), usage_with(&json!({}))));
    }
    turns
}

#[test]
fn every_price_of_the_table_matches_the_cost_that_the_client_reports() {
    let turns = Arc::new(session_turns());
    let next = Arc::new(AtomicUsize::new(0));
    let requested_models = Arc::new(Mutex::new(Vec::new()));
    let mut world = world_with_plan_and_dates("# Plan\n");
    let model = ScriptedModel::start({
        let (turns, next, requested_models) =
            (Arc::clone(&turns), Arc::clone(&next), Arc::clone(&requested_models));
        move |request| {
            requested_models.lock().expect("no panic").push(request.model.clone());
            let (_, usage) = &turns[next.fetch_add(1, Ordering::SeqCst).min(turns.len() - 1)];
            Step::from_text("ok").with_extra_usage_fields(usage)
        }
    });
    world.put_client_on_path_with_model_and_settings(&model);
    let client = plimsoll_testkit::client::find_claude_from_env_or_install_pinned();
    let mut session = Command::new(client)
        .args([
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            "opus",
        ])
        .current_dir(world.project())
        .env_clear()
        // This session is long enough to benefit from the client's JIT compiler.
        .envs(world.env_with_programs_on_path().into_iter().filter(|(name, _)| !name.starts_with("BUN_JSC_")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the client starts");
    let mut stdin = session.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(session.stdout.take().expect("a pipe")).lines();
    let mut mismatches = Vec::new();
    let mut total = 0.0;
    for (number, (model, usage)) in turns.iter().enumerate() {
        let set_model = json!({"type": "control_request", "request_id": format!("r{number}"),
            "request": {"subtype": "set_model", "model": model}});
        let prompt = json!({"type": "user", "parent_tool_use_id": null,
            "message": {"role": "user", "content": [{"type": "text", "text": "Go on."}]}});
        writeln!(stdin, "{set_model}\n{prompt}").expect("the client reads");
        let result = loop {
            let line = lines.next().expect("a result").expect("a line");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["type"] == "result" {
                break line;
            }
        };
        let reported = result["total_cost_usd"].as_f64().expect("a cost");
        let billed = BilledUsage::from_value(usage);
        let expected = Tariff::new(Some(model), &billed)
            .price_usd_or_highest_if_unlisted(BilledTokens::from_usage(&billed));
        if (reported - total - expected).abs() > 1e-9 {
            mismatches.push(format!("{model} {usage}: {} instead of {expected}", reported - total));
        }
        total = reported;
    }
    drop(stdin);
    let status = session.wait().expect("the client ends");
    assert!(status.success(), "{status}");
    assert_eq!(mismatches, Vec::<String>::new());
    let requested_models = requested_models.lock().expect("no panic").clone();
    assert_eq!(requested_models.len(), turns.len(), "one request a turn");
    assert!(
        requested_models.iter().any(|model| model.contains("opus-4-1")),
        "it was not replaced: {requested_models:?}"
    );
}
