//! The report in a browser: on a phone and on a desktop screen, in light and dark mode, with scripts disabled.

use crate::report::sample_run::{report_html, world_with_sample_run};
use plimsoll_testkit::target_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::browser::open_in_browser;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Writes a page that shows the report in a frame of this width, without scripts, and measures what is visible.
fn write_frame_page(world: &World, html: &str, width: u32) -> PathBuf {
    let inside = html.replace('&', "&amp;").replace('"', "&quot;");
    let frame = include_str!("frame.html").replace("WIDTH", &width.to_string()).replace("PAGE", &inside);
    let path = world.path(format!("frame-{width}.html"));
    world.write(&path, &frame);
    path
}

const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// Returns what the outer page has measured.
fn measure_page(world: &World, frame: &Path, options: &[&str]) -> Value {
    let arguments = [&["--dump-dom", "--window-size=1200,900"], options].concat();
    let dom = open_in_browser(world, &arguments, frame, "").stdout;
    let measurement =
        dom.split_once("<pre id=\"measured\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let text = measurement.unwrap_or_else(|| panic!("nothing was measured:\n{dom}")).0;
    serde_json::from_str(&text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).expect(text)
}

fn save_screenshot(world: &World, frame: &Path, name: &str, options: &[&str]) {
    let path = target_dir().join("artifacts").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let screenshot = format!("--screenshot={}", path.display());
    open_in_browser(world, &[options, &[screenshot.as_str()]].concat(), frame, "");
    assert!(std::fs::metadata(&path).unwrap().len() > 10_000, "{}", path.display());
}

#[test]
fn page_is_readable_on_a_phone_in_light_and_dark_mode() {
    let world = world_with_sample_run();
    let html = report_html(&world);
    let phone_frame = write_frame_page(&world, &html, 360);
    let (light, dark) =
        (measure_page(&world, &phone_frame, &[]), measure_page(&world, &phone_frame, &[DARK]));
    for measurement in [&light, &dark] {
        assert!(measurement["text"].as_u64() > Some(2_000), "{measurement:#}");
        assert_eq!(measurement["wider"], serde_json::json!([]), "nothing is wider than the screen");
        assert_eq!(measurement["scrolls"], 360, "{measurement:#}");
        assert_eq!(measurement["faint"], serde_json::json!([]), "text and ground differ enough");
        assert_eq!(measurement["loaded"], 0, "nothing is loaded");
        assert_eq!(
            measurement["headings"],
            serde_json::json!(["1", "2", "2", "2", "2", "3", "2", "2", "2"]),
            "in their order"
        );
        assert_eq!(measurement["bare_headers"], 0, "each header of a table says what it heads");
        assert!(measurement["marks"].as_u64() > Some(10), "{measurement:#}");
        assert_eq!(measurement["untitled"], 0, "each mark has its title");
        assert_eq!(measurement["scripts"], 0);
    }
    assert_ne!(light["ground"], dark["ground"]);
    assert_ne!(light["ink"], dark["ink"]);
    save_screenshot(&world, &phone_frame, "report-phone.png", &["--window-size=500,3200"]);
    save_screenshot(&world, &phone_frame, "report-phone-dark.png", &["--window-size=500,3200", DARK]);
}

#[test]
fn page_fits_a_desktop_screen_and_hostile_text_stays_text() {
    let (world, html) = crate::report::report_page::page_of_hostile_run();
    let measurement = measure_page(&world, &write_frame_page(&world, &html, 360), &[]);
    assert_eq!(
        (&measurement["wider"], &measurement["scrolls"]),
        (&serde_json::json!([]), &serde_json::json!(360)),
        "{measurement:#}"
    );
    assert_eq!(measurement["scripts"], 0);
    let title = measurement["title"].as_str().unwrap();
    assert!(title.contains("</title></style>") && title.ends_with("Plimsoll report"), "{title}");
    let world = world_with_sample_run();
    let desktop_frame = write_frame_page(&world, &report_html(&world), 1_100);
    let measurement = measure_page(&world, &desktop_frame, &[]);
    assert_eq!(
        (&measurement["wider"], &measurement["scrolls"]),
        (&serde_json::json!([]), &serde_json::json!(1_100)),
        "{measurement:#}"
    );
    save_screenshot(&world, &desktop_frame, "report-desk.png", &["--window-size=1100,2600"]);
}
