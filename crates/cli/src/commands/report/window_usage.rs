//! Reads the turn logs into the load lines and the usage of the context windows by category.

use super::contents::{
    LargeResult, LoadLineMark, LoadPoint, MarkKind, RunSession, UsageCategory, UtcTime, WindowUsage,
};
use crate::render::redact::RedactedText;
use crate::render::visible::call_arguments_text;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{self, LoggedRecord, RecordBody};
use plimsoll_store::{Project, StoreError, TurnLog, clock, sessions};
use std::collections::BTreeMap;

/// Approximate number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;
const MAX_LARGE_RESULTS: usize = 5;
/// Smaller results are not listed.
const MIN_LARGE_RESULT_TOKENS: u64 = 500;
/// Names of the categories that are not a tool's results.
const PROMPTS_CATEGORY: &str = "prompts";
const ADDED_CONTEXT_CATEGORY: &str = "what hooks and the client added";
const CLIENT_CATEGORY: &str = "the client's own (instructions, tools, memory files)";
const MODEL_CATEGORY: &str = "the model's own text and reasoning";
const UNEXPLAINED_CATEGORY: &str = "not distinguished (images, reminders, rough estimates)";
/// Maximum number of points of all load lines together; more would not be visible.
const MAX_TOTAL_POINTS: usize = 4_000;

/// Accumulates the window usage of the run's sessions.
#[derive(Default)]
pub(super) struct WindowUsageBuilder {
    categories: BTreeMap<(bool, String), UsageCategory>,
    largest_results: Vec<LargeResult>,
    session_count: usize,
}

/// Accumulates the usage of one session while its log is read.
#[derive(Default)]
struct SessionUsage {
    /// Input tokens of each request with its time, in one piece for each conversation.
    input_tokens_by_time: Vec<Vec<(UtcTime, u64)>>,
    compaction_times: Vec<UtcTime>,
    /// Estimated tokens added before the first response, and after it since the conversation's first request.
    estimated_tokens: u64,
    has_response: bool,
    /// Input tokens of the conversation's first request. The next fields are the growth until its last request, and how much of that
    /// growth our estimates explain.
    first_input_tokens: Option<u64>,
    growth_tokens: u64,
    explained_tokens: u64,
    unexplained_tokens: u64,
}

/// Reads the turn logs of the sessions. Sets their load lines, appends their compactions to the marks, and adds their window usage to the
/// builder.
pub(super) fn read_turn_logs(
    project: &Project,
    sessions: &mut [RunSession],
    marks: &mut Vec<LoadLineMark>,
    usage_builder: &mut WindowUsageBuilder,
) -> Result<(), StoreError> {
    let max_points = MAX_TOTAL_POINTS / sessions.len().max(1);
    for session in sessions {
        let Some(session_id) = session.session_id.clone() else { continue };
        let record = sessions::load_session_record(project, &session_id);
        session.head_at_start = record.start.head_at_start;
        session.window_tokens =
            record.usage.last_reading.and_then(|reading| reading.window).map(|window| window.tokens);
        let Some(log) = TurnLog::for_session(project, &session_id).filter(TurnLog::exists) else { continue };
        let mut session_usage = SessionUsage::default();
        for record in turns::records_from_start(&log)? {
            usage_builder.add_record(&mut session_usage, &record?);
        }
        if let Some(window) = session.window_tokens {
            session.load_line = session_usage.to_load_line(window, max_points);
        }
        marks.extend(session_usage.compaction_marks(session.window_tokens));
        usage_builder.finish_session(session_usage);
    }
    Ok(())
}

impl WindowUsageBuilder {
    /// Adds a record of a session. Records of subagents are skipped, because they have their own windows.
    fn add_record(&mut self, session: &mut SessionUsage, record: &LoggedRecord) {
        if record.header.stream != MAIN_STREAM {
            return;
        }
        let text_bytes = |name: &str| match &record.body {
            RecordBody::Event(fields) => {
                fields.get(name).and_then(serde_json::Value::as_str).map_or(0, str::len)
            }
            _ => 0,
        } as u64;
        match record.header.kind {
            RecordKind::Prompt => {
                self.add_input(session, PROMPTS_CATEGORY, text_bytes("text") / BYTES_PER_TOKEN);
            }
            RecordKind::Context => {
                self.add_input(session, ADDED_CONTEXT_CATEGORY, text_bytes("text") / BYTES_PER_TOKEN);
            }
            RecordKind::Compaction => {
                session.record_compaction(clock::parse_timestamp(&record.header.recorded_at));
            }
            RecordKind::Turn => self.add_turn(session, record),
            _ => {}
        }
    }

