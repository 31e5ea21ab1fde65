//! The status line: measure, publish the client's own figures for the hooks, show.

mod git;
mod view;

use crate::hook_response::HookResponse;
use plimsoll_domain::record::StatusRecord;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_domain::{SessionId, Settings};
use plimsoll_policy::statusline::{Explained, View, explain as explained, render};
use plimsoll_protocol::status::StatusPayload;
use plimsoll_store::{Project, StoreError, clock, config, sessions, windows};
use std::mem::ManuallyDrop;
use std::path::Path;

/// What one call of the status line is about.
struct StatusLineInvocation<'a> {
    /// What the client handed over, as it is.
    input: &'a [u8],
    payload: StatusPayload,
    session_id: SessionId,
    project: Project,
    settings: Settings,
    /// What is wrong with the input or the settings.
    complaints: Vec<String>,
    /// The same of the settings, as short as a line has room for.
    unsettled: Option<String>,
    /// There is a place for what is published.
    is_kept: bool,
    /// Looked up although it is in no line, because the user asks.
    all: bool,
}

/// The status line. Whatever is wrong with the input, a line comes out: without one it would vanish.
pub fn statusline(input: &[u8]) -> HookResponse {
    // The process ends with its answer: nobody needs this memory back piece by piece.
    let call = ManuallyDrop::new(StatusLineInvocation::read(input));
    let known = ManuallyDrop::new(call.known());
    let mut record = ManuallyDrop::new(call.figures(known.as_ref()));
    let view = ManuallyDrop::new(call.view(&mut record));
    let line = render(&view, &call.settings.statusline);
    let published = call.publish(known.as_ref(), &record);
    let signal = HookResponse::text(Some(line)).with_complaint(published.err());
    call.complaints.iter().fold(signal, |signal, complaint| signal.with_complaint(Some(complaint)))
}

/// Measures and publishes, and becomes another status line, with what the client handed over. Only where that cannot
/// be started, ours is shown.
pub fn wrap(input: &[u8], command: &[String]) -> HookResponse {
    let call = StatusLineInvocation::read(input);
    let known = call.known();
    // A message would not be seen: the client discards a status line's standard error.
    let _ = call.publish(known.as_ref(), &call.figures(known.as_ref()));
    let error = plimsoll_launcher::become_program(command, input);
    statusline(input).with_complaint(Some(format!("cannot start the status line {command:?}: {error}")))
}

/// The line as it would be shown (in a terminal so wide, unless `COLUMNS` says otherwise), each segment of it, and what
/// is wrong; nothing is published.
pub fn explain(input: &[u8], columns: Option<usize>) -> (String, Vec<Explained>, Vec<String>) {
    let call = StatusLineInvocation { all: true, ..StatusLineInvocation::read(input) };
    let mut view = call.view(&mut call.figures(call.known().as_ref()));
    view.columns = view.columns.or(columns);
    let look = &call.settings.statusline;
    (render(&view, look), explained(&view, look), call.complaints)
}

/// Everything that can be shown, for a preview.
pub fn preview(input: &[u8], settings: &Settings) -> View {
    let call =
        StatusLineInvocation { settings: settings.clone(), all: true, ..StatusLineInvocation::read(input) };
    call.view(&mut call.figures(call.known().as_ref()))
}

impl StatusLineInvocation<'_> {
    fn read(input: &[u8]) -> StatusLineInvocation<'_> {
        let mut complaints = Vec::new();
        let payload = StatusPayload::parse(input).unwrap_or_else(|error| {
            complaints.push(format!("standard input is {error}"));
            StatusPayload::default()
        });
        let places = [&payload.workspace.project_dir, &payload.workspace.current_dir, &payload.cwd];
        let place = places.into_iter().flatten().next().map_or(".", String::as_str);
        // The line is shown also where nothing can be kept.
        let (project, is_kept) = match Project::of_session(Path::new(place)) {
            Ok(project) => (project, true),
            Err(error) => {
                complaints.push(error.to_string());
                (Project::at(Path::new(place)), false)
            }
        };
        let (settings, trouble) = config::load(&project);
        let unsettled = trouble.as_ref().map(|trouble| match trouble {
            StoreError::Settings { path, why } => format!("{}: {why}", project.relative(path)),
            other => other.to_string(),
        });
        complaints.extend(trouble.map(|trouble| trouble.to_string()));
        let session_id = payload.session_id.clone().unwrap_or_default().into();
        StatusLineInvocation {
            input,
            payload,
            session_id,
            project,
            settings,
            complaints,
            unsettled,
            is_kept,
            all: false,
        }
    }

    /// What was published of this session before.
    fn known(&self) -> Option<StatusRecord> {
        let elsewhere = || sessions::load_status(&self.project.outside()?, &self.session_id);
        sessions::load_status(&self.project, &self.session_id).or_else(elsewhere)
    }

    /// What the client says now.
    fn figures(&self, known: Option<&StatusRecord>) -> StatusRecord {
        let window = &self.payload.context_window;
        let mut record = known.cloned().unwrap_or_default();
        record.session_id.clone_from(&self.session_id);
        record.model.clone_from(&self.payload.model.id);
        record.window = window.context_window_size.filter(|tokens| *tokens > 0);
        (record.used, record.output) = (window.used(), window.output());
        if let Some(used) = record.used {
            record.note_fill(used, clock::now().timestamp());
        }
        record
    }

    /// Writes only what has changed since the last call.
    fn publish(&self, known: Option<&StatusRecord>, record: &StatusRecord) -> Result<(), StoreError> {
        match self.publish_in(&self.project, known, record) {
            // The session's hooks keep their files there then, too.
            Err(error) if error.is_refused_write() => match self.project.outside() {
                Some(outside) => self.publish_in(&outside, known, record),
                None => Err(error),
            },
            published => published,
        }
    }

    fn publish_in(
        &self,
        project: &Project,
        known: Option<&StatusRecord>,
        record: &StatusRecord,
    ) -> Result<(), StoreError> {
        if !self.is_kept || record.session_id.is_empty() || known == Some(record) {
            return Ok(());
        }
        let figures = |of: &StatusRecord| (of.model.clone(), of.window, of.used, of.output);
        let is_new = known.is_none_or(|known| figures(known) != figures(record));
        if is_new && let Some((model, tokens)) = record.model.as_ref().zip(record.window) {
            windows::learn(project, model, tokens)?;
        }
        // How old the figures are goes by when they came, not by when git was asked.
        let at = if is_new { clock::fine_stamp(clock::now()) } else { record.at.clone() };
        sessions::save_status(project, known, &StatusRecord { at, ..record.clone() })
    }

    /// Whether a segment is wanted that this is needed for.
    fn shows(&self, kind: SegmentKind) -> bool {
        self.all || self.settings.statusline.shows(kind)
    }
}
