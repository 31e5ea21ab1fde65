//! The options of `plimsoll report`: which run, where the page is written, and how it is opened.

use crate::report::sample_run::{
    RUN_ID, run_report, sample_state, world_with_sample_run, write_state_and_journal,
};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const EARLIER_RUN: &str = "4f2b0000-0000-4000-8000-000000000002";

#[test]
fn report_without_a_run_names_the_alternatives() {
    let world = World::without_git();
    let finished = run_report(&world, &[]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    error: there is no run in [PROJECT], and none was archived
    hint: `plimsoll run` starts one; for sessions without a run use `plimsoll turns stats` and `plimsoll turns export --format html`
    ");
    assert!(!world.exists(".claude/plimsoll/runs"), "and it writes nothing");
}

#[test]
fn earlier_run_is_selected_by_a_prefix_of_its_id() {
    let world = world_with_sample_run();
    let mut earlier = sample_state();
    (earlier["run_id"], earlier["task_name"]) = (json!(EARLIER_RUN), json!("The week before"));
    world.write(format!(".claude/plimsoll/runs/{EARLIER_RUN}/state.json"), &earlier.to_string());
    let report_to_stdout = |options: &[&str]| run_report(&world, &[options, &["-o", "-"]].concat());
    assert!(
        report_to_stdout(&["--run", "4f2a"])
            .expect_success()
            .stdout
            .contains("<h1><bdi>ISO dates</bdi></h1>")
    );
    let earlier_page = report_to_stdout(&["--run", "4f2b"]).expect_success().stdout;
    assert!(earlier_page.contains("<h1><bdi>The week before</bdi></h1>"), "{earlier_page}");
    assert!(
        earlier_page.contains("This run cannot be resumed") && !earlier_page.contains("--resume"),
        "{earlier_page}"
    );
    let error = |options: &[&str]| {
        let finished = report_to_stdout(options);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        // `stable_text` would replace both ids by the same placeholder.
        world.replace_varying_parts_with_placeholders(
            &finished.stderr.replace(RUN_ID, "[THIS RUN]").replace(EARLIER_RUN, "[EARLIER RUN]"),
        )
    };
    insta::assert_snapshot!(error(&["--run", "4f2"]), @r#"
    error: several runs start with "4f2": [THIS RUN], [EARLIER RUN]
    hint: type more characters of the id
    "#);
    insta::assert_snapshot!(error(&["--run", "beef"]), @r#"
    error: no run starts with "beef" in [PROJECT]/.claude/plimsoll/runs
    hint: there are [EARLIER RUN]
    "#);
    // Without a current run, the last archived run is used.
    std::fs::remove_file(world.path(".claude/ralph-state.json")).unwrap();
    assert!(report_to_stdout(&[]).expect_success().stdout.contains("The week before"));
}

#[test]
fn page_is_private_and_written_to_the_chosen_path() {
    let world = world_with_sample_run();
    let path = run_report(&world, &[]).expect_success().stdout;
    let mode = std::fs::metadata(path.trim()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(
        run_report(&world, &["-o", "morning/page.html"]).expect_success().stdout.trim(),
        world.path("morning/page.html").display().to_string()
    );
    assert!(world.read("morning/page.html").contains("2026-01-06-2309.md"));
    let both = run_report(&world, &["-o", "-", "--open"]);
    assert!(both.code == Some(2) && both.stdout.is_empty(), "{both:?}");
    insta::assert_snapshot!(both.stderr, @"error: cannot open a page on standard output: leave out --open or `-o -`");
}

/// Returns a PATH of one folder that has only this program.
fn path_with_only_program(world: &World, program: Option<(&str, &str)>) -> String {
    let folder = world.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    if let Some((name, script)) = program {
        world.write_program(folder.join(name), script);
    }
    folder.display().to_string()
}

#[test]
fn open_option_opens_the_page_with_the_system_program() {
    let mut world = world_with_sample_run();
    let target = world.path("it & her; $(touch owned).html");
    let path =
        path_with_only_program(&world, Some(("xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" > opened.txt\n")));
    world.set_env("PATH", path.clone());
    let finished = run_report(&world, &["--open", "-o", &target.display().to_string()]);
    finished.expect_success();
    world.wait_until(|| world.exists("opened.txt"), "it is opened");
    assert_eq!(world.read("opened.txt"), target.display().to_string());
    assert!(!world.exists("owned"));
    path_with_only_program(&world, Some(("xdg-open", "#!/bin/sh\nexit 3\n")));
    let failed = run_report(&world, &["--open"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&failed.stdout), @"[PROJECT]/.claude/plimsoll/runs/[ID]/report.html");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&failed.stderr), @"
    error: [PROJECT]/programs/xdg-open cannot open it: it ended with exit status: 3
    hint: open the file above in your browser
    ");
    std::fs::remove_file(world.path("programs/xdg-open")).unwrap();
    let without_opener = run_report(&world, &["--open"]);
    assert_eq!(without_opener.code, Some(1), "{without_opener:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_opener.stderr), @"
    error: cannot open it: neither xdg-open nor open was found
    hint: open the file above in your browser
    ");
}

#[test]
fn damaged_archive_of_a_run_is_named() {
    let world = world_with_sample_run();
    write_state_and_journal(&world, &sample_state(), "");
    world.write(format!(".claude/plimsoll/runs/{EARLIER_RUN}/state.json"), "[]");
    let corrupt = run_report(&world, &["--run", EARLIER_RUN]);
    assert_eq!(corrupt.code, Some(1), "{corrupt:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&corrupt.stderr), @"
    error: [PROJECT]/.claude/plimsoll/runs/[ID]/state.json does not parse (not a JSON object)
    hint: check the file, then fix or delete it
    ");
    std::fs::remove_file(world.path(format!(".claude/plimsoll/runs/{EARLIER_RUN}/state.json"))).unwrap();
    let missing = run_report(&world, &["--run", EARLIER_RUN]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&missing.stderr), @"
    error: the run [ID] left no state in [PROJECT]/.claude/plimsoll/runs/[ID]/state.json: it had not ended when the next one started
    hint: `plimsoll log` and `plimsoll query` still show it
    ");
}