    fn add_turn(&mut self, session: &mut SessionUsage, record: &LoggedRecord) {
        let usage = record.header.usage.unwrap_or_default();
        if usage.total_input() > 0 {
            if !session.has_response {
                self.session_count += 1;
                self.add_tokens(
                    CLIENT_CATEGORY,
                    usage.total_input().saturating_sub(session.estimated_tokens),
                );
            }
            session.record_response(clock::parse_timestamp(&record.header.recorded_at), usage.total_input());
            self.add_input(session, MODEL_CATEGORY, usage.output);
        }
        for call in record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default() {
            session.estimated_tokens += self.add_tool_call(record, call);
        }
    }

    fn add_input(&mut self, session: &mut SessionUsage, name: &str, tokens: u64) {
        session.estimated_tokens += tokens;
        self.add_tokens(name, tokens);
    }

    /// Finishes a session whose log was read completely, and adds its unexplained tokens.
    fn finish_session(&mut self, mut session: SessionUsage) {
        session.settle_unexplained_growth();
        self.add_tokens(UNEXPLAINED_CATEGORY, session.unexplained_tokens);
    }

    /// Adds a tool call, and returns the estimated tokens of its result.
    fn add_tool_call(&mut self, record: &LoggedRecord, call: &ToolCall) -> u64 {
        let tokens = call.result_text().len() as u64 / BYTES_PER_TOKEN;
        let category = self.category_mut(true, &call.name);
        category.tokens += tokens;
        category.call_count += 1;
        category.failed_count += u64::from(!call.is_ok());
        if self.largest_results.len() < MAX_LARGE_RESULTS
            || self.largest_results.last().is_some_and(|smallest| smallest.tokens < tokens)
        {
            let large_result = LargeResult {
                tool: RedactedText::single_line(&call.name, 60),
                arguments: RedactedText::single_line(&call_arguments_text(&call.args), 160),
                tokens,
                turn_name: RedactedText::single_line(&record.display_name(), 40),
            };
            let index = self.largest_results.partition_point(|existing| existing.tokens >= tokens);
            self.largest_results.insert(index, large_result);
            self.largest_results.truncate(MAX_LARGE_RESULTS);
        }
        tokens
    }

    fn add_tokens(&mut self, name: &str, tokens: u64) {
        self.category_mut(false, name).tokens += tokens;
    }

    fn category_mut(&mut self, is_tool: bool, name: &str) -> &mut UsageCategory {
        let new_category = || UsageCategory {
            name: RedactedText::single_line(name, 60),
            is_tool,
            tokens: 0,
            call_count: 0,
            failed_count: 0,
        };
        self.categories.entry((is_tool, name.to_owned())).or_insert_with(new_category)
    }

    /// Returns the usage by category, largest first.
    pub(super) fn into_window_usage(self) -> WindowUsage {
        let mut categories: Vec<UsageCategory> =
            self.categories.into_values().filter(|part| part.tokens + part.call_count > 0).collect();
        categories.sort_by_key(|part| std::cmp::Reverse(part.tokens));
        let largest_results = self
            .largest_results
            .into_iter()
            .filter(|large| large.tokens >= MIN_LARGE_RESULT_TOKENS)
            .collect();
        WindowUsage {
            categories,
            largest_results,
            session_count: self.session_count,
            subagent_usage: SubagentUsage::default(),
        }
    }
}

impl SessionUsage {
    /// Adds the conversation's unexplained growth to the session's total, and resets the counters for the next conversation. Some growth
    /// stays unexplained because our estimates are rough and the client adds content that it does not record.
    fn settle_unexplained_growth(&mut self) {
        self.unexplained_tokens += self.growth_tokens.saturating_sub(self.explained_tokens);
        (self.first_input_tokens, self.growth_tokens, self.explained_tokens) = (None, 0, 0);
    }

