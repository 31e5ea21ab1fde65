//! The traps, each with a name; one that is sprung leaves a file of that name outside the project.

use plimsoll_testkit::world::World;
use std::path::Path;

/// What git offers a repository, and what it runs when somebody looks or commits.
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

/// Where the names of those that were sprung lie.
fn sprung_folder(world: &World) -> String {
    let folder = world.home().join("sprung");
    std::fs::create_dir_all(&folder).unwrap();
    folder.display().to_string()
}

/// A command line that notes its name and passes on what it reads.
pub fn command(world: &World, name: &str) -> String {
    format!("touch '{}/{name}'; cat", sprung_folder(world))
}

/// The names of those that were sprung since the last question.
pub fn sprung(world: &World) -> Vec<String> {
    let folder = sprung_folder(world);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.iter().for_each(|name| std::fs::remove_file(format!("{folder}/{name}")).unwrap());
    names.sort();
    names
}

/// Runs git in a folder, without a word of what it does.
pub fn git(world: &World, folder: &Path, arguments: &[&str]) {
    world.command("git", arguments).cwd(folder).run();
}

/// A world of two commits, with a file that is changed, one that was only touched, a new one, a submodule, an untracked
/// repository and an embedded bare one. There is no trap in it yet.
pub fn world() -> World {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    world.write("fix_plan.md", "# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    for name in ["changed.txt", "touched.txt"] {
        world.write(name, "one\ntwo\n");
    }
    // Under no attribute.
    world.write("plain.cfg", "one\n");
    let repository = |name: &str, how: &[&str]| {
        let folder = world.path(name);
        git(&world, &world.project(), &[&["init", "-q"], how, &[name]].concat());
        if how.is_empty() {
            git(&world, &folder, &["config", "user.name", "n"]);
            git(&world, &folder, &["config", "user.email", "n@example.invalid"]);
            world.write(folder.join("file.txt"), "one\n");
            git(&world, &folder, &["add", "-A"]);
            git(&world, &folder, &["commit", "-qm", "Inner"]);
        }
    };
    repository("module", &[]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    repository("nested", &[]);
    repository("bare.git", &["--bare"]);
    world
}

/// Traps in the configuration of one repository; `place` begins their names.
fn configure(world: &World, folder: &Path, file: &str, place: &str) {
    let set = |key: &str, name: &str| {
        let line = command(world, &format!("{place}-{name}"));
        // These are given the names of files, and git goes on only if they succeed.
        let line = if key.starts_with("diff.") { line.replace("; cat", "; true") } else { line };
        git(world, folder, &["config", "--file", file, key, &line]);
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
        set(key, name);
    }
    for name in ["status", "diff", "log", "rev-parse", "ls-files", "config", "hash-object"] {
        let line = format!("!{}", command(world, &format!("{place}-alias")));
        git(world, folder, &["config", "--file", file, &format!("alias.{name}"), &line]);
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
        git(world, folder, &["config", "--file", file, key, value]);
    }
}

fn hooks(world: &World, folder: &Path, place: &str) {
    for name in HOOKS {
        let script = format!("#!/bin/sh\ntouch '{}/{place}-hook-{name}'\n", sprung_folder(world));
        world.write_program(folder.join(name), &script);
    }
}

/// Every file is under these.
const ATTRIBUTES: &str = "*.txt filter=trap diff=trap merge=trap\n*.md filter=long diff=trap\n";

/// Lays them everywhere: in the repository's own configuration and in one that it includes, in its hooks, in its
/// attributes, and the same in each repository inside.
pub fn lay(world: &World) {
    let project = world.project();
    lay_inside(world);
    configure(world, &project, ".git/config", "own");
    git(world, &project, &["config", "filter.trap.required", "true"]);
    git(world, &project, &["config", "include.path", "../included"]);
    git(
        world,
        &project,
        &["config", "--file", "included", "filter.more.clean", &command(world, "included-clean")],
    );
    git(world, &project, &["config", "gpg.format", "openpgp"]);
    hooks(world, &world.path(".git/hooks"), "own");
    world.write(".gitattributes", ATTRIBUTES);
    world.write(".git/info/attributes", "*.rs filter=more\n");
    stir(world);
}

/// The same in the repositories inside alone.
pub fn lay_inside(world: &World) {
    for name in ["module", "nested"] {
        let folder = world.path(name);
        configure(world, &folder, ".git/config", name);
        hooks(world, &folder.join(".git/hooks"), name);
        world.write(folder.join(".git/info/attributes"), "* filter=trap diff=trap\n");
    }
    let bare = world.path("bare.git");
    configure(world, &bare, "config", "bare");
    git(world, &bare, &["config", "--file", "config", "core.worktree", ".."]);
    git(world, &bare, &["config", "--file", "config", "core.bare", "false"]);
    hooks(world, &bare.join("hooks"), "bare");
    world.write(bare.join("info/attributes"), "* filter=trap diff=trap\n");
}

/// Work in all of them: what was changed, and what git has to look into because it was only touched.
pub fn stir(world: &World) {
    world.write("changed.txt", "one\ntwo\nthree\n");
    world.write("plain.cfg", "one\ntwo\n");
    world.write("new.txt", "new\n");
    world.write("new.rs", "fn main() {}\n");
    for file in ["touched.txt", "fix_plan.md", "module/file.txt", "nested/file.txt"] {
        let path = world.path(file).display().to_string();
        world.command("touch", &["-d", "2020-01-01", &path]).run().expect_success();
    }
}
