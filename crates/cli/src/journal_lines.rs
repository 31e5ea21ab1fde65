//! Puts the lines of the journal into words, for `plimsoll log` and the screen of `plimsoll status --watch`.

pub(crate) mod journal;
pub(crate) mod page;
mod phrase;
mod sentence;
mod tell;
#[cfg(test)]
mod tests;
mod verdict;

use journal::Journal;
use page::LogPage;
pub(crate) use phrase::Tone;
use plimsoll_domain::RunId;
use plimsoll_domain::journal::Line;
use plimsoll_store::{Project, state_file};
pub(crate) use tell::{EventPrinter, LogLine};

/// Without a run so many lines are shown.
const USUAL: usize = 50;

/// The run that the state names.
pub(crate) fn present_run(project: &Project) -> Option<RunId> {
    state_file::load(project, None).ok().flatten().map(|state| state.run_id).filter(|id| !id.is_empty())
}

/// Returns the lines that are shown at first: the last ones if `most` says how many, else all since the current run began, because
/// what happened beside the run may be the reason for what happened in it.
pub(crate) fn chosen(
    teller: &mut EventPrinter,
    lines: &[Line],
    run_id: Option<&RunId>,
    most: Option<usize>,
) -> Vec<LogLine> {
    let of_run = |line: &Line| matches!(line, Line::Entry(entry) if entry.run_id.as_ref() == run_id);
    let beginning = run_id.and_then(|_| lines.iter().position(of_run));
    let (first, most) = match (most, beginning) {
        (Some(most), _) => (0, most),
        (None, Some(beginning)) => (beginning, usize::MAX),
        (None, None) => (0, USUAL),
    };
    let shown: Vec<LogLine> = lines[first..].iter().filter_map(|line| teller.tell(line)).collect();
    let too_many = shown.len().saturating_sub(most);
    shown.into_iter().skip(too_many).collect()
}

/// The journal of a run in words, as it grows.
#[derive(Debug)]
pub(crate) struct JournalTail {
    journal: Journal,
    teller: EventPrinter,
    page: LogPage,
    run_id: Option<RunId>,
    has_begun: bool,
}

impl JournalTail {
    /// Nothing has been read yet.
    pub(crate) fn of(project: &Project) -> JournalTail {
        JournalTail {
            journal: Journal::new(project.journal()),
            teller: EventPrinter::default(),
            page: LogPage::new(false),
            run_id: present_run(project),
            has_begun: false,
        }
    }

    /// The lines that have come since the last time: at first all since the current run began. A journal that
    /// cannot be read just now may be readable again later.
    pub(crate) fn news(&mut self) -> Vec<(String, Tone)> {
        let lines = self.journal.news().unwrap_or_default();
        let shown = if std::mem::replace(&mut self.has_begun, true) {
            lines.iter().filter_map(|line| self.teller.tell(line)).collect()
        } else {
            chosen(&mut self.teller, &lines, self.run_id.as_ref(), None)
        };
        let page = &mut self.page;
        shown
            .iter()
            .flat_map(|line| page.lines(line).into_iter().map(|painted| (painted.to_terminal(), line.tone)))
            .collect()
    }
}
