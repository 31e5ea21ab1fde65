//! Files of each format, as a version of ours wrote them, are read by this one for ever: a run that can go on, sessions with
//! and without a compressed log, the working memory, a handoff. They are in `tests/frozen/FORMAT` and never made anew.

use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use plimsoll_tests::{honest, resume, start};
use std::fs;
use std::path::Path;

/// The project's folder when they were written.
const THERE: &str = "/THE/PROJECT";

fn copy(from: &Path, to: &Path, project: &str) {
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to, project);
            continue;
        }
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(&from, &to).expect("a copy");
        // A run belongs to a place.
        if to.ends_with("record.json") {
            let text = fs::read_to_string(&to).expect("a record").replace(THERE, project);
            fs::write(to, text).expect("a record");
        }
    }
}

/// A world with the files of a format in it.
fn thawed(format: &str) -> World {
    let world = plimsoll_tests::world(plimsoll_tests::ITEMS);
    let frozen = workspace_root().join("tests/frozen").join(format);
    let project = world.project().canonicalize().expect("a project").display().to_string();
    copy(&frozen.join("project"), &world.project(), &project);
    copy(&frozen.join("state"), &world.home().join(".local/state"), &project);
    world
}

#[test]
fn files_of_format_1_are_read() {
    let mut world = thawed("1");
    let said = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        world.plimsoll(&words).run().expect_success().stdout
    };
    let status = said("status");
    for part in ["Dates", "1 of 3 done", "[x] Item one"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert!(said("log").contains("checkpoint"), "{}", said("log"));
    let verified = said("turns verify");
    assert!(verified.lines().count() >= 2 && !verified.contains("bad"), "{verified}");
    assert!(said("turns list --all-streams").contains("echo"), "{}", said("turns list"));
    assert!(said("memory show").contains("Keep the public API."));
    assert!(said("memory history").contains("spec"));
    assert!(said("handoffs").contains(".md"));
    assert!(said("log --why checkpoint").contains("L2"));
    let doctor = world.plimsoll(&["doctor", "--json"]).run().json();
    let codes =
        doctor["findings"].as_array().expect("findings").iter().map(|finding| finding["code"].to_string());
    assert!(
        codes.clone().all(|code| !code.contains("newer_format") && !code.contains("unreadable")),
        "{doctor:#}"
    );

    let _model = start(&mut world, honest);
    let finished = resume(&world, &["--max-iterations", "9"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.json(".claude/ralph-state.json")["completed_items"].as_array().expect("items").len(), 3);
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}
