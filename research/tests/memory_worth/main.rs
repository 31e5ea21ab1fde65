//! Is the working memory worth it? One task in several ways of working, with the real client and a scripted model;
//! `docs/memory-worth.md` shows what comes out, whatever it is.

mod figures;
mod page;
mod play;
mod task;

use figures::Figures;
use page::Table;
use play::{Way, Window, play};
use std::collections::BTreeMap;
use std::sync::Mutex;
use task::{FACTS, Size};

type Measured = BTreeMap<Way, Figures>;

/// Plays the ways of working of one table, two at a time: more would only wait for each other.
fn measure(size: Size, window: Window, ways: &[Way]) -> Measured {
    let (left, measured) = (Mutex::new(ways.iter().copied()), Mutex::new(Measured::new()));
    let work = || {
        loop {
            let next = left.lock().expect("no panic").next();
            let Some(way) = next else { break };
            let figures = play(size, window, way);
            measured.lock().expect("no panic").insert(way, figures);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let measured = measured.into_inner().expect("no panic");
    // No window and no summary takes away what lies on the heap.
    for (way, figures) in measured.iter().filter(|(way, _)| matches!(way, Way::Memory | Way::Frames)) {
        assert_eq!(figures.visible, FACTS.len(), "{size:?} {window:?} {way:?}: {figures:?}");
        assert_eq!(figures.at_hand.0, figures.at_hand.1, "{size:?} {window:?} {way:?}: {figures:?}");
    }
    measured
}

/// A notes file brings back what was lost, for an agent that looks it up, and costs less than registers at each step.
fn assert_notes_do_as_well(measured: &Measured) {
    let [notes, memory] = [Way::NotesFile, Way::Memory].map(|way| measured[&way]);
    assert_eq!(notes.at_hand.0, notes.at_hand.1, "{notes:?}");
    let percent = 100 * (memory.priced - notes.priced) / memory.priced;
    assert!((3..=15).contains(&percent), "{percent}: {notes:?}, {memory:?}");
}

/// Frames keep the session's own conversation small, and no conversation of theirs compacts.
fn assert_frames_stay_small(measured: &Measured) {
    let frames = measured[&Way::Frames];
    assert_eq!(frames.compactions, 0, "{frames:?}");
    for way in [Way::Plain, Way::Memory] {
        let other = measured[&way];
        assert!(frames.peak_of_main < other.peak_of_main, "{way:?}: {frames:?}, {other:?}");
        assert!(frames.peak < other.peak, "{way:?}: {frames:?}, {other:?}");
    }
}

// What the words of the page say of the figures is asserted here, so that they cannot become untrue unnoticed.

#[test]
fn the_page_shows_what_a_large_task_costs() {
    let measured =
        measure(Size::Large, Window::Large, &[Way::Frames, Way::Memory, Way::NotesFile, Way::Plain]);
    page::check(Table::Large, &measured);
    assert_notes_do_as_well(&measured);
    assert_frames_stay_small(&measured);
    let [plain, memory, frames] = [Way::Plain, Way::Memory, Way::Frames].map(|way| measured[&way]);
    assert!(frames.sent * 2 < plain.sent && plain.sent < memory.sent, "{frames:?}, {plain:?}, {memory:?}");
    assert!(frames.priced * 4 < plain.priced * 3, "{frames:?}, {plain:?}");
    assert!(plain.priced * 11 < memory.priced * 10, "{plain:?}, {memory:?}");
}

#[test]
fn the_page_shows_what_a_small_window_costs() {
    let ways = [Way::Frames, Way::Rereads, Way::Memory, Way::NotesFile, Way::Plain];
    let measured = measure(Size::Large, Window::Small, &ways);
    page::check(Table::SmallWindow, &measured);
    assert_notes_do_as_well(&measured);
    assert_frames_stay_small(&measured);
    let forgetful = measured[&Way::Plain];
    assert!(forgetful.compactions > 0 && forgetful.visible < FACTS.len(), "{forgetful:?}");
    assert!(forgetful.at_hand.0 < forgetful.at_hand.1, "{forgetful:?}");
    let [memory, frames, rereads] = [Way::Memory, Way::Frames, Way::Rereads].map(|way| measured[&way]);
    assert!(forgetful.priced.abs_diff(frames.priced) * 10 < frames.priced, "{forgetful:?}, {frames:?}");
    assert!(rereads.priced > memory.priced && memory.priced > frames.priced, "{rereads:?}, {memory:?}");
}

#[test]
fn the_page_shows_what_a_small_task_costs() {
    let measured =
        measure(Size::Small, Window::Large, &[Way::Frames, Way::Memory, Way::NotesFile, Way::Plain]);
    page::check(Table::Small, &measured);
    assert_notes_do_as_well(&measured);
    let [plain, memory, frames] = [Way::Plain, Way::Memory, Way::Frames].map(|way| measured[&way]);
    assert!(plain.sent < memory.sent && memory.sent < frames.sent, "{plain:?}, {memory:?}, {frames:?}");
    assert!(plain.priced < memory.priced, "{plain:?}, {memory:?}");
    assert!(memory.priced * 2 < frames.priced && plain.priced * 3 < frames.priced, "{memory:?}, {frames:?}");
}
