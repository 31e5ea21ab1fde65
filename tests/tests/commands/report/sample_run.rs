//! A night made by hand: what the state, the journal, the turn logs and the handoffs of one would hold. It has everything
//! that can befall a run in a few lines, so that the page has something to tell; the real ones are in `real.rs`.

use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};

pub const RUN: &str = "4f2a91bc-0000-4000-8000-000000000001";
const JOURNAL: &str = ".claude/plimsoll/journal.jsonl";
const HANDOFF: &str = ".claude/handoffs/2026-01-06-2309.md";

/// The items of the night.
pub const PARSE: &str = "Parse the dates of the first half";
pub const TABLE: &str = "Convert the table of holidays";
pub const ZONES: &str = "Take time zones from the record";
pub const README: &str = "Say in the README that dates are ISO 8601";
pub const CALENDAR: &str = "Replace the calendar library";
pub const CHANGELOG: &str = "Write the changelog";

/// A moment of the night: from 21:00 on the evening, after midnight on the morning.
pub fn at(clock: &str) -> String {
    let day = if clock >= "12:00" { 6 } else { 7 };
    format!("2026-01-0{day}T{clock}:00.000Z")
}

pub fn session(number: usize) -> String {
    format!("{number}a0b1c2d-0000-4000-8000-00000000000{number}")
}

/// The journal in the making.
#[derive(Default)]
pub struct Journal {
    pub lines: String,
}

impl Journal {
    pub fn line(
        &mut self,
        clock: &str,
        event: &str,
        iteration: usize,
        session_id: Option<&str>,
        facts: &Value,
    ) {
        let mut line = json!({"at": at(clock), "event": event, "run_id": RUN, "iteration": iteration});
        if let Some(id) = session_id {
            line["session_id"] = json!(id);
        }
        line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.lines += &format!("{line}\n");
    }

    /// A session from its plan to its end; the verdict is apart.
    pub fn sits(&mut self, number: usize, iteration: usize, item: &str, (from, to): (&str, &str), peak: u64) {
        let id = session(number);
        self.line(from, "planned", iteration, None, &json!({"resuming": number == 3, "item": item}));
        self.line(from, "spawned", iteration, Some(&id), &json!({"pid": 7}));
        self.line(from, "session_start", iteration, Some(&id), &json!({"source": "startup"}));
        self.line(to, "session_end", iteration, Some(&id), &json!({"reason": "other", "peak_percent": peak}));
        self.line(
            to,
            "iteration_closed",
            iteration,
            Some(&id),
            &json!({"peak_percent": peak, "notes": true}),
        );
    }

    pub fn verdict(&mut self, number: usize, iteration: usize, clock: &str, marker: &str, facts: &Value) {
        let mut all =
            json!({"marker": marker, "ending": {"ending": "completed"}, "ticked": [], "verify": []});
        all.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.line(clock, "verdict", iteration, Some(&session(number)), &all);
    }
}

/// Where the levels lay in a window of 200k.
fn thresholds() -> Value {
    json!({"window": 200_000, "l1": 117_000, "l2": 127_000, "l3": 147_000,
        "ceiling": {"tokens": 167_000, "action": "compacts"}, "clamped": true})
}

fn journal() -> Journal {
    let mut journal = Journal::default();
    journal.line("21:04", "run_started", 0, None, &json!({"task_name": "ISO dates", "max_iterations": 50}));
    journal.sits(1, 1, PARSE, ("21:04", "21:40"), 45);
    journal.verdict(
        1,
        1,
        "21:41",
        "RALPH_CONTINUE|next|5 open items",
        &json!({"ticked": [PARSE], "cost_usd": 1.5, "tokens": 4_000_000}),
    );
    journal.sits(2, 2, TABLE, ("21:42", "23:10"), 65);
    journal.line(
        "23:08",
        "checkpoint",
        2,
        Some(&session(2)),
        &json!({"cause": "level", "level": "L2", "percent": 65,
        "handoff": HANDOFF, "files": ["src/table.rs"], "item": TABLE, "marks": thresholds()}),
    );
    journal.verdict(
        2,
        2,
        "23:11",
        &format!("RALPH_CONTINUE|checkpoint|{HANDOFF}"),
        &json!({"cost_usd": 4.25, "tokens": 13_000_000}),
    );
    journal.sits(3, 3, TABLE, ("23:12", "23:44"), 31);
    journal.verdict(
        3,
        3,
        "23:45",
        "RALPH_CONTINUE|next|4 open items",
        &json!({"ticked": [TABLE], "cost_usd": 5.5, "tokens": 15_500_000}),
    );
    journal.sits(4, 4, ZONES, ("23:46", "00:20"), 28);
    journal.verdict(4, 4, "00:20", "RALPH_PAUSE|2026-01-07T02:00:00Z|usage limit: resets at 02:00",
        &json!({"ending": {"ending": "limit", "detail": "5-hour limit reached"}, "cost_usd": 6.0, "tokens": 17_000_000}));
    journal.sits(5, 4, ZONES, ("02:00", "03:10"), 83);
    journal.verdict(
        5,
        4,
        "03:11",
        "RALPH_CONTINUE|next|2 open items",
        &json!({"ticked": [ZONES, README], "cost_usd": 9.0, "tokens": 26_000_000}),
    );
    second_half(&mut journal);
    journal
}

