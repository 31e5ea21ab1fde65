//! `plimsoll-linear`, a program of its own: found where only the user can have put it, and whatever becomes of it, the run
//! ends as it would, and each note arrives once.

use crate::linear::harness::{
    CHECKPOINTS, FINISHES, LIMIT, PROMISES, note, project, run, run_by, sync, told, undelivered, world,
};
use plimsoll_store::outbox;
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::linear::{Fault, KEY, LinearServer};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAME: &str = "plimsoll-linear";

/// Our programs in a folder of their own, all but the one for Linear; only they are on the PATH, behind these entries.
fn without_it(world: &mut World, first_on_path: &[&str]) -> PathBuf {
    let folder = world.home().join("apart");
    std::fs::create_dir_all(&folder).expect("a folder");
    for entry in std::fs::read_dir(bin_dir()).expect("our programs").flatten() {
        let name = entry.file_name().into_string().expect("a plain name");
        let is_ours = name.starts_with("plimsoll") && !name.contains('.');
        if is_ours && name != NAME && entry.path().is_file() {
            let copy = folder.join(&name);
            if std::fs::hard_link(entry.path(), &copy).is_err() {
                std::fs::copy(entry.path(), &copy).expect("a copy");
            }
        }
    }
    let usual = [folder.to_str().expect("a plain path"), "/usr/local/bin", "/usr/bin", "/bin"];
    world.set_env("PATH", [first_on_path, &usual].concat().join(":"));
    folder
}

/// The same with this in its place. `REAL` in it is the real one.
fn in_its_place(world: &mut World, script: &str) -> PathBuf {
    let folder = without_it(world, &[]);
    let real = format!("'{}'", bin_dir().join(NAME).display());
    world.write_program(folder.join(NAME), &format!("#!/bin/sh\n{}\n", script.replace("REAL", &real)));
    folder
}

fn ask(world: &World, programs: &Path, words: &[&str]) -> Finished {
    world.command(programs.join("plimsoll"), words).timeout(LIMIT).run()
}

