//! The tokens that items are charged with: the growth of the session's context up to their ticks, each token once.

use plimsoll_testkit::world::World;
use plimsoll_tests::put_run;
use serde_json::{Value, json};

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";
/// Before and after everything that a test does.
const PAST: &str = "2026-01-07T11:45:00.000Z";
const FUTURE: &str = "2999-01-07T11:45:00.000Z";

/// A session of a run, whose transcript and plan a test writes.
struct Session {
    world: World,
    lines: Vec<Value>,
}

impl Session {
    fn start(plan: &str) -> Session {
        let world = World::new();
        world.write("fix_plan.md", plan);
        put_run(&world, RUN, SESSION);
        let session = Session { world, lines: Vec::new() };
        session.call_hook("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
        session
    }

    fn call_hook(&self, program: &str, event: &str, more: Value) {
        let mut payload = json!({
            "session_id": SESSION, "transcript_path": self.world.home().join("transcript.jsonl"),
            "cwd": self.world.project(), "hook_event_name": event,
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let hook = self.world.hook(program, &payload).env("PLIMSOLL_RUN_ID", RUN);
        let finished = hook.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string()).run();
        assert!(finished.code.is_some_and(|code| code < 2) && finished.stderr.is_empty(), "{finished:?}");
    }

    /// A response after a request of so many tokens, which makes this call.
    fn respond(&mut self, at: &str, usage: u64, input: &Value) {
        let number = self.lines.len();
        self.lines.push(json!({
            "type": "assistant", "isSidechain": false, "timestamp": at,
            "message": {
                "id": format!("msg_{number}"), "model": "claude-opus-5-5", "role": "assistant",
                "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Edit", "input": input}],
                "usage": {"input_tokens": usage, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                    "output_tokens": 0},
            },
        }));
        self.write_transcript();
    }

    fn write_transcript(&self) {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        self.world.write(self.world.home().join("transcript.jsonl"), &text);
    }

    fn work(&mut self, usage: u64) {
        let path = self.world.path("src/dates.txt");
        self.respond(PAST, usage, &json!({"file_path": path, "old_string": "a", "new_string": "b"}));
    }

    fn look(&mut self, usage: u64) {
        self.respond(PAST, usage, &json!({"file_path": self.world.path("src/dates.txt")}));
    }

    fn tick(&mut self, usage: u64, item: &str) {
        let (open, done) = (format!("- [ ] {item}"), format!("- [x] {item}"));
        let path = self.world.path("fix_plan.md");
        self.respond(PAST, usage, &json!({"file_path": path, "old_string": open, "new_string": done}));
        let plan = self.world.read("fix_plan.md").replace(&open, &done);
        self.world.write("fix_plan.md", &plan);
    }

    fn stop(&self) {
        self.call_hook("plimsoll-stop-gate", "Stop", json!({"stop_hook_active": false}));
    }

    fn end(&self) {
        self.call_hook("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
    }

    /// The tokens of the measured items, and the open items with theirs.
    fn costs(&self) -> (Vec<u64>, Vec<(String, u64)>) {
        let state = self.world.json(".claude/ralph-state.json");
        let tokens = |cost: &Value| cost["tokens"].as_u64().expect("tokens");
        let growth = state["growth"].as_array().into_iter().flatten().map(tokens).collect();
        let open = state["begun"].as_array().into_iter().flatten();
        (
            growth,
            open.map(|cost| (cost["item"].as_str().expect("an item").to_owned(), tokens(cost))).collect(),
        )
    }
}

fn open(item: &str, tokens: u64) -> Vec<(String, u64)> {
    vec![(item.to_owned(), tokens)]
}

const THREE: &str = "- [ ] one\n- [ ] two\n- [ ] three\n";

#[test]
fn an_item_is_charged_with_the_growth_between_the_tick_before_it_and_its_own() {
    let mut session = Session::start(THREE);
    session.work(30_000);
    session.tick(130_000, "one");
    session.work(140_000);
    session.tick(150_000, "two");
    session.look(153_000);
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 23_000], vec![]));
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 23_000], vec![]));
}

#[test]
fn over_several_stops_the_items_are_charged_with_the_growth_once() {
    let mut session = Session::start(THREE);
    session.work(30_000);
    session.tick(130_000, "one");
    session.stop();
    assert_eq!(session.costs(), (vec![100_000], vec![]));
    // A hook of the user's own keeps the session going: nothing was offered.
    session.work(150_000);
    session.stop();
    session.tick(200_000, "two");
    session.work(230_000);
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 70_000], vec![]), "the rest is the next item's");
    session.look(231_000);
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 70_000], open("three", 31_000)), "201k in all");
}

#[test]
fn closing_words_after_a_measured_tick_belong_to_that_item() {
    let mut session = Session::start(THREE);
    session.work(30_000);
    session.tick(130_000, "one");
    session.stop();
    session.look(135_000);
    session.end();
    assert_eq!(session.costs(), (vec![105_000], vec![]));
}

#[test]
fn the_time_of_the_plan_tells_when_a_script_ticked_an_item() {
    for (what, is_time_known, expected) in [
        ("the next item is begun after it", true, (vec![40_000], open("two", 30_000))),
        ("somebody has written the plan since", false, (vec![70_000], vec![])),
    ] {
        let mut session = Session::start(THREE);
        session.work(30_000);
        session.work(70_000);
        session.world.write("fix_plan.md", &THREE.replace("[ ] one", "[x] one"));
        let edit = json!({"file_path": session.world.path("src/next.txt"), "content": "new"});
        session.respond(if is_time_known { FUTURE } else { PAST }, 100_000, &edit);
        session.end();
        assert_eq!(session.costs(), expected, "{what}");
    }
}

#[test]
fn a_transcript_that_another_program_replaced_charges_nothing_twice() {
    let mut session = Session::start(THREE);
    session.work(30_000);
    session.look(90_000);
    session.tick(130_000, "one");
    session.stop();
    session.lines.clear();
    session.work(30_000);
    session.tick(150_000, "two");
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 20_000], vec![]));
}

#[test]
fn the_part_of_a_transcript_that_was_measured_is_not_read_again() {
    let mut session = Session::start(THREE);
    session.work(30_000);
    session.tick(130_000, "one");
    session.stop();
    // Of the same length, so that only a reader of these lines notices.
    for line in &mut session.lines {
        line["message"]["usage"]["input_tokens"] = 99_999.into();
    }
    session.lines[1]["message"]["usage"]["input_tokens"] = 999_999.into();
    session.tick(150_000, "two");
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 20_000], vec![]));
}
