//! Assembles turns from the lines of a transcript: which lines belong to one response, when it is complete, and how it ended. Does
//! no I/O. Lines are fed in order, each with its end offset, so that a reader can continue from there.

mod build;
mod outcome;
mod server_tool_results;

#[cfg(test)]
mod tests;

use plimsoll_domain::log_line::{RecordKind, TokenUsage};
use plimsoll_domain::turn::record::EncodingHints;
use plimsoll_domain::turn::{Block, FailureReason, ResponseOutlineBuilder};
use plimsoll_domain::{Timestamp, Turn};
use plimsoll_protocol::transcript_content::{ResponsePart, ToolResult, TranscriptLine, TranscriptLineKind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// A record for the turn log with its time and the read position of its transcript.
#[derive(Debug, Clone)]
pub struct AssembledRecord {
    /// The time in RFC 3339; empty if no line had one.
    pub timestamp: Timestamp,
    /// The byte offset up to which the transcript has been read.
    pub read_offset: u64,
    pub record: TurnLogRecord,
}

/// A record for the turn log.
#[derive(Debug, Clone)]
pub enum TurnLogRecord {
    /// A finished turn.
    Turn {
        turn: Box<Turn>,
        /// The client's id of the message.
        message_id: String,
        /// The token usage of the response.
        tokens: Option<TokenUsage>,
        /// The reason of the failure; `None` for a successful turn.
        failure_reason: Option<FailureReason>,
        /// Values that were computed while the turn was built, so that the log need not compute them again.
        encoding_hints: EncodingHints,
    },
    /// Any other event of the transcript.
    Event {
        kind: RecordKind,
        /// The content of the event.
        fields: Map<String, Value>,
    },
}

/// The knowledge about further lines when the present input has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput<'a> {
    /// More lines may follow.
    MoreMayFollow,
    /// All calls with these ids have returned, but the input may not contain their results yet.
    BatchReturned(&'a [&'a str]),
    /// No more lines follow.
    Complete,
}

/// The number of closed messages that are remembered. A late line follows soon or not at all, so a few are enough.
const MAX_CLOSED_MESSAGES: usize = 16;

/// The content of the working memory when a turn ended.
#[derive(Debug, Clone)]
pub enum TurnMemory {
    /// The full content, as it is stored in a turn.
    Snapshot(Map<String, Value>),
    /// The content is the same as in the previous turn; the text is its packed form with this turn's step.
    SameAsPreviousTurn(String),
}

/// A function that returns the content of the working memory at a time in RFC 3339.
#[derive(Clone, Copy)]
pub struct MemoryLookup<'a>(pub &'a dyn Fn(&str) -> TurnMemory);

impl std::fmt::Debug for MemoryLookup<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Remembered")
    }
}

/// Assembles the lines of one stream into turns and events.
#[derive(Debug)]
pub struct TurnAssembler<'a> {
    turn_number: u64,
    /// The last messages whose turns are closed. A closed turn never changes, so later lines of them become late records.
    closed_messages: VecDeque<String>,
    open_turn: Option<OpenTurn>,
    /// Events that were read while a turn was open.
    queued_events: Vec<AssembledRecord>,
    finished_records: Vec<AssembledRecord>,
    read_offset: u64,
    /// Fields that are added to the `ext` of every turn.
    common_ext: Map<String, Value>,
    memory_lookup: MemoryLookup<'a>,
}

/// A response of which more lines or results may follow.
#[derive(Debug, Clone)]
struct OpenTurn {
    /// The byte offset at which its first line begins.
    start_offset: u64,
    response: ResponsePart,
    blocks: Vec<Block>,
    outline: ResponseOutlineBuilder,
    results: BTreeMap<String, ReturnedResult>,
    first_line_at: String,
    last_line_at: String,
    is_interrupted: bool,
}

/// The result of a call and the time of its line.
#[derive(Debug, Clone)]
struct ReturnedResult {
    result: ToolResult,
    returned_at: String,
}

