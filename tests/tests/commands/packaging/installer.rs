//! Tests commands shown in README.md and docs/start.md.

use crate::packaging::{find_optional_program, run_bash_line, script_launch, tree_listing};
use plimsoll_testkit::world::World;

/// Creates a folder in this world, outside its project, and returns its path.
fn create_folder_outside_project(world: &World, name: &str) -> String {
    let folder = world.project().with_file_name(name);
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    folder.display().to_string()
}

fn run_installer(world: &World, prefix: &str, extra_arguments: &[&str]) -> String {
    let finished =
        script_launch(world, "install.sh", &[&["--prefix", prefix], extra_arguments].concat()).run();
    assert_eq!(finished.stderr, "", "{finished:?}");
    finished.expect_success().stdout
}

#[test]
fn installing_twice_and_uninstalling_restores_the_original_tree() {
    let world = World::new();
    let prefix = create_folder_outside_project(&world, "pre fix");
    let path_in_prefix = |relative: &str| format!("{prefix}/{relative}");
    world.write(path_in_prefix("bin/mine"), "#!/bin/sh\n");
    world.write(path_in_prefix("share/man/man1/mine.1"), ".TH mine 1\n");
    let before = tree_listing(&world, &prefix);

    let stdout = run_installer(&world, &prefix, &[]).replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&stdout), @r#"
    plimsoll [VERSION] is installed:
      programs      [WORLD]/pre fix/bin: plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel and 8 hook programs
      completions   [WORLD]/pre fix/share: bash, zsh, fish (for the next shell you open)
      manual pages  [WORLD]/pre fix/share/man: man plimsoll, man plimsoll-run, …
    [WORLD]/pre fix/bin is not on your PATH. Add this line and open a new shell:
      export PATH="[WORLD]/pre fix/bin:$PATH"    # ~/.bashrc
    Next: plimsoll init
    "#);
    let version = world.command(path_in_prefix("bin/plimsoll"), &["--version"]).run().expect_success().stdout;
    assert!(version.starts_with("plimsoll "), "{version}");
    for hook in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let finished = world.command(path_in_prefix(&format!("bin/{hook}")), &[]).stdin("{}").run();
        assert_eq!((finished.code, finished.signal), (Some(0), None), "{hook}: {finished:?}");
    }
    let load = format!(
        ". '{}'; COMP_WORDS=(plimsoll ru); COMP_CWORD=1; _plimsoll plimsoll ru plimsoll; echo \"${{COMPREPLY[@]}}\"",
        path_in_prefix("share/bash-completion/completions/plimsoll")
    );
    assert_eq!(run_bash_line(&world, &load).expect_success().stdout, "run\n");

    // Installs over a running program. Writing into its file would fail with "text file busy".
    let after_install = tree_listing(&world, &prefix);
    let program = path_in_prefix("bin/plimsoll-mcp");
    let server = world.command("bash", &["-c", "exec \"$0\" < <(sleep 100)", &program]).spawn();
    let server_executable = || std::fs::read_link(format!("/proc/{}/exe", server.pid())).unwrap_or_default();
    world.wait_until(|| server_executable().as_os_str() == program.as_str(), "the server runs");
    run_installer(&world, &prefix, &[]);
    assert_eq!(
        server_executable().display().to_string(),
        format!("{program} (deleted)"),
        "it goes on with its own file"
    );
    drop(server);
    assert_eq!(tree_listing(&world, &prefix), after_install);

    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&run_installer(&world, &prefix, &["--uninstall"])), @"
    Plimsoll has been removed from [WORLD]/pre fix.
    Settings are not changed. If they still have hooks of Plimsoll, install it again, and run `plimsoll uninstall` first.
    ");
    assert_eq!(tree_listing(&world, &prefix), before);
    let second_uninstall = script_launch(&world, "install.sh", &["--uninstall", "--prefix", &prefix]).run();
    assert_eq!(second_uninstall.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&second_uninstall.stderr), @"install.sh: nothing is installed in [WORLD]/pre fix (there is no [WORLD]/pre fix/share/plimsoll/installed.txt); with another prefix: --prefix DIR --uninstall");
}