/// Where it stops going well.
fn second_half(journal: &mut Journal) {
    let failed = json!([{"command": "cargo test --workspace", "passed": false, "words": "3 tests failed: calendar::leap"}]);
    journal.sits(6, 5, CALENDAR, ("03:12", "03:40"), 38);
    journal.verdict(
        6,
        5,
        "03:42",
        "RALPH_CONTINUE|refused|2 items are open, and `cargo test --workspace` fails",
        &json!({"verify": failed, "cost_usd": 10.0, "tokens": 28_000_000}),
    );
    journal.sits(7, 6, CALENDAR, ("03:43", "04:05"), 22);
    journal.verdict(7, 6, "04:06", "RALPH_CONTINUE|next|2 open items", &json!({
        "ending": {"ending": "crashed", "detail": "was killed by signal 9"}, "cost_usd": 10.5, "tokens": 29_000_000}));
    journal.sits(8, 7, CALENDAR, ("04:07", "04:30"), 19);
    journal.verdict(
        8,
        7,
        "04:31",
        "RALPH_STOP|circuit_breaker|no_progress: 3 sessions changed nothing",
        &json!({"cost_usd": 11.25, "tokens": 30_500_000}),
    );
    journal.line("04:31", "set_aside", 7, Some(&session(8)), &json!({"item": CALENDAR}));
    journal.line("04:31", "breaker_opened", 7, Some(&session(8)),
        &json!({"cause": "no_progress", "count": 3, "evidence": "HEAD and all files are as they were at 03:42"}));
}

pub fn state() -> Value {
    json!({
        "task_name": "ISO dates", "objective": "All dates in src/ are ISO 8601, as fix_plan.md says.", "run_id": RUN,
        "iteration": 7, "started_at": "2026-01-06T21:04:00Z", "ended_at": "2026-01-07T04:31:00Z",
        "status": "circuit_breaker", "max_iterations": 50, "session_id": session(8),
        "completed_items": [PARSE, TABLE, ZONES, README], "ever_done": [PARSE, TABLE, ZONES, README],
        "todo_items": [CALENDAR, CHANGELOG], "set_aside": [CALENDAR],
        "known_items": [PARSE, TABLE, ZONES, README, CALENDAR, CHANGELOG],
        "cost_usd": 11.25, "tokens": 30_500_000, "limits": {"max_cost_usd": 20.0}, "pauses": 1,
        "context_checkpoint": {"active": false, "cause": "level", "level": "L2", "handoff_file": HANDOFF, "iteration": 2},
        "breaker": {"opened": {"cause": "no_progress", "count": 3, "iteration": 7, "at": "2026-01-07T04:31:00Z",
            "evidence": "HEAD and all files are as they were at 03:42"}},
        // What stayed with subagents in the runs before is not of this night.
        "delegated_before": {"agents": 9, "tokens": 900_000},
        "context_history": [{"iteration": 2, "delegated": {"agents": 2, "tokens": 21_000}},
            {"iteration": 4, "delegated": {"agents": 1, "tokens": 10_000}}],
        "last_verdict": {"verdict": "stop", "status": "circuit_breaker", "reason": "no_progress: 3 sessions changed nothing"},
    })
}

const TEXT: &str = "# Handoff\n\n- Run: ISO dates, iteration 2\n\n## Current item\n\nConvert the table of holidays\n\n\
## Notes from the session\n\n<!-- The session's own claims, not verified. -->\n- Summary: lines 1-80 of the table are converted\n\
- Progress on the item: 80 of 120 lines\n- Next step: line 81\n";

/// What a session sent, minute by minute, and what filled it.
pub struct Transcript {
    lines: String,
    number: usize,
    calls: usize,
}

