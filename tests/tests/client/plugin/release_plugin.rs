//! The plugin of a release, which contains the programs: generated from an archive and installed by the real client.

use super::harness::{count_records, plimsoll_tools, turn_log_kinds};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};
use std::path::Path;
use std::time::Duration;

const PACKAGING_TIMEOUT: Duration = Duration::from_secs(120);

/// Builds the plugin's git repository as users get it, from an archive. The programs under test replace those of the archive at the
/// end: otherwise they would all be packed and compressed three times.
fn build_plugin_repository(world: &World) -> String {
    let name =
        format!("plimsoll-{}-{}-unknown-linux-musl", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    // Programs for Windows, and what is there for them, must not disturb a session on Linux.
    let windows = format!("plimsoll-{}-x86_64-pc-windows-msvc", env!("CARGO_PKG_VERSION"));
    let (bin, out) =
        (find_or_build_bin_dir().display().to_string(), world.home().join("made here").display().to_string());
    let packages = workspace_root().join("scripts/release/packages.sh").display().to_string();
    let repository = format!("{out}/plimsoll-plugin-{}", env!("CARGO_PKG_VERSION"));
    // A debug build contains a lot that this test does not need, so the three programs that the session starts are stripped.
    let script = format!(
        "set -e; mkdir -p '{out}/{name}/bin'; cd '{out}/{name}/bin'; \
         for program in plimsoll plimsoll-mcp plimsoll-fleet plimsoll-linear plimsoll-otel plimsoll-hook {}; do \
         echo '#!/bin/sh' >$program; chmod +x $program; done; cd '{out}'; tar -czf {name}.tar.gz {name}; \
         mkdir -p {windows}/bin; for file in {name}/bin/*; do echo MZ >{windows}/bin/${{file##*/}}.exe; done; \
         python3 -m zipfile -c {windows}.zip {windows}; \
         '{packages}' --out '{out}' >/dev/null; tar -xzf plimsoll-plugin-*.tar.gz; cd '{repository}/plugin/programs/'*; \
         for program in plimsoll plimsoll-mcp; do strip -o $program '{bin}'/$program; done; \
         strip -o plimsoll-hook '{bin}/{}'; cd '{repository}'; \
         git init -q -b main; git add -A; git -c user.name=T -c user.email=t@example.invalid commit -qm 'Release'",
        PROGRAM_NAMES.join(" "),
        PROGRAM_NAMES[0],
    );
    world.command("bash", &["-c", &script]).timeout(PACKAGING_TIMEOUT).run().expect_success();
    repository
}

#[test]
fn a_release_plugin_has_its_programs_and_yields_to_installed_ones() {
    let command = "plimsoll --version --json; command -v plimsoll";
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call(command),
        Step::from_text("done"),
        Step::bash_call("echo"),
        Step::from_text("done"),
    ]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let repository = build_plugin_repository(&world);
    world.claude(&["plugin", "marketplace", "add", &repository]).run().expect_success();
    world.claude(&["plugin", "install", "plimsoll@plimsoll"]).run().expect_success();
    world.claude(&["plugin", "validate", "--json", &repository]).run().expect_success();
    let plugin = format!("{repository}/plugin");
    assert!(world.read(format!("{plugin}/.mcp.json")).contains(";${CLAUDE_PLUGIN_ROOT}/bin\""));
    assert!(Path::new(&plugin).join("hooks/plimsoll-post-tool.exe").exists());
    // `--strict` refuses every plugin with a module, because the client has none of the directory's rules for them.
    let validate = ["plugin", "validate", "--json", "--profile", "directory", &plugin];
    let report = world.claude(&validate).run().expect_success().stdout_json();
    assert_eq!(report["directory"]["findings"], serde_json::json!([]), "{report}");

    let session = ["-p", "hi", "--output-format", "json", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&session).run().expect_success();
    let first = model.main_requests().into_iter().next().expect("a request");
    assert!(
        plimsoll_tools(&first).contains(&"mcp__plugin_plimsoll_plimsoll__push_frame"),
        "the server runs: {first:?}"
    );
    assert!(count_records(&turn_log_kinds(&world), RecordKind::Turn) > 0, "the hooks run");
    // The slash commands call the program by its name.
    let last = model.main_requests().into_iter().last().expect("a request").full_text();
    let uses_plugin_program =
        last.contains("/plugin/bin/plimsoll") && last.contains("{\"program\":\"plimsoll\",");
    assert!(uses_plugin_program, "{last}");

    // A program that the user has installed takes precedence.
    world.write_program(
        world.home().join(".local/bin/plimsoll-post-tool"),
        "#!/bin/sh\ntouch \"$HOME/was-asked\"\necho '{}'\n",
    );
    world.claude(&session).run().expect_success();
    assert!(world.home().join("was-asked").exists());
}
