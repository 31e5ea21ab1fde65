//! The plugin of a release, which has the programs: generated from an archive, and installed by the real client.

use super::harness::{count, tools, turn_log};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{bin_dir, workspace_root};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

/// The plugin's repository as git gives it to others, made from an archive, with the programs under test in it. They take the
/// place of those in the archive only when everything is made: else it would all be packed and compressed three times.
fn repository(world: &World) -> String {
    let name =
        format!("plimsoll-{}-{}-unknown-linux-musl", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let (bin, out) = (bin_dir().display().to_string(), world.home().join("made").display().to_string());
    let packages = workspace_root().join("scripts/release/packages.sh").display().to_string();
    let repository = format!("{out}/plimsoll-plugin-{}", env!("CARGO_PKG_VERSION"));
    // A debug build carries much along that nobody needs here, and the session starts three of these programs.
    let line = format!(
        "set -e; mkdir -p '{out}/{name}/bin'; cd '{out}/{name}/bin'; \
         for program in plimsoll plimsoll-mcp plimsoll-fleet plimsoll-linear plimsoll-otel plimsoll-hook {}; do \
         echo '#!/bin/sh' >$program; chmod +x $program; done; cd '{out}'; tar -czf {name}.tar.gz {name}; \
         '{packages}' --out '{out}' >/dev/null; tar -xzf plimsoll-plugin-*.tar.gz; cd '{repository}/plugin/programs/'*; \
         for program in plimsoll plimsoll-mcp; do strip -o $program '{bin}'/$program; done; \
         strip -o plimsoll-hook '{bin}/{}'; cd '{repository}'; \
         git init -q -b main; git add -A; git -c user.name=T -c user.email=t@example.invalid commit -qm 'Release'",
        PROGRAM_NAMES.join(" "),
        PROGRAM_NAMES[0],
    );
    world.command("bash", &["-c", &line]).timeout(LONG).run().expect_success();
    repository
}

#[test]
fn the_plugin_of_a_release_needs_nothing_else_and_gives_way_to_what_is_installed() {
    let told = "plimsoll --version --json; command -v plimsoll";
    let model = ScriptedModel::steps(vec![
        Step::bash(told),
        Step::text("done"),
        Step::bash("echo"),
        Step::text("done"),
    ]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    let repository = repository(&world);
    world.claude(&["plugin", "marketplace", "add", &repository]).run().expect_success();
    world.claude(&["plugin", "install", "plimsoll@plimsoll"]).run().expect_success();
    world.claude(&["plugin", "validate", "--strict", "--json", &repository]).run().expect_success();
    let plugin = format!("{repository}/plugin");
    let validate = ["plugin", "validate", "--strict", "--json", "--profile", "directory", &plugin];
    let report = world.claude(&validate).run().expect_success().json();
    assert_eq!(report["directory"]["findings"], serde_json::json!([]), "{report}");

    let session = ["-p", "hi", "--output-format", "json", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&session).run().expect_success();
    let first = model.main_requests().into_iter().next().expect("a request");
    assert!(
        tools(&first).contains(&"mcp__plugin_plimsoll_plimsoll__push_frame"),
        "the server runs: {first:?}"
    );
    assert!(count(&turn_log(&world), RecordKind::Turn) > 0, "the hooks run");
    // The slash commands use the command by its name.
    let last = model.main_requests().into_iter().last().expect("a request").text();
    let of_plugin = last.contains("/plugin/bin/plimsoll") && last.contains("{\"program\":\"plimsoll\",");
    assert!(of_plugin, "{last}");

    // A program of the user's own comes first.
    world.write_program(
        world.home().join(".local/bin/plimsoll-post-tool"),
        "#!/bin/sh\ntouch \"$HOME/was-asked\"\necho '{}'\n",
    );
    world.claude(&session).run().expect_success();
    assert!(world.home().join("was-asked").exists());
}