impl Transcript {
    pub fn begin(number: usize, clock: &str, prompt: &str) -> Transcript {
        let mut transcript = Transcript { lines: String::new(), number, calls: 0 };
        transcript.line(clock, json!({"type": "user", "message": {"role": "user", "content": prompt}}));
        transcript
    }

    fn line(&mut self, clock: &str, mut line: Value) {
        line["timestamp"] = json!(at(clock));
        line["isSidechain"] = json!(false);
        self.lines += &format!("{line}\n");
    }

    /// An answer that calls a tool, after so many tokens were sent, and a result of so many bytes.
    pub fn turn(mut self, clock: &str, sent: u64, tool: &str, command: &str, result: &str) -> Transcript {
        self.calls += 1;
        let id = format!("toolu_{}_{}", self.number, self.calls);
        let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": sent - 10,
            "output_tokens": 900});
        self.line(
            clock,
            json!({"type": "assistant", "requestedModel": "claude-opus-5-5", "message": {
            "id": format!("msg_{}_{}", self.number, self.calls), "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "stop_reason": "tool_use", "usage": usage,
            "content": [{"type": "tool_use", "id": id, "name": tool, "input": {"command": command}}]}}),
        );
        self.line(
            clock,
            json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result}]}}),
        );
        self
    }

    fn compacted(mut self, clock: &str) -> Transcript {
        self.line(
            clock,
            json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 167_000, "postTokens": 9_000}}),
        );
        self
    }

    /// Records it as the end of its session does, and takes it away: the client deletes them too.
    pub fn record(&self, world: &World) {
        let id = session(self.number);
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
        let window = json!({"used": 1, "output": 0, "added": 0, "source": "transcript", "behind": false,
            "window": {"tokens": 200_000, "source": "learned"}});
        world.write(
            format!(".claude/plimsoll/sessions/{id}.json"),
            &json!({"session_id": id, "reading": window}).to_string(),
        );
    }
}

fn transcripts() -> Vec<Transcript> {
    let file = |kilobytes: usize| "a line of the file\n".repeat(kilobytes * 54);
    vec![
        Transcript::begin(1, "21:04", "Do one item.")
            .turn("21:08", 26_000, "Read", "src/dates.rs", &file(90))
            .turn("21:20", 50_000, "Bash", "cargo test", &file(130))
            .turn("21:38", 88_000, "Bash", "git commit -am 'Parse dates'", "1 file changed"),
        Transcript::begin(2, "21:42", "Do one item.")
            .turn("21:50", 26_000, "Read", "src/table.rs", &file(180))
            .turn("22:20", 75_000, "Bash", "cargo test", &file(120))
            .turn("22:50", 108_000, "Grep", "holiday", &file(70))
            .turn("23:08", 128_000, "Edit", "src/table.rs", "done"),
        Transcript::begin(3, "23:12", "Go on from the handoff.")
            .turn("23:20", 28_000, "Read", ".claude/handoffs/2026-01-06-2309.md", &file(30))
            .turn("23:40", 61_000, "Bash", "cargo test", &file(20)),
        Transcript::begin(5, "02:00", "Do one item.")
            .turn("02:05", 26_000, "Read", "src/zones.rs", &file(160))
            .turn("02:20", 70_000, "WebFetch", "the zone table", &file(360))
            .turn("02:32", 165_000, "Bash", "cargo test", &file(10))
            .compacted("02:34")
            .turn("02:40", 34_000, "Read", "src/zones.rs", &file(80))
            .turn("03:08", 57_000, "Bash", "cargo test", &file(12)),
        Transcript::begin(6, "03:12", "Do one item.")
            .turn("03:16", 26_000, "Read", "Cargo.lock", &file(180))
            .turn("03:36", 76_000, "Bash", "cargo test --workspace", &file(50)),
    ]
}

/// The night in a project; of three of its sessions no turn was recorded.
pub fn stage() -> World {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    for transcript in transcripts() {
        transcript.record(&world);
    }
    world.write(HANDOFF, TEXT);
    put(&world, &state(), &journal().lines);
    world
}

/// What the session's hooks have just written of themselves is not of the night.
pub fn put(world: &World, state: &Value, journal: &str) {
    world.write(JOURNAL, journal);
    world.put_run(state);
}

/// The page of a run, as it is printed.
pub fn page(world: &World) -> String {
    report(world, &["-o", "-"]).expect_success().stdout
}

pub fn report(world: &World, options: &[&str]) -> Finished {
    world.plimsoll(&[&["report"], options].concat()).run()
}
