//! The merge queue: the work on several items is verified together, and separately only if that fails. Work is merged
//! only after the verify commands have passed on exactly the commits that are merged; only failing items are rejected.

/// The operations that the queue needs: git, the verify commands, and the board.
pub trait MergeBackend {
    /// An error that stops the queue.
    type Error;

    /// Rebases the work of these items onto the head of the target branch, one after the other, and returns the items that were
    /// stacked. An item that conflicts with the target is rejected at once. One that conflicts only with other items of
    /// the stack is left for a later round. The remaining items are stacked in both cases.
    fn rebase_stack_onto_target(&mut self, items: &[usize]) -> Result<Vec<usize>, Self::Error>;

    /// Runs the verify commands on the last stack. Returns the output of the failing command, or `None` if all pass.
    fn verify_stack(&mut self) -> Result<Option<String>, Self::Error>;

    /// Moves the target branch to the end of the last stack. Returns false if the target has moved in the meantime.
    fn move_target_to_stack(&mut self, stacked_items: &[usize]) -> Result<bool, Self::Error>;

    /// Rejects an item with the output of the verify command that fails.
    fn reject_item(&mut self, item: usize, output: &str) -> Result<(), Self::Error>;

    /// Reports that the verify commands first failed and then passed on the same commit.
    fn report_flaky_verify(&mut self, item: usize, output: &str) -> Result<(), Self::Error>;
}

/// The maximum number of items in a batch. A larger batch saves little, and costs more if one of its items fails.
pub const MAX_BATCH_ITEMS: usize = 8;

/// Merges the items that pass, in their order, and rejects the others.
pub fn merge_items<B: MergeBackend>(backend: &mut B, items: &[usize]) -> Result<(), B::Error> {
    for batch in items.chunks(MAX_BATCH_ITEMS) {
        merge_batch_or_bisect_and_reject_failures(backend, batch)?;
    }
    Ok(())
}

/// Stacks and verifies a batch, and moves the target to it if that passes. If it fails, both halves are merged
/// separately. A single item that fails is verified again: it is merged and reported as flaky if it then passes,
/// otherwise rejected.
fn merge_batch_or_bisect_and_reject_failures<B: MergeBackend>(
    backend: &mut B,
    batch: &[usize],
) -> Result<(), B::Error> {
    let stacked_items = backend.rebase_stack_onto_target(batch)?;
    let (Some(output), [first, ..]) =
        (verify_stack_if_not_empty(backend, &stacked_items)?, &stacked_items[..])
    else {
        return move_target_or_merge_again(backend, &stacked_items);
    };
    if stacked_items.len() > 1 {
        let (first_half, second_half) = stacked_items.split_at(stacked_items.len() / 2);
        merge_batch_or_bisect_and_reject_failures(backend, first_half)?;
        return merge_batch_or_bisect_and_reject_failures(backend, second_half);
    }
    // Verify a second time on the same commit: if it passes now, the failure was flaky.
    match backend.verify_stack()? {
        Some(output) => backend.reject_item(*first, &output),
        None => {
            backend.report_flaky_verify(*first, &output)?;
            move_target_or_merge_again(backend, &stacked_items)
        }
    }
}

fn verify_stack_if_not_empty<B: MergeBackend>(
    backend: &mut B,
    stacked_items: &[usize],
) -> Result<Option<String>, B::Error> {
    if stacked_items.is_empty() { Ok(None) } else { backend.verify_stack() }
}

