//! The server, asked without the client.
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
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the model answers");
    answer
}

fn request(text: &str) -> Value {
    let message = json!({ "role": "user", "content": text });
    json!({ "model": "m", "tools": [{ "name": "Bash" }], "messages": [message] })
}

/// The text of a plain (not streamed) answer.
fn ask(model: &ScriptedModel, body: &Value) -> String {
    let answer = send(&model.url(), "POST /v1/messages?beta=true", &body.to_string());
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let message: Value = serde_json::from_str(body).expect("a JSON answer");
    message["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn steps_come_in_turn_and_the_last_one_repeats() {
    let model = ScriptedModel::steps(vec![Step::text("one"), Step::text("two")]);
    let answers: Vec<_> = (0..3).map(|_| ask(&model, &request("x"))).collect();
    assert_eq!(answers, ["one", "two", "two"]);
}

#[test]
fn side_requests_and_compactions_do_not_use_up_steps() {
    let model = ScriptedModel::steps(vec![Step::text("step")]).compaction_answer(Step::text("summary"));
    let mut side = request("title please");
    side["tools"] = Value::Null;
    assert_eq!(ask(&model, &side), "ok");
    let prompt = "CRITICAL: Respond with TEXT ONLY.\nYour task is to create a detailed summary of the conversation so far";
    assert_eq!(ask(&model, &request(prompt)), "summary");
    assert_eq!(ask(&model, &request("x")), "step");
    let kinds: Vec<_> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RequestKind::Side, RequestKind::Compaction, RequestKind::Main]);
}

#[test]
fn a_request_is_read_as_the_model_sees_it() {
    let model = ScriptedModel::start(|request: &Request| Step::text(request.last_text()));
    let body = json!({
        "model": "m", "tools": [{ "name": "Bash" }], "system": [{ "type": "text", "text": "SYSTEM" }],
        "messages": [
            { "role": "user", "content": "first" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "files" }] },
            { "role": "system", "content": "from a hook" },
        ],
    });
    assert_eq!(ask(&model, &body), "files\nfrom a hook");
    let request = &model.main_requests()[0];
    assert_eq!(request.text(), "SYSTEM\nfirst\n{\"command\":\"ls\"}\nfiles\nfrom a hook");
    assert_eq!(request.first_text(), "first");
    assert_eq!(request.tool_results(), [("t1".to_owned(), "files".to_owned())]);
    assert_eq!(request.bytes(), body.to_string().len());
}

#[test]
fn errors_streams_and_other_paths_are_answered() {
    let step = Step::error(429, "slow").header("retry-after", "7").error_type("my_error");
    let model =
        ScriptedModel::steps(vec![step, Step::text("äbc").chunks(3, Duration::ZERO), Step::text("x").cut()]);
    let error = send(&model.url(), "POST /v1/messages", &request("x").to_string());
    assert!(
        error.starts_with("HTTP/1.1 429 ")
            && error.contains("retry-after: 7\r\n")
            && error.contains("my_error")
    );
    let mut streamed = request("x");
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
fn a_stopped_model_does_not_wait_for_its_own_delays() {
    let model = ScriptedModel::steps(vec![Step::text("late").delay(Duration::from_secs(60))]);
    let url = model.url();
    let client = std::thread::spawn(move || send(&url, "POST /v1/messages", &request("x").to_string()));
    let start = Instant::now();
    while model.requests().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "the request arrives");
    }
    drop(model);
    client.join().expect("the connection was closed");
    assert!(start.elapsed() < Duration::from_secs(40));
}
