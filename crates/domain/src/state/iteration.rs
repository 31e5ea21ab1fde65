//! One iteration: its progress and its result.

use crate::digest::sha256_hex;
use crate::size::{ContextGrowth, MeasuredItem};
use crate::subagent_usage::SubagentUsage;
use crate::time::Timestamp;
use crate::verdict::SessionEnding;
use serde::{Deserialize, Serialize};

/// The result of one iteration, as kept in the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    pub iteration: u32,
    /// The highest usage of the context window, in whole percent; 0 if none was read.
    pub peak_percent: u64,
    /// True if the iteration ended at a checkpoint.
    #[serde(rename = "checkpoint")]
    pub ended_at_checkpoint: bool,
    /// How many items it ticked.
    #[serde(rename = "items")]
    pub ticked_item_count: u32,
    /// The tokens that stayed in the context windows of its subagents.
    #[serde(rename = "delegated")]
    pub subagent_usage: SubagentUsage,
    /// US dollars, as reported by the client, or estimated.
    pub cost_usd: f64,
    /// Seconds from its start to its end.
    #[serde(rename = "seconds")]
    pub duration_seconds: u64,
    /// How it ended, as in the journal; empty while it has not ended.
    pub ending: String,
}

/// A fingerprint of the project. If nothing in it has changed, the session did nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorktreeFingerprint {
    pub head: Option<String>,
    /// A digest of the files, without ignored files and Plimsoll's own; `None` if it could not be determined.
    #[serde(rename = "tree")]
    pub files_digest: Option<String>,
    /// A digest of the heap of the working memory; `None` without a working memory.
    #[serde(rename = "memory")]
    pub memory_digest: Option<String>,
}

impl WorktreeFingerprint {
    /// Returns a short hash of the files for `last_diff_hash`; equal files have equal hashes. If the files are unknown, the hash
    /// differs in each iteration, because users' scripts read two equal hashes as "nothing has changed".
    pub fn short_files_hash(&self, iteration: u32) -> String {
        const HASH_CHARS: usize = 12;
        let unknown_text = format!("unknown in {iteration}");
        let files_text = self.files_digest.as_deref().unwrap_or(&unknown_text);
        sha256_hex(&[files_text.as_bytes()])[..HASH_CHARS].to_owned()
    }

    /// Returns whether the files differ from the earlier ones. Returns `None` if one of the digests is unknown, or if one digest
    /// is of sizes and times (`by-time:…`) and the other is of the content.
    pub fn files_changed_since(&self, earlier: &WorktreeFingerprint) -> Option<bool> {
        let digest_kind = |digest: &str| digest.split_once(':').map(|(kind, _)| kind.to_owned());
        let (earlier_digest, current_digest) =
            (earlier.files_digest.as_deref()?, self.files_digest.as_deref()?);
        (digest_kind(earlier_digest) == digest_kind(current_digest))
            .then_some(earlier_digest != current_digest)
    }
}

