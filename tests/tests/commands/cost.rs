//! What a hook costs, counted in instructions and bytes: the same on every computer, unlike milliseconds.

use std::process::Command;
use testkit::workspace_root;

/// `scripts/cost.sh` ends so when valgrind cannot be had.
const NOTHING_MEASURED: i32 = 75;

#[test]
fn no_program_costs_more_than_its_limits() {
    let script = workspace_root().join("scripts/cost.sh");
    // The programs must be those that users get: nextest's profile "release" names them; without it they are built here,
    // and once more if a build script sees a variable of this test's.
    let mut command = Command::new(&script);
    for (name, _) in std::env::vars_os() {
        let of_cargo = name.to_string_lossy().starts_with("CARGO_");
        if of_cargo && name != "CARGO_HOME" && name != "CARGO_TARGET_DIR" {
            command.env_remove(name);
        }
    }
    let output = command.output().unwrap();
    let (table, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOTHING_MEASURED) {
        println!("NOT MEASURED: {complaints}");
        return;
    }
    assert!(output.status.success(), "{table}\n{complaints}");
    let rows = |word: &str| table.lines().filter(|line| line.starts_with(&format!("| {word}"))).count();
    assert!(rows("monitor") + rows("status line") >= 9, "{table}");
    assert_eq!(rows("plimsoll"), 10, "every program has a limit: {table}");
}
