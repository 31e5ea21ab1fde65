//! The files of a release that are built from its archives: npm packages, checksums, provenance, Homebrew formula, installer.

use crate::packaging::sample_releases::{
    TARGETS, VERSION, WINDOWS_TARGETS, add_windows_archives, repository_address, write_sample_release,
};
use crate::packaging::{COMMAND_TIMEOUT, find_optional_program, run_bash_line, script_launch};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

fn build_packages(world: &World, extra_arguments: &[&str]) -> plimsoll_testkit::world::FinishedProgram {
    script_launch(world, "release/packages.sh", &[&["--out", "out"], extra_arguments].concat())
        .timeout(COMMAND_TIMEOUT)
        .run()
}

#[test]
fn release_files_are_built_from_archives_and_npm_packages_run_no_scripts() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    let stdout = build_packages(&world, &[]).expect_success().stdout;
    assert_sums_provenance_formula_and_installer(&world, &stdout);
    assert_npm_packages_have_no_scripts_and_all_programs(&world);
}

/// Claude Code writes declarations for editors beside a module that it loads from a checkout.
#[test]
fn the_plugin_package_has_the_module_and_nothing_that_the_client_wrote() {
    const CLIENT_FILES: [&str; 3] =
        [".claude-plugin/types/claude-code/index.d.ts", "tsconfig.json", ".gitignore"];
    let world = World::without_git();
    let workspace = workspace_root().display().to_string();
    let ignored = CLIENT_FILES.map(|file| format!("hooks-config/plugin/{file}")).join(" ");
    let checked =
        run_bash_line(&world, &format!("git -C '{workspace}' check-ignore {ignored}")).expect_success();
    assert_eq!(checked.stdout.lines().count(), CLIENT_FILES.len(), "git status stays clean: {checked:?}");
    let copy_checkout = format!(
        "set -e; mkdir checkout; cd '{workspace}'; cp -R --parents Cargo.toml Cargo.lock README.md LICENSE* .claude-plugin \
         hooks-config scripts/release crates/secrets/rules crates/hooks/programs.txt \"$OLDPWD/checkout\""
    );
    run_bash_line(&world, &copy_checkout).expect_success();
    for file in CLIENT_FILES {
        world.write(world.path("checkout/hooks-config/plugin").join(file), "*\n");
    }
    write_sample_release(&world, "out", VERSION);
    run_bash_line(&world, "checkout/scripts/release/packages.sh --out out").expect_success();
    let list = format!("tar -tzf out/plimsoll-plugin-{VERSION}.tar.gz");
    let listed = run_bash_line(&world, &list).expect_success().stdout;
    let has_file = |file: &str| listed.lines().any(|line| line.ends_with(&format!("/plugin/{file}")));
    assert!(has_file("hooks/plimsoll.ts") && has_file("hooks/hooks.json"), "{listed}");
    assert!(!CLIENT_FILES.iter().any(|file| has_file(file)), "{listed}");
}

fn assert_sums_provenance_formula_and_installer(world: &World, stdout: &str) {
    let mut printed_names: Vec<&str> = stdout.lines().collect();
    printed_names.sort_unstable();
    let listing = run_bash_line(world, "cd out && LC_ALL=C ls").stdout;
    assert_eq!(listing.lines().collect::<Vec<_>>(), printed_names, "nothing else is left there");
    let sums = run_bash_line(world, "cd out && sha256sum -c --strict SHA256SUMS").expect_success().stdout;
    assert_eq!(sums.lines().count() + 1, printed_names.len(), "all but the sums themselves: {sums}");

    let statement = world.read_json(format!("out/plimsoll-{VERSION}.intoto.json"));
    let subjects = statement["subject"].as_array().expect("subjects");
    assert_eq!(subjects.len() + 2, printed_names.len(), "all but itself and the sums: {statement}");
    let listed = world.read("out/SHA256SUMS");
    for subject in subjects {
        let (name, sum) = (&subject["name"], subject["digest"]["sha256"].as_str().expect("a sum"));
        assert!(listed.contains(&format!("{sum}  {}\n", name.as_str().unwrap_or_default())), "{subject}");
    }

    let formula = world.read("out/plimsoll.rb");
    let address = repository_address();
    for target in TARGETS {
        let archive = format!("plimsoll-{VERSION}-{target}.tar.gz");
        assert!(
            formula.contains(&format!("url \"{address}/releases/download/v{VERSION}/{archive}\"")),
            "{formula}"
        );
        let sum =
            listed.lines().find(|line| line.ends_with(&archive)).and_then(|line| line.split(' ').next());
        assert!(formula.contains(sum.expect("its sum")), "{formula}");
    }
    assert!(!formula.contains('@') && formula.matches("sha256 ").count() == TARGETS.len(), "{formula}");
    for system in ["on_macos do\n    on_arm do\n      url", "on_linux do\n    on_arm do\n      url"] {
        assert!(formula.contains(system), "{formula}");
    }
    if find_optional_program("ruby").is_some() {
        run_bash_line(world, "ruby -c out/plimsoll.rb").expect_success();
    }
    let installer = world.read("out/install.sh");
    assert!(installer.contains(&format!("VERSION={VERSION}\nREPOSITORY={address}\n")), "{installer}");
    run_bash_line(world, "sh -n out/install.sh && out/install.sh --help").expect_success();
}

