//! The window of the current session, or of the one that would begin now.

use super::{Files, Patient};
use crate::context::measure::{Question, measure, thresholds, with_evidence};
use plimsoll_domain::reading::Window;
use plimsoll_policy::doctor::{ClientFacts, WindowFacts};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_store::config::{self, Loaded};
use plimsoll_store::{clock, disk, environment, sessions};
use std::path::{Path, PathBuf};

/// What moves the window, the auto-compact threshold or the reading, where it is set.
const VARIABLES: [&str; 8] = [
    "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
    "CLAUDE_CONTEXT_PERCENT",
];

pub(super) fn facts(patient: &Patient<'_>, found: &Files, client: &ClientFacts) -> WindowFacts {
    let Loaded { settings, fault: complaint, .. } = config::load_of_files(patient.project);
    let transcript = patient.record.start.transcript_path.as_ref().map(PathBuf::from);
    let question = Question {
        project: patient.project,
        settings: &settings,
        record: patient.record,
        transcript: transcript.as_deref(),
        calls: &[],
    };
    let measured = measure(&question);
    let of_session = measured.reading.as_ref().and_then(|reading| reading.model.clone());
    let model =
        of_session.map(|model| (model, "as the present session was asked for")).or_else(|| next(found));
    let (sources, chosen) = windows(&question, model.as_ref().map(|(model, _)| model.as_str()), client);
    let window = measured.reading.as_ref().and_then(|reading| reading.window.clone()).or(chosen);
    let name = model.as_ref().map(|(model, _)| model.as_str());
    WindowFacts {
        thresholds: measured
            .thresholds
            .or_else(|| window.as_ref().map(|window| thresholds(&question, window, name))),
        session: measured.reading.is_some().then(|| patient.record.session_id.clone()),
        reading: measured.reading,
        sources,
        window,
        levels: settings.levels,
        knobs: knobs(patient, found),
        complaint: complaint.map(|complaint| complaint.to_string()),
        missing_transcript: missing_transcript(patient),
        model,
    }
}

/// Returns the path of the session's transcript if the session has answered in the last day and there is no file. The client
/// deletes old transcripts, so an older session tells nothing.
fn missing_transcript(patient: &Patient<'_>) -> Option<String> {
    let path = patient.record.start.transcript_path.clone()?;
    let status = sessions::load_status(patient.project, &patient.record.session_id);
    let answered = status.filter(|status| status.used.is_some_and(|used| used > 0)).map(|status| status.at);
    let at = answered.or_else(|| patient.record.end.stop.as_ref().map(|stop| stop.at.clone()))?;
    let is_recent = clock::moment(&at).is_some_and(|at| (clock::now() - at).num_days() < 1);
    (is_recent && !disk::exists(Path::new(&path))).then_some(path)
}

/// The model that a session would begin with, as far as anybody says.
fn next(found: &Files) -> Option<(String, &'static str)> {
    let by_environment = environment::variable("ANTHROPIC_MODEL").map(|model| (model, "ANTHROPIC_MODEL"));
    by_environment.or_else(|| {
        let model = found.iter().find_map(|one| one.said()?.model.clone())?;
        Some((model, "the client's settings"))
    })
}

fn windows(
    question: &Question<'_>,
    model: Option<&str>,
    client: &ClientFacts,
) -> (Vec<Window>, Option<Window>) {
    let status = sessions::load_status(question.project, &question.record.session_id);
    with_evidence(question, model, status.as_ref(), |evidence| {
        let evidence = &WindowEvidence { client_version: client.version.as_deref(), ..evidence.clone() };
        (window::sources(evidence), window::window(evidence))
    })
}

/// What is in force, and what will be in sessions and is not here: a settings file's `env` reaches the client's hooks.
fn knobs(patient: &Patient<'_>, found: &Files) -> Vec<String> {
    let set = |name: &&str| Some(format!("{name}={}", environment::variable(name)?));
    let mut knobs: Vec<String> = VARIABLES.iter().filter_map(set).collect();
    let client = config::client_settings(patient.project);
    knobs.extend(client.auto_compact_enabled.map(|on| format!("autoCompactEnabled: {on}")));
    knobs.extend(client.compaction_windows.iter().map(|window| {
        let tokens = window.tokens.map_or_else(|| "auto".to_owned(), |tokens| tokens.to_string());
        let model = window.model.as_ref().map(|model| format!(" for {model}")).unwrap_or_default();
        format!("autoCompactWindow: {tokens}{model}")
    }));
    for one in found {
        let env = one.said().map(|survey| &survey.env);
        let named = env.into_iter().flatten().filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        knobs.extend(named.map(|(name, value)| {
            format!("{name}={value} in sessions, by the env of {}; not in the figures here", one.path)
        }));
    }
    knobs
}
