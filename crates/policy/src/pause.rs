//! Computes how long a run waits before its next attempt.

/// First delay. The first retries follow within seconds.
const FIRST_BACKOFF_SECONDS: u64 = 3;
/// Longest delay. During a long outage the API is retried every few minutes.
const MAX_BACKOFF_SECONDS: u64 = 300;
/// Safety margin after a reset. The reset time is not exact to the second, and all clients wait for it.
const RESET_MARGIN_SECONDS: u64 = 2;

/// Returns the milliseconds to wait after this many consecutive pauses, if no reset time is known. The delay doubles each
/// time up to the maximum. `jitter` is a random number between 0 and 1 that varies the delay, so that many runs do not
/// retry at the same moment.
pub fn backoff_ms(pause_count: u32, jitter: f64) -> u64 {
    let doubled_seconds = FIRST_BACKOFF_SECONDS.saturating_mul(1 << pause_count.saturating_sub(1).min(16));
    let seconds = doubled_seconds.min(MAX_BACKOFF_SECONDS) as f64;
    (seconds * 1_000.0 * (0.75 + 0.5 * jitter.clamp(0.0, 1.0))) as u64
}

/// Longest wait for a reset. No limit of the client lasts longer than a month, as a spend limit does, so a reset in 2100
/// must be an error and is retried earlier.
const MAX_RESET_WAIT_SECONDS: i64 = 32 * 24 * 3_600;

/// Returns the milliseconds to wait until a reset that is this many seconds away, plus a margin that depends on `jitter`.
pub fn reset_wait_with_margin_ms(seconds_to_reset: i64, jitter: f64) -> u64 {
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
        assert_eq!(reset_wait_with_margin_ms(3_600, 0.0), 3_601_000);
        assert_eq!(reset_wait_with_margin_ms(-5, 1.0), 3_000);
        for far_away in [2_300_000_000, i64::MAX] {
            assert_eq!(reset_wait_with_margin_ms(far_away, 0.5), 32 * 24 * 3_600_000 + 2_000);
        }
    }
}
