//! The session that the client's report names: its project, record and usage.

use plimsoll_domain::{RunState, SessionId, SessionRecord, Settings};
use plimsoll_flows::compaction::IncompleteTranscript;
use plimsoll_flows::context::measure::{MeasureInput, Measurement, measure_usage_by_client_report};
use plimsoll_flows::install::find_installed_module;
use plimsoll_policy::module_answer::{ModuleFacts, SilenceReason, reason_for_silence};
use plimsoll_protocol::client_report::{ClientReport, InvalidReport};
use plimsoll_store::{
    Project, StoreError, WritableProject, clock, config, copy_data_folder_into_project_if_unwritable, disk,
    ledger, sessions, state_file,
};
use plimsoll_terminal::standard_input::{InputError, text_or_stdin_if_dash};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the report's session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Report(#[from] InvalidReport),
    #[error("{0}; {hint}", hint = .0.hint())]
    Store(#[from] StoreError),
    #[error("{}", .0.describe())]
    Silent(SilenceReason),
    #[error(
        "Claude Code has written no transcript of this session, so a handoff would lose the conversation"
    )]
    NoTranscript,
    #[error(transparent)]
    IncompleteTranscript(#[from] IncompleteTranscript),
    #[error("the transcript has neither a request nor an answer, so a handoff would lose the conversation")]
    EmptyTranscript,
    /// Another handoff would be as long as the last one.
    #[error("nothing has happened since the conversation was replaced by a handoff")]
    UnansweredHandoff,
}

/// The session that a report names.
#[derive(Debug)]
pub(crate) struct ReportedSession {
    pub(crate) report: ClientReport,
    pub(crate) project: Project,
    pub(crate) settings: Settings,
    pub(crate) session_id: SessionId,
    pub(crate) record: SessionRecord,
    /// The transcript in the client's own folder. The path in the record is not used: a program in the project can
    /// change it, and the handoff quotes the transcript's requests as the user's own.
    pub(crate) transcript_path: Option<PathBuf>,
}

impl ReportedSession {
    /// Loads the session from a report, or from standard input if the argument is `-`.
    pub(crate) fn load_from_argument_or_stdin(argument: &str) -> Result<ReportedSession, ReportError> {
        let text = text_or_stdin_if_dash(argument)?;
        let report = ClientReport::parse(text.as_bytes())?;
        let WritableProject { project, .. } =
            copy_data_folder_into_project_if_unwritable(Project::find_upwards_from_current_dir())?;
        let (settings, _) = config::load_settings(&project);
        let session_id = SessionId::from(report.session.clone().unwrap_or_default());
        let record = sessions::load_session_record(&project, &session_id);
        let transcript_path = config::find_client_transcript(&session_id);
        Ok(ReportedSession { report, project, settings, session_id, record, transcript_path })
    }

    /// Returns why a module that sent the report stays silent; `None` if it answers.
    pub(crate) fn reason_for_silence(&self) -> Option<SilenceReason> {
        reason_for_silence(ModuleFacts {
            belongs_to_run: ledger::run_id_from_environment().is_some() || self.record.start.run_id.is_some(),
            is_plugin_copy_beside_installed_module: self.is_plugin_copy_beside_installed_module(),
            is_session_recorded: self.record.start.started_at.is_some(),
        })
    }

    /// Returns true if `plimsoll init` has installed a module and the report is of another one.
    fn is_plugin_copy_beside_installed_module(&self) -> bool {
        let Some(asking_folder) = self.report.module_folder.as_deref().map(Path::new) else { return false };
        find_installed_module().is_some_and(|installed| {
            disk::canonicalize_or_keep(asking_folder) != disk::canonicalize_or_keep(&installed.folder)
        })
    }

    /// Records that the client has loaded the module, once per session: `plimsoll doctor` reads it. Errors are ignored,
    /// because the module needs its answer.
    pub(crate) fn record_first_module_report_time(&self) {
        if self.record.start.started_at.is_none() || self.record.start.module_reported_at.is_some() {
            return;
        }
        let _ = sessions::update_session_record(&self.project, &self.session_id, LOCK_TIMEOUT, |record| {
            record.start.module_reported_at.get_or_insert_with(|| clock::to_timestamp(clock::now()));
        });
    }

    /// Returns the run that owns the session, if it has not ended.
    pub(crate) fn open_run(&self) -> Result<Option<RunState>, StoreError> {
        let run_id = ledger::run_id_from_environment();
        let state = state_file::load_state(&self.project, run_id.as_ref())?;
        Ok(state.filter(|state| {
            !state.lifecycle.has_ended() && state.is_owned_by(run_id.as_ref(), Some(&self.session_id))
        }))
    }

    pub(crate) fn measure_usage(&self) -> Measurement {
        let input = MeasureInput {
            project: &self.project,
            settings: &self.settings,
            record: &self.record,
            transcript_path: self.transcript_path.as_deref(),
            pending_calls: &[],
        };
        measure_usage_by_client_report(&input, &self.report)
    }
}

/// Long enough for a hook that holds the lock, and short enough for the module, which waits.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
