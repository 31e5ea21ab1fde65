//! Checks recent failures of Plimsoll's hooks, as recorded by the hooks themselves and by the client.

use super::{Finding, Section};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::{RecordedHookFailure, Timestamp};

/// A failure of one of Plimsoll's hooks, as recorded in the client's transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailureInTranscript {
    /// When it occurred, RFC 3339; empty if unknown.
    pub occurred_at: Timestamp,
    /// The command that the client ran.
    pub command: String,
    /// The client's description of the failure.
    pub error: String,
}

#[derive(Debug, Clone, Default)]
pub struct HookFailures {
    /// Failures recorded by the hooks themselves, oldest first.
    pub recorded_failures: Vec<RecordedHookFailure>,
    /// Failures recorded by the client in the current session, oldest first.
    pub client_failures: Vec<HookFailureInTranscript>,
    /// One day ago, RFC 3339. Older failures are reported only as a note.
    pub recent_cutoff: Timestamp,
}

pub(super) fn check_last_hook_and_client_failure(failures: &HookFailures) -> Section {
    let recent_count = failures
        .recorded_failures
        .iter()
        .filter(|failure| failure.occurred_at > failures.recent_cutoff)
        .count();
    let mut findings = Vec::new();
    if let Some(last_failure) = failures.recorded_failures.last() {
        let message = format!(
            "{} at {}: {}",
            last_failure.program,
            last_failure.occurred_at,
            truncate_end(&to_safe_single_line(&last_failure.message), 200)
        );
        let advice = "fix what it names; all recorded faults are in .claude/plimsoll/faults.jsonl";
        findings.push(match recent_count {
            0 => Finding::note(
                "faults.old",
                format!("the last fault is more than a day old: {message}"),
                advice,
            ),
            1 => Finding::warning("faults.recent", message, advice),
            failure_count => Finding::warning(
                "faults.recent",
                format!("{message} (the last of {failure_count} within a day)"),
                advice,
            ),
        });
    }
    if let Some(last_failure) = failures.client_failures.last() {
        let times_text = count_with_noun(failures.client_failures.len(), "time");
        let message = format!(
            "Claude Code could not run `{}` ({times_text} in this session): {}",
            truncate_end(&to_safe_single_line(&last_failure.command), 100),
            truncate_end(&to_safe_single_line(&last_failure.error), 200)
        );
        let advice = "check that the program exists and starts; `plimsoll init` (with the option of its settings) writes its path again";
        findings.push(Finding::warning("faults.client", message, advice));
    }
    let summary = match (recent_count, failures.client_failures.len()) {
        (0, 0) => "no hook has failed within a day".to_owned(),
        (recorded_count, client_count) => {
            format!("{} of hooks within a day", count_with_noun(recorded_count + client_count, "fault"))
        }
    };
    Section::new("Hooks", summary, findings)
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    #[test]
    fn a_recent_fault_is_a_warning_and_an_old_one_a_note() {
        let own_fault = |at: &str| RecordedHookFailure {
            occurred_at: Timestamp::from(at),
            program: "plimsoll-stop-gate".to_owned(),
            message: "it broke".to_owned(),
            ..RecordedHookFailure::default()
        };
        let client_fault = HookFailureInTranscript {
            occurred_at: Timestamp::default(),
            command: "/gone/plimsoll-stop-gate".to_owned(),
            error: "ENOENT".to_owned(),
        };
        let check = |own: Vec<RecordedHookFailure>, of_client: Vec<HookFailureInTranscript>| {
            check_last_hook_and_client_failure(&HookFailures {
                recorded_failures: own,
                client_failures: of_client,
                recent_cutoff: Timestamp::from("2026-01-06T09:00:00.000Z"),
            })
        };
        let (old, new) = ("2026-01-05T09:00:00.000Z", "2026-01-07T09:00:00.000Z");
        for (section, expected) in [
            (check(vec![], vec![]), vec![]),
            (check(vec![own_fault(old)], vec![]), vec!["faults.old"]),
            (check(vec![own_fault(old), own_fault(new)], vec![]), vec!["faults.recent"]),
            (check(vec![own_fault(new)], vec![client_fault]), vec!["faults.recent", "faults.client"]),
        ] {
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
        let both = check(vec![own_fault(new), own_fault(new)], vec![]);
        insta::assert_snapshot!(both.findings[0].message, @"plimsoll-stop-gate at 2026-01-07T09:00:00.000Z: it broke (the last of 2 within a day)");
    }
}
