//! Computes how long a run waits before its next attempt.

/// First delay: the first retries come within seconds.
const FIRST_BACKOFF_SECONDS: u64 = 3;
/// Longest delay: an API that is away for the night is tried every few minutes.
const MAX_BACKOFF_SECONDS: u64 = 300;
/// Added to the time of a reset, which is not exact to the second and for which all clients wait.
const RESET_MARGIN_SECONDS: u64 = 2;

/// Returns the milliseconds to wait after this many pauses in a row, if no reset time is known. The delay is doubled
/// each time up to the longest, and spread by a random number between 0 and 1, so that many runs do not come back at
/// the same moment.
pub fn backoff_ms(pause_count: u32, jitter: f64) -> u64 {
    let doubled_seconds = FIRST_BACKOFF_SECONDS.saturating_mul(1 << pause_count.saturating_sub(1).min(16));
    let seconds = doubled_seconds.min(MAX_BACKOFF_SECONDS) as f64;
    (seconds * 1_000.0 * (0.75 + 0.5 * jitter.clamp(0.0, 1.0))) as u64
}

/// Longest wait for a reset. No limit of the client lasts longer than a week: a reset in 2100 is a mistake, and is
/// tried earlier.
const MAX_RESET_WAIT_SECONDS: i64 = 8 * 24 * 3_600;

/// Returns the milliseconds to wait until a reset that is this many seconds away.
pub fn reset_wait_ms(seconds_to_reset: i64, jitter: f64) -> u64 {
    let margin_seconds = RESET_MARGIN_SECONDS as f64 * (0.5 + jitter.clamp(0.0, 1.0));
    seconds_to_reset
        .clamp(0, MAX_RESET_WAIT_SECONDS)
        .unsigned_abs()
        .saturating_mul(1_000)
        .saturating_add((margin_seconds * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_retries_come_within_seconds_and_later_delays_are_bounded() {
        let seconds: Vec<u64> =
            [1, 2, 3, 4, 7, 8, 100].map(|pause_count| backoff_ms(pause_count, 0.5) / 1_000).to_vec();
        assert_eq!(seconds, [3, 6, 12, 24, 192, 300, 300]);
        assert_eq!((backoff_ms(1, 0.0), backoff_ms(1, 1.0)), (2_250, 3_750), "spread by a quarter");
    }

    #[test]
    fn a_run_waits_until_shortly_after_the_reset() {
        assert_eq!(reset_wait_ms(3_600, 0.0), 3_601_000);
        assert_eq!(reset_wait_ms(-5, 1.0), 3_000);
        for far_away in [2_300_000_000, i64::MAX] {
            assert_eq!(reset_wait_ms(far_away, 0.5), 8 * 24 * 3_600_000 + 2_000);
        }
    }
}
