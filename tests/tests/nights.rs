//! One of the nights of docs/nights.md, so that the simulation works and what it promises holds.

use plimsoll_tests::night::{Way, play};

#[test]
fn a_night_with_an_outage_and_a_kill_ends_well_and_nothing_is_done_twice() {
    let outcome = play(Way::Plimsoll, 2);
    let score = &outcome.score;
    assert!(outcome.ended_well(), "{outcome:?}");
    assert!(score.troubles >= 2, "the seed brings some: {outcome:?}");
    assert_eq!((score.twice, score.ticked_undone), (0, 0), "{outcome:?}");
    assert_eq!(score.resumes.0, score.resumes.1, "{outcome:?}");
    assert!(score.resumes.1 > 0, "one began in the middle: {outcome:?}");
}
