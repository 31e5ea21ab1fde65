//! Reads the turn logs into the load lines and the usage of the context windows by category.

use super::contents::{
    ChartMark, LargeResult, MarkKind, RunSession, UsageCategory, UsagePoint, UtcTime, WindowUsage,
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
/// Names of the categories that do not belong to a tool.
const PROMPTS_CATEGORY: &str = "prompts";
const ADDED_CONTEXT_CATEGORY: &str = "what hooks and Claude Code added";
const CLIENT_CATEGORY: &str = "Claude Code's own (instructions, tools, memory files)";
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
    /// Time and input tokens of each request, with one list for each conversation between two compactions.
    requests_by_conversation: Vec<Vec<(UtcTime, u64)>>,
    compaction_times: Vec<UtcTime>,
    /// Estimated tokens that were added before the conversation's first request, or since then once it was made.
    estimated_tokens: u64,
    has_response: bool,
    /// Input tokens of the conversation's first request. `growth_tokens` is the growth until its last
    /// request, and `explained_tokens` is the part of that growth that the estimates explain.
    first_input_tokens: Option<u64>,
    growth_tokens: u64,
    explained_tokens: u64,
    unexplained_tokens: u64,
}

/// Reads the turn logs of the sessions. Sets their load lines, appends their compactions to the marks, and adds their
/// window usage to the builder.
pub(super) fn read_turn_logs_into_sessions_and_usage(
    project: &Project,
    sessions: &mut [RunSession],
    marks: &mut Vec<ChartMark>,
    usage_builder: &mut WindowUsageBuilder,
) -> Result<(), StoreError> {
    let max_points = MAX_TOTAL_POINTS / sessions.len().max(1);
    for session in sessions {
        let Some(session_id) = session.session_id.clone() else { continue };
        let session_record = sessions::load_session_record(project, &session_id);
        session.head_at_start = session_record.start.head_at_start;
        session.window_tokens =
            session_record.usage.last_reading.and_then(|reading| reading.window).map(|window| window.tokens);
        let Some(log) =
            TurnLog::for_session_where_started_or_current(project, &session_id).filter(TurnLog::exists)
        else {
            continue;
        };
        let mut session_usage = SessionUsage::default();
        for log_record in turns::records_from_start(&log)? {
            usage_builder.add_record_if_in_main_stream(&mut session_usage, &log_record?);
        }
        if let Some(window_tokens) = session.window_tokens {
            session.load_line = session_usage.usage_points_by_conversation(window_tokens, max_points);
        }
        marks.extend(session_usage.compaction_marks(session.window_tokens));
        usage_builder.add_unexplained_tokens_of_session(session_usage);
    }
    Ok(())
}

impl WindowUsageBuilder {
    /// Adds a record of the main stream. Skips records of subagents, because each subagent has a separate window.
    fn add_record_if_in_main_stream(&mut self, session_usage: &mut SessionUsage, record: &LoggedRecord) {
        if record.header.stream != MAIN_STREAM {
            return;
        }
        let field_byte_count = |field_name: &str| match &record.body {
            RecordBody::Event(fields) => {
                fields.get(field_name).and_then(serde_json::Value::as_str).map_or(0, str::len)
            }
            _ => 0,
        } as u64;
        match record.header.kind {
            RecordKind::Prompt => {
                self.add_tokens_to_session_and_category(
                    session_usage,
                    PROMPTS_CATEGORY,
                    field_byte_count("text") / BYTES_PER_TOKEN,
                );
            }
            RecordKind::Context => {
                self.add_tokens_to_session_and_category(
                    session_usage,
                    ADDED_CONTEXT_CATEGORY,
                    field_byte_count("text") / BYTES_PER_TOKEN,
                );
            }
            RecordKind::Compaction => {
                session_usage.record_compaction(clock::parse_timestamp(&record.header.recorded_at));
            }
            RecordKind::Turn => self.add_turn_usage_and_tool_results(session_usage, record),
            _ => {}
        }
    }

