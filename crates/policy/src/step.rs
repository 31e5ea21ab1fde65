//! Decides whether to stop at a commit before L2. Commits are the only boundaries in a session's work that are visible from
//! outside; the work between two of its commits is a step. If the next step will probably not fit below L2, the commit that was
//! just made is a better place for the checkpoint than the middle of the next step.

use crate::forecast::upper_median;

/// The minimum number of steps for an estimate: a single one may be an exception.
const MIN_STEPS: usize = 2;

/// The estimate by which the next step will not fit below L2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextStepTooLarge {
    /// The median tokens of a step of this session; of two middle values the larger.
    pub typical_step_tokens: u64,
    /// The tokens that are left below L2.
    pub tokens_below_l2: u64,
}

/// Returns an estimate if the median step of the session does not fit below `l2_tokens`, so that the next step probably
/// will not either.
/// `used_tokens_at_commits` has the usage at each commit of the session; the last one is the current usage. Returns
/// `None` if the step fits, or with fewer than two steps.
pub fn predict_step_reaching_l2_by_median(
    used_tokens_at_commits: &[u64],
    l2_tokens: u64,
) -> Option<NextStepTooLarge> {
    let step_tokens: Vec<u64> =
        used_tokens_at_commits.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    if step_tokens.len() < MIN_STEPS {
        return None;
    }
    let typical_step_tokens = upper_median(step_tokens)?;
    let tokens_below_l2 = l2_tokens.saturating_sub(*used_tokens_at_commits.last()?);
    (typical_step_tokens >= tokens_below_l2)
        .then_some(NextStepTooLarge { typical_step_tokens, tokens_below_l2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_advised_if_the_median_step_does_not_fit_below_l2() {
        let predict = |commits: &[u64]| {
            predict_step_reaching_l2_by_median(commits, 850)
                .map(|prediction| (prediction.typical_step_tokens, prediction.tokens_below_l2))
        };
        for (commits, expected) in [
            (&[][..], None),
            (&[840], None),
            // The work before the first commit is not a step, and one step is not enough.
            (&[400, 840], None),
            (&[500, 600, 700], None),
            (&[500, 600, 724], None),
            (&[500, 600, 725], Some((125, 125))),
            // The larger of two, the middle of three.
            (&[600, 610, 720], None),
            (&[600, 610, 700, 790], Some((90, 60))),
            (&[300, 320, 340, 700, 720], None),
            // Above L2 nothing is left; a decrease counts as a step of 0.
            (&[700, 800, 900], Some((100, 0))),
            (&[900, 300, 320], None),
        ] {
            assert_eq!(predict(commits), expected, "{commits:?}");
        }
    }
}
