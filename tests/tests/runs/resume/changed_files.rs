//! Between the checkpoint and the resume somebody else has worked here: what is gone or changed is said, and no place in it
//! is named.

use crate::resume::harness::{
    HEADING, LOW, OAUTH, TWO, Told, commit, full, low, play, resume, run, said, save, sed, tick, told, world,
};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;

/// A session works on a file up to this line and is stopped; a person does something; the next session is told.
fn resumed_after(file: &str, work: &str, next: &str, person: impl FnOnce(&World)) -> Told {
    let mut world = world(TWO);
    let session = vec![low(sed("1,3", "src/a_helper.ts")), full(work), said("half of it", "50%", next)];
    let model = play(&mut world, vec![session]);
    let finished = run(&world, 1, &[]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(world.exists(file), "the session left it");
    person(&world);
    resume(&world, 2);
    told(&world, &model, 2)
}

fn is_no_place(told: &Told, file: &str) {
    let rows = told.rows();
    let row = rows.iter().find(|row| row[0] == file);
    assert!(row.is_none_or(|row| !row[1].contains(|c: char| c.is_ascii_digit())), "{}", told.block);
}

fn says(told: &Told, words: &[&str]) {
    let line = told.block.lines().any(|line| words.iter().all(|part| line.contains(part)));
    assert!(line, "no line with {words:?} in\n{}", told.block);
}

#[test]
fn a_file_that_a_person_deleted_and_committed_is_gone_and_no_place_to_go_on() {
    let told = resumed_after("z.txt", &sed("1,5", "z.txt"), "z.txt line 6", |world| {
        world.git(&["rm", "-q", "z.txt"]);
        world.git(&["commit", "-qm", "Remove the zeds"]);
    });
    says(&told, &["z.txt", "gone"]);
    says(&told, &["by others", "Remove the zeds"]);
    is_no_place(&told, "z.txt");
}

#[test]
fn a_file_that_a_person_deleted_without_a_commit_is_gone_too() {
    let told = resumed_after("z.txt", &sed("1,5", "z.txt"), "z.txt line 6", |world| {
        std::fs::remove_file(world.path("z.txt")).expect("it is there");
    });
    says(&told, &["z.txt", "gone"]);
    told.has_not("by others");
    is_no_place(&told, "z.txt");
}

#[test]
fn a_file_that_a_person_renamed_is_no_place_to_go_on() {
    let told = resumed_after("z.txt", &sed("1,5", "z.txt"), "z.txt line 6", |world| {
        world.git(&["mv", "z.txt", "y.txt"]);
        world.git(&["commit", "-qm", "Rename the zeds"]);
    });
    says(&told, &["by others", "Rename the zeds"]);
    is_no_place(&told, "z.txt");
}

#[test]
fn a_file_that_a_person_changed_and_committed_is_said_to_have_changed() {
    let told = resumed_after(OAUTH, &sed("45,90", OAUTH), "oauth.ts line 91", |world| {
        world.write(OAUTH, &format!("// a licence\n{}", world.read(OAUTH)));
        commit(world, "Add the licence");
    });
    says(&told, &[OAUTH, "has changed"]);
    says(&told, &["by others", "Add the licence"]);
    assert!(told.stands_at().is_none(), "the lines have moved:\n{}", told.block);
    told.has_not("a_helper.ts has changed");
}

#[test]
fn a_file_that_a_person_changed_and_left_uncommitted_is_said_to_have_changed() {
    let told = resumed_after(OAUTH, &sed("45,90", OAUTH), "oauth.ts line 91", |world| {
        world.write(OAUTH, &format!("// a licence\n{}", world.read(OAUTH)));
    });
    says(&told, &[OAUTH, "has changed"]);
    told.has_not("by others");
    assert!(told.stands_at().is_none(), "the lines have moved:\n{}", told.block);
}

#[test]
fn several_commits_by_others_are_counted_and_our_own_is_not_among_them() {
    let told = resumed_after(OAUTH, &sed("45,90", OAUTH), "oauth.ts line 91", |world| {
        for name in ["one", "two"] {
            world.write(format!("{name}.txt"), name);
            commit(world, &format!("Add {name}"));
        }
    });
    says(&told, &["2 commits by others"]);
    for subject in ["Add one", "Add two"] {
        told.has(subject);
    }
    told.has_not("3 commits");
    told.has_not("has changed");
    assert_eq!(told.stands_at(), Some((90, OAUTH.to_owned())), "the file is as it was:\n{}", told.block);
}

#[test]
fn work_that_a_person_threw_away_is_not_named() {
    let told = resumed_after(OAUTH, &sed("45,90", OAUTH), "oauth.ts line 91", |world| {
        world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    });
    // That each commit it names is still one of the branch is held where the block is read.
    assert!(told.stands_at().is_none(), "those lines are not there any more:\n{}", told.block);
    says(&told, &[OAUTH, "has changed"]);
}

#[test]
fn where_nothing_happened_since_nothing_is_said_of_it() {
    let told = resumed_after(
        OAUTH,
        &format!("{}; {}", sed("45,90", OAUTH), save("wip: parser")),
        "oauth.ts line 91",
        |_| (),
    );
    for words in ["Since it stopped", "by others", "has changed", "is gone"] {
        told.has_not(words);
    }
    assert_eq!(told.stands_at(), Some((90, OAUTH.to_owned())), "{}", told.block);
}

#[test]
fn where_a_person_put_another_item_first_the_half_done_one_waits_for_its_turn() {
    let mut world = world(TWO);
    let parser = vec![
        low(sed("1,3", "src/a_helper.ts")),
        full(sed("45,90", OAUTH)),
        said("half of it", "50%", "oauth.ts line 91"),
    ];
    let urgent = vec![
        low(format!("echo fix > urgent.txt; {}; {}", tick("Urgent fix"), save("Urgent fix"))),
        Step::text("The urgent fix is in.").usage(LOW),
    ];
    let model = play(&mut world, vec![parser, urgent]);
    assert_eq!(run(&world, 1, &[]).code, Some(3));
    let plan = world.read("fix_plan.md").replacen("- [ ]", "- [ ] Urgent fix\n- [ ]", 1);
    world.write("fix_plan.md", &plan);
    commit(&world, "Plan the urgent fix");
    resume(&world, 3);
    let requests = model.main_requests();
    let firsts: Vec<String> =
        requests.iter().filter(|request| request.answers() == 0).map(|request| request.text()).collect();
    assert!(firsts[1].contains("## Your item\n\n> Urgent fix\n"), "{}", firsts[1]);
    assert!(!firsts[1].contains(HEADING), "one item at a time: {}", firsts[1]);
    assert!(firsts[1].contains("Not to be taken now: \"Write the parser\" (half done"), "{}", firsts[1]);
    let resumed = told(&world, &model, 3);
    resumed.takes_over("Write the parser");
    assert_eq!(resumed.stands_at(), Some((90, OAUTH.to_owned())), "{}", resumed.block);
}

#[test]
fn what_a_person_committed_between_two_sessions_is_none_of_the_items_work() {
    let mut world = world(TWO);
    let first = vec![low("ls"), full(sed("45,90", OAUTH)), said("half of it", "50%", "oauth.ts line 91")];
    let second = vec![low("ls"), full(sed("91,95", OAUTH)), said("more of it", "60%", "oauth.ts line 96")];
    let model = play(&mut world, vec![first, second]);
    assert_eq!(run(&world, 1, &[]).code, Some(3));
    world.git(&["rm", "-q", "z.txt"]);
    world.write("docs/guide.md", "Of dates.\n");
    commit(&world, "Write the guide");
    assert_eq!(resume(&world, 2).code, Some(3));
    resume(&world, 3);
    let resumed = told(&world, &model, 3);
    let files: Vec<String> = resumed.rows().into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(files, [OAUTH], "{}", resumed.block);
    assert_eq!(resumed.stands_at(), Some((95, OAUTH.to_owned())), "{}", resumed.block);
}

#[test]
fn a_session_that_only_commits_what_it_took_over_hands_it_on() {
    let mut world = world(TWO);
    let first = vec![low("ls"), full(sed("45,90", OAUTH)), said("half of it", "50%", "oauth.ts line 91")];
    // Nothing of the work is left to commit, but files of a run are.
    let second = vec![
        low("echo more >> progress.txt; git add -A; git commit -qm wip"),
        said("nothing new", "50%", "oauth.ts line 91").usage(LOW),
    ];
    let model = play(&mut world, vec![first, second]);
    run(&world, 1, &[]);
    let head = world.git(&["rev-parse", "HEAD"]);
    resume(&world, 2);
    assert_ne!(head, world.git(&["rev-parse", "HEAD"]), "the second session has committed");
    resume(&world, 3);
    let resumed = told(&world, &model, 3);
    resumed.takes_over("Write the parser");
    assert_eq!(resumed.rows()[0][0], OAUTH, "{}", resumed.block);
    assert_eq!(resumed.stands_at(), Some((90, OAUTH.to_owned())), "{}", resumed.block);
}

#[test]
fn a_half_done_item_that_was_set_aside_is_resumed_when_its_turn_comes() {
    let mut world = world(TWO);
    let first = vec![low("ls"), full(sed("45,90", OAUTH)), said("half of it", "50%", "oauth.ts line 91")];
    let idle = || vec![Step::text("I do not know how.").usage(LOW)];
    let printer = vec![
        low(format!("echo printer > printer.txt; {}; {}", tick("Write the printer"), save("Printer"))),
        Step::text("The printer is done.").usage(LOW),
    ];
    let model = play(&mut world, vec![first, idle(), idle(), printer]);
    run(&world, 5, &[]);
    let firsts: Vec<String> = model
        .main_requests()
        .iter()
        .filter(|request| request.answers() == 0)
        .map(|request| request.text())
        .collect();
    assert!(firsts[3].contains("Not to be taken now: \"Write the parser\" (set aside"), "{}", firsts[3]);
    assert!(!firsts[3].contains(HEADING), "nothing of the parser is the printer's: {}", firsts[3]);
    let resumed = told(&world, &model, 5);
    resumed.takes_over("Write the parser");
    assert_eq!(resumed.stands_at(), Some((90, OAUTH.to_owned())), "{}", resumed.block);
}
