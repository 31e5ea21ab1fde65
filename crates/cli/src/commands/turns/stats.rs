//! `plimsoll turns stats`: totals of the turns, and what filled the window.

mod tool;

use super::turn_filter::TurnFilter;
use super::{TurnsError, report_no_recorded_turns, sync_log_or_warn};
use clap::Args;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind, TokenUsage};
use plimsoll_domain::subagent_usage::{SubagentUsage, SubagentUsageEstimator};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::context::session_usage::add_usage_of_record;
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
    sessions: usize,
    turns: u64,
    failures: BTreeMap<&'static str, u64>,
    tools: BTreeMap<String, ToolStats>,
    /// Each message is counted once.
    used_tokens: TokenUsage,
    /// Input and output tokens of each turn.
    input_per_turn: Vec<u64>,
    output_per_turn: Vec<u64>,
    /// How much the window grew from one turn of a main stream to the next.
    window_growth: Vec<u64>,
    /// Tokens that only entered the windows of subagents.
    subagent_usage: SubagentUsage,
    peak_tokens: u64,
    compactions: u64,
    /// The client's own figure, and an estimate for what it has not reported.
    cost: Option<Cost>,
    reported_sessions: usize,
    /// The client's own token counts, of the sessions that it reported.
    reported_tokens: TokenUsage,
    /// Our token counts of the same sessions, to compare with the client's.
    compared_tokens: TokenUsage,
}

