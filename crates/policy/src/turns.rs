//! From the lines of a transcript to turns: which lines are one response, when it is complete, how it went. Pure;
//! the lines come in order, and each says where it ends, so that the one that reads can continue from there.

mod build;
mod outcome;
mod within;

#[cfg(test)]
mod tests;

use plimsoll_domain::log_line::{RecordKind, Tokens};
use plimsoll_domain::turn::record::Known;
use plimsoll_domain::turn::{Block, OutlineParts, Reason};
use plimsoll_domain::{Timestamp, Turn};
use plimsoll_protocol::recording::{Answer, LineKind, ToolResult, TranscriptLine};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// What was made of some lines.
#[derive(Debug, Clone)]
pub struct AssembledRecord {
    /// When, RFC 3339; empty if no line said so.
    pub at: Timestamp,
    /// Up to this byte the transcript has been read.
    pub read: u64,
    /// What.
    pub what: Record,
}

/// A record for the log.
#[derive(Debug, Clone)]
pub enum Record {
    /// A turn.
    Turn {
        /// The turn.
        turn: Box<Turn>,
        /// The client's id of its message.
        message: String,
        /// What it cost.
        tokens: Option<Tokens>,
        /// Why it failed, if it did.
        reason: Option<Reason>,
        /// What was found out on the way.
        known: Known,
    },
    /// Anything else.
    Event {
        /// What.
        kind: RecordKind,
        /// Its content.
        fields: Map<String, Value>,
    },
}

/// What is known when there are no more lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput<'a> {
    /// More may come.
    Open,
    /// All calls with these ids have returned.
    Batch(&'a [&'a str]),
    /// Nothing comes any more.
    Over,
}

/// How many closed messages are remembered: a late line comes soon or not at all.
const CLOSED: usize = 16;

/// What the working memory held when a turn ended.
#[derive(Debug, Clone)]
pub enum TurnMemory {
    /// As a turn keeps it.
    Whole(Map<String, Value>),
    /// As the content of the turn before has it, with this turn's step.
    AsBefore(String),
}

/// What the working memory held at a moment (RFC 3339).
#[derive(Clone, Copy)]
pub struct Remembered<'a>(pub &'a dyn Fn(&str) -> TurnMemory);

impl std::fmt::Debug for Remembered<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Remembered")
    }
}

/// Puts the lines of one stream together.
#[derive(Debug)]
pub struct Assembler<'a> {
    number: u64,
    /// Messages whose turns are closed: a turn never changes.
    closed: VecDeque<String>,
    open: Option<OpenTurn>,
    /// Events that came while a turn was open.
    queue: Vec<AssembledRecord>,
    made: Vec<AssembledRecord>,
    read: u64,
    /// What goes into every turn's `ext`.
    setting: Map<String, Value>,
    memory: Remembered<'a>,
}

/// A response whose lines or results may still come.
#[derive(Debug, Clone)]
struct OpenTurn {
    /// Where its first line begins.
    from: u64,
    answer: Answer,
    blocks: Vec<Block>,
    outline: OutlineParts,
    results: BTreeMap<String, Returned>,
    first_at: String,
    last_at: String,
    interrupted: bool,
}

/// What came back from a call, and when.
#[derive(Debug, Clone)]
struct Returned {
    result: ToolResult,
    at: String,
}

