//! A browser that looks at our pages.

use plimsoll_testkit::world::{Finished, World};
use std::path::Path;
use std::time::Duration;

/// A browser, headless, at a place of a page; it may not have complained about anything.
pub fn browser(world: &World, options: &[&str], page: &Path, place: &str) -> Finished {
    let profile = format!("--user-data-dir={}", world.path("browser").display());
    let usual =
        ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"];
    let address = format!("file://{}{place}", page.display());
    let all: Vec<&str> = usual.iter().chain(options).copied().chain([profile.as_str(), &address]).collect();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let chromium =
        std::env::split_paths(&folders).map(|folder| folder.join("chromium")).find(|path| path.exists());
    let chromium = chromium.expect("chromium is missing: scripts/judges.sh installs it");
    let finished = world.command(chromium, &all).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.contains("CONSOLE"), "{}", finished.stderr);
    finished
}
