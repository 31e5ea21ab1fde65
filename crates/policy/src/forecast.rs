//! Forecasts how many responses and minutes remain until context usage reaches a threshold. The growth of the
//! session's last responses is resampled repeatedly until the threshold is reached; the lowest, the median and
//! the highest result are reported. A mean is not used, because one large outlier would distort it.

use plimsoll_domain::forecast::{
    Forecast, ForecastRange, MAX_FORECAST_TURNS, ThresholdForecast, UsageSample,
};
use plimsoll_domain::level::Thresholds;

/// The minimum number of gains for a forecast; two may be chance.
pub(crate) const MIN_GAINS: usize = 3;
/// The maximum number of gains kept. Older responses do not represent the session's current work.
const MAX_GAINS: usize = 120;
/// The maximum number of usage samples kept; gains are the differences between them.
pub const MAX_FORECAST_SAMPLES: usize = MAX_GAINS + 1;
/// Work comes in phases, so this many consecutive responses are drawn as a block.
const BLOCK_LENGTH: usize = 8;
/// The number of simulations of the growth up to a threshold.
// Odd, so that the middle value is the median.
const SIMULATION_COUNT: usize = 41;
/// Typical tokens added by a response, over many sessions: small edits, tests and searches, large files. They
/// supplement the session's gains while it has few responses, and have less weight as it has more.
const TYPICAL_GAIN_TOKENS: [u64; 3] = [800, 2_500, 7_000];
/// The weight of each typical gain, as a number of the session's responses.
const TYPICAL_GAIN_WEIGHT: usize = 2;
/// An occasional very large response.
const HUGE_GAIN_TOKENS: u64 = 30_000;
/// A longer gap between two responses is a pause (waiting for the user or a limit), and counts as this long.
const MAX_GAP_SECONDS: u64 = 600;

/// The tokens that one response added, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseGain {
    pub tokens: u64,
    /// Seconds since the previous response; `None` if one of the times is unknown.
    pub seconds: Option<u64>,
}

/// Forecasts when each threshold is reached. `projected_tokens` is the estimated usage of the next request.
/// Returns `None` if there is too little data, or all thresholds are already reached.
pub fn forecast_thresholds(
    samples: &[UsageSample],
    projected_tokens: u64,
    thresholds: &Thresholds,
) -> Option<Forecast> {
    let gains = gains_since_last_reset(samples);
    let forecast_for = |threshold: u64| {
        if projected_tokens < threshold {
            forecast_until_tokens_added(&gains, threshold - projected_tokens)
        } else {
            None
        }
    };
    let forecast = Forecast {
        sample_count: gains.len(),
        l1: forecast_for(thresholds.l1),
        l2: forecast_for(thresholds.l2),
        auto_compact: forecast_for(thresholds.auto_compact.tokens),
    };
    (forecast.l1.is_some() || forecast.l2.is_some() || forecast.auto_compact.is_some()).then_some(forecast)
}

/// Returns the gain of each response since the last compaction or clear, at most the last `MAX_GAINS`.
pub fn gains_since_last_reset(samples: &[UsageSample]) -> Vec<ResponseGain> {
    let mut gains: Vec<ResponseGain> = Vec::new();
    for pair in samples.windows(2) {
        match pair[1].used_tokens.checked_sub(pair[0].used_tokens) {
            Some(tokens) => gains.push(ResponseGain { tokens, seconds: elapsed_seconds(&pair[0], &pair[1]) }),
            // The session was compacted or cleared, so earlier growth does not predict later growth.
            None => gains.clear(),
        }
    }
    gains.drain(..gains.len().saturating_sub(MAX_GAINS));
    gains
}

fn elapsed_seconds(before: &UsageSample, after: &UsageSample) -> Option<u64> {
    let gap = u64::try_from(after.unix_seconds?.checked_sub(before.unix_seconds?)?).ok()?;
    Some(gap.min(MAX_GAP_SECONDS))
}

