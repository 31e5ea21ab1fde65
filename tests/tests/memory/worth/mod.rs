//! Is the working memory worth it? One task in several ways of working, with the real client and a scripted model;
//! `docs/memory-worth.md` shows what comes out, whatever it is.

mod figures;
mod page;
mod play;
mod task;

use figures::Figures;
use play::{Way, Window, play};
use std::collections::BTreeMap;
use std::sync::Mutex;
use task::{FACTS, Size};

type Case = (Size, Window, Way);
type Measured = BTreeMap<Case, Figures>;

const CASES: [Case; 10] = [
    (Size::Large, Window::Large, Way::Plain),
    (Size::Large, Window::Large, Way::Memory),
    (Size::Large, Window::Large, Way::Frames),
    (Size::Large, Window::Small, Way::Plain),
    (Size::Large, Window::Small, Way::Rereads),
    (Size::Large, Window::Small, Way::Memory),
    (Size::Large, Window::Small, Way::Frames),
    (Size::Small, Window::Large, Way::Plain),
    (Size::Small, Window::Large, Way::Memory),
    (Size::Small, Window::Large, Way::Frames),
];

/// Plays all cases, two at a time: more would only wait for each other.
fn measure() -> Measured {
    let (left, measured) = (Mutex::new(CASES.into_iter()), Mutex::new(Measured::new()));
    let work = || {
        loop {
            let next = left.lock().expect("no panic").next();
            let Some((size, window, way)) = next else { break };
            let figures = play(size, window, way);
            measured.lock().expect("no panic").insert((size, window, way), figures);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    measured.into_inner().expect("no panic")
}

#[test]
fn the_page_shows_what_the_memory_costs_and_saves() {
    let measured = measure();
    page::check(&measured);
    let of = |size, window, way| measured[&(size, window, way)];

    // No window and no summary takes away what lies on the heap.
    for ((size, window, way), figures) in &measured {
        if matches!(way, Way::Memory | Way::Frames) {
            assert_eq!(figures.visible, FACTS.len(), "{size:?} {window:?} {way:?}: {figures:?}");
            assert_eq!(figures.at_hand.0, figures.at_hand.1, "{size:?} {window:?} {way:?}: {figures:?}");
        }
    }
    let forgetful = of(Size::Large, Window::Small, Way::Plain);
    assert!(forgetful.compactions > 0 && forgetful.visible < FACTS.len(), "{forgetful:?}");
    assert!(forgetful.at_hand.0 < forgetful.at_hand.1, "{forgetful:?}");

    // Frames keep the session's own conversation small, and no conversation of theirs compacts.
    for window in [Window::Large, Window::Small] {
        let frames = of(Size::Large, window, Way::Frames);
        assert_eq!(frames.compactions, 0, "{frames:?}");
        for way in [Way::Plain, Way::Memory] {
            let other = of(Size::Large, window, way);
            assert!(frames.peak_of_main < other.peak_of_main, "{window:?} {way:?}: {frames:?}, {other:?}");
            assert!(frames.peak < other.peak, "{window:?} {way:?}: {frames:?}, {other:?}");
        }
    }

    // What the words of the page say of the figures: here, so that they cannot become untrue unnoticed.
    let [plain, memory, frames] =
        [Way::Plain, Way::Memory, Way::Frames].map(|way| of(Size::Large, Window::Large, way));
    assert!(frames.sent * 2 < plain.sent && plain.sent < memory.sent, "{frames:?}, {plain:?}, {memory:?}");
    assert!(frames.priced * 4 < plain.priced * 3, "{frames:?}, {plain:?}");
    assert!(plain.priced * 11 < memory.priced * 10, "{plain:?}, {memory:?}");
    let [memory, frames, rereads] =
        [Way::Memory, Way::Frames, Way::Rereads].map(|way| of(Size::Large, Window::Small, way));
    assert!(forgetful.priced.abs_diff(frames.priced) * 10 < frames.priced, "{forgetful:?}, {frames:?}");
    assert!(rereads.priced > memory.priced && memory.priced > frames.priced, "{rereads:?}, {memory:?}");
    let [plain, memory, frames] =
        [Way::Plain, Way::Memory, Way::Frames].map(|way| of(Size::Small, Window::Large, way));
    assert!(plain.sent < memory.sent && memory.sent < frames.sent, "{plain:?}, {memory:?}, {frames:?}");
    assert!(plain.priced < memory.priced, "{plain:?}, {memory:?}");
    assert!(memory.priced * 2 < frames.priced && plain.priced * 3 < frames.priced, "{memory:?}, {frames:?}");
}
