//! What a hook costs, counted in instructions: the same on every computer, unlike milliseconds.

use std::process::Command;
use testkit::workspace_root;

/// `scripts/cost.sh` ends so when valgrind cannot be had.
const NOTHING_MEASURED: i32 = 75;

#[test]
fn no_hook_costs_more_than_its_budget() {
    let script = workspace_root().join("scripts/cost.sh");
    // The programs must be those that users get, not the ones the other tests build.
    let output = Command::new(&script).arg("--no-clock").env_remove("PLIMSOLL_BIN_DIR").output().unwrap();
    let (table, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOTHING_MEASURED) {
        println!("NOT MEASURED: {complaints}");
        return;
    }
    assert!(output.status.success(), "{table}\n{complaints}");
    let cases =
        table.lines().filter(|line| line.starts_with("monitor") || line.starts_with("status line")).count();
    assert!(cases >= 9, "{table}");
}
