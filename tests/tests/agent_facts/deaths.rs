//! A subagent that dies.

use crate::bench::{Bench, push};
use std::time::Duration;
use testkit::scripted_model::{RequestKind, Step};

fn death(name: &str, end: impl Fn() -> Step + Send + 'static, limit: bool) {
    let bench = Bench::new(move |request| match request.kind {
        RequestKind::Subagent if request.tool_results().is_empty() => Step::bash("echo frame-tool-ran").say("On the way."),
        RequestKind::Subagent => end(),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    let mut s = bench.session("Work.");
    if limit { s = s.env("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "1000"); }
    let finished = s.run();
    eprintln!("##### {name}: {:?} {} {:?}", finished.code, finished.result()["result"], finished.elapsed);
    let story = bench.story();
    eprintln!("{}", story.join("\n"));
    for noted in bench.noted() {
        if ["SubagentStop", "StopFailure", "PostToolUseFailure"].contains(&noted.event.as_str()) || (noted.event == "PostToolUse" && noted.payload["tool_name"] == "Agent") {
            eprintln!("{} {}", noted.event, noted.payload);
        }
    }
    eprintln!("requests {:?}", bench.model.requests().iter().map(|r| r.kind).collect::<Vec<_>>());
    let last = bench.model.main_requests().pop().unwrap();
    eprintln!("{}", last.body["messages"].as_array().unwrap().last().unwrap());
}

#[test]
fn d1() {
    death("400", || Step::error(400, "bad words"), false);
    death("500", || Step::error(500, "broken"), false);
    death("429", || Step::error(429, "slow down"), false);
    death("cut", || Step::text("half a text that is cut").cut(), false);
    death("sse", || Step::text("half").sse_error("overloaded_error", "busy"), false);
    death("too long", || Step::error(400, "prompt is too long: 210000 tokens > 200000 maximum"), false);
    death("hang", || Step::text("half").hang(Duration::from_secs(5)), false);
    death("refusal", || Step::text("no").stop_reason("refusal"), false);
    death("empty", || Step::default(), false);
    death("max_tokens", || Step::text("cut off").stop_reason("max_tokens"), false);
}