impl<'a> TurnAssembler<'a> {
    /// Creates an assembler that continues after the turn with this number and message, at the offset `read`.
    pub fn resume_after_turn(
        turn_number: u64,
        last_message: &str,
        read_offset: u64,
        common_ext: Map<String, Value>,
        memory_lookup: MemoryLookup<'a>,
    ) -> TurnAssembler<'a> {
        TurnAssembler {
            turn_number,
            closed_messages: VecDeque::from([last_message.to_owned()]),
            open_turn: None,
            queued_events: Vec::new(),
            finished_records: Vec::new(),
            read_offset,
            common_ext,
            memory_lookup,
        }
    }

    /// Returns the byte offset up to which lines have been fed.
    pub fn read_offset(&self) -> u64 {
        self.read_offset
    }

    /// Returns the byte offset from which reading can resume: the start of the open turn, or the end of the fed lines.
    pub fn resume_offset(&self) -> u64 {
        self.open_turn.as_ref().map_or(self.read_offset, |turn| turn.start_offset)
    }

    /// Processes a line that ends at the byte offset `to`. `None` stands for a line without relevant content.
    pub fn feed_line(&mut self, line: Option<TranscriptLine>, end_offset: u64) {
        if let Some(line) = line {
            self.process_line(line, end_offset);
        }
        self.read_offset = end_offset;
        // If this line closed a turn and opened no new one, the last record covers the line as well.
        if self.open_turn.is_none() {
            self.finished_records.iter_mut().rev().take(1).for_each(|record| record.read_offset = end_offset);
        }
    }

    fn process_line(&mut self, line: TranscriptLine, end_offset: u64) {
        let timestamp = line.timestamp.unwrap_or_default();
        match line.kind {
            TranscriptLineKind::Response(response) => self.add_response(response, &timestamp),
            TranscriptLineKind::ToolResults(results) => self.add_results(results, &timestamp),
            TranscriptLineKind::Prompt { text, is_meta } => {
                if text.starts_with("[Request interrupted") {
                    self.open_turn.iter_mut().for_each(|turn| turn.is_interrupted = true);
                }
                self.add_event(
                    RecordKind::Prompt,
                    &timestamp,
                    end_offset,
                    json!({"text": text, "meta": is_meta}),
                );
            }
            TranscriptLineKind::Compaction { trigger, tokens_before: before, tokens_after: after } => {
                let fields = json!({"trigger": trigger, "tokens_before": before, "tokens_after": after});
                self.add_event(RecordKind::Compaction, &timestamp, end_offset, fields);
            }
            TranscriptLineKind::Context { source: from, text } => {
                self.add_event(
                    RecordKind::Context,
                    &timestamp,
                    end_offset,
                    json!({"from": from, "text": text}),
                );
            }
            TranscriptLineKind::SessionCost(cost) => {
                let by_model: Option<Value> =
                    cost.model_usage.and_then(|raw_json| serde_json::from_str(raw_json.get()).ok());
                self.add_event(
                    RecordKind::Cost,
                    &timestamp,
                    end_offset,
                    json!({"usd": cost.total_usd, "models": by_model}),
                );
            }
            TranscriptLineKind::Other => self.close_if_complete(),
        }
    }

    /// Closes the open turn at the end of the present input if no more lines of it can follow.
    pub fn finish_input(&mut self, end: EndOfInput<'_>) {
        let should_close = |turn: &OpenTurn| match end {
            EndOfInput::MoreMayFollow => false,
            EndOfInput::Complete => true,
            // On 2.1.329 the results are mostly not written yet when the hook for the batch runs. A later event closes the
            // turn.
            EndOfInput::BatchReturned(ids) => {
                turn.is_complete() && turn.outline.calls.iter().any(|(id, ..)| ids.contains(&id.as_str()))
            }
        };
        if self.open_turn.as_ref().is_some_and(should_close) {
            self.close_open_turn();
        }
    }

    /// Removes and returns the records that were finished since the last call, in order.
    pub fn take_finished_records(&mut self) -> Vec<AssembledRecord> {
        std::mem::take(&mut self.finished_records)
    }

    fn add_response(&mut self, response: ResponsePart, timestamp: &str) {
        let blocks: Vec<Block> = response.blocks.iter().cloned().map(Block::new).collect();
        // The client writes one line for each content block, all with the message's id (2.1.329).
        if let Some(turn) = self.open_turn.as_mut().filter(|open| open.response.id == response.id) {
            blocks.iter().for_each(|block| turn.outline.add_block(block));
            turn.results.extend(server_tool_results::parse_server_tool_results(&blocks, timestamp));
            turn.blocks.extend(blocks);
            turn.response.aborted |= response.aborted;
            turn.response.stop_reason = response.stop_reason.or(turn.response.stop_reason.take());
            turn.response.usage = response.usage.or(turn.response.usage.take());
            timestamp.clone_into(&mut turn.last_line_at);
            return;
        }
        if self.closed_messages.contains(&response.id) {
            // The turn of this message is closed. The open turn is not affected.
            let blocks: Vec<Value> = blocks.iter().map(Block::parse_value).collect();
            return self.add_event(
                RecordKind::LateContent,
                timestamp,
                self.read_offset,
                json!({"message": response.id, "blocks": blocks}),
            );
        }
        self.close_open_turn();
        let mut outline = ResponseOutlineBuilder::default();
        blocks.iter().for_each(|block| outline.add_block(block));
        let results = server_tool_results::parse_server_tool_results(&blocks, timestamp).collect();
        self.open_turn = Some(OpenTurn {
            start_offset: self.read_offset,
            response,
            blocks,
            outline,
            results,
            first_line_at: timestamp.to_owned(),
            last_line_at: timestamp.to_owned(),
            is_interrupted: false,
        });
    }

    fn add_results(&mut self, results: Vec<ToolResult>, timestamp: &str) {
        for result in results {
            let has_call =
                |turn: &&mut OpenTurn| turn.outline.calls.iter().any(|(id, ..)| *id == result.tool_use_id);
            match self.open_turn.as_mut().filter(has_call) {
                Some(turn) => {
                    timestamp.clone_into(&mut turn.last_line_at);
                    turn.results.insert(
                        result.tool_use_id.clone(),
                        ReturnedResult { result, returned_at: timestamp.to_owned() },
                    );
                }
                None => {
                    let fields = json!({"call": result.tool_use_id, "result": result.content_as_text(), "ok": !result.is_error});
                    self.add_event(RecordKind::LateContent, timestamp, self.read_offset, fields);
                }
            }
        }
    }

    /// Adds an event. While a turn is open the event is queued, because it must follow that turn in the log.
    fn add_event(&mut self, kind: RecordKind, timestamp: &str, read_offset: u64, fields: Value) {
        self.close_if_complete();
        let Value::Object(fields) = fields else { return };
        let record = AssembledRecord {
            timestamp: Timestamp::from(timestamp),
            read_offset,
            record: TurnLogRecord::Event { kind, fields },
        };
        if self.open_turn.is_some() {
            self.queued_events.push(record);
        } else {
            self.finished_records.push(record);
        }
    }

    fn close_if_complete(&mut self) {
        if self.open_turn.as_ref().is_some_and(OpenTurn::is_complete) {
            self.close_open_turn();
        }
    }

    fn close_open_turn(&mut self) {
        let Some(turn) = self.open_turn.take() else { return };
        self.turn_number += 1;
        self.closed_messages.push_back(turn.response.id.clone());
        self.closed_messages.drain(..self.closed_messages.len().saturating_sub(MAX_CLOSED_MESSAGES));
        let read_offset = self.read_offset;
        let closed_at = turn.last_line_at.clone();
        let memory = (self.memory_lookup.0)(&closed_at);
        // The turn precedes the events that were queued while it was open: the log is in the order of the conversation.
        self.finished_records.push(AssembledRecord {
            timestamp: Timestamp::from(closed_at),
            read_offset,
            record: build::build_turn_record(self.turn_number, turn, &self.common_ext, memory),
        });
        self.finished_records
            .extend(self.queued_events.drain(..).map(|event| AssembledRecord { read_offset, ..event }));
    }
}

impl OpenTurn {
    /// Returns true if the lines so far show that the response is complete: it has stopped, and all calls have returned.
    /// The line of a call may follow the first line of its message, so a response that stopped for a tool must have at
    /// least one call.
    fn is_complete(&self) -> bool {
        let stop_reason = self.response.stop_reason.as_deref();
        let has_expected_calls = stop_reason != Some("tool_use") || !self.outline.calls.is_empty();
        let all_calls_returned = self.outline.calls.iter().all(|(id, ..)| self.results.contains_key(id));
        (stop_reason.is_some() || self.response.aborted) && has_expected_calls && all_calls_returned
    }
}
