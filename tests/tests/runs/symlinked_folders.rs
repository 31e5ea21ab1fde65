//! A project, a home and a temporary folder that are reached through links, as `/tmp` and `/var` are on macOS: it is
//! the same run by either path.

use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, read_journal, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Creates a link to a folder of the world, and returns its path.
fn link_folder(world: &World, folder: &str) -> PathBuf {
    let link = world.project().with_file_name(format!("linked {folder}"));
    symlink(world.project().with_file_name(folder), &link).expect("a link");
    link
}

#[test]
fn a_run_started_through_links_is_the_run_of_the_real_folder() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let [project, home, temporary] = ["project", "home", "tmp"].map(|folder| link_folder(&world, folder));
    for (name, folder) in [("HOME", &home), ("TMPDIR", &temporary), ("CLAUDE_CODE_TMPDIR", &temporary)] {
        world.set_env(name, folder.display().to_string());
    }
    // As in a shell that went there through the link.
    world.set_env("PWD", project.display().to_string());
    let _model = ScriptedAgent::new(honest_agent).with_lifelike_delay().start(&mut world);
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan.", "--max-iterations", "1"], &client[..]].concat();
    let first = world.plimsoll(&arguments).cwd(&project).run();
    assert_eq!(first.code, Some(3), "one session, and not all items: {first:?}");
    let run_folder = world
        .runs_folder()
        .join(world.read_json(".claude/ralph-state.json")["run_id"].as_str().expect("an id"));
    let record: Value = serde_json::from_str(&world.read(run_folder.join("record.json"))).expect("JSON");
    assert_eq!(record["project"], json!(world.project()), "by the name that all ways have in common");

    let status = |folder: &PathBuf| world.plimsoll(&["status", "--json"]).cwd(folder).run().expect_success();
    assert_eq!(status(&project).stdout, status(&world.project()).stdout);
    // Through the other name of everything the run continues, and starts nothing anew.
    world.set_env("HOME", world.home().display().to_string());
    let resumed = world.plimsoll(&["run", "--resume", "--max-iterations", "9"]).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    let journal = read_journal(&world);
    assert_eq!(
        (events_named(&journal, "spawned").len(), events_named(&journal, "run_started").len()),
        (3, 1),
        "{journal:?}"
    );
}