/// A run that has a note after its first session and one at its end.
fn run_two(world: &World, programs: &Path) -> Finished {
    let finished = run_by(world, programs, &[CHECKPOINTS, FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// What was said of a delivery that came to nothing.
fn complaints(finished: &Finished) -> Vec<&str> {
    let lines = finished.stdout.lines();
    lines.filter_map(|line| line.split_once("Linear was not notified: ")).map(|(_, words)| words).collect()
}

/// Later everything arrives, in one comment.
fn assert_arrives_once(server: &LinearServer, world: &World) {
    assert_eq!(sync(world).code, Some(0));
    let comments = server.comments();
    assert_eq!((comments.len(), undelivered(world)), (1, 0), "{comments:#?}");
    for part in ["**Iteration 1**", "half of them", "**Iteration 3**", "the run ended: completed"] {
        assert_eq!(comments[0].body.matches(part).count(), 1, "{part} in {comments:#?}");
    }
}

#[test]
fn where_it_is_missing_everything_else_works_and_the_notes_wait() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let programs = without_it(&mut world, &[]);
    let place = format!("is neither next to plimsoll (in {}) nor on the PATH", programs.display());
    for words in [&["linear", "check"][..], &["linear", "sync"], &["linear", "sync", "--dry-run"]] {
        let finished = ask(&world, &programs, words);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished.stderr.starts_with(&format!("plimsoll: {NAME} {place}\nhint: install")),
            "{finished:?}"
        );
    }
    assert!(ask(&world, &programs, &["linear", "--help"]).expect_success().stdout.contains("sync"));

    let finished = run_two(&world, &programs);
    let said = complaints(&finished);
    assert_eq!(said.len(), 1, "{}", finished.stdout);
    assert!(said[0].starts_with(NAME) && said[0].contains("install all programs"), "{said:?}");
    let failures = told(&world);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert!(undelivered(&world) >= 2 && server.asked().is_empty());

    let codes = || -> Vec<String> {
        let doctor = ask(&world, &programs, &["doctor", "--json"]).json();
        let findings = doctor["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect()
    };
    assert!(codes().contains(&"linear.no_program".to_owned()), "{:?}", codes());
    world.write_user_settings(&json!({}));
    let missing = codes().into_iter().find(|code| code == "linear.no_program" || code == "programs.missing");
    assert_eq!(missing, None, "only who has set an issue misses it");
    crate::linear::harness::set_issue(&world, plimsoll_testkit::linear::ISSUE);
    assert_arrives_once(&server, &world);
}

#[test]
fn one_in_the_project_or_at_a_relative_entry_of_the_path_is_not_started() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let trap = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", world.home().join("started").display());
    for place in ["plimsoll-linear", "bin/plimsoll-linear", "relative/plimsoll-linear"] {
        world.write_program(place, &trap);
    }
    let linked = world.home().join("linked");
    std::os::unix::fs::symlink(world.path("bin"), &linked).expect("a link");
    let (own, linked) = (world.path("bin").display().to_string(), linked.display().to_string());
    let programs = without_it(&mut world, &[&own, &linked, "relative", "", "."]);
    note(&world, "r1", 1, "waits");
    for words in
        [&["linear", "check"][..], &["linear", "sync"], &["linear", "sync", "--dry-run"], &["doctor"]]
    {
        ask(&world, &programs, words);
    }
    let said = ask(&world, &programs, &["linear", "sync"]).stderr;
    for path in [&own, &linked] {
        assert!(said.contains(&format!("{path}/{NAME} is ignored: inside the project")), "{said}");
    }
    assert!(said.contains(&format!("; relative/{NAME} is ignored: a relative entry of the PATH")), "{said}");
    run_two(&world, &programs);
    assert!(!world.home().join("started").exists(), "{}", world.read(world.home().join("started")));
    assert!(server.asked().is_empty());

    // The one beside us goes before them; one on the PATH that is the user's will do, too.
    std::fs::copy(bin_dir().join(NAME), programs.join(NAME)).expect("a copy");
    assert_eq!(ask(&world, &programs, &["linear", "sync"]).code, Some(0));
    let elsewhere = world.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a folder");
    std::fs::rename(programs.join(NAME), elsewhere.join(NAME)).expect("a move");
    let path = format!("{own}:{}:relative:{}:/usr/bin:/bin", elsewhere.display(), programs.display());
    world.set_env("PATH", path);
    assert_eq!(ask(&world, &programs, &["linear", "check"]).code, Some(0));
    assert!(!world.home().join("started").exists());
}

#[test]
fn one_that_hangs_is_ended_and_the_run_ends_as_it_would() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let hangs =
        "[ \"$1\" = deliver ] || exec REAL \"$@\"; echo $$ >> \"$HOME/hung\"; trap '' TERM; sleep 600";
    let programs = in_its_place(&mut world, hangs);
    // What one that was ended left of a file; no process has this number.
    let draft = outbox::outbox_folder(&project(&world)).join(".r.comment.json.4194304.0.plimsoll-draft");
    world.write(&draft, "{");
    let begun = Instant::now();
    let finished = run_two(&world, &programs);
    assert_eq!(complaints(&finished).len(), 1, "{}", finished.stdout);
    insta::assert_snapshot!(complaints(&finished)[0], @"plimsoll-linear did not finish in time; Plimsoll retries by itself, or run `plimsoll linear sync`");
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    let hung = world.read(world.home().join("hung"));
    assert_eq!(hung.lines().count(), 1, "after the first time it is left alone for a minute");
    assert!(!Path::new("/proc").join(hung.trim()).exists(), "it is ended");
    assert!(!draft.exists(), "the next run clears up");
    assert_eq!(told(&world).len(), 1);
    assert_arrives_once(&server, &world);
}

#[test]
fn one_that_hangs_at_the_start_of_a_run_delays_it_a_few_seconds_once() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let programs = in_its_place(&mut world, "echo \"$1\" >> \"$HOME/hung\"; sleep 600");
    let finished = run_two(&world, &programs);
    assert_eq!(complaints(&finished), ["plimsoll-linear did not finish in time"], "{}", finished.stdout);
    assert_eq!(world.read(world.home().join("hung")), "ready\n");
    assert_arrives_once(&server, &world);
}

/// Killed after Linear has made the comment, before it has answered.
#[test]
fn one_that_dies_in_the_middle_of_a_delivery_loses_nothing_and_tells_nothing_twice() {
    let mut is_first = true;
    let server = LinearServer::with_faults(move |asked| {
        let is_creation = asked.operation == "commentCreate";
        (is_creation && std::mem::take(&mut is_first)).then_some(Fault::Late(Duration::from_secs(30)))
    });
    let mut world = world(&server);
    let dies = "[ \"$1\" = deliver ] || exec REAL \"$@\"\n\
        REAL \"$@\" & until [ -e \"$HOME/made\" ]; do sleep 0.05; done; kill -9 $!; kill -9 $$";
    let programs = in_its_place(&mut world, dies);
    let made = world.home().join("made");
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            world.wait_until(|| server.comments().len() == 1, "the comment is made");
            std::fs::write(&made, "").expect("the home is writable");
        });
        run_two(&world, &programs)
    });
    assert_eq!(complaints(&finished).len(), 1, "{}", finished.stdout);
    insta::assert_snapshot!(complaints(&finished)[0], @"plimsoll-linear was ended by a signal; Plimsoll retries by itself, or run `plimsoll linear sync`");
    assert!(undelivered(&world) >= 2, "nobody has heard of it");
    assert_arrives_once(&server, &world);
    let is_update = |operation: &String| operation == "commentUpdate";
    assert!(server.operations().iter().any(is_update), "the comment that nobody heard of is found");
}

