//! There is no way to a turn but its two constructors, and none to change one (ARC-001, ARC-002). Each file in
//! `closed/` is a way that must not compile; TRYBUILD=overwrite writes what the compiler says.

#[test]
fn arc_002_a_turn_cannot_be_made_or_changed_by_the_back_door() {
    trybuild::TestCases::new().compile_fail("tests/closed/*.rs");
}
