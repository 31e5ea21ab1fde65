use crate::packaging::sample_releases::{VERSION, WINDOWS_TARGETS};
use crate::packaging::{COMMAND_TIMEOUT, run_bash_line, script_launch};
use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_testkit::world::{FinishedProgram, World};

/// Writes small scripts in place of the programs and returns their folder. `plimsoll` runs the real command; the others are not
/// started by these tests.
fn write_small_programs(world: &World) -> String {
    let folder = world.path("programs").display().to_string();
    for program in
        PROGRAM_NAMES.iter().chain(&["plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"])
    {
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

/// Returns a file that begins like a program of Windows for a target's processor, and contains its name.
fn windows_program(name: &str, target: &str) -> Vec<u8> {
    let processor: u16 = if target.starts_with("aarch64") { 0xAA64 } else { 0x8664 };
    let mut program = b"MZ".to_vec();
    program.resize(60, 0);
    program.extend(64_u32.to_le_bytes());
    program.extend(b"PE\0\0");
    program.extend(processor.to_le_bytes());
    program.extend(name.as_bytes());
    program
}

/// Writes programs of Windows for a target and returns their folder.
fn write_windows_programs(world: &World, target: &str) -> String {
    let folder = world.path("windows");
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["plimsoll", "plimsoll-hook", "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"] {
        std::fs::write(folder.join(format!("{name}.exe")), windows_program(name, target)).expect("a file");
    }
    folder.display().to_string()
}

fn pack_windows_zip(world: &World, programs: &str, arguments: &[&str]) -> FinishedProgram {
    let host_programs = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    script_launch(world, "release.sh", arguments)
        .env("PLIMSOLL_BIN_DIR", programs)
        .env("PLIMSOLL_HOST_BIN_DIR", host_programs)
        .timeout(COMMAND_TIMEOUT)
        .run()
}

#[test]
fn the_zip_for_windows_is_reproducible_and_has_a_file_for_each_program() {
    let world = World::without_git();
    for target in WINDOWS_TARGETS.iter().rev() {
        let programs = write_windows_programs(&world, target);
        pack_windows_zip(&world, &programs, &["--target", target, "--out", "one"]).expect_success();
    }
    let programs = write_windows_programs(&world, "x86_64-pc-windows-msvc");
    run_bash_line(&world, "touch -d 2001-01-01 windows/* && chmod 600 windows/*").expect_success();
    let release = plimsoll_testkit::workspace_root().join("scripts/release.sh").display().to_string();
    let host_programs = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let name = format!("plimsoll-{VERSION}-x86_64-pc-windows-msvc");
    let second_build = format!(
        "umask 077; TZ=Asia/Kolkata PLIMSOLL_BIN_DIR='{programs}' PLIMSOLL_HOST_BIN_DIR='{host_programs}' \
         '{release}' --target x86_64-pc-windows-msvc --out 'the other'; cmp one/{name}.zip 'the other/{name}.zip'"
    );
    run_bash_line(&world, &second_build).expect_success();
    let sums = run_bash_line(&world, "cd one && sha256sum -c SHA256SUMS").expect_success().stdout;
    assert_eq!(sums.lines().count(), WINDOWS_TARGETS.len(), "{sums}");

    run_bash_line(&world, &format!("python3 -m zipfile -e one/{name}.zip .")).expect_success();
    let listed =
        run_bash_line(&world, &format!("cd {name} && find . -type f -printf '%P\n' | LC_ALL=C sort"));
    let files: Vec<&str> = listed.stdout.lines().collect();
    let file_names =
        |folder: &str| -> Vec<&str> { files.iter().filter_map(|file| file.strip_prefix(folder)).collect() };
    let mut expected: Vec<String> = PROGRAM_NAMES.iter().map(|name| format!("{name}.exe")).collect();
    let others = ["plimsoll", "plimsoll-hook", "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"];
    expected.extend(others.map(|name| format!("{name}.exe")));
    expected.sort_unstable();
    assert_eq!(file_names("bin/"), expected);
    for program in PROGRAM_NAMES.iter() {
        let packed = std::fs::read(world.path(format!("{name}/bin/{program}.exe"))).expect("a file");
        assert_eq!(packed, windows_program("plimsoll-hook", "x86_64-pc-windows-msvc"), "{program}");
    }
    assert_eq!(file_names("completions/"), ["plimsoll.bash", "plimsoll.ps1"]);
    assert!(world.read(format!("{name}/completions/plimsoll.ps1")).contains("Register-ArgumentCompleter"));
    for file in
        ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "LICENSE-betterleaks", "docs/start.md"]
    {
        assert!(files.contains(&file), "{file}: {files:?}");
    }
    let install_text = world.read(format!("{name}/INSTALL.txt"));
    assert!(install_text.contains("bin\\plimsoll.exe init\r\n"), "{install_text}");
    assert!(install_text.lines().count() == install_text.matches("\r\n").count(), "{install_text:?}");
    for absent in ["install.sh", "man/"] {
        assert!(!files.iter().any(|file| file.starts_with(absent)), "{absent}: {files:?}");
    }
}

/// Extra fields would contain the times and the owner of files on the machine that packs.
#[test]
fn the_zip_for_windows_is_sorted_and_has_nothing_of_the_packing_machine() {
    let world = World::without_git();
    let programs = write_windows_programs(&world, "x86_64-pc-windows-gnu");
    let listing = "import os, sys, time, zipfile\n\
        entries = zipfile.ZipFile(sys.argv[1]).infolist()\n\
        names = [entry.filename for entry in entries]\n\
        assert names == sorted(names) and len(names) == len(set(names)), names\n\
        for entry in entries:\n    \
            mode = 0o100755 if entry.filename.endswith('.exe') else 0o100644\n    \
            assert entry.extra == b'' and entry.comment == b'' and entry.external_attr >> 16 == mode, entry\n    \
            assert entry.date_time == (2020, 9, 13, 12, 26, 40), entry.date_time\n";
    world.write("check.py", listing);
    let release = plimsoll_testkit::workspace_root().join("scripts/release.sh").display().to_string();
    let host_programs = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let pack_and_check = format!(
        "set -e; SOURCE_DATE_EPOCH=1600000000 TZ=Asia/Kolkata PLIMSOLL_BIN_DIR='{programs}' PLIMSOLL_HOST_BIN_DIR='{host_programs}' \
         '{release}' --target x86_64-pc-windows-gnu --out out; python3 check.py out/plimsoll-{VERSION}-x86_64-pc-windows-gnu.zip"
    );
    run_bash_line(&world, &pack_and_check).expect_success();
}

#[test]
fn a_windows_target_without_its_programs_or_with_others_is_refused() {
    let world = World::without_git();
    let programs = write_windows_programs(&world, "aarch64-pc-windows-msvc");
    let arguments = ["--target", "aarch64-pc-windows-msvc", "--out", "out"];
    let unset = run_bash_line(
        &world,
        &format!(
            "unset PLIMSOLL_BIN_DIR; '{}' --target aarch64-pc-windows-msvc --out out",
            plimsoll_testkit::workspace_root().join("scripts/release.sh").display()
        ),
    );
    assert!(
        unset.code == Some(1) && unset.stderr.contains("name their folder in PLIMSOLL_BIN_DIR"),
        "{unset:?}"
    );
    world.write("windows/plimsoll-mcp.exe", "#!/bin/sh\n");
    let foreign = pack_windows_zip(&world, &programs, &arguments);
    assert!(
        foreign.code == Some(1) && foreign.stderr.contains("plimsoll-mcp.exe is no program of Windows"),
        "{foreign:?}"
    );
    write_windows_programs(&world, "x86_64-pc-windows-msvc");
    let other_processor = pack_windows_zip(&world, &programs, &arguments);
    assert!(
        other_processor.code == Some(1)
            && other_processor.stderr.contains("plimsoll.exe is no program of Windows for aarch64"),
        "{other_processor:?}"
    );
    write_windows_programs(&world, "aarch64-pc-windows-msvc");
    run_bash_line(&world, "rm windows/plimsoll-otel.exe windows/plimsoll-mcp.exe").expect_success();
    let incomplete = pack_windows_zip(&world, &programs, &arguments);
    assert!(
        incomplete.code == Some(1) && incomplete.stderr.contains("lacks plimsoll-mcp.exe"),
        "{incomplete:?}"
    );
    assert_eq!(run_bash_line(&world, "ls out").stdout, "", "nothing half done");
}