    fn add_turn_usage_and_tool_results(&mut self, session_usage: &mut SessionUsage, record: &LoggedRecord) {
        let usage = record.header.usage.unwrap_or_default();
        if usage.total_input() > 0 {
            if !session_usage.has_response {
                self.session_count += 1;
                self.add_tokens_to_category(
                    CLIENT_CATEGORY,
                    usage.total_input().saturating_sub(session_usage.estimated_tokens),
                );
            }
            session_usage.record_request_and_growth_since_first(
                clock::parse_timestamp(&record.header.recorded_at),
                usage.total_input(),
            );
            self.add_tokens_to_session_and_category(session_usage, MODEL_CATEGORY, usage.output);
        }
        for call in record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default() {
            session_usage.estimated_tokens += self.add_tool_call_and_return_result_tokens(record, call);
        }
    }

    fn add_tokens_to_session_and_category(
        &mut self,
        session_usage: &mut SessionUsage,
        category_name: &str,
        tokens: u64,
    ) {
        session_usage.estimated_tokens += tokens;
        self.add_tokens_to_category(category_name, tokens);
    }

    /// Adds the unexplained tokens of a session. Its log must have been read completely.
    fn add_unexplained_tokens_of_session(&mut self, mut session_usage: SessionUsage) {
        session_usage.add_unexplained_growth_and_reset();
        self.add_tokens_to_category(UNEXPLAINED_CATEGORY, session_usage.unexplained_tokens);
    }

    /// Adds a tool call, and returns the estimated tokens of its result.
    fn add_tool_call_and_return_result_tokens(&mut self, record: &LoggedRecord, call: &ToolCall) -> u64 {
        let tokens = call.result_text().len() as u64 / BYTES_PER_TOKEN;
        let category = self.get_or_create_category(true, &call.name);
        category.tokens += tokens;
        category.call_count += 1;
        category.failed_call_count += u64::from(!call.is_ok());
        if self.largest_results.len() < MAX_LARGE_RESULTS
            || self.largest_results.last().is_some_and(|smallest| smallest.tokens < tokens)
        {
            let large_result = LargeResult {
                tool: RedactedText::single_line(&call.name, 60),
                arguments: RedactedText::single_line(&call_arguments_text(&call.args), 160),
                tokens,
                turn_name: RedactedText::single_line(&record.short_session_id_and_number(), 40),
            };
            let index = self.largest_results.partition_point(|existing| existing.tokens >= tokens);
            self.largest_results.insert(index, large_result);
            self.largest_results.truncate(MAX_LARGE_RESULTS);
        }
        tokens
    }

    fn add_tokens_to_category(&mut self, category_name: &str, tokens: u64) {
        self.get_or_create_category(false, category_name).tokens += tokens;
    }

    fn get_or_create_category(&mut self, is_tool: bool, category_name: &str) -> &mut UsageCategory {
        let new_category = || UsageCategory {
            name: RedactedText::single_line(category_name, 60),
            is_tool,
            tokens: 0,
            call_count: 0,
            failed_call_count: 0,
        };
        self.categories.entry((is_tool, category_name.to_owned())).or_insert_with(new_category)
    }

