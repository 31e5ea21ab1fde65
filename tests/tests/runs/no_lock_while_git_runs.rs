//! No lock is held while waiting for git: a slow git would make every hook of the project wait too.

use plimsoll_testkit::world::World;

/// Writes a git that logs each call and which of our locks are held during it, and returns the PATH that finds it. No
/// other process works in the project.
fn path_with_lock_logging_git(world: &World) -> String {
    let env = world.env_with_programs_on_path();
    let (_, search_path) = env.iter().find(|(name, _)| name == "PATH").expect("a search path");
    let script = format!(
        "#!/bin/sh\n\
         export PATH='{search_path}'\n\
         echo \"$*\" >> '{home}/asked'\n\
         find '{project}/.claude' -name '*.lock' | while read -r lock; do\n\
             flock -n \"$lock\" true || echo \"$lock: git $*\" >> '{home}/held'\n\
         done\n\
         exec git \"$@\"\n",
        home = world.home().display(),
        project = world.project().display(),
    );
    let program = world.write_program(world.home().join("programs/git"), &script);
    format!("{}:{search_path}", program.parent().expect("its folder").display())
}

#[test]
fn no_lock_is_held_while_waiting_for_git() {
    let world = World::new();
    world.write("fix_plan.md", "- [ ] Make the dates ISO\n");
    let path = path_with_lock_logging_git(&world);
    for arguments in [&["start", "--objective", "Do the plan."][..], &["gate"], &["stop", "--yes"]] {
        let finished = world.plimsoll(arguments).env("PATH", &path).run();
        assert!(world.exists(".claude/ralph-state.json"), "{arguments:?}: {finished:?}");
    }
    let read_log = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap_or_default();
    assert!(
        read_log("asked").contains("status"),
        "git is asked for the files of the run: {}",
        read_log("asked")
    );
    assert_eq!(read_log("held"), "");
}
