//! The gates depend on nothing but the programs: not on where the checkout lies, nor on whose it is.

use plimsoll_testkit::{bin_dir, workspace_root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// `scripts/cost.sh` ends so when it cannot measure here.
const NOTHING_MEASURED: i32 = 75;
/// All that the count of the first row needs of a checkout.
const NEEDED: [&str; 3] = ["scripts/cost.sh", "scripts/stage.sh", "tests/fixtures/statusline/usage.1m.json"];

/// The count of the first row, as it is made in this checkout.
fn count(checkout: &Path, home: &Path) -> Option<u64> {
    let output = Command::new(checkout.join("scripts/cost.sh"))
        .arg("--first")
        .env("PLIMSOLL_BIN_DIR", bin_dir())
        .env("HOME", home)
        .env("TMPDIR", home)
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOTHING_MEASURED) {
        println!("NOT MEASURED: {complaints}");
        return None;
    }
    assert!(output.status.success(), "{complaints}");
    let count = String::from_utf8_lossy(&output.stdout).trim().parse();
    Some(count.unwrap_or_else(|_| panic!("a bare number: {output:?}")))
}

/// A clone in a longer path once exceeded the limits that a shorter one kept.
#[test]
fn a_hook_costs_the_same_instructions_whatever_the_path_of_the_checkout() {
    let elsewhere = tempfile::tempdir().unwrap();
    let checkout = elsewhere.path().join(format!("a space, an ü and {}", "length ".repeat(20)));
    for file in NEEDED {
        let copy = checkout.join(file);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(workspace_root().join(file), copy).unwrap();
    }
    let (here, there) = std::thread::scope(|scope| {
        let here = scope.spawn(|| count(&workspace_root(), Path::new("/")));
        let there = count(&checkout, elsewhere.path());
        (here.join().unwrap(), there)
    });
    assert_eq!(there, here);
}
