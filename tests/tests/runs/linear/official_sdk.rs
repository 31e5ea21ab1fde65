//! Checks with Linear's own package: it reads from the server what our programs wrote, and its own writes are accepted
//! as Linear would accept them. The server and our operations are thus measured by the same client.

use crate::linear::harness::{add_note, run_linear_sync, world_with_linear};
use plimsoll_testkit::linear::{API_KEY, ISSUE_IDENTIFIER, LinearServer};
use plimsoll_testkit::{target_dir, workspace_root};
use serde_json::Value;

#[test]
fn the_official_linear_sdk_reads_our_comments_and_writes_its_own() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    add_note(&world, "r1", 1, "checkpoint (level, L2 at 87%). *Stars* and [brackets].");
    assert_eq!(run_linear_sync(&world).code, Some(0));
    let own_comment = server.comments()[0].clone();

    let package = target_dir().join("judges-node/node_modules/@linear/sdk/dist/index.mjs");
    assert!(package.exists(), "{} is missing: scripts/judges.sh installs it", package.display());
    let script = workspace_root().join("tests/judges/linear.mjs").display().to_string();
    let package = package.display().to_string();
    let finished = world
        .command("node", &[&script, &package, &server.url(), API_KEY, ISSUE_IDENTIFIER, &own_comment.id])
        .run();
    let sdk_output: Value = finished.expect_success().stdout_json();

    assert_eq!(sdk_output["viewer"], "Ada");
    assert_eq!(sdk_output["issue"], ISSUE_IDENTIFIER);
    assert_eq!(sdk_output["read"], own_comment.body.as_str(), "our words by the comment's id");
    assert_eq!(sdk_output["listed"][0], own_comment.body.as_str(), "and in the issue's list");
    assert_eq!(sdk_output["twice"]["message"], "Entity Comment with this id already exists");
    assert_eq!(sdk_output["unknownKey"], "AuthenticationLinearError");
    let comments = server.comments();
    assert_eq!(comments.len(), 2, "{comments:#?}");
    assert_eq!((comments[1].body.as_str(), comments[1].edit_count), ("changed", 1), "what the package wrote");
    assert_eq!(sdk_output["changed"], "changed");
}
