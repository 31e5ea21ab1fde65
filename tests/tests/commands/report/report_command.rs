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
    insta::assert_snapshot!(world.stable_text(&none.stderr), @"
    plimsoll: there is no run in [PROJECT], and none was archived
    hint: `plimsoll run` begins one; for sessions without a run use `plimsoll turns stats` and `plimsoll turns export --format html`
    ");
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
    let error = |options: &[&str]| {
        let finished = page(options);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        // Both are ids of the scene, and which of them is named matters.
        world.stable_text(&finished.stderr.replace(RUN, "[THIS RUN]").replace(EARLIER, "[EARLIER RUN]"))
    };
    insta::assert_snapshot!(error(&["--run", "4f2"]), @r#"
    plimsoll: several runs begin with "4f2": [THIS RUN], [EARLIER RUN]
    hint: type more of it
    "#);
    insta::assert_snapshot!(error(&["--run", "beef"]), @r#"
    plimsoll: no run begins with "beef" in [PROJECT]/.claude/plimsoll/runs
    hint: there are [EARLIER RUN]
    "#);
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
    insta::assert_snapshot!(both.stderr, @"plimsoll: a page on standard output cannot be opened: leave out --open or `-o -`");
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
    assert_eq!(fails.code, Some(1), "{fails:?}");
    insta::assert_snapshot!(world.stable_text(&fails.stdout), @"[PROJECT]/.claude/plimsoll/runs/[ID]/report.html");
    insta::assert_snapshot!(world.stable_text(&fails.stderr), @"
    plimsoll: [PROJECT]/programs/xdg-open cannot open it: it ended with exit status: 3
    hint: open the file above in your browser
    ");
    std::fs::remove_file(world.path("programs/xdg-open")).unwrap();
    let none = report(&world, &["--open"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    insta::assert_snapshot!(world.stable_text(&none.stderr), @"
    plimsoll: there is neither xdg-open nor open to open it with
    hint: open the file above in your browser
    ");
}

#[test]
fn an_archive_that_is_damaged_is_named() {
    let world = stage();
    put(&world, &state(), "");
    world.write(format!(".claude/plimsoll/runs/{EARLIER}/state.json"), "[]");
    let corrupt = report(&world, &["--run", EARLIER]);
    assert_eq!(corrupt.code, Some(1), "{corrupt:?}");
    insta::assert_snapshot!(world.stable_text(&corrupt.stderr), @"
    plimsoll: [PROJECT]/.claude/plimsoll/runs/[ID]/state.json does not parse (not a JSON object)
    hint: check the file, then fix or delete it
    ");
    std::fs::remove_file(world.path(format!(".claude/plimsoll/runs/{EARLIER}/state.json"))).unwrap();
    let none = report(&world, &["--run", EARLIER]);
    assert_eq!(none.code, Some(1), "{none:?}");
    insta::assert_snapshot!(world.stable_text(&none.stderr), @"
    plimsoll: the run [ID] left no state in [PROJECT]/.claude/plimsoll/runs/[ID]/state.json: it was not over when the next one began
    hint: `plimsoll log` and `plimsoll query` still show it
    ");
}
