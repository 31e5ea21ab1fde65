//! `plimsoll turns stats`: totals of the turns, and what filled the window.

mod tool;

use super::turn_filter::TurnFilter;
use super::{TurnsError, print_no_recorded_turns, record_missing_turns_or_print_warning};
use clap::Args;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind, TokenUsage};
use plimsoll_domain::subagent_usage::{SubagentUsage, SubagentUsageEstimator};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::context::session_usage::add_usage_of_turn_log_record;
use plimsoll_flows::turns::{self, LoggedRecord, RecordBody, TurnSelection};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_store::Project;
use plimsoll_terminal::console;
use plimsoll_terminal::console::print_text;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use tool::{ToolStats, UnmeasuredResponse};

#[derive(Debug, Args)]
pub(super) struct StatsArguments {
    #[command(flatten)]
    filter: TurnFilter,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Totals of the selected turns.
#[derive(Debug, Default)]
struct TurnStats {
    session_count: usize,
    turn_count: u64,
    failure_counts: BTreeMap<&'static str, u64>,
    stats_by_tool: BTreeMap<String, ToolStats>,
    /// Token usage of the selected turns; each message is counted once.
    used_tokens: TokenUsage,
    /// Input and output tokens of each turn.
    input_per_turn: Vec<u64>,
    output_per_turn: Vec<u64>,
    /// How many tokens the window grew from one turn of a main stream to the next.
    window_growth: Vec<u64>,
    /// Tokens that only entered the windows of subagents.
    subagent_usage: SubagentUsage,
    peak_tokens: u64,
    compactions: u64,
    /// The client's reported cost, plus an estimate of the cost that it has not reported.
    cost: Option<Cost>,
    reported_sessions: usize,
    /// The client's token counts, for the sessions that it reported.
    reported_tokens: TokenUsage,
    /// The counts from the turn log for the same sessions, to compare with the client's.
    compared_tokens: TokenUsage,
}

pub(super) fn print_stats(project: &Project, arguments: &StatsArguments) -> Result<ExitCode, TurnsError> {
    record_missing_turns_or_print_warning(project);
    let mut stats = TurnStats::default();
    let selection = arguments.filter.to_selection();
    let logs = match selection.selected_logs(project) {
        Err(TurnsError::NoLog(_)) if !arguments.json => return Ok(print_no_recorded_turns(project)),
        Err(TurnsError::NoLog(_)) => Vec::new(),
        logs => logs?,
    };
    for log in logs {
        let mut session = SessionStats::default();
        for record in turns::records_from_start(&log)? {
            session.add_record_to_session_and_turn_stats(&record?, &selection, &mut stats);
        }
        session.add_to_stats_if_turns_selected(&mut stats);
    }
    if arguments.json {
        console::print_json(stats.to_json());
    } else {
        print_text(stats.render_text());
    }
    Ok(ExitCode::SUCCESS)
}

/// Running totals while the records of one session are read.
#[derive(Debug, Default)]
struct SessionStats {
    selected_turn_count: u64,
    used_tokens: TokenUsage,
    previous_input: Option<u64>,
    /// The last response, until the input of the next request shows how many tokens its calls added.
    unmeasured_response: Option<UnmeasuredResponse>,
    subagent_estimator: SubagentUsageEstimator,
    /// The usage that the cost is computed from.
    session_usage: SessionUsage,
    /// The token counts that the client reported at the end.
    reported_tokens: Option<TokenUsage>,
}

impl SessionStats {
    fn add_record_to_session_and_turn_stats(
        &mut self,
        record: &LoggedRecord,
        selection: &TurnSelection,
        stats: &mut TurnStats,
    ) {
        if selection.includes_all_turns_of_sessions() {
            self.subagent_estimator.add_record_if_subagent_turn(&record.header);
        }
        add_usage_of_turn_log_record(record, &mut self.session_usage);
        match (record.header.kind, &record.body) {
            (RecordKind::Turn, _) => {
                self.add_session_tokens_and_count_selected_turn(record, selection, stats);
            }
            (RecordKind::Compaction, _) if record.header.stream == MAIN_STREAM => {
                stats.compactions += 1;
                self.previous_input = None;
                self.unmeasured_response = None;
            }
            // The growth after a prompt comes from the prompt, not from a tool result.
            (RecordKind::Prompt, _) if record.header.stream == MAIN_STREAM => self.unmeasured_response = None,
            // Each cost record has the totals so far, so the last one replaces the earlier ones.
            (RecordKind::Cost, RecordBody::Event(fields)) => {
                self.reported_tokens = Some(sum_reported_tokens(fields.get("models")));
            }
            _ => {}
        }
    }

