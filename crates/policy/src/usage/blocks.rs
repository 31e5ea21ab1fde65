//! Five-hour windows, by which subscriptions limit usage.

use super::{UsageEntry, UsageTotals};

/// The length of a window.
pub const BLOCK_SECONDS: i64 = 5 * 3600;
const HOUR_SECONDS: i64 = 3600;

/// The usage in a five-hour window. A window begins with the hour of the first response after the previous one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageBlock {
    /// Unix time in seconds, as the fields below.
    pub started_at: i64,
    pub first_response_at: i64,
    pub last_response_at: i64,
    pub totals: UsageTotals,
}

impl UsageBlock {
    /// Returns when the window ends.
    pub fn ends_at(&self) -> i64 {
        self.started_at + BLOCK_SECONDS
    }

    /// Returns true if the window has begun and has not ended yet.
    pub fn is_active(&self, now: i64) -> bool {
        (self.started_at..self.ends_at()).contains(&now)
    }

    /// Returns the tokens and US dollars of an hour at the average rate since the first response; `None` if less than a
    /// minute has passed.
    pub fn hourly_tokens_and_usd(&self) -> Option<(f64, f64)> {
        let seconds = self.last_response_at - self.first_response_at;
        let hours = seconds as f64 / HOUR_SECONDS as f64;
        let tokens = self.totals.tokens.total_tokens() as f64;
        (seconds >= 60).then(|| (tokens / hours, self.totals.cost.usd / hours))
    }

    /// Returns the tokens and US dollars at the end of the window if the rate stays as it is.
    pub fn tokens_and_usd_projected_to_end(&self, now: i64) -> Option<(f64, f64)> {
        let (tokens_per_hour, usd_per_hour) = self.hourly_tokens_and_usd()?;
        let remaining_hours = (self.ends_at() - now).max(0) as f64 / HOUR_SECONDS as f64;
        let tokens = self.totals.tokens.total_tokens() as f64;
        Some((
            tokens + tokens_per_hour * remaining_hours,
            self.totals.cost.usd + usd_per_hour * remaining_hours,
        ))
    }
}

/// Splits the entries, oldest first, into five-hour windows.
pub fn split_into_blocks<'a>(entries: impl IntoIterator<Item = &'a UsageEntry>) -> Vec<UsageBlock> {
    let mut blocks: Vec<UsageBlock> = Vec::new();
    for entry in entries {
        let time = entry.responded_at;
        if blocks.last().is_none_or(|block| time >= block.ends_at()) {
            blocks.push(UsageBlock {
                started_at: time - time.rem_euclid(HOUR_SECONDS),
                first_response_at: time,
                last_response_at: time,
                totals: UsageTotals::default(),
            });
        }
        if let Some(block) = blocks.last_mut() {
            block.totals = block.totals.plus(entry.into());
            block.last_response_at = time;
        }
    }
    blocks
}
