//! From the turn logs to the load lines, and to what filled the windows.

use super::contents::{At, Filling, Large, Mark, Moment, Part, Point, RunSession};
use crate::render::redact::RedactedText;
use crate::render::visible::asked;
use plimsoll_domain::log_line::{MAIN, RecordKind};
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{self, Body, Recorded};
use plimsoll_store::{Project, StoreError, TurnLog, clock, sessions};
use std::collections::BTreeMap;

/// About this many bytes are a token.
const BYTES_A_TOKEN: u64 = 4;
/// How many of the largest results are named at most.
const NAMED: usize = 5;
/// Smaller ones are not worth naming.
const LARGE: u64 = 500;
/// What is no tool's result.
const PROMPTS: &str = "prompts";
const TOLD: &str = "what hooks and the client added";
const CLIENTS: &str = "the client's own (instructions, tools, memory files)";
const MODELS: &str = "the model's own text and reasoning";
const UNEXPLAINED: &str = "not distinguished (images, reminders, rough estimates)";
/// How many points of all load lines are drawn at most: more could not be seen.
const POINTS: usize = 4_000;

/// What the logs of the run's sessions come to.
#[derive(Default)]
pub(super) struct Fill {
    parts: BTreeMap<(bool, String), Part>,
    largest: Vec<Large>,
    sessions: usize,
}

/// One session's log on its way through its records.
#[derive(Default)]
struct Session {
    /// Tokens that were sent, by time: a piece for each conversation.
    sent: Vec<Vec<(At, u64)>>,
    compactions: Vec<At>,
    /// What has come in by our estimate: before the first answer, since then in this conversation.
    known: u64,
    has_answered: bool,
    /// What the first request of this conversation held; what the last one held more, and how much of that is known.
    first: Option<u64>,
    grown: u64,
    explained: u64,
    unexplained: u64,
}

/// Reads the turn logs of the sessions: their load lines, their compactions, what filled their windows.
pub(super) fn read_turns(
    project: &Project,
    sessions: &mut [RunSession],
    moments: &mut Vec<Moment>,
    fill: &mut Fill,
) -> Result<(), StoreError> {
    let points = POINTS / sessions.len().max(1);
    for session in sessions {
        let Some(id) = session.session_id.clone() else { continue };
        let record = sessions::load(project, &id);
        session.head = record.start.head_at_start;
        session.window = record.usage.reading.and_then(|reading| reading.window).map(|window| window.tokens);
        let Some(log) = TurnLog::of(project, &id).filter(TurnLog::exists) else { continue };
        let mut filled = Session::default();
        for record in turns::forwards(&log)? {
            fill.take(&mut filled, &record?);
        }
        if let Some(window) = session.window {
            session.trace = filled.trace(window, points);
        }
        moments.extend(filled.compactions(session.window));
        fill.end(filled);
    }
    Ok(())
}

impl Fill {
    /// Takes a record of a session. Subagents have windows of their own.
    fn take(&mut self, session: &mut Session, record: &Recorded) {
        if record.header.stream != MAIN {
            return;
        }
        let text = |name: &str| match &record.body {
            Body::Event(fields) => fields.get(name).and_then(serde_json::Value::as_str).map_or(0, str::len),
            _ => 0,
        } as u64;
        match record.header.kind {
            RecordKind::Prompt => self.came_in(session, PROMPTS, text("text") / BYTES_A_TOKEN),
            RecordKind::Context => self.came_in(session, TOLD, text("text") / BYTES_A_TOKEN),
            RecordKind::Compaction => session.compacted(clock::moment(&record.header.at)),
            RecordKind::Turn => self.turn(session, record),
            _ => {}
        }
    }

    fn turn(&mut self, session: &mut Session, record: &Recorded) {
        let usage = record.header.usage.unwrap_or_default();
        if usage.sent() > 0 {
            if !session.has_answered {
                self.sessions += 1;
                self.add(CLIENTS, usage.sent().saturating_sub(session.known));
            }
            session.answered(clock::moment(&record.header.at), usage.sent());
            self.came_in(session, MODELS, usage.output);
        }
        for call in record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default() {
            session.known += self.call(record, call);
        }
    }

    fn came_in(&mut self, session: &mut Session, name: &str, tokens: u64) {
        session.known += tokens;
        self.add(name, tokens);
    }

    /// A session's log is read to its end.
    fn end(&mut self, mut session: Session) {
        session.settle();
        self.add(UNEXPLAINED, session.unexplained);
    }

