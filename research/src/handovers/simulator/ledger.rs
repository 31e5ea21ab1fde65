//! The simulator's record of the agent's actions, compared with the current files.

use super::style::FolderKind;
use super::work::{Operation, SimulatedWork};
use std::path::PathBuf;

/// How a step changed its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditMethod {
    Shell,
    ClientTool,
}

#[derive(Clone, Debug)]
pub(super) enum LedgerEvent {
    SessionStarted,
    StepPerformed {
        item: usize,
        step: usize,
        edit_method: EditMethod,
    },
    Committed,
    ItemTicked,
    /// The session's closing message: the next step that it states, whether that names a file and line, and
    /// the summary.
    ClosingMessage {
        item: Option<usize>,
        next_step: Option<String>,
        names_location: bool,
        summary: Option<String>,
    },
}

/// A change by the user between two sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// Lines were inserted into a file and committed with this subject.
    Edited { file: String, subject: String },
    /// A file was deleted and the deletion committed with this subject.
    Deleted { file: String, subject: String },
    /// An unrelated change was committed.
    OtherCommit { subject: String },
}

/// The state of the session's item. The names of the variants are stored in outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemState {
    /// In progress: at least one step is done.
    Half,
    /// The previous session ticked an item, and this one has not been started.
    Ticked,
    /// Not started, and the previous session ticked no item.
    Fresh,
}

/// The next step that earlier sessions stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatedNextStep {
    /// Stated by the last session: the prompt must quote it.
    ByLastSession(String),
    /// Stated by an earlier session, and no step followed: the prompt may quote it.
    ByEarlierSession(String),
    NotStated,
}

/// The content of a correct prompt at the beginning of a session.
#[derive(Clone, Debug)]
pub(super) struct GroundTruth {
    pub(super) item_state: ItemState,
    pub(super) item: usize,
    /// The last edited file that still exists.
    pub(super) last_edited_file: Option<String>,
    /// A file that was moved after that edit. The prompt may name this one instead.
    pub(super) moved_file: Option<String>,
    /// True if the file can be determined from git, file times, the transcript and the last message.
    pub(super) is_file_determinable: bool,
    /// The first and last line that the last edit wrote.
    pub(super) last_edit_lines: Option<(u32, u32)>,
    pub(super) are_lines_determinable: bool,
    /// The number of lines of the file.
    pub(super) file_line_count: u32,
    /// The files that contain a marker of a step of the item. If the order of the steps cannot be determined,
    /// any of them is accepted.
    pub(super) marked_files: Vec<String>,
    pub(super) next_step: StatedNextStep,
    pub(super) summary: Option<String>,
    pub(super) is_tick_forgotten: bool,
    /// The files that the steps of ticked items change and those of the open item do not.
    pub(super) files_in_ticked_items_not_in_open_item: Vec<String>,
    pub(super) user_changes: Vec<UserChange>,
    pub(super) edit_method: Option<EditMethod>,
    /// The number of sessions so far that worked on the item.
    pub(super) session_count: usize,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) events: Vec<LedgerEvent>,
    pub(super) user_changes: Vec<UserChange>,
    project: PathBuf,
}

/// A change: its event index, step, edit method and file.
type StepChange = (usize, usize, EditMethod, String);

impl Ledger {
    pub(super) fn new(project: PathBuf) -> Ledger {
        Ledger { project, ..Ledger::default() }
    }

