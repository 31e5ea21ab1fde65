//! npm installs the npm packages from local files, without the network and without the user's npm configuration.
//!
//! docs/start.md names the commands.

use crate::packaging::sample_releases::{VERSION, add_windows_archives, serve_folder, write_sample_release};
use crate::packaging::{COMMAND_TIMEOUT, run_bash_line, script_launch, tree_listing};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the platform of this machine, as the npm packages name it.
fn platform_of_this_machine() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" }
}

/// A world with the packages in `out`; the programs in them are scripts that only print their names.
fn world_with_npm_packages() -> World {
    let world = World::without_plimsoll_files().without_plimsoll_programs();
    write_sample_release(&world, "out", VERSION);
    build_npm_packages(&world);
    world
}

fn build_npm_packages(world: &World) {
    script_launch(world, "release/packages.sh", &["--out", "out"])
        .timeout(COMMAND_TIMEOUT)
        .run()
        .expect_success();
    world.write("package.json", "{\"name\": \"mine\", \"version\": \"1.0.0\"}\n");
}

/// Replaces the installed scripts by the real command and the real hooks, stripped of debug information. The packages do not
/// contain them, because npm would take long to pack them.
fn install_real_programs(world: &World) {
    let installed = format!("node_modules/@plimsoll/{}/bin", platform_of_this_machine());
    let bin = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let strip_command = format!(
        "strip -o {installed}/plimsoll '{bin}/plimsoll' && strip -o {installed}/plimsoll-hook '{bin}/plimsoll-post-tool'"
    );
    run_bash_line(world, &strip_command).expect_success();
}

fn run_npm(world: &World, arguments: &str) -> FinishedProgram {
    run_bash_line(world, &format!("npm {arguments} --no-audit --no-fund --no-update-notifier"))
}

fn collect_hook_commands(value: &Value, commands: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            commands.extend(fields.get("command").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect_hook_commands(value, commands));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_hook_commands(value, commands)),
        _ => {}
    }
}

#[test]
fn init_copies_the_programs_so_hooks_survive_npm_uninstall() {
    let world = world_with_npm_packages();
    let both_packages =
        format!("./out/plimsoll-{}-{VERSION}.tgz ./out/plimsoll-{VERSION}.tgz", platform_of_this_machine());
    run_npm(&world, &format!("install --offline {both_packages}")).expect_success();
    let listed = run_bash_line(&world, "ls node_modules/@plimsoll").stdout;
    assert_eq!(listed.trim(), platform_of_this_machine());
    install_real_programs(&world);
    let home = world.home().display().to_string();
    let copied = format!("{home}/.local/share/plimsoll/versions/{VERSION}/bin");
    let stable = format!("{home}/.local/share/plimsoll/bin");
    let settings = world.home().join(".claude/settings.json");

    let before = tree_listing(&world, &home);
    let dry_run_output =
        run_bash_line(&world, "npx --offline plimsoll init --user --dry-run --diff").expect_success().stdout;
    assert!(dry_run_output.contains(&copied) && dry_run_output.contains(&stable), "{dry_run_output}");
    assert!(
        !dry_run_output.contains("node_modules") && !dry_run_output.contains("Warning"),
        "{dry_run_output}"
    );
    let without_npm_files =
        |text: &str| text.lines().filter(|line| !line.contains("./.npm")).collect::<Vec<_>>().join("\n");
    assert_eq!(
        without_npm_files(&tree_listing(&world, &home)),
        without_npm_files(&before),
        "a dry run copies nothing"
    );

    let stdout = run_bash_line(&world, "npx --offline plimsoll init --user --memory").expect_success().stdout;
    assert!(
        stdout.contains(&format!("{copied}: the programs, copied")) && !stdout.contains("Warning"),
        "{stdout}"
    );
    let mut hook_commands = Vec::new();
    collect_hook_commands(&world.read_json(&settings), &mut hook_commands);
    assert!(hook_commands.len() > 8, "{hook_commands:?}");
    assert!(
        hook_commands.iter().all(|command| command.starts_with(&format!("{stable}/"))),
        "{hook_commands:?}"
    );
    for name in ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"] {
        let linked = run_bash_line(&world, &format!("readlink ~/.local/bin/{name}")).expect_success().stdout;
        assert_eq!(linked.trim(), format!("{stable}/{name}"));
        assert!(Path::new(&copied).join(name).exists(), "{name} is copied");
    }
    // Starts what npx would start, without the second that npx takes.
    let doctor = run_bash_line(&world, "node_modules/.bin/plimsoll doctor --json").stdout_json();
    assert_eq!(doctor["programs"]["folder"], copied.as_str());
    let codes: Vec<_> =
        doctor["findings"].as_array().expect("findings").iter().map(|one| &one["code"]).collect();
    let is_program_error = |code: &&&Value| {
        ["programs.missing", "programs.several", "settings.missing_program"].iter().any(|bad| **code == bad)
    };
    assert!(codes.iter().find(is_program_error).is_none(), "{codes:?}");

    // A second `init` copies only a damaged file again.
    world.write(format!("{copied}/plimsoll-mcp"), "spoiled");
    run_bash_line(&world, "node_modules/.bin/plimsoll init --user").expect_success();
    assert!(world.read(format!("{copied}/plimsoll-mcp")).starts_with("#!/bin/sh"));

    run_npm(&world, "uninstall plimsoll").expect_success();
    run_bash_line(&world, "rm -rf node_modules ~/.npm").expect_success();
    for command in ["plimsoll-post-tool", "plimsoll-stop-gate"] {
        let version = run_bash_line(&world, &format!("'{stable}/{command}' version")).expect_success().stdout;
        assert_eq!(version, format!("{command} {VERSION}\n"));
    }
    run_bash_line(&world, "~/.local/bin/plimsoll uninstall --user").expect_success();
    assert!(!settings.exists());
    assert_eq!(run_bash_line(&world, "ls ~/.local/bin").stdout, "");
}

