//! The script that downloads a release, against a server on loopback.
//!
//! Tests commands shown in docs/start.md and docs/upgrade.md.

use crate::packaging::sample_releases::{
    TARGETS, VERSION, serve_folder, target_of_this_machine, write_sample_release,
};
use crate::packaging::{COMMAND_TIMEOUT, find_optional_program, run_bash_line, tree_listing};
use plimsoll_testkit::world::{FinishedProgram, Launch, World};
use std::path::PathBuf;

/// An empty home folder with a space in its name, a server with two releases, and the install script of a release.
struct InstallMachine {
    world: World,
    home: String,
    server: String,
}

const OLD_VERSION: &str = "0.0.9";

impl InstallMachine {
    fn new() -> InstallMachine {
        let world = World::without_git().without_plimsoll_programs();
        for version in [OLD_VERSION, VERSION] {
            write_sample_release(&world, &format!("www/v{version}"), version);
        }
        let template = plimsoll_testkit::workspace_root().join("scripts/release/install.sh");
        let text = std::fs::read_to_string(template).expect("the script");
        let text = text.replace("@VERSION@", VERSION).replace("@TARGETS@", &TARGETS.join(" "));
        world.write("install.sh", &text.replace("@REPOSITORY@", "https://example.invalid/plimsoll"));
        let home = world.project().with_file_name("empty home");
        std::fs::create_dir_all(&home).expect("the temporary folder is writable");
        let server = serve_folder(world.path("www"));
        InstallMachine { home: home.display().to_string(), world, server }
    }

    fn script_launch(&self, arguments: &[&str]) -> Launch {
        let sh = self.world.command("sh", &[&["install.sh"], arguments].concat());
        sh.env("HOME", self.home.as_str())
            .env("XDG_DATA_HOME", "")
            .env("SHELL", "/bin/sh")
            .timeout(COMMAND_TIMEOUT)
    }

    /// Runs the script with a folder of the server as its source.
    fn install_from_folder(&self, folder: &str, extra_arguments: &[&str]) -> FinishedProgram {
        let address = format!("{}/{folder}", self.server);
        self.script_launch(&[&["--from", address.as_str()], extra_arguments].concat()).run()
    }

    /// Asserts the exit code and returns the error, with the parts that differ between machines or versions replaced.
    fn stable_error_with_code(&self, finished: &FinishedProgram, code: i32) -> String {
        assert_eq!(finished.code, Some(code), "{finished:?}");
        let error =
            finished.stderr.replace(&self.server, "[SERVER]").replace(target_of_this_machine(), "[TARGET]");
        self.world.replace_varying_parts_with_placeholders(
            &error.replace(VERSION, "[VERSION]").replace(OLD_VERSION, "[OLD VERSION]"),
        )
    }

    fn path_in_home(&self, relative: &str) -> PathBuf {
        PathBuf::from(&self.home).join(relative)
    }

    fn home_listing(&self) -> String {
        tree_listing(&self.world, &self.home)
    }

    fn version_output_of(&self, program: &str) -> String {
        self.world.command(self.path_in_home(program), &["--version"]).run().expect_success().stdout
    }
}

