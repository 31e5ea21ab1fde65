//! Opens generated pages in a headless browser.

use plimsoll_testkit::world::{FinishedProgram, World};
use std::path::Path;
use std::time::Duration;

/// Opens a page at a fragment in headless Chromium. Panics if the browser fails or prints a console message.
pub fn open_in_browser(world: &World, options: &[&str], page: &Path, fragment: &str) -> FinishedProgram {
    let profile = format!("--user-data-dir={}", world.path("browser").display());
    let common_options =
        ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"];
    let url = format!("file://{}{fragment}", page.display());
    let arguments: Vec<&str> =
        common_options.iter().chain(options).copied().chain([profile.as_str(), &url]).collect();
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    let chromium = std::env::split_paths(&path_variable)
        .map(|folder| folder.join("chromium"))
        .find(|path| path.exists());
    let chromium = chromium.expect("chromium is missing: scripts/judges.sh installs it");
    let finished = world.command(chromium, &arguments).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.contains("CONSOLE"), "{}", finished.stderr);
    finished
}
