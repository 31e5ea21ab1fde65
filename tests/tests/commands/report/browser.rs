//! The page as a browser shows it: on a telephone and a desk, by day and by night, with scripts off.

use crate::report::sample_run::{page, stage};
use plimsoll_testkit::target_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::browser::browser;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A page around ours, of a given width, in which ours may run no script; it measures what is to be seen.
fn framed(world: &World, html: &str, width: u32) -> PathBuf {
    let inside = html.replace('&', "&amp;").replace('"', "&quot;");
    let frame = include_str!("frame.html").replace("WIDTH", &width.to_string()).replace("PAGE", &inside);
    let path = world.path(format!("frame-{width}.html"));
    world.write(&path, &frame);
    path
}

const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// What the page around it has measured.
fn measured(world: &World, frame: &Path, options: &[&str]) -> Value {
    let all = [&["--dump-dom", "--window-size=1200,900"], options].concat();
    let dom = browser(world, &all, frame, "").stdout;
    let found =
        dom.split_once("<pre id=\"measured\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let text = found.unwrap_or_else(|| panic!("nothing was measured:\n{dom}")).0;
    serde_json::from_str(&text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).expect(text)
}

fn picture(world: &World, frame: &Path, name: &str, options: &[&str]) {
    let path = target_dir().join("artifacts").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let screenshot = format!("--screenshot={}", path.display());
    browser(world, &[options, &[screenshot.as_str()]].concat(), frame, "");
    assert!(std::fs::metadata(&path).unwrap().len() > 10_000, "{}", path.display());
}

#[test]
fn on_a_telephone_by_day_and_by_night_everything_can_be_read() {
    let world = stage();
    let html = page(&world);
    let phone = framed(&world, &html, 360);
    let (light, dark) = (measured(&world, &phone, &[]), measured(&world, &phone, &[DARK]));
    for seen in [&light, &dark] {
        assert!(seen["text"].as_u64() > Some(2_000), "{seen:#}");
        assert_eq!(seen["wider"], serde_json::json!([]), "nothing is wider than the screen");
        assert_eq!(seen["scrolls"], 360, "{seen:#}");
        assert_eq!(seen["faint"], serde_json::json!([]), "text and ground differ enough");
        assert_eq!(seen["loaded"], 0, "nothing is loaded");
        assert_eq!(
            seen["headings"],
            serde_json::json!(["1", "2", "2", "2", "2", "3", "2", "2", "2"]),
            "in their order"
        );
        assert_eq!(seen["bare_headers"], 0, "each header of a table says what it heads");
        assert!(seen["marks"].as_u64() > Some(10), "{seen:#}");
        assert_eq!(seen["untitled"], 0, "each mark has its title");
        assert_eq!(seen["scripts"], 0);
    }
    assert_ne!(light["ground"], dark["ground"]);
    assert_ne!(light["ink"], dark["ink"]);
    picture(&world, &phone, "report-phone.png", &["--window-size=500,3200"]);
    picture(&world, &phone, "report-phone-dark.png", &["--window-size=500,3200", DARK]);
}

#[test]
fn on_a_desk_it_fits_and_hostile_words_are_still_words() {
    let (world, html) = crate::report::report_page::hostile();
    let seen = measured(&world, &framed(&world, &html, 360), &[]);
    assert_eq!(
        (&seen["wider"], &seen["scrolls"]),
        (&serde_json::json!([]), &serde_json::json!(360)),
        "{seen:#}"
    );
    assert_eq!(seen["scripts"], 0);
    let title = seen["title"].as_str().unwrap();
    assert!(title.contains("</title></style>") && title.ends_with("Plimsoll report"), "{title}");
    let world = stage();
    let desk = framed(&world, &page(&world), 1_100);
    let seen = measured(&world, &desk, &[]);
    assert_eq!(
        (&seen["wider"], &seen["scrolls"]),
        (&serde_json::json!([]), &serde_json::json!(1_100)),
        "{seen:#}"
    );
    picture(&world, &desk, "report-desk.png", &["--window-size=1100,2600"]);
}
