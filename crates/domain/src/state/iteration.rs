//! One iteration: its life, and what it came to.

use crate::digest::sha256;
use crate::size::{MeasuredGrowth, MeasuredItem};
use crate::subagent_usage::SubagentUsage;
use crate::time::Timestamp;
use crate::verdict::Ending;
use serde::{Deserialize, Serialize};

/// What one iteration came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    /// Its number.
    pub iteration: u32,
    /// Its highest deciding figure, whole percent; 0 when none was read.
    pub peak_percent: u64,
    /// True when it ended at a checkpoint.
    pub checkpoint: bool,
    /// Items it ticked.
    pub items: u32,
    /// What stayed with its subagents.
    pub delegated: SubagentUsage,
    /// US dollars, as reported by the client, else estimated.
    pub cost_usd: f64,
    /// From its start to its end.
    pub seconds: u64,
    /// How it ended, as one of the journal's words; empty while it has not.
    pub ending: String,
}

/// A fingerprint of the project: if none of it has changed, nothing was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorktreeFingerprint {
    /// HEAD.
    pub head: Option<String>,
    /// What the files hold, apart from ours and ignored ones; none if that could not be found out.
    pub tree: Option<String>,
    /// What the heap of the working memory holds, as a digest; none without one.
    pub memory: Option<String>,
}

impl WorktreeFingerprint {
    /// The files in a few letters, for `last_diff_hash`: equal where they are equal. Where that is not known it is
    /// another one in each iteration, for scripts take two equal ones for "nothing has changed".
    pub fn short_hash(&self, iteration: u32) -> String {
        const LETTERS: usize = 12;
        let unknown = format!("unknown in {iteration}");
        let files = self.tree.as_deref().unwrap_or(&unknown);
        sha256(&[files.as_bytes()])[..LETTERS].to_owned()
    }

    /// Do the files differ from those of before? None if that cannot be seen: one of the two is not known, or one
    /// is known by sizes and times (`by-time:…`) and the other by content.
    pub fn files_changed(&self, before: &WorktreeFingerprint) -> Option<bool> {
        let kind = |tree: &str| tree.split_once(':').map(|(kind, _)| kind.to_owned());
        let (before, now) = (before.tree.as_deref()?, self.tree.as_deref()?);
        (kind(before) == kind(now)).then_some(before != now)
    }
}

/// The life of one iteration, written before each step, so that a kill between two is recoverable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationRecord {
    /// Its number.
    pub iteration: u32,
    /// How far it has come.
    pub phase: Phase,
    /// The process of its client, once it is known.
    pub pid: Option<u32>,
    /// When that process began, in the system's own ticks: with the pid it identifies one process.
    pub process_started: Option<u64>,
    /// RFC 3339 UTC.
    pub started_at: Option<Timestamp>,
    /// RFC 3339 UTC.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// The item that its prompt names.
    pub item: Option<String>,
    /// Items that were ticked before it began.
    pub done_before: Vec<String>,
    /// Items that were ticked when its session was planned: more than before it began, where a limit brought several
    /// sessions under one number.
    pub done_at_start: Vec<String>,
    /// Items ticked in it whose cost was noted.
    pub reckoned: Vec<MeasuredItem>,
    /// The growth of its session's context that these items were charged with.
    pub measured_growth: MeasuredGrowth,
    /// The start of the work on its item, if an earlier session worked on it; none if the item begins with this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_start: Option<ItemStart>,
    /// True when its prompt resumes a checkpoint.
    pub resuming: bool,
    /// True once SessionStart has spoken: our hooks run in it.
    pub hooks_seen: bool,
    /// US dollars, as reported by the client, else estimated.
    pub cost_usd: f64,
    /// True if neither the client nor its transcript nor the turn log says what it used.
    pub is_cost_unknown: bool,
    /// Tokens, as the client counts them.
    pub tokens: u64,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub resets_at: Option<Timestamp>,
    /// A tool that the client refused to run.
    pub denied_tool: Option<String>,
    /// Why the client retries a request at present; none once the API has answered. Only `plimsoll run` sees it.
    pub api_trouble: Option<ApiTrouble>,
    /// True from the first Ctrl-C on: the run stops after this session.
    pub stops_after: bool,
    /// What the project stood on before it.
    pub footing: Option<WorktreeFingerprint>,
    /// True once it is in the history, the progress file and the handoff.
    pub closed: bool,
}

/// The start of the work on an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemStart {
    /// HEAD at that moment; none outside git and before the first commit.
    pub base: Option<String>,
    /// RFC 3339 UTC.
    pub at: Option<Timestamp>,
}

/// The API does not answer, or answers with an error, and the client retries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiTrouble {
    /// When the first of these requests failed, RFC 3339 UTC.
    pub since: Timestamp,
    /// The HTTP status of the last answer; 0 if the API could not be reached.
    pub status: u64,
}

/// How far an iteration has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has been planned yet, or the last one is judged.
    #[default]
    Judged,
    /// Its prompt is written.
    Planned,
    /// Its client has been started.
    Spawned,
    /// Its client has ended.
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_hash_is_equal_exactly_for_equal_files() {
        let footing = |tree: Option<&str>, head: &str| WorktreeFingerprint {
            tree: tree.map(str::to_owned),
            head: Some(head.to_owned()),
            ..WorktreeFingerprint::default()
        };
        let hash = footing(Some("a"), "h1").short_hash(1);
        assert!(hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
        assert_eq!(footing(Some("a"), "h2").short_hash(2), hash, "a commit alone changes no file");
        assert_ne!(footing(Some("b"), "h1").short_hash(1), hash);
        assert_ne!(footing(None, "h1").short_hash(1), footing(None, "h1").short_hash(2), "nobody knows");
    }

    #[test]
    fn only_digests_of_one_kind_are_compared() {
        let footing = |tree: &str| WorktreeFingerprint {
            tree: Some(tree.to_owned()).filter(|tree| !tree.is_empty()),
            ..WorktreeFingerprint::default()
        };
        for (before, now, expected) in [
            ("a", "a", Some(false)),
            ("a", "b", Some(true)),
            ("by-time:a", "by-time:a", Some(false)),
            ("by-time:a", "by-time:b", Some(true)),
            ("a", "by-time:a", None),
            ("", "a", None),
            ("a", "", None),
        ] {
            assert_eq!(footing(now).files_changed(&footing(before)), expected, "{before} {now}");
        }
    }
}