/// Moves the target to the stack. If the target has moved, stacks and verifies the items again on its new head.
fn move_target_or_merge_again<B: MergeBackend>(
    backend: &mut B,
    stacked_items: &[usize],
) -> Result<(), B::Error> {
    if stacked_items.is_empty() || backend.move_target_to_stack(stacked_items)? {
        Ok(())
    } else {
        merge_batch_or_bisect_and_reject_failures(backend, stacked_items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// Simulates the target as a list of items, with rules for what fails.
    #[derive(Default)]
    struct SimulatedBackend {
        target: Vec<usize>,
        stacked: Vec<usize>,
        /// Items that fail by themselves.
        failing_items: BTreeSet<usize>,
        /// Items that fail together.
        failing_pair: Option<(usize, usize)>,
        /// Items that conflict with each other.
        conflicting_pair: Option<(usize, usize)>,
        /// The numbers of the calls at which the verify commands fail although nothing is wrong.
        flaky_calls: BTreeSet<usize>,
        /// The numbers of the calls of `move_target_to_stack` before which the target moves.
        move_calls_with_moved_target: BTreeSet<usize>,
        rejected_items: BTreeSet<usize>,
        flaky_count: usize,
        verify_count: usize,
        move_target_call_count: usize,
    }

    impl SimulatedBackend {
        fn has_stacked_both(&self, pair: Option<(usize, usize)>) -> bool {
            pair.is_some_and(|(one, other)| self.stacked.contains(&one) && self.stacked.contains(&other))
        }

        fn fails_verify(&self) -> bool {
            self.stacked.iter().any(|item| self.failing_items.contains(item))
                || self.has_stacked_both(self.failing_pair)
        }
    }

    impl MergeBackend for SimulatedBackend {
        type Error = Infallible;

        fn rebase_stack_onto_target(&mut self, items: &[usize]) -> Result<Vec<usize>, Infallible> {
            self.stacked = self.target.clone();
            let mut stacked_items = Vec::new();
            for item in items {
                self.stacked.push(*item);
                if self.has_stacked_both(self.conflicting_pair) {
                    self.stacked.pop();
                    self.rejected_items.insert(*item);
                } else {
                    stacked_items.push(*item);
                }
            }
            Ok(stacked_items)
        }

        fn verify_stack(&mut self) -> Result<Option<String>, Infallible> {
            self.verify_count += 1;
            let fails = self.fails_verify() || self.flaky_calls.contains(&self.verify_count);
            Ok(fails.then(|| "red".to_owned()))
        }

        fn move_target_to_stack(&mut self, _: &[usize]) -> Result<bool, Infallible> {
            self.move_target_call_count += 1;
            if self.move_calls_with_moved_target.contains(&self.move_target_call_count) {
                self.target.push(100 + self.move_target_call_count);
                return Ok(false);
            }
            assert!(!self.fails_verify(), "what lands passes: {:?}", self.stacked);
            self.target = self.stacked.clone();
            Ok(true)
        }

        fn reject_item(&mut self, item: usize, _: &str) -> Result<(), Infallible> {
            self.rejected_items.insert(item);
            Ok(())
        }

        fn report_flaky_verify(&mut self, _: usize, _: &str) -> Result<(), Infallible> {
            self.flaky_count += 1;
            Ok(())
        }
    }

    fn merge_all(mut backend: SimulatedBackend, item_count: usize) -> SimulatedBackend {
        let items: Vec<usize> = (0..item_count).collect();
        let Ok(()) = merge_items(&mut backend, &items);
        let mut finished_items: Vec<usize> =
            backend.target.iter().copied().filter(|item| *item < 100).collect();
        finished_items.extend(&backend.rejected_items);
        finished_items.sort_unstable();
        assert_eq!(finished_items, items, "each has landed once or was refused");
        backend
    }

    #[test]
    fn passing_items_land_together_and_only_failing_ones_are_rejected() {
        assert_eq!(merge_all(SimulatedBackend::default(), 8).verify_count, 1);
        assert_eq!(merge_all(SimulatedBackend::default(), 20).verify_count, 3);
        for failing_mask in 0..256_usize {
            let failing_items: BTreeSet<usize> =
                (0..8).filter(|item| failing_mask >> item & 1 == 1).collect();
            let backend = merge_all(
                SimulatedBackend { failing_items: failing_items.clone(), ..SimulatedBackend::default() },
                8,
            );
            assert_eq!(backend.rejected_items, failing_items);
            assert!(
                backend.verify_count <= 1 + 7 * failing_items.len().min(4),
                "{failing_mask:b}: {}",
                backend.verify_count
            );
        }
    }

    #[test]
    fn if_two_items_fail_together_or_conflict_the_later_one_is_rejected() {
        for one in 0..8 {
            for other in one + 1..8 {
                let pair = Some((one, other));
                for backend in [
                    SimulatedBackend { failing_pair: pair, ..SimulatedBackend::default() },
                    SimulatedBackend { conflicting_pair: pair, ..SimulatedBackend::default() },
                ] {
                    assert_eq!(merge_all(backend, 8).rejected_items, BTreeSet::from([other]), "{pair:?}");
                }
            }
        }
    }

    #[test]
    fn items_are_stacked_again_if_the_target_moves() {
        let backend = merge_all(
            SimulatedBackend {
                move_calls_with_moved_target: BTreeSet::from([1, 2]),
                ..SimulatedBackend::default()
            },
            3,
        );
        assert_eq!((backend.verify_count, backend.move_target_call_count), (3, 3));
        assert_eq!(backend.target, [101, 102, 0, 1, 2]);
    }

    #[test]
    fn an_item_that_fails_once_and_then_passes_is_reported_and_lands() {
        let backend = merge_all(
            SimulatedBackend { flaky_calls: BTreeSet::from([1]), ..SimulatedBackend::default() },
            1,
        );
        assert_eq!((backend.flaky_count, backend.rejected_items.len()), (1, 0));
        let backend = merge_all(
            SimulatedBackend { flaky_calls: BTreeSet::from([1, 2]), ..SimulatedBackend::default() },
            1,
        );
        assert_eq!((backend.flaky_count, backend.rejected_items.len()), (0, 1));
    }
}
