//! `scripts/bench.sh` works: all its parts, in a few rounds. What it says of milliseconds is nobody's verdict.

use plimsoll_testkit::{bin_dir, workspace_root};
use std::process::Command;

/// The first cells of a page's tables.
fn rows(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).map(str::trim).collect()
}

#[test]
fn a_quick_run_fills_every_table_and_the_published_page_has_its_rows() {
    let script = workspace_root().join("scripts/bench.sh");
    let output = Command::new(script).arg("--quick").env("PLIMSOLL_BIN_DIR", bin_dir()).output().unwrap();
    let (page, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{page}\n{notes}");
    let published = std::fs::read_to_string(workspace_root().join("docs/performance.md")).unwrap();
    let (rows, published) = (rows(&page), rows(&published));
    assert!(rows.len() > 30, "{page}");
    for row in rows.iter().filter(|row| !row.is_empty()) {
        assert!(published.contains(row), "{row}: scripts/bench.sh --page makes the page anew");
    }
    for verdict in [" × floor", "once in each of 3 rounds", "bash and jq", "10 : 1 MB", "turns sync"] {
        assert!(page.contains(verdict), "{verdict}: {page}");
    }
}

#[test]
fn a_quick_run_is_never_published() {
    let script = workspace_root().join("scripts/bench.sh");
    let output = Command::new(script).args(["--quick", "--page"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