#[test]
fn npm_launcher_names_missing_packages_and_forwards_the_exit_status() {
    let world = world_with_npm_packages();
    run_npm(&world, &format!("install --offline --omit=optional ./out/plimsoll-{VERSION}.tgz"))
        .expect_success();
    let missing = run_bash_line(&world, "npx --offline plimsoll --version");
    assert_eq!(missing.code, Some(1), "{missing:?}");
    let package = format!("@plimsoll/{}", platform_of_this_machine());
    for words in [
        &format!("the package {package} is missing"),
        "--omit=optional",
        &format!("npm install {package}@{VERSION}"),
    ] {
        assert!(missing.stderr.contains(words), "{words}: {missing:?}");
    }
    for (platform, words) in [
        (
            "plan9",
            &["no program for plan9-", "@plimsoll/linux-x64", "cargo install --locked --git https://"][..],
        ),
        ("win32", &["no programs for Windows yet; use WSL"][..]),
    ] {
        let find = format!(
            "node -e 'Object.defineProperty(process, \"platform\", {{value: \"{platform}\"}}); require(\"./node_modules/plimsoll/bin/find.js\")'"
        );
        let elsewhere = run_bash_line(&world, &find);
        assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
        assert!(words.iter().all(|word| elsewhere.stderr.contains(word)), "{elsewhere:?}");
    }
    let manifest = world.read("node_modules/plimsoll/package.json");
    let manifest: Value = serde_json::from_str(&manifest).expect("a package");
    assert_eq!(manifest["os"], json!(["linux", "darwin"]));

    let program = format!("node_modules/{package}/bin/plimsoll");
    world.write(format!("node_modules/{package}/package.json"), "{}");
    let start = "node_modules/.bin/plimsoll";
    world.write_program(&program, "#!/bin/sh\nprintf '%s|' \"$@\"; cat; exit 7\n");
    let finished = world.command(start, &["a b", "*"]).stdin("input").run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "a b|*|input"));
    world.write_program(&program, "#!/bin/sh\nkill -KILL $$\n");
    assert_eq!(world.command(start, &[]).run().signal, Some(9));
    world.write_program(
        &program,
        "#!/bin/sh\ntrap 'echo ended; exit 3' TERM INT\necho ready\nwhile :; do sleep 0.05; done\n",
    );
    for send_signal in [
        plimsoll_testkit::world::RunningProgram::terminate,
        plimsoll_testkit::world::RunningProgram::interrupt,
    ] {
        let mut running = world.command(start, &[]).spawn();
        world.wait_until(|| running.stdout_so_far().contains("ready"), "the program runs");
        send_signal(&mut running);
        let finished = running.wait_or_kill_and_panic(COMMAND_TIMEOUT);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), "ready\nended\n"), "{finished:?}");
    }
    // The program inherits the ignored SIGHUP of `nohup`: it is the lowest bit of the mask.
    world.write_program(&program, "#!/bin/sh\nsed -n 's/^SigIgn:.*\\(.\\)$/\\1/p' /proc/$$/status\n");
    let hangup_is_ignored = |wrapper: &str| {
        let last = run_bash_line(&world, &format!("{wrapper} {start} 2>/dev/null")).expect_success().stdout;
        u8::from_str_radix(last.trim(), 16).expect("a mask") & 1
    };
    assert_eq!((hangup_is_ignored("nohup"), hangup_is_ignored("env")), (1, 0));
    run_bash_line(&world, &format!("chmod 644 '{program}'")).expect_success();
    let broken = world.command(start, &[]).run();
    assert!(broken.code == Some(1) && broken.stderr.contains("cannot start"), "{broken:?}");
}

