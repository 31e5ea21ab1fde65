//! Chance that is the same for the same seed, whoever asks first: every throw has a name.

/// The dice of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    /// The dice of this seed.
    pub fn new(seed: u64) -> Dice {
        Dice { seed }
    }

    /// A number below `sides`; the same for the same name.
    pub fn number(self, name: &str, sides: u64) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // FNV leaves its high bits alike for short names: splitmix64's last steps spread them.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % sides.max(1)
    }

    /// Whether something happens that does so `percent` times of a hundred.
    pub fn happens(self, name: &str, percent: u64) -> bool {
        self.number(name, 100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throw_is_the_same_by_its_name_and_fair_over_names_and_seeds() {
        let dice = Dice::new(7);
        assert_eq!(dice.number("a", 100), dice.number("a", 100));
        let by_names = (0..10_000).filter(|n| dice.happens(&format!("throw {n}"), 30)).count();
        let by_seeds = (0..10_000).filter(|n| Dice::new(*n).happens("crash", 30)).count();
        assert!(
            (2_800..3_200).contains(&by_names) && (2_800..3_200).contains(&by_seeds),
            "{by_names} {by_seeds}"
        );
    }
}
