//! Commands in a project without records: one rule for all commands that show something.

use plimsoll_testkit::world::World;
use serde_json::Value;

/// Returns a text without the hash in the name of a project's folder.
fn without_hash(text: &str) -> String {
    const FOLDER: &str = "/projects/project-";
    let Some((before, after)) = text.split_once(FOLDER) else { return text.to_owned() };
    let hash = after.find('/').unwrap_or_default();
    format!("{before}{FOLDER}[HASH]{}", &after[hash..])
}

#[test]
fn a_command_with_nothing_to_show_says_so_in_one_line_and_succeeds() {
    let world = World::without_plimsoll_files();
    let line = |arguments: &[&str]| {
        let shown = world.plimsoll(arguments).run();
        assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), ""), "{arguments:?}: {}", shown.stderr);
        without_hash(&world.replace_varying_parts_with_placeholders(&shown.stderr))
    };
    insta::assert_snapshot!(line(&["log"]), @"The journal [HOME]/.local/state/plimsoll/projects/project-[HASH]/journal.jsonl is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).");
    assert_eq!(line(&["log", "--why"]), line(&["log"]));
    insta::assert_snapshot!(line(&["plan"]), @"there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    insta::assert_snapshot!(line(&["handoffs"]), @"There are no handoffs in [PROJECT].");
    insta::assert_snapshot!(line(&["memory"]), @"The working memory is empty: the agent writes it after `plimsoll init --memory`, or in `plimsoll run --memory`.");
    assert_eq!(line(&["memory", "history"]), line(&["memory"]));
    insta::assert_snapshot!(line(&["turns"]), @"No turn has been recorded in [PROJECT]: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`.");
    assert_eq!(line(&["turns", "list", "--failures"]), line(&["turns"]));
    assert_eq!(line(&["turns", "stats"]), line(&["turns"]));
}

#[test]
fn json_output_is_valid_json_without_any_records() {
    let world = World::without_plimsoll_files();
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
fn a_missing_named_object_or_an_action_without_object_fails() {
    let world = World::without_plimsoll_files();
    let error = |arguments: &[&str]| {
        let shown = world.plimsoll(arguments).run();
        assert_eq!(shown.code, Some(1), "{arguments:?}: {shown:?}");
        world.replace_varying_parts_with_placeholders(&shown.stderr)
    };
    insta::assert_snapshot!(error(&["plan", "--todo", "elsewhere.md"]), @"error: there is no plan: elsewhere.md (`- [ ] …` lines, one item each)");
    insta::assert_snapshot!(error(&["plan", "--fix"]), @"error: there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    insta::assert_snapshot!(error(&["status", "--answer", "1", "yes"]), @"error: there is no plan fix_plan.md, so there are no questions");
    insta::assert_snapshot!(error(&["turns", "list", "--session", "4f2a"]), @r#"error: no session here starts with "4f2a": see `plimsoll turns list`"#);
    insta::assert_snapshot!(error(&["turns", "stats", "--session", "4f2a", "--json"]), @r#"error: no session here starts with "4f2a": see `plimsoll turns list`"#);
    insta::assert_snapshot!(error(&["turns", "show", "1"]), @"error: no turn has been recorded in [PROJECT] yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`");
    insta::assert_snapshot!(error(&["turns", "verify"]), @"error: no turn has been recorded in [PROJECT] yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`");
    insta::assert_snapshot!(error(&["turns", "grep", "word"]), @"error: no turn has been recorded in [PROJECT] yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`");
    insta::assert_snapshot!(error(&["report"]), @"
    error: there is no run in [PROJECT], and none was archived
    hint: `plimsoll run` starts one; for sessions without a run use `plimsoll turns stats` and `plimsoll turns export --format html`
    ");
    insta::assert_snapshot!(error(&["stop"]), @"error: there is no run in [PROJECT]");
    insta::assert_snapshot!(error(&["prompt"]), @"error: there is no run in [PROJECT]");
}
