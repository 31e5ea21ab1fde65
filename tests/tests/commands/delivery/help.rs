use crate::commands_in;
use plimsoll_testkit::world::World;

fn visit(world: &World, words: &[&str], seen: &mut Vec<String>) {
    let mut arguments = words.to_vec();
    arguments.push("--help");
    let finished = world.plimsoll(&arguments).run().expect_success();
    let name = ["plimsoll"].iter().chain(words).copied().collect::<Vec<_>>();
    let usage = format!("Usage: {}", name.join(" "));
    assert!(finished.stdout.contains(&usage) && finished.stderr.is_empty(), "{usage}: {finished:?}");
    seen.push(name.join("-"));
    for below in commands_in(&finished.stdout) {
        visit(world, &[words, &[below.as_str()]].concat(), seen);
    }
}

#[test]
fn every_command_has_help_and_a_manual_page() {
    let world = World::without_git();
    let mut seen = Vec::new();
    visit(&world, &[], &mut seen);
    assert!(seen.len() > 35 && seen.contains(&"plimsoll-turns-export".to_owned()), "{seen:?}");
    let pages = world.plimsoll(&["manual", "--list"]).run().expect_success().stdout;
    assert_eq!(pages.lines().collect::<Vec<_>>(), seen);
}
