//! Tests commands shown in README.md and docs/start.md.

use crate::packaging::{found, script, shell, tree};
use plimsoll_testkit::world::World;

/// A folder of this world, outside its project.
fn beside(world: &World, name: &str) -> String {
    let folder = world.project().with_file_name(name);
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    folder.display().to_string()
}

fn install(world: &World, prefix: &str, more: &[&str]) -> String {
    let finished = script(world, "install.sh", &[&["--prefix", prefix], more].concat()).run();
    assert_eq!(finished.stderr, "", "{finished:?}");
    finished.expect_success().stdout
}

#[test]
fn install_again_and_uninstall_leave_the_tree_as_it_was() {
    let world = World::new();
    let prefix = beside(&world, "pre fix");
    let at = |relative: &str| format!("{prefix}/{relative}");
    world.write(at("bin/mine"), "#!/bin/sh\n");
    world.write(at("share/man/man1/mine.1"), ".TH mine 1\n");
    let before = tree(&world, &prefix);

    let said = install(&world, &prefix, &[]).replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    insta::assert_snapshot!(world.stable_text(&said), @r#"
    plimsoll [VERSION] is installed:
      programs      [WORLD]/pre fix/bin: plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel and 8 hook programs
      completions   [WORLD]/pre fix/share: bash, zsh, fish (for the next shell you open)
      manual pages  [WORLD]/pre fix/share/man: man plimsoll, man plimsoll-run, …
    [WORLD]/pre fix/bin is not on your PATH. Add this line and open a new shell:
      export PATH="[WORLD]/pre fix/bin:$PATH"    # ~/.bashrc
    Next: plimsoll init
    "#);
    let version = world.command(at("bin/plimsoll"), &["--version"]).run().expect_success().stdout;
    assert!(version.starts_with("plimsoll "), "{version}");
    for hook in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let finished = world.command(at(&format!("bin/{hook}")), &[]).stdin("{}").run();
        assert_eq!((finished.code, finished.signal), (Some(0), None), "{hook}: {finished:?}");
    }
    let load = format!(
        ". '{}'; COMP_WORDS=(plimsoll ru); COMP_CWORD=1; _plimsoll plimsoll ru plimsoll; echo \"${{COMPREPLY[@]}}\"",
        at("share/bash-completion/completions/plimsoll")
    );
    assert_eq!(shell(&world, &load).expect_success().stdout, "run\n");

    // Again, over a program at work: whoever writes into its file is told that it is busy.
    let once = tree(&world, &prefix);
    let program = at("bin/plimsoll-mcp");
    let server = world.command("bash", &["-c", "exec \"$0\" < <(sleep 100)", &program]).spawn();
    let file = || std::fs::read_link(format!("/proc/{}/exe", server.pid())).unwrap_or_default();
    world.wait_until(|| file().as_os_str() == program.as_str(), "the server runs");
    install(&world, &prefix, &[]);
    assert_eq!(file().display().to_string(), format!("{program} (deleted)"), "it goes on with its own file");
    drop(server);
    assert_eq!(tree(&world, &prefix), once);

    insta::assert_snapshot!(world.stable_text(&install(&world, &prefix, &["--uninstall"])), @"
    Plimsoll has been removed from [WORLD]/pre fix.
    Hooks in settings files are not changed: run `plimsoll uninstall` in a project for those, before you remove the programs.
    ");
    assert_eq!(tree(&world, &prefix), before);
    let nothing = script(&world, "install.sh", &["--uninstall", "--prefix", &prefix]).run();
    assert_eq!(nothing.code, Some(1));
    insta::assert_snapshot!(world.stable_text(&nothing.stderr), @"install.sh: nothing is installed in [WORLD]/pre fix (there is no [WORLD]/pre fix/share/plimsoll/installed.txt); with another prefix: --prefix DIR --uninstall");
}

#[test]
fn an_empty_home_is_enough_and_shells_and_man_find_what_is_installed() {
    let mut world = World::without_git();
    let home = beside(&world, "empty home");
    world.set_env("HOME", home.as_str());
    world.set_env("SHELL", "/bin/bash");
    let said = script(&world, "install.sh", &[]).run().expect_success().stdout;
    let stable = world.stable_text(&said.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"));
    insta::assert_snapshot!(stable, @r#"
    plimsoll [VERSION] is installed:
      programs      ~/.local/bin: plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel and 8 hook programs
      completions   ~/.local/share: bash, zsh, fish (for the next shell you open)
      manual pages  ~/.local/share/man: man plimsoll, man plimsoll-run, …
    ~/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH="[WORLD]/empty home/.local/bin:$PATH"    # ~/.bashrc
    Next: plimsoll init
    "#);
    let line = said.lines().find(|line| line.contains("export PATH=")).expect("the line to add");
    // What the user is told to add is what is added here.
    let added = |command: &str| shell(&world, &format!("{line}\n{command}")).expect_success().stdout;
    assert_eq!(added("command -v plimsoll"), format!("{home}/.local/bin/plimsoll\n"));
    let mut again = added(&format!(
        "PLIMSOLL_BIN_DIR='{}' '{}'",
        plimsoll_testkit::bin_dir().display(),
        plimsoll_testkit::workspace_root().join("scripts/install.sh").display()
    ));
    assert!(!again.contains("PATH"), "{again}");
    if found("man").is_some() {
        again = added("man -w plimsoll-turns-list");
        assert_eq!(again, format!("{home}/.local/share/man/man1/plimsoll-turns-list.1\n"));
    }
    if found("fish").is_some() {
        assert!(added("fish -c \"complete -C 'plimsoll ru'\"").starts_with("run\t"));
        shell(&world, "rm -rf ~/.config ~/.cache");
    }
    script(&world, "install.sh", &["--uninstall"]).run().expect_success();
    assert_eq!(tree(&world, &home).lines().count(), 1, "{}", tree(&world, &home));
}

/// As on a Mac: with nothing on the PATH that macOS 11 does not have.
#[test]
fn the_installer_needs_no_tool_that_a_mac_lacks() {
    let world = World::without_git();
    let prefix = beside(&world, "prefix");
    let tools = "awk basename bash cat chmod cp cut dirname env grep head ln ls mkdir mktemp mv rm rmdir sed sh tr uname";
    shell(&world, &format!("mkdir mac; for tool in {tools}; do ln -s \"$(command -v $tool)\" mac/; done"))
        .expect_success();
    let path = world.path("mac").display().to_string();
    let install = |more: &[&str]| {
        // Another spelling of the folder: nothing follows from it.
        let spelt = format!("{prefix}/../mac-less/.././prefix//");
        let arguments = [&["--prefix", spelt.as_str()], more].concat();
        let finished = script(&world, "install.sh", &arguments).env("PATH", path.as_str()).run();
        assert_eq!(finished.stderr, "", "{finished:?}");
        finished.expect_success().stdout
    };
    assert!(install(&[]).contains(&format!("{prefix}/bin:")));
    let listed = world.read(format!("{prefix}/share/plimsoll/installed.txt"));
    assert!(listed.lines().all(|line| line.starts_with(&prefix) && !line.contains("..")), "{listed}");
    install(&["--uninstall"]);
    assert_eq!(
        shell(&world, &format!("find '{prefix}' -mindepth 1")).stdout,
        "",
        "a folder after what lies in it"
    );
}

#[test]
fn what_an_older_version_had_goes_and_what_others_put_there_stays() {
    let world = World::without_git();
    let prefix = beside(&world, "prefix");
    install(&world, &prefix, &[]);
    let (old, list) =
        (format!("{prefix}/bin/plimsoll-old"), format!("{prefix}/share/plimsoll/installed.txt"));
    world.write(&old, "#!/bin/sh\n");
    world.write(&list, &format!("{}{old}\n", world.read(&list)));
    install(&world, &prefix, &[]);
    assert!(!world.exists(&old));
    let foreign = format!("{prefix}/share/zsh/site-functions/_mine");
    world.write(&foreign, "#compdef mine\n");
    install(&world, &prefix, &["--uninstall"]);
    let left = shell(&world, &format!("find '{prefix}' -type f")).stdout;
    assert_eq!(left, format!("{foreign}\n"));
}

#[test]
fn wrong_usage_and_missing_programs_change_nothing() {
    let world = World::without_git();
    let prefix = beside(&world, "prefix");
    let help = script(&world, "install.sh", &["--help"]).run().expect_success();
    assert_eq!(help.stderr, "");
    insta::assert_snapshot!(help.stdout, @"
    Usage: install.sh [--prefix DIR] [--uninstall]

      --prefix DIR   where to install [default: ~/.local]
                       DIR/bin                 the programs
                       DIR/share               completions for bash, zsh and fish, manual pages
      --uninstall    remove what was installed there, and nothing else
      --help         this text

    PLIMSOLL_BIN_DIR names a folder of programs that are already built.
    ");
    let error = |arguments: &[&str]| {
        let finished = script(&world, "install.sh", arguments).run();
        assert_eq!(finished.code, Some(2), "{finished:?}");
        let (error, usage) = finished.stderr.split_once('\n').expect("two parts");
        assert_eq!(usage, help.stdout);
        error.to_owned()
    };
    assert_eq!(error(&["--frob"]), "install.sh: unknown argument: --frob");
    assert_eq!(error(&["--prefix"]), "install.sh: --prefix needs a folder");
    assert_eq!(error(&["--prefix", &prefix, "here"]), "install.sh: unknown argument: here");
    let some = beside(&world, "some");
    let finished =
        script(&world, "install.sh", &["--prefix", &prefix]).env("PLIMSOLL_BIN_DIR", some.as_str()).run();
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"install.sh: [WORLD]/some lacks plimsoll");
    assert_eq!(shell(&world, &format!("find '{prefix}' '{some}' -mindepth 1")).stdout, "");
    // Seen when the programs and their folders are there already, beside their places.
    world.write(format!("{prefix}/share/man/man1/plimsoll.1/mine"), "a folder where a page would go");
    let before = tree(&world, &prefix);
    let finished = script(&world, "install.sh", &["--prefix", &prefix]).run();
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"install.sh: [WORLD]/prefix/share/man/man1/plimsoll.1 is a folder");
    assert_eq!(tree(&world, &prefix), before);
}

/// What `cargo install` leaves: the file of the hooks, without their names.
#[test]
fn init_gives_the_hook_programs_their_names() {
    let world = World::new();
    let alone = beside(&world, "alone");
    let bin = plimsoll_testkit::bin_dir().display().to_string();
    shell(
        &world,
        &format!("cp '{bin}/plimsoll' '{alone}' && cp '{bin}/plimsoll-post-tool' '{alone}/plimsoll-hook'"),
    )
    .expect_success();
    let init =
        |arguments: &[&str]| world.command(format!("{alone}/plimsoll"), arguments).run().expect_success();
    let dry = init(&["init", "--local", "--dry-run"]).stdout;
    assert!(!dry.contains("Careful") && !tree(&world, &alone).contains("post-tool"), "{dry}");
    let said = init(&["init", "--local"]).stdout;
    assert!(!said.contains("Careful"), "{said}");
    for name in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let version = shell(&world, &format!("'{alone}/{name}' version")).expect_success().stdout;
        assert_eq!(version.trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
    // A later `cargo install` replaces the file: a name must not hold on to the old one.
    let link = shell(&world, &format!("readlink '{alone}/plimsoll-stop-gate'")).expect_success().stdout;
    assert_eq!(link.trim(), "plimsoll-hook");
}

#[test]
fn a_hook_program_is_known_by_its_name_or_by_what_its_link_leads_to() {
    let world = World::new();
    let folder = beside(&world, "names");
    let bin = plimsoll_testkit::bin_dir().display().to_string();
    let made = format!(
        "cp '{bin}/plimsoll-statusline' '{folder}' && cd '{folder}' && ln -s plimsoll-statusline my-line && ln -s plimsoll-statusline plimsoll-line && ln plimsoll-statusline plimsoll-hook"
    );
    shell(&world, &made).expect_success();
    for link in ["my-line", "plimsoll-line"] {
        let by_link = shell(&world, &format!("'{folder}/{link}' version")).expect_success().stdout;
        assert!(by_link.starts_with("plimsoll-statusline "), "{link}: {by_link}");
    }
    // No session ends because a program was started by a name that says nothing.
    let nameless = shell(&world, &format!("echo '{{}}' | '{folder}/plimsoll-hook'")).expect_success();
    assert_eq!(nameless.stdout, "");
    insta::assert_snapshot!(world.stable_text(&nameless.stderr), @"plimsoll-hook: start it by a link with the name of a hook: plimsoll-frame, plimsoll-memory, plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-session-start, plimsoll-statusline, plimsoll-stop-gate");
}

#[test]
fn the_command_without_its_hooks_says_how_to_get_them() {
    let world = World::new();
    let alone = beside(&world, "alone");
    shell(&world, &format!("cp '{}/plimsoll' '{alone}'", plimsoll_testkit::bin_dir().display()))
        .expect_success();
    let said = world.command(format!("{alone}/plimsoll"), &["init", "--local"]).run().expect_success().stdout;
    let careful = said.lines().find(|line| line.starts_with("Careful")).unwrap_or(&said);
    insta::assert_snapshot!(world.stable_text(careful), @"Careful: [WORLD]/alone lacks plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-session-start, plimsoll-statusline, plimsoll-stop-gate, which therefore cannot run. Install all programs together: `scripts/install.sh` in a clone or a release archive installs them, `cargo install --locked --git https://example.invalid/plimsoll plimsoll` too.");
}

#[test]
fn nobody_else_may_write_what_is_installed_whatever_the_umask() {
    let world = World::without_git();
    let bin = plimsoll_testkit::bin_dir().display().to_string();
    let installer = plimsoll_testkit::workspace_root().join("scripts/install.sh").display().to_string();
    let under = |umask: &str, prefix: &str| {
        let line = format!("umask {umask}; PLIMSOLL_BIN_DIR='{bin}' '{installer}' --prefix '{prefix}'");
        shell(&world, &line).expect_success();
    };
    let found = |prefix: &str, modes: &str| {
        shell(&world, &format!("find '{prefix}' {modes}")).expect_success().stdout
    };
    let open = beside(&world, "open");
    let prefix = format!("{open}/pre/fix");
    under("0", &prefix);
    assert_eq!(found(&format!("{open}/pre"), "! -type l -perm /022"), "");
    assert_eq!(found(&prefix, "-type f -path '*/bin/*' ! -perm 755"), "");
    // A stricter umask than ours stays.
    let strict = format!("{open}/strict");
    under("077", &strict);
    assert_eq!(found(&strict, "-perm /077"), "");
    assert!(found(&strict, "-name plimsoll -perm 700").contains("/bin/plimsoll\n"));
}

#[test]
fn a_forged_list_removes_nothing_but_what_an_installation_can_have_made() {
    let world = World::without_git();
    let top = beside(&world, "top");
    let prefix = format!("{top}/prefix");
    let list = format!("{prefix}/share/plimsoll/installed.txt");
    let victims = ["victim", "folder/victim", "folder/plimsoll-victim"].map(|name| format!("{top}/{name}"));
    let forged = [
        "{prefix}/../victim",
        "{prefix}/bin/../../victim",
        "{prefix}/./../victim",
        "{prefix}//../victim",
        "{prefix}/out/victim",
        "{prefix}/out/plimsoll-victim",
        "{prefix}/bin/out/plimsoll-victim",
        "{prefix}/bin/out/victim",
        "{top}/victim",
        "{top}/folder/empty/",
        "{prefix}/out/empty/",
        "{prefix}/../folder/empty/",
        "{prefix}/..",
        "victim",
        "../victim",
    ]
    .map(|line| line.replace("{prefix}", &prefix).replace("{top}", &top) + "\n")
    .concat();
    let prepare = || {
        install(&world, &prefix, &[]);
        victims.iter().for_each(|victim| world.write(victim, "precious\n"));
        let line = format!(
            "mkdir -p '{top}/folder/empty' && ln -sfn ../folder '{prefix}/out' && ln -sfn ../../folder '{prefix}/bin/out'"
        );
        shell(&world, &line).expect_success();
        world.write(&list, &format!("{}{forged}", world.read(&list)));
    };
    // An upgrade removes what its list does not name any more, --uninstall what it names.
    for arguments in [&[][..], &["--uninstall"]] {
        prepare();
        let finished = script(&world, "install.sh", &[&["--prefix", &prefix], arguments].concat()).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let refusal = format!(
            "install.sh: not removed, because it is no file or folder below {prefix} that this script made: "
        );
        let mut lines = finished.stderr.lines().peekable();
        assert!(lines.peek().is_some() && lines.all(|line| line.starts_with(&refusal)), "{finished:?}");
        for victim in &victims {
            assert_eq!(world.read(victim), "precious\n", "{arguments:?}: {victim}");
        }
        assert!(world.exists(format!("{top}/folder/empty")), "{arguments:?}");
    }
    assert!(!world.exists(format!("{prefix}/bin/plimsoll")), "what is ours is gone");

    // A list that somebody else can have written is not read at all.
    for (spoil, words) in [
        (
            format!("chmod 666 '{list}'"),
            format!(
                "everybody can write {list}, which says what is removed: read it, then run: chmod o-w '{list}'"
            ),
        ),
        (
            format!("mv '{list}' '{top}/list' && ln -s '{top}/list' '{list}'"),
            format!("{list} is a link, which Plimsoll does not make: look where it leads, and remove it"),
        ),
    ] {
        prepare();
        shell(&world, &spoil).expect_success();
        for arguments in [&[][..], &["--uninstall"]] {
            let refused = script(&world, "install.sh", &[&["--prefix", &prefix], arguments].concat()).run();
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert_eq!(refused.stderr, format!("install.sh: {words}\n"));
            assert!(world.exists(format!("{prefix}/bin/plimsoll")));
        }
        shell(&world, &format!("rm '{list}'")).expect_success();
    }
}

/// As with a home whose `~/.local/bin` is a link into another folder of the user's.
#[test]
fn programs_behind_a_link_of_the_users_are_removed_too() {
    let world = World::without_git();
    let top = beside(&world, "top");
    shell(&world, &format!("mkdir -p '{top}/prefix' '{top}/bin' && ln -s ../bin '{top}/prefix/bin'"))
        .expect_success();
    let prefix = format!("{top}/prefix");
    install(&world, &prefix, &[]);
    assert!(world.exists(format!("{top}/bin/plimsoll")));
    install(&world, &prefix, &["--uninstall"]);
    assert_eq!(shell(&world, &format!("find '{top}' -type f")).stdout, "");
}
