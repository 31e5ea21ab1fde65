//! Which run, where to, and how it is opened.

use crate::report::sample_run::{RUN, put, report, stage, state};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const EARLIER: &str = "4f2b0000-0000-4000-8000-000000000002";

#[test]
fn without_a_run_it_says_what_else_there_is() {
    let world = World::without_git();
    let none = report(&world, &[]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    assert!(
        none.stderr.contains("there is no run in") && none.stderr.contains("plimsoll turns stats"),
        "{none:?}"
    );
    assert!(!world.exists(".claude/plimsoll/runs"), "and it writes nothing");
}

#[test]
fn an_earlier_run_is_named_by_the_beginning_of_its_id() {
    let world = stage();
    let mut earlier = state();
    (earlier["run_id"], earlier["task_name"]) = (json!(EARLIER), json!("The week before"));
    world.write(format!(".claude/plimsoll/runs/{EARLIER}/state.json"), &earlier.to_string());
    let page = |options: &[&str]| report(&world, &[options, &["-o", "-"]].concat());
    assert!(page(&["--run", "4f2a"]).expect_success().stdout.contains("<h1><bdi>ISO dates</bdi></h1>"));
    let before = page(&["--run", "4f2b"]).expect_success().stdout;
    assert!(before.contains("<h1><bdi>The week before</bdi></h1>"), "{before}");
    assert!(before.contains("This run cannot be resumed") && !before.contains("--resume"), "{before}");
    let several = page(&["--run", "4f2"]);
    assert!(
        several.code == Some(1) && several.stderr.contains(RUN) && several.stderr.contains(EARLIER),
        "{several:?}"
    );
    let unknown = page(&["--run", "beef"]);
    assert!(
        unknown.code == Some(1) && unknown.stderr.contains("\"beef\"") && unknown.stderr.contains(EARLIER),
        "{unknown:?}"
    );
    // The present one is gone: then it is the last.
    std::fs::remove_file(world.path(".claude/ralph-state.json")).unwrap();
    assert!(page(&[]).expect_success().stdout.contains("The week before"));
}

#[test]
fn a_page_is_its_owners_and_lies_where_it_was_wanted() {
    let world = stage();
    let path = report(&world, &[]).expect_success().stdout;
    let mode = std::fs::metadata(path.trim()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(
        report(&world, &["-o", "morning/page.html"]).expect_success().stdout.trim(),
        world.path("morning/page.html").display().to_string()
    );
    assert!(world.read("morning/page.html").contains("2026-01-06-2309.md"));
    let both = report(&world, &["-o", "-", "--open"]);
    assert!(both.code == Some(2) && both.stdout.is_empty(), "{both:?}");
}

/// A PATH with our programs and nothing else but these.
fn only(world: &World, program: Option<(&str, &str)>) -> String {
    let folder = world.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    if let Some((name, script)) = program {
        world.write_program(folder.join(name), script);
    }
    folder.display().to_string()
}

#[test]
fn the_page_is_opened_by_the_program_of_the_system() {
    let mut world = stage();
    let target = world.path("it & her; $(touch owned).html");
    let path = only(&world, Some(("xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" > opened.txt\n")));
    world.set_env("PATH", path.clone());
    let finished = report(&world, &["--open", "-o", &target.display().to_string()]);
    finished.expect_success();
    world.wait_until(|| world.exists("opened.txt"), "it is opened");
    assert_eq!(world.read("opened.txt"), target.display().to_string());
    assert!(!world.exists("owned"));
    only(&world, Some(("xdg-open", "#!/bin/sh\nexit 3\n")));
    let fails = report(&world, &["--open"]);
    assert!(
        fails.code == Some(1)
            && fails.stderr.contains("cannot open it")
            && fails.stdout.contains("report.html"),
        "{fails:?}"
    );
    std::fs::remove_file(world.path("programs/xdg-open")).unwrap();
    let none = report(&world, &["--open"]);
    assert!(none.code == Some(1) && none.stderr.contains("neither xdg-open nor open"), "{none:?}");
}

#[test]
fn an_archive_that_is_damaged_is_named() {
    let world = stage();
    put(&world, &state(), "");
    world.write(format!(".claude/plimsoll/runs/{EARLIER}/state.json"), "[]");
    let corrupt = report(&world, &["--run", EARLIER]);
    assert!(corrupt.code == Some(1) && corrupt.stderr.contains("state.json"), "{corrupt:?}");
    std::fs::remove_file(world.path(format!(".claude/plimsoll/runs/{EARLIER}/state.json"))).unwrap();
    let none = report(&world, &["--run", EARLIER]);
    assert!(none.code == Some(1) && none.stderr.contains("left no state"), "{none:?}");
}
