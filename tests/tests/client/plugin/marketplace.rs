//! The plugin, installed from a checkout that serves as a marketplace with one plugin.
//!
//! Tests commands shown in docs/teams.md.

use super::harness::{count_records, plimsoll_tools, turn_log_kinds};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};

#[test]
fn the_plugin_installs_from_a_checkout_that_serves_as_marketplace() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo hi"),
        Step::from_text("done"),
    ]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    // Simulates a client that was not started in a terminal: hooks and server must search these folders by themselves.
    let link = "mkdir -p ~/.local/bin && ln -s \"$BIN\"/plimsoll* ~/.local/bin/";
    let link =
        world.command("/bin/sh", &["-c", link]).env("BIN", find_or_build_bin_dir().display().to_string());
    link.run().expect_success();
    let checkout = workspace_root().display().to_string();
    world.claude(&["plugin", "marketplace", "add", &checkout]).run().expect_success();
    world.claude(&["plugin", "install", "plimsoll@plimsoll"]).run().expect_success();
    let session = ["-p", "hi", "--output-format", "json", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&session).run().expect_success();
    let first = model.main_requests().into_iter().next().expect("a request");
    assert!(plimsoll_tools(&first).contains(&"mcp__plugin_plimsoll_plimsoll__push_frame"), "{first:?}");
    assert!(count_records(&turn_log_kinds(&world), RecordKind::Turn) > 0);
    world.claude(&["plugin", "uninstall", "plimsoll@plimsoll"]).run().expect_success();
    world.claude(&session).run().expect_success();
    let last = model.main_requests().into_iter().last().expect("a request");
    assert!(plimsoll_tools(&last).is_empty(), "{last:?}");
}