fn read_npm_manifest(world: &World, file: &str) -> Value {
    let line = format!("tar -xzOf out/{file} package/package.json");
    run_bash_line(world, &line).expect_success().stdout_json()
}

#[test]
fn windows_archives_become_npm_packages_with_a_command_of_their_own() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    add_windows_archives(&world, "out", VERSION);
    let stdout = build_packages(&world, &[]).expect_success().stdout;
    assert_sums_provenance_formula_and_installer(&world, &stdout);
    let main = read_npm_manifest(&world, &format!("plimsoll-{VERSION}.tgz"));
    assert_eq!(main["plimsoll"]["windowsPackages"], json!(["@plimsoll/win32-arm64", "@plimsoll/win32-x64"]));
    // npm refuses the main package on Windows, because its command is a script for sh.
    assert_eq!(
        (&main["os"], &main["bin"]),
        (&json!(["linux", "darwin"]), &json!({"plimsoll": "bin/start.sh"}))
    );
    assert!(!main["optionalDependencies"].to_string().contains("win32"), "{main}");
    for cpu in ["x64", "arm64"] {
        let file = format!("plimsoll-win32-{cpu}-{VERSION}.tgz");
        let manifest = read_npm_manifest(&world, &file);
        assert_eq!((&manifest["os"], &manifest["cpu"]), (&json!(["win32"]), &json!([cpu])));
        assert_eq!(manifest["bin"], json!({"plimsoll": "bin/plimsoll.exe"}));
        assert!(manifest["scripts"].is_null() && manifest["dependencies"].is_null(), "{manifest}");
        let listing = run_bash_line(&world, &format!("tar -tvzf out/{file} | grep /bin/")).stdout;
        assert!(listing.lines().all(|line| line.starts_with("-rwxr-xr-x")), "{listing}");
        let mut programs: Vec<&str> =
            listing.lines().filter_map(|line| Some(line.split_once("package/bin/")?.1)).collect();
        programs.sort_unstable();
        let expected = [
            "plimsoll-hook.exe",
            "plimsoll-linear.exe",
            "plimsoll-mcp.exe",
            "plimsoll-otel.exe",
            "plimsoll.exe",
        ];
        assert_eq!(programs, expected);
        // The package of one processor must not have the programs of the other.
        let architecture = if cpu == "x64" { "x86_64" } else { "aarch64" };
        let printed = run_bash_line(&world, &format!("tar -xzOf out/{file} package/bin/plimsoll.exe | sh"));
        assert_eq!(printed.stdout.trim(), format!("plimsoll for {architecture}-pc-windows-msvc"));
    }
    for file in ["install.sh", "plimsoll.rb"] {
        assert!(!world.read(format!("out/{file}")).contains("windows"), "{file}");
    }
    let statement = world.read_json(format!("out/plimsoll-{VERSION}.intoto.json")).to_string();
    for target in WINDOWS_TARGETS {
        assert!(statement.contains(&format!("plimsoll-{VERSION}-{target}.zip")), "{statement}");
    }
}

