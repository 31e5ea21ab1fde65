//! A session to export: its records as a tree of streams, its window and its checkpoints.

use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_domain::reading::{WindowSize, WindowSource};
use plimsoll_domain::{Level, SessionId};
use plimsoll_flows::turns::{self, LoggedRecord, RecordBody};
use plimsoll_policy::window::{WindowEvidence, resolve_window_raising_it_to_used_tokens};
use plimsoll_store::{Project, StoreError, TurnLog, config, context_windows, journal, sessions};
use std::collections::{BTreeMap, BTreeSet};

/// A session's records, with its window and its checkpoints from other files.
pub(crate) struct ExportedSession {
    pub(crate) id: String,
    pub(crate) records: Vec<LoggedRecord>,
    /// Number of log lines that could not be decoded.
    pub(crate) unreadable_lines: usize,
    /// The window of the main stream; `None` if it can only be assumed.
    pub(crate) window: Option<WindowSize>,
    pub(crate) checkpoints: Vec<ExportedCheckpoint>,
}

/// A checkpoint of the session, from the journal.
pub(crate) struct ExportedCheckpoint {
    pub(crate) level: Level,
    pub(crate) percent: Option<u64>,
}

/// A stream, and the streams of the subagents that it started.
pub(crate) struct AgentStream<'a> {
    pub(crate) name: &'a str,
    pub(crate) records: Vec<&'a LoggedRecord>,
    /// The streams started here, by record number and index of the call.
    pub(crate) subagents: BTreeMap<(u64, usize), AgentStream<'a>>,
    /// The agent type, if the call that started it names one.
    pub(crate) agent_type: Option<&'a str>,
}

impl ExportedSession {
    /// Reads the whole log, and adds the window and the checkpoints from other files.
    pub(crate) fn read_with_window_and_checkpoints(
        project: &Project,
        log: &TurnLog,
    ) -> Result<ExportedSession, StoreError> {
        let (mut records, mut unreadable_lines) = (Vec::new(), 0);
        for line in log.forward_lines()? {
            match turns::decode_record_keeping_error_in_body(log, &line?) {
                Some(record) => records.push(record),
                None => unreadable_lines += 1,
            }
        }
        let id = log.session_id().to_owned();
        let window = measured_or_resolved_window(project, &id, &records);
        let checkpoints = journal::read_entries(project)?
            .into_iter()
            .filter(|entry| entry.session_id.as_ref() == Some(&id))
            .filter_map(|entry| match entry.event {
                JournalEvent::Checkpoint(CheckpointWritten { level, percent, .. }) => {
                    Some(ExportedCheckpoint { level, percent })
                }
                _ => None,
            })
            .collect();
        Ok(ExportedSession { id: id.to_string(), records, unreadable_lines, window, checkpoints })
    }

    /// Returns the root streams, each with the streams of its subagents: first the main stream, then the streams that
    /// no logged call started.
    pub(crate) fn root_streams_with_subagents(&self) -> Vec<AgentStream<'_>> {
        let mut records_by_stream: BTreeMap<&str, Vec<&LoggedRecord>> = BTreeMap::new();
        let mut stream_names = vec![MAIN_STREAM];
        for record in &self.records {
            let name = record.header.stream.as_str();
            let records = records_by_stream.entry(name).or_default();
            if records.is_empty() && name != MAIN_STREAM {
                stream_names.push(name);
            }
            records.push(record);
        }
        let started_subagents: BTreeSet<&str> = self
            .records
            .iter()
            .flat_map(|record| {
                subagent_calls_with_stream_and_type(record).map(move |(_, agent, _)| (record, agent))
            })
            .filter(|(record, agent)| record.header.stream != *agent)
            .map(|(_, agent)| agent)
            .collect();
        // Streams that no logged call started are roots. Any streams that remain after them started each other in a cycle.
        let (root_names, started_names): (Vec<&str>, Vec<&str>) = stream_names
            .into_iter()
            .partition(|name| *name == MAIN_STREAM || !started_subagents.contains(name));
        let mut unplaced_streams = UnplacedStreams { records_by_stream };
        root_names
            .into_iter()
            .chain(started_names)
            .filter_map(|name| unplaced_streams.remove_stream_with_subagents(name, None))
            .collect()
    }

    /// Returns the turns of the main stream.
    pub(crate) fn main_turns(&self) -> impl Iterator<Item = &LoggedRecord> {
        self.records.iter().filter(|record| record.header.stream == MAIN_STREAM && record.is_turn_record())
    }

    /// Returns the cost in USD that the client reported last.
    pub(crate) fn last_reported_cost_usd(&self) -> Option<f64> {
        let usd_of_record = |record: &LoggedRecord| match &record.body {
            RecordBody::Event(fields) => fields.get("usd")?.as_f64(),
            _ => None,
        };
        self.records
            .iter()
            .rev()
            .filter(|record| record.header.kind == RecordKind::Cost)
            .find_map(usd_of_record)
    }

    /// Returns the model of the last response of the main stream.
    pub(crate) fn last_model(&self) -> Option<&str> {
        let main_records = self.records.iter().rev().filter(|record| record.header.stream == MAIN_STREAM);
        main_records.filter_map(turn_model).find(|model| *model != SYNTHETIC_MODEL)
    }
}