/// npm's own code writes the files that start a command on Windows. The one for a shell runs here, too.
#[test]
fn on_windows_npm_starts_the_program_of_the_windows_package_without_node() {
    let world = World::without_plimsoll_files().without_plimsoll_programs();
    write_sample_release(&world, "out", VERSION);
    add_windows_archives(&world, "out", VERSION);
    build_npm_packages(&world);
    let package = "node_modules/@plimsoll/win32-x64";
    for (folder, file) in [(package, "plimsoll-win32-x64"), ("node_modules/plimsoll", "plimsoll")] {
        let unpack = format!(
            "mkdir -p {folder} && tar -xzf out/{file}-{VERSION}.tgz -C {folder} --strip-components 1"
        );
        run_bash_line(&world, &unpack).expect_success();
    }
    // npm reads the first line of a script, so this is a program, like the one of a release.
    run_bash_line(&world, &format!("cp \"$(type -P echo)\" {package}/bin/plimsoll.exe")).expect_success();
    let script = "\
        const { createRequire } = require('node:module');\n\
        const npm = createRequire(require('node:fs').realpathSync(process.argv[2]));\n\
        const check = (name) => npm('npm-install-checks').checkPlatform(require(`./node_modules/${name}/package.json`),\n  \
          false, { os: 'win32', cpu: 'x64' });\n\
        try { check('plimsoll'); } catch (error) { console.log(error.code); }\n\
        check('@plimsoll/win32-x64');\n\
        const { bin } = require('./node_modules/@plimsoll/win32-x64/package.json');\n\
        npm('cmd-shim')(`node_modules/@plimsoll/win32-x64/${bin.plimsoll}`, 'starters/plimsoll');\n";
    world.write("as-on-windows.js", script);
    let checked = run_bash_line(&world, "node as-on-windows.js \"$(command -v npm)\"").expect_success();
    assert_eq!(checked.stdout, "EBADPLATFORM\n", "npm refuses the main package and accepts the other");
    let cmd = world.read("starters/plimsoll.cmd");
    let program_line = r#""%dp0%\..\node_modules\@plimsoll\win32-x64\bin\plimsoll.exe"   %*"#;
    assert!(cmd.contains(program_line), "{cmd}");
    for starter in ["plimsoll.cmd", "plimsoll.ps1", "plimsoll"] {
        let text = world.read(format!("starters/{starter}"));
        assert!(!text.contains("node\"") && !text.contains("/bin/sh\""), "{starter}: {text}");
    }
    let started = run_bash_line(&world, "starters/plimsoll init 'a b'").expect_success();
    assert_eq!(started.stdout, "init a b\n");

    // A shell of Linux may find a node of Windows.
    run_npm(&world, &format!("install --offline --omit=optional ./out/plimsoll-{VERSION}.tgz"))
        .expect_success();
    let find = "node -e 'Object.defineProperty(process, \"platform\", {value: \"win32\"}); require(\"./node_modules/plimsoll/bin/find.js\")'";
    let found = run_bash_line(&world, find);
    let advice = format!(
        "npx @plimsoll/win32-{}@{VERSION}",
        if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
    );
    assert!(found.code == Some(1) && found.stderr.contains(&advice), "{found:?}");
}