    /// Returns the usage by category, largest first.
    pub(super) fn into_sorted_usage_dropping_small_results(self) -> WindowUsage {
        let mut categories: Vec<UsageCategory> = self
            .categories
            .into_values()
            .filter(|category| category.tokens + category.call_count > 0)
            .collect();
        categories.sort_by_key(|category| std::cmp::Reverse(category.tokens));
        let largest_results = self
            .largest_results
            .into_iter()
            .filter(|result| result.tokens >= MIN_LARGE_RESULT_TOKENS)
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
    /// Adds the conversation's unexplained growth to the session's total, and resets the counters for the
    /// next conversation. Some growth stays unexplained, because the estimates are rough and the client adds
    /// content that it does not record.
    fn add_unexplained_growth_and_reset(&mut self) {
        self.unexplained_tokens += self.growth_tokens.saturating_sub(self.explained_tokens);
        (self.first_input_tokens, self.growth_tokens, self.explained_tokens) = (None, 0, 0);
    }

    fn record_compaction(&mut self, compacted_at: Option<UtcTime>) {
        self.add_unexplained_growth_and_reset();
        self.compaction_times.extend(compacted_at);
        self.requests_by_conversation.push(Vec::new());
    }

    fn record_request_and_growth_since_first(&mut self, responded_at: Option<UtcTime>, input_tokens: u64) {
        self.has_response = true;
        match self.first_input_tokens {
            None => (self.first_input_tokens, self.estimated_tokens) = (Some(input_tokens), 0),
            Some(first_input_tokens) => {
                (self.growth_tokens, self.explained_tokens) =
                    (input_tokens.saturating_sub(first_input_tokens), self.estimated_tokens);
            }
        }
        if self.requests_by_conversation.is_empty() {
            self.requests_by_conversation.push(Vec::new());
        }
        let last_conversation = self.requests_by_conversation.last_mut().into_iter();
        last_conversation.zip(responded_at).for_each(|(requests, time)| requests.push((time, input_tokens)));
    }

    /// Returns the load line in percent of the window, reduced to about `max_points` points.
    fn usage_points_by_conversation(&self, window_tokens: u64, max_points: usize) -> Vec<Vec<UsagePoint>> {
        let to_percent = |input_tokens: u64| input_tokens as f64 * 100.0 / window_tokens.max(1) as f64;
        let total_points: usize = self.requests_by_conversation.iter().map(Vec::len).sum();
        let conversations = self.requests_by_conversation.iter().filter(|requests| !requests.is_empty());
        conversations
            .map(|requests| {
                let points: Vec<UsagePoint> = requests
                    .iter()
                    .map(|(time, input_tokens)| UsagePoint {
                        measured_at: *time,
                        percent: to_percent(*input_tokens),
                    })
                    .collect();
                thin_points_keeping_extremes(points, max_points * requests.len() / total_points.max(1))
            })
            .collect()
    }

    /// Returns a mark for each compaction, with the load in percent just before it.
    fn compaction_marks(&self, window_tokens: Option<u64>) -> Vec<ChartMark> {
        let load_percent_before = |compacted_at: &UtcTime| {
            let last_request =
                self.requests_by_conversation.iter().flatten().rfind(|(time, _)| time <= compacted_at);
            last_request.zip(window_tokens).map(|((_, input_tokens), window_tokens)| {
                *input_tokens as f64 * 100.0 / window_tokens.max(1) as f64
            })
        };
        let to_mark = |compacted_at: &UtcTime| ChartMark {
            occurred_at: *compacted_at,
            kind: MarkKind::Compaction,
            percent: load_percent_before(compacted_at),
            description: RedactedText::single_line("Claude Code compacted the conversation", 80),
        };
        self.compaction_times.iter().map(to_mark).collect()
    }
}

/// Reduces the number of points. Keeps the lowest and the highest point of each segment, so that no peak is lost.
fn thin_points_keeping_extremes(points: Vec<UsagePoint>, max_points: usize) -> Vec<UsagePoint> {
    let segment_count = (max_points / 2).max(1);
    if points.len() <= segment_count * 2 {
        return points;
    }
    let segment_length = points.len().div_ceil(segment_count);
    let mut kept_points = Vec::with_capacity(segment_count * 2);
    for segment in points.chunks(segment_length) {
        let by_percent = |left: &&UsagePoint, right: &&UsagePoint| left.percent.total_cmp(&right.percent);
        let extremes = segment.iter().min_by(by_percent).zip(segment.iter().max_by(by_percent));
        if let Some((low, high)) = extremes {
            let (first, second) = if low.measured_at <= high.measured_at { (low, high) } else { (high, low) };
            kept_points.push(*first);
            kept_points.extend((first != second).then_some(*second));
        }
    }
    kept_points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_line_keeps_its_peaks() {
        let at = |second: u64| clock::from_unix_seconds(1_700_000_000 + second).unwrap();
        let percent = |second: u64| if second == 777 { 91.0 } else { (second % 50) as f64 };
        let line: Vec<UsagePoint> = (0..2_000)
            .map(|second| UsagePoint { measured_at: at(second), percent: percent(second) })
            .collect();
        let kept = thin_points_keeping_extremes(line.clone(), 100);
        assert!(kept.len() <= 100, "{}", kept.len());
        assert!(kept.iter().any(|point| (point.percent - 91.0).abs() < 0.1));
        assert!(kept.windows(2).all(|pair| pair[0].measured_at < pair[1].measured_at));
        assert_eq!(thin_points_keeping_extremes(line[..90].to_vec(), 100).len(), 90);
    }
}
