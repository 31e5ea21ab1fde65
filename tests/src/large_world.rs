//! Projects that have been in use for years, written directly to disk in the formats of the programs.

use chrono::{DateTime, Utc};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind, render_line_and_chain_hash};
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

/// The session that the tests measure.
pub const SESSION_ID: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
/// The run of that session.
pub const RUN_ID: &str = "20260107-090000-dates";

/// The number of entries of each kind.
#[derive(Debug, Clone, Copy)]
pub struct WorldSize {
    /// Earlier sessions.
    pub session_count: u64,
    /// Items of the plan; the first half of them is ticked.
    pub item_count: u64,
    /// Iterations in the run's history.
    pub iteration_count: u64,
    /// Changes of the working memory.
    pub memory_change_count: u64,
    pub handoff_count: u64,
    /// Turns in the session's log.
    pub turn_count: u64,
}

impl WorldSize {
    pub const TEN_OF_EACH: WorldSize = WorldSize {
        session_count: 10,
        item_count: 10,
        iteration_count: 10,
        memory_change_count: 10,
        handoff_count: 10,
        turn_count: 10,
    };
}

/// A project of a given size with a session of a run in it.
pub struct LargeWorld {
    pub world: World,
    pub project: Project,
    transcript_path: PathBuf,
    /// All times in the project are relative to this one, so the time that building and measuring take does not change them.
    built_at: DateTime<Utc>,
}

impl LargeWorld {
    pub fn new(size: WorldSize) -> LargeWorld {
        // Outside a repository, because how often git is called depends on the time.
        let world = World::without_git();
        let project = Project::with_local_files(&world.project()).with_runs_folder(&world.runs_folder());
        let transcript_path = world.home().join(format!(".claude/projects/x/{SESSION_ID}.jsonl"));
        let large = LargeWorld { world, project, transcript_path, built_at: clock::now() };
        large.write_ended_sessions(size.session_count);
        large.write_run(size.item_count, size.iteration_count);
        large.write_handoffs(size.handoff_count);
        large.write_turn_log(size.turn_count);
        if size.memory_change_count > 0 {
            large.write_memory_log(size.memory_change_count);
        }
        large
    }

    /// Appends a turn to the session's transcript that ended before the last change of the memory.
    pub fn append_turn_to_transcript(&self) {
        self.append_turn_with_result("ok");
    }

    /// Appends a turn whose call has this result, and returns the id of the call.
    pub fn append_turn_with_result(&self, result: &str) -> String {
        let text = fs::read_to_string(&self.transcript_path).expect("the transcript");
        // A new message id each time, which the turn log does not have.
        let number = 1_000_000 + text.len() as u64;
        write_file(
            &self.transcript_path,
            &(text + &self.transcript_turn_lines(number, self.timestamp_before_build(30), result)),
        );
        call_id(number)
    }

    pub fn transcript_path(&self) -> &Path {
        &self.transcript_path
    }

    /// Returns the time this many seconds before the world was built.
    fn timestamp_before_build(&self, seconds_earlier: u64) -> Timestamp {
        clock::to_millis_timestamp(self.built_at - Duration::from_secs(seconds_earlier))
    }

    /// Returns the payload of an event of the session.
    pub fn event_payload(&self, name: &str, mut fields: Value) -> String {
        fields["hook_event_name"] = json!(name);
        fields["session_id"] = json!(SESSION_ID);
        fields["transcript_path"] = json!(self.transcript_path);
        fields["cwd"] = json!(self.world.project());
        fields.to_string()
    }

    /// Returns the size of the plan and of the three copies of the state: what a program reads that needs the plan.
    pub fn plan_and_state_bytes(&self) -> u64 {
        let ledger = self.world.runs_folder().join(RUN_ID).join("ledger.json");
        let copy = state_file::state_copy_path(&self.project);
        let files = [self.world.path("fix_plan.md"), self.project.state_path().to_owned(), ledger, copy];
        files.iter().map(|file| fs::metadata(file).map_or(0, |metadata| metadata.len())).sum()
    }

    /// Writes sessions that ended days ago, each with a transcript.
    fn write_ended_sessions(&self, count: u64) {
        for number in 0..count {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            let path = self.transcript_path.with_file_name(format!("{id}.jsonl"));
            write_file(
                &path,
                &format!("{}\n", json!({"type": "last-prompt", "lastPrompt": "do it", "sessionId": id})),
            );
            let two_days = Duration::from_secs(2 * 24 * 3_600);
            let file = File::options().write(true).open(&path).expect("the transcript");
            file.set_modified(SystemTime::now() - two_days).expect("a time");
            let mut record = SessionRecord { session_id: SessionId::from(id), ..SessionRecord::default() };
            record.start.transcript_path = Some(path.display().to_string());
            record.start.started_at = Some(self.timestamp_before_build(200_000));
            record.end.ended_at = Some(self.timestamp_before_build(190_000));
            sessions::set_aside_invalid_and_save_record(&self.project, &record, Durability::Lazy)
                .expect("a record");
        }
    }