/// Starts a registry on loopback with two versions, which differ only in the version number, and returns its address.
fn start_registry(world: &World) -> String {
    run_bash_line(world, "mkdir -p registry/@plimsoll").expect_success();
    let server = serve_folder(world.path("registry"));
    for (name, file) in [
        ("plimsoll", "plimsoll"),
        ("@plimsoll/linux-x64", "plimsoll-linux-x64"),
        ("@plimsoll/linux-arm64", "plimsoll-linux-arm64"),
    ] {
        let make_older_version = format!(
            "set -e; cp out/{file}-{VERSION}.tgz registry/; rm -rf package; tar -xzf out/{file}-{VERSION}.tgz; \
             sed -i 's/\"{VERSION}\"/\"0.0.9\"/' package/package.json; [ ! -e package/bin/plimsoll ] || \
             printf '#!/bin/sh\\necho plimsoll 0.0.9\\n' >package/bin/plimsoll; tar -czf registry/{file}-0.0.9.tgz package"
        );
        run_bash_line(world, &make_older_version).expect_success();
        let mut versions = json!({});
        for version in ["0.0.9", VERSION] {
            let line = format!("tar -xzOf registry/{file}-{version}.tgz package/package.json");
            let mut manifest = run_bash_line(world, &line).expect_success().stdout_json();
            manifest["dist"] = json!({"tarball": format!("{server}/{file}-{version}.tgz")});
            versions[version] = manifest;
        }
        let document = json!({"name": name, "dist-tags": {"latest": VERSION}, "versions": versions});
        world.write(format!("registry/{}", name.replace('/', "%2f")), &document.to_string());
    }
    server
}

#[test]
fn npm_installs_one_platform_package_and_upgrades_both_packages() {
    let world = world_with_npm_packages();
    let registry = start_registry(&world);
    run_bash_line(&world, &format!("npm config set registry {registry}/")).expect_success();
    run_npm(&world, "install plimsoll@0.0.9").expect_success();
    let installed_packages_and_version =
        || run_bash_line(&world, "ls node_modules/@plimsoll; npx --offline plimsoll --version").stdout;
    assert_eq!(installed_packages_and_version(), format!("{}\nplimsoll 0.0.9\n", platform_of_this_machine()));
    run_npm(&world, "install plimsoll@latest").expect_success();
    assert_eq!(
        installed_packages_and_version(),
        format!("{}\nplimsoll {VERSION}\n", platform_of_this_machine())
    );
    run_npm(&world, "uninstall plimsoll").expect_success();
    assert_eq!(run_bash_line(&world, "find node_modules -name 'plimsoll*'").stdout, "");

    // npx in an empty folder installs the packages into its own cache.
    let version = run_bash_line(&world, "mkdir empty && cd empty && npx --yes plimsoll --version")
        .expect_success()
        .stdout;
    assert_eq!(version, format!("plimsoll {VERSION}\n"));
    assert_eq!(
        run_bash_line(&world, "ls ~/.npm/_npx/*/node_modules/@plimsoll").stdout.trim(),
        platform_of_this_machine()
    );
}
