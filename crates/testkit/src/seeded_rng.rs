//! Pseudorandom numbers that depend only on a seed and a name, not on the order of the calls.

/// A deterministic random number generator without internal state.
#[derive(Clone, Copy, Debug)]
pub struct SeededRng {
    seed: u64,
}

impl SeededRng {
    pub fn new(seed: u64) -> SeededRng {
        SeededRng { seed }
    }

    /// Returns a number below `upper_bound`. It is the same for each call with the same name.
    pub fn random_number_for_name(self, name: &str, upper_bound: u64) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // FNV hashes of short names have similar high bits; the final steps of splitmix64 mix them.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % upper_bound.max(1)
    }

    /// Returns true with a probability of `true_percent` out of 100. The result is the same for each call with the
    /// same name.
    pub fn random_bool_for_name(self, name: &str, true_percent: u64) -> bool {
        self.random_number_for_name(name, 100) < true_percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_are_repeatable_by_name_and_fair_over_names_and_seeds() {
        let dice = SeededRng::new(7);
        assert_eq!(dice.random_number_for_name("a", 100), dice.random_number_for_name("a", 100));
        let hits_by_name =
            (0..10_000).filter(|n| dice.random_bool_for_name(&format!("throw {n}"), 30)).count();
        let hits_by_seed =
            (0..10_000).filter(|n| SeededRng::new(*n).random_bool_for_name("crash", 30)).count();
        assert!(
            (2_800..3_200).contains(&hits_by_name) && (2_800..3_200).contains(&hits_by_seed),
            "{hits_by_name} {hits_by_seed}"
        );
    }
}
