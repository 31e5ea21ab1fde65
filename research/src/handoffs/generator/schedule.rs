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
pub(super) enum Beat {
    EarlierRequest,
    MainRequest,
    Addition,
    Encouragement,
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

/// The beats of a segment by the routine call before which they happen.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) call_count: usize,
    beats: BTreeMap<usize, Vec<Beat>>,
}

impl Schedule {
    pub(super) fn beats_at(&self, position: usize) -> Vec<Beat> {
        self.beats.get(&position).cloned().unwrap_or_default()
    }

    fn add(&mut self, fraction: f64, beat: Beat) {
        let position = (fraction * self.call_count as f64) as usize;
        self.beats.entry(position.min(self.call_count - 1)).or_default().push(beat);
    }

    fn add_anywhere(&mut self, draws: &mut Draws, beat: Beat) {
        let fraction = draws.random_fraction();
        self.add(fraction, beat);
    }

    fn add_with_chance(&mut self, draws: &mut Draws, percent: usize, beat: Beat) {
        if draws.bool_with_percent(percent) {
            self.add_anywhere(draws, beat);
        }
    }

    fn add_several(&mut self, draws: &mut Draws, count: usize, beat: Beat) {
        for _ in 0..count {
            self.add_anywhere(draws, beat);
        }
    }

    /// Draws the beats of the author's current segment.
    pub(super) fn draw(author: &mut Author) -> Schedule {
        let mut draws = author.draws.substream("schedule");
        let is_first = author.segment == 1;
        let call_count = draws.log_uniform_number(5, 150);
        let mut schedule = Schedule { call_count, beats: BTreeMap::new() };
        schedule.add_requests(&mut draws, author);
        schedule.add_failures(&mut draws, is_first, author.work.failure.is_some());
        schedule.add_edits(&mut draws, author, is_first);
        if is_first || draws.bool_with_percent(50) {
            schedule.add_anywhere(&mut draws, Beat::Decision);
        }
        if author.traits.list_kind != ListKind::None && draws.bool_with_percent(60) {
            let count = draws.number_between(1, 3);
            schedule.add_several(&mut draws, count, Beat::FinishedItem);
        }
        schedule.add_noise(&mut draws, author);
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
                self.add(0.0, Beat::EarlierRequest);
            }
            self.add(position, Beat::MainRequest);
        } else if draws.bool_with_percent(35) {
            self.add_anywhere(draws, Beat::MainRequest);
        }
        if draws.bool_with_percent(50) {
            for _ in 0..draws.number_between(1, 3) {
                let beat = if draws.bool_with_percent(70) { Beat::Addition } else { Beat::Encouragement };
                self.add_anywhere(draws, beat);
            }
        }
        if author.traits.is_interrupted {
            self.add_with_chance(draws, 60, Beat::Interruption);
        }
    }

    fn add_failures(&mut self, draws: &mut Draws, is_first: bool, has_open_failure: bool) {
        let repairs_open_failure = has_open_failure && draws.bool_with_percent(65);
        if repairs_open_failure {
            let fraction = 0.5 * draws.random_fraction();
            self.add(fraction, Beat::RepairOfOpenFailure);
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
            self.add(fraction.max(earliest), Beat::Failure);
        }
        let repaired_count = draws.number_between(0, 3.min(1 + self.call_count / 12));
        self.add_several(draws, repaired_count, Beat::RepairedFailure);
    }

    fn add_edits(&mut self, draws: &mut Draws, author: &mut Author, is_first: bool) {
        let is_read_only = !is_first && draws.bool_with_percent(10);
        author.edit_percent = if is_read_only { 0 } else { *draws.pick(&[8, 18, 30, 40]) };
        if is_read_only {
            return;
        }
        self.add_anywhere(draws, Beat::Edit);
        self.add_with_chance(draws, 35, Beat::RevertedEdit);
        if draws.bool_with_percent(40) {
            let count = draws.number_between(1, 2);
            self.add_several(draws, count, Beat::Commit);
        }
        if author.traits.renames_file {
            self.add_with_chance(draws, 50, Beat::Rename);
        }
        if author.traits.formats_all_files {
            self.add_with_chance(draws, 50, Beat::FormatAllFiles);
        }
    }

    fn add_noise(&mut self, draws: &mut Draws, author: &Author) {
        let done_step_count = draws.number_between(1, 4);
        self.add_several(draws, done_step_count, Beat::DoneStep);
        self.add_with_chance(draws, 25, Beat::Subagent);
        let note_count = draws.number_between(1, 4);
        self.add_several(draws, note_count, Beat::ClientNote);
        if author.traits.has_secrets {
            let secret_count = draws.number_between(1, 2);
            self.add_several(draws, secret_count, Beat::Secret);
            if draws.bool_with_percent(50) {
                self.add(0.97, Beat::Secret);
            }
        }
        let missing_bytes = author.min_segment_bytes.saturating_sub(self.call_count * AVERAGE_CALL_BYTES);
        self.add_several(draws, missing_bytes.div_ceil(LARGE_READ_BYTES), Beat::LargeRead);
    }
}
