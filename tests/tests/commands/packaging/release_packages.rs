//! What is made from the archives of a release.

use crate::packaging::sample_releases::{TARGETS, VERSION, repository, stand_in};
use crate::packaging::{LONG, found, script, shell};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::Value;

fn packages(world: &World, more: &[&str]) -> plimsoll_testkit::world::Finished {
    script(world, "release/packages.sh", &[&["--out", "out"], more].concat()).timeout(LONG).run()
}

#[test]
fn everything_of_a_release_is_made_from_its_archives_and_its_npm_packages_run_nothing() {
    let world = World::without_git();
    stand_in(&world, "out", VERSION);
    let said = packages(&world, &[]).expect_success().stdout;
    everything_of_a_release_is_made_from_its_archives_and_named_in_the_sums(&world, &said);
    npm_packages_run_nothing_when_they_are_installed_and_have_one_file_of_each_program(&world);
}

fn everything_of_a_release_is_made_from_its_archives_and_named_in_the_sums(world: &World, said: &str) {
    let mut made: Vec<&str> = said.lines().collect();
    made.sort_unstable();
    let there = shell(world, "cd out && LC_ALL=C ls").stdout;
    assert_eq!(there.lines().collect::<Vec<_>>(), made, "nothing else is left there");
    let sums = shell(world, "cd out && sha256sum -c --strict SHA256SUMS").expect_success().stdout;
    assert_eq!(sums.lines().count() + 1, made.len(), "all but the sums themselves: {sums}");

    let statement = world.json(format!("out/plimsoll-{VERSION}.intoto.json"));
    let subjects = statement["subject"].as_array().expect("subjects");
    assert_eq!(subjects.len() + 2, made.len(), "all but itself and the sums: {statement}");
    let listed = world.read("out/SHA256SUMS");
    for subject in subjects {
        let (name, sum) = (&subject["name"], subject["digest"]["sha256"].as_str().expect("a sum"));
        assert!(listed.contains(&format!("{sum}  {}\n", name.as_str().unwrap_or_default())), "{subject}");
    }

    let formula = world.read("out/plimsoll.rb");
    let address = repository();
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
    if found("ruby").is_some() {
        shell(world, "ruby -c out/plimsoll.rb").expect_success();
    }
    let installer = world.read("out/install.sh");
    assert!(installer.contains(&format!("VERSION={VERSION}\nREPOSITORY={address}\n")), "{installer}");
    shell(world, "sh -n out/install.sh && out/install.sh --help").expect_success();
}

fn npm_packages_run_nothing_when_they_are_installed_and_have_one_file_of_each_program(world: &World) {
    let manifest = |file: &str| -> Value {
        let line = format!("tar -xzOf out/{file} package/package.json");
        serde_json::from_str(&shell(world, &line).expect_success().stdout).expect("JSON")
    };
    let main = manifest(&format!("plimsoll-{VERSION}.tgz"));
    let machines = [("linux", "x64"), ("linux", "arm64"), ("darwin", "x64"), ("darwin", "arm64")];
    for (os, cpu) in machines {
        let name = format!("{os}-{cpu}");
        let file = format!("plimsoll-{name}-{VERSION}.tgz");
        let platform = manifest(&file);
        assert_eq!((&platform["os"][0], &platform["cpu"][0]), (&os.into(), &cpu.into()));
        assert_eq!(main["optionalDependencies"][format!("@plimsoll/{name}")], VERSION);
        let listing = shell(world, &format!("tar -tvzf out/{file} | grep /bin/")).stdout;
        assert_eq!(listing.lines().count(), 6, "{listing}");
        assert!(listing.lines().all(|line| line.starts_with("-rwxr-xr-x")), "{listing}");
        assert!(platform["scripts"].is_null() && platform["bin"].is_null(), "{platform}");
    }
    assert!(main["scripts"].is_null() && main["dependencies"].is_null(), "{main}");
    assert_eq!(main["optionalDependencies"].as_object().map(serde_json::Map::len), Some(machines.len()));
    let url = main["repository"]["url"].as_str().unwrap_or_default();
    assert_eq!(url, format!("git+{}.git", repository()));
}

/// The release workflow makes the list of what is linked in a job of its own and puts it beside the archives.
#[test]
fn the_list_of_what_is_linked_is_in_the_sums_and_in_the_provenance() {
    let world = World::without_git();
    stand_in(&world, "out", VERSION);
    world.write("out/plimsoll.cdx.json", "{\"bomFormat\": \"CycloneDX\"}\n");
    let made = packages(&world, &[]).expect_success().stdout;
    assert!(made.lines().any(|line| line == "plimsoll.cdx.json"), "{made}");
    shell(&world, "cd out && grep ' plimsoll.cdx.json$' SHA256SUMS | sha256sum -c --strict").expect_success();
    let statement = world.json(format!("out/plimsoll-{VERSION}.intoto.json"));
    let subjects = statement["subject"].as_array().expect("subjects");
    assert!(subjects.iter().any(|subject| subject["name"] == "plimsoll.cdx.json"), "{statement}");
}

/// A release may lack a machine: then nothing that is made from it names that one.
#[test]
fn only_what_there_is_an_archive_of_is_offered() {
    let world = World::without_git();
    stand_in(&world, "out", VERSION);
    shell(&world, "rm out/*-apple-darwin.tar.gz").expect_success();
    packages(&world, &[]).expect_success();
    let (formula, installer) = (world.read("out/plimsoll.rb"), world.read("out/install.sh"));
    assert!(!formula.contains("on_macos") && formula.matches("sha256 ").count() == 2, "{formula}");
    assert!(!installer.contains("TARGETS='aarch64-apple-darwin"), "{installer}");
    assert_eq!(shell(&world, "ls out | grep -c darwin").stdout, "0\n");
}

#[test]
fn a_release_for_others_needs_its_archives_and_a_real_address() {
    let world = World::without_git();
    let nothing = packages(&world, &[]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("there is no archive"), "{nothing:?}");
    let other = packages(&world, &["--tag", "v99.0.0"]);
    assert!(other.code == Some(1) && other.stderr.contains("v99.0.0"), "{other:?}");
    if repository().contains("example.invalid") {
        let tag = format!("v{VERSION}");
        let unreal = packages(&world, &["--tag", &tag]);
        assert!(unreal.code == Some(1) && unreal.stderr.contains("put the real address there"), "{unreal:?}");
    }
    assert_eq!(packages(&world, &["--frob"]).code, Some(2));
    assert_eq!(shell(&world, "ls out").stdout, "");
}

/// Eighteen library packages would be a promise that nobody asked for: docs/decisions/cargo-registry.md.
#[test]
fn no_package_can_be_published_by_cargo() {
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
