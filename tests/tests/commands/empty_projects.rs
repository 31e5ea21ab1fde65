//! What a command does where nothing has been recorded: one rule for all commands that show something.

use plimsoll_testkit::world::World;
use serde_json::Value;

#[test]
fn a_command_that_finds_nothing_says_so_in_one_line_and_succeeds() {
    let world = World::untouched();
    for (arguments, words) in [
        (&["log"][..], "The journal "),
        (&["log", "--why"], "The journal "),
        (&["plan"], "there is no plan: fix_plan.md"),
        (&["handoffs"], "There are no handoffs in "),
        (&["memory"], "The working memory is empty"),
        (&["memory", "history"], "The working memory is empty"),
        (&["turns"], "No turn has been recorded"),
        (&["turns", "list", "--failures"], "No turn has been recorded"),
        (&["turns", "stats"], "No turn has been recorded"),
    ] {
        let shown = world.plimsoll(arguments).run();
        assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), ""), "{arguments:?}: {}", shown.stderr);
        assert_eq!(shown.stderr.lines().count(), 1, "{arguments:?}: {}", shown.stderr);
        assert!(shown.stderr.starts_with(words), "{arguments:?}: {}", shown.stderr);
    }
}

#[test]
fn programs_get_json_where_nothing_has_been_recorded() {
    let world = World::untouched();
    for arguments in [
        &["status", "--json"][..],
        &["plan", "--json"],
        &["handoffs", "--json"],
        &["memory", "show", "--json"],
        &["turns", "list", "--json"],
        &["turns", "stats", "--json"],
        &["statusline", "explain", "--json"],
    ] {
        let shown = world.plimsoll(arguments).run();
        let document = serde_json::from_str::<Value>(&shown.stdout);
        assert!(shown.code == Some(0) && document.is_ok(), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn what_is_named_and_not_there_is_a_failure_and_so_is_an_action_without_its_object() {
    let world = World::untouched();
    for arguments in [
        &["plan", "--todo", "elsewhere.md"][..],
        &["plan", "--fix"],
        &["status", "--answer", "1", "yes"],
        &["turns", "list", "--session", "4f2a"],
        &["turns", "stats", "--session", "4f2a", "--json"],
        &["turns", "show", "1"],
        &["turns", "verify"],
        &["turns", "grep", "word"],
        &["report"],
        &["stop"],
        &["prompt"],
    ] {
        let shown = world.plimsoll(arguments).run();
        assert!(shown.code == Some(1) && !shown.stderr.is_empty(), "{arguments:?}: {shown:?}");
    }
}
