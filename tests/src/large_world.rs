//! Projects that have been worked in for years, written straight to the disk in the formats of the programs.

use chrono::{DateTime, Utc};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind, render_line_and_link};
use plimsoll_domain::memory::{MemoryOp, Register};
use plimsoll_domain::state::{
    HistoryEntry, IterationPhase, IterationRecord, PlanItems, ProjectAtStart, RunOptions,
};
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord, Timestamp};
use plimsoll_store::turn_log::{LogHead, NewRecord, StreamPosition};
use plimsoll_store::{Durability, Project, clock, sessions, state_file};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The session that is measured.
pub const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
/// The run that it belongs to.
pub const RUN: &str = "20260107-090000-dates";

/// How much there is of each.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Sessions that were here before.
    pub sessions: u64,
    /// Items of the plan, the first half of them ticked.
    pub items: u64,
    /// Iterations in the run's history.
    pub history: u64,
    /// Changes of the working memory.
    pub changes: u64,
    /// Handoffs.
    pub handoffs: u64,
    /// Turns in the session's log.
    pub turns: u64,
}

impl Size {
    /// Ten of each.
    pub const TEN: Size = Size { sessions: 10, items: 10, history: 10, changes: 10, handoffs: 10, turns: 10 };
}

/// A project of a size with a session of a run in it.
pub struct LargeWorld {
    /// The world.
    pub world: World,
    /// The project.
    pub project: Project,
    transcript: PathBuf,
    /// All times in it are so long before this one: what it takes to build it and to measure in it changes none of them.
    built_at: DateTime<Utc>,
}

impl LargeWorld {
    /// A world of a size.
    pub fn new(size: Size) -> LargeWorld {
        // Outside a repository: how often git is asked depends on the time.
        let world = World::without_git();
        let project = Project::with_local_files(&world.project()).with_runs_folder(&world.runs());
        let transcript = world.home().join(format!(".claude/projects/x/{SESSION}.jsonl"));
        let large = LargeWorld { world, project, transcript, built_at: clock::now() };
        large.put_sessions(size.sessions);
        large.put_run(size.items, size.history);
        large.put_handoffs(size.handoffs);
        large.put_turns(size.turns);
        if size.changes > 0 {
            large.put_memory(size.changes);
        }
        large
    }

    /// Adds a turn to the session's transcript that ended before the memory was changed last.
    pub fn add_turn(&self) {
        self.add_turn_with("ok");
    }

    /// The same with a result of its call; answers the call's id.
    pub fn add_turn_with(&self, result: &str) -> String {
        let text = fs::read_to_string(&self.transcript).expect("the transcript");
        // Another message each time, and none that the log has.
        let number = 1_000_000 + text.len() as u64;
        write(&self.transcript, &(text + &self.turn(number, self.moment(30), result)));
        call_of(number)
    }

    /// The session's transcript.
    pub fn transcript(&self) -> &Path {
        &self.transcript
    }

    /// So many seconds before it was built.
    fn moment(&self, seconds: u64) -> Timestamp {
        clock::to_millis_timestamp(self.built_at - Duration::from_secs(seconds))
    }

    /// The payload of an event of the session.
    pub fn event(&self, name: &str, mut fields: Value) -> String {
        fields["hook_event_name"] = json!(name);
        fields["session_id"] = json!(SESSION);
        fields["transcript_path"] = json!(self.transcript);
        fields["cwd"] = json!(self.world.project());
        fields.to_string()
    }

    /// The bytes of the plan and of the state in its three places: what a program reads that must know the plan.
    pub fn bytes_of_plan_and_state(&self) -> u64 {
        let ledger = self.world.runs().join(RUN).join("ledger.json");
        let copy = state_file::state_copy_path(&self.project);
        let files = [self.world.path("fix_plan.md"), self.project.state_path().to_owned(), ledger, copy];
        files.iter().map(|file| fs::metadata(file).map_or(0, |found| found.len())).sum()
    }

