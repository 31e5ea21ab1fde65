//! A few of the nights of docs/nights.md, with two items: the simulation works, and what it promises holds.

use plimsoll_research::nights::play;
use plimsoll_research::nights::simulator::Character;
use plimsoll_research::nights::ways::way;

/// A seed with a usage limit, whose sloppy agent leaves out a part and claims to have done everything.
const LIMITED_NIGHT: u64 = 200;

/// Plays a night with two items, and checks that it ended well and lost no more time than its loop waits for.
fn assert_ends_well(key: &str, character: Character) {
    let row = play(way(key).expect("a way"), character, LIMITED_NIGHT, 2);
    let score = &row.score;
    assert!(row.ended_well() && score.troubles == 1 && row.waits_for_people() == 0, "{row:?}");
    assert_eq!((score.passing, score.findable, score.twice), (2, 0, 0), "{row:?}");
    // The limit lasts 175 minutes; the bare loop tries every quarter of an hour.
    let most = if key.starts_with("bare") { 3.25 } else { 2.95 };
    assert!((2.9..most).contains(&score.lost), "{row:?}");
    assert!(score.tests >= 2, "{row:?}");
}

/// The sloppy agent ticks too early and says that all is done; a verify command finds that.
#[test]
fn a_sloppy_agent_with_a_verify_command_ends_well_after_a_limit() {
    assert_ends_well("plimsoll-verify", Character::Sloppy);
}

#[test]
fn a_sloppy_agent_in_a_bare_loop_with_a_test_gate_ends_well_after_a_limit() {
    assert_ends_well("bare-gate", Character::Sloppy);
}

#[test]
fn a_fair_bare_loop_waits_out_a_limit() {
    assert_ends_well("bare", Character::Perfect);
}