#[test]
fn release_is_upgraded_reinstalled_and_removed_completely() {
    let machine = InstallMachine::new();
    machine.world.write(machine.path_in_home(".local/bin/mine"), "#!/bin/sh\n");
    let before = machine.home_listing();
    let finished =
        machine.install_from_folder(&format!("v{OLD_VERSION}"), &["--version", OLD_VERSION]).expect_success();
    assert_eq!(finished.stderr, "");
    assert!(
        finished.stdout.contains(".local/bin is not on your PATH")
            && finished.stdout.contains("plimsoll init")
    );
    assert_eq!(machine.version_output_of(".local/bin/plimsoll"), format!("plimsoll {OLD_VERSION}\n"));
    assert!(machine.path_in_home(".local/bin/plimsoll-only-in-0.0.9").exists());

    let new_release_folder = format!("v{VERSION}");
    machine.install_from_folder(&new_release_folder, &[]).expect_success();
    assert_eq!(machine.version_output_of(".local/bin/plimsoll"), format!("plimsoll {VERSION}\n"));
    for linked in
        ["bin/plimsoll-post-tool", "share/man/man1/plimsoll.1", "share/zsh/site-functions/_plimsoll"]
    {
        let path = machine.path_in_home(&format!(".local/{linked}"));
        let target = path.canonicalize().expect(linked).display().to_string();
        assert!(target.contains(&format!("/plimsoll/versions/{VERSION}/")), "{target}");
    }
    assert!(
        !machine.path_in_home(".local/bin/plimsoll-only-in-0.0.9").is_symlink(),
        "the new version has none"
    );
    // Open sessions may still use the old version.
    assert_eq!(
        machine.version_output_of(&format!(".local/share/plimsoll/versions/{OLD_VERSION}/bin/plimsoll")),
        format!("plimsoll {OLD_VERSION}\n")
    );
    let after_upgrade = machine.home_listing();
    machine.install_from_folder(&new_release_folder, &[]).expect_success();
    assert_eq!(machine.home_listing(), after_upgrade);

    let removed = machine.script_launch(&["--uninstall"]).run().expect_success();
    assert!(removed.stdout.contains("`plimsoll uninstall`"), "{removed:?}");
    // The folders that had our links remain, because other programs use them too.
    let left = format!("cd '{}' && find . -mindepth 1 ! -type d; ls .local/share", machine.home);
    assert_eq!(
        run_bash_line(&machine.world, &left).stdout,
        "./.local/bin/mine\nbash-completion\nfish\nman\nzsh\n",
        "{before}"
    );
    let second_removal = machine.script_launch(&["--uninstall"]).run();
    insta::assert_snapshot!(machine.stable_error_with_code(&second_removal, 1), @"install.sh: nothing is installed in [WORLD]/empty home/.local/share/plimsoll/versions");
}

