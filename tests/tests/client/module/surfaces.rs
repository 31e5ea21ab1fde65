//! The module's own tests, which the client runs for the trees of each surface: `claude plugin test`.

use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;

#[test]
fn the_band_is_drawn_on_every_surface_and_its_button_can_be_pressed() {
    let world = World::without_git();
    let copy = world.path("plugin");
    let source = workspace_root().join("hooks-config/plugin");
    let command = format!(
        "mkdir -p {copy} && cp -R {source}/.claude-plugin {copy}/ && mkdir {copy}/hooks && cp {source}/hooks/plimsoll.ts {copy}/hooks/ && cp {tests}/*.ts {copy}/hooks/ && echo '{{\"modules\": [\"./plimsoll.ts\"]}}' > {copy}/hooks/hooks.json",
        copy = copy.display(),
        source = source.display(),
        tests = workspace_root().join("tests/module").display(),
    );
    world.command("/bin/sh", &["-c", &command]).run().expect_success();
    let finished = world.claude(&["plugin", "test", &copy.display().to_string()]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("0 fail"), "{finished:?}");
}
