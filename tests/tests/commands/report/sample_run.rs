//! A handwritten sample run: its state, journal, turn logs and handoffs. It has every kind of event that the report can show;
//! `real_run.rs` has a real run.

use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};

pub const RUN_ID: &str = "4f2a91bc-0000-4000-8000-000000000001";
const JOURNAL_PATH: &str = ".claude/plimsoll/journal.jsonl";
const HANDOFF_PATH: &str = ".claude/handoffs/2026-01-06-2309.md";

/// The items of the run.
pub const PARSE_ITEM: &str = "Parse the dates of the first half";
pub const TABLE_ITEM: &str = "Convert the table of holidays";
pub const ZONES_ITEM: &str = "Take time zones from the record";
pub const README_ITEM: &str = "Say in the README that dates are ISO 8601";
pub const CALENDAR_ITEM: &str = "Replace the calendar library";
pub const CHANGELOG_ITEM: &str = "Write the changelog";

/// Returns the timestamp of a time of day: from 12:00 on it is on the first day of the run, before that on the second.
pub fn timestamp_at(clock: &str) -> String {
    let day = if clock >= "12:00" { 6 } else { 7 };
    format!("2026-01-0{day}T{clock}:00.000Z")
}

pub fn session_id(number: usize) -> String {
    format!("{number}a0b1c2d-0000-4000-8000-00000000000{number}")
}

/// Builds the text of a journal.
#[derive(Default)]
pub struct JournalBuilder {
    pub lines: String,
}

impl JournalBuilder {
    pub fn add_event(
        &mut self,
        clock: &str,
        event: &str,
        iteration: usize,
        session_id: Option<&str>,
        facts: &Value,
    ) {
        let mut line =
            json!({"at": timestamp_at(clock), "event": event, "run_id": RUN_ID, "iteration": iteration});
        if let Some(id) = session_id {
            line["session_id"] = json!(id);
        }
        line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.lines += &format!("{line}\n");
    }

    /// Adds the events of a session from its plan to its end, without the verdict.
    pub fn add_session(
        &mut self,
        number: usize,
        iteration: usize,
        item: &str,
        (start_clock, end_clock): (&str, &str),
        peak: u64,
    ) {
        let id = session_id(number);
        self.add_event(
            start_clock,
            "planned",
            iteration,
            None,
            &json!({"resuming": number == 3, "item": item}),
        );
        self.add_event(start_clock, "spawned", iteration, Some(&id), &json!({"pid": 7}));
        self.add_event(start_clock, "session_start", iteration, Some(&id), &json!({"source": "startup"}));
        self.add_event(
            end_clock,
            "session_end",
            iteration,
            Some(&id),
            &json!({"reason": "other", "peak_percent": peak}),
        );
        self.add_event(
            end_clock,
            "iteration_closed",
            iteration,
            Some(&id),
            &json!({"peak_percent": peak, "notes": true}),
        );
    }

    pub fn add_verdict(&mut self, number: usize, iteration: usize, clock: &str, marker: &str, facts: &Value) {
        let mut fields =
            json!({"marker": marker, "ending": {"ending": "completed"}, "ticked": [], "verify": []});
        fields.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.add_event(clock, "verdict", iteration, Some(&session_id(number)), &fields);
    }
}

/// Returns the thresholds in a window of 200,000 tokens.
fn thresholds() -> Value {
    json!({"window": 200_000, "l1": 117_000, "l2": 127_000, "l3": 147_000,
        "ceiling": {"tokens": 167_000, "action": "compacts"}, "clamped": true})
}

