//! The simulator's own record of what was done, checked against the current files.

use super::style::Folder;
use super::work::{Op, Work};
use std::path::PathBuf;

/// What a step was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Shell,
    Tool,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Session,
    Step {
        item: usize,
        step: usize,
        by: By,
    },
    Commit,
    Tick,
    /// The session's words at its end: what it said to be the next step, whether that names the place, and the summary.
    Said {
        item: Option<usize>,
        next: Option<String>,
        names_place: bool,
        summary: Option<String>,
    },
}

/// What the user did between two sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByPerson {
    /// Lines were put into a file, and committed with this subject.
    Edited {
        /// The file.
        file: String,
        /// The commit's subject.
        subject: String,
    },
    /// A file was deleted, and that committed with this subject.
    Deleted {
        /// The file.
        file: String,
        /// The commit's subject.
        subject: String,
    },
    /// Something else was committed.
    Other {
        /// The commit's subject.
        subject: String,
    },
}

/// The state of the session's item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Begun and open.
    Half,
    /// The last one is ticked, this one is not begun.
    Ticked,
    /// Not begun, and nothing was finished just before.
    Fresh,
}

/// The next step that earlier sessions stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Stated by the last session: the prompt must quote it.
    Said(String),
    /// Stated two sessions ago, with no work since: the prompt may quote it.
    Older(String),
    Nothing,
}

/// The truth at the beginning of a session.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) class: Class,
    pub(super) item: usize,
    /// The file edited last that is still there.
    pub(super) file: Option<String>,
    /// A file that was only moved after that edit: the prompt may name it first instead.
    pub(super) moved: Option<String>,
    /// True if the file can be determined from git, file times, the transcript and the last message.
    pub(super) is_file_known: bool,
    /// The lines written by the last edit.
    pub(super) lines: Option<(u32, u32)>,
    pub(super) are_lines_known: bool,
    /// How many lines the file has.
    pub(super) file_lines: u32,
    /// The file of every step of the item that left lines. If the order of the steps cannot be determined, any of them is accepted.
    pub(super) traces: Vec<String>,
    pub(super) next: Next,
    pub(super) summary: Option<String>,
    pub(super) is_forgotten: bool,
    /// Files that only finished items touched.
    pub(super) finished: Vec<String>,
    pub(super) people: Vec<ByPerson>,
    pub(super) by: Option<By>,
    /// Sessions so far that worked on the item.
    pub(super) sessions: usize,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) events: Vec<Event>,
    pub(super) people: Vec<ByPerson>,
    project: PathBuf,
}

/// The place of a change among the events, its step, who made it, and its file.
type Change = (usize, usize, By, String);

impl Ledger {
    pub(super) fn new(project: PathBuf) -> Ledger {
        Ledger { project, ..Ledger::default() }
    }

