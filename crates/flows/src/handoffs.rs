//! The handoffs of a project, for users and sessions that want to continue from one.

use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::HandoffSummary;
use plimsoll_policy::handoff_choice::{self, HandoffOrigin};
use plimsoll_policy::messages::render_continue_prompt;
use plimsoll_protocol::transcript::opened_file_paths;
use plimsoll_store::handoff_index::{HandoffState, IndexedHandoff};
use plimsoll_store::{HandoffIndex, Project, clock, disk, environment, sessions, tail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A handoff file.
#[derive(Debug, Clone)]
pub struct KnownHandoff {
    pub path: PathBuf,
    /// The facts in its text.
    pub summary: HandoffSummary,
    /// Whether a session was offered the handoff or has read it. `None` for the handoff of a run, which the
    /// run's next session reads, and for one that no session of this user is known to have written.
    pub state: Option<HandoffState>,
}

impl KnownHandoff {
    /// Returns true if no session has opened the handoff.
    pub fn is_unopened(&self) -> bool {
        matches!(self.state, Some(HandoffState::Unread | HandoffState::Offered))
    }
}

/// Lists all handoffs, the newest first.
pub fn list_handoffs(project: &Project) -> Vec<KnownHandoff> {
    let index = HandoffIndex::for_project(project);
    mark_opened_handoffs(project, &index);
    let files_in_folder = |folder: PathBuf| -> Vec<PathBuf> {
        let names = disk::list_names(&folder).into_iter().filter(|name| name.ends_with(".md"));
        names.map(|name| folder.join(name)).collect()
    };
    let paths = project.handoff_folders().into_iter().flat_map(files_in_folder);
    let mut handoffs: Vec<KnownHandoff> = paths
        .filter_map(|path| {
            // A link may point anywhere, and we never create one.
            let text = if disk::is_link(&path) { None } else { disk::read_text(&path).ok().flatten() }?;
            let mut summary = HandoffSummary::parse(&text);
            if clock::parse_timestamp(&summary.written_at).is_none() {
                let modified = disk::modified_at(&path).map(chrono::DateTime::from);
                summary.written_at = modified.map(clock::to_timestamp).unwrap_or_default();
            }
            let state = index.find_indexed(&file_name(&path)).map(|entry| entry.state);
            let state = state.filter(|_| summary.run.is_none());
            Some(KnownHandoff { path, summary, state })
        })
        .collect();
    handoffs.sort_by_key(|handoff| std::cmp::Reverse(clock::parse_timestamp(&handoff.summary.written_at)));
    handoffs
}

/// The handoff to continue from, and newer ones that are skipped.
#[derive(Debug, Default)]
pub struct ContinuedHandoff {
    /// The newest handoff that a session of this user wrote.
    pub newest_own: Option<KnownHandoff>,
    /// Newer handoffs of unknown origin, for example from the author of a clone.
    pub newer_unknown: Vec<KnownHandoff>,
}

/// Finds the newest handoff that was written by a session of this user, according to the user's state or the
/// asking session.
pub fn newest_own_and_newer_unknown_handoffs(
    project: &Project,
    asking_session: Option<&SessionId>,
) -> ContinuedHandoff {
    let own_record = asking_session.map(|session_id| sessions::load_session_record(project, session_id));
    // A clone cannot know the id of a session that started after it.
    let own_handoff = own_record
        .and_then(|record| record.checkpoint_progress.last_handoff)
        .map(|file| project.root().join(file));
    let mut handoffs = list_handoffs(project);
    // Handoffs of a run are not in the index: the run's next session reads them, and the user continues with
    // `plimsoll run --resume`.
    handoffs.retain(|handoff| handoff.summary.run.is_none());
    let origin = |handoff: &KnownHandoff| {
        let is_own = handoff.state.is_some() || own_handoff.as_ref() == Some(&handoff.path);
        if is_own { HandoffOrigin::OwnSession } else { HandoffOrigin::Unknown }
    };
    let origins: Vec<HandoffOrigin> = handoffs.iter().map(origin).collect();
    let choice = handoff_choice::choose_handoff(&origins);
    ContinuedHandoff {
        newest_own: choice.newest_own.map(|index| handoffs[index].clone()),
        newer_unknown: choice.newer_unknown.into_iter().map(|index| handoffs[index].clone()).collect(),
    }
}

/// Part of a slash command of ours that can continue; it follows the path of the program.
const CONTINUE_ARGUMENTS: &str = " handoffs --continue";

/// Returns what the user types to continue from this handoff, the newest one: the slash command if an
/// installed one supports it, otherwise a mention of the file.
pub fn continue_slash_command_or_prompt(project: &Project, handoff_file: &str) -> String {
    let plugin_folder = environment::variable("CLAUDE_PLUGIN_ROOT").map(PathBuf::from);
    let commands_by_folder = [
        (Some(project.root().join(".claude")), "/handoff continue"),
        (environment::client_config_folder(), "/handoff continue"),
        (plugin_folder, "/plimsoll:handoff continue"),
    ];
    let can_continue = |folder: &Path| {
        let text = disk::read_text(&folder.join("commands/handoff.md")).ok().flatten();
        text.is_some_and(|text| text.contains(CONTINUE_ARGUMENTS))
    };
    let command = commands_by_folder
        .into_iter()
        .find(|(folder, _)| folder.as_deref().is_some_and(can_continue))
        .map(|(_, command)| command);
    command.map_or_else(|| render_continue_prompt(handoff_file), str::to_owned)
}

/// Returns the names of the handoffs that no session has opened. They are never pruned.
pub(crate) fn unopened_handoff_names(project: &Project) -> Vec<String> {
    let index = HandoffIndex::for_project(project);
    mark_opened_handoffs(project, &index);
    [HandoffState::Unread, HandoffState::Offered]
        .into_iter()
        .flat_map(|state| index.names_in_state(state))
        .collect()
}

/// Marks the handoffs that sessions have opened in the meantime. No hook sees the user mention a file, so the
/// transcripts are searched whenever the state is needed.
fn mark_opened_handoffs(project: &Project, index: &HandoffIndex) {
    let unopened_names = [HandoffState::Unread, HandoffState::Offered]
        .into_iter()
        .flat_map(|state| index.names_in_state(state));
    let unopened: Vec<(String, IndexedHandoff)> =
        unopened_names.filter_map(|name| Some((name.clone(), index.find_indexed(&name)?))).collect();
    let Some(since) = unopened.iter().filter_map(|(_, handoff)| handoff.written_at).min() else { return };
    for session_id in sessions::sessions_with_record(project) {
        let record = sessions::load_session_record(project, &session_id);
        let Some(transcript) = record.start.transcript_path.map(PathBuf::from) else { continue };
        if disk::modified_at(&transcript).is_none_or(|modified| modified < since) {
            continue;
        }
        let opened_names = handoffs_opened_in(&transcript);
        let is_opened_here = |(name, handoff): &&(String, IndexedHandoff)| {
            handoff.session_id != session_id && opened_names.contains(name)
        };
        unopened.iter().filter(is_opened_here).for_each(|(name, _)| index.mark_read(name));
    }
}

/// Returns the names of the handoffs that a session has opened.
fn handoffs_opened_in(transcript_path: &Path) -> BTreeSet<String> {
    let mut opened_names = BTreeSet::new();
    // A transcript that cannot be read counts as having opened none.
    let _ = tail::visit_lines_from(transcript_path, 0, &mut |line| {
        if !tail::contains_marker(line, "handoffs/") {
            return;
        }
        let is_handoff = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("handoffs"));
        let paths: Vec<PathBuf> = opened_file_paths(line).into_iter().map(PathBuf::from).collect();
        opened_names.extend(paths.iter().filter(is_handoff).map(|path| file_name(path)));
    });
    opened_names
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
