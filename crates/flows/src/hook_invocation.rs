//! One call of a hook: its session and project, and whether the session belongs to a run.

use crate::run_context::RunContext;
use plimsoll_domain::{RunState, SessionId, SessionRecord, Settings};
use plimsoll_protocol::event::Event;
use plimsoll_protocol::{Hook, Malformed};
use plimsoll_store::memory::Standing;
use plimsoll_store::{Project, StoreError, config, ledger, sessions, state_file, tail};
use std::cell::OnceCell;
use std::path::Path;

/// One call of a hook.
#[derive(Debug)]
pub struct HookInvocation {
    /// What the client said.
    pub hook: Hook,
    /// The session; empty when the client named none, and then it owns nothing and has no record.
    pub session_id: SessionId,
    /// The project.
    pub project: Project,
    /// The settings in force.
    pub settings: Settings,
    /// Why the settings could not be read, if so.
    pub complaint: Option<StoreError>,
    record: OnceCell<SessionRecord>,
    memory: OnceCell<Standing>,
}

/// The variable by which a session knows its run.
pub use plimsoll_store::ledger::RUN_VARIABLE;
/// The variable in which the client passes the session's id to tools and hooks.
pub const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

/// The variable by which our hooks know a session that reviews the work of a run, and by which it is found after a kill. Its
/// value is the run.
pub const REVIEW_VARIABLE: &str = "PLIMSOLL_REVIEW_OF";

/// True inside a session that reviews: it works on nothing and belongs to no run, so our hooks have no part in it. Where a run is
/// named, too, the variable comes from elsewhere, such as the settings of a project, and switches off no hook of a run.
pub fn is_in_review() -> bool {
    let is_set = |name| plimsoll_store::environment::variable(name).is_some_and(|value| !value.is_empty());
    is_set(REVIEW_VARIABLE) && !is_set(RUN_VARIABLE)
}

/// Why an event cannot be handled: one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Nothing came.
    #[error("standard input is empty: expected one JSON object from Claude Code")]
    Empty,
    /// Something else came.
    #[error("standard input is {0}")]
    NotAnEvent(#[from] Malformed),
    /// Another client has started the hook.
    #[error("the event is of another client than Claude Code")]
    OtherClient {
        /// True if a session begins.
        is_session_start: bool,
    },
    /// The project cannot be used.
    #[error("{0}; {hint}", hint = .0.hint())]
    Project(#[from] StoreError),
}

impl HookInvocation {
    /// Reads standard input; the error is one clear line.
    pub fn read(input: &[u8]) -> Result<HookInvocation, InputError> {
        if input.iter().all(u8::is_ascii_whitespace) {
            return Err(InputError::Empty);
        }
        let hook = Hook::parse(input)?;
        if hook.is_of_other_client {
            return Err(InputError::OtherClient {
                is_session_start: matches!(hook.event, Event::SessionStart(_)),
            });
        }
        let project = Project::of_hook(hook.cwd.as_deref())?;
        let (settings, complaint) = config::load(&project);
        Ok(HookInvocation {
            session_id: SessionId::from(hook.session_id.clone().unwrap_or_default()),
            hook,
            project,
            settings,
            complaint,
            record: OnceCell::new(),
            memory: OnceCell::new(),
        })
    }

    /// The session's record as this hook found it first, for those who do not change it: whoever does, reads it under its lock.
    pub fn record(&self) -> &SessionRecord {
        self.record.get_or_init(|| sessions::load(&self.project, &self.session_id))
    }

    /// How far the working memory goes, as this hook found it first.
    pub fn memory(&self) -> &Standing {
        self.memory.get_or_init(|| Standing::of(&self.project))
    }

    /// Looks for the session's project elsewhere if the present one has no record of it. The client was seen to move
    /// `CLAUDE_PROJECT_DIR` with a session that changes its folder; then the record is where the session was started. And a
    /// project that cannot be written has its sessions' files among the user's state, unless the session belongs to a run, whose
    /// state must be in the project. A session with a record costs nothing here.
    pub(crate) fn find_project_of_session(&mut self) {
        let is_known =
            |record: &SessionRecord| record.start.started_at.is_some() || record.usage.reading.is_some();
        if self.session_id.is_empty() || is_known(self.record()) {
            return;
        }
        let Some(project) = self.started_elsewhere().or_else(|| self.outside_read_only_project()) else {
            return;
        };
        (self.settings, self.complaint) = config::load(&project);
        self.project = project;
        (self.record, self.memory) = (OnceCell::new(), OnceCell::new());
    }

    #[inline(never)]
    fn started_elsewhere(&self) -> Option<Project> {
        let root = tail::first_directory(self.transcript()?).filter(|root| *root != self.project.root())?;
        Project::of_recorded_session(&root, &self.session_id)
    }

    #[inline(never)]
    fn outside_read_only_project(&self) -> Option<Project> {
        if ledger::run_of_environment().is_some() || !self.project.is_read_only() {
            return None;
        }
        self.project.outside()
    }

    /// The context of a run to which the session belongs.
    pub(crate) fn run_context<'a>(&'a self, run: &'a RunState) -> RunContext<'a> {
        RunContext { project: &self.project, settings: &self.settings, run_id: &run.run_id }
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.hook.event
    }

    /// The transcript.
    pub fn transcript(&self) -> Option<&Path> {
        self.hook.transcript_path.as_deref().map(Path::new)
    }

    /// True when this session belongs to the run that its environment names. Its record says so since
    /// SessionStart; where that is gone, the state does.
    pub fn is_of_run(&self, record: &SessionRecord) -> Result<bool, StoreError> {
        let Some(run_id) = ledger::run_of_environment() else { return Ok(false) };
        if record.start.run_id.as_ref() == Some(&run_id) {
            return Ok(true);
        }
        Ok(self.owned_run()?.is_some_and(|run| !run.lifecycle.is_over()))
    }

    /// The run named by the environment that this session owns. A nested session inherits the variable and has
    /// another id; a session outside a run has no variable, and the state is not even read. Its history is left out.
    #[inline(never)]
    pub fn owned_run(&self) -> Result<Option<RunState>, StoreError> {
        let Some(run_id) = ledger::run_of_environment() else { return Ok(None) };
        let state = state_file::load_without_history(&self.project, Some(&run_id))?;
        Ok(state.filter(|state| state.is_owned_by(Some(&run_id), Some(&self.session_id))))
    }
}
