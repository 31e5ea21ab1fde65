//! Random choices of the generator. Each stream has its own sequence, so that a change of one fact's distribution
//! does not move the others.

use plimsoll_testkit::SeededRng;

/// A sequence of random choices that depends only on the seed and the name of the stream.
#[derive(Clone, Debug)]
pub struct Draws {
    rng: SeededRng,
    stream: String,
    draw_count: u64,
}

impl Draws {
    pub fn new(seed: u64, stream: &str) -> Draws {
        Draws { rng: SeededRng::new(seed), stream: stream.to_owned(), draw_count: 0 }
    }

    /// Returns another stream of the same seed.
    pub fn substream(&self, name: &str) -> Draws {
        Draws { rng: self.rng, stream: format!("{}/{name}", self.stream), draw_count: 0 }
    }

    /// Returns a number below `upper_bound`, which is at least 1.
    pub fn number_below(&mut self, upper_bound: usize) -> usize {
        self.draw_count += 1;
        let name = format!("{} {}", self.stream, self.draw_count);
        self.rng.random_number_for_name(&name, upper_bound as u64) as usize
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn number_between(&mut self, low: usize, high: usize) -> usize {
        low + self.number_below(high.saturating_sub(low) + 1)
    }

    /// Returns a number from `low` to `high` whose logarithm is uniformly distributed.
    pub fn log_uniform_number(&mut self, low: usize, high: usize) -> usize {
        let (low_logarithm, high_logarithm) = ((low as f64).ln(), (high as f64).ln());
        (low_logarithm + self.random_fraction() * (high_logarithm - low_logarithm)).exp().round() as usize
    }

    /// Returns a number from 0 to 1.
    pub fn random_fraction(&mut self) -> f64 {
        self.number_below(1_000_001) as f64 / 1_000_000.0
    }

    /// Returns true with a probability of `true_percent` out of 100.
    pub fn bool_with_percent(&mut self, true_percent: usize) -> bool {
        self.number_below(100) < true_percent
    }

    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.number_below(values.len())]
    }

    /// Returns one of the values; the numbers are their weights.
    pub fn pick_weighted<T: Copy>(&mut self, weighted_values: &[(usize, T)]) -> T {
        let mut roll = self.number_below(weighted_values.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in weighted_values {
            if roll < *weight {
                return *value;
            }
            roll -= weight;
        }
        weighted_values[0].1
    }

    /// Returns a UUID in the client's form.
    pub fn uuid(&mut self) -> String {
        let mut hex = |digits: u32| {
            format!("{:0width$x}", self.number_below(1 << (4 * digits)), width = digits as usize)
        };
        let (first, second, third) = (hex(8), hex(4), hex(3));
        let (fourth, fifth) = (hex(3), format!("{}{}", hex(6), hex(6)));
        format!("{first}-{second}-4{third}-a{fourth}-{fifth}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_repeats_its_choices_and_differs_from_others() {
        let choices = |stream: &str| {
            let mut draws = Draws::new(7, stream);
            (0..20).map(|_| draws.number_below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(choices("a"), choices("a"));
        assert_ne!(choices("a"), choices("b"));
        let mut draws = Draws::new(7, "c");
        let lengths: Vec<usize> = (0..2_000).map(|_| draws.log_uniform_number(5, 150)).collect();
        assert!(lengths.iter().all(|length| (5..=150).contains(length)));
        let below_28 = lengths.iter().filter(|length| **length < 28).count();
        assert!((900..1_100).contains(&below_28), "{below_28}");
        let weighted = (0..1_000).filter(|_| draws.pick_weighted(&[(30, true), (70, false)])).count();
        assert!((250..350).contains(&weighted), "{weighted}");
        assert_eq!(draws.uuid().len(), 36);
    }
}
