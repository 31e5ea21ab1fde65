//! The merge queue: results of several items are tried together, and apart only where they fail. What lands has passed the verify
//! commands as it lands; what fails goes back alone.

/// What the queue works with: git, the verify commands, and the board.
pub trait Bench {
    /// Why it cannot go on at all.
    type Error;

    /// Puts the work of these items onto the target's end, one after the other, as many as fit: what does not fit onto the target is
    /// refused there and then, what does not fit onto others of them is left for another round, and the others are still put.
    /// Answers with those that were put.
    fn stack(&mut self, items: &[usize]) -> Result<Vec<usize>, Self::Error>;

    /// Runs the verify commands on what was stacked last: what the failing one printed, if one fails.
    fn verify(&mut self) -> Result<Option<String>, Self::Error>;

    /// Moves the target to what was stacked last. False if it has moved meanwhile.
    fn land(&mut self, items: &[usize]) -> Result<bool, Self::Error>;

    /// Gives an item back with the output of the verify command that fails with it.
    fn refuse(&mut self, item: usize, output: &str) -> Result<(), Self::Error>;

    /// Says that the verify commands failed, and then passed on the same commit.
    fn flaky(&mut self, item: usize, output: &str) -> Result<(), Self::Error>;
}

/// So many at once: a batch of more saves little, and costs more when one of it fails.
pub const BATCH: usize = 8;

/// Lands what can be landed of these items, in their order, and refuses the rest.
pub fn merge<B: Bench>(bench: &mut B, items: &[usize]) -> Result<(), B::Error> {
    for batch in items.chunks(BATCH) {
        merge_batch(bench, batch)?;
    }
    Ok(())
}

fn merge_batch<B: Bench>(bench: &mut B, batch: &[usize]) -> Result<(), B::Error> {
    let stacked = bench.stack(batch)?;
    let (Some(output), [first, ..]) = (bench_verify(bench, &stacked)?, &stacked[..]) else {
        return land(bench, &stacked);
    };
    if stacked.len() > 1 {
        let (earlier, later) = stacked.split_at(stacked.len() / 2);
        merge_batch(bench, earlier)?;
        return merge_batch(bench, later);
    }
    // Once more on the same commit: what passes now has failed by chance.
    match bench.verify()? {
        Some(output) => bench.refuse(*first, &output),
        None => {
            bench.flaky(*first, &output)?;
            land(bench, &stacked)
        }
    }
}

fn bench_verify<B: Bench>(bench: &mut B, stacked: &[usize]) -> Result<Option<String>, B::Error> {
    if stacked.is_empty() { Ok(None) } else { bench.verify() }
}

/// Where the target has moved, the same is tried on its new end.
fn land<B: Bench>(bench: &mut B, stacked: &[usize]) -> Result<(), B::Error> {
    if stacked.is_empty() || bench.land(stacked)? { Ok(()) } else { merge_batch(bench, stacked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// A target as a list of items, with rules for what fails.
    #[derive(Default)]
    struct World {
        target: Vec<usize>,
        stacked: Vec<usize>,
        /// Items that fail by themselves.
        red: BTreeSet<usize>,
        /// Items that fail together.
        clash: Option<(usize, usize)>,
        /// Items that do not fit onto each other.
        conflict: Option<(usize, usize)>,
        /// The verify commands fail by chance at these calls.
        by_chance: BTreeSet<usize>,
        /// The target moves before these landings.
        moves: BTreeSet<usize>,
        refused: BTreeSet<usize>,
        flaky: usize,
        verified: usize,
        landings: usize,
    }

    impl World {
        fn has_both(&self, pair: Option<(usize, usize)>) -> bool {
            pair.is_some_and(|(one, other)| self.stacked.contains(&one) && self.stacked.contains(&other))
        }

        fn is_red(&self) -> bool {
            self.stacked.iter().any(|item| self.red.contains(item)) || self.has_both(self.clash)
        }
    }

    impl Bench for World {
        type Error = Infallible;

        fn stack(&mut self, items: &[usize]) -> Result<Vec<usize>, Infallible> {
            self.stacked = self.target.clone();
            let mut put = Vec::new();
            for item in items {
                self.stacked.push(*item);
                if self.has_both(self.conflict) {
                    self.stacked.pop();
                    self.refused.insert(*item);
                } else {
                    put.push(*item);
                }
            }
            Ok(put)
        }

        fn verify(&mut self) -> Result<Option<String>, Infallible> {
            self.verified += 1;
            let fails = self.is_red() || self.by_chance.contains(&self.verified);
            Ok(fails.then(|| "red".to_owned()))
        }

        fn land(&mut self, _: &[usize]) -> Result<bool, Infallible> {
            self.landings += 1;
            if self.moves.contains(&self.landings) {
                self.target.push(100 + self.landings);
                return Ok(false);
            }
            assert!(!self.is_red(), "what lands passes: {:?}", self.stacked);
            self.target = self.stacked.clone();
            Ok(true)
        }

        fn refuse(&mut self, item: usize, _: &str) -> Result<(), Infallible> {
            self.refused.insert(item);
            Ok(())
        }

        fn flaky(&mut self, _: usize, _: &str) -> Result<(), Infallible> {
            self.flaky += 1;
            Ok(())
        }
    }

    fn played(mut world: World, items: usize) -> World {
        let all: Vec<usize> = (0..items).collect();
        let Ok(()) = merge(&mut world, &all);
        let mut seen: Vec<usize> = world.target.iter().copied().filter(|item| *item < 100).collect();
        seen.extend(&world.refused);
        seen.sort_unstable();
        assert_eq!(seen, all, "each has landed once or was refused");
        world
    }

    #[test]
    fn what_is_green_lands_together_and_only_what_is_red_goes_back() {
        assert_eq!(played(World::default(), 8).verified, 1);
        assert_eq!(played(World::default(), 20).verified, 3);
        for reds in 0..256_usize {
            let red: BTreeSet<usize> = (0..8).filter(|item| reds >> item & 1 == 1).collect();
            let world = played(World { red: red.clone(), ..World::default() }, 8);
            assert_eq!(world.refused, red);
            assert!(world.verified <= 1 + 7 * red.len().min(4), "{reds:b}: {}", world.verified);
        }
    }

    #[test]
    fn of_two_that_fail_together_or_do_not_fit_the_later_goes_back() {
        for one in 0..8 {
            for other in one + 1..8 {
                let pair = Some((one, other));
                for world in
                    [World { clash: pair, ..World::default() }, World { conflict: pair, ..World::default() }]
                {
                    assert_eq!(played(world, 8).refused, BTreeSet::from([other]), "{pair:?}");
                }
            }
        }
    }

    #[test]
    fn a_target_that_moves_is_met_again_at_its_new_end() {
        let world = played(World { moves: BTreeSet::from([1, 2]), ..World::default() }, 3);
        assert_eq!((world.verified, world.landings), (3, 3));
        assert_eq!(world.target, [101, 102, 0, 1, 2]);
    }

    #[test]
    fn what_fails_once_and_passes_then_is_said_to_and_lands() {
        let world = played(World { by_chance: BTreeSet::from([1]), ..World::default() }, 1);
        assert_eq!((world.flaky, world.refused.len()), (1, 0));
        let world = played(World { by_chance: BTreeSet::from([1, 2]), ..World::default() }, 1);
        assert_eq!((world.flaky, world.refused.len()), (0, 1));
    }
}