#[test]
fn a_command_is_asked_for_the_key_once_and_no_argument_holds_it() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.set_env("LINEAR_API_KEY", "");
    let command = format!("echo x >> ~/asked; echo {KEY}");
    world.write_user_settings(&json!({ "linear": { "issue": "ENG-123", "key_command": command } }));
    let programs = in_its_place(&mut world, "echo \"$@\" >> \"$HOME/arguments\"; exec REAL \"$@\"");
    let finished = run_two(&world, &programs);
    assert_eq!(complaints(&finished), [""; 0], "{}", finished.stdout);
    assert_eq!(world.read(world.home().join("asked")), "x\n");
    let arguments = world.read(world.home().join("arguments"));
    assert_eq!(arguments, "ready linear.key_command\ndeliver ENG-123 4500\ndeliver ENG-123 4500\n");
    assert_eq!((server.comments().len(), undelivered(&world)), (1, 0));
}

#[test]
fn a_key_that_is_none_is_said_at_the_start_with_where_it_comes_from() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.set_env("LINEAR_API_KEY", "two words");
    let finished = run(&world, &[FINISHES, PROMISES]);
    insta::assert_snapshot!(complaints(&finished).join("\n"), @"LINEAR_API_KEY holds no key: it contains characters that no key has; export LINEAR_API_KEY with the key alone, such as lin_api_…");
    let said = ["printf ''", "printf 'a\\0b'", "echo a; echo b"].map(|command| {
        let server = LinearServer::new();
        let mut world = self::world(&server);
        world.set_env("LINEAR_API_KEY", "");
        world.write_user_settings(&json!({ "linear": { "issue": "ENG-123", "key_command": command } }));
        let finished = run(&world, &[FINISHES, PROMISES]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!((undelivered(&world), server.asked().len()), (1, 0));
        complaints(&finished).join("\n")
    });
    insta::assert_snapshot!(said.join("\n"), @"
    linear.key_command printed no key: it is empty; let the command print the key alone, on one line
    linear.key_command printed no key: it contains characters that no key has; let the command print the key alone, on one line
    linear.key_command printed no key: it is 2 lines of text instead of one; let the command print the key alone, on one line
    ");
}

#[test]
fn it_tells_its_version_and_refuses_what_it_does_not_know() {
    let world = World::untouched();
    let ask = |words: &[&str]| world.command(bin_dir().join(NAME), words).run();
    let version = format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ask(&["--version"]).expect_success().stdout, version);
    insta::assert_snapshot!(ask(&["--help"]).expect_success().stdout, @"
    Delivers the notes of Plimsoll's runs to Linear. `plimsoll linear --help` says more.

    Usage: plimsoll-linear check             check settings, key, network, issue and permissions
           plimsoll-linear sync [--dry-run]  deliver the notes that wait
           plimsoll-linear --version         print the version; with --json also target and commit
           plimsoll-linear --help            print this

    `plimsoll run` starts it to deliver a run's notes.
    ");
    let refused = [&[][..], &["sync", "--now"], &["ready", "elsewhere"]].map(|words| {
        let refused = ask(words);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        format!("{}\n", refused.stderr.lines().next().unwrap_or_default())
    });
    insta::assert_snapshot!(refused.concat(), @r#"
    plimsoll: plimsoll-linear does not know the arguments []
    plimsoll: plimsoll-linear does not know the arguments ["sync", "--now"]
    plimsoll: plimsoll-linear does not know the arguments ["ready", "elsewhere"]
    "#);
}

/// One beside us of another build.
#[test]
fn the_doctor_compares_it_with_the_others() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let programs = in_its_place(&mut world, r#"echo '{"program":"plimsoll-linear","version":"0.0.1"}'"#);
    let doctor = |programs: &Path| ask(&world, programs, &["doctor", "--json"]).json();
    let found = |doctor: &Value| -> Vec<(String, String)> {
        let findings = doctor["findings"].as_array().cloned().unwrap_or_default();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let findings = findings.iter().filter(|finding| text(finding, "what").starts_with(NAME));
        findings.map(|finding| (text(finding, "code"), text(finding, "where"))).collect()
    };
    let place = programs.join(NAME).display().to_string();
    assert_eq!(found(&doctor(&programs)), [("programs.other_version".to_owned(), place)]);
}
