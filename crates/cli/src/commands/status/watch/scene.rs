//! What the screen shows: the content of the files at one moment.

use crate::commands::status::session_record;
use crate::journal_lines::Tone;
use crate::run_status::View;
use crate::run_status::view;
use plimsoll_domain::forecast::Outlook;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::{Reading, SessionRecord, Settings};
use plimsoll_flows::context::forecast;
use plimsoll_flows::context::measure::{Question, measure, thresholds};
use plimsoll_flows::run_figures::{FiguresReader, read_snapshot};
use plimsoll_store::{Project, config};
use std::path::PathBuf;

/// What the screen shows.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// The project, for people.
    pub(super) root: String,
    /// What is known of the run; none if there is none.
    pub(super) view: Option<View>,
    /// Why the state cannot be read.
    pub(super) trouble: Option<String>,
    /// How full the current session is, as its hooks saw it last.
    pub(super) reading: Option<Reading>,
    /// Where its levels begin.
    pub(super) thresholds: Option<Thresholds>,
    /// When its checkpoint is due, while that is ahead and can be estimated.
    pub(super) checkpoint_in: Option<Outlook>,
    /// The log, oldest line first.
    pub(super) log: Vec<(String, Tone)>,
}

impl Scene {
    /// Looks at the project; the log is read apart.
    pub(super) fn of(project: &Project, reader: &mut FiguresReader) -> Scene {
        let (snapshot, trouble) = match read_snapshot(project, None, reader) {
            Ok(snapshot) => (snapshot, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let record = snapshot.as_ref().and_then(|snapshot| session_record(project, &snapshot.state));
        let record = record.unwrap_or_default();
        let (settings, _) = config::load(project);
        let is_running = snapshot.as_ref().is_some_and(|snapshot| snapshot.figures.sessions_running > 0);
        Scene {
            root: project.root().display().to_string(),
            view: snapshot.map(|snapshot| view(project, snapshot)),
            trouble,
            thresholds: thresholds_of(project, &settings, &record),
            checkpoint_in: is_running.then(|| checkpoint_in(project, &settings, &record)).flatten(),
            reading: record.usage.reading,
            log: Vec::new(),
        }
    }
}

fn checkpoint_in(project: &Project, settings: &Settings, record: &SessionRecord) -> Option<Outlook> {
    let transcript = record.start.transcript_path.as_ref().map(PathBuf::from);
    let transcript = transcript.as_deref();
    let measurement = measure(&Question { project, settings, record, transcript, calls: &[] });
    forecast::of_session(transcript, &measurement).forecast?.l2
}

fn thresholds_of(project: &Project, settings: &Settings, record: &SessionRecord) -> Option<Thresholds> {
    let reading = record.usage.reading.as_ref()?;
    let question = Question { project, settings, record, transcript: None, calls: &[] };
    Some(thresholds(&question, reading.window.as_ref()?, reading.model.as_deref()))
}
