//! No lock is held while git is waited for: a slow git would keep every hook of the project waiting, too.

use plimsoll_testkit::world::World;

/// A git that writes down each call, and which of our locks are held meanwhile. Nobody else works in the project.
fn watching_git(world: &World) -> String {
    let env = world.env();
    let (_, usual) = env.iter().find(|(name, _)| name == "PATH").expect("a search path");
    let script = format!(
        "#!/bin/sh\n\
         export PATH='{usual}'\n\
         echo \"$*\" >> '{home}/asked'\n\
         find '{project}/.claude' -name '*.lock' | while read -r lock; do\n\
             flock -n \"$lock\" true || echo \"$lock: git $*\" >> '{home}/held'\n\
         done\n\
         exec git \"$@\"\n",
        home = world.home().display(),
        project = world.project().display(),
    );
    let program = world.write_program(world.home().join("programs/git"), &script);
    format!("{}:{usual}", program.parent().expect("its folder").display())
}

#[test]
fn no_lock_is_held_while_git_is_waited_for() {
    let world = World::new();
    world.write("fix_plan.md", "- [ ] Make the dates ISO\n");
    let path = watching_git(&world);
    for arguments in [&["start", "--objective", "Do the plan."][..], &["gate"], &["stop", "--yes"]] {
        let finished = world.plimsoll(arguments).env("PATH", &path).run();
        assert!(world.exists(".claude/ralph-state.json"), "{arguments:?}: {finished:?}");
    }
    let read = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap_or_default();
    assert!(read("asked").contains("status"), "git is asked for the files of the run: {}", read("asked"));
    assert_eq!(read("held"), "");
}
