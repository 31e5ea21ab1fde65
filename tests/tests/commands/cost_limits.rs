//! The cost limits depend on the programs alone, not on the path or the owner of the checkout.

use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The exit code of `scripts/cost.sh` if it cannot measure here.
const NOT_MEASURED_EXIT_CODE: i32 = 75;
/// The files of a checkout that the count of the first row needs.
const NEEDED_FILES: [&str; 3] =
    ["scripts/cost.sh", "scripts/stage.sh", "tests/fixtures/statusline/usage.1m.json"];

/// Returns the count of the first row as measured in this checkout, or `None` if it cannot be measured here.
fn count_first_row(checkout: &Path, home: &Path) -> Option<u64> {
    let output = Command::new(checkout.join("scripts/cost.sh"))
        .arg("--first")
        .env("PLIMSOLL_BIN_DIR", find_or_build_bin_dir())
        .env("HOME", home)
        .env("TMPDIR", home)
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_MEASURED_EXIT_CODE) {
        println!("NOT MEASURED: {complaints}");
        return None;
    }
    assert!(output.status.success(), "{complaints}");
    let count = String::from_utf8_lossy(&output.stdout).trim().parse();
    Some(count.unwrap_or_else(|_| panic!("a bare number: {output:?}")))
}

/// A clone in a longer path once exceeded the limits that a shorter one kept.
#[test]
fn the_path_of_the_checkout_does_not_change_the_instruction_count() {
    let elsewhere = tempfile::tempdir().unwrap();
    let checkout = elsewhere.path().join(format!("a space, an ü and {}", "length ".repeat(20)));
    for file in NEEDED_FILES {
        let copy = checkout.join(file);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(workspace_root().join(file), copy).unwrap();
    }
    let (here, there) = std::thread::scope(|scope| {
        let here = scope.spawn(|| count_first_row(&workspace_root(), Path::new("/")));
        let there = count_first_row(&checkout, elsewhere.path());
        (here.join().unwrap(), there)
    });
    assert_eq!(there, here);
}