    fn write_run(&self, item_count: u64, past_iterations: u64) {
        let items: Vec<String> =
            (1..=item_count).map(|number| format!("Convert the file number {number} (simple)")).collect();
        let (done, open) = items.split_at(items.len() / 2);
        let plan: String = done.iter().map(|item| format!("- [x] {item}\n")).collect();
        let plan = open.iter().fold(plan, |plan, item| plan + &format!("- [ ] {item}\n"));
        self.world.write("fix_plan.md", &plan);
        let history_entry = |iteration| HistoryEntry {
            iteration,
            peak_percent: 62,
            ticked_item_count: 1,
            duration_seconds: 840,
            cost_usd: 0.42,
            ending: "completed".to_owned(),
            ..HistoryEntry::default()
        };
        let iteration = u32::try_from(past_iterations).expect("a number of iterations") + 1;
        let state = RunState {
            run_id: RunId::from(RUN_ID),
            session_id: Some(SessionId::from(SESSION_ID)),
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
                started_at: self.timestamp_before_build(100_000),
                ..ProjectAtStart::default()
            },
            plan_items: PlanItems {
                todo_items: open.to_vec(),
                completed_items: done.to_vec(),
                known_items: items.clone(),
                ever_ticked_items: done.to_vec(),
                ..PlanItems::default()
            },
            context_history: (1..iteration).map(history_entry).collect(),
            ..RunState::default()
        };
        state_file::create_ledger_and_write_initial_state(&self.project, &state).expect("a state");
    }

    fn write_handoffs(&self, count: u64) {
        for number in 0..count {
            let name = format!("2025-{:02}-{:02}-{:04}.md", number / 300 + 1, number / 20 % 28 + 1, number);
            write_file(&self.project.handoffs_folder().join(name), &"What was done.\n".repeat(40));
        }
    }

    /// Writes a turn log of this many turns; the transcript has the last ten of them.
    fn write_turn_log(&self, count: u64) {
        let transcript: String = (count.saturating_sub(10)..count)
            .map(|number| self.transcript_turn_lines(number, self.timestamp_before_build(60), "ok"))
            .collect();
        write_file(&self.transcript_path, &transcript);
        let transcript_bytes = transcript.len() as u64;
        let content = json!({
            "raw_response": [{"type": "text", "text": "The next file is converted."}], "result": null, "prints": [],
            "tool_calls": [], "memory": {}, "ext": {},
        });
        let turn_record = |number| {
            let record = NewRecord::empty_in_main_stream(RecordKind::Turn, self.timestamp_before_build(100));
            let (message, read_offset) = (format!("msg_{number}"), Some(transcript_bytes));
            let header = RecordHeader {
                turn_number: Some(number),
                message_id: Some(message),
                succeeded: Some(true),
                transcript_offset: read_offset,
                ..record.header
            };
            (header, content.to_string())
        };
        let head =
            write_chained_log(&self.project.turn_logs_folder(), SESSION_ID, (1..=count).map(turn_record));
        let stream = StreamPosition {
            transcript_offset: transcript_bytes,
            turn_number: count,
            message_id: format!("msg_{}", count.saturating_sub(1)),
        };
        let head = LogHead { streams: [(MAIN_STREAM.to_owned(), stream)].into(), ..head };
        write_log_head(&self.project.turn_logs_folder(), SESSION_ID, &head);
    }

    /// Returns the transcript lines of a call and its result, as the client writes them.
    fn transcript_turn_lines(&self, number: u64, timestamp: Timestamp, result: &str) -> String {
        let (id, cwd) = (call_id(number), self.world.project());
        let lines = [
            json!({"type": "assistant", "timestamp": timestamp, "isSidechain": false, "cwd": cwd, "sessionId": SESSION_ID, "message": {
                "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make -s check"}}],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 50_000, "output_tokens": 50},
            }}),
            json!({"type": "user", "timestamp": timestamp, "isSidechain": false, "cwd": cwd, "sessionId": SESSION_ID, "message": {
                "role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": false}],
            }}),
        ];
        lines.map(|line| format!("{line}\n")).concat()
    }

    /// Writes a memory log of this many changes, the last one a few seconds old, with its snapshot.
    fn write_memory_log(&self, count: u64) {
        // The memory at the end is about the same, however many changes led to it.
        let nth_op = |number: u64| match number {
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
                let op = nth_op(number);
                memory.step_number = number;
                memory.apply(&op).unwrap_or_else(|refusal| panic!("change {number}: {refusal}"));
                let fields = json!({"rev": memory.revision, "step": number, "by": "mcp", "change": op});
                let at = self.timestamp_before_build((count - number) * 10 + 5);
                let record = NewRecord::event_now(RecordKind::Memory, &fields);
                (RecordHeader { recorded_at: at, ..record.header }, record.encoded.content)
            })
            .collect();
        let folder = self.project.memory_folder();
        let head = write_chained_log(&folder, "log", records.into_iter());
        write_log_head(&folder, "log", &head);
        let LogHead { sequence_number: seq, link, log_bytes: bytes, recorded_at: at, .. } = &head;
        let snapshot =
            json!({"seq": seq, "link": link, "bytes": bytes, "at": at, "steps": 0, "memory": memory});
        write_file(&folder.join("state.json"), &snapshot.to_string());
    }
}

fn call_id(turn_number: u64) -> String {
    format!("toolu_{turn_number}")
}

/// Writes a chained log and returns its head.
fn write_chained_log(
    folder: &Path,
    name: &str,
    records: impl Iterator<Item = (RecordHeader, String)>,
) -> LogHead {
    let (mut text, mut head) = (String::new(), LogHead::default());
    for (header, content) in records {
        head.sequence_number += 1;
        head.recorded_at = header.recorded_at.clone();
        let (record_line, link) = render_line_and_chain_hash(
            &head.link,
            RecordHeader { sequence_number: head.sequence_number, ..header },
            &content,
        );
        head.link = link;
        text.push_str(&record_line);
    }
    head.log_bytes = text.len() as u64;
    write_file(&folder.join(format!("{name}.jsonl")), &text);
    head
}

fn write_log_head(folder: &Path, name: &str, head: &LogHead) {
    write_file(&folder.join(format!("{name}.head")), &serde_json::to_string(head).expect("a head"));
}

fn write_file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}
