//! A project, a home and a temporary folder that are reached through links, as `/tmp` and `/var` are on macOS: a run is the same one
//! whichever way somebody comes to it.

use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, ScriptedAgent, events, honest, journal, world};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Makes another name for a folder of the world, and says where.
fn linked(world: &World, folder: &str) -> PathBuf {
    let link = world.project().with_file_name(format!("linked {folder}"));
    symlink(world.project().with_file_name(folder), &link).expect("a link");
    link
}

#[test]
fn a_run_behind_links_is_the_run_of_the_folder_that_they_lead_to() {
    let mut world = world(ITEMS);
    let [project, home, temporary] = ["project", "home", "tmp"].map(|folder| linked(&world, folder));
    for (name, place) in [("HOME", &home), ("TMPDIR", &temporary), ("CLAUDE_CODE_TMPDIR", &temporary)] {
        world.set_env(name, place.display().to_string());
    }
    // As a shell does that has gone there by the link.
    world.set_env("PWD", project.display().to_string());
    let _model = ScriptedAgent::new(honest).at_real_pace().start(&mut world);
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan.", "--max-iterations", "1"], &client[..]].concat();
    let first = world.plimsoll(&arguments).cwd(&project).run();
    assert_eq!(first.code, Some(3), "one session, and not all items: {first:?}");
    let record = world.runs().join(world.json(".claude/ralph-state.json")["run_id"].as_str().expect("an id"));
    let record: Value = serde_json::from_str(&world.read(record.join("record.json"))).expect("JSON");
    assert_eq!(record["project"], json!(world.project()), "by the name that all ways have in common");

    let status = |folder: &PathBuf| world.plimsoll(&["status", "--json"]).cwd(folder).run().expect_success();
    assert_eq!(status(&project).stdout, status(&world.project()).stdout);
    // By the other name of everything: it goes on, and begins nothing anew.
    world.set_env("HOME", world.home().display().to_string());
    let rest = world.plimsoll(&["run", "--resume", "--max-iterations", "9"]).run();
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    let journal = journal(&world);
    assert_eq!(
        (events(&journal, "spawned").len(), events(&journal, "run_started").len()),
        (3, 1),
        "{journal:?}"
    );
}