    fn add_session_tokens_and_count_selected_turn(
        &mut self,
        record: &LoggedRecord,
        selection: &TurnSelection,
        stats: &mut TurnStats,
    ) {
        let usage = record.header.usage.unwrap_or_default();
        // Turns that are not selected count too, because the client's counts cover the whole session, with subagents.
        add_tokens(&mut self.used_tokens, usage);
        let is_selected = selection.header_matches(&record.header) && selection.content_matches(record);
        let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
        if record.header.stream == MAIN_STREAM && usage.total_input() > 0 {
            self.record_window_growth_and_tool_tokens(usage, is_selected.then_some(calls), stats);
        }
        if !is_selected {
            return;
        }
        self.selected_turn_count += 1;
        add_tokens(&mut stats.used_tokens, usage);
        if usage.total_input() > 0 {
            stats.input_per_turn.push(usage.total_input());
            stats.output_per_turn.push(usage.output);
        }
        if let Some(reason) = record.header.failure_reason {
            *stats.failure_counts.entry(reason.as_str()).or_default() += 1;
        }
        for call in calls {
            stats.stats_by_tool.entry(call.name.clone()).or_default().add_call(call);
        }
    }

    /// Records how much the window grew since the previous turn, and how many tokens each of that turn's calls
    /// added. `selected_calls` is `None` for a turn that is not selected.
    fn record_window_growth_and_tool_tokens(
        &mut self,
        usage: TokenUsage,
        selected_calls: Option<&[ToolCall]>,
        stats: &mut TurnStats,
    ) {
        let previous_input = self.previous_input.replace(usage.total_input());
        let previous_response = std::mem::replace(
            &mut self.unmeasured_response,
            selected_calls.map(|calls| UnmeasuredResponse::new(usage, calls)),
        );
        for (tool_name, result_bytes, added_tokens) in previous_response
            .iter()
            .flat_map(|response| response.tool_bytes_and_added_tokens_per_call(usage.total_input()))
        {
            stats
                .stats_by_tool
                .entry(tool_name.to_owned())
                .or_default()
                .add_measured_result(result_bytes, added_tokens);
        }
        if selected_calls.is_some() {
            stats
                .window_growth
                .extend(previous_input.map(|previous| usage.total_input().saturating_sub(previous)));
            stats.peak_tokens = stats.peak_tokens.max(usage.total_input());
        }
    }

    fn add_to_stats_if_turns_selected(self, stats: &mut TurnStats) {
        if self.selected_turn_count == 0 {
            return;
        }
        stats.session_count += 1;
        stats.turn_count += self.selected_turn_count;
        stats.subagent_usage += self.subagent_estimator.total_usage();
        stats.cost = Some(stats.cost.unwrap_or_default() + self.session_usage.total_cost());
        if let Some(reported) = self.reported_tokens {
            stats.reported_sessions += 1;
            add_tokens(&mut stats.reported_tokens, reported);
            add_tokens(&mut stats.compared_tokens, self.used_tokens);
        }
    }
}

fn add_tokens(sum: &mut TokenUsage, tokens: TokenUsage) {
    sum.input += tokens.input;
    sum.cache_read += tokens.cache_read;
    sum.cache_creation += tokens.cache_creation;
    sum.output += tokens.output;
}

/// Adds up the client's token counts of all models.
fn sum_reported_tokens(models: Option<&Value>) -> TokenUsage {
    let mut sum = TokenUsage::default();
    for model in models.and_then(Value::as_object).into_iter().flat_map(|models| models.values()) {
        let token_count = |key: &str| model.get(key).and_then(Value::as_u64).unwrap_or(0);
        let model_usage = TokenUsage {
            input: token_count("inputTokens"),
            cache_read: token_count("cacheReadInputTokens"),
            cache_creation: token_count("cacheCreationInputTokens"),
            output: token_count("outputTokens"),
        };
        add_tokens(&mut sum, model_usage);
    }
    sum
}

/// Returns a percentile of the values; 0 if there are none.
fn percentile(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let index = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(index).copied().unwrap_or(0)
}

impl TurnStats {
    fn growth_percentile(&self, percent: usize) -> u64 {
        percentile(&self.window_growth, percent)
    }

