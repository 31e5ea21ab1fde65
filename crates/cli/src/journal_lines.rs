//! Describes the lines of the journal in words, for `plimsoll log` and the screen of `plimsoll status
//! --watch`.

mod describer;
pub(crate) mod journal;
pub(crate) mod page;
mod phrase;
mod sentence;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use describer::{DescribedLine, JournalDescriber};
use journal::JournalReader;
use page::LogPage;
pub(crate) use phrase::LineStyle;
use plimsoll_domain::RunId;
use plimsoll_domain::journal::JournalLine;
use plimsoll_store::{Project, state_file};

/// Number of lines that are shown if there is no run.
const DEFAULT_LINE_COUNT: usize = 50;

/// Returns the run id in the state file.
pub(crate) fn current_run_id(project: &Project) -> Option<RunId> {
    state_file::load_state(project, None).ok().flatten().map(|state| state.run_id).filter(|id| !id.is_empty())
}

/// Returns the lines to show first: the last `max_count` ones if it is given, else all since the current run
/// began. Events of other sessions are included, because they may explain events of the run.
pub(crate) fn initial_lines(
    describer: &mut JournalDescriber,
    lines: &[JournalLine],
    run_id: Option<&RunId>,
    max_count: Option<usize>,
) -> Vec<DescribedLine> {
    let belongs_to_run =
        |line: &JournalLine| matches!(line, JournalLine::Entry(entry) if entry.run_id.as_ref() == run_id);
    let run_start = run_id.and_then(|_| lines.iter().position(belongs_to_run));
    let (first, max_count) = match (max_count, run_start) {
        (Some(max_count), _) => (0, max_count),
        (None, Some(run_start)) => (run_start, usize::MAX),
        (None, None) => (0, DEFAULT_LINE_COUNT),
    };
    let described: Vec<DescribedLine> =
        lines[first..].iter().filter_map(|line| describer.describe_line(line)).collect();
    let surplus = described.len().saturating_sub(max_count);
    described.into_iter().skip(surplus).collect()
}

/// Describes a project's journal as it grows.
#[derive(Debug)]
pub(crate) struct JournalTail {
    journal: JournalReader,
    describer: JournalDescriber,
    page: LogPage,
    run_id: Option<RunId>,
    has_begun: bool,
}

impl JournalTail {
    /// Creates a tail that has read nothing yet.
    pub(crate) fn from_current_run(project: &Project) -> JournalTail {
        JournalTail {
            journal: JournalReader::new(project.journal_path()),
            describer: JournalDescriber::default(),
            page: LogPage::new(false),
            run_id: current_run_id(project),
            has_begun: false,
        }
    }

    /// Returns the lines since the last call; the first call returns all since the current run began. An
    /// error counts as no new lines, because the journal may be readable again later.
    pub(crate) fn read_new_lines(&mut self) -> Vec<(String, LineStyle)> {
        let lines = self.journal.read_new_complete_lines().unwrap_or_default();
        let described_lines = if std::mem::replace(&mut self.has_begun, true) {
            lines.iter().filter_map(|line| self.describer.describe_line(line)).collect()
        } else {
            initial_lines(&mut self.describer, &lines, self.run_id.as_ref(), None)
        };
        let page = &mut self.page;
        described_lines
            .iter()
            .flat_map(|line| {
                page.render_line_with_heading_if_new_day(line)
                    .into_iter()
                    .map(|painted| (painted.to_text_with_ansi_colors(), line.style))
            })
            .collect()
    }
}
