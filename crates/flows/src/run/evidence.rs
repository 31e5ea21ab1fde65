//! The evidence for the circuit breaker: whether a session changed anything, and with which error it ended.

use crate::checkpoint::facts;
use crate::plimsoll_files;
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

/// Compares the fingerprints before and after the session, and returns its progress, its changes and its
/// error.
pub(super) fn build_session_observation(
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
        .and_then(|before| paths_committed_since_fingerprint(project, before));
    // An empty commit or a commit of only Plimsoll's files is not work: an agent without progress may commit
    // progress.txt in every session.
    let is_work_path = |path: &String| !plimsoll_files::is_plimsoll_file(path);
    let is_work_committed =
        has_head_moved && committed_paths.as_ref().is_none_or(|paths| paths.iter().any(is_work_path));
    let (changes, is_change_unknown) =
        describe_changes_and_whether_unknown(fingerprint_before, fingerprint_after, is_work_committed);
    let has_ticks = !state.items_ticked_in_iteration().is_empty();
    let has_newly_passing = has_newly_passing_command(state, evidence);
    let has_committed_without_plan =
        state.options.todo_file.is_none() && changes.iter().any(|change| change == HEAD_MOVED);
    let progress_signs =
        [(has_ticks, "an item was ticked"), (has_newly_passing, "a verify command passes that had failed")];
    let progress_texts = progress_signs
        .into_iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, description)| description.to_owned());
    SessionObservation {
        progress: progress_texts.chain(changes).collect(),
        has_finished_item: has_ticks || has_newly_passing,
        has_finished_item_or_commit: has_ticks || has_newly_passing || has_committed_without_plan,
        committed_only_notes: !is_work_committed && committed_paths.is_some_and(|paths| !paths.is_empty()),
        is_change_unknown,
        error: session_failure_or_command_error(state, evidence, session.transcript()),
        denied_tool: state.iteration_record.denied_tool.clone(),
        is_empty_reply: evidence.ending == SessionEnding::Completed
            && has_no_message
            && record.usage.last_reading.is_none(),
        failed_before_reply: evidence.ending.failure_text().is_some() && !has_response,
    }
}

/// Returns true if the session's first request was already at L2 or above, so that no session can work.
pub(super) fn started_at_or_above_l2(session: &EndedSession) -> bool {
    let thresholds = session.measurement.thresholds.as_ref();
    let first_request =
        session.transcript().and_then(plimsoll_store::tail::read_first_request_tokens_and_prompt_bytes);
    thresholds
        .zip(first_request)
        .is_some_and(|(thresholds, request)| thresholds.level_at(request.input_tokens) >= Level::L2)
}

/// Describes the changes of a session. The flag is true if no change was found and changed files cannot be
/// ruled out.
fn describe_changes_and_whether_unknown(
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

/// Returns the files in the commits since the fingerprint was taken; `None` if they are unknown.
fn paths_committed_since_fingerprint(
    project: &Project,
    fingerprint_before: &WorktreeFingerprint,
) -> Option<Vec<String>> {
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

/// Returns the failure of the session itself, else the first relevant verify command that failed, else the
/// session's last command that failed and did not pass later. Only errors that the client or an exit code
/// reports count; the word "error" in an output does not.
fn session_failure_or_command_error(
    state: &RunState,
    evidence: &SessionEvidence,
    transcript: Option<&Path>,
) -> Option<String> {
    // A limit that the user set for the client is not an error.
    let failure = match &evidence.ending {
        SessionEnding::ClientLimit(_) => None,
        ending => ending.failure_text().map(|failure_text| format!("{}: {failure_text}", ending.as_str())),
    };
    // If ticks were reverted, only the commands that caused it count, not commands that have never passed.
    let pending_revert = state.outcomes.reverted_ticks.as_ref().filter(|reverted| reverted.is_pending);
    let is_relevant_failure = |outcome: &&VerifyOutcome| {
        !outcome.passed
            && pending_revert.is_none_or(|reverted_ticks| {
                reverted_ticks.failed_commands.iter().any(|failed| failed.command == outcome.command)
            })
    };
    let failed_command = evidence.verify_outcomes.iter().find(is_relevant_failure);
    let verify_error = failed_command.map(|outcome| format!("{}\n{}", outcome.command, outcome.summary));
    failure.or(verify_error).or_else(|| facts::output_of_last_unresolved_failure(transcript?))
}
