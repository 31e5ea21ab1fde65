//! `init` and `uninstall`: at any time a user's settings file is entirely the old or entirely the new one.

use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use crate::crash_points::scenario::{ProgramKind, Scenario};
use plimsoll_testkit::world::World;

const USER_FILES: &[&str] = &[".claude/settings.local.json", ".mcp.json"];
const USER_SETTINGS: &str = "{\n    \"zeta\": {\"b\": 1.50, \"a\": null},\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] }\n        ]\n    },\n    \"alpha\": \"\\u00e9\"\n}";
const USER_SERVERS: &str = "{\n\t\"mcpServers\": {\"other\": {\"command\": \"other\"}},\n\t\"z\": 1\n}\n";

/// A project with the user's own settings and MCP servers, in which these commands were run.
fn prepared_project(earlier_commands: &[&[&str]]) -> PreparedWorld {
    let world = World::without_plimsoll_files();
    world.write(".claude/settings.local.json", USER_SETTINGS);
    world.write(".mcp.json", USER_SERVERS);
    let prepared = PreparedWorld::new(world);
    for arguments in earlier_commands {
        prepared.run(&Invocation::plimsoll(arguments)).expect_success();
    }
    prepared
}

fn check_install_command(name: &'static str, earlier_commands: &[&[&str]], arguments: &[&str]) {
    let scenario = Scenario::new(
        name,
        ProgramKind::Command,
        prepared_project(earlier_commands),
        Invocation::plimsoll(arguments),
    );
    scenario.with_user_files(USER_FILES).expecting_draft_removal().assert_survives_kills_and_io_errors();
}

#[test]
fn init_survives_kills_and_io_errors() {
    check_install_command("init", &[], &["init", "--local"]);
}

#[test]
fn init_with_memory_survives_kills_and_io_errors() {
    check_install_command("init --memory", &[], &["init", "--local", "--memory"]);
}

#[test]
fn uninstall_survives_kills_and_io_errors() {
    check_install_command("uninstall", &[&["init", "--local"]], &["uninstall", "--local"]);
}

/// The user scope writes into the client's own folder below the home folder.
#[test]
fn user_scope_init_and_uninstall_survive_kills_and_io_errors() {
    for (earlier_commands, arguments) in
        [(&[][..], &["init", "--user"]), (&[&["init", "--user"][..]], &["uninstall", "--user"])]
    {
        let scenario = Scenario::new(
            "for the user",
            ProgramKind::Command,
            prepared_project(earlier_commands),
            Invocation::plimsoll(arguments),
        );
        scenario.expecting_draft_removal().assert_survives_kills_and_io_errors();
    }
}

/// `uninstall` removes the drafts of a killed `init` even if there is nothing to uninstall.
#[test]
fn uninstall_removes_the_drafts_of_a_killed_init() {
    let prepared = prepared_project(&[]);
    // Process IDs are far smaller than this number, so no running process owns the draft.
    let draft = ".claude/.settings.local.json.4294967295.0a.plimsoll-draft";
    let foreign_draft = ".claude/.mine.json.4294967295.0a.plimsoll-draft";
    for path in [draft, foreign_draft] {
        prepared.world.write(path, "{}");
    }
    prepared.run(&Invocation::plimsoll(&["uninstall", "--local", "--dry-run"])).expect_success();
    assert!(prepared.world.exists(draft), "a dry run removes nothing");
    prepared.run(&Invocation::plimsoll(&["uninstall", "--local"])).expect_success();
    assert!(!prepared.world.exists(draft) && prepared.world.exists(foreign_draft));
}

#[test]
fn uninstall_with_memory_survives_kills_and_io_errors() {
    check_install_command(
        "uninstall, after --memory",
        &[&["init", "--local", "--memory"]],
        &["uninstall", "--local"],
    );
}