/// Model name in responses that the client generates itself.
pub(crate) const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Returns the model of a turn.
pub(crate) fn turn_model(record: &LoggedRecord) -> Option<&str> {
    record.turn()?.ext().get("model")?.as_str()
}

/// Returns the calls of a turn that started a subagent: index, stream and agent type.
pub(crate) fn subagent_calls_with_stream_and_type(
    record: &LoggedRecord,
) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
    let has_text_field = |call: &'_ plimsoll_domain::turn::ToolCall, name: &str| {
        call.ext.get(name).is_some_and(serde_json::Value::is_string)
    };
    calls.iter().enumerate().filter(move |(_, call)| has_text_field(call, "agent_id")).map(|(index, call)| {
        let text_field = |name: &str| call.ext.get(name).and_then(serde_json::Value::as_str);
        (index, text_field("agent_id").unwrap_or_default(), text_field("agent_type"))
    })
}

/// The streams that have not been placed in the tree yet.
struct UnplacedStreams<'a> {
    records_by_stream: BTreeMap<&'a str, Vec<&'a LoggedRecord>>,
}

impl<'a> UnplacedStreams<'a> {
    fn remove_stream_with_subagents(
        &mut self,
        name: &'a str,
        agent_type: Option<&'a str>,
    ) -> Option<AgentStream<'a>> {
        let (name, records) = self.records_by_stream.remove_entry(name)?;
        let mut subagents = BTreeMap::new();
        for record in &records {
            let record: &'a LoggedRecord = record;
            for (index, agent, agent_type) in subagent_calls_with_stream_and_type(record) {
                if let Some(stream) = self.remove_stream_with_subagents(agent, agent_type) {
                    subagents.insert((record.header.sequence_number, index), stream);
                }
            }
        }
        Some(AgentStream { name, records, subagents, agent_type })
    }
}

fn measured_or_resolved_window(project: &Project, id: &str, records: &[LoggedRecord]) -> Option<WindowSize> {
    let main_records = || records.iter().filter(|record| record.header.stream == MAIN_STREAM);
    let max_used_tokens = main_records()
        .filter_map(|record| record.header.usage)
        .map(plimsoll_domain::log_line::TokenUsage::total_input)
        .max()
        .unwrap_or(0);
    // The measured window is the best source, unless more tokens than that were used.
    let measured_window = sessions::load_session_record(project, &SessionId::from(id))
        .usage
        .last_reading
        .and_then(|reading| reading.window);
    if let Some(window) = measured_window.filter(|window| window.tokens >= max_used_tokens) {
        return Some(window);
    }
    let requested_model = main_records().rev().find_map(|record| {
        let ext = record.turn()?.ext();
        let model = ext.get("requested_model").or_else(|| ext.get("model"))?.as_str()?;
        (model != SYNTHETIC_MODEL).then(|| model.to_owned())
    });
    let (settings, _) = config::load_settings(project);
    let evidence = WindowEvidence {
        model: requested_model.as_deref(),
        user_windows: Some(&settings.windows),
        learned_window: requested_model
            .as_ref()
            .and_then(|model| context_windows::load_context_windows(project).get(model).copied()),
        max_used_tokens,
        ..WindowEvidence::default()
    };
    resolve_window_raising_it_to_used_tokens(&evidence)
        .filter(|window| window.source != WindowSource::Assumed)
}
