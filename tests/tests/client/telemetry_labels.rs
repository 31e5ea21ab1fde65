//! With the client's telemetry on, its metrics and logs carry the run, the iteration and the item, without further
//! settings by the user.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ScriptedAgent, honest_agent, run_with_objective, world_with_plan_and_dates};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// An HTTP server that receives exported telemetry, like a collector.
struct TelemetryReceiver {
    address: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl TelemetryReceiver {
    fn start() -> TelemetryReceiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let shared_bodies = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared_bodies = Arc::clone(&shared_bodies);
                std::thread::spawn(move || serve_connection(stream, &shared_bodies));
            }
        });
        TelemetryReceiver { address, bodies }
    }

    fn received_bodies(&self) -> Vec<String> {
        self.bodies.lock().expect("no panic").clone()
    }
}

/// Answers each request of a connection and stores its body.
fn serve_connection(mut stream: TcpStream, received_bodies: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend(&buffer[..count]);
        while let Some((head_length, body_length)) = parse_request_lengths(&bytes) {
            if bytes.len() < head_length + body_length {
                break;
            }
            let body: Vec<u8> = bytes.drain(..head_length + body_length).skip(head_length).collect();
            received_bodies.lock().expect("no panic").push(String::from_utf8_lossy(&body).into_owned());
            let response = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Returns the lengths in bytes of a request's head and body, or `None` while the head is incomplete.
fn parse_request_lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let head_length = text.find("\r\n\r\n")? + 4;
    let body_length =
        text[..head_length].split("content-length:").nth(1)?.split("\r\n").next()?.trim().parse().ok()?;
    Some((head_length, body_length))
}

#[test]
fn exported_telemetry_carries_the_run_iteration_and_item() {
    let receiver = TelemetryReceiver::start();
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n");
    for (name, value) in [
        ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address.as_str()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
        ("OTEL_LOGS_EXPORT_INTERVAL", "500"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=night"),
    ] {
        world.set_env(name, value);
    }
    let _model = ScriptedAgent::new(|turn| match (turn.item_text.as_deref(), turn.assistant_message_count) {
        (Some("Item one"), 0) => Step::bash_call("echo \"$TRACEPARENT\" > parent.txt; echo begun"),
        _ => honest_agent(turn),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let run_id = world.read_json(".claude/ralph-state.json")["run_id"].as_str().expect("an id").to_owned();
    let bodies = receiver.received_bodies();
    let attribute_json =
        |name: &str, value: &str| format!("{{\"key\":\"{name}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    for (name, value) in [
        ("plimsoll.run_id", run_id.as_str()),
        ("plimsoll.run_name", "Dates"),
        ("plimsoll.iteration", "1"),
        ("plimsoll.iteration", "2"),
        ("plimsoll.item", "Item one"),
        ("team", "night"),
    ] {
        let attribute = attribute_json(name, value);
        assert!(bodies.iter().any(|body| body.contains(&attribute)), "{attribute}: {bodies:#?}");
    }
    let cost = bodies.iter().find(|body| body.contains("claude_code.cost.usage")).expect("the client's cost");
    assert!(cost.contains(&attribute_json("plimsoll.run_id", &run_id)), "{cost}");
    // Every tool gets the run's trace in its environment.
    let traceparent = world.read("parent.txt");
    assert!(
        traceparent.starts_with("00-")
            && traceparent.trim().ends_with("-01")
            && traceparent.trim().len() == 55,
        "{traceparent:?}"
    );
}