    /// Returns the tools by added tokens, largest first.
    fn tools_by_added_tokens(&self) -> Vec<(&String, &ToolStats)> {
        let mut tools: Vec<_> = self.stats_by_tool.iter().collect();
        tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.total_tokens_added()));
        tools
    }

    fn render_text(&self) -> String {
        let failed_count: u64 = self.failure_counts.values().sum();
        let failures: Vec<String> =
            self.failure_counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let failures =
            if failures.is_empty() { String::new() } else { format!(" ({})", failures.join(", ")) };
        let as_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut lines = vec![
            format!(
                "Turns      {} in {}, {failed_count} failed{failures}",
                self.turn_count,
                count_with_noun(self.session_count, "session")
            ),
            format!(
                "Tokens     {} input ({} from the cache), {} output; median per turn: {} input, {} output",
                format_tokens(self.used_tokens.total_input()),
                format_tokens(self.used_tokens.cache_read),
                format_tokens(self.used_tokens.output),
                format_tokens(percentile(&self.input_per_turn, 50)),
                format_tokens(percentile(&self.output_per_turn, 50))
            ),
            format!(
                "Window     peak {} tokens, {}; added per turn: median {}, 90th percentile {}",
                format_tokens(self.peak_tokens),
                count_with_noun(as_usize(self.compactions), "compaction"),
                format_tokens(self.growth_percentile(50)),
                format_tokens(self.growth_percentile(90))
            ),
            format!("Cost       {}", self.cost_source_and_comparison_text()),
        ];
        lines.extend(self.subagent_usage.render_summary().map(|summary| format!("Subagents  {summary}")));
        if !self.stats_by_tool.is_empty() {
            lines.push(format!("\n{}", tool::table_line(&ToolStats::TABLE_HEADER)));
        }
        lines.extend(self.tools_by_added_tokens().into_iter().map(|(name, tool)| tool.table_row(name)));
        lines.join("\n")
    }

    fn cost_source_and_comparison_text(&self) -> String {
        let Some(Cost { usd, basis }) = self.cost else { return "unknown: no session".to_owned() };
        let cost = basis.format_usd(usd);
        let source = match basis {
            CostBasis::Reported => "as reported by Claude Code",
            CostBasis::Estimated => "partly estimated at list prices",
            CostBasis::AtMost => "partly estimated, a model without a known price at the highest one",
        };
        if self.reported_sessions == 0 {
            return format!("{cost}, {}", source.replace("partly ", ""));
        }
        let comparison = if self.reported_tokens == self.compared_tokens {
            "whose tokens are the ones counted here".to_owned()
        } else {
            format!(
                "which counts {} input and {} output tokens, the turns {} and {}: Claude Code also requests titles and summaries",
                format_tokens(self.reported_tokens.total_input()),
                format_tokens(self.reported_tokens.output),
                format_tokens(self.compared_tokens.total_input()),
                format_tokens(self.compared_tokens.output)
            )
        };
        let source = if basis.is_reported() {
            format!(" {source}")
        } else {
            format!(", {source}; Claude Code's part")
        };
        format!("{cost}{source}, {comparison}")
    }

    fn to_json(&self) -> Value {
        let tokens_json = |usage: &TokenUsage| {
            json!({
                "input": usage.input, "cache_read": usage.cache_read, "cache_creation": usage.cache_creation,
                "output": usage.output,
            })
        };
        let tools: BTreeMap<&String, Value> =
            self.stats_by_tool.iter().map(|(name, tool)| (name, tool.to_json())).collect();
        json!({
            "sessions": self.session_count, "turns": self.turn_count, "failures": self.failure_counts, "tools": tools,
            "tokens": tokens_json(&self.used_tokens), "peak_tokens": self.peak_tokens, "delegated": self.subagent_usage, "compactions": self.compactions,
            "sent_tokens": {"p50": percentile(&self.input_per_turn, 50), "p90": percentile(&self.input_per_turn, 90)},
            "answered_tokens": {"p50": percentile(&self.output_per_turn, 50), "p90": percentile(&self.output_per_turn, 90)},
            "growth_tokens": {"p50": self.growth_percentile(50), "p90": self.growth_percentile(90), "turns": self.window_growth.len()},
            "cost_usd": self.cost.map(|cost| cost.usd), "cost_basis": self.cost.map(|cost| cost.basis), "client_account": tokens_json(&self.reported_tokens), "turns_account": tokens_json(&self.compared_tokens),
        })
    }
}
