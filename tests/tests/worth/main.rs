//! Is the working memory worth it? One task in three ways of working, with the real client and a scripted model.

mod figures;
mod play;
mod task;

use play::{Way, Window, play};
use task::Size;

#[test]
fn try_it() {
    for (size, window, way) in [
        (Size::Large, Window::Large, Way::Plain),
        (Size::Large, Window::Large, Way::Memory),
        (Size::Large, Window::Large, Way::Frames),
        (Size::Large, Window::Small, Way::Plain),
        (Size::Large, Window::Small, Way::Memory),
        (Size::Large, Window::Small, Way::Frames),
        (Size::Small, Window::Large, Way::Plain),
        (Size::Small, Window::Large, Way::Memory),
        (Size::Small, Window::Large, Way::Frames),
    ] {
        let start = std::time::Instant::now();
        let figures = play(size, window, way);
        println!("{window:?} {way:?} {:?} {figures:?}", start.elapsed());
    }
}