#[test]
fn invalid_downloads_are_rejected_and_nothing_is_installed() {
    let machine = InstallMachine::new();
    let world = &machine.world;
    let target = target_of_this_machine();
    let archive = format!("plimsoll-{VERSION}-{target}.tar.gz");
    for folder in ["changed", "no-archive", "no-sums", "unnamed", "wrong-version", "not-running"] {
        run_bash_line(world, &format!("cp -R www/v{VERSION} www/{folder}")).expect_success();
    }
    let damage_command = format!(
        "cd www && printf x >>changed/{archive} && rm no-archive/{archive} no-sums/SHA256SUMS && \
         sed -i '/{target}/d' unnamed/SHA256SUMS && mkdir old && \
         cp -R ../stage/plimsoll-{OLD_VERSION}-{target} old/plimsoll-{VERSION}-{target} && \
         tar -czf wrong-version/{archive} -C old plimsoll-{VERSION}-{target} && \
         mkdir -p s/plimsoll-{VERSION}-{target}/bin && echo nothing >s/plimsoll-{VERSION}-{target}/bin/plimsoll && \
         tar -czf not-running/{archive} -C s plimsoll-{VERSION}-{target} && \
         for f in wrong-version not-running; do (cd $f && sha256sum *.gz >SHA256SUMS); done"
    );
    run_bash_line(world, &damage_command).expect_success();
    let before = machine.home_listing();
    let error_from_folder = |folder: &str| {
        let error = machine.stable_error_with_code(&machine.install_from_folder(folder, &[]), 1);
        assert_eq!(machine.home_listing(), before, "{folder}");
        // Only the last line is ours: other programs may print errors before it.
        error.lines().last().unwrap_or_default().to_owned()
    };
    let changed = error_from_folder("changed");
    // The two digests differ between builds of the archive.
    let (before_digests, digests) = changed.split_once(" (").expect("two digests");
    let (_, after_digests) = digests.split_once("): ").expect("the consequence");
    insta::assert_snapshot!(format!("{before_digests}: {after_digests}"), @"install.sh: plimsoll-[VERSION]-[TARGET].tar.gz is not what SHA256SUMS says: nothing was installed");
    insta::assert_snapshot!(error_from_folder("no-archive"), @"install.sh: cannot download [SERVER]/no-archive/plimsoll-[VERSION]-[TARGET].tar.gz");
    insta::assert_snapshot!(error_from_folder("no-sums"), @"install.sh: cannot download [SERVER]/no-sums/SHA256SUMS");
    insta::assert_snapshot!(error_from_folder("unnamed"), @"install.sh: SHA256SUMS of [SERVER]/unnamed does not name plimsoll-[VERSION]-[TARGET].tar.gz");
    insta::assert_snapshot!(error_from_folder("wrong-version"), @r#"install.sh: the archive of [VERSION] has "plimsoll [OLD VERSION]": nothing was installed"#);
    insta::assert_snapshot!(error_from_folder("not-running"), @"install.sh: the program does not run on this machine: nothing was installed");
    // The server closes the connection in the middle of the file.
    insta::assert_snapshot!(error_from_folder(&format!("cut/v{VERSION}")), @"install.sh: cannot download [SERVER]/cut/v[VERSION]/SHA256SUMS");
    insta::assert_snapshot!(error_from_folder("nowhere"), @"install.sh: cannot download [SERVER]/nowhere/SHA256SUMS");
}

#[test]
fn unsupported_machines_and_usage_errors_are_reported_without_changes() {
    let machine = InstallMachine::new();
    let world = &machine.world;
    world.write_program("other/uname", "#!/bin/sh\ncase $1 in -s) echo Plan9 ;; *) echo mips ;; esac\n");
    let before = machine.home_listing();
    let address = format!("{}/v{VERSION}", machine.server);
    let path = format!("{}:/usr/bin:/bin", world.path("other").display());
    let unknown = machine.script_launch(&["--from", &address]).env("PATH", path).run();
    let targets = TARGETS.join(" ");
    let unknown = FinishedProgram { stderr: unknown.stderr.replace(&targets, "[TARGETS]"), ..unknown };
    insta::assert_snapshot!(machine.stable_error_with_code(&unknown, 1), @"install.sh: there is no archive for this machine (Plan9 mips); there are: [TARGETS]. With Rust: cargo install --locked --git https://example.invalid/plimsoll plimsoll");
    world.write_program(
        "windows/uname",
        "#!/bin/sh\ncase $1 in -s) echo MINGW64_NT-10.0 ;; *) echo x86_64 ;; esac\n",
    );
    let path = format!("{}:/usr/bin:/bin", world.path("windows").display());
    let windows = machine.script_launch(&["--from", &address]).env("PATH", path).run();
    insta::assert_snapshot!(machine.stable_error_with_code(&windows, 1), @"install.sh: there are no programs for Windows yet; use WSL");
    let usage_error = |arguments: &[&str]| {
        let error = machine.stable_error_with_code(&machine.script_launch(arguments).run(), 2);
        let (error, usage) = error.split_once('\n').expect("an error and the usage");
        assert!(usage.starts_with("Usage: "), "{usage}");
        error.to_owned()
    };
    insta::assert_snapshot!(usage_error(&["--from", "http://example.invalid/x"]), @"install.sh: the address must begin with https://: http://example.invalid/x");
    insta::assert_snapshot!(usage_error(&["--from", "http://127.0.0.1:1@example.invalid/x"]), @"install.sh: the address may not have an @: http://127.0.0.1:1@example.invalid/x");
    insta::assert_snapshot!(usage_error(&["--from", "file:///etc"]), @"install.sh: the address must begin with https://: file:///etc");
    insta::assert_snapshot!(usage_error(&["--from"]), @"install.sh: --from needs an address");
    insta::assert_snapshot!(usage_error(&["--version", "../../etc"]), @"install.sh: this is no version: ../../etc");
    insta::assert_snapshot!(usage_error(&["--frob"]), @"install.sh: unknown argument: --frob");
    let homeless = machine.script_launch(&["--from", &address]).env("HOME", "").run();
    insta::assert_snapshot!(machine.stable_error_with_code(&homeless, 1), @"install.sh: HOME is not set");
    assert_eq!(machine.home_listing(), before);

    // The tests may run as root, who can write everywhere, but not below a file.
    world.write(machine.path_in_home(".local"), "a file");
    let before = machine.home_listing();
    let refused = machine.install_from_folder(&format!("v{VERSION}"), &[]);
    let error = machine.stable_error_with_code(&refused, 1);
    insta::assert_snapshot!(error.lines().last().unwrap_or_default(), @"install.sh: cannot make the folder [WORLD]/empty home/.local/share/plimsoll/versions");
    assert_eq!(machine.home_listing(), before);
}

/// Creates a folder with only the tools that macOS 11 has: no `sha256sum`, no `realpath`. They are still the GNU versions.
fn create_folder_of_mac_tools(world: &World, machine: &str) -> String {
    let tools = "awk basename bash cat chmod cp cut curl diff dirname env grep gzip head ln ls mkdir mktemp mv perl readlink rm \
                 rmdir sed sh shasum tar touch tr";
    let line = format!(
        "mkdir mac; for tool in {tools}; do at=$(command -v $tool) && ln -s \"$at\" mac/ || echo $tool; done"
    );
    let missing = run_bash_line(world, &line).stdout;
    assert!(missing.is_empty() || missing == "curl\n", "not here: {missing}");
    world.write_program(
        "mac/uname",
        &format!("#!/bin/sh\ncase ${{1:-}} in -s) echo Darwin ;; *) echo {machine} ;; esac\n"),
    );
    world.path("mac").display().to_string()
}

#[test]
fn mac_gets_the_archive_for_its_processor_with_macos_tools_alone() {
    // Under Rosetta `uname` reports an Intel processor; only `sysctl` tells that it is one of Apple's.
    for (reported_machine, apple_cpu_flag, target) in [
        ("arm64", "1", "aarch64-apple-darwin"),
        ("x86_64", "1", "aarch64-apple-darwin"),
        ("x86_64", "0", "x86_64-apple-darwin"),
    ] {
        let machine = InstallMachine::new();
        let path = create_folder_of_mac_tools(&machine.world, reported_machine);
        machine.world.write_program("mac/sysctl", &format!("#!/bin/sh\necho {apple_cpu_flag}\n"));
        let remove_other_archives = format!(
            "cd www/v{VERSION} && for file in plimsoll-*; do case $file in *-{target}.*) ;; *) rm $file ;; esac; done"
        );
        run_bash_line(&machine.world, &remove_other_archives).expect_success();
        let address = format!("{}/v{VERSION}", machine.server);
        let run_on_mac = |arguments: &[&str]| {
            machine.script_launch(arguments).env("PATH", path.as_str()).run().expect_success()
        };
        let finished = run_on_mac(&["--from", &address]);
        assert_eq!(finished.stderr, "", "{target}");
        assert!(machine.version_output_of(".local/bin/plimsoll").starts_with("plimsoll "), "{target}");
        run_on_mac(&["--uninstall"]);
    }
}

#[test]
fn installer_refuses_to_overwrite_another_installation() {
    let machine = InstallMachine::new();
    machine.world.write(machine.path_in_home(".local/bin/plimsoll-mcp"), "of another installer");
    let refused = machine.install_from_folder(&format!("v{VERSION}"), &[]);
    insta::assert_snapshot!(machine.stable_error_with_code(&refused, 1), @"install.sh: [WORLD]/empty home/.local/bin/plimsoll-mcp is there and not of this script: remove that installation first, or the file");
    assert_eq!(machine.world.read(machine.path_in_home(".local/bin/plimsoll-mcp")), "of another installer");
    assert!(
        !machine.path_in_home(".local/share/plimsoll").exists()
            && !machine.path_in_home(".local/bin/plimsoll").exists()
    );
}

#[test]
fn links_created_by_npm_init_are_replaced() {
    let machine = InstallMachine::new();
    let bin = machine.path_in_home(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let npm_link = machine.path_in_home(".local/share/plimsoll/bin");
    std::fs::create_dir_all(machine.path_in_home(".local/share/plimsoll/versions/0.0.1/bin")).unwrap();
    std::os::unix::fs::symlink(machine.path_in_home(".local/share/plimsoll/versions/0.0.1/bin"), &npm_link)
        .unwrap();
    std::os::unix::fs::symlink(npm_link.join("plimsoll"), bin.join("plimsoll")).unwrap();
    machine.install_from_folder(&format!("v{VERSION}"), &[]).expect_success();
    assert_eq!(machine.version_output_of(".local/bin/plimsoll"), format!("plimsoll {VERSION}\n"));
    machine.script_launch(&["--uninstall"]).run().expect_success();
    assert!(npm_link.is_symlink(), "npm's installation stays");
    std::fs::remove_dir_all(machine.path_in_home(".local/share/plimsoll/versions/0.0.1")).unwrap();
    machine.install_from_folder(&format!("v{VERSION}"), &[]).expect_success();
    machine.script_launch(&["--uninstall"]).run().expect_success();
    assert!(!machine.path_in_home(".local/share/plimsoll").exists(), "no link is left that leads nowhere");
}

#[test]
fn every_common_posix_shell_can_run_the_installer() {
    let machine = InstallMachine::new();
    let address = format!("{}/v{VERSION}", machine.server);
    // `sh` is bash on macOS, dash on Debian, busybox on Alpine; one version of macOS had zsh.
    for shell_command in
        [&["bash", "--posix"][..], &["dash"], &["busybox", "sh"], &["zsh", "--emulate", "sh"]]
    {
        if find_optional_program(shell_command[0]).is_none() {
            continue;
        }
        let arguments = [&shell_command[1..], &["install.sh", "--from", &address]].concat();
        let launch = machine.world.command(shell_command[0], &arguments).env("HOME", machine.home.as_str());
        launch.timeout(COMMAND_TIMEOUT).run().expect_success();
        assert_eq!(
            machine.version_output_of(".local/bin/plimsoll"),
            format!("plimsoll {VERSION}\n"),
            "{shell_command:?}"
        );
        machine.script_launch(&["--uninstall"]).run().expect_success();
    }
}

#[test]
fn installed_release_is_not_writable_by_other_users() {
    // For root, `tar` applies the modes of the archive and ignores the umask, so a stricter umask shows only in the upper folders.
    for (umask, modes) in [("0", "-perm /022"), ("077", "-maxdepth 3 -perm /077")] {
        let machine = InstallMachine::new();
        let line = format!(
            "umask {umask}; sh install.sh --from '{}/v{VERSION}' && find \"$HOME/.local\" {modes} ! -type l",
            machine.server
        );
        let sh = machine.world.command("bash", &["-c", &line]).env("HOME", machine.home.as_str());
        let finished = sh.env("XDG_DATA_HOME", "").timeout(COMMAND_TIMEOUT).run().expect_success();
        assert!(finished.stdout.ends_with("Next: plimsoll init\n"), "umask {umask}: {finished:?}");
    }
}

/// If the connection breaks, `curl … | sh` runs the part of the script that has arrived.
#[test]
fn truncated_script_does_nothing() {
    let machine = InstallMachine::new();
    let before = machine.home_listing();
    let text = machine.world.read("install.sh");
    let last = text.trim_end().rfind('\n').expect("lines");
    // Two lengths cut the script before its last line and within it.
    let lengths = (0..20).map(|part| last * part / 20).chain([last, last + 3]);
    for length in lengths {
        machine.world.write("part.sh", text.get(..length).expect("ASCII"));
        let line = format!("sh -s -- --from '{}/v{VERSION}' <part.sh", machine.server);
        let sh = machine.world.command("bash", &["-c", &line]);
        let finished = sh.env("HOME", machine.home.as_str()).timeout(COMMAND_TIMEOUT).run();
        assert_eq!(
            (finished.stdout.as_str(), machine.home_listing()),
            ("", before.clone()),
            "{length}: {finished:?}"
        );
    }
}
