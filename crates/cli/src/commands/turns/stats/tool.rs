//! Totals of each tool, and how many tokens its calls added to the window.
//!
//! The input of a request exceeds the previous input and response by the results of the tool calls. If there
//! were several calls, the difference is divided in proportion to the length of their results.

use super::percentile;
use plimsoll_domain::log_line::TokenUsage;
use plimsoll_domain::text::format_tokens;
use plimsoll_domain::turn::ToolCall;
use serde_json::{Value, json};

/// Approximate bytes per token; used if no later request shows the actual number of tokens.
const BYTES_PER_TOKEN: u64 = 4;

/// Totals of one tool.
#[derive(Debug, Default, Clone)]
pub(super) struct ToolStats {
    call_count: u64,
    failed_count: u64,
    total_milliseconds: u64,
    /// Total size of the results.
    result_bytes: u64,
    /// Tokens that each measured call added to the window.
    tokens_added: Vec<u64>,
    /// Result bytes of the calls that no later request has measured.
    unmeasured_bytes: u64,
}

/// A response whose tool results no later request has measured yet.
#[derive(Debug)]
pub(super) struct UnmeasuredResponse {
    usage: TokenUsage,
    /// The tool and the size of the result of each call.
    calls: Vec<(String, u64)>,
}

impl UnmeasuredResponse {
    pub(super) fn new(usage: TokenUsage, calls: &[ToolCall]) -> UnmeasuredResponse {
        let calls = calls.iter().map(|call| (call.name.clone(), call.result_text().len() as u64));
        UnmeasuredResponse { usage, calls: calls.collect() }
    }

    /// Returns the tool, the result bytes and the added tokens of each call, computed from the input of the next
    /// request.
    pub(super) fn tool_bytes_and_added_tokens_per_call(
        &self,
        next_input_tokens: u64,
    ) -> Vec<(&str, u64, u64)> {
        let expected_input = self.usage.total_input().saturating_add(self.usage.output);
        let added_tokens = next_input_tokens.saturating_sub(expected_input);
        // The added 1 gives equal shares to calls whose results are all empty.
        let weight = |bytes: u64| bytes.saturating_add(1);
        let total_weight: u64 = self.calls.iter().map(|(_, bytes)| weight(*bytes)).sum();
        let share = |bytes: u64| {
            u128::from(added_tokens) * u128::from(weight(bytes)) / u128::from(total_weight.max(1))
        };
        self.calls.iter().map(|(tool, bytes)| (tool.as_str(), *bytes, share(*bytes) as u64)).collect()
    }
}

impl ToolStats {
    pub(super) fn add_call(&mut self, call: &ToolCall) {
        let bytes = call.result_text().len() as u64;
        self.call_count += 1;
        self.failed_count += u64::from(!call.is_ok());
        self.total_milliseconds += call.ext.get("duration_ms").and_then(Value::as_u64).unwrap_or(0);
        self.result_bytes += bytes;
        self.unmeasured_bytes += bytes;
    }

    pub(super) fn add_measured_result(&mut self, result_bytes: u64, added_tokens: u64) {
        self.tokens_added.push(added_tokens);
        self.unmeasured_bytes = self.unmeasured_bytes.saturating_sub(result_bytes);
    }

    /// Returns the tokens that the calls added to the window; unmeasured results are estimated.
    pub(super) fn total_tokens_added(&self) -> u64 {
        self.tokens_added.iter().sum::<u64>() + self.unmeasured_bytes / BYTES_PER_TOKEN
    }

    pub(super) const TABLE_HEADER: [&str; 7] =
        ["Tool", "calls", "failed", "seconds", "tokens added", "median", "90th percentile"];

    pub(super) fn table_row(&self, name: &str) -> String {
        let seconds = format!("{:.1}", self.total_milliseconds as f64 / 1_000.0);
        let percentile_cell = |percent| match self.tokens_added.len() {
            0 => "?".to_owned(),
            _ => format_tokens(percentile(&self.tokens_added, percent)),
        };
        let cells = [
            name.to_owned(),
            self.call_count.to_string(),
            self.failed_count.to_string(),
            seconds,
            format_tokens(self.total_tokens_added()),
            percentile_cell(50),
            percentile_cell(90),
        ];
        table_line(&cells.each_ref().map(String::as_str))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "calls": self.call_count, "failed": self.failed_count, "milliseconds": self.total_milliseconds, "bytes": self.result_bytes,
            "tokens_added": self.total_tokens_added(),
            "growth_tokens": {"p50": percentile(&self.tokens_added, 50), "p90": percentile(&self.tokens_added, 90), "calls": self.tokens_added.len()},
        })
    }
}

/// Renders one line of the table, with aligned columns.
pub(super) fn table_line(cells: &[&str; 7]) -> String {
    let [name, calls, failed, seconds, added_tokens, median, percentile_90] = cells;
    format!(
        "{name:<24} {calls:>6} {failed:>7} {seconds:>9} {added_tokens:>13} {median:>10} {percentile_90:>16}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_tokens_are_shared_by_the_length_of_the_results() {
        let usage = TokenUsage { cache_read: 20_000, output: 500, ..TokenUsage::default() };
        let open = |calls: &[(&str, u64)]| UnmeasuredResponse {
            usage,
            calls: calls.iter().map(|(tool, bytes)| ((*tool).to_owned(), *bytes)).collect(),
        };
        for (calls, next, expected) in [
            (vec![], 30_000, vec![]),
            (vec![("Read", 4_000)], 21_500, vec![("Read", 4_000, 1_000)]),
            (
                vec![("Read", 2_999), ("Bash", 999)],
                24_500,
                vec![("Read", 2_999, 3_000), ("Bash", 999, 1_000)],
            ),
            (vec![("Bash", 0), ("Bash", 0)], 20_600, vec![("Bash", 0, 50), ("Bash", 0, 50)]),
            // A client that trimmed its own window sends less than before.
            (vec![("Bash", 40)], 15_000, vec![("Bash", 40, 0)]),
        ] {
            assert_eq!(open(&calls).tool_bytes_and_added_tokens_per_call(next), expected, "{calls:?}");
        }
    }
}
