//! The evidence for the circuit breaker: whether a session changed anything, and with which error it ended.

use crate::checkpoint::facts;
use crate::our_files;
use crate::run::ended_session::EndedSession;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_domain::{Ending, RunState};
use plimsoll_launcher::git;
use plimsoll_policy::breaker::Observation;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::gate::Evidence;
use plimsoll_store::Project;
use std::path::Path;

const HEAD_MOVED: &str = "HEAD moved";

/// Observes what the session that has just ended has changed, and its error.
pub(super) fn observe(project: &Project, session: &EndedSession, evidence: &Evidence) -> Observation {
    let EndedSession { state, record, fingerprint: now, measurement, .. } = session;
    let has_answered = record.usage.reading.is_some() || measurement.reading.is_some();
    let is_silent = evidence.last_message.as_deref().is_none_or(|words| words.trim().is_empty());
    let before = state.iteration_record.footing.as_ref();
    let has_head_moved = before.is_some_and(|before| before.head != now.head);
    let committed_paths =
        before.filter(|_| has_head_moved).and_then(|before| committed_paths(project, before));
    // An empty commit is no work, and one of our own files is none: an agent that gets nowhere commits progress.txt all night.
    let is_work = |path: &String| !our_files::is_ours(path);
    let is_work_committed =
        has_head_moved && committed_paths.as_ref().is_none_or(|paths| paths.iter().any(is_work));
    let (moved, unsure) = moved(before, now, is_work_committed);
    let ticked = !state.ticked_now().is_empty();
    let passing = newly_passing(state, evidence);
    let committed = state.options.todo_file.is_none() && moved.iter().any(|what| what == HEAD_MOVED);
    let progress = [(ticked, "an item was ticked"), (passing, "a verify command passes that had failed")];
    let progress = progress.into_iter().filter(|(so, _)| *so).map(|(_, words)| words.to_owned());
    Observation {
        progress: progress.chain(moved).collect(),
        finished: ticked || passing,
        advanced: ticked || passing || committed,
        only_notes: !is_work_committed && committed_paths.is_some_and(|paths| !paths.is_empty()),
        unsure,
        error: error(state, evidence, session.transcript()),
        denied: state.iteration_record.denied_tool.clone(),
        empty: evidence.ending == Ending::Completed && is_silent && record.usage.reading.is_none(),
        failed_at_start: evidence.ending.failure().is_some() && !has_answered,
    }
}

/// True if the session's first request was already at L2: then no session of this run can work.
pub(super) fn started_above(session: &EndedSession) -> bool {
    let thresholds = session.measurement.thresholds.as_ref();
    let first = session.transcript().and_then(plimsoll_store::tail::first_request);
    thresholds.zip(first).is_some_and(|(thresholds, first)| thresholds.level(first.used) >= Level::L2)
}

/// What has changed, in words, and whether that is unknown.
fn moved(
    before: Option<&WorktreeFingerprint>,
    now: &WorktreeFingerprint,
    is_work_committed: bool,
) -> (Vec<String>, bool) {
    let Some(before) = before else { return (Vec::new(), true) };
    let files_changed = now.files_changed(before);
    let differences = [
        (is_work_committed, HEAD_MOVED),
        (files_changed == Some(true), "files changed"),
        (before.memory != now.memory, "the heap of the working memory was written"),
    ];
    let moved: Vec<String> =
        differences.into_iter().filter(|(so, _)| *so).map(|(_, words)| words.to_owned()).collect();
    let unsure = moved.is_empty() && files_changed.is_none();
    (moved, unsure)
}

/// The files of the commits since then; none if that is not known.
fn committed_paths(project: &Project, before: &WorktreeFingerprint) -> Option<Vec<String>> {
    git::paths_since(project.root(), &CommitId::parse(before.head.as_deref()?).ok()?)
}

fn newly_passing(state: &RunState, evidence: &Evidence) -> bool {
    evidence
        .verify
        .iter()
        .any(|outcome| outcome.passed && state.outcomes.verify_failing.contains(&outcome.command))
}

/// The session's own failure, else the verify command that failed, else its last command that failed and did
/// not pass later. Only what the client or an exit code calls an error is one: the word proves nothing.
fn error(state: &RunState, evidence: &Evidence, transcript: Option<&Path>) -> Option<String> {
    // A limit that the user set for the client is no error of anybody's.
    let failure = match &evidence.ending {
        Ending::ClientLimit(_) => None,
        ending => ending.failure().map(|words| format!("{}: {words}", ending.word())),
    };
    // A command that no session has made pass yet is not what took the tick back.
    let taken = state.outcomes.taken_back.as_ref().filter(|taken| taken.is_pending);
    let is_cause = |outcome: &&VerifyOutcome| {
        !outcome.passed
            && taken.is_none_or(|taken| taken.failed.iter().any(|failed| failed.command == outcome.command))
    };
    let verify = evidence.verify.iter().find(is_cause);
    let verify = verify.map(|outcome| format!("{}\n{}", outcome.command, outcome.words));
    failure.or(verify).or_else(|| facts::standing_error(transcript?))
}