    /// Sessions that ended days ago, each with a transcript.
    fn put_sessions(&self, count: u64) {
        for number in 0..count {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            let path = self.transcript.with_file_name(format!("{id}.jsonl"));
            write(
                &path,
                &format!("{}\n", json!({"type": "last-prompt", "lastPrompt": "do it", "sessionId": id})),
            );
            let two_days = Duration::from_secs(2 * 24 * 3_600);
            let file = File::options().write(true).open(&path).expect("the transcript");
            file.set_modified(SystemTime::now() - two_days).expect("a time");
            let mut record = SessionRecord { session_id: SessionId::from(id), ..SessionRecord::default() };
            record.start.transcript_path = Some(path.display().to_string());
            record.start.started_at = Some(self.moment(200_000));
            record.end.ended_at = Some(self.moment(190_000));
            sessions::save_session_record(&self.project, &record, Durability::Lazy).expect("a record");
        }
    }

    fn put_run(&self, items: u64, history: u64) {
        let items: Vec<String> =
            (1..=items).map(|number| format!("Convert the file number {number} (simple)")).collect();
        let (done, open) = items.split_at(items.len() / 2);
        let plan: String = done.iter().map(|item| format!("- [x] {item}\n")).collect();
        let plan = open.iter().fold(plan, |plan, item| plan + &format!("- [ ] {item}\n"));
        self.world.write("fix_plan.md", &plan);
        let entry = |iteration| HistoryEntry {
            iteration,
            peak_percent: 62,
            ticked_item_count: 1,
            duration_seconds: 840,
            cost_usd: 0.42,
            ending: "completed".to_owned(),
            ..HistoryEntry::default()
        };
        let iteration = u32::try_from(history).expect("a number of iterations") + 1;
        let state = RunState {
            run_id: RunId::from(RUN),
            session_id: Some(SessionId::from(SESSION)),
            promise_code: "k7q2".parse().expect("a code"),
            iteration,
            iteration_record: IterationRecord {
                iteration,
                phase: IterationPhase::Spawned,
                item: open.first().cloned(),
                ticked_before_iteration: done.to_vec(),
                ticked_before_session: done.to_vec(),
                ..IterationRecord::default()
            },
            options: RunOptions {
                task_name: "Dates".to_owned(),
                max_iterations: iteration + 50,
                completion_promise: "COMPLETE".parse().expect("a word"),
                todo_file: Some("fix_plan.md".to_owned()),
                ..RunOptions::default()
            },
            project_at_start: ProjectAtStart {
                started_at: self.moment(100_000),
                ..ProjectAtStart::default()
            },
            plan_items: PlanItems {
                todo_items: open.to_vec(),
                completed_items: done.to_vec(),
                known_items: items.clone(),
                ever_ticked_items: done.to_vec(),
                ..PlanItems::default()
            },
            context_history: (1..iteration).map(entry).collect(),
            ..RunState::default()
        };
        state_file::create_state(&self.project, &state).expect("a state");
    }

    fn put_handoffs(&self, count: u64) {
        for number in 0..count {
            let name = format!("2025-{:02}-{:02}-{:04}.md", number / 300 + 1, number / 20 % 28 + 1, number);
            write(&self.project.handoffs_folder().join(name), &"What was done.\n".repeat(40));
        }
    }

