//! A few of the simulations of docs/nights.md with two items each: they work, and those of Plimsoll end well.

use plimsoll_research::nights::loop_setups::find_loop_setup;
use plimsoll_research::nights::simulate_unattended_run;
use plimsoll_research::nights::simulator::AgentPersona;

/// A seed with a usage limit, whose sloppy agent leaves out a part and claims to have done everything.
const SEED_WITH_USAGE_LIMIT: u64 = 200;

/// Simulates two items and asserts that the loop ended well and waited for answers no longer than expected.
fn assert_ends_well(setup_key: &str, persona: AgentPersona) {
    let row = simulate_unattended_run(
        find_loop_setup(setup_key).expect("a way"),
        persona,
        SEED_WITH_USAGE_LIMIT,
        2,
    );
    let score = &row.score;
    assert!(
        row.ended_with_all_items_correct() && score.faults == 1 && row.count_waits_for_person() == 0,
        "{row:?}"
    );
    assert_eq!(
        (score.passing, score.false_ticks_found_by_test, score.twice_converted_items),
        (2, 0, 0),
        "{row:?}"
    );
    // The limit lasts 175 minutes; the bare loop tries every quarter of an hour.
    let max_hours_without_answers = if setup_key.starts_with("bare") { 3.25 } else { 2.95 };
    assert!((2.9..max_hours_without_answers).contains(&score.hours_without_answers), "{row:?}");
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