#[test]
fn installer_works_in_an_empty_home_and_shells_and_man_find_the_files() {
    let mut world = World::without_git();
    let home = create_folder_outside_project(&world, "empty home");
    world.set_env("HOME", home.as_str());
    world.set_env("SHELL", "/bin/bash");
    let stdout = script_launch(&world, "install.sh", &[]).run().expect_success().stdout;
    let stable = world
        .replace_varying_parts_with_placeholders(&stdout.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"));
    insta::assert_snapshot!(stable, @r#"
    plimsoll [VERSION] is installed:
      programs      ~/.local/bin: plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel and 8 hook programs
      completions   ~/.local/share: bash, zsh, fish (for the next shell you open)
      manual pages  ~/.local/share/man: man plimsoll, man plimsoll-run, …
    ~/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH="[WORLD]/empty home/.local/bin:$PATH"    # ~/.bashrc
    Next: plimsoll init
    "#);
    let line = stdout.lines().find(|line| line.contains("export PATH=")).expect("the line to add");
    // Runs commands after the line that the user is told to add.
    let run_with_added_line =
        |command: &str| run_bash_line(&world, &format!("{line}\n{command}")).expect_success().stdout;
    assert_eq!(run_with_added_line("command -v plimsoll"), format!("{home}/.local/bin/plimsoll\n"));
    let mut again = run_with_added_line(&format!(
        "PLIMSOLL_BIN_DIR='{}' '{}'",
        plimsoll_testkit::find_or_build_bin_dir().display(),
        plimsoll_testkit::workspace_root().join("scripts/install.sh").display()
    ));
    assert!(!again.contains("PATH"), "{again}");
    if find_optional_program("man").is_some() {
        again = run_with_added_line("man -w plimsoll-turns-list");
        assert_eq!(again, format!("{home}/.local/share/man/man1/plimsoll-turns-list.1\n"));
    }
    if find_optional_program("fish").is_some() {
        assert!(run_with_added_line("fish -c \"complete -C 'plimsoll ru'\"").starts_with("run\t"));
        run_bash_line(&world, "rm -rf ~/.config ~/.cache");
    }
    script_launch(&world, "install.sh", &["--uninstall"]).run().expect_success();
    assert_eq!(tree_listing(&world, &home).lines().count(), 1, "{}", tree_listing(&world, &home));
}

/// The PATH has only tools that macOS 11 has.
#[test]
fn installer_needs_no_tool_that_macos_lacks() {
    let world = World::without_git();
    let prefix = create_folder_outside_project(&world, "prefix");
    let tools = "awk basename bash cat chmod cp cut dirname env grep head ln ls mkdir mktemp mv rm rmdir sed sh tr uname";
    run_bash_line(
        &world,
        &format!("mkdir mac; for tool in {tools}; do ln -s \"$(command -v $tool)\" mac/; done"),
    )
    .expect_success();
    let path = world.path("mac").display().to_string();
    let install = |extra_arguments: &[&str]| {
        // The installer must normalize an unusual spelling of the folder.
        let prefix_spelling = format!("{prefix}/../mac-less/.././prefix//");
        let arguments = [&["--prefix", prefix_spelling.as_str()], extra_arguments].concat();
        let finished = script_launch(&world, "install.sh", &arguments).env("PATH", path.as_str()).run();
        assert_eq!(finished.stderr, "", "{finished:?}");
        finished.expect_success().stdout
    };
    assert!(install(&[]).contains(&format!("{prefix}/bin:")));
    let listed = world.read(format!("{prefix}/share/plimsoll/installed.txt"));
    assert!(listed.lines().all(|line| line.starts_with(&prefix) && !line.contains("..")), "{listed}");
    install(&["--uninstall"]);
    assert_eq!(
        run_bash_line(&world, &format!("find '{prefix}' -mindepth 1")).stdout,
        "",
        "a folder after what lies in it"
    );
}

#[test]
fn upgrade_removes_old_files_and_uninstall_keeps_foreign_files() {
    let world = World::without_git();
    let prefix = create_folder_outside_project(&world, "prefix");
    run_installer(&world, &prefix, &[]);
    let (old, list) =
        (format!("{prefix}/bin/plimsoll-old"), format!("{prefix}/share/plimsoll/installed.txt"));
    world.write(&old, "#!/bin/sh\n");
    world.write(&list, &format!("{}{old}\n", world.read(&list)));
    run_installer(&world, &prefix, &[]);
    assert!(!world.exists(&old));
    let foreign_file = format!("{prefix}/share/zsh/site-functions/_mine");
    world.write(&foreign_file, "#compdef mine\n");
    run_installer(&world, &prefix, &["--uninstall"]);
    let left = run_bash_line(&world, &format!("find '{prefix}' -type f")).stdout;
    assert_eq!(left, format!("{foreign_file}\n"));
}

#[test]
fn wrong_usage_and_missing_programs_change_nothing() {
    let world = World::without_git();
    let prefix = create_folder_outside_project(&world, "prefix");
    let help = script_launch(&world, "install.sh", &["--help"]).run().expect_success();
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
    let usage_error = |arguments: &[&str]| {
        let finished = script_launch(&world, "install.sh", arguments).run();
        assert_eq!(finished.code, Some(2), "{finished:?}");
        let (error, usage) = finished.stderr.split_once('\n').expect("two parts");
        assert_eq!(usage, help.stdout);
        error.to_owned()
    };
    assert_eq!(usage_error(&["--frob"]), "install.sh: unknown argument: --frob");
    assert_eq!(usage_error(&["--prefix"]), "install.sh: --prefix needs a folder");
    assert_eq!(usage_error(&["--prefix", &prefix, "here"]), "install.sh: unknown argument: here");
    let folder_without_programs = create_folder_outside_project(&world, "some");
    let finished = script_launch(&world, "install.sh", &["--prefix", &prefix])
        .env("PLIMSOLL_BIN_DIR", folder_without_programs.as_str())
        .run();
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"install.sh: [WORLD]/some lacks plimsoll");
    assert_eq!(
        run_bash_line(&world, &format!("find '{prefix}' '{folder_without_programs}' -mindepth 1")).stdout,
        ""
    );
    // The installer notices this only after it has written drafts of the programs.
    world.write(format!("{prefix}/share/man/man1/plimsoll.1/mine"), "a folder where a page would go");
    let before = tree_listing(&world, &prefix);
    let finished = script_launch(&world, "install.sh", &["--prefix", &prefix]).run();
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"install.sh: [WORLD]/prefix/share/man/man1/plimsoll.1 is a folder");
    assert_eq!(tree_listing(&world, &prefix), before);
}