    fn record_compaction(&mut self, at: Option<UtcTime>) {
        self.settle_unexplained_growth();
        self.compaction_times.extend(at);
        self.input_tokens_by_time.push(Vec::new());
    }

    fn record_response(&mut self, at: Option<UtcTime>, input_tokens: u64) {
        self.has_response = true;
        match self.first_input_tokens {
            None => (self.first_input_tokens, self.estimated_tokens) = (Some(input_tokens), 0),
            Some(first_input_tokens) => {
                (self.growth_tokens, self.explained_tokens) =
                    (input_tokens.saturating_sub(first_input_tokens), self.estimated_tokens);
            }
        }
        if self.input_tokens_by_time.is_empty() {
            self.input_tokens_by_time.push(Vec::new());
        }
        let last_piece = self.input_tokens_by_time.last_mut().into_iter();
        last_piece.zip(at).for_each(|(piece, at)| piece.push((at, input_tokens)));
    }

    /// Returns the load line in percent of the window, thinned to about this many points.
    fn to_load_line(&self, window_tokens: u64, max_points: usize) -> Vec<Vec<LoadPoint>> {
        let to_percent = |sent: u64| sent as f64 * 100.0 / window_tokens.max(1) as f64;
        let total_points: usize = self.input_tokens_by_time.iter().map(Vec::len).sum();
        let pieces = self.input_tokens_by_time.iter().filter(|piece| !piece.is_empty());
        pieces
            .map(|piece| {
                let points: Vec<LoadPoint> = piece
                    .iter()
                    .map(|(at, sent)| LoadPoint { at: *at, percent: to_percent(*sent) })
                    .collect();
                thin_points(points, max_points * piece.len() / total_points.max(1))
            })
            .collect()
    }

    /// Returns the marks of the compactions, each at the height of the load line at that time.
    fn compaction_marks(&self, window_tokens: Option<u64>) -> Vec<LoadLineMark> {
        let percent_before = |at: &UtcTime| {
            let last_request = self.input_tokens_by_time.iter().flatten().rfind(|(time, _)| time <= at);
            last_request
                .zip(window_tokens)
                .map(|((_, sent), window_tokens)| *sent as f64 * 100.0 / window_tokens.max(1) as f64)
        };
        let to_mark = |at: &UtcTime| LoadLineMark {
            at: *at,
            kind: MarkKind::Compaction,
            percent: percent_before(at),
            description: RedactedText::single_line("the client compacted the conversation", 80),
        };
        self.compaction_times.iter().map(to_mark).collect()
    }
}

/// Reduces the number of points. Keeps the lowest and the highest point of each stretch, so that no peak is lost.
fn thin_points(points: Vec<LoadPoint>, max_points: usize) -> Vec<LoadPoint> {
    let stretch_count = (max_points / 2).max(1);
    if points.len() <= stretch_count * 2 {
        return points;
    }
    let length = points.len().div_ceil(stretch_count);
    let mut kept = Vec::with_capacity(stretch_count * 2);
    for stretch in points.chunks(length) {
        let by_percent = |left: &&LoadPoint, right: &&LoadPoint| left.percent.total_cmp(&right.percent);
        let extremes = stretch.iter().min_by(by_percent).zip(stretch.iter().max_by(by_percent));
        if let Some((low, high)) = extremes {
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
        let at = |second: u64| clock::from_unix_seconds(1_700_000_000 + second).unwrap();
        let percent = |second: u64| if second == 777 { 91.0 } else { (second % 50) as f64 };
        let line: Vec<LoadPoint> =
            (0..2_000).map(|second| LoadPoint { at: at(second), percent: percent(second) }).collect();
        let kept = thin_points(line.clone(), 100);
        assert!(kept.len() <= 100, "{}", kept.len());
        assert!(kept.iter().any(|point| (point.percent - 91.0).abs() < 0.1));
        assert!(kept.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert_eq!(thin_points(line[..90].to_vec(), 100).len(), 90);
    }
}