#[test]
fn the_plugin_of_a_release_has_programs_for_windows_beside_its_scripts() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    let unpack_plugin = || {
        build_packages(&world, &[]).expect_success();
        let unpack = format!(
            "rm -rf plugin; mkdir plugin; tar -xzf out/plimsoll-plugin-{VERSION}.tar.gz -C plugin --strip-components 2"
        );
        run_bash_line(&world, &unpack).expect_success();
        run_bash_line(&world, "cd plugin && find . -name '*.exe' -printf '%P\n' | LC_ALL=C sort").stdout
    };
    assert_eq!(unpack_plugin(), "", "no archive for Windows, no program");
    let server_path = || world.read_json("plugin/.mcp.json")["mcpServers"]["plimsoll"]["env"]["PATH"].clone();
    assert!(!server_path().to_string().contains(';'), "{}", server_path());

    add_windows_archives(&world, "out", VERSION);
    let listed = unpack_plugin();
    let hooks = world.read_json("plugin/hooks/hooks.json");
    let mut expected: Vec<String> =
        ["", "-linear", "-mcp", "-otel"].iter().map(|end| format!("bin/plimsoll{end}.exe")).collect();
    for groups in hooks["hooks"].as_object().expect("events").values() {
        for group in groups.as_array().expect("groups") {
            let command = group["hooks"][0]["command"].as_str().expect("a command");
            expected.push(command.replace("${CLAUDE_PLUGIN_ROOT}/", "") + ".exe");
        }
    }
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected, "an .exe for each entry");
    for program in expected {
        let text = world.read(format!("plugin/{program}"));
        let name =
            if program.starts_with("hooks/") { "plimsoll-hook" } else { &program[4..program.len() - 4] };
        // arm64 emulates these.
        assert!(text.contains(&format!("echo {name} for x86_64-pc-windows-msvc")), "{program}: {text}");
    }
    let path = server_path();
    let path = path.as_str().expect("a PATH");
    for (root, home, separator) in [("/p", None, ':'), ("/p", Some("/h"), ':'), ("C:\\p", None, ';')] {
        let expanded = path
            .replace("${CLAUDE_PLUGIN_ROOT}", root)
            .replace("${PATH:-/usr/bin:/bin}", if separator == ':' { "/usr/bin" } else { "C:\\a;C:\\b" })
            .replace("${HOME:-/nonexistent}", home.unwrap_or("/nonexistent"));
        assert!(!expanded.contains('$'), "{expanded}");
        let entries: Vec<&str> = expanded.split(separator).collect();
        let bin = format!("{root}/bin");
        assert!(entries.contains(&bin.as_str()), "{entries:?}");
        // A relative entry would be looked for in the project.
        let is_absolute = |entry: &str| entry.starts_with(if separator == ':' { "/" } else { "C:\\" });
        assert!(entries.iter().all(|entry| is_absolute(entry)), "{entries:?}");
    }
}

#[test]
fn two_archives_for_one_npm_package_are_refused() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    add_windows_archives(&world, "out", VERSION);
    let copy = format!(
        "cp out/plimsoll-{VERSION}-x86_64-pc-windows-msvc.zip out/plimsoll-{VERSION}-x86_64-pc-windows-gnu.zip"
    );
    run_bash_line(&world, &copy).expect_success();
    let refused = build_packages(&world, &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("two archives for win32-x64"), "{refused:?}");
}

fn assert_npm_packages_have_no_scripts_and_all_programs(world: &World) {
    let manifest = |file: &str| read_npm_manifest(world, file);
    let main = manifest(&format!("plimsoll-{VERSION}.tgz"));
    let machines = [("linux", "x64"), ("linux", "arm64"), ("darwin", "x64"), ("darwin", "arm64")];
    for (os, cpu) in machines {
        let name = format!("{os}-{cpu}");
        let file = format!("plimsoll-{name}-{VERSION}.tgz");
        let platform = manifest(&file);
        assert_eq!((&platform["os"][0], &platform["cpu"][0]), (&os.into(), &cpu.into()));
        assert_eq!(main["optionalDependencies"][format!("@plimsoll/{name}")], VERSION);
        let listing = run_bash_line(world, &format!("tar -tvzf out/{file} | grep /bin/")).stdout;
        assert_eq!(listing.lines().count(), 6, "{listing}");
        assert!(listing.lines().all(|line| line.starts_with("-rwxr-xr-x")), "{listing}");
        assert!(platform["scripts"].is_null() && platform["bin"].is_null(), "{platform}");
    }
    assert!(main["scripts"].is_null() && main["dependencies"].is_null(), "{main}");
    assert_eq!(main["optionalDependencies"].as_object().map(serde_json::Map::len), Some(machines.len()));
    assert_eq!(main["plimsoll"]["windowsPackages"], json!([]));
    assert_eq!(
        run_bash_line(world, "ls out | grep -c -e win32 -e windows").stdout,
        "0\n",
        "no archive for Windows, no package"
    );
    let url = main["repository"]["url"].as_str().unwrap_or_default();
    assert_eq!(url, format!("git+{}.git", repository_address()));
}

