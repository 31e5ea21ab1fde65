//! A few of the nights of docs/nights.md with two items each: the simulation works and Plimsoll's nights end
//! well.

use plimsoll_research::nights::simulate_unattended_run;
use plimsoll_research::nights::simulator::AgentPersona;
use plimsoll_research::nights::ways::find_loop_setup;

/// A seed with a usage limit, whose sloppy agent leaves out a part and claims to have done everything.
const LIMITED_SIMULATION: u64 = 200;

/// Plays a night with two items and asserts that it ended well and lost no more time than its loop waits.
fn assert_ends_well(way_key: &str, persona: AgentPersona) {
    let row =
        simulate_unattended_run(find_loop_setup(way_key).expect("a way"), persona, LIMITED_SIMULATION, 2);
    let score = &row.score;
    assert!(
        row.ended_with_all_items_correct() && score.faults == 1 && row.count_waits_for_person() == 0,
        "{row:?}"
    );
    assert_eq!((score.passing, score.findable_false_ticks, score.converted_twice), (2, 0, 0), "{row:?}");
    // The limit lasts 175 minutes; the bare loop tries every quarter of an hour.
    let max_lost_hours = if way_key.starts_with("bare") { 3.25 } else { 2.95 };
    assert!((2.9..max_lost_hours).contains(&score.lost_hours), "{row:?}");
    assert!(score.test_runs >= 2, "{row:?}");
}

/// The sloppy agent ticks too early and says that all is done; the verify command finds that.
#[test]
fn a_sloppy_agent_with_a_verify_command_ends_well_after_a_limit() {
    assert_ends_well("plimsoll-verify", AgentPersona::Sloppy);
}

#[test]
fn a_sloppy_agent_in_a_bare_loop_with_a_test_gate_ends_well_after_a_limit() {
    assert_ends_well("bare-gate", AgentPersona::Sloppy);
}

#[test]
fn a_bare_loop_waits_out_a_usage_limit() {
    assert_ends_well("bare", AgentPersona::Perfect);
}
