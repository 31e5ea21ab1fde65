//! Where to stop before L2. A commit is the one boundary that can be seen from outside: what a session does from one of
//! its commits to the next is a step. Once the next step will probably not fit below L2, the commit that was just made is
//! a better place for the checkpoint than the middle of the next step.

use crate::forecast::middle;

/// One step may be chance.
const FEWEST: usize = 2;

/// Why it is better to stop here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSmall {
    /// What a step of this session usually takes, in tokens: the middle one, the larger of two.
    pub step: u64,
    /// What is left below L2, in tokens.
    pub left: u64,
}

/// From the fill at each commit, the last one now: is what is left too small for the next step?
pub fn too_small(commits: &[u64], l2: u64) -> Option<TooSmall> {
    let steps: Vec<u64> = commits.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    if steps.len() < FEWEST {
        return None;
    }
    let step = middle(steps)?;
    let left = l2.saturating_sub(*commits.last()?);
    (step >= left).then_some(TooSmall { step, left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_better_to_stop_when_the_middle_step_does_not_fit_into_what_is_left() {
        let found = |commits: &[u64]| too_small(commits, 850).map(|small| (small.step, small.left));
        for (commits, expected) in [
            (&[][..], None),
            (&[840], None),
            // What came before the first commit is no step, and one step is not enough to know.
            (&[400, 840], None),
            (&[500, 600, 700], None),
            (&[500, 600, 724], None),
            (&[500, 600, 725], Some((125, 125))),
            // The larger of two, the middle of three.
            (&[600, 610, 720], None),
            (&[600, 610, 700, 790], Some((90, 60))),
            (&[300, 320, 340, 700, 720], None),
            // Above L2 nothing is left; a figure that went back is no step.
            (&[700, 800, 900], Some((100, 0))),
            (&[900, 300, 320], None),
        ] {
            assert_eq!(found(commits), expected, "{commits:?}");
        }
    }
}
