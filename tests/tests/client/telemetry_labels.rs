//! With the client's telemetry on, its metrics and logs carry the run, the iteration and the item, without a word of the user's.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ScriptedAgent, honest, run, world};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Takes what is exported over HTTP, as a collector does.
struct Receiver {
    address: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Receiver { address, bodies }
    }

    fn all(&self) -> Vec<String> {
        self.bodies.lock().expect("no panic").clone()
    }
}

/// Answers each request of a connection.
fn serve(mut stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend(&buffer[..count]);
        while let Some((head, length)) = request(&bytes) {
            if bytes.len() < head + length {
                break;
            }
            let body: Vec<u8> = bytes.drain(..head + length).skip(head).collect();
            kept.lock().expect("no panic").push(String::from_utf8_lossy(&body).into_owned());
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// How long the head of a request is, and its body.
fn request(bytes: &[u8]) -> Option<(usize, usize)> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let head = text.find("\r\n\r\n")? + 4;
    let length = text[..head].split("content-length:").nth(1)?.split("\r\n").next()?.trim().parse().ok()?;
    Some((head, length))
}

#[test]
fn what_the_client_exports_carries_run_iteration_and_item() {
    let receiver = Receiver::start();
    let mut world = world("# Plan\n\n- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n");
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
    let _model = ScriptedAgent::new(|turn| match (turn.item.as_deref(), turn.step) {
        (Some("Item one"), 0) => Step::bash("echo \"$TRACEPARENT\" > parent.txt; echo begun"),
        _ => honest(turn),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let run_id = world.json(".claude/ralph-state.json")["run_id"].as_str().expect("an id").to_owned();
    let all = receiver.all();
    let labelled =
        |name: &str, value: &str| format!("{{\"key\":\"{name}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    for (name, value) in [
        ("plimsoll.run_id", run_id.as_str()),
        ("plimsoll.run_name", "Dates"),
        ("plimsoll.iteration", "1"),
        ("plimsoll.iteration", "2"),
        ("plimsoll.item", "Item one"),
        ("team", "night"),
    ] {
        let mark = labelled(name, value);
        assert!(all.iter().any(|body| body.contains(&mark)), "{mark}: {all:#?}");
    }
    let cost = all.iter().find(|body| body.contains("claude_code.cost.usage")).expect("the client's cost");
    assert!(cost.contains(&labelled("plimsoll.run_id", &run_id)), "{cost}");
    // The run's trace, in the environment of every tool.
    let parent = world.read("parent.txt");
    assert!(
        parent.starts_with("00-") && parent.trim().ends_with("-01") && parent.trim().len() == 55,
        "{parent:?}"
    );
}
