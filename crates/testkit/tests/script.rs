//! The scripted model, queried over a plain socket without the client.
#![expect(
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "a test of the test bench talks to the model over a plain socket"
)]
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn send(url: &str, head: &str, body: &str) -> String {
    let address = url.strip_prefix("http://").expect("a plain address");
    let mut stream = TcpStream::connect(address).expect("the model listens");
    let request = format!("{head} HTTP/1.1\r\nhost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("the model takes the request");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("the model answers");
    response
}

fn user_request(text: &str) -> Value {
    let message = json!({ "role": "user", "content": text });
    json!({ "model": "m", "tools": [{ "name": "Bash" }], "messages": [message] })
}

/// Sends a request and returns the text of a plain (not streamed) response.
fn request_text(model: &ScriptedModel, body: &Value) -> String {
    let response = send(&model.url(), "POST /v1/messages?beta=true", &body.to_string());
    let (_, body) = response.split_once("\r\n\r\n").expect("a head and a body");
    let message: Value = serde_json::from_str(body).expect("a JSON answer");
    message["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn steps_are_returned_in_order_and_the_last_one_repeats() {
    let model =
        ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("one"), Step::from_text("two")]);
    let answers: Vec<_> = (0..3).map(|_| request_text(&model, &user_request("x"))).collect();
    assert_eq!(answers, ["one", "two", "two"]);
}

#[test]
fn side_requests_and_compactions_do_not_use_up_steps() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("step")])
        .with_compaction_step(Step::from_text("summary"));
    let mut side = user_request("title please");
    side["tools"] = Value::Null;
    assert_eq!(request_text(&model, &side), "ok");
    let prompt = "CRITICAL: Respond with TEXT ONLY.\nYour task is to create a detailed summary of the conversation so far";
    assert_eq!(request_text(&model, &user_request(prompt)), "summary");
    assert_eq!(request_text(&model, &user_request("x")), "step");
    let kinds: Vec<_> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RequestKind::Auxiliary, RequestKind::Compaction, RequestKind::Main]);
}

#[test]
fn a_request_exposes_its_text_and_tool_results() {
    let model = ScriptedModel::start(|request: &Request| {
        Step::from_text(request.text_since_last_assistant_message())
    });
    let body = json!({
        "model": "m", "tools": [{ "name": "Bash" }], "system": [{ "type": "text", "text": "SYSTEM" }],
        "messages": [
            { "role": "user", "content": "first" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "files" }] },
            { "role": "system", "content": "from a hook" },
        ],
    });
    assert_eq!(request_text(&model, &body), "files\nfrom a hook");
    let request = &model.main_requests()[0];
    assert_eq!(request.full_text(), "SYSTEM\nfirst\n{\"command\":\"ls\"}\nfiles\nfrom a hook");
    assert_eq!(request.first_message_text(), "first");
    assert_eq!(request.all_tool_results(), [("t1".to_owned(), "files".to_owned())]);
    assert_eq!(request.body_bytes(), body.to_string().len());
}

#[test]
fn the_model_serves_errors_streams_and_other_paths() {
    let step = Step::api_error(429, "slow").with_header("retry-after", "7").with_error_type("my_error");
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        step,
        Step::from_text("äbc").with_text_in_deltas(3, Duration::ZERO),
        Step::from_text("x").with_cut_off_stream(),
    ]);
    let error = send(&model.url(), "POST /v1/messages", &user_request("x").to_string());
    assert!(
        error.starts_with("HTTP/1.1 429 ")
            && error.contains("retry-after: 7\r\n")
            && error.contains("my_error")
    );
    let mut streamed = user_request("x");
    streamed["stream"] = true.into();
    let stream = send(&model.url(), "POST /v1/messages", &streamed.to_string());
    assert_eq!(stream.matches("text_delta").count(), 3);
    assert!(stream.contains("event: message_stop\n"));
    assert!(!send(&model.url(), "POST /v1/messages", &streamed.to_string()).contains("message_stop"));
    assert!(
        send(&model.url(), "POST /v1/messages/count_tokens", "12345678").ends_with("{\"input_tokens\":2}")
    );
    assert!(send(&model.url(), "HEAD /", "").starts_with("HTTP/1.1 200 "));
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn dropping_a_model_cancels_its_delays() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("late").with_delay(Duration::from_secs(60)),
    ]);
    let url = model.url();
    let client = std::thread::spawn(move || send(&url, "POST /v1/messages", &user_request("x").to_string()));
    let start = Instant::now();
    while model.requests().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "the request arrives");
    }
    drop(model);
    client.join().expect("the connection was closed");
    assert!(start.elapsed() < Duration::from_secs(40));
}
