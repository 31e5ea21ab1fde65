//! The plugin installed from a checkout, as a marketplace of one.
//!
//! Tests commands shown in docs/start.md.

use super::harness::{count, tools, turn_log};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{bin_dir, workspace_root};

#[test]
fn a_checkout_is_a_marketplace_from_which_the_plugin_is_installed_for_all_sessions() {
    let model = ScriptedModel::steps(vec![Step::bash("echo hi"), Step::text("done")]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    // As for a client that was not started in a terminal: hooks and server must look here by themselves.
    let link = "mkdir -p ~/.local/bin && ln -s \"$BIN\"/plimsoll* ~/.local/bin/";
    let link = world.command("/bin/sh", &["-c", link]).env("BIN", bin_dir().display().to_string());
    link.run().expect_success();
    let checkout = workspace_root().display().to_string();
    world.claude(&["plugin", "marketplace", "add", &checkout]).run().expect_success();
    world.claude(&["plugin", "install", "plimsoll@plimsoll"]).run().expect_success();
    let session = ["-p", "hi", "--output-format", "json", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&session).run().expect_success();
    let first = model.main_requests().into_iter().next().expect("a request");
    assert!(tools(&first).contains(&"mcp__plugin_plimsoll_plimsoll__push_frame"), "{first:?}");
    assert!(count(&turn_log(&world), RecordKind::Turn) > 0);
    world.claude(&["plugin", "uninstall", "plimsoll@plimsoll"]).run().expect_success();
    world.claude(&session).run().expect_success();
    let last = model.main_requests().into_iter().last().expect("a request");
    assert!(tools(&last).is_empty(), "{last:?}");
}
