//! `init` and `uninstall`: a user's settings are wholly old or wholly new.

use crate::crash_points::prepared_world::{Play, Stage};
use crate::crash_points::scenario::{Kind, Scenario};
use plimsoll_testkit::world::World;

const USERS: &[&str] = &[".claude/settings.local.json", ".mcp.json"];
const FOREIGN: &str = "{\n    \"zeta\": {\"b\": 1.50, \"a\": null},\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] }\n        ]\n    },\n    \"alpha\": \"\\u00e9\"\n}";
const SERVERS: &str = "{\n\t\"mcpServers\": {\"other\": {\"command\": \"other\"}},\n\t\"z\": 1\n}\n";

/// A project with settings and servers of the user's own, in which these commands were called.
fn project(before: &[&[&str]]) -> Stage {
    let world = World::untouched();
    world.write(".claude/settings.local.json", FOREIGN);
    world.write(".mcp.json", SERVERS);
    let stage = Stage::new(world);
    for arguments in before {
        stage.run(&Play::command(arguments)).expect_success();
    }
    stage
}

fn check(name: &'static str, before: &[&[&str]], arguments: &[&str]) {
    let scenario = Scenario::new(name, Kind::Command, project(before), Play::command(arguments));
    scenario.users(USERS).removes_drafts().check();
}

#[test]
fn it_is_installed() {
    check("init", &[], &["init", "--local"]);
}

#[test]
fn it_is_installed_with_the_memory() {
    check("init --memory", &[], &["init", "--local", "--memory"]);
}

#[test]
fn it_is_taken_out() {
    check("uninstall", &[&["init", "--local"]], &["uninstall", "--local"]);
}

/// In the folder of the client's, which is not ours.
#[test]
fn it_is_installed_for_the_user_and_taken_out() {
    for (before, arguments) in
        [(&[][..], &["init", "--user"]), (&[&["init", "--user"][..]], &["uninstall", "--user"])]
    {
        let scenario =
            Scenario::new("for the user", Kind::Command, project(before), Play::command(arguments));
        scenario.removes_drafts().check();
    }
}

/// What a killed installation left, the removal finds, though there is nothing to take out.
#[test]
fn a_removal_removes_the_drafts_of_a_killed_installation() {
    let stage = project(&[]);
    // The highest number that a process could have is a million times smaller.
    let draft = ".claude/.settings.local.json.4294967295.0a.plimsoll-draft";
    let others = ".claude/.mine.json.4294967295.0a.plimsoll-draft";
    for path in [draft, others] {
        stage.world.write(path, "{}");
    }
    stage.run(&Play::command(&["uninstall", "--local", "--dry-run"])).expect_success();
    assert!(stage.world.exists(draft), "a dry run removes nothing");
    stage.run(&Play::command(&["uninstall", "--local"])).expect_success();
    assert!(!stage.world.exists(draft) && stage.world.exists(others));
}

#[test]
fn it_is_taken_out_with_the_memory() {
    check("uninstall, after --memory", &[&["init", "--local", "--memory"]], &["uninstall", "--local"]);
}