    pub(super) fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(file)).ok()
    }

    pub(super) fn exists(&self, file: &str) -> bool {
        self.project.join(file).exists()
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.project.join(file)
    }

    /// Whether the list has the item ticked.
    pub(super) fn is_ticked(&self, work: &Work, item: usize) -> bool {
        let line = format!("- [x] {}", work.items[item].name);
        self.read("fix_plan.md").is_some_and(|plan| plan.lines().any(|one| one == line))
    }

    pub(super) fn first_open(&self, work: &Work) -> Option<usize> {
        (0..work.items.len()).find(|item| !self.is_ticked(work, *item))
    }

    /// The name under which a step's file lies now, if it does.
    pub(super) fn file_now(&self, work: &Work, item: usize, step: usize) -> Option<String> {
        let file = work.items[item].steps[step].file();
        let renamed = work.items[item].steps.iter().find_map(|op| match op {
            Op::Rename { from, to } if from == file => Some(to.as_str()),
            _ => None,
        });
        [Some(file), renamed].into_iter().flatten().find(|name| self.exists(name)).map(str::to_owned)
    }

    /// The lines of a file that have a step's mark.
    fn marked(&self, file: &str, mark: &str) -> Vec<u32> {
        let text = self.read(file).unwrap_or_default();
        let lines = text.lines().enumerate().filter(|(_, line)| has_mark(line, mark));
        lines.map(|(place, _)| place as u32 + 1).collect()
    }

    /// The lines of a step in a file.
    pub(super) fn marks(&self, item: usize, step: usize, file: &str) -> Vec<u32> {
        self.marked(file, &Work::mark(item, step))
    }

    /// Whether the files show that the step was made.
    pub(super) fn landed(&self, work: &Work, item: usize, step: usize) -> bool {
        match &work.items[item].steps[step] {
            Op::Edit { .. } | Op::New { .. } => self
                .file_now(work, item, step)
                .is_some_and(|file| !self.marked(&file, &Work::mark(item, step)).is_empty()),
            Op::Rename { to, .. } => self.exists(to),
            Op::Delete { file } => !self.exists(file),
        }
    }

    /// Steps that were asked for, in their order, and can be seen in the files.
    fn made(&self, work: &Work, item: usize) -> Vec<(usize, usize, By)> {
        let steps = self.events.iter().enumerate().filter_map(|(place, event)| match event {
            Event::Step { item: of, step, by } if *of == item => Some((place, *step, *by)),
            _ => None,
        });
        steps.filter(|(_, step, _)| self.landed(work, item, *step)).collect()
    }

    /// True if the item has a step left to do; steps in a file that the user has deleted do not count.
    pub(super) fn is_left(&self, work: &Work, item: usize, step: usize) -> bool {
        if self.landed(work, item, step) {
            return false;
        }
        match &work.items[item].steps[step] {
            Op::New { file } => !self.was_taken(file),
            Op::Edit { .. } => self.file_now(work, item, step).is_some(),
            Op::Rename { from, .. } => self.exists(from),
            Op::Delete { .. } => true,
        }
    }

    fn was_taken(&self, path: &str) -> bool {
        self.people.iter().any(|one| matches!(one, ByPerson::Deleted { file, .. } if file == path))
    }

    /// The truth for the session that begins now; none if no item is open.
    pub(super) fn truth(&self, work: &Work, folder: Folder, people: &[ByPerson]) -> Option<Truth> {
        let open = self.first_open(work)?;
        let made = self.made(work, open);
        let last_session =
            self.events.rsplit(|event| matches!(event, Event::Session)).next().unwrap_or_default();
        let has_ticked = last_session.iter().any(|event| matches!(event, Event::Tick));
        let class = if !made.is_empty() {
            Class::Half
        } else if has_ticked {
            Class::Ticked
        } else {
            Class::Fresh
        };
        let (last, moved) = self.last_change(work, open, &made);
        let (said, is_last) = self.said(open);
        let names_place = matches!(said, Some(Event::Said { names_place: true, .. })) && is_last;
        let mut truth = Truth {
            class,
            item: open,
            file: None,
            moved: None,
            is_file_known: false,
            lines: None,
            are_lines_known: false,
            file_lines: 0,
            traces: self.traces(work, open, &made),
            next: next(said, is_last),
            summary: last_session.iter().rev().find_map(|event| match event {
                Event::Said { summary, .. } => summary.clone(),
                _ => None,
            }),
            is_forgotten: (0..work.items[open].steps.len()).all(|step| !self.is_left(work, open, step)),
            finished: self.finished(work, open),
            people: people.to_vec(),
            by: None,
            sessions: self.sessions(open),
        };
        if let Some((place, step, by, file)) = last {
            let lines = self.marked(&file, &Work::mark(open, step));
            if matches!(work.items[open].steps[step], Op::Edit { .. } | Op::New { .. }) {
                truth.lines = lines.first().copied().zip(lines.last().copied());
            }
            truth.file_lines = self.read(&file).map_or(0, |text| text.lines().count() as u32);
            truth.by = Some(by);
            let by_git = folder != Folder::Plain && self.shows(work, folder, (place, open, step), &file);
            let is_shifted =
                people.iter().any(|one| matches!(one, ByPerson::Edited { file: of, .. } if *of == file));
            truth.is_file_known = by == By::Tool || names_place || folder == Folder::Repository || by_git;
            truth.are_lines_known =
                truth.lines.is_some() && !is_shifted && (by == By::Tool || names_place || by_git);
            truth.moved = moved.filter(|moved| *moved != file);
            truth.file = Some(file);
        }
        Some(truth)
    }

    /// What was changed last of what is still there, and the file that was moved after that.
    fn last_change(
        &self,
        work: &Work,
        item: usize,
        made: &[(usize, usize, By)],
    ) -> (Option<Change>, Option<String>) {
        let steps = &work.items[item].steps;
        let mut there = made.iter().rev().filter_map(|(place, step, by)| {
            if matches!(steps[*step], Op::Delete { .. }) {
                return None;
            }
            Some((*place, *step, *by, self.file_now(work, item, *step)?))
        });
        // A file that was only moved keeps its time, and its text was edited by nobody.
        let is_moved = |(_, step, ..): &Change| matches!(steps[*step], Op::Rename { .. });
        match there.next() {
            Some(latest) if is_moved(&latest) => {
                let moved = Some(latest.3.clone());
                (there.find(|change| !is_moved(change)).or(Some(latest)), moved)
            }
            latest => (latest, None),
        }
    }

    fn traces(&self, work: &Work, item: usize, made: &[(usize, usize, By)]) -> Vec<String> {
        let trace = |step: usize| {
            let file = self.file_now(work, item, step)?;
            (!self.marked(&file, &Work::mark(item, step)).is_empty()).then_some(file)
        };
        made.iter().filter_map(|(_, step, _)| trace(*step)).collect()
    }

    /// The last statement about an item's next step, if no work was done after it; and whether the last session made it.
    fn said(&self, item: usize) -> (Option<&Event>, bool) {
        let is_work = |event: &Event| matches!(event, Event::Step { item: of, .. } if *of == item);
        let from = self.events.iter().rposition(is_work).map_or(0, |place| place + 1);
        let fresh = &self.events[from..];
        let about =
            |event: &Event| matches!(event, Event::Said { item: Some(of), next: Some(_), .. } if *of == item);
        let Some(place) = fresh.iter().rposition(about) else { return (None, false) };
        let after = &fresh[place + 1..];
        let is_last = !after.iter().any(|event| matches!(event, Event::Session | Event::Said { .. }));
        (Some(&fresh[place]), is_last)
    }

    fn sessions(&self, item: usize) -> usize {
        let sessions = self.events.split(|event| matches!(event, Event::Session));
        sessions
            .filter(|events| {
                events.iter().any(|event| matches!(event, Event::Step { item: of, .. } if *of == item))
            })
            .count()
    }

    fn finished(&self, work: &Work, open: usize) -> Vec<String> {
        let files = |item: usize| {
            work.items[item].steps.iter().flat_map(|op| match op {
                Op::Rename { from, to } => vec![from.clone(), to.clone()],
                _ => vec![op.file().to_owned()],
            })
        };
        let own: Vec<String> = files(open).collect();
        let ticked = (0..work.items.len()).filter(|item| *item != open && self.is_ticked(work, *item));
        ticked.flat_map(files).filter(|file| !own.contains(file)).collect()
    }

    /// True if a diff (of the working tree, or of any commit but the first) shows the step as the last change of its file.
    /// In a file that git did not track before, every line is new.
    fn shows(
        &self,
        work: &Work,
        folder: Folder,
        (place, item, step): (usize, usize, usize),
        file: &str,
    ) -> bool {
        let is_commit = |event: &Event| matches!(event, Event::Commit);
        let born = folder == Folder::Repository || self.events[..place].iter().any(is_commit);
        let is_new = matches!(work.items[item].steps[step], Op::New { .. });
        let made = self.events[..place].iter().rposition(|event| match event {
            Event::Step { item: of, step, .. } => {
                *of == item
                    && matches!(&work.items[item].steps[*step], Op::New { file: path } | Op::Rename { to: path, .. } if path == file)
            }
            _ => false,
        });
        let was_known = match made {
            Some(made) => self.events[made..place].iter().any(is_commit),
            None => work.existed(file),
        };
        let own = self.marked(file, &Work::mark(item, step)).last().copied().unwrap_or(0);
        let is_lowest = !self.marked(file, "DONE ").iter().any(|line| *line > own);
        born && (is_new || was_known) && is_lowest
    }
}

fn next(said: Option<&Event>, is_last: bool) -> Next {
    match said {
        Some(Event::Said { next: Some(words), .. }) if is_last => Next::Said(words.clone()),
        Some(Event::Said { next: Some(words), .. }) => Next::Older(words.clone()),
        _ => Next::Nothing,
    }
}

/// `DONE 1.1` is not `DONE 1.10`; a mark without a number is any.
fn has_mark(line: &str, mark: &str) -> bool {
    let rest = line.find(mark).map(|place| &line[place + mark.len()..]);
    rest.is_some_and(|rest| mark.ends_with(' ') || !rest.starts_with(|one: char| one.is_ascii_digit()))
}