    /// Answers about how many tokens its result took.
    fn call(&mut self, record: &Recorded, call: &ToolCall) -> u64 {
        let tokens = call.result_text().len() as u64 / BYTES_A_TOKEN;
        let part = self.part(true, &call.name);
        part.tokens += tokens;
        part.calls += 1;
        part.failed += u64::from(!call.is_ok());
        if self.largest.len() < NAMED || self.largest.last().is_some_and(|least| least.tokens < tokens) {
            let large = Large {
                tool: RedactedText::line(&call.name, 60),
                asked: RedactedText::line(&asked(&call.args), 160),
                tokens,
                turn: RedactedText::line(&record.name(), 40),
            };
            let place = self.largest.partition_point(|known| known.tokens >= tokens);
            self.largest.insert(place, large);
            self.largest.truncate(NAMED);
        }
        tokens
    }

    fn add(&mut self, name: &str, tokens: u64) {
        self.part(false, name).tokens += tokens;
    }

    fn part(&mut self, is_tool: bool, name: &str) -> &mut Part {
        let empty = || Part { name: RedactedText::line(name, 60), is_tool, tokens: 0, calls: 0, failed: 0 };
        self.parts.entry((is_tool, name.to_owned())).or_insert_with(empty)
    }

    /// All of it, largest first.
    pub(super) fn filling(self) -> Filling {
        let mut parts: Vec<Part> =
            self.parts.into_values().filter(|part| part.tokens + part.calls > 0).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
        let largest = self.largest.into_iter().filter(|large| large.tokens >= LARGE).collect();
        Filling { parts, largest, sessions: self.sessions, delegated: SubagentUsage::default() }
    }
}

impl Session {
    /// Growth of the conversation from an unknown source: our estimates are rough, and the client adds
    /// what it does not write down.
    fn settle(&mut self) {
        self.unexplained += self.grown.saturating_sub(self.explained);
        (self.first, self.grown, self.explained) = (None, 0, 0);
    }

    fn compacted(&mut self, at: Option<At>) {
        self.settle();
        self.compactions.extend(at);
        self.sent.push(Vec::new());
    }

    fn answered(&mut self, at: Option<At>, sent: u64) {
        self.has_answered = true;
        match self.first {
            None => (self.first, self.known) = (Some(sent), 0),
            Some(first) => (self.grown, self.explained) = (sent.saturating_sub(first), self.known),
        }
        if self.sent.is_empty() {
            self.sent.push(Vec::new());
        }
        let piece = self.sent.last_mut().into_iter();
        piece.zip(at).for_each(|(piece, at)| piece.push((at, sent)));
    }

    /// The load line in a window, of at most about this many points.
    fn trace(&self, window: u64, most: usize) -> Vec<Vec<Point>> {
        let share = |sent: u64| sent as f64 * 100.0 / window.max(1) as f64;
        let all: usize = self.sent.iter().map(Vec::len).sum();
        let pieces = self.sent.iter().filter(|piece| !piece.is_empty());
        pieces
            .map(|piece| {
                let points: Vec<Point> =
                    piece.iter().map(|(at, sent)| Point { at: *at, percent: share(*sent) }).collect();
                thinned(points, most * piece.len() / all.max(1))
            })
            .collect()
    }

    /// The compactions, where the load line had come by then.
    fn compactions(&self, window: Option<u64>) -> Vec<Moment> {
        let before = |at: &At| {
            let sent = self.sent.iter().flatten().rfind(|(then, _)| then <= at);
            sent.zip(window).map(|((_, sent), window)| *sent as f64 * 100.0 / window.max(1) as f64)
        };
        let moment = |at: &At| Moment {
            at: *at,
            what: Mark::Compaction,
            percent: before(at),
            words: RedactedText::line("the client compacted the conversation", 80),
        };
        self.compactions.iter().map(moment).collect()
    }
}

/// Of each stretch the lowest and the highest point, in their order, so that no peak is lost.
fn thinned(points: Vec<Point>, most: usize) -> Vec<Point> {
    let stretches = (most / 2).max(1);
    if points.len() <= stretches * 2 {
        return points;
    }
    let length = points.len().div_ceil(stretches);
    let mut kept = Vec::with_capacity(stretches * 2);
    for stretch in points.chunks(length) {
        let by = |one: &&Point, other: &&Point| one.percent.total_cmp(&other.percent);
        let ends = stretch.iter().min_by(by).zip(stretch.iter().max_by(by));
        if let Some((low, high)) = ends {
            let (first, second) = if low.at <= high.at { (low, high) } else { (high, low) };
            kept.push(*first);
            kept.extend((first != second).then_some(*second));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_line_keeps_its_peaks() {
        let at = |second: u64| clock::at(1_700_000_000 + second).unwrap();
        let percent = |second: u64| if second == 777 { 91.0 } else { (second % 50) as f64 };
        let line: Vec<Point> =
            (0..2_000).map(|second| Point { at: at(second), percent: percent(second) }).collect();
        let kept = thinned(line.clone(), 100);
        assert!(kept.len() <= 100, "{}", kept.len());
        assert!(kept.iter().any(|point| (point.percent - 91.0).abs() < 0.1));
        assert!(kept.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert_eq!(thinned(line[..90].to_vec(), 100).len(), 90);
    }
}
