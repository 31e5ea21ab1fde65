//! The handoffs of a project, for users and sessions that want to continue from one.

use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::HandoffMetadata;
use plimsoll_policy::handoff_choice::{self, HandoffOrigin};
use plimsoll_policy::messages::render_continue_prompt;
use plimsoll_protocol::transcript::read_or_attached_file_paths;
use plimsoll_store::handoff_index::{HandoffState, IndexedHandoff};
use plimsoll_store::{HandoffIndex, Project, clock, disk, environment, sessions, tail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The path, parsed summary and read state of a handoff file.
#[derive(Debug, Clone)]
pub struct HandoffFile {
    pub path: PathBuf,
    /// The fields parsed from its text.
    pub summary: HandoffMetadata,
    /// Whether the handoff is unread, offered to a session, or read. `None` for a run's handoff, which the run's next
    /// session reads, and for a handoff that is not in this user's index.
    pub state: Option<HandoffState>,
}

impl HandoffFile {
    /// Returns true if no session has opened the handoff.
    pub fn is_unopened(&self) -> bool {
        matches!(self.state, Some(HandoffState::Unread | HandoffState::Offered))
    }
}

/// Lists all handoffs, newest first. Before that, updates which of them sessions have opened.
pub fn update_read_states_and_list_handoffs(project: &Project) -> Vec<HandoffFile> {
    let index = HandoffIndex::for_project(project);
    scan_transcripts_and_mark_opened_handoffs(project, &index);
    let files_in_folder = |folder: PathBuf| -> Vec<PathBuf> {
        let names = disk::list_names(&folder).into_iter().filter(|name| name.ends_with(".md"));
        names.map(|name| folder.join(name)).collect()
    };
    let paths = project.handoff_folders().into_iter().flat_map(files_in_folder);
    let mut handoffs: Vec<HandoffFile> = paths
        .filter_map(|path| {
            // Symbolic links are skipped: they may point anywhere, and Plimsoll never creates one.
            let text = if disk::is_link(&path) { None } else { disk::read_text(&path).ok().flatten() }?;
            let mut summary = HandoffMetadata::parse(&text);
            if clock::parse_timestamp(&summary.written_at).is_none() {
                let modified = disk::modified_at(&path).map(chrono::DateTime::from);
                summary.written_at = modified.map(clock::to_timestamp).unwrap_or_default();
            }
            let state = index.find_in_any_state(&file_name(&path)).map(|entry| entry.state);
            let state = state.filter(|_| summary.run.is_none());
            Some(HandoffFile { path, summary, state })
        })
        .collect();
    handoffs.sort_by_key(|handoff| std::cmp::Reverse(clock::parse_timestamp(&handoff.summary.written_at)));
    handoffs
}

/// The handoff to continue from, and newer ones that are not trusted.
#[derive(Debug, Default)]
pub struct HandoffToContinue {
    /// The newest handoff that a session of this user wrote.
    pub newest_by_user: Option<HandoffFile>,
    /// Newer handoffs of unknown origin, for example from the author of a clone.
    pub newer_by_unknown_author: Vec<HandoffFile>,
}

/// Returns the newest handoff that a session of this user wrote, according to the user's index or the record of the
/// current session, and the newer handoffs of unknown origin. Skips the handoffs of runs.
pub fn newest_handoff_by_user_and_newer_unknown(
    project: &Project,
    current_session: Option<&SessionId>,
) -> HandoffToContinue {
    let current_record = current_session.map(|session_id| sessions::load_session_record(project, session_id));
    // The record can be trusted: the author of a clone cannot predict the id of a later session.
    let current_session_handoff = current_record
        .and_then(|record| record.checkpoint_progress.last_handoff)
        .map(|file| project.root().join(file));
    let mut handoffs = update_read_states_and_list_handoffs(project);
    // Handoffs of a run are not in the index: the run's next session reads them, and the user continues with
    // `plimsoll run --resume`.
    handoffs.retain(|handoff| handoff.summary.run.is_none());
    let origin_of = |handoff: &HandoffFile| {
        let is_by_user = handoff.state.is_some() || current_session_handoff.as_ref() == Some(&handoff.path);
        if is_by_user { HandoffOrigin::OwnSession } else { HandoffOrigin::Unknown }
    };
    let origins: Vec<HandoffOrigin> = handoffs.iter().map(origin_of).collect();
    let choice = handoff_choice::choose_handoff(&origins);
    HandoffToContinue {
        newest_by_user: choice.newest_own.map(|index| handoffs[index].clone()),
        newer_by_unknown_author: choice
            .newer_unknown
            .into_iter()
            .map(|index| handoffs[index].clone())
            .collect(),
    }
}

/// Text in the definition of our slash command if it supports `continue`; it follows the path of the program.
const CONTINUE_ARGUMENTS: &str = " handoffs --continue";

/// Returns what the user types to continue from this handoff, which must be the newest: the slash command if an
/// installed one supports `continue`, otherwise a prompt that mentions the file.
pub fn continue_slash_command_or_prompt(project: &Project, handoff_file: &str) -> String {
    let plugin_folder = environment::variable("CLAUDE_PLUGIN_ROOT").map(PathBuf::from);
    let commands_by_folder = [
        (Some(project.root().join(".claude")), "/handoff continue"),
        (environment::client_config_folder(), "/handoff continue"),
        (plugin_folder, "/plimsoll:handoff continue"),
    ];
    let supports_continue = |folder: &Path| {
        let text = disk::read_text(&folder.join("commands/handoff.md")).ok().flatten();
        text.is_some_and(|text| text.contains(CONTINUE_ARGUMENTS))
    };
    let command = commands_by_folder
        .into_iter()
        .find(|(folder, _)| folder.as_deref().is_some_and(supports_continue))
        .map(|(_, command)| command);
    command.map_or_else(|| render_continue_prompt(handoff_file), str::to_owned)
}

/// Updates which handoffs sessions have opened, and returns the names of those that none has opened. Pruning keeps them.
pub(crate) fn update_read_states_and_list_unopened(project: &Project) -> Vec<String> {
    let index = HandoffIndex::for_project(project);
    scan_transcripts_and_mark_opened_handoffs(project, &index);
    [HandoffState::Unread, HandoffState::Offered]
        .into_iter()
        .flat_map(|state| index.names_in_state(state))
        .collect()
}

/// Marks a handoff as read if the transcript of a session other than its author shows that it was opened. No hook is
/// called when the user mentions a file, so the transcripts are searched whenever the state is needed.
fn scan_transcripts_and_mark_opened_handoffs(project: &Project, index: &HandoffIndex) {
    let unopened_names = [HandoffState::Unread, HandoffState::Offered]
        .into_iter()
        .flat_map(|state| index.names_in_state(state));
    let unopened_handoffs: Vec<(String, IndexedHandoff)> =
        unopened_names.filter_map(|name| Some((name.clone(), index.find_in_any_state(&name)?))).collect();
    let Some(oldest_written_at) =
        unopened_handoffs.iter().filter_map(|(_, handoff)| handoff.written_at).min()
    else {
        return;
    };
    for session_id in sessions::sessions_with_record(project) {
        let record = sessions::load_session_record(project, &session_id);
        let Some(transcript) = record.start.transcript_path.map(PathBuf::from) else { continue };
        if disk::modified_at(&transcript).is_none_or(|modified| modified < oldest_written_at) {
            continue;
        }
        let opened_names = handoff_names_opened_in_transcript(&transcript);
        let is_opened_by_session = |(name, handoff): &&(String, IndexedHandoff)| {
            handoff.session_id != session_id && opened_names.contains(name)
        };
        unopened_handoffs.iter().filter(is_opened_by_session).for_each(|(name, _)| index.mark_read(name));
    }
}

/// Returns the file names of the handoffs that were opened according to a transcript.
fn handoff_names_opened_in_transcript(transcript_path: &Path) -> BTreeSet<String> {
    let mut opened_names = BTreeSet::new();
    // If the transcript cannot be read, no handoff counts as opened.
    let _ = tail::visit_lines_and_partial_from_resume_offset(transcript_path, 0, &mut |line| {
        if !tail::contains_marker(line, "handoffs/") {
            return;
        }
        let is_in_handoff_folder =
            |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("handoffs"));
        let paths: Vec<PathBuf> = read_or_attached_file_paths(line).into_iter().map(PathBuf::from).collect();
        opened_names.extend(paths.iter().filter(is_in_handoff_folder).map(|path| file_name(path)));
    });
    opened_names
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
