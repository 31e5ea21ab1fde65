//! The simulator's own record of what was done, checked against the current files.

use super::style::FolderKind;
use super::work::{NightWork, Operation};
use std::path::PathBuf;

/// The means with which a step was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditedWith {
    Shell,
    Tool,
}

#[derive(Clone, Debug)]
pub(super) enum LedgerEvent {
    SessionStarted,
    StepMade {
        item: usize,
        step: usize,
        edited_with: EditedWith,
    },
    Committed,
    ItemTicked,
    /// The session's closing message: the next step that it states, whether that names a file and line, and
    /// the summary.
    ClosingMessage {
        item: Option<usize>,
        next_step: Option<String>,
        names_place: bool,
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
    /// Begun and open.
    Half,
    /// The previous item is ticked and this one is not begun.
    Ticked,
    /// Not begun, and no item was finished just before.
    Fresh,
}

/// The next step that earlier sessions stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatedNextStep {
    /// Stated by the last session: the prompt must quote it.
    ByLastSession(String),
    /// Stated by an earlier session, with no work since: the prompt may quote it.
    ByEarlierSession(String),
    NotStated,
}

/// The facts that a correct prompt would state at the beginning of a session.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) item_state: ItemState,
    pub(super) item: usize,
    /// The last edited file that still exists.
    pub(super) last_edited_file: Option<String>,
    /// A file that was moved after that edit: the prompt may name it first instead.
    pub(super) moved_file: Option<String>,
    /// True if the file can be determined from git, file times, the transcript and the last message.
    pub(super) is_file_known: bool,
    /// The first and last line that the last edit wrote.
    pub(super) last_edit_lines: Option<(u32, u32)>,
    pub(super) are_lines_known: bool,
    /// The number of lines of the file.
    pub(super) file_line_count: u32,
    /// The file of every step of the item that left lines. If the order of the steps cannot be determined,
    /// any of them is accepted.
    pub(super) marked_files: Vec<String>,
    pub(super) next_step: StatedNextStep,
    pub(super) summary: Option<String>,
    pub(super) is_tick_forgotten: bool,
    /// Files that only finished items touched.
    pub(super) files_of_finished_items: Vec<String>,
    pub(super) user_changes: Vec<UserChange>,
    pub(super) edited_with: Option<EditedWith>,
    /// The number of sessions so far that worked on the item.
    pub(super) session_count: usize,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) events: Vec<LedgerEvent>,
    pub(super) user_changes: Vec<UserChange>,
    project: PathBuf,
}