/// `cargo install` installs only the common file of the hook programs, without the links that give it their names.
#[test]
fn init_creates_links_for_the_hook_programs() {
    let world = World::new();
    let folder = create_folder_outside_project(&world, "alone");
    let bin = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    run_bash_line(
        &world,
        &format!("cp '{bin}/plimsoll' '{folder}' && cp '{bin}/plimsoll-post-tool' '{folder}/plimsoll-hook'"),
    )
    .expect_success();
    let run_init =
        |arguments: &[&str]| world.command(format!("{folder}/plimsoll"), arguments).run().expect_success();
    let dry_run_output = run_init(&["init", "--local", "--dry-run"]).stdout;
    assert!(
        !dry_run_output.contains("Warning") && !tree_listing(&world, &folder).contains("post-tool"),
        "{dry_run_output}"
    );
    let stdout = run_init(&["init", "--local"]).stdout;
    assert!(!stdout.contains("Warning"), "{stdout}");
    for name in plimsoll_protocol::settings::PROGRAM_NAMES.iter() {
        let version = run_bash_line(&world, &format!("'{folder}/{name}' version")).expect_success().stdout;
        assert_eq!(version.trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
    // A later `cargo install` replaces the file, so the names must be symlinks and not hard links or copies.
    let link =
        run_bash_line(&world, &format!("readlink '{folder}/plimsoll-stop-gate'")).expect_success().stdout;
    assert_eq!(link.trim(), "plimsoll-hook");
}

#[test]
fn hook_program_is_recognized_by_its_name_or_its_link_target() {
    let world = World::new();
    let folder = create_folder_outside_project(&world, "names");
    let bin = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let setup_command = format!(
        "cp '{bin}/plimsoll-statusline' '{folder}' && cd '{folder}' && ln -s plimsoll-statusline my-line && ln -s plimsoll-statusline plimsoll-line && ln plimsoll-statusline plimsoll-hook"
    );
    run_bash_line(&world, &setup_command).expect_success();
    for link in ["my-line", "plimsoll-line"] {
        let by_link = run_bash_line(&world, &format!("'{folder}/{link}' version")).expect_success().stdout;
        assert!(by_link.starts_with("plimsoll-statusline "), "{link}: {by_link}");
    }
    // An unknown program name must not end a session, so the exit code is 0.
    let nameless = run_bash_line(&world, &format!("echo '{{}}' | '{folder}/plimsoll-hook'")).expect_success();
    assert_eq!(nameless.stdout, "");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&nameless.stderr), @"plimsoll-hook: start it by a link with the name of a hook: plimsoll-frame, plimsoll-memory, plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-session-start, plimsoll-statusline, plimsoll-stop-gate");
}