fn sample_journal() -> JournalBuilder {
    let mut journal = JournalBuilder::default();
    journal.add_event(
        "21:04",
        "run_started",
        0,
        None,
        &json!({"task_name": "ISO dates", "max_iterations": 50}),
    );
    journal.add_session(1, 1, PARSE_ITEM, ("21:04", "21:40"), 45);
    journal.add_verdict(
        1,
        1,
        "21:41",
        "RALPH_CONTINUE|next|5 open items",
        &json!({"ticked": [PARSE_ITEM], "cost_usd": 1.5, "tokens": 4_000_000}),
    );
    journal.add_session(2, 2, TABLE_ITEM, ("21:42", "23:10"), 65);
    journal.add_event(
        "23:08",
        "checkpoint",
        2,
        Some(&session_id(2)),
        &json!({"cause": "level", "level": "L2", "percent": 65,
        "handoff": HANDOFF_PATH, "files": ["src/table.rs"], "item": TABLE_ITEM, "marks": thresholds()}),
    );
    journal.add_verdict(
        2,
        2,
        "23:11",
        &format!("RALPH_CONTINUE|checkpoint|{HANDOFF_PATH}"),
        &json!({"cost_usd": 4.25, "tokens": 13_000_000}),
    );
    journal.add_session(3, 3, TABLE_ITEM, ("23:12", "23:44"), 31);
    journal.add_verdict(
        3,
        3,
        "23:45",
        "RALPH_CONTINUE|next|4 open items",
        &json!({"ticked": [TABLE_ITEM], "cost_usd": 5.5, "tokens": 15_500_000}),
    );
    journal.add_session(4, 4, ZONES_ITEM, ("23:46", "00:20"), 28);
    journal.add_verdict(4, 4, "00:20", "RALPH_PAUSE|2026-01-07T02:00:00Z|usage limit: resets at 02:00",
        &json!({"ending": {"ending": "limit", "detail": "5-hour limit reached"}, "cost_usd": 6.0, "tokens": 17_000_000}));
    journal.add_session(5, 4, ZONES_ITEM, ("02:00", "03:10"), 83);
    journal.add_verdict(
        5,
        4,
        "03:11",
        "RALPH_CONTINUE|next|2 open items",
        &json!({"ticked": [ZONES_ITEM, README_ITEM], "cost_usd": 9.0, "tokens": 26_000_000}),
    );
    add_failing_sessions(&mut journal);
    journal
}

/// Adds the sessions with failures, up to the circuit breaker.
fn add_failing_sessions(journal: &mut JournalBuilder) {
    let failed = json!([{"command": "cargo test --workspace", "passed": false, "words": "3 tests failed: calendar::leap"}]);
    journal.add_session(6, 5, CALENDAR_ITEM, ("03:12", "03:40"), 38);
    journal.add_verdict(
        6,
        5,
        "03:42",
        "RALPH_CONTINUE|refused|2 items are open, and `cargo test --workspace` fails",
        &json!({"verify": failed, "cost_usd": 10.0, "tokens": 28_000_000}),
    );
    journal.add_session(7, 6, CALENDAR_ITEM, ("03:43", "04:05"), 22);
    journal.add_verdict(7, 6, "04:06", "RALPH_CONTINUE|next|2 open items", &json!({
        "ending": {"ending": "crashed", "detail": "was killed by signal 9"}, "cost_usd": 10.5, "tokens": 29_000_000}));
    journal.add_session(8, 7, CALENDAR_ITEM, ("04:07", "04:30"), 19);
    journal.add_verdict(
        8,
        7,
        "04:31",
        "RALPH_STOP|circuit_breaker|no_progress: 3 sessions changed nothing",
        &json!({"cost_usd": 11.25, "tokens": 30_500_000}),
    );
    journal.add_event("04:31", "set_aside", 7, Some(&session_id(8)), &json!({"item": CALENDAR_ITEM}));
    journal.add_event("04:31", "breaker_opened", 7, Some(&session_id(8)),
        &json!({"cause": "no_progress", "count": 3, "evidence": "HEAD and all files are as they were at 03:42"}));
}

