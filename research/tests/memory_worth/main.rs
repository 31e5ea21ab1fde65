//! Measures whether the working memory is worth its cost: one task in several ways of working, with the real
//! client and a scripted model. `docs/memory-worth.md` shows the results, whatever they are.

mod figures;
mod page;
mod play;
mod task;

use figures::PlayFigures;
use page::Table;
use play::{Window, WorkMode, play_task};
use std::collections::BTreeMap;
use std::sync::Mutex;
use task::{FACTS, TaskSize};

type FiguresByWay = BTreeMap<WorkMode, PlayFigures>;

/// Plays the ways of one table, two at a time. More would only wait for each other.
fn measure_ways(size: TaskSize, window: Window, ways: &[WorkMode]) -> FiguresByWay {
    let (remaining_ways, figures_by_way) =
        (Mutex::new(ways.iter().copied()), Mutex::new(FiguresByWay::new()));
    let play_next_ways = || {
        loop {
            let next = remaining_ways.lock().expect("no panic").next();
            let Some(way) = next else { break };
            let figures = play_task(size, window, way);
            figures_by_way.lock().expect("no panic").insert(way, figures);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(play_next_ways);
        scope.spawn(play_next_ways);
    });
    let figures_by_way = figures_by_way.into_inner().expect("no panic");
    // Facts on the heap must survive every window size and every summary.
    for (way, figures) in
        figures_by_way.iter().filter(|(way, _)| matches!(way, WorkMode::Memory | WorkMode::Frames))
    {
        assert_eq!(figures.visible_at_end, FACTS.len(), "{size:?} {window:?} {way:?}: {figures:?}");
        assert_eq!(
            figures.visible_when_needed.0, figures.visible_when_needed.1,
            "{size:?} {window:?} {way:?}: {figures:?}"
        );
    }
    figures_by_way
}

/// Asserts that a notes file lets the agent look up lost facts and costs less than registers at each step.
fn assert_notes_recover_facts_and_cost_less(figures_by_way: &FiguresByWay) {
    let [notes, memory] = [WorkMode::NotesFile, WorkMode::Memory].map(|way| figures_by_way[&way]);
    assert_eq!(notes.visible_when_needed.0, notes.visible_when_needed.1, "{notes:?}");
    let percent = 100 * (memory.weighted_input - notes.weighted_input) / memory.weighted_input;
    assert!((3..=15).contains(&percent), "{percent}: {notes:?}, {memory:?}");
}

/// Asserts that frames keep the session's own conversation small and never compact.
fn assert_frames_stay_small(figures_by_way: &FiguresByWay) {
    let frames = figures_by_way[&WorkMode::Frames];
    assert_eq!(frames.compaction_count, 0, "{frames:?}");
    for way in [WorkMode::WithoutMemory, WorkMode::Memory] {
        let other_figures = figures_by_way[&way];
        assert!(frames.main_peak < other_figures.main_peak, "{way:?}: {frames:?}, {other_figures:?}");
        assert!(frames.overall_peak < other_figures.overall_peak, "{way:?}: {frames:?}, {other_figures:?}");
    }
}

// The statements of the page about the figures are asserted here, so that they cannot become wrong unnoticed.

#[test]
fn the_page_shows_the_cost_of_a_large_task() {
    let figures_by_way = measure_ways(
        TaskSize::Large,
        Window::Large,
        &[WorkMode::Frames, WorkMode::Memory, WorkMode::NotesFile, WorkMode::WithoutMemory],
    );
    page::check_or_update_table(Table::Large, &figures_by_way);
    assert_notes_recover_facts_and_cost_less(&figures_by_way);
    assert_frames_stay_small(&figures_by_way);
    let [plain, memory, frames] =
        [WorkMode::WithoutMemory, WorkMode::Memory, WorkMode::Frames].map(|way| figures_by_way[&way]);
    assert!(
        frames.input_tokens * 2 < plain.input_tokens && plain.input_tokens < memory.input_tokens,
        "{frames:?}, {plain:?}, {memory:?}"
    );
    assert!(frames.weighted_input * 4 < plain.weighted_input * 3, "{frames:?}, {plain:?}");
    assert!(plain.weighted_input * 11 < memory.weighted_input * 10, "{plain:?}, {memory:?}");
}

#[test]
fn the_page_shows_the_cost_of_a_small_window() {
    let ways = [
        WorkMode::Frames,
        WorkMode::RereadsFiles,
        WorkMode::Memory,
        WorkMode::NotesFile,
        WorkMode::WithoutMemory,
    ];
    let figures_by_way = measure_ways(TaskSize::Large, Window::Small, &ways);
    page::check_or_update_table(Table::LargeInSmallWindow, &figures_by_way);
    assert_notes_recover_facts_and_cost_less(&figures_by_way);
    assert_frames_stay_small(&figures_by_way);
    let plain = figures_by_way[&WorkMode::WithoutMemory];
    assert!(plain.compaction_count > 0 && plain.visible_at_end < FACTS.len(), "{plain:?}");
    assert!(plain.visible_when_needed.0 < plain.visible_when_needed.1, "{plain:?}");
    let [memory, frames, rereads] =
        [WorkMode::Memory, WorkMode::Frames, WorkMode::RereadsFiles].map(|way| figures_by_way[&way]);
    assert!(
        plain.weighted_input.abs_diff(frames.weighted_input) * 10 < frames.weighted_input,
        "{plain:?}, {frames:?}"
    );
    assert!(
        rereads.weighted_input > memory.weighted_input && memory.weighted_input > frames.weighted_input,
        "{rereads:?}, {memory:?}"
    );
}

#[test]
fn the_page_shows_the_cost_of_a_small_task() {
    let figures_by_way = measure_ways(
        TaskSize::Small,
        Window::Large,
        &[WorkMode::Frames, WorkMode::Memory, WorkMode::NotesFile, WorkMode::WithoutMemory],
    );
    page::check_or_update_table(Table::Small, &figures_by_way);
    assert_notes_recover_facts_and_cost_less(&figures_by_way);
    let [plain, memory, frames] =
        [WorkMode::WithoutMemory, WorkMode::Memory, WorkMode::Frames].map(|way| figures_by_way[&way]);
    assert!(
        plain.input_tokens < memory.input_tokens && memory.input_tokens < frames.input_tokens,
        "{plain:?}, {memory:?}, {frames:?}"
    );
    assert!(plain.weighted_input < memory.weighted_input, "{plain:?}, {memory:?}");
    assert!(
        memory.weighted_input * 2 < frames.weighted_input && plain.weighted_input * 3 < frames.weighted_input,
        "{memory:?}, {frames:?}"
    );
}
