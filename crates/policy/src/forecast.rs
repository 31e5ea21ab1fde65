//! How many responses, and minutes, until the window is as full as a threshold? What the last responses of this session added
//! is drawn again and again until the threshold is reached; of the results the median is reported, the lowest, and the
//! last. No mean: one large result would move it.

use plimsoll_domain::forecast::{FARTHEST, Fill, Forecast, Outlook, Span};
use plimsoll_domain::level::Thresholds;

/// Two responses may be chance; three differences are a beginning.
pub(crate) const FEWEST: usize = 3;
/// What a session did long ago says little of what it does now.
const KEPT: usize = 120;
/// How many readings are kept, for the growth between them.
pub const LAST_FILLS: usize = KEPT + 1;
/// Work goes in phases: this many responses in a row are drawn together.
const TOGETHER: usize = 8;
/// So often the way to the threshold is drawn.
// Odd: the middle one is the median.
const PATHS: usize = 41;
/// What responses add in sessions at large, in tokens: small edits, tests and searches, large files. While a session has
/// shown little of itself these count, and the less the more it has shown.
const USUAL: [u64; 3] = [800, 2_500, 7_000];
/// Each of them counts like this many responses of the session itself.
const USUAL_WEIGHT: usize = 2;
/// And once in a while a very large one.
const GIANT: u64 = 30_000;
/// A longer gap between two responses is a pause (the user, a limit), and no work.
const PAUSE_SECONDS: u64 = 600;

/// What one response added, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// Tokens.
    pub tokens: u64,
    /// Since the response before; none if a time is not known.
    pub seconds: Option<u64>,
}

/// The forecast for a session that will probably hold this many tokens next; none if too little is known of it.
pub fn forecast(fills: &[Fill], projected: u64, thresholds: &Thresholds) -> Option<Forecast> {
    let gains = gains(fills);
    let of = |threshold: u64| if projected < threshold { until(&gains, threshold - projected) } else { None };
    let found = Forecast {
        samples: gains.len(),
        l1: of(thresholds.l1),
        l2: of(thresholds.l2),
        auto_compact: of(thresholds.auto_compact.tokens),
    };
    (found.l1.is_some() || found.l2.is_some() || found.auto_compact.is_some()).then_some(found)
}

/// What each of the last responses added, since the window was last emptied.
pub fn gains(fills: &[Fill]) -> Vec<Gain> {
    let mut gains: Vec<Gain> = Vec::new();
    for pair in fills.windows(2) {
        match pair[1].used.checked_sub(pair[0].used) {
            Some(tokens) => gains.push(Gain { tokens, seconds: seconds(&pair[0], &pair[1]) }),
            // It was compacted or cleared: what was before says nothing of what comes.
            None => gains.clear(),
        }
    }
    gains.drain(..gains.len().saturating_sub(KEPT));
    gains
}

fn seconds(before: &Fill, after: &Fill) -> Option<u64> {
    let gap = u64::try_from(after.at?.checked_sub(before.at?)?).ok()?;
    Some(gap.min(PAUSE_SECONDS))
}

/// When this many more tokens will be added.
pub fn until(gains: &[Gain], tokens: u64) -> Option<Outlook> {
    if gains.len() < FEWEST || gains.iter().all(|gain| gain.tokens == 0) {
        return None;
    }
    let scale = scale(gains);
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut turns = Vec::with_capacity(PATHS);
    let mut times = Vec::with_capacity(PATHS);
    for _ in 0..PATHS {
        let likeness = likeness(gains, scale, &mut dice);
        let (walked, seconds) = walk(&likeness, tokens, &mut dice);
        turns.push(walked);
        times.extend(seconds.map(|seconds| (seconds + 30) / 60));
    }
    let turns = span(turns);
    let is_timed = times.len() == PATHS && turns.likely < FARTHEST;
    Some(Outlook { turns, minutes: is_timed.then(|| span(times)) })
}

/// What the session might as well have been: pieces of what it was, and of what most sessions are.
fn likeness(gains: &[Gain], scale: (u64, u64), dice: &mut Dice) -> Vec<Gain> {
    let length = gains.len() + USUAL.len() * USUAL_WEIGHT;
    let usual_seconds = gains[gains.len() / 2].seconds;
    let mut likeness = Vec::with_capacity(length + TOGETHER);
    while likeness.len() < length {
        let place = dice.below(length);
        match place.checked_sub(gains.len()) {
            Some(usual) => {
                let gain = |tokens| Gain { tokens, seconds: usual_seconds };
                likeness.extend([gain(USUAL[usual / USUAL_WEIGHT] * scale.0 / scale.1); TOGETHER]);
                if usual % USUAL_WEIGHT == 0 {
                    likeness.push(gain(GIANT));
                }
            }
            None => likeness.extend(gains.iter().cycle().skip(place).take(TOGETHER)),
        }
    }
    likeness
}