impl<'a> Assembler<'a> {
    /// Continues after the turn with that number and message.
    pub fn after(
        number: u64,
        last_message: &str,
        read: u64,
        setting: Map<String, Value>,
        memory: Remembered<'a>,
    ) -> Assembler<'a> {
        Assembler {
            number,
            closed: VecDeque::from([last_message.to_owned()]),
            open: None,
            queue: Vec::new(),
            made: Vec::new(),
            read,
            setting,
            memory,
        }
    }

    /// Up to this byte the lines have been taken.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Up to this byte nothing is needed again.
    pub fn safe(&self) -> u64 {
        self.open.as_ref().map_or(self.read, |open| open.from)
    }

    /// Takes a line that ends at a byte; none for one without content.
    pub fn feed(&mut self, line: Option<TranscriptLine>, to: u64) {
        if let Some(line) = line {
            self.take_line(line, to);
        }
        self.read = to;
        // What has been closed by this line has been read up to here, unless a new one was opened by it.
        if self.open.is_none() {
            self.made.iter_mut().rev().take(1).for_each(|made| made.read = to);
        }
    }

    fn take_line(&mut self, line: TranscriptLine, to: u64) {
        let at = line.at.unwrap_or_default();
        match line.what {
            LineKind::Answer(answer) => self.answer(answer, &at),
            LineKind::Results(results) => self.results(results, &at),
            LineKind::Prompt { text, is_meta } => {
                if text.starts_with("[Request interrupted") {
                    self.open.iter_mut().for_each(|open| open.interrupted = true);
                }
                self.event(RecordKind::Prompt, &at, to, json!({"text": text, "meta": is_meta}));
            }
            LineKind::Compaction { trigger, before, after } => {
                let fields = json!({"trigger": trigger, "tokens_before": before, "tokens_after": after});
                self.event(RecordKind::Compaction, &at, to, fields);
            }
            LineKind::Context { from, text } => {
                self.event(RecordKind::Context, &at, to, json!({"from": from, "text": text}));
            }
            LineKind::Cost(cost) => {
                let by_model: Option<Value> =
                    cost.model_usage.and_then(|raw| serde_json::from_str(raw.get()).ok());
                self.event(RecordKind::Cost, &at, to, json!({"usd": cost.total_usd, "models": by_model}));
            }
            LineKind::Other => self.close_if_complete(),
        }
    }

    /// There are no more lines.
    pub fn settle(&mut self, closing: EndOfInput<'_>) {
        let is_due = |open: &OpenTurn| match closing {
            EndOfInput::Open => false,
            EndOfInput::Over => true,
            // On 2.1.329 the results are mostly not written yet when the batch's hook runs: a later event closes it.
            EndOfInput::Batch(ids) => {
                open.is_complete() && open.outline.calls.iter().any(|(id, ..)| ids.contains(&id.as_str()))
            }
        };
        if self.open.as_ref().is_some_and(is_due) {
            self.close();
        }
    }

    /// What has been made since the last time, in order. Everything in it may be forgotten here.
    pub fn take(&mut self) -> Vec<AssembledRecord> {
        std::mem::take(&mut self.made)
    }

    fn answer(&mut self, answer: Answer, at: &str) {
        let blocks: Vec<Block> = answer.blocks.iter().cloned().map(Block::new).collect();
        // The client writes one line for each content block, all with the message's id (2.1.329).
        if let Some(open) = self.open.as_mut().filter(|open| open.answer.id == answer.id) {
            blocks.iter().for_each(|block| open.outline.add(block));
            open.results.extend(within::results(&blocks, at));
            open.blocks.extend(blocks);
            open.answer.aborted |= answer.aborted;
            open.answer.stop_reason = answer.stop_reason.or(open.answer.stop_reason.take());
            open.answer.usage = answer.usage.or(open.answer.usage.take());
            at.clone_into(&mut open.last_at);
            return;
        }
        if self.closed.contains(&answer.id) {
            // Its turn is closed, and the one that is open continues.
            let blocks: Vec<Value> = blocks.iter().map(Block::value).collect();
            return self.event(
                RecordKind::Late,
                at,
                self.read,
                json!({"message": answer.id, "blocks": blocks}),
            );
        }
        self.close();
        let mut outline = OutlineParts::default();
        blocks.iter().for_each(|block| outline.add(block));
        let results = within::results(&blocks, at).collect();
        self.open = Some(OpenTurn {
            from: self.read,
            answer,
            blocks,
            outline,
            results,
            first_at: at.to_owned(),
            last_at: at.to_owned(),
            interrupted: false,
        });
    }

    fn results(&mut self, results: Vec<ToolResult>, at: &str) {
        for result in results {
            let known = |open: &&mut OpenTurn| open.outline.calls.iter().any(|(id, ..)| *id == result.id);
            match self.open.as_mut().filter(known) {
                Some(open) => {
                    at.clone_into(&mut open.last_at);
                    open.results.insert(result.id.clone(), Returned { result, at: at.to_owned() });
                }
                None => {
                    let fields = json!({"call": result.id, "result": result.text(), "ok": !result.is_error});
                    self.event(RecordKind::Late, at, self.read, fields);
                }
            }
        }
    }

    /// An event comes after the turn before it: while that is open, it waits.
    fn event(&mut self, kind: RecordKind, at: &str, read: u64, fields: Value) {
        self.close_if_complete();
        let Value::Object(fields) = fields else { return };
        let made = AssembledRecord { at: Timestamp::from(at), read, what: Record::Event { kind, fields } };
        if self.open.is_some() { self.queue.push(made) } else { self.made.push(made) }
    }

    fn close_if_complete(&mut self) {
        if self.open.as_ref().is_some_and(OpenTurn::is_complete) {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.number += 1;
        self.closed.push_back(open.answer.id.clone());
        self.closed.drain(..self.closed.len().saturating_sub(CLOSED));
        let read = self.read;
        let at = open.last_at.clone();
        let memory = (self.memory.0)(&at);
        // The turn before the events that came while it was open: the log is in the order of the conversation.
        self.made.push(AssembledRecord {
            at: Timestamp::from(at),
            read,
            what: build::turn(self.number, open, &self.setting, memory),
        });
        self.made.extend(self.queue.drain(..).map(|made| AssembledRecord { read, ..made }));
    }
}

impl OpenTurn {
    /// True when nothing of it is missing any more, as far as its lines tell. (A tool's line may come after its
    /// message's first one: a response that stopped for a tool has one.)
    fn is_complete(&self) -> bool {
        let stopped = self.answer.stop_reason.as_deref();
        let has_its_calls = stopped != Some("tool_use") || !self.outline.calls.is_empty();
        let all_back = self.outline.calls.iter().all(|(id, ..)| self.results.contains_key(id));
        (stopped.is_some() || self.answer.aborted) && has_its_calls && all_back
    }
}
