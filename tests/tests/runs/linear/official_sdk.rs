//! Linear's own package is the judge: what it reads from the server is what our programs wrote, and what it writes is
//! taken as Linear would take it. So server and operations are held to the same measure.

use crate::linear::harness::{note, sync, world};
use plimsoll_testkit::linear::{ISSUE, KEY, LinearServer};
use plimsoll_testkit::{target_dir, workspace_root};
use serde_json::Value;

#[test]
fn linears_own_package_reads_what_we_wrote_and_writes_as_we_do() {
    let server = LinearServer::new();
    let world = world(&server);
    note(&world, "r1", 1, "checkpoint (level, L2 at 87 %). *Stars* and [brackets].");
    assert_eq!(sync(&world).code, Some(0));
    let ours = server.comments()[0].clone();

    let package = target_dir().join("judges-node/node_modules/@linear/sdk/dist/index.mjs");
    assert!(package.exists(), "{} is missing: scripts/judges.sh installs it", package.display());
    let script = workspace_root().join("tests/judges/linear.mjs").display().to_string();
    let package = package.display().to_string();
    let told = world.command("node", &[&script, &package, &server.url(), KEY, ISSUE, &ours.id]).run();
    let told: Value = told.expect_success().json();

    assert_eq!(told["viewer"], "Ada");
    assert_eq!(told["issue"], ISSUE);
    assert_eq!(told["read"], ours.body.as_str(), "our words by the comment's id");
    assert_eq!(told["listed"][0], ours.body.as_str(), "and in the issue's list");
    assert_eq!(told["twice"]["message"], "Entity Comment with this id already exists");
    assert_eq!(told["unknownKey"], "AuthenticationLinearError");
    let comments = server.comments();
    assert_eq!(comments.len(), 2, "{comments:#?}");
    assert_eq!((comments[1].body.as_str(), comments[1].edits), ("changed", 1), "what the package wrote");
    assert_eq!(told["changed"], "changed");
}
