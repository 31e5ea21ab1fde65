//! The evidence for the circuit breaker: whether a session changed anything, and with which error it ended.

use crate::checkpoint::facts;
use crate::our_files;
use crate::run::ended_session::EndedSession;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_domain::{RunState, SessionEnding};
use plimsoll_launcher::git;
use plimsoll_policy::breaker::SessionObservation;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_store::Project;
use std::path::Path;

const HEAD_MOVED: &str = "HEAD moved";

/// Observes what the ended session has changed, and its error.
pub(super) fn observe_session(
    project: &Project,
    session: &EndedSession,
    evidence: &SessionEvidence,
) -> SessionObservation {
    let EndedSession { state, record, fingerprint: fingerprint_after, measurement, .. } = session;
    let has_response = record.usage.last_reading.is_some() || measurement.reading.is_some();
    let has_no_message = evidence.last_message.as_deref().is_none_or(|message| message.trim().is_empty());
    let fingerprint_before = state.iteration_record.fingerprint_before.as_ref();
    let has_head_moved = fingerprint_before.is_some_and(|before| before.head != fingerprint_after.head);
    let committed_paths = fingerprint_before
        .filter(|_| has_head_moved)
        .and_then(|before| paths_committed_since(project, before));
    // An empty commit is no work, and neither is one of our own files: an agent that makes no progress
    // commits progress.txt all night.
    let is_work_path = |path: &String| !our_files::is_plimsoll_file(path);
    let is_work_committed =
        has_head_moved && committed_paths.as_ref().is_none_or(|paths| paths.iter().any(is_work_path));
    let (changes, is_change_unknown) =
        describe_changes(fingerprint_before, fingerprint_after, is_work_committed);
    let has_ticks = !state.items_ticked_in_iteration().is_empty();
    let has_newly_passing = has_newly_passing_command(state, evidence);
    let has_committed =
        state.options.todo_file.is_none() && changes.iter().any(|change| change == HEAD_MOVED);
    let progress =
        [(has_ticks, "an item was ticked"), (has_newly_passing, "a verify command passes that had failed")];
    let progress =
        progress.into_iter().filter(|(applies, _)| *applies).map(|(_, description)| description.to_owned());
    SessionObservation {
        progress: progress.chain(changes).collect(),
        has_finished_item: has_ticks || has_newly_passing,
        has_advanced: has_ticks || has_newly_passing || has_committed,
        committed_only_notes: !is_work_committed && committed_paths.is_some_and(|paths| !paths.is_empty()),
        is_change_unknown,
        error: session_error(state, evidence, session.transcript()),
        denied_tool: state.iteration_record.denied_tool.clone(),
        is_empty_reply: evidence.ending == SessionEnding::Completed
            && has_no_message
            && record.usage.last_reading.is_none(),
        failed_before_reply: evidence.ending.failure_text().is_some() && !has_response,
    }
}

/// Returns true if the session's first request was already at L2: then no session of this run can work.
pub(super) fn started_above_l2(session: &EndedSession) -> bool {
    let thresholds = session.measurement.thresholds.as_ref();
    let first_request = session.transcript().and_then(plimsoll_store::tail::read_first_request_size);
    thresholds
        .zip(first_request)
        .is_some_and(|(thresholds, first)| thresholds.level_at(first.input_tokens) >= Level::L2)
}

/// Describes what has changed, and returns whether that is unknown.
fn describe_changes(
    fingerprint_before: Option<&WorktreeFingerprint>,
    fingerprint_after: &WorktreeFingerprint,
    is_work_committed: bool,
) -> (Vec<String>, bool) {
    let Some(before) = fingerprint_before else { return (Vec::new(), true) };
    let files_changed = fingerprint_after.files_changed_since(before);
    let differences = [
        (is_work_committed, HEAD_MOVED),
        (files_changed == Some(true), "files changed"),
        (
            before.memory_digest != fingerprint_after.memory_digest,
            "the heap of the working memory was written",
        ),
    ];
    let changes: Vec<String> = differences
        .into_iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, description)| description.to_owned())
        .collect();
    let is_change_unknown = changes.is_empty() && files_changed.is_none();
    (changes, is_change_unknown)
}

/// Returns the files of the commits since then; `None` if they are unknown.
fn paths_committed_since(project: &Project, fingerprint_before: &WorktreeFingerprint) -> Option<Vec<String>> {
    git::paths_changed_from_base_to_head(
        project.root(),
        &CommitId::parse(fingerprint_before.head.as_deref()?).ok()?,
    )
}

fn has_newly_passing_command(state: &RunState, evidence: &SessionEvidence) -> bool {
    evidence
        .verify_outcomes
        .iter()
        .any(|outcome| outcome.passed && state.outcomes.failing_verify_commands.contains(&outcome.command))
}

/// Returns the session's own failure, else the verify command that failed, else its last command that failed
/// and did not pass later. Only what the client or an exit code reports as an error counts; the word alone
/// proves nothing.
fn session_error(state: &RunState, evidence: &SessionEvidence, transcript: Option<&Path>) -> Option<String> {
    // A limit that the user set for the client is not an error.
    let failure = match &evidence.ending {
        SessionEnding::ClientLimit(_) => None,
        ending => ending.failure_text().map(|failure_text| format!("{}: {failure_text}", ending.as_str())),
    };
    // A command that never passed in any session is not the reason why the tick was reverted.
    let reverted = state.outcomes.reverted_ticks.as_ref().filter(|reverted| reverted.is_pending);
    let is_cause = |outcome: &&VerifyOutcome| {
        !outcome.passed
            && reverted.is_none_or(|reverted_ticks| {
                reverted_ticks.failed_commands.iter().any(|failed| failed.command == outcome.command)
            })
    };
    let failed_command = evidence.verify_outcomes.iter().find(is_cause);
    let verify_error = failed_command.map(|outcome| format!("{}\n{}", outcome.command, outcome.summary));
    failure.or(verify_error).or_else(|| facts::last_unresolved_error(transcript?))
}
