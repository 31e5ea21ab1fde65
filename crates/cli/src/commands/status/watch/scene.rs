//! What the screen shows: the content of the files at one moment.

use crate::commands::log::Tone;
use crate::commands::status::{checkpoint_in, is_at_work, living_client, present_tokens};
use chrono::{DateTime, Utc};
use plimsoll_domain::forecast::Outlook;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::{Reading, RunState, SessionRecord};
use plimsoll_flows::context::measure::{Question, thresholds};
use plimsoll_store::{Project, clock, config, sessions, state_file};

/// What the screen shows.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// The project, for people.
    pub(super) root: String,
    /// The run; none if there is none.
    pub(super) state: Option<RunState>,
    /// Why the state cannot be read.
    pub(super) trouble: Option<String>,
    /// How full the current session is, as its hooks saw it last.
    pub(super) reading: Option<Reading>,
    /// When its checkpoint is due, while that is ahead and can be estimated.
    pub(super) checkpoint_in: Option<Outlook>,
    /// Tokens of the session at work, which the run's own sum does not hold yet.
    pub(super) present_tokens: Option<u64>,
    /// Where its levels begin.
    pub(super) thresholds: Option<Thresholds>,
    /// True while a `plimsoll run` works or waits.
    pub(super) at_work: bool,
    /// The client of the current session, while it lives.
    pub(super) client: Option<u32>,
    /// Where the journal is.
    pub(super) journal: String,
    /// Now.
    pub(super) now: DateTime<Utc>,
    /// The log, oldest line first.
    pub(super) log: Vec<(String, Tone)>,
}

impl Scene {
    /// Looks at the project; the log is read apart.
    pub(super) fn of(project: &Project) -> Scene {
        let (mut state, trouble) = match state_file::load(project, None) {
            Ok(state) => (state, None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(state) = &mut state {
            plimsoll_flows::run::questions::refresh(project, state);
        }
        let session_id = state.as_ref().and_then(|state| state.session_id.as_ref());
        let record = session_id.map(|id| sessions::load(project, id)).unwrap_or_default();
        let living = state.as_ref().and_then(living_client);
        Scene {
            root: project.root().display().to_string(),
            client: living,
            thresholds: thresholds_of(project, &record),
            present_tokens: state.as_ref().and_then(|state| present_tokens(state, &record)),
            checkpoint_in: living.and_then(|_| checkpoint_in(project, &record)),
            reading: record.usage.reading,
            state,
            trouble,
            at_work: is_at_work(project),
            journal: project.relative(&project.journal()),
            now: clock::now(),
            log: Vec::new(),
        }
    }
}

fn thresholds_of(project: &Project, record: &SessionRecord) -> Option<Thresholds> {
    let reading = record.usage.reading.as_ref()?;
    let (settings, _) = config::load(project);
    let question = Question { project, settings: &settings, record, transcript: None, calls: &[] };
    Some(thresholds(&question, reading.window.as_ref()?, reading.model.as_deref()))
}