/// How large this session's responses are beside usual ones, as a fraction: the less is known, the nearer to one.
fn scale(gains: &[Gain]) -> (u64, u64) {
    let middle = middle(gains.iter().map(|gain| gain.tokens.min(GIANT)).collect()).unwrap_or(USUAL[1]);
    let (known, usual) = (gains.len() as u64, (USUAL.len() * USUAL_WEIGHT) as u64);
    (known * middle + usual * USUAL[1], (known + usual) * USUAL[1])
}

/// The middle figure; of an even number the larger of the two.
pub(crate) fn middle(mut figures: Vec<u64>) -> Option<u64> {
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied()
}

/// One way to the threshold: how many responses, and how long.
fn walk(gains: &[Gain], tokens: u64, dice: &mut Dice) -> (u64, Option<u64>) {
    let (mut added, mut turns, mut seconds) = (0_u64, 0, Some(0));
    while added < tokens && turns < FARTHEST {
        let first = dice.below(gains.len());
        for gain in gains[first..].iter().take(TOGETHER) {
            added = added.saturating_add(gain.tokens);
            turns += 1;
            seconds = seconds.zip(gain.seconds).map(|(sum, more): (u64, u64)| sum + more);
            if added >= tokens {
                break;
            }
        }
    }
    (turns.min(FARTHEST), seconds)
}

fn span(mut ends: Vec<u64>) -> Span {
    ends.sort_unstable();
    // What is drawn from a session is more alike than what comes: only from end to end it holds in eight of ten and more
    // (docs/forecast.md).
    Span { soonest: ends[0], likely: ends[ends.len() / 2], latest: ends[ends.len() - 1] }
}

/// The same dice for everyone: two who ask at once get one answer.
struct Dice(u64);

impl Dice {
    fn below(&mut self, number: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * number as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fills(growths: &[u64], seconds: i64) -> Vec<Fill> {
        let mut used = 20_000;
        let first = Fill { used, at: Some(0) };
        let rest = growths.iter().zip(1..).map(|(growth, number)| {
            used += growth;
            Fill { used, at: Some(number * seconds) }
        });
        std::iter::once(first).chain(rest).collect()
    }

    #[test]
    fn the_more_is_known_the_narrower_is_the_span_about_an_even_growth() {
        let of =
            |known: usize| until(&gains(&fills(&vec![5_000; known], 90)), 250_000).expect("enough is known");
        let (few, many) = (of(5).turns, of(110).turns);
        assert!(few.latest - few.soonest > many.latest - many.soonest, "{few:?} {many:?}");
        assert!(many.soonest <= 50 && 50 <= many.latest, "{many:?}");
        let Outlook { turns, minutes } = of(110);
        let minutes = minutes.expect("times are known");
        assert_eq!((turns.likely * 90 + 30) / 60, minutes.likely, "a minute and a half each");
    }

    #[test]
    fn one_giant_hardly_moves_the_middle() {
        let with = |giant| {
            let mut growths = [2_000; 60];
            growths[7] = giant;
            until(&gains(&fills(&growths, 60)), 60_000).expect("enough is known").turns
        };
        let (calm, wild) = (with(2_000), with(80_000));
        assert!(wild.soonest < calm.soonest, "{calm:?} {wild:?}");
        assert!(wild.likely * 2 > calm.likely, "{calm:?} {wild:?}");
    }

    #[test]
    fn too_little_is_said_to_be_too_little() {
        assert_eq!(until(&gains(&fills(&[5_000; 2], 60)), 10_000), None);
        assert_eq!(
            until(&gains(&fills(&[0; 9], 60)), 10_000),
            None,
            "nothing was added: there is no end in sight"
        );
        assert_eq!(until(&[], 1), None);
        let far = until(&gains(&fills(&[10; 100], 60)), 9_000_000).expect("enough is known");
        assert_eq!(far.turns.soonest, FARTHEST);
    }

    #[test]
    fn a_compaction_begins_anew_and_a_pause_counts_as_ten_minutes() {
        let mut both = fills(&[9_000; 9], 60);
        both.extend(fills(&[1_000; 3], 60));
        assert_eq!(gains(&both).len(), 3);
        let pause =
            [Fill { used: 1, at: Some(0) }, Fill { used: 2, at: Some(90_000) }, Fill { used: 3, at: None }];
        let seconds: Vec<Option<u64>> = gains(&pause).iter().map(|gain| gain.seconds).collect();
        assert_eq!(seconds, [Some(600), None]);
        let untimed: Vec<Fill> =
            fills(&[5_000; 5], 1).iter().map(|fill| Fill { at: None, ..*fill }).collect();
        let outlook = until(&gains(&untimed), 10_000).expect("enough is known");
        assert_eq!(outlook.minutes, None);
    }
}