/// The progress of one iteration. It is written before each step, so that a kill between two steps is recoverable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationRecord {
    pub iteration: u32,
    pub phase: IterationPhase,
    /// The process id of its client, once known.
    pub pid: Option<u32>,
    /// When that process started, in the system's clock ticks. Together with the process id it identifies one process.
    #[serde(rename = "process_started")]
    pub process_start_ticks: Option<u64>,
    /// RFC 3339 UTC.
    pub started_at: Option<Timestamp>,
    /// RFC 3339 UTC.
    pub ended_at: Option<Timestamp>,
    pub ending: Option<SessionEnding>,
    /// The item that its prompt names.
    pub item: Option<String>,
    /// Items that were ticked before the iteration began.
    #[serde(rename = "done_before")]
    pub ticked_before_iteration: Vec<String>,
    /// Items that were ticked when its session was planned. These may be more than before the iteration began, because after a
    /// limit several sessions have the same iteration number.
    #[serde(rename = "done_at_start")]
    pub ticked_before_session: Vec<String>,
    /// Items ticked in this iteration whose cost was recorded.
    #[serde(rename = "reckoned")]
    pub measured_items: Vec<MeasuredItem>,
    /// The growth of its session's context, with the part that these items were charged with.
    #[serde(rename = "measured_growth")]
    pub context_growth: ContextGrowth,
    /// The start of the work on its item if an earlier session worked on it; `None` if this session begins the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_start: Option<ItemStart>,
    /// True if its prompt resumes a checkpoint.
    #[serde(rename = "resuming")]
    pub resumes_checkpoint: bool,
    /// True once the SessionStart hook has run, so Plimsoll's hooks are active in this session.
    #[serde(rename = "hooks_seen")]
    pub has_hooks_running: bool,
    /// US dollars, as reported by the client, or estimated.
    pub cost_usd: f64,
    /// True if neither the client nor its transcript nor the turn log shows what it used.
    pub is_cost_unknown: bool,
    pub tokens: u64,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub resets_at: Option<Timestamp>,
    /// A tool that the client refused to run.
    pub denied_tool: Option<String>,
    /// Why the client is currently retrying a request; `None` once the API has answered. Only `plimsoll run` sees it.
    #[serde(rename = "api_trouble")]
    pub api_retry: Option<ApiRetryState>,
    /// True after the first Ctrl-C: the run stops after this session.
    #[serde(rename = "stops_after")]
    pub stops_run_after_session: bool,
    /// The fingerprint of the project before this iteration.
    #[serde(rename = "footing")]
    pub fingerprint_before: Option<WorktreeFingerprint>,
    /// True once the iteration is recorded in the history, the progress file and the handoff.
    #[serde(rename = "closed")]
    pub is_closed: bool,
}

/// The start of the work on an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemStart {
    /// HEAD at that moment; `None` outside git and before the first commit.
    #[serde(rename = "base")]
    pub base_commit: Option<String>,
    /// RFC 3339 UTC.
    #[serde(rename = "at")]
    pub started_at: Option<Timestamp>,
}

/// The API does not answer or answers with an error, and the client is retrying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiRetryState {
    /// When the first of the retried requests failed, RFC 3339 UTC.
    #[serde(rename = "since")]
    pub failing_since: Timestamp,
    /// The HTTP status of the last answer; 0 if the API could not be reached.
    #[serde(rename = "status")]
    pub http_status: u64,
}

/// The step that an iteration has reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationPhase {
    /// Nothing has been planned yet, or the last iteration has been judged.
    #[default]
    Judged,
    /// Its prompt has been written.
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
        let fingerprint = |tree: Option<&str>, head: &str| WorktreeFingerprint {
            files_digest: tree.map(str::to_owned),
            head: Some(head.to_owned()),
            ..WorktreeFingerprint::default()
        };
        let hash = fingerprint(Some("a"), "h1").short_files_hash(1);
        assert!(hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
        assert_eq!(fingerprint(Some("a"), "h2").short_files_hash(2), hash, "a commit alone changes no file");
        assert_ne!(fingerprint(Some("b"), "h1").short_files_hash(1), hash);
        assert_ne!(
            fingerprint(None, "h1").short_files_hash(1),
            fingerprint(None, "h1").short_files_hash(2),
            "nobody knows"
        );
    }

    #[test]
    fn only_digests_of_one_kind_are_compared() {
        let fingerprint = |tree: &str| WorktreeFingerprint {
            files_digest: Some(tree.to_owned()).filter(|tree| !tree.is_empty()),
            ..WorktreeFingerprint::default()
        };
        for (before, current, expected) in [
            ("a", "a", Some(false)),
            ("a", "b", Some(true)),
            ("by-time:a", "by-time:a", Some(false)),
            ("by-time:a", "by-time:b", Some(true)),
            ("a", "by-time:a", None),
            ("", "a", None),
            ("a", "", None),
        ] {
            assert_eq!(
                fingerprint(current).files_changed_since(&fingerprint(before)),
                expected,
                "{before} {current}"
            );
        }
    }
}
