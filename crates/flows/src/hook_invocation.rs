//! One invocation of a hook: its session, its project, and whether the session belongs to a run.

use crate::run_context::RunContext;
use plimsoll_domain::{RunState, SessionId, SessionRecord, Settings};
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::{HookPayload, MalformedJson};
use plimsoll_store::memory::MemoryHead;
use plimsoll_store::{Project, StoreError, config, ledger, sessions, state_file, tail};
use std::cell::OnceCell;
use std::path::Path;

/// One invocation of a hook.
#[derive(Debug)]
pub struct HookInvocation {
    /// The client's input, parsed.
    pub payload: HookPayload,
    /// Empty if the client's input has no session id; such a session owns no run and has no record.
    pub session_id: SessionId,
    pub project: Project,
    pub settings: Settings,
    /// The error if the settings could not be read.
    pub settings_error: Option<StoreError>,
    record: OnceCell<SessionRecord>,
    memory_head: OnceCell<MemoryHead>,
}

/// The environment variable that contains the id of the session's run.
pub use plimsoll_store::ledger::RUN_VARIABLE;
/// The environment variable in which the client passes the session id to tools and hooks.
pub const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

/// The environment variable that identifies a session as the review of a run's work. Our hooks recognize the session by
/// it, and so does the cleanup after a kill. Its value is the id of the run.
pub const REVIEW_VARIABLE: &str = "PLIMSOLL_REVIEW_OF";

/// Returns true inside a review session. A review session changes nothing and belongs to no run, so our hooks ignore it.
/// Returns false if the variable of a run is set too: then the review variable was set by something else, such as a
/// project's settings, and must not disable the hooks of the run.
pub fn is_review_session() -> bool {
    let is_set = |name| plimsoll_store::environment::variable(name).is_some_and(|value| !value.is_empty());
    is_set(REVIEW_VARIABLE) && !is_set(RUN_VARIABLE)
}

/// The error for an event that cannot be handled, as one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("standard input is empty: expected one JSON object from Claude Code")]
    Empty,
    /// The input is not a valid event.
    #[error("standard input is {0}")]
    InvalidJson(#[from] MalformedJson),
    /// A client other than Claude Code has started the hook.
    #[error("the event is of another client than Claude Code")]
    OtherClient { is_session_start: bool },
    /// The project cannot be used.
    #[error("{0}; {hint}", hint = .0.hint())]
    Project(#[from] StoreError),
}

impl HookInvocation {
    /// Parses standard input and loads the project and its settings. Fails for an event of another client.
    pub fn parse_input_and_load_project(input: &[u8]) -> Result<HookInvocation, InputError> {
        if input.iter().all(u8::is_ascii_whitespace) {
            return Err(InputError::Empty);
        }
        let payload = HookPayload::parse(input)?;
        if payload.is_from_other_client {
            return Err(InputError::OtherClient {
                is_session_start: matches!(payload.event, HookEvent::SessionStart(_)),
            });
        }
        let project = Project::from_project_dir_variable_or_cwd(payload.cwd.as_deref())?;
        let (settings, settings_error) = config::load_settings(&project);
        Ok(HookInvocation {
            session_id: SessionId::from(payload.session_id.clone().unwrap_or_default()),
            payload,
            project,
            settings,
            settings_error,
            record: OnceCell::new(),
            memory_head: OnceCell::new(),
        })
    }

    /// Returns the session's record, loaded once per hook. To change the record, reload it under its lock.
    pub fn record(&self) -> &SessionRecord {
        self.record.get_or_init(|| sessions::load_session_record(&self.project, &self.session_id))
    }

    /// Returns the head of the working memory, loaded once per hook.
    pub fn memory_head(&self) -> &MemoryHead {
        self.memory_head.get_or_init(|| MemoryHead::load(&self.project))
    }

    /// If the current project has no record of the session, switches to the project in which the session was started, or
    /// to the files in the user's state folder if the project is read-only. The first case occurs because the client may
    /// change `CLAUDE_PROJECT_DIR` when a session changes its folder. A session of a run is never moved to the state
    /// folder, because the run's state must be in the project. Does no extra work if the record exists.
    pub(crate) fn switch_project_if_session_has_no_record(&mut self) {
        let is_recorded =
            |record: &SessionRecord| record.start.started_at.is_some() || record.usage.last_reading.is_some();
        if self.session_id.is_empty() || is_recorded(self.record()) {
            return;
        }
        let Some(project) =
            self.project_where_session_started().or_else(|| self.external_project_if_read_only_outside_run())
        else {
            return;
        };
        (self.settings, self.settings_error) = config::load_settings(&project);
        self.project = project;
        (self.record, self.memory_head) = (OnceCell::new(), OnceCell::new());
    }

    #[inline(never)]
    fn project_where_session_started(&self) -> Option<Project> {
        let root =
            tail::read_transcript_cwd(self.transcript_path()?).filter(|root| *root != self.project.root())?;
        Project::find_with_session_record(&root, &self.session_id)
    }

    #[inline(never)]
    fn external_project_if_read_only_outside_run(&self) -> Option<Project> {
        if ledger::run_id_from_environment().is_some() || !self.project.is_read_only() {
            return None;
        }
        self.project.with_external_files()
    }

    /// Returns the context of a run to which the session belongs.
    pub(crate) fn run_context<'a>(&'a self, run: &'a RunState) -> RunContext<'a> {
        RunContext { project: &self.project, settings: &self.settings, run_id: &run.run_id }
    }

    pub fn event(&self) -> &HookEvent {
        &self.payload.event
    }

    pub fn transcript_path(&self) -> Option<&Path> {
        self.payload.transcript_path.as_deref().map(Path::new)
    }

    /// Returns true if this session belongs to the run that its environment names. Reads the run id that SessionStart
    /// stored in the record; if it is missing, checks whether the run is open and owned by this session.
    pub fn belongs_to_run_in_environment(&self, record: &SessionRecord) -> Result<bool, StoreError> {
        let Some(run_id) = ledger::run_id_from_environment() else { return Ok(false) };
        if record.start.run_id.as_ref() == Some(&run_id) {
            return Ok(true);
        }
        Ok(self.load_owned_run()?.is_some_and(|run| !run.lifecycle.has_ended()))
    }

    /// Loads the run that the environment names, without its history. Returns `None` if this session does not own it: a
    /// nested session inherits the variable but has a different id. Without the variable, reads nothing.
    #[inline(never)]
    pub fn load_owned_run(&self) -> Result<Option<RunState>, StoreError> {
        let Some(run_id) = ledger::run_id_from_environment() else { return Ok(None) };
        let state = state_file::load_reconciled_state_without_history(&self.project, Some(&run_id))?;
        Ok(state.filter(|state| state.is_owned_by(Some(&run_id), Some(&self.session_id))))
    }
}
