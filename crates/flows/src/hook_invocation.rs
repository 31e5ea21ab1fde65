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
    /// The client's input.
    pub payload: HookPayload,
    /// The session id. Empty if the client named none; such a session owns nothing and has no record.
    pub session_id: SessionId,
    pub project: Project,
    pub settings: Settings,
    /// Why the settings could not be read.
    pub settings_error: Option<StoreError>,
    record: OnceCell<SessionRecord>,
    memory_head: OnceCell<MemoryHead>,
}

/// The variable that names a session's run.
pub use plimsoll_store::ledger::RUN_VARIABLE;
/// The variable in which the client passes the session's id to tools and hooks.
pub const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

/// The variable that marks a session that reviews the work of a run. Our hooks recognize the session by it,
/// and it is found by it after a kill. Its value is the run.
pub const REVIEW_VARIABLE: &str = "PLIMSOLL_REVIEW_OF";

/// Returns true inside a review session. It works on nothing and belongs to no run, so our hooks ignore it.
/// If a run is named as well, the variable comes from elsewhere, such as a project's settings, and must not
/// switch off the hooks of a run.
pub fn is_review_session() -> bool {
    let is_set = |name| plimsoll_store::environment::variable(name).is_some_and(|value| !value.is_empty());
    is_set(REVIEW_VARIABLE) && !is_set(RUN_VARIABLE)
}

/// Why an event cannot be handled, as one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("standard input is empty: expected one JSON object from Claude Code")]
    Empty,
    /// The input is not a valid event.
    #[error("standard input is {0}")]
    InvalidJson(#[from] MalformedJson),
    /// Another client has started the hook.
    #[error("the event is of another client than Claude Code")]
    OtherClient { is_session_start: bool },
    /// The project cannot be used.
    #[error("{0}; {hint}", hint = .0.hint())]
    Project(#[from] StoreError),
}

impl HookInvocation {
    /// Parses standard input and loads the project and its settings. The error is one clear line.
    pub fn from_input(input: &[u8]) -> Result<HookInvocation, InputError> {
        if input.iter().all(u8::is_ascii_whitespace) {
            return Err(InputError::Empty);
        }
        let payload = HookPayload::parse(input)?;
        if payload.is_from_other_client {
            return Err(InputError::OtherClient {
                is_session_start: matches!(payload.event, HookEvent::SessionStart(_)),
            });
        }
        let project = Project::for_hook(payload.cwd.as_deref())?;
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

    /// The session's record as it was when this hook first read it. Code that changes the record reads it
    /// again under its lock.
    pub fn record(&self) -> &SessionRecord {
        self.record.get_or_init(|| sessions::load_session_record(&self.project, &self.session_id))
    }

    /// The head of the working memory as it was when this hook first read it.
    pub fn memory_head(&self) -> &MemoryHead {
        self.memory_head.get_or_init(|| MemoryHead::load(&self.project))
    }

    /// Switches to the project that has the session's record, if the present one has none. The client was
    /// seen to move `CLAUDE_PROJECT_DIR` with a session that changes its folder; the record is then where the
    /// session was started. A read-only project has its sessions' files in the user's state folder, unless
    /// the session belongs to a run, whose state must be in the project. Costs nothing for a session with a
    /// record.
    pub(crate) fn switch_to_project_of_session(&mut self) {
        let is_recorded =
            |record: &SessionRecord| record.start.started_at.is_some() || record.usage.last_reading.is_some();
        if self.session_id.is_empty() || is_recorded(self.record()) {
            return;
        }
        let Some(project) =
            self.project_where_session_started().or_else(|| self.external_project_if_read_only())
        else {
            return;
        };
        (self.settings, self.settings_error) = config::load_settings(&project);
        self.project = project;
        (self.record, self.memory_head) = (OnceCell::new(), OnceCell::new());
    }

    #[inline(never)]
    fn project_where_session_started(&self) -> Option<Project> {
        let root = tail::find_start_directory(self.transcript_path()?)
            .filter(|root| *root != self.project.root())?;
        Project::find_with_session_record(&root, &self.session_id)
    }

    #[inline(never)]
    fn external_project_if_read_only(&self) -> Option<Project> {
        if ledger::run_id_from_environment().is_some() || !self.project.is_read_only() {
            return None;
        }
        self.project.with_external_files()
    }

    /// The context of a run to which the session belongs.
    pub(crate) fn run_context<'a>(&'a self, run: &'a RunState) -> RunContext<'a> {
        RunContext { project: &self.project, settings: &self.settings, run_id: &run.run_id }
    }

    pub fn event(&self) -> &HookEvent {
        &self.payload.event
    }

    pub fn transcript_path(&self) -> Option<&Path> {
        self.payload.transcript_path.as_deref().map(Path::new)
    }

    /// Returns true if this session belongs to the run that its environment names. The record says so since
    /// SessionStart; if the record is gone, the state does.
    pub fn belongs_to_run(&self, record: &SessionRecord) -> Result<bool, StoreError> {
        let Some(run_id) = ledger::run_id_from_environment() else { return Ok(false) };
        if record.start.run_id.as_ref() == Some(&run_id) {
            return Ok(true);
        }
        Ok(self.owned_run()?.is_some_and(|run| !run.lifecycle.is_over()))
    }

    /// Returns the run that the environment names, if this session owns it. A nested session inherits the
    /// variable but has another id. Outside a run the variable is missing, and the state is not even read.
    /// The state's history is left out.
    #[inline(never)]
    pub fn owned_run(&self) -> Result<Option<RunState>, StoreError> {
        let Some(run_id) = ledger::run_id_from_environment() else { return Ok(None) };
        let state = state_file::load_state_without_history(&self.project, Some(&run_id))?;
        Ok(state.filter(|state| state.is_owned_by(Some(&run_id), Some(&self.session_id))))
    }
}
