//! The cost of a hook in instructions and bytes, which unlike milliseconds are the same on every computer.

use plimsoll_testkit::workspace_root;
use std::process::Command;

/// The exit code of `scripts/cost.sh` if valgrind is not available.
const NOT_MEASURED_EXIT_CODE: i32 = 75;

#[test]
fn no_program_costs_more_than_its_limits() {
    let script = workspace_root().join("scripts/cost.sh");
    // The programs must be the ones that users get. `scripts/test.sh` names them for the profile "release"; otherwise
    // they are built here. A build script watches this variable, so the programs would be built once more if it were
    // set.
    let output = Command::new(&script).env_remove("CARGO_MANIFEST_DIR").output().unwrap();
    let (table, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOT_MEASURED_EXIT_CODE) {
        println!("NOT MEASURED: {complaints}");
        return;
    }
    assert!(output.status.success(), "{table}\n{complaints}");
    let rows = |word: &str| table.lines().filter(|line| line.starts_with(&format!("| {word}"))).count();
    assert!(rows("monitor") + rows("status line") >= 9, "{table}");
    // All hook programs are one file.
    assert_eq!(rows("plimsoll"), 6, "every program has a limit: {table}");
}
