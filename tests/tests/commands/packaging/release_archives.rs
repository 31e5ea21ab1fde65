use crate::packaging::{COMMAND_TIMEOUT, run_bash_line, script_launch};
use plimsoll_testkit::world::{FinishedProgram, World};

/// Writes small scripts in place of the programs and returns their folder. `plimsoll` runs the real command; the others are not
/// started by these tests.
fn write_small_programs(world: &World) -> String {
    let folder = world.path("programs").display().to_string();
    for program in plimsoll_protocol::settings::PROGRAM_NAMES.iter().chain(&[
        "plimsoll-fleet",
        "plimsoll-linear",
        "plimsoll-mcp",
        "plimsoll-otel",
    ]) {
        world.write(format!("programs/{program}"), "#!/bin/sh\n");
    }
    let bin = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    world.write("programs/plimsoll", &format!("#!/bin/sh\nexec '{bin}/plimsoll' \"$@\"\n"));
    let names = run_bash_line(world, "chmod 755 programs/* && ls programs").expect_success().stdout;
    assert!(names.contains("plimsoll\n") && names.contains("plimsoll-mcp\n"), "{names}");
    folder
}

fn run_release_script(world: &World, programs: &str, arguments: &[&str]) -> FinishedProgram {
    script_launch(world, "release.sh", arguments)
        .env("PLIMSOLL_BIN_DIR", programs)
        .timeout(COMMAND_TIMEOUT)
        .run()
}

#[test]
fn archives_are_reproducible_and_contain_their_installer() {
    let world = World::without_git();
    let programs = write_small_programs(&world);
    let packed = run_release_script(&world, &programs, &["--out", "one"]).expect_success().stdout;
    let name = packed.trim().rsplit('/').next().expect("a path").to_owned();
    assert!(name.starts_with("plimsoll-") && name.ends_with("-unknown-linux-musl.tar.gz"), "{name}");
    // Build again with other file times, other modes and another umask.
    run_bash_line(&world, "touch -d 2001-01-01 programs/* && chmod 700 programs/*").expect_success();
    let release = plimsoll_testkit::workspace_root().join("scripts/release.sh").display().to_string();
    let second_build = format!("umask 077; PLIMSOLL_BIN_DIR='{programs}' '{release}' --out 'the other'");
    run_bash_line(&world, &second_build).expect_success();
    run_bash_line(&world, &format!("cmp one/{name} 'the other/{name}'")).expect_success();
    run_bash_line(&world, "cd one && sha256sum -c SHA256SUMS").expect_success();

    let listing = run_bash_line(&world, &format!("tar tvzf one/{name}")).expect_success().stdout;
    assert!(listing.lines().all(|line| line.contains(" 0/0 ")), "{listing}");
    for part in [
        "/bin/plimsoll-fleet",
        "/bin/plimsoll-linear",
        "/bin/plimsoll-mcp",
        "/bin/plimsoll-otel",
        "/completions/_plimsoll",
        "/man/man1/plimsoll-run.1",
        "/README.md",
        "/CHANGELOG.md",
        "/LICENSE-MIT",
        "/LICENSE-betterleaks",
        "/LICENSE-APACHE",
        "/INSTALL.txt",
    ] {
        assert!(listing.lines().any(|line| line.ends_with(part)), "{part}: {listing}");
    }
    let folder = name.trim_end_matches(".tar.gz");
    let unpack_and_install =
        format!("tar xzf one/{name} && {folder}/install.sh --prefix '{}/it is'", world.project().display());
    run_bash_line(&world, &unpack_and_install).expect_success();
    assert!(
        run_bash_line(&world, "'it is/bin/plimsoll' --version")
            .expect_success()
            .stdout
            .starts_with("plimsoll ")
    );
    run_bash_line(&world, &format!("{folder}/install.sh --prefix 'it is' --uninstall")).expect_success();
    assert!(!world.exists("it is"), "what install.sh made, it removes");
}

#[test]
fn release_script_refuses_a_wrong_version_and_missing_programs() {
    let world = World::without_git();
    let programs = write_small_programs(&world);
    let wrong_version = run_release_script(&world, &programs, &["--tag", "v99.0.0", "--out", "out"]);
    assert_eq!(wrong_version.code, Some(1));
    assert!(wrong_version.stderr.contains("v99.0.0"), "{wrong_version:?}");
    run_bash_line(&world, "rm programs/plimsoll-frame").expect_success();
    let incomplete = run_release_script(&world, &programs, &["--out", "out"]);
    assert_eq!(incomplete.code, Some(1));
    assert!(incomplete.stderr.contains("lacks plimsoll-frame"), "{incomplete:?}");
    assert_eq!(run_release_script(&world, &programs, &["--frob"]).code, Some(2));
    assert_eq!(run_bash_line(&world, "ls out").stdout, "", "nothing half done");
}