pub fn sample_state() -> Value {
    json!({
        "task_name": "ISO dates", "objective": "All dates in src/ are ISO 8601, as fix_plan.md says.", "run_id": RUN_ID,
        "iteration": 7, "started_at": "2026-01-06T21:04:00Z", "ended_at": "2026-01-07T04:31:00Z",
        "status": "circuit_breaker", "max_iterations": 50, "session_id": session_id(8),
        "completed_items": [PARSE_ITEM, TABLE_ITEM, ZONES_ITEM, README_ITEM], "ever_done": [PARSE_ITEM, TABLE_ITEM, ZONES_ITEM, README_ITEM],
        "todo_items": [CALENDAR_ITEM, CHANGELOG_ITEM], "set_aside": [CALENDAR_ITEM],
        "known_items": [PARSE_ITEM, TABLE_ITEM, ZONES_ITEM, README_ITEM, CALENDAR_ITEM, CHANGELOG_ITEM],
        "cost_usd": 11.25, "tokens": 30_500_000, "limits": {"max_cost_usd": 20.0}, "pauses": 1,
        "context_checkpoint": {"active": false, "cause": "level", "level": "L2", "handoff_file": HANDOFF_PATH, "iteration": 2},
        "breaker": {"opened": {"cause": "no_progress", "count": 3, "iteration": 7, "at": "2026-01-07T04:31:00Z",
            "evidence": "HEAD and all files are as they were at 03:42"}},
        // Subagents of earlier runs are not part of this run.
        "delegated_before": {"agents": 9, "tokens": 900_000},
        "context_history": [{"iteration": 2, "delegated": {"agents": 2, "tokens": 21_000}},
            {"iteration": 4, "delegated": {"agents": 1, "tokens": 10_000}}],
        "last_verdict": {"verdict": "stop", "status": "circuit_breaker", "reason": "no_progress: 3 sessions changed nothing"},
    })
}

const HANDOFF_TEXT: &str = "# Handoff\n\n- Run: ISO dates, iteration 2\n\n## Current item\n\nConvert the table of holidays\n\n\
## Notes from the session\n\n<!-- The session's own claims, not verified. -->\n- Summary: lines 1-80 of the table are converted\n\
- Progress on the item: 80 of 120 lines\n- Next step: line 81\n";

/// Builds the transcript of a session: its requests, tool calls and results.
pub struct TranscriptBuilder {
    lines: String,
    number: usize,
    calls: usize,
}

impl TranscriptBuilder {
    pub fn new(number: usize, clock: &str, prompt: &str) -> TranscriptBuilder {
        let mut transcript = TranscriptBuilder { lines: String::new(), number, calls: 0 };
        transcript.add_line(clock, json!({"type": "user", "message": {"role": "user", "content": prompt}}));
        transcript
    }

    fn add_line(&mut self, clock: &str, mut line: Value) {
        line["timestamp"] = json!(timestamp_at(clock));
        line["isSidechain"] = json!(false);
        self.lines += &format!("{line}\n");
    }

    /// Adds a response that calls a tool, with the input tokens of its request, and the result of the call.
    pub fn with_tool_turn(
        mut self,
        clock: &str,
        input_tokens: u64,
        tool: &str,
        command: &str,
        result: &str,
    ) -> TranscriptBuilder {
        self.calls += 1;
        let id = format!("toolu_{}_{}", self.number, self.calls);
        let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": input_tokens - 10,
            "output_tokens": 900});
        self.add_line(
            clock,
            json!({"type": "assistant", "requestedModel": "claude-opus-5-5", "message": {
            "id": format!("msg_{}_{}", self.number, self.calls), "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "stop_reason": "tool_use", "usage": usage,
            "content": [{"type": "tool_use", "id": id, "name": tool, "input": {"command": command}}]}}),
        );
        self.add_line(
            clock,
            json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result}]}}),
        );
        self
    }

    fn with_compaction(mut self, clock: &str) -> TranscriptBuilder {
        self.add_line(
            clock,
            json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 167_000, "postTokens": 9_000}}),
        );
        self
    }

    /// Writes the transcript and runs the session-end hook on it, which records its turns.
    pub fn record_as_ended_session(&self, world: &World) {
        let id = session_id(self.number);
        let path = world.path(format!("transcripts/{id}.jsonl"));
        world.write(&path, &self.lines);
        let payload = json!({"session_id": id, "transcript_path": path, "cwd": world.project(),
            "hook_event_name": "SessionEnd", "reason": "other"});
        let project = world.project().display().to_string();
        world
            .hook("plimsoll-session-end", &payload)
            .env("CLAUDE_PROJECT_DIR", project)
            .run()
            .expect_success();
        let reading = json!({"used": 1, "output": 0, "added": 0, "source": "transcript", "behind": false,
            "window": {"tokens": 200_000, "source": "learned"}});
        world.write(
            format!(".claude/plimsoll/sessions/{id}.json"),
            &json!({"session_id": id, "reading": reading}).to_string(),
        );
    }
}

