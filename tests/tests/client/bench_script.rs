//! `scripts/bench.sh` works with all its parts, in a few rounds. No test depends on the times that it prints.

use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};
use std::process::Command;

/// Returns the first cell of each table row of a page.
fn first_cells(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).map(str::trim).collect()
}

#[test]
fn every_row_of_a_quick_benchmark_is_in_the_published_page() {
    let script = workspace_root().join("scripts/bench.sh");
    let output = Command::new(script)
        .arg("--quick")
        .env("PLIMSOLL_BIN_DIR", find_or_build_bin_dir())
        .output()
        .unwrap();
    let (page, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{page}\n{stderr}");
    let published_page = std::fs::read_to_string(workspace_root().join("docs/performance.md")).unwrap();
    let (rows, published_rows) = (first_cells(&page), first_cells(&published_page));
    assert!(rows.len() > 20, "{page}");
    for row in rows.iter().filter(|row| !row.is_empty()) {
        assert!(published_rows.contains(row), "{row}: scripts/bench.sh --page makes the page anew");
    }
    for expected_text in [" × floor", "once in each of 3 rounds", "bash and jq", "10 : 1 MB", "turns sync"] {
        assert!(page.contains(expected_text), "{expected_text}: {page}");
    }
}

#[test]
fn publishing_a_quick_benchmark_is_refused() {
    let script = workspace_root().join("scripts/bench.sh");
    let output = Command::new(script).args(["--quick", "--page"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
