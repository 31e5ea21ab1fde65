//! The script that downloads a release, against a server on loopback.
//!
//! Tests commands shown in docs/start.md and docs/upgrade.md.

use crate::packaging::sample_releases::{TARGETS, VERSION, own_target, serve, stand_in};
use crate::packaging::{LONG, found, shell, tree};
use plimsoll_testkit::world::{Finished, Launch, World};
use std::path::PathBuf;

/// An empty home with a space in its name, a server with two releases, and the script as a release has it.
struct Machine {
    world: World,
    home: String,
    server: String,
}

const OLD: &str = "0.0.9";

impl Machine {
    fn new() -> Machine {
        let world = World::without_git().without_plimsoll();
        for version in [OLD, VERSION] {
            stand_in(&world, &format!("www/v{version}"), version);
        }
        let template = plimsoll_testkit::workspace_root().join("scripts/release/install.sh");
        let text = std::fs::read_to_string(template).expect("the script");
        let text = text.replace("@VERSION@", VERSION).replace("@TARGETS@", &TARGETS.join(" "));
        world.write("install.sh", &text.replace("@REPOSITORY@", "https://example.invalid/plimsoll"));
        let home = world.project().with_file_name("empty home");
        std::fs::create_dir_all(&home).expect("the temporary folder is writable");
        let server = serve(world.path("www"));
        Machine { home: home.display().to_string(), world, server }
    }

    fn script(&self, arguments: &[&str]) -> Launch {
        let sh = self.world.command("sh", &[&["install.sh"], arguments].concat());
        sh.env("HOME", self.home.as_str()).env("XDG_DATA_HOME", "").env("SHELL", "/bin/sh").timeout(LONG)
    }

    /// From one of the folders of the server.
    fn install(&self, folder: &str, more: &[&str]) -> Finished {
        let from = format!("{}/{folder}", self.server);
        self.script(&[&["--from", from.as_str()], more].concat()).run()
    }

    /// Returns the error of a call that fails with this code, without what differs from one machine or version to the next.
    fn error_of(&self, finished: &Finished, code: i32) -> String {
        assert_eq!(finished.code, Some(code), "{finished:?}");
        let error = finished.stderr.replace(&self.server, "[SERVER]").replace(own_target(), "[TARGET]");
        self.world.stable_text(&error.replace(VERSION, "[VERSION]").replace(OLD, "[OLD VERSION]"))
    }

    fn at(&self, relative: &str) -> PathBuf {
        PathBuf::from(&self.home).join(relative)
    }

    fn tree(&self) -> String {
        tree(&self.world, &self.home)
    }

    fn says(&self, program: &str) -> String {
        self.world.command(self.at(program), &["--version"]).run().expect_success().stdout
    }
}

#[test]
fn a_release_is_installed_again_upgraded_and_removed_without_a_trace() {
    let machine = Machine::new();
    machine.world.write(machine.at(".local/bin/mine"), "#!/bin/sh\n");
    let before = machine.tree();
    let said = machine.install(&format!("v{OLD}"), &["--version", OLD]).expect_success();
    assert_eq!(said.stderr, "");
    assert!(said.stdout.contains(".local/bin is not on your PATH") && said.stdout.contains("plimsoll init"));
    assert_eq!(machine.says(".local/bin/plimsoll"), format!("plimsoll {OLD}\n"));
    assert!(machine.at(".local/bin/plimsoll-only-in-0.0.9").exists());

    let new = format!("v{VERSION}");
    machine.install(&new, &[]).expect_success();
    assert_eq!(machine.says(".local/bin/plimsoll"), format!("plimsoll {VERSION}\n"));
    for linked in
        ["bin/plimsoll-post-tool", "share/man/man1/plimsoll.1", "share/zsh/site-functions/_plimsoll"]
    {
        let path = machine.at(&format!(".local/{linked}"));
        let target = path.canonicalize().expect(linked).display().to_string();
        assert!(target.contains(&format!("/plimsoll/versions/{VERSION}/")), "{target}");
    }
    assert!(!machine.at(".local/bin/plimsoll-only-in-0.0.9").is_symlink(), "the new version has none");
    // Sessions that are open may still name it.
    assert_eq!(
        machine.says(&format!(".local/share/plimsoll/versions/{OLD}/bin/plimsoll")),
        format!("plimsoll {OLD}\n")
    );
    let once = machine.tree();
    machine.install(&new, &[]).expect_success();
    assert_eq!(machine.tree(), once);

    let removed = machine.script(&["--uninstall"]).run().expect_success();
    assert!(removed.stdout.contains("`plimsoll uninstall`"), "{removed:?}");
    // The folders of links stay: others put theirs there, too.
    let left = format!("cd '{}' && find . -mindepth 1 ! -type d; ls .local/share", machine.home);
    assert_eq!(
        shell(&machine.world, &left).stdout,
        "./.local/bin/mine\nbash-completion\nfish\nman\nzsh\n",
        "{before}"
    );
    let nothing = machine.script(&["--uninstall"]).run();
    insta::assert_snapshot!(machine.error_of(&nothing, 1), @"install.sh: nothing is installed in [WORLD]/empty home/.local/share/plimsoll/versions");
}

