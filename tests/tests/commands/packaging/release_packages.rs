//! The files of a release that are built from its archives: npm packages, checksums, provenance, Homebrew formula, installer.

use crate::packaging::sample_releases::{TARGETS, VERSION, repository_address, write_sample_release};
use crate::packaging::{COMMAND_TIMEOUT, find_optional_program, run_bash_line, script_launch};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::Value;

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

fn assert_npm_packages_have_no_scripts_and_all_programs(world: &World) {
    let manifest = |file: &str| -> Value {
        let line = format!("tar -xzOf out/{file} package/package.json");
        serde_json::from_str(&run_bash_line(world, &line).expect_success().stdout).expect("JSON")
    };
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
