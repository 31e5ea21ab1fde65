//! Which events a segment has, and between which of its calls.

use super::super::random_draws::Draws;
use super::ListKind;
use super::author::Author;
use std::collections::BTreeMap;

/// The assumed average size of a routine call in bytes, to estimate how many large reads a segment needs.
const AVERAGE_CALL_BYTES: usize = 4_500;
const LARGE_READ_BYTES: usize = 75_000;

/// Something that happens between two routine calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    EarlierRequest,
    MainRequest,
    Addition,
    ContinuePrompt,
    Interruption,
    Decision,
    Edit,
    Failure,
    RepairOfOpenFailure,
    RepairedFailure,
    RevertedEdit,
    Commit,
    FinishedItem,
    DoneStep,
    Subagent,
    ClientNote,
    LargeRead,
    Secret,
    Rename,
    FormatAllFiles,
}

/// The incidents of a segment by the routine call before which they happen.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) call_count: usize,
    incidents: BTreeMap<usize, Vec<Incident>>,
}

impl Schedule {
    pub(super) fn incidents_at(&self, position: usize) -> Vec<Incident> {
        self.incidents.get(&position).cloned().unwrap_or_default()
    }

    fn add(&mut self, fraction: f64, incident: Incident) {
        let position = (fraction * self.call_count as f64) as usize;
        self.incidents.entry(position.min(self.call_count - 1)).or_default().push(incident);
    }

    fn add_anywhere(&mut self, draws: &mut Draws, incident: Incident) {
        let fraction = draws.random_fraction();
        self.add(fraction, incident);
    }

    fn add_with_chance(&mut self, draws: &mut Draws, percent: usize, incident: Incident) {
        if draws.bool_with_percent(percent) {
            self.add_anywhere(draws, incident);
        }
    }

    fn add_several(&mut self, draws: &mut Draws, count: usize, incident: Incident) {
        for _ in 0..count {
            self.add_anywhere(draws, incident);
        }
    }

    /// Draws the incidents of the author's current segment.
    pub(super) fn draw(author: &mut Author) -> Schedule {
        let mut draws = author.draws.substream("schedule");
        let is_first = author.segment == 1;
        let call_count = draws.log_uniform_number(5, 150);
        let mut schedule = Schedule { call_count, incidents: BTreeMap::new() };
        schedule.add_requests(&mut draws, author);
        schedule.add_failures(&mut draws, is_first, author.work.failure.is_some());
        schedule.add_edits_and_commits(&mut draws, author, is_first);
        if is_first || draws.bool_with_percent(50) {
            schedule.add_anywhere(&mut draws, Incident::Decision);
        }
        if author.traits.list_kind != ListKind::None && draws.bool_with_percent(60) {
            let count = draws.number_between(1, 3);
            schedule.add_several(&mut draws, count, Incident::FinishedItem);
        }
        schedule.add_distractions_and_large_reads(&mut draws, author);
        schedule
    }

    fn add_requests(&mut self, draws: &mut Draws, author: &Author) {
        if author.segment == 1 {
            let position = match draws.number_below(100) {
                0..60 => 0.0,
                60..90 => 0.2 + 0.5 * draws.random_fraction(),
                _ => 0.7 + 0.25 * draws.random_fraction(),
            };
            if position * self.call_count as f64 >= 1.0 {
                self.add(0.0, Incident::EarlierRequest);
            }
            self.add(position, Incident::MainRequest);
        } else if draws.bool_with_percent(35) {
            self.add_anywhere(draws, Incident::MainRequest);
        }
        if draws.bool_with_percent(50) {
            for _ in 0..draws.number_between(1, 3) {
                let incident =
                    if draws.bool_with_percent(70) { Incident::Addition } else { Incident::ContinuePrompt };
                self.add_anywhere(draws, incident);
            }
        }
        if author.traits.is_interrupted {
            self.add_with_chance(draws, 60, Incident::Interruption);
        }
    }

    fn add_failures(&mut self, draws: &mut Draws, is_first: bool, has_open_failure: bool) {
        let repairs_open_failure = has_open_failure && draws.bool_with_percent(65);
        if repairs_open_failure {
            let fraction = 0.5 * draws.random_fraction();
            self.add(fraction, Incident::RepairOfOpenFailure);
        }
        let may_fail = !has_open_failure || repairs_open_failure;
        if may_fail && draws.bool_with_percent(if is_first { 70 } else { 60 }) {
            let calls = self.call_count as f64;
            let fraction = match draws.number_below(100) {
                0..40 => 1.0 - 5.0_f64.min(calls) / calls * draws.random_fraction(),
                40..80 => 0.3 + 0.6 * draws.random_fraction(),
                _ => 0.3 * draws.random_fraction(),
            };
            // The earlier failure is repaired in the first half.
            let earliest = if repairs_open_failure { 0.5 } else { 0.0 };
            self.add(fraction.max(earliest), Incident::Failure);
        }
        let repaired_count = draws.number_between(0, 3.min(1 + self.call_count / 12));
        self.add_several(draws, repaired_count, Incident::RepairedFailure);
    }

    fn add_edits_and_commits(&mut self, draws: &mut Draws, author: &mut Author, is_first: bool) {
        let is_read_only = !is_first && draws.bool_with_percent(10);
        author.edit_percent = if is_read_only { 0 } else { *draws.pick(&[8, 18, 30, 40]) };
        if is_read_only {
            return;
        }
        self.add_anywhere(draws, Incident::Edit);
        self.add_with_chance(draws, 35, Incident::RevertedEdit);
        if draws.bool_with_percent(40) {
            let count = draws.number_between(1, 2);
            self.add_several(draws, count, Incident::Commit);
        }
        if author.traits.renames_file {
            self.add_with_chance(draws, 50, Incident::Rename);
        }
        if author.traits.formats_all_files {
            self.add_with_chance(draws, 50, Incident::FormatAllFiles);
        }
    }

    fn add_distractions_and_large_reads(&mut self, draws: &mut Draws, author: &Author) {
        let done_step_count = draws.number_between(1, 4);
        self.add_several(draws, done_step_count, Incident::DoneStep);
        self.add_with_chance(draws, 25, Incident::Subagent);
        let note_count = draws.number_between(1, 4);
        self.add_several(draws, note_count, Incident::ClientNote);
        if author.traits.has_secrets {
            let secret_count = draws.number_between(1, 2);
            self.add_several(draws, secret_count, Incident::Secret);
            if draws.bool_with_percent(50) {
                self.add(0.97, Incident::Secret);
            }
        }
        let missing_bytes = author.min_segment_bytes.saturating_sub(self.call_count * AVERAGE_CALL_BYTES);
        self.add_several(draws, missing_bytes.div_ceil(LARGE_READ_BYTES), Incident::LargeRead);
    }
}