/// A change: its index among the events, its step, what it was made with, and its file.
type StepChange = (usize, usize, EditedWith, String);

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
    pub(super) fn is_item_ticked(&self, work: &NightWork, item: usize) -> bool {
        let line = format!("- [x] {}", work.items[item].name);
        self.read_file("fix_plan.md").is_some_and(|plan| plan.lines().any(|plan_line| plan_line == line))
    }

    pub(super) fn first_open_item(&self, work: &NightWork) -> Option<usize> {
        (0..work.items.len()).find(|item| !self.is_item_ticked(work, *item))
    }

    /// Returns the current name of a step's file, or `None` if it does not exist.
    pub(super) fn current_file_of_step(&self, work: &NightWork, item: usize, step: usize) -> Option<String> {
        let file = work.items[item].steps[step].affected_file();
        let new_name = work.items[item].steps.iter().find_map(|op| match op {
            Operation::Rename { from, to } if from == file => Some(to.as_str()),
            _ => None,
        });
        [Some(file), new_name].into_iter().flatten().find(|name| self.file_exists(name)).map(str::to_owned)
    }

    /// Returns the numbers of the lines that contain a mark.
    fn lines_with_mark(&self, file: &str, mark: &str) -> Vec<u32> {
        let text = self.read_file(file).unwrap_or_default();
        let lines = text.lines().enumerate().filter(|(_, line)| line_has_mark(line, mark));
        lines.map(|(index, _)| index as u32 + 1).collect()
    }

    /// Returns the numbers of the lines that a step wrote into a file.
    pub(super) fn lines_of_step(&self, item: usize, step: usize, file: &str) -> Vec<u32> {
        self.lines_with_mark(file, &NightWork::step_mark(item, step))
    }

    /// Returns true if the files show that the step was made.
    pub(super) fn is_step_visible(&self, work: &NightWork, item: usize, step: usize) -> bool {
        match &work.items[item].steps[step] {
            Operation::Edit { .. } | Operation::Create { .. } => {
                self.current_file_of_step(work, item, step).is_some_and(|file| {
                    !self.lines_with_mark(&file, &NightWork::step_mark(item, step)).is_empty()
                })
            }
            Operation::Rename { to, .. } => self.file_exists(to),
            Operation::Delete { file } => !self.file_exists(file),
        }
    }

    /// Returns the item's steps that were requested and are visible in the files, in their order.
    fn visible_steps(&self, work: &NightWork, item: usize) -> Vec<(usize, usize, EditedWith)> {
        let steps = self.events.iter().enumerate().filter_map(|(index, event)| match event {
            LedgerEvent::StepMade { item: other_item, step, edited_with: by } if *other_item == item => {
                Some((index, *step, *by))
            }
            _ => None,
        });
        steps.filter(|(_, step, _)| self.is_step_visible(work, item, *step)).collect()
    }

    /// Returns true if a step is still to be made. Steps in a file that the user has deleted do not count.
    pub(super) fn is_step_left(&self, work: &NightWork, item: usize, step: usize) -> bool {
        if self.is_step_visible(work, item, step) {
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

    /// Returns the facts for the session that begins now, or `None` if no item is open.
    pub(super) fn truth_for_next_session(
        &self,
        work: &NightWork,
        folder: FolderKind,
        user_changes: &[UserChange],
    ) -> Option<Truth> {
        let open_item = self.first_open_item(work)?;
        let visible_steps = self.visible_steps(work, open_item);
        let last_session_events = self
            .events
            .rsplit(|event| matches!(event, LedgerEvent::SessionStarted))
            .next()
            .unwrap_or_default();
        let has_ticked = last_session_events.iter().any(|event| matches!(event, LedgerEvent::ItemTicked));
        let class = if !visible_steps.is_empty() {
            ItemState::Half
        } else if has_ticked {
            ItemState::Ticked
        } else {
            ItemState::Fresh
        };
        let (last_change, moved_file) = self.last_change_and_move(work, open_item, &visible_steps);
        let (closing_message, is_by_last_session) = self.last_stated_next_step(open_item);
        let names_place =
            matches!(closing_message, Some(LedgerEvent::ClosingMessage { names_place: true, .. }))
                && is_by_last_session;
        let mut truth = Truth {
            item_state: class,
            item: open_item,
            last_edited_file: None,
            moved_file: None,
            is_file_known: false,
            last_edit_lines: None,
            are_lines_known: false,
            file_line_count: 0,
            marked_files: self.files_with_marks(work, open_item, &visible_steps),
            next_step: stated_next_step(closing_message, is_by_last_session),
            summary: last_session_events.iter().rev().find_map(|event| match event {
                LedgerEvent::ClosingMessage { summary, .. } => summary.clone(),
                _ => None,
            }),
            is_tick_forgotten: (0..work.items[open_item].steps.len())
                .all(|step| !self.is_step_left(work, open_item, step)),
            files_of_finished_items: self.files_of_finished_items(work, open_item),
            user_changes: user_changes.to_vec(),
            edited_with: None,
            session_count: self.count_sessions_on_item(open_item),
        };
        if let Some((event_index, step, edited_with, file)) = last_change {
            let lines = self.lines_with_mark(&file, &NightWork::step_mark(open_item, step));
            if matches!(work.items[open_item].steps[step], Operation::Edit { .. } | Operation::Create { .. })
            {
                truth.last_edit_lines = lines.first().copied().zip(lines.last().copied());
            }
            truth.file_line_count = self.read_file(&file).map_or(0, |text| text.lines().count() as u32);
            truth.edited_with = Some(edited_with);
            let is_shown_by_git = folder != FolderKind::Plain
                && self.is_last_change_in_git_diff(work, folder, (event_index, open_item, step), &file);
            let has_user_shifted_lines = user_changes
                .iter()
                .any(|change| matches!(change, UserChange::Edited { file: of, .. } if *of == file));
            truth.is_file_known = edited_with == EditedWith::Tool
                || names_place
                || folder == FolderKind::Repository
                || is_shown_by_git;
            truth.are_lines_known = truth.last_edit_lines.is_some()
                && !has_user_shifted_lines
                && (edited_with == EditedWith::Tool || names_place || is_shown_by_git);
            truth.moved_file = moved_file.filter(|moved| *moved != file);
            truth.last_edited_file = Some(file);
        }
        Some(truth)
    }

    /// Returns the last change whose result still exists, and the file that was moved after it.
    fn last_change_and_move(
        &self,
        work: &NightWork,
        item: usize,
        visible_steps: &[(usize, usize, EditedWith)],
    ) -> (Option<StepChange>, Option<String>) {
        let steps = &work.items[item].steps;
        let mut existing_changes = visible_steps.iter().rev().filter_map(|(place, step, by)| {
            if matches!(steps[*step], Operation::Delete { .. }) {
                return None;
            }
            Some((*place, *step, *by, self.current_file_of_step(work, item, *step)?))
        });
        // A move keeps the file's time, and nobody edited its text.
        let is_moved = |(_, step, ..): &StepChange| matches!(steps[*step], Operation::Rename { .. });
        match existing_changes.next() {
            Some(latest) if is_moved(&latest) => {
                let moved_file = Some(latest.3.clone());
                (existing_changes.find(|change| !is_moved(change)).or(Some(latest)), moved_file)
            }
            latest => (latest, None),
        }
    }

    fn files_with_marks(
        &self,
        work: &NightWork,
        item: usize,
        visible_steps: &[(usize, usize, EditedWith)],
    ) -> Vec<String> {
        let file_with_mark = |step: usize| {
            let file = self.current_file_of_step(work, item, step)?;
            (!self.lines_with_mark(&file, &NightWork::step_mark(item, step)).is_empty()).then_some(file)
        };
        visible_steps.iter().filter_map(|(_, step, _)| file_with_mark(*step)).collect()
    }

    /// Returns the last closing message about an item's next step if no work followed it, and whether it is
    /// by the last session.
    fn last_stated_next_step(&self, item: usize) -> (Option<&LedgerEvent>, bool) {
        let is_work =
            |event: &LedgerEvent| matches!(event, LedgerEvent::StepMade { item: of, .. } if *of == item);
        let first_after_work = self.events.iter().rposition(is_work).map_or(0, |place| place + 1);
        let events_since_work = &self.events[first_after_work..];
        let states_next_step = |event: &LedgerEvent| matches!(event, LedgerEvent::ClosingMessage { item: Some(of), next_step: Some(_), .. } if *of == item);
        let Some(index) = events_since_work.iter().rposition(states_next_step) else { return (None, false) };
        let after = &events_since_work[index + 1..];
        let is_by_last_session = !after
            .iter()
            .any(|event| matches!(event, LedgerEvent::SessionStarted | LedgerEvent::ClosingMessage { .. }));
        (Some(&events_since_work[index]), is_by_last_session)
    }

    fn count_sessions_on_item(&self, item: usize) -> usize {
        let events_by_session = self.events.split(|event| matches!(event, LedgerEvent::SessionStarted));
        events_by_session
            .filter(|events| {
                events
                    .iter()
                    .any(|event| matches!(event, LedgerEvent::StepMade { item: of, .. } if *of == item))
            })
            .count()
    }

    fn files_of_finished_items(&self, work: &NightWork, open_item: usize) -> Vec<String> {
        let files_of_item = |item: usize| {
            work.items[item].steps.iter().flat_map(|op| match op {
                Operation::Rename { from, to } => vec![from.clone(), to.clone()],
                _ => vec![op.affected_file().to_owned()],
            })
        };
        let files_of_open_item: Vec<String> = files_of_item(open_item).collect();
        let ticked_items =
            (0..work.items.len()).filter(|item| *item != open_item && self.is_item_ticked(work, *item));
        ticked_items.flat_map(files_of_item).filter(|file| !files_of_open_item.contains(file)).collect()
    }

    /// Returns true if a diff (of the working tree, or of any commit but the first) shows the step as the
    /// last change of its file. If git did not track the file before, every line is new.
    fn is_last_change_in_git_diff(
        &self,
        work: &NightWork,
        folder: FolderKind,
        (place, item, step): (usize, usize, usize),
        file: &str,
    ) -> bool {
        let is_commit = |event: &LedgerEvent| matches!(event, LedgerEvent::Committed);
        let has_first_commit = folder == FolderKind::Repository || self.events[..place].iter().any(is_commit);
        let is_new_file = matches!(work.items[item].steps[step], Operation::Create { .. });
        let created_at_event = self.events[..place].iter().rposition(|event| match event {
            LedgerEvent::StepMade { item: of, step, .. } => {
                *of == item
                    && matches!(&work.items[item].steps[*step], Operation::Create { file: path } | Operation::Rename { to: path, .. } if path == file)
            }
            _ => false,
        });
        let was_tracked = match created_at_event {
            Some(made) => self.events[made..place].iter().any(is_commit),
            None => work.existed_at_start(file),
        };
        let last_line_of_step =
            self.lines_with_mark(file, &NightWork::step_mark(item, step)).last().copied().unwrap_or(0);
        let is_lowest_mark =
            !self.lines_with_mark(file, "DONE ").iter().any(|line| *line > last_line_of_step);
        has_first_commit && (is_new_file || was_tracked) && is_lowest_mark
    }
}

fn stated_next_step(closing_message: Option<&LedgerEvent>, is_by_last_session: bool) -> StatedNextStep {
    match closing_message {
        Some(LedgerEvent::ClosingMessage { next_step: Some(words), .. }) if is_by_last_session => {
            StatedNextStep::ByLastSession(words.clone())
        }
        Some(LedgerEvent::ClosingMessage { next_step: Some(words), .. }) => {
            StatedNextStep::ByEarlierSession(words.clone())
        }
        _ => StatedNextStep::NotStated,
    }
}

/// Returns true if the line contains the mark: `DONE 1.1` does not match `DONE 1.10`, and a mark without a
/// number matches any.
fn line_has_mark(line: &str, mark: &str) -> bool {
    let rest = line.find(mark).map(|place| &line[place + mark.len()..]);
    rest.is_some_and(|rest| {
        mark.ends_with(' ') || !rest.starts_with(|next_char: char| next_char.is_ascii_digit())
    })
}
