//! What a hook costs, counted in instructions and bytes: the same on every computer, unlike milliseconds.

use plimsoll_testkit::workspace_root;
use std::process::Command;

/// `scripts/cost.sh` ends so when valgrind cannot be had.
const NOTHING_MEASURED: i32 = 75;

#[test]
fn no_program_costs_more_than_its_limits() {
    let script = workspace_root().join("scripts/cost.sh");
    // The programs must be those that users get: `scripts/test.sh` names them for the profile "release"; else they are built
    // here, and a build script that watches the variable would have them built once more.
    let output = Command::new(&script).env_remove("CARGO_MANIFEST_DIR").output().unwrap();
    let (table, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOTHING_MEASURED) {
        println!("NOT MEASURED: {complaints}");
        return;
    }
    assert!(output.status.success(), "{table}\n{complaints}");
    let rows = |word: &str| table.lines().filter(|line| line.starts_with(&format!("| {word}"))).count();
    assert!(rows("monitor") + rows("status line") >= 9, "{table}");
    // The hook programs are one file.
    assert_eq!(rows("plimsoll"), 6, "every program has a limit: {table}");
}
