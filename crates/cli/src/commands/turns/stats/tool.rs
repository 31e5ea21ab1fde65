//! What each tool came to, and what its calls added to the window.
//!
//! What a request holds more than the one before it and its answer is what came back from the tools. Of several calls
//! at once each has its share by the length of its result.

use super::quantile;
use plimsoll_domain::log_line::Tokens;
use plimsoll_domain::text::tokens;
use plimsoll_domain::turn::ToolCall;
use serde_json::{Value, json};

/// About this many bytes are a token, if no later request shows the real figure.
const BYTES_A_TOKEN: u64 = 4;

/// What a tool came to.
#[derive(Debug, Default, Clone)]
pub(super) struct Tool {
    calls: u64,
    failed: u64,
    milliseconds: u64,
    /// What came back, in bytes.
    bytes: u64,
    /// What each call added to the window, if the next request shows it.
    added: Vec<u64>,
    /// The bytes of the calls for which none does.
    untold_bytes: u64,
}

/// A response whose results are in no later request yet.
#[derive(Debug)]
pub(super) struct Open {
    usage: Tokens,
    /// Its calls: tool, bytes.
    calls: Vec<(String, u64)>,
}

impl Open {
    pub(super) fn new(usage: Tokens, calls: &[ToolCall]) -> Open {
        let calls = calls.iter().map(|call| (call.name.clone(), call.result_text().len() as u64));
        Open { usage, calls: calls.collect() }
    }

    /// Tool, bytes, and what each call added, now that the next request has been sent.
    pub(super) fn added(&self, next_sent: u64) -> Vec<(&str, u64, u64)> {
        let before = self.usage.sent().saturating_add(self.usage.output);
        let grown = next_sent.saturating_sub(before);
        // So that calls whose results are all empty share alike.
        let weight = |bytes: u64| bytes.saturating_add(1);
        let all: u64 = self.calls.iter().map(|(_, bytes)| weight(*bytes)).sum();
        let share = |bytes: u64| u128::from(grown) * u128::from(weight(bytes)) / u128::from(all.max(1));
        self.calls.iter().map(|(tool, bytes)| (tool.as_str(), *bytes, share(*bytes) as u64)).collect()
    }
}

impl Tool {
    pub(super) fn take(&mut self, call: &ToolCall) {
        let bytes = call.result_text().len() as u64;
        self.calls += 1;
        self.failed += u64::from(!call.is_ok());
        self.milliseconds += call.ext.get("duration_ms").and_then(Value::as_u64).unwrap_or(0);
        self.bytes += bytes;
        self.untold_bytes += bytes;
    }

    pub(super) fn add_result(&mut self, bytes: u64, added: u64) {
        self.added.push(added);
        self.untold_bytes = self.untold_bytes.saturating_sub(bytes);
    }

    /// Tokens that its calls added to windows.
    pub(super) fn tokens(&self) -> u64 {
        self.added.iter().sum::<u64>() + self.untold_bytes / BYTES_A_TOKEN
    }

    pub(super) const HEAD: [&str; 7] =
        ["Tool", "calls", "failed", "seconds", "tokens added", "median", "90th percentile"];

    pub(super) fn row(&self, name: &str) -> String {
        let seconds = format!("{:.1}", self.milliseconds as f64 / 1_000.0);
        let over = |percent| match self.added.len() {
            0 => "?".to_owned(),
            _ => tokens(quantile(&self.added, percent)),
        };
        let cells = [
            name.to_owned(),
            self.calls.to_string(),
            self.failed.to_string(),
            seconds,
            tokens(self.tokens()),
            over(50),
            over(90),
        ];
        line(&cells.each_ref().map(String::as_str))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "calls": self.calls, "failed": self.failed, "milliseconds": self.milliseconds, "bytes": self.bytes,
            "tokens_added": self.tokens(),
            "growth_tokens": {"p50": quantile(&self.added, 50), "p90": quantile(&self.added, 90), "calls": self.added.len()},
        })
    }
}

/// One line of the table.
pub(super) fn line(cells: &[&str; 7]) -> String {
    let [name, calls, failed, seconds, added, median, ninetieth] = cells;
    format!("{name:<24} {calls:>6} {failed:>7} {seconds:>9} {added:>13} {median:>10} {ninetieth:>16}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_holds_more_is_shared_by_the_length_of_the_results() {
        let usage = Tokens { cache_read: 20_000, output: 500, ..Tokens::default() };
        let open = |calls: &[(&str, u64)]| Open {
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
            // A client that has tidied up its own window sends less than before.
            (vec![("Bash", 40)], 15_000, vec![("Bash", 40, 0)]),
        ] {
            assert_eq!(open(&calls).added(next), expected, "{calls:?}");
        }
    }
}
