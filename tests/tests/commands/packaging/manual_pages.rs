use crate::packaging::{found, shell};
use plimsoll_testkit::world::World;

#[test]
fn every_page_is_set_without_a_warning() {
    let world = World::without_git();
    world.write(
        "pages/broken.1",
        ".TH broken 1\n.SH NAME\nbroken \\- a page with a macro that is none\n.XYZ\n",
    );
    let all = "cd pages; for page in $(plimsoll generate man --list); do plimsoll generate man $page > $page.1; done; ls";
    let names = shell(&world, all).expect_success().stdout;
    assert!(names.contains("plimsoll.1\n") && names.contains("plimsoll-with-context.1\n"), "{names}");
    let check = match (found("groff"), found("mandoc")) {
        (Some(_), _) => "groff -k -man -Tutf8 -ww",
        (None, Some(_)) => "mandoc -T lint -W warning",
        (None, None) => return,
    };
    let broken = shell(&world, &format!("{check} pages/broken.1 2>&1 >/dev/null; true"));
    assert!(
        broken.stdout.contains("XYZ") || broken.stderr.contains("XYZ"),
        "the check sees nothing: {broken:?}"
    );
    let ours = shell(&world, &format!("{check} pages/plimsoll*.1 2>&1 >/dev/null")).expect_success();
    assert_eq!((ours.stdout.as_str(), ours.stderr.as_str()), ("", ""));
}

#[test]
fn a_page_reads_as_its_help_does() {
    let world = World::without_git();
    let source = world.plimsoll(&["generate", "man", "turns", "show"]).run().expect_success().stdout;
    assert!(source.contains(".SH SYNOPSIS\n\\fBplimsoll turns show\\fR"), "{source}");
    let missing = world.plimsoll(&["generate", "man", "no", "such"]).run();
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("`no such`") && missing.stderr.contains("--list"), "{missing:?}");
    if found("man").is_none() {
        return;
    }
    let read = "plimsoll generate man query > query.1 && MANWIDTH=120 MANPAGER=cat man -l query.1";
    let page = shell(&world, read).expect_success();
    let help = world.plimsoll(&["query", "--help"]).run().stdout;
    let examples = help.lines().filter(|line| line.starts_with("  plimsoll query")).collect::<Vec<_>>();
    assert!(examples.len() > 3, "{help}");
    for example in examples {
        assert!(page.stdout.contains(example.trim()), "{example}\n{}", page.stdout);
    }
}
