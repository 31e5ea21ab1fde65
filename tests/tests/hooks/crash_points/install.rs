//! `init` and `uninstall`: a user's settings are wholly old or wholly new.

use crate::crash_points::scenario::{Kind, Scenario};
use crate::crash_points::stage::{Play, Stage};
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
    Scenario::new(name, Kind::Command, project(before), Play::command(arguments)).users(USERS).check();
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

#[test]
fn it_is_taken_out_with_the_memory() {
    check("uninstall, after --memory", &[&["init", "--local", "--memory"]], &["uninstall", "--local"]);
}
