//! How long a run waits.

/// The first tries come within seconds.
const FIRST_SECONDS: u64 = 3;
/// An API that is away for the night is asked every few minutes.
const LONGEST_SECONDS: u64 = 300;
/// A reset is never hit to the second: everybody waits for it.
const AFTER_RESET_SECONDS: u64 = 2;

/// Milliseconds to wait before the try after the `tries`th pause in a row, where no reset is known: doubled
/// each time up to the longest, and spread by a `chance` between 0 and 1, so that many runs do not come back at
/// the same moment.
pub fn backoff_ms(tries: u32, chance: f64) -> u64 {
    let doubled = FIRST_SECONDS.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let seconds = doubled.min(LONGEST_SECONDS) as f64;
    (seconds * 1_000.0 * (0.75 + 0.5 * chance.clamp(0.0, 1.0))) as u64
}

/// No limit of the client's lasts longer than a week: a reset in 2100 is a mistake, and is tried before.
const LONGEST_TO_RESET: i64 = 8 * 24 * 3_600;

/// Milliseconds to wait until a reset that is this many seconds away.
pub fn until_reset_ms(seconds: i64, chance: f64) -> u64 {
    let after = AFTER_RESET_SECONDS as f64 * (0.5 + chance.clamp(0.0, 1.0));
    seconds
        .clamp(0, LONGEST_TO_RESET)
        .unsigned_abs()
        .saturating_mul(1_000)
        .saturating_add((after * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tries_come_within_seconds_and_the_later_ones_are_bounded() {
        let middle: Vec<u64> = [1, 2, 3, 4, 7, 8, 100].map(|tries| backoff_ms(tries, 0.5) / 1_000).to_vec();
        assert_eq!(middle, [3, 6, 12, 24, 192, 300, 300]);
        assert_eq!((backoff_ms(1, 0.0), backoff_ms(1, 1.0)), (2_250, 3_750), "spread by a quarter");
    }

    #[test]
    fn a_reset_is_waited_for_and_a_little_more() {
        assert_eq!(until_reset_ms(3_600, 0.0), 3_601_000);
        assert_eq!(until_reset_ms(-5, 1.0), 3_000);
        for in_2100 in [2_300_000_000, i64::MAX] {
            assert_eq!(until_reset_ms(in_2100, 0.5), 8 * 24 * 3_600_000 + 2_000);
        }
    }
}