fn sample_transcripts() -> Vec<TranscriptBuilder> {
    let file = |kilobytes: usize| "a line of the file\n".repeat(kilobytes * 54);
    vec![
        TranscriptBuilder::new(1, "21:04", "Do one item.")
            .with_tool_turn("21:08", 26_000, "Read", "src/dates.rs", &file(90))
            .with_tool_turn("21:20", 50_000, "Bash", "cargo test", &file(130))
            .with_tool_turn("21:38", 88_000, "Bash", "git commit -am 'Parse dates'", "1 file changed"),
        TranscriptBuilder::new(2, "21:42", "Do one item.")
            .with_tool_turn("21:50", 26_000, "Read", "src/table.rs", &file(180))
            .with_tool_turn("22:20", 75_000, "Bash", "cargo test", &file(120))
            .with_tool_turn("22:50", 108_000, "Grep", "holiday", &file(70))
            .with_tool_turn("23:08", 128_000, "Edit", "src/table.rs", "done"),
        TranscriptBuilder::new(3, "23:12", "Go on from the handoff.")
            .with_tool_turn("23:20", 28_000, "Read", ".claude/handoffs/2026-01-06-2309.md", &file(30))
            .with_tool_turn("23:40", 61_000, "Bash", "cargo test", &file(20)),
        TranscriptBuilder::new(5, "02:00", "Do one item.")
            .with_tool_turn("02:05", 26_000, "Read", "src/zones.rs", &file(160))
            .with_tool_turn("02:20", 70_000, "WebFetch", "the zone table", &file(360))
            .with_tool_turn("02:32", 165_000, "Bash", "cargo test", &file(10))
            .with_compaction("02:34")
            .with_tool_turn("02:40", 34_000, "Read", "src/zones.rs", &file(80))
            .with_tool_turn("03:08", 57_000, "Bash", "cargo test", &file(12)),
        TranscriptBuilder::new(6, "03:12", "Do one item.")
            .with_tool_turn("03:16", 26_000, "Read", "Cargo.lock", &file(180))
            .with_tool_turn("03:36", 76_000, "Bash", "cargo test --workspace", &file(50)),
    ]
}

/// A project with the sample run. Three of its sessions have no turn log.
pub fn world_with_sample_run() -> World {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    for transcript in sample_transcripts() {
        transcript.record_as_ended_session(&world);
    }
    world.write(HANDOFF_PATH, HANDOFF_TEXT);
    write_state_and_journal(&world, &sample_state(), &sample_journal().lines);
    world
}

/// Writes the state and the journal, which replaces the lines that the hooks have just added.
pub fn write_state_and_journal(world: &World, state: &Value, journal: &str) {
    world.write(JOURNAL_PATH, journal);
    world.write_run_state_record_and_ledger(state);
}

/// Returns the report of the current run as `plimsoll report -o -` prints it.
pub fn report_html(world: &World) -> String {
    run_report(world, &["-o", "-"]).expect_success().stdout
}

pub fn run_report(world: &World, options: &[&str]) -> FinishedProgram {
    world.plimsoll(&[&["report"], options].concat()).run()
}