/// Forecasts when this many more tokens will have been added. Returns `None` if there are too few gains, or all
/// are zero.
pub fn forecast_until_tokens_added(
    gains: &[ResponseGain],
    remaining_tokens: u64,
) -> Option<ThresholdForecast> {
    if gains.len() < MIN_GAINS || gains.iter().all(|gain| gain.tokens == 0) {
        return None;
    }
    let typical_gain_scale = median_to_typical_ratio_weighted_toward_one(gains);
    let mut rng = DeterministicRng::new();
    let mut turn_counts = Vec::with_capacity(SIMULATION_COUNT);
    let mut minute_counts = Vec::with_capacity(SIMULATION_COUNT);
    for _ in 0..SIMULATION_COUNT {
        let sample = resample_gains_mixed_with_typical(gains, typical_gain_scale, &mut rng);
        let (turn_count, seconds) =
            simulate_turns_and_seconds_until_added(&sample, remaining_tokens, &mut rng);
        turn_counts.push(turn_count);
        minute_counts.extend(seconds.map(|seconds| (seconds + 30) / 60));
    }
    let turn_range = to_forecast_range(turn_counts);
    let has_all_times = minute_counts.len() == SIMULATION_COUNT && turn_range.median < MAX_FORECAST_TURNS;
    Some(ThresholdForecast {
        turns: turn_range,
        minutes: has_all_times.then(|| to_forecast_range(minute_counts)),
    })
}

/// Resamples the session's gains: draws blocks of them, mixed with typical gains.
fn resample_gains_mixed_with_typical(
    gains: &[ResponseGain],
    typical_gain_scale: (u64, u64),
    rng: &mut DeterministicRng,
) -> Vec<ResponseGain> {
    let sample_length = gains.len() + TYPICAL_GAIN_TOKENS.len() * TYPICAL_GAIN_WEIGHT;
    let typical_seconds = gains[gains.len() / 2].seconds;
    let mut sample = Vec::with_capacity(sample_length + BLOCK_LENGTH);
    while sample.len() < sample_length {
        let index = rng.next_below(sample_length);
        match index.checked_sub(gains.len()) {
            Some(typical_index) => {
                let gain = |tokens| ResponseGain { tokens, seconds: typical_seconds };
                sample.extend(
                    [gain(
                        TYPICAL_GAIN_TOKENS[typical_index / TYPICAL_GAIN_WEIGHT] * typical_gain_scale.0
                            / typical_gain_scale.1,
                    ); BLOCK_LENGTH],
                );
                if typical_index % TYPICAL_GAIN_WEIGHT == 0 {
                    sample.push(gain(HUGE_GAIN_TOKENS));
                }
            }
            None => sample.extend(gains.iter().cycle().skip(index).take(BLOCK_LENGTH)),
        }
    }
    sample
}

/// Returns the ratio of this session's gains to typical ones as numerator and denominator. With few gains it is
/// closer to one.
fn median_to_typical_ratio_weighted_toward_one(gains: &[ResponseGain]) -> (u64, u64) {
    let median_tokens = upper_median(gains.iter().map(|gain| gain.tokens.min(HUGE_GAIN_TOKENS)).collect())
        .unwrap_or(TYPICAL_GAIN_TOKENS[1]);
    let (session_weight, typical_weight) =
        (gains.len() as u64, (TYPICAL_GAIN_TOKENS.len() * TYPICAL_GAIN_WEIGHT) as u64);
    (
        session_weight * median_tokens + typical_weight * TYPICAL_GAIN_TOKENS[1],
        (session_weight + typical_weight) * TYPICAL_GAIN_TOKENS[1],
    )
}

/// Returns the median; of an even number of values the upper one.
pub(crate) fn upper_median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Draws blocks of gains until the remaining tokens are added. Returns the number of responses, and the seconds if all
/// times are known.
fn simulate_turns_and_seconds_until_added(
    gains: &[ResponseGain],
    remaining_tokens: u64,
    rng: &mut DeterministicRng,
) -> (u64, Option<u64>) {
    let (mut added, mut turns, mut seconds) = (0_u64, 0, Some(0));
    while added < remaining_tokens && turns < MAX_FORECAST_TURNS {
        let start = rng.next_below(gains.len());
        for gain in gains[start..].iter().take(BLOCK_LENGTH) {
            added = added.saturating_add(gain.tokens);
            turns += 1;
            seconds = seconds.zip(gain.seconds).map(|(sum, added_seconds): (u64, u64)| sum + added_seconds);
            if added >= remaining_tokens {
                break;
            }
        }
    }
    (turns.min(MAX_FORECAST_TURNS), seconds)
}

