//! Replaces the parts of a text that differ between worlds, so that tests can compare whole screens.

use super::World;
use crate::workspace_paths::{find_or_build_bin_dir, workspace_root};
use regex_lite::Regex;
use std::process::Command;
use std::sync::LazyLock;

/// Patterns and their replacements, applied in this order. Each matches only text that earlier ones left unchanged.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // Printed after each session. It depends on how fast the computer is.
        (r"(?m)^   \d[\w ]* elapsed · .*\n", ""),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[ID]"),
        (r"\d{4}-\d{2}-\d{2}-\d{4}(-\d+)?\.md", "[DATE-TIME].md"),
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", "[DATE-TIME]"),
        (r"\d{4}-\d{2}-\d{2}", "[DATE]"),
        // A time on another day is printed with its day, so a time within the next hour has a day before midnight.
        (r"\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun) +(\d{1,2} [A-Z][a-z]{2} )?)?\d{2}:\d{2}(:\d{2})?\b", "[TIME]"),
        (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
        // Measured durations are in seconds. Longer ones are settings or estimates, which tests must see.
        (r"\b(\d+ min )?\d+(\.\d+)? m?s\b", "[DURATION]"),
        (r"\bprocess \d+\b", "process [PID]"),
        (r"\bpid \d+\b", "pid [PID]"),
        (r"── [A-Z][a-z]+day, \d{1,2} [A-Z][a-z]+ \d{4}", "── [DAY]"),
        (r"\brecorded: \d+ [KMG]B", "recorded: [SIZE]"),
        (r"\b127\.0\.0\.1:\d{4,5}\b", "127.0.0.1:[PORT]"),
        (r"\bclient \d+\.\d+\.\d+", "client [VERSION]"),
        // The hash in the name of a project's state folder, and the random delimiters around untrusted text.
        (r"-[0-9a-f]{16}/", "-[HASH]/"),
        (r"\[[a-z]{12,} (begins:|ends\])", "[FENCE $1"),
    ]
    .map(|(pattern, replacement)| (Regex::new(pattern).expect("a pattern"), replacement))
    .into()
});
/// An abbreviated commit id. A plain word or number is replaced only if this world has an id that starts with it.
static SHORT_COMMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,12}\b").expect("a pattern"));

impl World {
    /// Replaces paths, ids, times and durations with placeholders in brackets.
    pub fn replace_varying_parts_with_placeholders(&self, text: &str) -> String {
        let mut stable_text = text.to_owned();
        let programs_folder = self.with_plimsoll_programs.then(|| (find_or_build_bin_dir(), "[BIN]"));
        let paths = [(self.project(), "[PROJECT]"), (self.home(), "[HOME]"), (self.root.clone(), "[WORLD]")];
        for (path, placeholder) in
            paths.into_iter().chain(programs_folder).chain([(workspace_root(), "[REPOSITORY]")])
        {
            let path = path.to_str().expect("a plain path");
            // Claude Code derives the name of a project's folder from the project's path.
            stable_text =
                stable_text.replace(path, placeholder).replace(&path.replace(['/', '.'], "-"), placeholder);
        }
        for (pattern, replacement) in PATTERNS.iter() {
            stable_text = pattern.replace_all(&stable_text, *replacement).into_owned();
        }
        let replace_commit_id = |captures: &regex_lite::Captures<'_>| {
            let candidate = &captures[0];
            let has_digits_and_letters = candidate.contains(|character: char| character.is_ascii_digit())
                && candidate.contains(|character: char| character.is_ascii_alphabetic());
            if has_digits_and_letters || self.has_commit_or_run_id_with_prefix(candidate) {
                "[COMMIT]".to_owned()
            } else {
                candidate.to_owned()
            }
        };
        SHORT_COMMIT.replace_all(&stable_text, replace_commit_id).into_owned()
    }

    /// Returns true if a commit id, a run id or a string in the run's state starts with `prefix`.
    fn has_commit_or_run_id_with_prefix(&self, prefix: &str) -> bool {
        let state = std::fs::read_to_string(self.path(".claude/ralph-state.json")).unwrap_or_default();
        // The state contains only the newest run's id.
        let run_entries = std::fs::read_dir(self.home().join(".local/state/plimsoll/runs"));
        let mut run_ids = run_entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_run_id = run_ids.any(|run_id| run_id.to_string_lossy().starts_with(prefix));
        // Not through the world's PATH, because a test may have put a fake git there.
        let git_output =
            Command::new("git").arg("-C").arg(self.project()).args(["rev-list", "--all"]).output();
        let commit_bytes = git_output.map(|output| output.stdout).unwrap_or_default();
        let mut commit_ids = std::str::from_utf8(&commit_bytes).unwrap_or_default().lines();
        is_run_id
            || state.contains(&format!("\"{prefix}"))
            || commit_ids.any(|commit_id| commit_id.starts_with(prefix))
    }
}