#[test]
fn init_without_hook_programs_says_how_to_install_them() {
    let world = World::new();
    let folder = create_folder_outside_project(&world, "alone");
    run_bash_line(
        &world,
        &format!("cp '{}/plimsoll' '{folder}'", plimsoll_testkit::find_or_build_bin_dir().display()),
    )
    .expect_success();
    let stdout =
        world.command(format!("{folder}/plimsoll"), &["init", "--local"]).run().expect_success().stdout;
    let warning_line = stdout.lines().find(|line| line.starts_with("Warning")).unwrap_or(&stdout);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(warning_line), @"Warning: [WORLD]/alone lacks plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-session-start, plimsoll-statusline, plimsoll-stop-gate, which therefore cannot run. Install all programs together: `scripts/install.sh` in a clone or a release archive installs them, `cargo install --locked --git https://example.invalid/plimsoll plimsoll` too.");
}

#[test]
fn installed_files_are_not_writable_by_others_under_any_umask() {
    let world = World::without_git();
    let bin = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let installer = plimsoll_testkit::workspace_root().join("scripts/install.sh").display().to_string();
    let install_with_umask = |umask: &str, prefix: &str| {
        let line = format!("umask {umask}; PLIMSOLL_BIN_DIR='{bin}' '{installer}' --prefix '{prefix}'");
        run_bash_line(&world, &line).expect_success();
    };
    let find_by_mode = |prefix: &str, modes: &str| {
        run_bash_line(&world, &format!("find '{prefix}' {modes}")).expect_success().stdout
    };
    let parent_folder = create_folder_outside_project(&world, "open");
    let prefix = format!("{parent_folder}/pre/fix");
    install_with_umask("0", &prefix);
    assert_eq!(find_by_mode(&format!("{parent_folder}/pre"), "! -type l -perm /022"), "");
    assert_eq!(find_by_mode(&prefix, "-type f -path '*/bin/*' ! -perm 755"), "");
    // A stricter umask of the user's is respected.
    let strict_prefix = format!("{parent_folder}/strict");
    install_with_umask("077", &strict_prefix);
    assert_eq!(find_by_mode(&strict_prefix, "-perm /077"), "");
    assert!(find_by_mode(&strict_prefix, "-name plimsoll -perm 700").contains("/bin/plimsoll\n"));
}

#[test]
fn forged_install_list_cannot_remove_foreign_files() {
    let world = World::without_git();
    let top = create_folder_outside_project(&world, "top");
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
        run_installer(&world, &prefix, &[]);
        victims.iter().for_each(|victim| world.write(victim, "precious\n"));
        let line = format!(
            "mkdir -p '{top}/folder/empty' && ln -sfn ../folder '{prefix}/out' && ln -sfn ../../folder '{prefix}/bin/out'"
        );
        run_bash_line(&world, &line).expect_success();
        world.write(&list, &format!("{}{forged}", world.read(&list)));
    };
    // An upgrade removes the files that the new list no longer names; `--uninstall` removes all that are listed.
    for arguments in [&[][..], &["--uninstall"]] {
        prepare();
        let finished =
            script_launch(&world, "install.sh", &[&["--prefix", &prefix], arguments].concat()).run();
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

    // A list that other users can write is not used at all.
    for (damage_command, expected_error) in [
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
        run_bash_line(&world, &damage_command).expect_success();
        for arguments in [&[][..], &["--uninstall"]] {
            let refused =
                script_launch(&world, "install.sh", &[&["--prefix", &prefix], arguments].concat()).run();
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert_eq!(refused.stderr, format!("install.sh: {expected_error}\n"));
            assert!(world.exists(format!("{prefix}/bin/plimsoll")));
        }
        run_bash_line(&world, &format!("rm '{list}'")).expect_success();
    }
}

/// For example, `~/.local/bin` may be a link to another folder of the user's.
#[test]
fn uninstall_removes_programs_behind_a_linked_bin_folder() {
    let world = World::without_git();
    let top = create_folder_outside_project(&world, "top");
    run_bash_line(&world, &format!("mkdir -p '{top}/prefix' '{top}/bin' && ln -s ../bin '{top}/prefix/bin'"))
        .expect_success();
    let prefix = format!("{top}/prefix");
    run_installer(&world, &prefix, &[]);
    assert!(world.exists(format!("{top}/bin/plimsoll")));
    run_installer(&world, &prefix, &["--uninstall"]);
    assert_eq!(run_bash_line(&world, &format!("find '{top}' -type f")).stdout, "");
}
