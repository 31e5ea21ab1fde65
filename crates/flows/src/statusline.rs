//! The status line: measure, publish the client's own figures for the hooks, show.

use crate::measure::{Question, marks};
use crate::signal::Signal;
use policy::statusline::{MemoryView, RunView, View, render};
use policy::window::{self, WindowEvidence};
use protocol::status::StatusPayload;
use session::Status;
use session::log_line::MAIN;
use session::record::StatusRecord;
use session::{SessionRecord, Settings};
use std::path::Path;
use store::layout::git_folder_of;
use store::{Project, clock, config, disk, environment, memory, sessions, state_file, windows};

/// The status line. Whatever is wrong with the input, a line comes out: without one it would vanish.
pub fn statusline(input: &[u8]) -> Signal {
    let (payload, complaint) = match StatusPayload::parse(input) {
        Ok(payload) => (payload, None),
        Err(error) => (StatusPayload::default(), Some(format!("standard input is {error}"))),
    };
    let directory = payload
        .workspace
        .project_dir
        .as_deref()
        .or(payload.workspace.current_dir.as_deref())
        .or(payload.cwd.as_deref());
    let directory = Path::new(directory.unwrap_or("."));
    // The line is shown also where nothing can be kept.
    let (project, homeless) = match Project::of_session(directory) {
        Ok(project) => (project, None),
        Err(error) => (Project::at(directory), Some(error)),
    };
    let (settings, trouble) = config::load(&project);
    let line = render(&view(&payload, &project, &settings));
    let published = homeless.map_or_else(|| publish(&payload, &project), Err);
    Signal::text(Some(line)).with_complaint(complaint).with_complaint(trouble).with_complaint(published.err())
}

fn view(payload: &StatusPayload, project: &Project, settings: &Settings) -> View {
    let session_id = payload.session_id.as_deref().unwrap_or_default();
    let directory = payload.workspace.current_dir.as_deref().or(payload.cwd.as_deref());
    let name = directory.map(|path| {
        Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into_owned())
    });
    let used = payload.context_window.used();
    let client_settings = sessions::client_settings(project, session_id);
    let record = SessionRecord { client_settings, ..SessionRecord::default() };
    let evidence = WindowEvidence {
        model: payload.model.id.as_deref(),
        settings: Some(&settings.windows),
        status_line: payload.context_window.context_window_size,
        used: used.unwrap_or(0),
        ..WindowEvidence::default()
    };
    let window = window::window(&evidence);
    let question = Question { project, settings, record: &record, transcript: None, calls: &[] };
    let own_percent =
        used.zip(window.as_ref()).and_then(|(used, window)| session::reading::percent(used, window.tokens));
    let of_client = payload.context_window.used_percentage.filter(|percent| (0.0..=100.0).contains(percent));
    View {
        model: payload.model.display_name.clone().or(payload.model.id.clone()),
        directory: name,
        branch: directory.and_then(|path| branch(Path::new(path))),
        percent: of_client
            .map(|percent| percent.round() as u64)
            .or(own_percent.map(|percent| percent.min(100))),
        used,
        marks: window.map(|window| marks(&question, &window, payload.model.id.as_deref())),
        run: run(project),
        memory: memory(project, session_id),
        cost_usd: payload.cost.total_cost_usd.filter(|dollars| dollars.is_finite()),
        colour: environment::variable("NO_COLOR").is_none(),
    }
}

/// The project's run, while it goes on: whoever works here wants to know.
fn run(project: &Project) -> Option<RunView> {
    let glance = state_file::glance(project).filter(|glance| !glance.status.is_over())?;
    Some(RunView {
        iteration: glance.iteration,
        max_iterations: glance.max_iterations,
        done: glance.completed_items.len(),
        items: glance.completed_items.len() + glance.todo_items.len(),
        paused: glance.status == Status::Paused,
    })
}

/// The working memory, where this session was told of it: another's is not this one's.
fn memory(project: &Project, session_id: &str) -> Option<MemoryView> {
    if !memory::exists(project) {
        return None;
    }
    memory::seen(project, session_id).of(MAIN)?;
    memory::load(project).ok().map(|memory| MemoryView::of(&memory))
}

/// The branch, read off the git folder's HEAD: no child is started for it.
fn branch(directory: &Path) -> Option<String> {
    let folder = git_folder_of(directory)?;
    let head = disk::read_text(&folder.join("HEAD")).ok().flatten()?;
    match head.trim().strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => Some(head.trim().chars().take(7).collect()),
    }
}

/// Writes only what has changed since the last call.
fn publish(payload: &StatusPayload, project: &Project) -> Result<(), store::StoreError> {
    let Some(session_id) = payload.session_id.clone() else { return Ok(()) };
    let figures = |at: String| StatusRecord {
        session_id: session_id.clone(),
        model: payload.model.id.clone(),
        window: payload.context_window.context_window_size.filter(|tokens| *tokens > 0),
        used: payload.context_window.used(),
        output: payload.context_window.total_output_tokens,
        at,
    };
    let known = sessions::load_status(project, &session_id);
    if known.as_ref().is_some_and(|known| *known == figures(known.at.clone())) {
        return Ok(());
    }
    let record = figures(clock::fine_stamp(clock::now()));
    if let Some((model, tokens)) = record.model.as_ref().zip(record.window) {
        windows::learn(project, model, tokens)?;
    }
    sessions::save_status(project, &record)
}
