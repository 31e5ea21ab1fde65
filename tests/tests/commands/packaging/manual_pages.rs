use crate::packaging::{find_optional_program, run_bash_line};
use plimsoll_testkit::world::World;

#[test]
fn every_manual_page_renders_without_warnings() {
    let world = World::without_git();
    world.write(
        "pages/broken.1",
        ".TH broken 1\n.SH NAME\nbroken \\- a page with a macro that is none\n.XYZ\n",
    );
    let generate_all = "cd pages; for page in $(plimsoll generate man --list); do plimsoll generate man $page > $page.1; done; ls";
    let names = run_bash_line(&world, generate_all).expect_success().stdout;
    assert!(names.contains("plimsoll.1\n") && names.contains("plimsoll-with-context.1\n"), "{names}");
    let check = match (find_optional_program("groff"), find_optional_program("mandoc")) {
        (Some(_), _) => "groff -k -man -Tutf8 -ww",
        (None, Some(_)) => "mandoc -T lint -W warning",
        (None, None) => return,
    };
    let broken = run_bash_line(&world, &format!("{check} pages/broken.1 2>&1 >/dev/null; true"));
    assert!(
        broken.stdout.contains("XYZ") || broken.stderr.contains("XYZ"),
        "the check sees nothing: {broken:?}"
    );
    let ours = run_bash_line(&world, &format!("{check} pages/plimsoll*.1 2>&1 >/dev/null")).expect_success();
    assert_eq!((ours.stdout.as_str(), ours.stderr.as_str()), ("", ""));
}

#[test]
fn manual_page_has_the_examples_of_the_help() {
    let world = World::without_git();
    let source = world.plimsoll(&["generate", "man", "turns", "show"]).run().expect_success().stdout;
    assert!(source.contains(".SH SYNOPSIS\n\\fBplimsoll turns show\\fR"), "{source}");
    let missing = world.plimsoll(&["generate", "man", "no", "such"]).run();
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("`no such`") && missing.stderr.contains("--list"), "{missing:?}");
    if find_optional_program("man").is_none() {
        return;
    }
    let render_command = "plimsoll generate man query > query.1 && MANWIDTH=120 MANPAGER=cat man -l query.1";
    let page = run_bash_line(&world, render_command).expect_success();
    let help = world.plimsoll(&["query", "--help"]).run().stdout;
    let examples = help.lines().filter(|line| line.starts_with("  plimsoll query")).collect::<Vec<_>>();
    assert!(examples.len() > 3, "{help}");
    for example in examples {
        assert!(page.stdout.contains(example.trim()), "{example}\n{}", page.stdout);
    }
}