fn to_forecast_range(mut values: Vec<u64>) -> ForecastRange {
    values.sort_unstable();
    // Resampled paths vary less than real sessions. Only the full range from lowest to highest contains at
    // least eight of ten outcomes (docs/forecast.md).
    ForecastRange { earliest: values[0], median: values[values.len() / 2], latest: values[values.len() - 1] }
}

/// A pseudorandom generator (xorshift) with a fixed seed, so that equal input gives the same forecast.
pub(crate) struct DeterministicRng(u64);

impl DeterministicRng {
    pub(crate) fn new() -> DeterministicRng {
        DeterministicRng(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns a number from 0 to below `bound`.
    pub(crate) fn next_below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fills(gains: &[u64], seconds: i64) -> Vec<UsageSample> {
        let mut used = 20_000;
        let first = UsageSample { used_tokens: used, unix_seconds: Some(0) };
        let rest = gains.iter().zip(1..).map(|(gain, number)| {
            used += gain;
            UsageSample { used_tokens: used, unix_seconds: Some(number * seconds) }
        });
        std::iter::once(first).chain(rest).collect()
    }

    #[test]
    fn more_data_narrows_the_span_around_an_even_growth() {
        let outlook_for = |gain_count: usize| {
            forecast_until_tokens_added(
                &gains_since_last_reset(&fills(&vec![5_000; gain_count], 90)),
                250_000,
            )
            .expect("enough is known")
        };
        let (few, many) = (outlook_for(5).turns, outlook_for(110).turns);
        assert!(few.latest - few.earliest > many.latest - many.earliest, "{few:?} {many:?}");
        assert!(many.earliest <= 50 && 50 <= many.latest, "{many:?}");
        let ThresholdForecast { turns, minutes } = outlook_for(110);
        let minutes = minutes.expect("times are known");
        assert_eq!((turns.median * 90 + 30) / 60, minutes.median, "a minute and a half each");
    }

    #[test]
    fn one_huge_gain_hardly_moves_the_median() {
        let turns_with = |giant| {
            let mut growths = [2_000; 60];
            growths[7] = giant;
            forecast_until_tokens_added(&gains_since_last_reset(&fills(&growths, 60)), 60_000)
                .expect("enough is known")
                .turns
        };
        let (calm, wild) = (turns_with(2_000), turns_with(80_000));
        assert!(wild.earliest < calm.earliest, "{calm:?} {wild:?}");
        assert!(wild.median * 2 > calm.median, "{calm:?} {wild:?}");
    }

    #[test]
    fn too_little_data_gives_no_forecast() {
        assert_eq!(
            forecast_until_tokens_added(&gains_since_last_reset(&fills(&[5_000; 2], 60)), 10_000),
            None
        );
        assert_eq!(
            forecast_until_tokens_added(&gains_since_last_reset(&fills(&[0; 9], 60)), 10_000),
            None,
            "nothing was added: there is no end in sight"
        );
        assert_eq!(forecast_until_tokens_added(&[], 1), None);
        let far = forecast_until_tokens_added(&gains_since_last_reset(&fills(&[10; 100], 60)), 9_000_000)
            .expect("enough is known");
        assert_eq!(far.turns.earliest, MAX_FORECAST_TURNS);
    }

    #[test]
    fn a_compaction_restarts_the_data_and_a_pause_counts_as_ten_minutes() {
        let mut both = fills(&[9_000; 9], 60);
        both.extend(fills(&[1_000; 3], 60));
        assert_eq!(gains_since_last_reset(&both).len(), 3);
        let pause = [
            UsageSample { used_tokens: 1, unix_seconds: Some(0) },
            UsageSample { used_tokens: 2, unix_seconds: Some(90_000) },
            UsageSample { used_tokens: 3, unix_seconds: None },
        ];
        let seconds: Vec<Option<u64>> =
            gains_since_last_reset(&pause).iter().map(|gain| gain.seconds).collect();
        assert_eq!(seconds, [Some(600), None]);
        let untimed: Vec<UsageSample> =
            fills(&[5_000; 5], 1).iter().map(|fill| UsageSample { unix_seconds: None, ..*fill }).collect();
        let outlook =
            forecast_until_tokens_added(&gains_since_last_reset(&untimed), 10_000).expect("enough is known");
        assert_eq!(outlook.minutes, None);
    }
}