pub(super) fn show_stats(project: &Project, arguments: &StatsArguments) -> Result<ExitCode, TurnsError> {
    sync_log_or_warn(project);
    let mut stats = TurnStats::default();
    let selection = arguments.filter.to_selection();
    let logs = match selection.selected_logs(project) {
        Err(TurnsError::NoLog(_)) if !arguments.json => return Ok(report_no_recorded_turns(project)),
        Err(TurnsError::NoLog(_)) => Vec::new(),
        logs => logs?,
    };
    for log in logs {
        let mut session = SessionStats::default();
        for record in turns::records_from_start(&log)? {
            session.process_record(&record?, &selection, &mut stats);
        }
        session.add_to_stats(&mut stats);
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
    turns: u64,
    used_tokens: TokenUsage,
    previous_input: Option<u64>,
    /// The last response, until the next request shows how much its calls added.
    unmeasured_response: Option<UnmeasuredResponse>,
    subagent_estimator: SubagentUsageEstimator,
    /// The usage that the cost is computed from.
    usage: SessionUsage,
    /// The token counts that the client reported at the end.
    reported_tokens: Option<TokenUsage>,
}

impl SessionStats {
    fn process_record(&mut self, record: &LoggedRecord, selection: &TurnSelection, stats: &mut TurnStats) {
        if selection.includes_all_turns_of_sessions() {
            self.subagent_estimator.add_record(&record.header);
        }
        add_usage_of_record(record, &mut self.usage);
        match (record.header.kind, &record.body) {
            (RecordKind::Turn, _) => self.add_turn(record, selection, stats),
            (RecordKind::Compaction, _) if record.header.stream == MAIN_STREAM => {
                stats.compactions += 1;
                self.previous_input = None;
                self.unmeasured_response = None;
            }
            // The growth after a prompt comes from the prompt, not from a tool result.
            (RecordKind::Prompt, _) if record.header.stream == MAIN_STREAM => self.unmeasured_response = None,
            // Each cost record has the totals so far, so the last one counts.
            (RecordKind::Cost, RecordBody::Event(fields)) => {
                self.reported_tokens = Some(sum_reported_tokens(fields.get("models")));
            }
            _ => {}
        }
    }

    fn add_turn(&mut self, record: &LoggedRecord, selection: &TurnSelection, stats: &mut TurnStats) {
        let usage = record.header.usage.unwrap_or_default();
        // Added for every turn, because the client's counts cover the whole session, including subagents.
        add_tokens(&mut self.used_tokens, usage);
        let is_selected = selection.header_matches(&record.header) && selection.matches(record);
        let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
        if record.header.stream == MAIN_STREAM && usage.total_input() > 0 {
            self.measure_window_growth(usage, is_selected.then_some(calls), stats);
        }
        if !is_selected {
            return;
        }
        self.turns += 1;
        add_tokens(&mut stats.used_tokens, usage);
        if usage.total_input() > 0 {
            stats.input_per_turn.push(usage.total_input());
            stats.output_per_turn.push(usage.output);
        }
        if let Some(reason) = record.header.failure_reason {
            *stats.failures.entry(reason.as_str()).or_default() += 1;
        }
        for call in calls {
            stats.tools.entry(call.name.clone()).or_default().add_call(call);
        }
    }

    /// Measures the window's growth, turn by turn. Also called for turns that are not selected, with `None`
    /// as their calls.
    fn measure_window_growth(
        &mut self,
        usage: TokenUsage,
        calls: Option<&[ToolCall]>,
        stats: &mut TurnStats,
    ) {
        let previous_input = self.previous_input.replace(usage.total_input());
        let previous_response = std::mem::replace(
            &mut self.unmeasured_response,
            calls.map(|calls| UnmeasuredResponse::new(usage, calls)),
        );
        for (name, bytes, added) in
            previous_response.iter().flat_map(|response| response.tokens_added_per_call(usage.total_input()))
        {
            stats.tools.entry(name.to_owned()).or_default().add_measured_result(bytes, added);
        }
        if calls.is_some() {
            stats
                .window_growth
                .extend(previous_input.map(|previous| usage.total_input().saturating_sub(previous)));
            stats.peak_tokens = stats.peak_tokens.max(usage.total_input());
        }
    }

    fn add_to_stats(self, stats: &mut TurnStats) {
        if self.turns == 0 {
            return;
        }
        stats.sessions += 1;
        stats.turns += self.turns;
        stats.subagent_usage += self.subagent_estimator.total_usage();
        stats.cost = Some(stats.cost.unwrap_or_default() + self.usage.total_cost());
        if let Some(reported) = self.reported_tokens {
            stats.reported_sessions += 1;
            add_tokens(&mut stats.reported_tokens, reported);
            add_tokens(&mut stats.compared_tokens, self.used_tokens);
        }
    }
}

fn add_tokens(sum: &mut TokenUsage, more: TokenUsage) {
    sum.input += more.input;
    sum.cache_read += more.cache_read;
    sum.cache_creation += more.cache_creation;
    sum.output += more.output;
}

/// Sums up the client's token counts by model.
fn sum_reported_tokens(models: Option<&Value>) -> TokenUsage {
    let mut sum = TokenUsage::default();
    for model in models.and_then(Value::as_object).into_iter().flat_map(|models| models.values()) {
        let number = |key: &str| model.get(key).and_then(Value::as_u64).unwrap_or(0);
        let model_usage = TokenUsage {
            input: number("inputTokens"),
            cache_read: number("cacheReadInputTokens"),
            cache_creation: number("cacheCreationInputTokens"),
            output: number("outputTokens"),
        };
        add_tokens(&mut sum, model_usage);
    }
    sum
}

/// Returns the given percentile of the figures; 0 if there are none.
fn percentile(figures: &[u64], percent: usize) -> u64 {
    let mut sorted = figures.to_vec();
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
        let mut tools: Vec<_> = self.tools.iter().collect();
        tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.total_tokens_added()));
        tools
    }

    fn render_text(&self) -> String {
        let failed: u64 = self.failures.values().sum();
        let failures: Vec<String> =
            self.failures.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let failures =
            if failures.is_empty() { String::new() } else { format!(" ({})", failures.join(", ")) };
        let as_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut lines = vec![
            format!(
                "Turns      {} in {}, {failed} failed{failures}",
                self.turns,
                count_with_noun(self.sessions, "session")
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
            format!("Cost       {}", self.cost_text()),
        ];
        lines.extend(self.subagent_usage.render_summary().map(|summary| format!("Subagents  {summary}")));
        if !self.tools.is_empty() {
            lines.push(format!("\n{}", tool::table_line(&ToolStats::TABLE_HEADER)));
        }
        lines.extend(self.tools_by_added_tokens().into_iter().map(|(name, tool)| tool.table_row(name)));
        lines.join("\n")
    }

    fn cost_text(&self) -> String {
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
                "which counts {} input and {} output tokens, the turns {} and {}: the client also requests titles and summaries",
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
            self.tools.iter().map(|(name, tool)| (name, tool.to_json())).collect();
        json!({
            "sessions": self.sessions, "turns": self.turns, "failures": self.failures, "tools": tools,
            "tokens": tokens_json(&self.used_tokens), "peak_tokens": self.peak_tokens, "delegated": self.subagent_usage, "compactions": self.compactions,
            "sent_tokens": {"p50": percentile(&self.input_per_turn, 50), "p90": percentile(&self.input_per_turn, 90)},
            "answered_tokens": {"p50": percentile(&self.output_per_turn, 50), "p90": percentile(&self.output_per_turn, 90)},
            "growth_tokens": {"p50": self.growth_percentile(50), "p90": self.growth_percentile(90), "turns": self.window_growth.len()},
            "cost_usd": self.cost.map(|cost| cost.usd), "cost_basis": self.cost.map(|cost| cost.basis), "client_account": tokens_json(&self.reported_tokens), "turns_account": tokens_json(&self.compared_tokens),
        })
    }
}