    pub(super) fn read_file(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(file)).ok()
    }

    pub(super) fn file_exists(&self, file: &str) -> bool {
        self.project.join(file).exists()
    }

    pub(super) fn file_path(&self, file: &str) -> PathBuf {
        self.project.join(file)
    }

    /// Returns true if the item is ticked in the plan.
    pub(super) fn is_item_ticked(&self, work: &SimulatedWork, item: usize) -> bool {
        let line = format!("- [x] {}", work.items[item].name);
        self.read_file("fix_plan.md").is_some_and(|plan| plan.lines().any(|plan_line| plan_line == line))
    }

    pub(super) fn first_open_item(&self, work: &SimulatedWork) -> Option<usize> {
        (0..work.items.len()).find(|item| !self.is_item_ticked(work, *item))
    }

    /// Returns the current path of a step's file, or `None` if the file does not exist.
    pub(super) fn current_file_of_step(
        &self,
        work: &SimulatedWork,
        item: usize,
        step: usize,
    ) -> Option<String> {
        let file = work.items[item].steps[step].affected_file();
        let renamed_path = work.items[item].steps.iter().find_map(|operation| match operation {
            Operation::Rename { from, to } if from == file => Some(to.as_str()),
            _ => None,
        });
        [Some(file), renamed_path]
            .into_iter()
            .flatten()
            .find(|name| self.file_exists(name))
            .map(str::to_owned)
    }

    /// Returns the numbers of the lines that contain a marker.
    fn line_numbers_with_marker(&self, file: &str, marker: &str) -> Vec<u32> {
        let text = self.read_file(file).unwrap_or_default();
        let lines = text.lines().enumerate().filter(|(_, line)| line_has_marker(line, marker));
        lines.map(|(index, _)| index as u32 + 1).collect()
    }

    /// Returns the numbers of the lines that a step wrote into a file.
    pub(super) fn line_numbers_written_by_step(&self, item: usize, step: usize, file: &str) -> Vec<u32> {
        self.line_numbers_with_marker(file, &SimulatedWork::step_marker(item, step))
    }

    /// Returns true if the files show that the step is done.
    pub(super) fn is_step_done_in_files(&self, work: &SimulatedWork, item: usize, step: usize) -> bool {
        match &work.items[item].steps[step] {
            Operation::Edit { .. } | Operation::Create { .. } => {
                self.current_file_of_step(work, item, step).is_some_and(|file| {
                    !self.line_numbers_with_marker(&file, &SimulatedWork::step_marker(item, step)).is_empty()
                })
            }
            Operation::Rename { to, .. } => self.file_exists(to),
            Operation::Delete { file } => !self.file_exists(file),
        }
    }

    /// Returns the logged steps of the item that are done in the files, in the order of the log: event index,
    /// step and edit method.
    fn logged_steps_done_in_files(
        &self,
        work: &SimulatedWork,
        item: usize,
    ) -> Vec<(usize, usize, EditMethod)> {
        let logged_steps_of_item = self.events.iter().enumerate().filter_map(|(index, event)| match event {
            LedgerEvent::StepPerformed { item: step_item, step, edit_method: method }
                if *step_item == item =>
            {
                Some((index, *step, *method))
            }
            _ => None,
        });
        logged_steps_of_item.filter(|(_, step, _)| self.is_step_done_in_files(work, item, *step)).collect()
    }

    /// Returns true if the step is not done and still can be. Steps in a file that the user deleted cannot be done.
    pub(super) fn is_step_pending_and_possible(
        &self,
        work: &SimulatedWork,
        item: usize,
        step: usize,
    ) -> bool {
        if self.is_step_done_in_files(work, item, step) {
            return false;
        }
        match &work.items[item].steps[step] {
            Operation::Create { file } => !self.was_deleted_by_user(file),
            Operation::Edit { .. } => self.current_file_of_step(work, item, step).is_some(),
            Operation::Rename { from, .. } => self.file_exists(from),
            Operation::Delete { .. } => true,
        }
    }

    fn was_deleted_by_user(&self, path: &str) -> bool {
        self.user_changes
            .iter()
            .any(|change| matches!(change, UserChange::Deleted { file, .. } if file == path))
    }

    /// Returns the content of a correct prompt for the next session, or `None` if no item is open.
    pub(super) fn ground_truth_for_next_session(
        &self,
        work: &SimulatedWork,
        folder: FolderKind,
        user_changes: &[UserChange],
    ) -> Option<GroundTruth> {
        let open_item = self.first_open_item(work)?;
        let done_steps = self.logged_steps_done_in_files(work, open_item);
        let last_session_events = self
            .events
            .rsplit(|event| matches!(event, LedgerEvent::SessionStarted))
            .next()
            .unwrap_or_default();
        let has_last_session_ticked =
            last_session_events.iter().any(|event| matches!(event, LedgerEvent::ItemTicked));
        let item_state = if !done_steps.is_empty() {
            ItemState::Half
        } else if has_last_session_ticked {
            ItemState::Ticked
        } else {
            ItemState::Fresh
        };
        let (last_change, moved_file) =
            self.last_change_skipping_moves_and_moved_file(work, open_item, &done_steps);
        let (closing_message, is_by_last_session) = self.last_next_step_message_since_last_step(open_item);
        let names_location =
            matches!(closing_message, Some(LedgerEvent::ClosingMessage { names_location: true, .. }))
                && is_by_last_session;
        let mut truth = GroundTruth {
            item_state,
            item: open_item,
            last_edited_file: None,
            moved_file: None,
            is_file_determinable: false,
            last_edit_lines: None,
            are_lines_determinable: false,
            file_line_count: 0,
            marked_files: self.files_with_markers_of_steps(work, open_item, &done_steps),
            next_step: stated_next_step(closing_message, is_by_last_session),
            summary: last_session_events.iter().rev().find_map(|event| match event {
                LedgerEvent::ClosingMessage { summary, .. } => summary.clone(),
                _ => None,
            }),
            is_tick_forgotten: (0..work.items[open_item].steps.len())
                .all(|step| !self.is_step_pending_and_possible(work, open_item, step)),
            files_in_ticked_items_not_in_open_item: self
                .files_in_ticked_items_not_in_open_item(work, open_item),
            user_changes: user_changes.to_vec(),
            edit_method: None,
            session_count: self.count_sessions_with_steps_of_item(open_item),
        };
        if let Some((event_index, step, edit_method, file)) = last_change {
            let lines = self.line_numbers_with_marker(&file, &SimulatedWork::step_marker(open_item, step));
            if matches!(work.items[open_item].steps[step], Operation::Edit { .. } | Operation::Create { .. })
            {
                truth.last_edit_lines = lines.first().copied().zip(lines.last().copied());
            }
            truth.file_line_count = self.read_file(&file).map_or(0, |text| text.lines().count() as u32);
            truth.edit_method = Some(edit_method);
            let does_git_diff_show_last_edit = folder != FolderKind::Plain
                && self.does_git_diff_show_step_as_lowest_change(
                    work,
                    folder,
                    (event_index, open_item, step),
                    &file,
                );
            let has_user_shifted_lines = user_changes
                .iter()
                .any(|change| matches!(change, UserChange::Edited { file: edited_file, .. } if *edited_file == file));
            truth.is_file_determinable = edit_method == EditMethod::ClientTool
                || names_location
                || folder == FolderKind::Repository
                || does_git_diff_show_last_edit;
            truth.are_lines_determinable = truth.last_edit_lines.is_some()
                && !has_user_shifted_lines
                && (edit_method == EditMethod::ClientTool || names_location || does_git_diff_show_last_edit);
            truth.moved_file = moved_file.filter(|moved| *moved != file);
            truth.last_edited_file = Some(file);
        }
        Some(truth)
    }

    /// Returns the last change whose file still exists, skipping moves if possible, and the file of the latest
    /// change if that was a move.
    fn last_change_skipping_moves_and_moved_file(
        &self,
        work: &SimulatedWork,
        item: usize,
        done_steps: &[(usize, usize, EditMethod)],
    ) -> (Option<StepChange>, Option<String>) {
        let steps = &work.items[item].steps;
        let mut existing_changes = done_steps.iter().rev().filter_map(|(event_index, step, method)| {
            if matches!(steps[*step], Operation::Delete { .. }) {
                return None;
            }
            Some((*event_index, *step, *method, self.current_file_of_step(work, item, *step)?))
        });
        // A move changes neither a line nor the file's modification time.
        let is_move = |(_, step, ..): &StepChange| matches!(steps[*step], Operation::Rename { .. });
        match existing_changes.next() {
            Some(latest) if is_move(&latest) => {
                let moved_file = Some(latest.3.clone());
                (existing_changes.find(|change| !is_move(change)).or(Some(latest)), moved_file)
            }
            latest => (latest, None),
        }
    }

    fn files_with_markers_of_steps(
        &self,
        work: &SimulatedWork,
        item: usize,
        done_steps: &[(usize, usize, EditMethod)],
    ) -> Vec<String> {
        let file_if_marked = |step: usize| {
            let file = self.current_file_of_step(work, item, step)?;
            (!self.line_numbers_with_marker(&file, &SimulatedWork::step_marker(item, step)).is_empty())
                .then_some(file)
        };
        done_steps.iter().filter_map(|(_, step, _)| file_if_marked(*step)).collect()
    }

    /// Returns the last closing message that states a next step of the item, if no step of the item followed
    /// it, and whether the last session wrote it.
    fn last_next_step_message_since_last_step(&self, item: usize) -> (Option<&LedgerEvent>, bool) {
        let is_step_of_item = |event: &LedgerEvent| matches!(event, LedgerEvent::StepPerformed { item: step_item, .. } if *step_item == item);
        let index_after_last_step =
            self.events.iter().rposition(is_step_of_item).map_or(0, |index| index + 1);
        let events_since_last_step = &self.events[index_after_last_step..];
        let states_next_step = |event: &LedgerEvent| matches!(event, LedgerEvent::ClosingMessage { item: Some(message_item), next_step: Some(_), .. } if *message_item == item);
        let Some(index) = events_since_last_step.iter().rposition(states_next_step) else {
            return (None, false);
        };
        let later_events = &events_since_last_step[index + 1..];
        let is_by_last_session = !later_events
            .iter()
            .any(|event| matches!(event, LedgerEvent::SessionStarted | LedgerEvent::ClosingMessage { .. }));
        (Some(&events_since_last_step[index]), is_by_last_session)
    }

    fn count_sessions_with_steps_of_item(&self, item: usize) -> usize {
        let events_by_session = self.events.split(|event| matches!(event, LedgerEvent::SessionStarted));
        events_by_session
            .filter(|events| {
                events
                    .iter()
                    .any(|event| matches!(event, LedgerEvent::StepPerformed { item: step_item, .. } if *step_item == item))
            })
            .count()
    }

    fn files_in_ticked_items_not_in_open_item(&self, work: &SimulatedWork, open_item: usize) -> Vec<String> {
        let files_of_item = |item: usize| {
            work.items[item].steps.iter().flat_map(|operation| match operation {
                Operation::Rename { from, to } => vec![from.clone(), to.clone()],
                _ => vec![operation.affected_file().to_owned()],
            })
        };
        let files_of_open_item: Vec<String> = files_of_item(open_item).collect();
        let ticked_items =
            (0..work.items.len()).filter(|item| *item != open_item && self.is_item_ticked(work, *item));
        ticked_items.flat_map(files_of_item).filter(|file| !files_of_open_item.contains(file)).collect()
    }

    /// Returns true if a diff (of the working tree, or of any commit but the first) shows the step as the lowest
    /// change in its file. If git did not track the file before, every line is new.
    fn does_git_diff_show_step_as_lowest_change(
        &self,
        work: &SimulatedWork,
        folder: FolderKind,
        (event_index, item, step): (usize, usize, usize),
        file: &str,
    ) -> bool {
        let is_commit = |event: &LedgerEvent| matches!(event, LedgerEvent::Committed);
        let has_first_commit =
            folder == FolderKind::Repository || self.events[..event_index].iter().any(is_commit);
        let is_new_file = matches!(work.items[item].steps[step], Operation::Create { .. });
        let file_creation_event_index = self.events[..event_index].iter().rposition(|event| match event {
            LedgerEvent::StepPerformed { item: step_item, step, .. } => {
                *step_item == item
                    && matches!(&work.items[item].steps[*step], Operation::Create { file: path } | Operation::Rename { to: path, .. } if path == file)
            }
            _ => false,
        });
        let was_tracked = match file_creation_event_index {
            Some(creation_event_index) => {
                self.events[creation_event_index..event_index].iter().any(is_commit)
            }
            None => work.existed_at_start(file),
        };
        let last_line_of_step = self
            .line_numbers_with_marker(file, &SimulatedWork::step_marker(item, step))
            .last()
            .copied()
            .unwrap_or(0);
        let is_lowest_marker_in_file =
            !self.line_numbers_with_marker(file, "DONE ").iter().any(|line| *line > last_line_of_step);
        has_first_commit && (is_new_file || was_tracked) && is_lowest_marker_in_file
    }
}

fn stated_next_step(closing_message: Option<&LedgerEvent>, is_by_last_session: bool) -> StatedNextStep {
    match closing_message {
        Some(LedgerEvent::ClosingMessage { next_step: Some(text), .. }) if is_by_last_session => {
            StatedNextStep::ByLastSession(text.clone())
        }
        Some(LedgerEvent::ClosingMessage { next_step: Some(text), .. }) => {
            StatedNextStep::ByEarlierSession(text.clone())
        }
        _ => StatedNextStep::NotStated,
    }
}

/// Returns true if the line contains the marker. `DONE 1.1` does not match `DONE 1.10`; a marker without a
/// number matches any.
fn line_has_marker(line: &str, marker: &str) -> bool {
    let text_after_marker = line.find(marker).map(|index| &line[index + marker.len()..]);
    text_after_marker.is_some_and(|text_after| {
        marker.ends_with(' ') || !text_after.starts_with(|next_char: char| next_char.is_ascii_digit())
    })
}
