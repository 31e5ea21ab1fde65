//! The tokens that items are charged with: the growth of the session's context up to their ticks. Each token is charged
//! once.

use plimsoll_testkit::world::World;
use plimsoll_tests::create_run;
use serde_json::{Value, json};

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";
/// Times before and after everything that a test does.
const PAST_TIME: &str = "2026-01-07T11:45:00.000Z";
const FUTURE_TIME: &str = "2999-01-07T11:45:00.000Z";

/// A session of a run. The test writes its transcript and its plan.
struct RunSession {
    world: World,
    lines: Vec<Value>,
}

impl RunSession {
    fn start(plan: &str) -> RunSession {
        let world = World::new();
        world.write("fix_plan.md", plan);
        create_run(&world, RUN, SESSION);
        let session = RunSession { world, lines: Vec::new() };
        session.call_hook("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
        session
    }

    fn call_hook(&self, program: &str, event: &str, fields: Value) {
        let mut payload = json!({
            "session_id": SESSION, "transcript_path": self.world.home().join("transcript.jsonl"),
            "cwd": self.world.project(), "hook_event_name": event,
        });
        payload.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
        let hook = self.world.hook(program, &payload).env("PLIMSOLL_RUN_ID", RUN);
        let finished = hook.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string()).run();
        assert!(finished.code.is_some_and(|code| code < 2) && finished.stderr.is_empty(), "{finished:?}");
    }

    /// Adds a response with one tool call, to a request of this many tokens.
    fn add_response(&mut self, timestamp: &str, used_tokens: u64, input: &Value) {
        let number = self.lines.len();
        self.lines.push(json!({
            "type": "assistant", "isSidechain": false, "timestamp": timestamp,
            "message": {
                "id": format!("msg_{number}"), "model": "claude-opus-5-5", "role": "assistant",
                "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Edit", "input": input}],
                "usage": {"input_tokens": used_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                    "output_tokens": 0},
            },
        }));
        self.write_transcript();
    }

    fn write_transcript(&self) {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        self.world.write(self.world.home().join("transcript.jsonl"), &text);
    }

    fn edit_source_file(&mut self, used_tokens: u64) {
        let path = self.world.path("src/dates.txt");
        self.add_response(
            PAST_TIME,
            used_tokens,
            &json!({"file_path": path, "old_string": "a", "new_string": "b"}),
        );
    }

    fn respond_without_edit(&mut self, used_tokens: u64) {
        self.add_response(PAST_TIME, used_tokens, &json!({"file_path": self.world.path("src/dates.txt")}));
    }

    fn tick_item(&mut self, used_tokens: u64, item: &str) {
        let (open, done) = (format!("- [ ] {item}"), format!("- [x] {item}"));
        let path = self.world.path("fix_plan.md");
        self.add_response(
            PAST_TIME,
            used_tokens,
            &json!({"file_path": path, "old_string": open, "new_string": done}),
        );
        let plan = self.world.read("fix_plan.md").replace(&open, &done);
        self.world.write("fix_plan.md", &plan);
    }

    fn stop(&self) {
        self.call_hook("plimsoll-stop-gate", "Stop", json!({"stop_hook_active": false}));
    }

    fn end(&self) {
        self.call_hook("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
    }

    /// Returns the tokens of the measured items, and the open items with their tokens.
    fn costs(&self) -> (Vec<u64>, Vec<(String, u64)>) {
        let state = self.world.read_json(".claude/ralph-state.json");
        let tokens = |cost: &Value| cost["tokens"].as_u64().expect("tokens");
        let growth = state["growth"].as_array().into_iter().flatten().map(tokens).collect();
        let open = state["begun"].as_array().into_iter().flatten();
        (
            growth,
            open.map(|cost| (cost["item"].as_str().expect("an item").to_owned(), tokens(cost))).collect(),
        )
    }
}

fn open_item_cost(item: &str, tokens: u64) -> Vec<(String, u64)> {
    vec![(item.to_owned(), tokens)]
}

const THREE_ITEMS: &str = "- [ ] one\n- [ ] two\n- [ ] three\n";

#[test]
fn an_item_is_charged_with_the_growth_since_the_previous_tick() {
    let mut session = RunSession::start(THREE_ITEMS);
    session.edit_source_file(30_000);
    session.tick_item(130_000, "one");
    session.edit_source_file(140_000);
    session.tick_item(150_000, "two");
    session.respond_without_edit(153_000);
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 23_000], vec![]));
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 23_000], vec![]));
}

#[test]
fn several_stops_charge_each_token_of_growth_only_once() {
    let mut session = RunSession::start(THREE_ITEMS);
    session.edit_source_file(30_000);
    session.tick_item(130_000, "one");
    session.stop();
    assert_eq!(session.costs(), (vec![100_000], vec![]));
    // A hook of the user keeps the session going, so nothing was offered.
    session.edit_source_file(150_000);
    session.stop();
    session.tick_item(200_000, "two");
    session.edit_source_file(230_000);
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 70_000], vec![]), "the rest is the next item's");
    session.respond_without_edit(231_000);
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 70_000], open_item_cost("three", 31_000)), "201k in all");
}

#[test]
fn a_closing_response_after_a_measured_tick_is_charged_to_that_item() {
    let mut session = RunSession::start(THREE_ITEMS);
    session.edit_source_file(30_000);
    session.tick_item(130_000, "one");
    session.stop();
    session.respond_without_edit(135_000);
    session.end();
    assert_eq!(session.costs(), (vec![105_000], vec![]));
}

#[test]
fn the_plans_modification_time_dates_a_tick_made_by_a_script() {
    for (case, is_time_known, expected) in [
        ("the next item is begun after it", true, (vec![40_000], open_item_cost("two", 30_000))),
        ("somebody has written the plan since", false, (vec![70_000], vec![])),
    ] {
        let mut session = RunSession::start(THREE_ITEMS);
        session.edit_source_file(30_000);
        session.edit_source_file(70_000);
        session.world.write("fix_plan.md", &THREE_ITEMS.replace("[ ] one", "[x] one"));
        let edit = json!({"file_path": session.world.path("src/next.txt"), "content": "new"});
        session.add_response(if is_time_known { FUTURE_TIME } else { PAST_TIME }, 100_000, &edit);
        session.end();
        assert_eq!(session.costs(), expected, "{case}");
    }
}

#[test]
fn a_replaced_transcript_charges_no_tokens_twice() {
    let mut session = RunSession::start(THREE_ITEMS);
    session.edit_source_file(30_000);
    session.respond_without_edit(90_000);
    session.tick_item(130_000, "one");
    session.stop();
    session.lines.clear();
    session.edit_source_file(30_000);
    session.tick_item(150_000, "two");
    session.end();
    assert_eq!(session.costs(), (vec![100_000, 20_000], vec![]));
}

#[test]
fn the_measured_part_of_a_transcript_is_not_read_again() {
    let mut session = RunSession::start(THREE_ITEMS);
    session.edit_source_file(30_000);
    session.tick_item(130_000, "one");
    session.stop();
    // The length stays the same, so only a reader of these lines would notice.
    for line in &mut session.lines {
        line["message"]["usage"]["input_tokens"] = 99_999.into();
    }
    session.lines[1]["message"]["usage"]["input_tokens"] = 999_999.into();
    session.tick_item(150_000, "two");
    session.stop();
    assert_eq!(session.costs(), (vec![100_000, 20_000], vec![]));
}
