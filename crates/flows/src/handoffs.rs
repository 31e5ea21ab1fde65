//! The handoffs of a project, for those who want to continue from one.

use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::HandoffSummary;
use plimsoll_policy::handoff_choice::{self, HandoffOrigin};
use plimsoll_policy::words::continue_from;
use plimsoll_protocol::transcript::opened_files;
use plimsoll_store::handoff_index::{HandoffState, IndexedHandoff};
use plimsoll_store::{HandoffIndex, Project, clock, disk, environment, sessions, tail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One handoff.
#[derive(Debug, Clone)]
pub struct KnownHandoff {
    /// The file.
    pub path: PathBuf,
    /// What it says of itself.
    pub summary: HandoffSummary,
    /// Whether a session was offered it, or has read it. `None` for a handoff of a run, which the run's next session reads, and for one
    /// that no session of this user is known to have written.
    pub state: Option<HandoffState>,
}

impl KnownHandoff {
    /// True for one that no session has opened.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, Some(HandoffState::Unread | HandoffState::Offered))
    }
}

/// All handoffs, the one written last first.
pub fn all(project: &Project) -> Vec<KnownHandoff> {
    let index = HandoffIndex::of(project);
    mark_opened(project, &index);
    let in_folder = |folder: PathBuf| -> Vec<PathBuf> {
        let names = disk::names(&folder).into_iter().filter(|name| name.ends_with(".md"));
        names.map(|name| folder.join(name)).collect()
    };
    let paths = project.handoff_folders().into_iter().flat_map(in_folder);
    let mut known: Vec<KnownHandoff> = paths
        .filter_map(|path| {
            // A link may lead anywhere, and is none of ours.
            let text = if disk::is_link(&path) { None } else { disk::read_text(&path).ok().flatten() }?;
            let mut summary = HandoffSummary::parse(&text);
            if clock::moment(&summary.written_at).is_none() {
                let modified = disk::modified(&path).map(chrono::DateTime::from);
                summary.written_at = modified.map(clock::stamp).unwrap_or_default();
            }
            let state = index.find(&file_name(&path)).map(|found| found.state);
            let state = state.filter(|_| summary.run.is_none());
            Some(KnownHandoff { path, summary, state })
        })
        .collect();
    known.sort_by_key(|handoff| std::cmp::Reverse(clock::moment(&handoff.summary.written_at)));
    known
}

/// The handoff to continue from, and newer ones that are not followed.
#[derive(Debug, Default)]
pub struct ContinuedHandoff {
    /// The newest that a session of this user wrote.
    pub newest: Option<KnownHandoff>,
    /// Newer ones that may come from anybody, such as the author of a clone.
    pub passed_over: Vec<KnownHandoff>,
}

/// Finds the newest handoff that the user's state, or the asking session, says was written by a session of this user.
pub fn find_to_continue(project: &Project, asking: Option<&SessionId>) -> ContinuedHandoff {
    let own = asking.map(|session_id| sessions::load(project, session_id));
    // A clone cannot know the id of a session that began after it.
    let own = own.and_then(|record| record.checkpoint.handoff).map(|file| project.root().join(file));
    let mut known = all(project);
    // The index has no run's: the run's next session reads them, and `plimsoll run --resume` continues.
    known.retain(|handoff| handoff.summary.run.is_none());
    let origin = |handoff: &KnownHandoff| {
        let is_own = handoff.state.is_some() || own.as_ref() == Some(&handoff.path);
        if is_own { HandoffOrigin::OwnSession } else { HandoffOrigin::Unknown }
    };
    let origins: Vec<HandoffOrigin> = known.iter().map(origin).collect();
    let choice = handoff_choice::choose(&origins);
    ContinuedHandoff {
        newest: choice.newest.map(|at| known[at].clone()),
        passed_over: choice.passed_over.into_iter().map(|at| known[at].clone()).collect(),
    }
}

/// A slash command of ours that can continue names this command, behind the path of the program.
const CONTINUE_WORDS: &str = " handoffs --continue";

/// What the user types to continue from this handoff, the newest one: the slash command where it is installed and knows how, else a
/// mention of the file.
pub fn continue_command(project: &Project, file: &str) -> String {
    let of_plugin = environment::variable("CLAUDE_PLUGIN_ROOT").map(PathBuf::from);
    let places = [
        (Some(project.root().join(".claude")), "/handoff continue"),
        (environment::client_folder(), "/handoff continue"),
        (of_plugin, "/plimsoll:handoff continue"),
    ];
    let can_continue = |folder: &Path| {
        let text = disk::read_text(&folder.join("commands/handoff.md")).ok().flatten();
        text.is_some_and(|text| text.contains(CONTINUE_WORDS))
    };
    let command =
        places.into_iter().find(|(folder, _)| folder.as_deref().is_some_and(can_continue)).map(|(_, it)| it);
    command.map_or_else(|| continue_from(file), str::to_owned)
}

/// The names of the handoffs that no session has opened: they are not removed.
pub(crate) fn waiting_names(project: &Project) -> Vec<String> {
    let index = HandoffIndex::of(project);
    mark_opened(project, &index);
    [HandoffState::Unread, HandoffState::Offered].into_iter().flat_map(|state| index.names(state)).collect()
}

/// Marks the handoffs that sessions have opened since. No hook sees when the user mentions a file, so the transcripts tell, and they
/// are looked at when somebody asks.
fn mark_opened(project: &Project, index: &HandoffIndex) {
    let waiting =
        [HandoffState::Unread, HandoffState::Offered].into_iter().flat_map(|state| index.names(state));
    let waiting: Vec<(String, IndexedHandoff)> =
        waiting.filter_map(|name| Some((name.clone(), index.find(&name)?))).collect();
    let Some(since) = waiting.iter().filter_map(|(_, found)| found.written_at).min() else { return };
    for session_id in sessions::ids(project) {
        let record = sessions::load(project, &session_id);
        let Some(transcript) = record.start.transcript_path.map(PathBuf::from) else { continue };
        if disk::modified(&transcript).is_none_or(|modified| modified < since) {
            continue;
        }
        let opened = opened_handoffs(&transcript);
        let by_other = |(name, found): &&(String, IndexedHandoff)| {
            found.session_id != session_id && opened.contains(name)
        };
        waiting.iter().filter(by_other).for_each(|(name, _)| index.mark_read(name));
    }
}

/// The names of the handoffs that a session has opened.
fn opened_handoffs(transcript: &Path) -> BTreeSet<String> {
    let mut opened = BTreeSet::new();
    // A transcript that cannot be read tells nothing.
    let _ = tail::lines_from(transcript, 0, &mut |line| {
        if !tail::has_mark(line, "handoffs/") {
            return;
        }
        let is_handoff = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("handoffs"));
        let paths: Vec<PathBuf> = opened_files(line).into_iter().map(PathBuf::from).collect();
        opened.extend(paths.iter().filter(is_handoff).map(|path| file_name(path)));
    });
    opened
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
