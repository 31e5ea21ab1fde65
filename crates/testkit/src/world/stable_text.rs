//! Replaces the parts of a text that differ between worlds, so that a test can compare a whole screen.

use super::World;
use crate::workspace_paths::{bin_dir, workspace_root};
use regex_lite::Regex;
use std::process::Command;
use std::sync::LazyLock;

/// Applied in this order: a later pattern matches text that no earlier one has changed.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[ID]"),
        (r"\d{4}-\d{2}-\d{2}-\d{4}(-\d+)?\.md", "[DATE-TIME].md"),
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", "[DATE-TIME]"),
        (r"\d{4}-\d{2}-\d{2}", "[DATE]"),
        (r"\b\d{2}:\d{2}(:\d{2})?\b", "[TIME]"),
        (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
        // Only measured seconds. Longer durations are settings or estimates, which the test must see.
        (r"\b(\d+ min )?\d+(\.\d+)? m?s\b", "[DURATION]"),
        (r"\bprocess \d+\b", "process [PID]"),
        (r"\bpid \d+\b", "pid [PID]"),
        (r"── [A-Z][a-z]+day, \d{1,2} [A-Z][a-z]+ \d{4}", "── [DAY]"),
        (r"\brecorded: \d+ [KMG]B", "recorded: [SIZE]"),
        (r"\b127\.0\.0\.1:\d{4,5}\b", "127.0.0.1:[PORT]"),
        (r"\bclient \d+\.\d+\.\d+", "client [VERSION]"),
        // The folder of a project in the user's state, and the random fence around foreign text.
        (r"-[0-9a-f]{16}/", "-[HASH]/"),
        (r"\[[a-z]{12,} (begins:|ends\])", "[FENCE $1"),
    ]
    .map(|(pattern, replacement)| (Regex::new(pattern).expect("a pattern"), replacement))
    .into()
});
/// The first digits of a commit id. A plain word or number is replaced only if the world has such an id.
static SHORT_COMMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,12}\b").expect("a pattern"));

impl World {
    /// Replaces paths, ids, times and durations with names in brackets.
    pub fn replace_unstable_parts(&self, text: &str) -> String {
        let mut stable = text.to_owned();
        let programs = self.with_plimsoll_programs.then(|| (bin_dir(), "[BIN]"));
        let paths = [(self.project(), "[PROJECT]"), (self.home(), "[HOME]"), (self.root.clone(), "[WORLD]")];
        for (path, name) in paths.into_iter().chain(programs).chain([(workspace_root(), "[REPOSITORY]")]) {
            let path = path.to_str().expect("a plain path");
            // Claude Code names a project's folder after its path.
            stable = stable.replace(path, name).replace(&path.replace(['/', '.'], "-"), name);
        }
        for (pattern, replacement) in PATTERNS.iter() {
            stable = pattern.replace_all(&stable, *replacement).into_owned();
        }
        let replace = |captures: &regex_lite::Captures<'_>| {
            let digits = &captures[0];
            let is_mixed = digits.contains(|letter: char| letter.is_ascii_digit())
                && digits.contains(|letter: char| letter.is_ascii_alphabetic());
            if is_mixed || self.has_id_with_prefix(digits) {
                "[COMMIT]".to_owned()
            } else {
                digits.to_owned()
            }
        };
        SHORT_COMMIT.replace_all(&stable, replace).into_owned()
    }

    /// Returns true if a commit id, the id of one of the runs or the run's nonce starts with these digits.
    fn has_id_with_prefix(&self, digits: &str) -> bool {
        let state = std::fs::read_to_string(self.path(".claude/ralph-state.json")).unwrap_or_default();
        // The state names only the newest run.
        let runs = std::fs::read_dir(self.home().join(".local/state/plimsoll/runs"));
        let mut run_ids = runs.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_run = run_ids.any(|run_id| run_id.to_string_lossy().starts_with(digits));
        // Not through the world's PATH: a test may have put a fake git there.
        let commits = Command::new("git").arg("-C").arg(self.project()).args(["rev-list", "--all"]).output();
        let commits = commits.map(|output| output.stdout).unwrap_or_default();
        let mut commits = std::str::from_utf8(&commits).unwrap_or_default().lines();
        is_run || state.contains(&format!("\"{digits}")) || commits.any(|commit| commit.starts_with(digits))
    }
}