/// The release workflow generates the bill of materials in a separate job and puts it beside the archives.
#[test]
fn bill_of_materials_is_in_the_sums_and_in_the_provenance() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    world.write("out/plimsoll.cdx.json", "{\"bomFormat\": \"CycloneDX\"}\n");
    let stdout = build_packages(&world, &[]).expect_success().stdout;
    assert!(stdout.lines().any(|line| line == "plimsoll.cdx.json"), "{stdout}");
    run_bash_line(&world, "cd out && grep ' plimsoll.cdx.json$' SHA256SUMS | sha256sum -c --strict")
        .expect_success();
    let statement = world.read_json(format!("out/plimsoll-{VERSION}.intoto.json"));
    let subjects = statement["subject"].as_array().expect("subjects");
    assert!(subjects.iter().any(|subject| subject["name"] == "plimsoll.cdx.json"), "{statement}");
}

/// A release may lack the archive of a target. Then no file built from it may name that target.
#[test]
fn only_targets_with_an_archive_are_offered() {
    let world = World::without_git();
    write_sample_release(&world, "out", VERSION);
    run_bash_line(&world, "rm out/*-apple-darwin.tar.gz").expect_success();
    build_packages(&world, &[]).expect_success();
    let (formula, installer) = (world.read("out/plimsoll.rb"), world.read("out/install.sh"));
    assert!(!formula.contains("on_macos") && formula.matches("sha256 ").count() == 2, "{formula}");
    assert!(!installer.contains("TARGETS='aarch64-apple-darwin"), "{installer}");
    assert_eq!(run_bash_line(&world, "ls out | grep -c darwin").stdout, "0\n");
}

#[test]
fn public_release_needs_archives_and_a_real_repository_address() {
    let world = World::without_git();
    let without_archives = build_packages(&world, &[]);
    assert!(
        without_archives.code == Some(1) && without_archives.stderr.contains("there is no archive"),
        "{without_archives:?}"
    );
    let wrong_version = build_packages(&world, &["--tag", "v99.0.0"]);
    assert!(wrong_version.code == Some(1) && wrong_version.stderr.contains("v99.0.0"), "{wrong_version:?}");
    if repository_address().contains("example.invalid") {
        let tag = format!("v{VERSION}");
        let placeholder_address = build_packages(&world, &["--tag", &tag]);
        assert!(
            placeholder_address.code == Some(1)
                && placeholder_address.stderr.contains("put the real address there"),
            "{placeholder_address:?}"
        );
    }
    assert_eq!(build_packages(&world, &["--frob"]).code, Some(2));
    assert_eq!(run_bash_line(&world, "ls out").stdout, "");
}

/// Publishing eighteen library crates would promise stable interfaces: docs/decisions/cargo-registry.md.
#[test]
fn no_crate_can_be_published_by_cargo() {
    let folders = std::fs::read_dir(workspace_root().join("crates")).expect("crates").flatten();
    let manifests: Vec<std::path::PathBuf> = folders.map(|entry| entry.path().join("Cargo.toml")).collect();
    assert!(manifests.len() > 15, "{manifests:?}");
    for manifest in manifests {
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        assert!(text.contains("\npublish.workspace = true\n"), "{}", manifest.display());
    }
    let workspace = std::fs::read_to_string(workspace_root().join("Cargo.toml")).expect("Cargo.toml");
    assert!(workspace.contains("\npublish = false\n"));
}