#[test]
fn nothing_is_installed_of_a_download_that_is_not_as_it_should_be() {
    let machine = Machine::new();
    let world = &machine.world;
    let target = own_target();
    let archive = format!("plimsoll-{VERSION}-{target}.tar.gz");
    for folder in ["changed", "no-archive", "no-sums", "unnamed", "wrong-version", "not-running"] {
        shell(world, &format!("cp -R www/v{VERSION} www/{folder}")).expect_success();
    }
    let spoil = format!(
        "cd www && printf x >>changed/{archive} && rm no-archive/{archive} no-sums/SHA256SUMS && \
         sed -i '/{target}/d' unnamed/SHA256SUMS && mkdir old && \
         cp -R ../stage/plimsoll-{OLD}-{target} old/plimsoll-{VERSION}-{target} && \
         tar -czf wrong-version/{archive} -C old plimsoll-{VERSION}-{target} && \
         mkdir -p s/plimsoll-{VERSION}-{target}/bin && echo nothing >s/plimsoll-{VERSION}-{target}/bin/plimsoll && \
         tar -czf not-running/{archive} -C s plimsoll-{VERSION}-{target} && \
         for f in wrong-version not-running; do (cd $f && sha256sum *.gz >SHA256SUMS); done"
    );
    shell(world, &spoil).expect_success();
    let before = machine.tree();
    let error = |folder: &str| {
        let error = machine.error_of(&machine.install(folder, &[]), 1);
        assert_eq!(machine.tree(), before, "{folder}");
        // Other programs may have printed something before.
        error.lines().last().unwrap_or_default().to_owned()
    };
    let changed = error("changed");
    // The two digests differ from one build of the archive to the next.
    let (before_digests, digests) = changed.split_once(" (").expect("two digests");
    let (_, after) = digests.split_once("): ").expect("the consequence");
    insta::assert_snapshot!(format!("{before_digests}: {after}"), @"install.sh: plimsoll-[VERSION]-[TARGET].tar.gz is not what SHA256SUMS says: nothing was installed");
    insta::assert_snapshot!(error("no-archive"), @"install.sh: cannot download [SERVER]/no-archive/plimsoll-[VERSION]-[TARGET].tar.gz");
    insta::assert_snapshot!(error("no-sums"), @"install.sh: cannot download [SERVER]/no-sums/SHA256SUMS");
    insta::assert_snapshot!(error("unnamed"), @"install.sh: SHA256SUMS of [SERVER]/unnamed does not name plimsoll-[VERSION]-[TARGET].tar.gz");
    insta::assert_snapshot!(error("wrong-version"), @r#"install.sh: the archive of [VERSION] has "plimsoll [OLD VERSION]": nothing was installed"#);
    insta::assert_snapshot!(error("not-running"), @"install.sh: the program does not run on this machine: nothing was installed");
    // The server breaks off in the middle.
    insta::assert_snapshot!(error(&format!("cut/v{VERSION}")), @"install.sh: cannot download [SERVER]/cut/v[VERSION]/SHA256SUMS");
    insta::assert_snapshot!(error("nowhere"), @"install.sh: cannot download [SERVER]/nowhere/SHA256SUMS");
}

#[test]
fn what_is_wrong_with_the_machine_or_the_call_is_named_and_changes_nothing() {
    let machine = Machine::new();
    let world = &machine.world;
    world.write_program("other/uname", "#!/bin/sh\ncase $1 in -s) echo Plan9 ;; *) echo mips ;; esac\n");
    let before = machine.tree();
    let from = format!("{}/v{VERSION}", machine.server);
    let path = format!("{}:/usr/bin:/bin", world.path("other").display());
    let unknown = machine.script(&["--from", &from]).env("PATH", path).run();
    let targets = TARGETS.join(" ");
    let unknown = Finished { stderr: unknown.stderr.replace(&targets, "[TARGETS]"), ..unknown };
    insta::assert_snapshot!(machine.error_of(&unknown, 1), @"install.sh: there is no archive for this machine (Plan9 mips); there are: [TARGETS]. With Rust: cargo install --locked --git https://example.invalid/plimsoll plimsoll");
    world.write_program(
        "windows/uname",
        "#!/bin/sh\ncase $1 in -s) echo MINGW64_NT-10.0 ;; *) echo x86_64 ;; esac\n",
    );
    let path = format!("{}:/usr/bin:/bin", world.path("windows").display());
    let windows = machine.script(&["--from", &from]).env("PATH", path).run();
    insta::assert_snapshot!(machine.error_of(&windows, 1), @"install.sh: there are no programs for Windows yet; use WSL");
    let error = |arguments: &[&str]| {
        let error = machine.error_of(&machine.script(arguments).run(), 2);
        let (error, usage) = error.split_once('\n').expect("an error and the usage");
        assert!(usage.starts_with("Usage: "), "{usage}");
        error.to_owned()
    };
    insta::assert_snapshot!(error(&["--from", "http://example.invalid/x"]), @"install.sh: the address must begin with https://: http://example.invalid/x");
    insta::assert_snapshot!(error(&["--from", "http://127.0.0.1:1@example.invalid/x"]), @"install.sh: the address may not have an @: http://127.0.0.1:1@example.invalid/x");
    insta::assert_snapshot!(error(&["--from", "file:///etc"]), @"install.sh: the address must begin with https://: file:///etc");
    insta::assert_snapshot!(error(&["--from"]), @"install.sh: --from needs an address");
    insta::assert_snapshot!(error(&["--version", "../../etc"]), @"install.sh: this is no version: ../../etc");
    insta::assert_snapshot!(error(&["--frob"]), @"install.sh: unknown argument: --frob");
    let homeless = machine.script(&["--from", &from]).env("HOME", "").run();
    insta::assert_snapshot!(machine.error_of(&homeless, 1), @"install.sh: HOME is not set");
    assert_eq!(machine.tree(), before);

    // Root may write everywhere, but not below a file.
    world.write(machine.at(".local"), "a file");
    let before = machine.tree();
    let refused = machine.install(&format!("v{VERSION}"), &[]);
    let error = machine.error_of(&refused, 1);
    insta::assert_snapshot!(error.lines().last().unwrap_or_default(), @"install.sh: cannot make the folder [WORLD]/empty home/.local/share/plimsoll/versions");
    assert_eq!(machine.tree(), before);
}

/// Only the tools that macOS 11 has: no `sha256sum`, no `realpath`. Their own differences from GNU's cannot be tried here.
fn tools_of_a_mac(world: &World, machine: &str) -> String {
    let tools = "awk basename bash cat chmod cp cut curl diff dirname env grep gzip head ln ls mkdir mktemp mv perl readlink rm \
                 rmdir sed sh shasum tar touch tr";
    let line = format!(
        "mkdir mac; for tool in {tools}; do at=$(command -v $tool) && ln -s \"$at\" mac/ || echo $tool; done"
    );
    let missing = shell(world, &line).stdout;
    assert!(missing.is_empty() || missing == "curl\n", "not here: {missing}");
    world.write_program(
        "mac/uname",
        &format!("#!/bin/sh\ncase ${{1:-}} in -s) echo Darwin ;; *) echo {machine} ;; esac\n"),
    );
    world.path("mac").display().to_string()
}

#[test]
fn a_mac_gets_the_archive_for_its_processor_with_the_tools_that_it_has() {
    // Under Rosetta an Apple processor says that it is Intel's, and the system says what it is.
    for (says, is_apples, target) in [
        ("arm64", "1", "aarch64-apple-darwin"),
        ("x86_64", "1", "aarch64-apple-darwin"),
        ("x86_64", "0", "x86_64-apple-darwin"),
    ] {
        let machine = Machine::new();
        let path = tools_of_a_mac(&machine.world, says);
        machine.world.write_program("mac/sysctl", &format!("#!/bin/sh\necho {is_apples}\n"));
        let others = format!(
            "cd www/v{VERSION} && for file in plimsoll-*; do case $file in *-{target}.*) ;; *) rm $file ;; esac; done"
        );
        shell(&machine.world, &others).expect_success();
        let from = format!("{}/v{VERSION}", machine.server);
        let mac =
            |arguments: &[&str]| machine.script(arguments).env("PATH", path.as_str()).run().expect_success();
        let said = mac(&["--from", &from]);
        assert_eq!(said.stderr, "", "{target}");
        assert!(machine.says(".local/bin/plimsoll").starts_with("plimsoll "), "{target}");
        mac(&["--uninstall"]);
    }
}

#[test]
fn another_installation_is_left_alone() {
    let machine = Machine::new();
    machine.world.write(machine.at(".local/bin/plimsoll-mcp"), "of another installer");
    let refused = machine.install(&format!("v{VERSION}"), &[]);
    insta::assert_snapshot!(machine.error_of(&refused, 1), @"install.sh: [WORLD]/empty home/.local/bin/plimsoll-mcp is there and not of this script: remove that installation first, or the file");
    assert_eq!(machine.world.read(machine.at(".local/bin/plimsoll-mcp")), "of another installer");
    assert!(!machine.at(".local/share/plimsoll").exists() && !machine.at(".local/bin/plimsoll").exists());
}

#[test]
fn links_that_npms_init_made_are_replaced() {
    let machine = Machine::new();
    let bin = machine.at(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let through = machine.at(".local/share/plimsoll/bin");
    std::fs::create_dir_all(machine.at(".local/share/plimsoll/versions/0.0.1/bin")).unwrap();
    std::os::unix::fs::symlink(machine.at(".local/share/plimsoll/versions/0.0.1/bin"), &through).unwrap();
    std::os::unix::fs::symlink(through.join("plimsoll"), bin.join("plimsoll")).unwrap();
    machine.install(&format!("v{VERSION}"), &[]).expect_success();
    assert_eq!(machine.says(".local/bin/plimsoll"), format!("plimsoll {VERSION}\n"));
    machine.script(&["--uninstall"]).run().expect_success();
    assert!(through.is_symlink(), "npm's installation stays");
    std::fs::remove_dir_all(machine.at(".local/share/plimsoll/versions/0.0.1")).unwrap();
    machine.install(&format!("v{VERSION}"), &[]).expect_success();
    machine.script(&["--uninstall"]).run().expect_success();
    assert!(!machine.at(".local/share/plimsoll").exists(), "no link is left that leads nowhere");
}

#[test]
fn any_shell_that_is_somebodys_sh_installs_it() {
    let machine = Machine::new();
    let from = format!("{}/v{VERSION}", machine.server);
    // macOS has bash as its sh, Debian dash, Alpine busybox; there was a macOS that had zsh.
    for words in [&["bash", "--posix"][..], &["dash"], &["busybox", "sh"], &["zsh", "--emulate", "sh"]] {
        if found(words[0]).is_none() {
            continue;
        }
        let arguments = [&words[1..], &["install.sh", "--from", &from]].concat();
        let launch = machine.world.command(words[0], &arguments).env("HOME", machine.home.as_str());
        launch.timeout(LONG).run().expect_success();
        assert_eq!(machine.says(".local/bin/plimsoll"), format!("plimsoll {VERSION}\n"), "{words:?}");
        machine.script(&["--uninstall"]).run().expect_success();
    }
}

#[test]
fn nobody_else_may_write_a_release_that_is_installed() {
    // To root `tar` gives the modes of the archive, whatever the umask: of a stricter one only the folders above know.
    for (umask, modes) in [("0", "-perm /022"), ("077", "-maxdepth 3 -perm /077")] {
        let machine = Machine::new();
        let line = format!(
            "umask {umask}; sh install.sh --from '{}/v{VERSION}' && find \"$HOME/.local\" {modes} ! -type l",
            machine.server
        );
        let sh = machine.world.command("bash", &["-c", &line]).env("HOME", machine.home.as_str());
        let finished = sh.env("XDG_DATA_HOME", "").timeout(LONG).run().expect_success();
        assert!(finished.stdout.ends_with("Next: plimsoll init\n"), "umask {umask}: {finished:?}");
    }
}

/// `curl … | sh` runs what has come until the connection broke.
#[test]
fn a_part_of_the_script_does_nothing() {
    let machine = Machine::new();
    let before = machine.tree();
    let text = machine.world.read("install.sh");
    let last = text.trim_end().rfind('\n').expect("lines");
    // Also without any of the last line, and with a part of it.
    let lengths = (0..20).map(|part| last * part / 20).chain([last, last + 3]);
    for length in lengths {
        machine.world.write("part.sh", text.get(..length).expect("ASCII"));
        let line = format!("sh -s -- --from '{}/v{VERSION}' <part.sh", machine.server);
        let sh = machine.world.command("bash", &["-c", &line]);
        let finished = sh.env("HOME", machine.home.as_str()).timeout(LONG).run();
        assert_eq!(
            (finished.stdout.as_str(), machine.tree()),
            ("", before.clone()),
            "{length}: {finished:?}"
        );
    }
}
