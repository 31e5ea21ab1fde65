//! The traps. Each has a name, and a sprung trap leaves a file of that name outside the project.

use plimsoll_testkit::world::World;
use std::path::Path;

/// The hooks that git runs when somebody looks at a repository or commits.
const HOOKS: [&str; 12] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "reference-transaction",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "proc-receive",
];

/// Returns the folder in which sprung traps leave their names.
fn sprung_folder(world: &World) -> String {
    let folder = world.home().join("sprung");
    std::fs::create_dir_all(&folder).unwrap();
    folder.display().to_string()
}

/// Returns a command line that records its name and passes on its input.
pub fn trap_command(world: &World, name: &str) -> String {
    format!("touch '{}/{name}'; cat", sprung_folder(world))
}

/// Returns the names of the traps that were sprung since the last call.
pub fn take_sprung_traps(world: &World) -> Vec<String> {
    let folder = sprung_folder(world);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.iter().for_each(|name| std::fs::remove_file(format!("{folder}/{name}")).unwrap());
    names.sort();
    names
}

/// Runs git in a folder, and ignores its output and exit code.
pub fn run_git_in(world: &World, folder: &Path, arguments: &[&str]) {
    world.command("git", arguments).cwd(folder).run();
}

/// Returns a world of two commits with files to change and to touch, a submodule, an untracked repository and an
/// embedded bare one. It has no trap yet.
pub fn world_without_traps() -> World {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    world.write("fix_plan.md", "# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    for name in ["changed.txt", "touched.txt"] {
        world.write(name, "one\ntwo\n");
    }
    // No attribute applies to this file.
    world.write("plain.cfg", "one\n");
    let repository = |name: &str, init_options: &[&str]| {
        let folder = world.path(name);
        run_git_in(&world, &world.project(), &[&["init", "-q"], init_options, &[name]].concat());
        if init_options.is_empty() {
            run_git_in(&world, &folder, &["config", "user.name", "n"]);
            run_git_in(&world, &folder, &["config", "user.email", "n@example.invalid"]);
            world.write(folder.join("file.txt"), "one\n");
            run_git_in(&world, &folder, &["add", "-A"]);
            run_git_in(&world, &folder, &["commit", "-qm", "Inner"]);
        }
    };
    repository("module", &[]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    repository("nested", &[]);
    repository("bare.git", &["--bare"]);
    world
}

/// Puts traps into the configuration of one repository; their names begin with the given prefix.
fn plant_config_traps(world: &World, folder: &Path, file: &str, name_prefix: &str) {
    let set_trap = |key: &str, name: &str| {
        let line = trap_command(world, &format!("{name_prefix}-{name}"));
        // These commands receive the names of files, and git continues only if they succeed.
        let line = if key.starts_with("diff.") { line.replace("; cat", "; true") } else { line };
        run_git_in(world, folder, &["config", "--file", file, key, &line]);
    };
    for (key, name) in [
        ("filter.trap.clean", "clean"),
        ("filter.trap.smudge", "smudge"),
        ("filter.long.process", "process"),
        ("diff.external", "diff-external"),
        ("diff.trap.command", "diff-command"),
        ("diff.trap.textconv", "textconv"),
        ("merge.trap.driver", "merge-driver"),
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.log", "pager-log"),
        ("core.editor", "editor"),
        ("sequence.editor", "sequence-editor"),
        ("core.askPass", "ask-pass"),
        ("core.sshCommand", "ssh-command"),
        ("credential.helper", "credential-helper"),
        ("gpg.program", "gpg"),
        ("gpg.ssh.program", "gpg-ssh"),
        ("uploadpack.packObjectsHook", "pack-objects"),
        ("core.alternateRefsCommand", "alternate-refs"),
        ("core.gitProxy", "proxy"),
        ("submodule.module.update", "submodule-update"),
    ] {
        set_trap(key, name);
    }
    for name in ["status", "diff", "log", "rev-parse", "ls-files", "config", "hash-object"] {
        let line = format!("!{}", trap_command(world, &format!("{name_prefix}-alias")));
        run_git_in(world, folder, &["config", "--file", file, &format!("alias.{name}"), &line]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("diff.submodule", "diff"),
        ("diff.ignoreSubmodules", "none"),
        ("submodule.module.ignore", "none"),
        ("status.submoduleSummary", "true"),
        ("submodule.recurse", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "ext::sh -c true"),
        ("remote.origin.promisor", "true"),
        ("protocol.allow", "always"),
    ] {
        run_git_in(world, folder, &["config", "--file", file, key, value]);
    }
}

fn plant_hook_traps(world: &World, folder: &Path, name_prefix: &str) {
    for name in HOOKS {
        let script = format!("#!/bin/sh\ntouch '{}/{name_prefix}-hook-{name}'\n", sprung_folder(world));
        world.write_program(folder.join(name), &script);
    }
}

/// The attributes that put the files under the trapped filters and drivers.
const ATTRIBUTES: &str = "*.txt filter=trap diff=trap merge=trap\n*.md filter=long diff=trap\n";

/// Puts traps everywhere: into the repository's own configuration and a file that it includes, into its hooks and
/// attributes, and into each repository inside it.
pub fn plant_traps(world: &World) {
    let project = world.project();
    plant_traps_in_inner_repositories(world);
    plant_config_traps(world, &project, ".git/config", "own");
    run_git_in(world, &project, &["config", "filter.trap.required", "true"]);
    run_git_in(world, &project, &["config", "include.path", "../included"]);
    run_git_in(
        world,
        &project,
        &["config", "--file", "included", "filter.more.clean", &trap_command(world, "included-clean")],
    );
    run_git_in(world, &project, &["config", "gpg.format", "openpgp"]);
    plant_hook_traps(world, &world.path(".git/hooks"), "own");
    world.write(".gitattributes", ATTRIBUTES);
    world.write(".git/info/attributes", "*.rs filter=more\n");
    change_and_touch_files(world);
}

/// Puts traps only into the repositories inside.
pub fn plant_traps_in_inner_repositories(world: &World) {
    for name in ["module", "nested"] {
        let folder = world.path(name);
        plant_config_traps(world, &folder, ".git/config", name);
        plant_hook_traps(world, &folder.join(".git/hooks"), name);
        world.write(folder.join(".git/info/attributes"), "* filter=trap diff=trap\n");
    }
    let bare = world.path("bare.git");
    plant_config_traps(world, &bare, "config", "bare");
    run_git_in(world, &bare, &["config", "--file", "config", "core.worktree", ".."]);
    run_git_in(world, &bare, &["config", "--file", "config", "core.bare", "false"]);
    plant_hook_traps(world, &bare.join("hooks"), "bare");
    world.write(bare.join("info/attributes"), "* filter=trap diff=trap\n");
}

/// Changes some files, and touches others so that git has to read them.
pub fn change_and_touch_files(world: &World) {
    world.write("changed.txt", "one\ntwo\nthree\n");
    world.write("plain.cfg", "one\ntwo\n");
    world.write("new.txt", "new\n");
    world.write("new.rs", "fn main() {}\n");
    for file in ["touched.txt", "fix_plan.md", "module/file.txt", "nested/file.txt"] {
        let path = world.path(file).display().to_string();
        world.command("touch", &["-d", "2020-01-01", &path]).run().expect_success();
    }
}