    /// A log of that many turns, of which the transcript has the last ten.
    fn put_turns(&self, count: u64) {
        let transcript: String = (count.saturating_sub(10)..count)
            .map(|number| self.turn(number, self.moment(60), "ok"))
            .collect();
        write(&self.transcript, &transcript);
        let read = transcript.len() as u64;
        let content = json!({
            "raw_response": [{"type": "text", "text": "The next file is converted."}], "result": null, "prints": [],
            "tool_calls": [], "memory": {}, "ext": {},
        });
        let record = |number| {
            let record = NewRecord::new(RecordKind::Turn, self.moment(100));
            let (message, read) = (format!("msg_{number}"), Some(read));
            let header = RecordHeader {
                turn_number: Some(number),
                message_id: Some(message),
                succeeded: Some(true),
                transcript_offset: read,
                ..record.header
            };
            (header, content.to_string())
        };
        let head = put_log(&self.project.turn_logs_folder(), SESSION, (1..=count).map(record));
        let stream = StreamPosition {
            transcript_offset: read,
            turn_number: count,
            message_id: format!("msg_{}", count.saturating_sub(1)),
        };
        let head = LogHead { streams: [(MAIN_STREAM.to_owned(), stream)].into(), ..head };
        put_head(&self.project.turn_logs_folder(), SESSION, &head);
    }

    /// A call and its result, as the client writes them.
    fn turn(&self, number: u64, at: Timestamp, result: &str) -> String {
        let (id, cwd) = (call_of(number), self.world.project());
        let lines = [
            json!({"type": "assistant", "timestamp": at, "isSidechain": false, "cwd": cwd, "sessionId": SESSION, "message": {
                "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make -s check"}}],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 50_000, "output_tokens": 50},
            }}),
            json!({"type": "user", "timestamp": at, "isSidechain": false, "cwd": cwd, "sessionId": SESSION, "message": {
                "role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": false}],
            }}),
        ];
        lines.map(|line| format!("{line}\n")).concat()
    }

    /// A memory of that many changes, the last one a moment ago, with its snapshot.
    fn put_memory(&self, count: u64) {
        // The same memory in the end, however many changes it took.
        let op = |number: u64| match number {
            1..=5 => MemoryOp::HeapAlloc {
                name: format!("chunk-{number}"),
                content: "What was found. ".repeat(20),
                description: String::new(),
            },
            _ => MemoryOp::UpdateRegisters {
                values: [(Register::Next, format!("Convert the file number {}", number % 10))].into(),
                strict: false,
                in_all_frames: false,
            },
        };
        let mut memory = plimsoll_domain::memory::Memory::default();
        let records: Vec<(RecordHeader, String)> = (1..=count)
            .map(|number| {
                let op = op(number);
                memory.step_number = number;
                memory.apply(&op).unwrap_or_else(|refusal| panic!("change {number}: {refusal}"));
                let fields = json!({"rev": memory.revision, "step": number, "by": "mcp", "change": op});
                let at = self.moment((count - number) * 10 + 5);
                let record = NewRecord::event_now(RecordKind::Memory, &fields);
                (RecordHeader { recorded_at: at, ..record.header }, record.encoded.content)
            })
            .collect();
        let folder = self.project.memory_folder();
        let head = put_log(&folder, "log", records.into_iter());
        put_head(&folder, "log", &head);
        let LogHead { sequence_number: seq, link, log_bytes: bytes, recorded_at: at, .. } = &head;
        let snapshot =
            json!({"seq": seq, "link": link, "bytes": bytes, "at": at, "steps": 0, "memory": memory});
        write(&folder.join("state.json"), &snapshot.to_string());
    }
}

fn call_of(turn: u64) -> String {
    format!("toolu_{turn}")
}

/// Writes a chained log and answers how far it goes.
fn put_log(folder: &Path, name: &str, records: impl Iterator<Item = (RecordHeader, String)>) -> LogHead {
    let (mut text, mut head) = (String::new(), LogHead::default());
    for (header, content) in records {
        head.sequence_number += 1;
        head.recorded_at = header.recorded_at.clone();
        let (written, link) = render_line_and_link(
            &head.link,
            RecordHeader { sequence_number: head.sequence_number, ..header },
            &content,
        );
        head.link = link;
        text.push_str(&written);
    }
    head.log_bytes = text.len() as u64;
    write(&folder.join(format!("{name}.jsonl")), &text);
    head
}

fn put_head(folder: &Path, name: &str, head: &LogHead) {
    write(&folder.join(format!("{name}.head")), &serde_json::to_string(head).expect("a head"));
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}
