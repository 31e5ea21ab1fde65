use crate::packaging::{LONG, script, shell};
use plimsoll_testkit::world::{Finished, World};

/// A command that speaks as the real one; the others are not started here. All are small: what is packed is looked at, not weighed.
fn small_programs(world: &World) -> String {
    let folder = world.path("programs").display().to_string();
    for program in plimsoll_protocol::settings::PROGRAM_NAMES.iter().chain(&[
        "plimsoll-fleet",
        "plimsoll-linear",
        "plimsoll-mcp",
        "plimsoll-otel",
    ]) {
        world.write(format!("programs/{program}"), "#!/bin/sh\n");
    }
    let bin = plimsoll_testkit::bin_dir().display().to_string();
    world.write("programs/plimsoll", &format!("#!/bin/sh\nexec '{bin}/plimsoll' \"$@\"\n"));
    let names = shell(world, "chmod 755 programs/* && ls programs").expect_success().stdout;
    assert!(names.contains("plimsoll\n") && names.contains("plimsoll-mcp\n"), "{names}");
    folder
}

fn pack(world: &World, programs: &str, arguments: &[&str]) -> Finished {
    script(world, "release.sh", arguments).env("PLIMSOLL_BIN_DIR", programs).timeout(LONG).run()
}

#[test]
fn an_archive_is_the_same_bytes_every_time_and_installs_itself() {
    let world = World::without_git();
    let programs = small_programs(&world);
    let packed = pack(&world, &programs, &["--out", "one"]).expect_success().stdout;
    let name = packed.trim().rsplit('/').next().expect("a path").to_owned();
    assert!(name.starts_with("plimsoll-") && name.ends_with("-unknown-linux-musl.tar.gz"), "{name}");
    // Another hour, other modes of the files, another mask.
    shell(&world, "touch -d 2001-01-01 programs/* && chmod 700 programs/*").expect_success();
    let release = plimsoll_testkit::workspace_root().join("scripts/release.sh").display().to_string();
    let again = format!("umask 077; PLIMSOLL_BIN_DIR='{programs}' '{release}' --out 'the other'");
    shell(&world, &again).expect_success();
    shell(&world, &format!("cmp one/{name} 'the other/{name}'")).expect_success();
    shell(&world, "cd one && sha256sum -c SHA256SUMS").expect_success();

    let listing = shell(&world, &format!("tar tvzf one/{name}")).expect_success().stdout;
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
    let unpacked =
        format!("tar xzf one/{name} && {folder}/install.sh --prefix '{}/it is'", world.project().display());
    shell(&world, &unpacked).expect_success();
    assert!(shell(&world, "'it is/bin/plimsoll' --version").expect_success().stdout.starts_with("plimsoll "));
    shell(&world, &format!("{folder}/install.sh --prefix 'it is' --uninstall")).expect_success();
    assert!(!world.exists("it is"), "what install.sh made, it removes");
}

#[test]
fn a_release_is_refused_for_another_version_and_incomplete_programs() {
    let world = World::without_git();
    let programs = small_programs(&world);
    let other = pack(&world, &programs, &["--tag", "v99.0.0", "--out", "out"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("v99.0.0"), "{other:?}");
    shell(&world, "rm programs/plimsoll-frame").expect_success();
    let less = pack(&world, &programs, &["--out", "out"]);
    assert_eq!(less.code, Some(1));
    assert!(less.stderr.contains("lacks plimsoll-frame"), "{less:?}");
    assert_eq!(pack(&world, &programs, &["--frob"]).code, Some(2));
    assert_eq!(shell(&world, "ls out").stdout, "", "nothing half done");
}
