//! Random numbers that depend only on the seed and the name of the roll, not on the order of the calls.

/// Deterministic dice with a seed.
#[derive(Clone, Copy, Debug)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice { seed }
    }

    /// Returns a number below `sides`. It is the same for each call with the same name.
    pub fn roll(self, roll_name: &str, sides: u64) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in roll_name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // FNV leaves the high bits of short names alike; the last steps of splitmix64 spread them.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % sides.max(1)
    }

    /// Returns true with a probability of `percent` out of 100. The result is the same for each call with the
    /// same name.
    pub fn happens_with_percent(self, roll_name: &str, percent: u64) -> bool {
        self.roll(roll_name, 100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_are_repeatable_by_name_and_fair_over_names_and_seeds() {
        let dice = Dice::new(7);
        assert_eq!(dice.roll("a", 100), dice.roll("a", 100));
        let hits_by_name =
            (0..10_000).filter(|n| dice.happens_with_percent(&format!("throw {n}"), 30)).count();
        let hits_by_seed = (0..10_000).filter(|n| Dice::new(*n).happens_with_percent("crash", 30)).count();
        assert!(
            (2_800..3_200).contains(&hits_by_name) && (2_800..3_200).contains(&hits_by_seed),
            "{hits_by_name} {hits_by_seed}"
        );
    }
}
