//! `plimsoll-linear`, a separate program: it is started only from places that the user controls, its failures do not
//! change how a run ends, and each note arrives once.

use crate::linear::harness::{
    CHECKPOINT_SESSION, COMMAND_TIMEOUT, FINISH_ITEM_SESSION, PROMISE_SESSION, add_note,
    linear_journal_entries, project_store, run_linear_sync, run_scripted_sessions,
    run_scripted_sessions_with_programs, undelivered_count, world_with_linear,
};
use plimsoll_store::outbox;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::linear::{API_KEY, Fault, LinearServer};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LINEAR_PROGRAM: &str = "plimsoll-linear";

/// Copies all our programs except the one for Linear into a folder, and sets a PATH with that folder after these
/// entries.
fn programs_without_linear(world: &mut World, first_on_path: &[&str]) -> PathBuf {
    let folder = world.home().join("apart");
    std::fs::create_dir_all(&folder).expect("a folder");
    for entry in std::fs::read_dir(find_or_build_bin_dir()).expect("our programs").flatten() {
        let name = entry.file_name().into_string().expect("a plain name");
        let is_ours = name.starts_with("plimsoll") && !name.contains('.');
        if is_ours && name != LINEAR_PROGRAM && entry.path().is_file() {
            let copy = folder.join(&name);
            if std::fs::hard_link(entry.path(), &copy).is_err() {
                std::fs::copy(entry.path(), &copy).expect("a copy");
            }
        }
    }
    let default_entries = [folder.to_str().expect("a plain path"), "/usr/local/bin", "/usr/bin", "/bin"];
    world.set_env("PATH", [first_on_path, &default_entries].concat().join(":"));
    folder
}

/// Copies our programs into a folder, with this script as the one for Linear. `REAL` in the script stands for the real
/// program.
fn programs_with_linear_script(world: &mut World, script: &str) -> PathBuf {
    let folder = programs_without_linear(world, &[]);
    let real_program = format!("'{}'", find_or_build_bin_dir().join(LINEAR_PROGRAM).display());
    world.write_program(
        folder.join(LINEAR_PROGRAM),
        &format!("#!/bin/sh\n{}\n", script.replace("REAL", &real_program)),
    );
    folder
}

fn run_plimsoll(world: &World, program_folder: &Path, arguments: &[&str]) -> FinishedProgram {
    world.command(program_folder.join("plimsoll"), arguments).timeout(COMMAND_TIMEOUT).run()
}

/// Runs sessions that leave a note after the first session and one at the end.
fn run_with_two_notes(world: &World, program_folder: &Path) -> FinishedProgram {
    let finished = run_scripted_sessions_with_programs(
        world,
        program_folder,
        &[CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION],
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// Returns the messages about failed deliveries.
fn delivery_failures(finished: &FinishedProgram) -> Vec<&str> {
    let lines = finished.stdout.lines();
    lines.filter_map(|line| line.split_once("Linear was not notified: ")).map(|(_, words)| words).collect()
}

/// Asserts that a later sync delivers everything in one comment.
fn assert_delivered_once(server: &LinearServer, world: &World) {
    assert_eq!(run_linear_sync(world).code, Some(0));
    let comments = server.comments();
    assert_eq!((comments.len(), undelivered_count(world)), (1, 0), "{comments:#?}");
    for part in ["**Session 1**", "half of them", "**Session 3**", "the run ended: completed"] {
        assert_eq!(comments[0].body.matches(part).count(), 1, "{part} in {comments:#?}");
    }
}

#[test]
fn a_run_without_the_linear_program_succeeds_and_keeps_its_notes() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let program_folder = programs_without_linear(&mut world, &[]);
    let missing_message =
        format!("is neither next to plimsoll (in {}) nor on the PATH", program_folder.display());
    for arguments in [&["linear", "check"][..], &["linear", "sync"], &["linear", "sync", "--dry-run"]] {
        let finished = run_plimsoll(&world, &program_folder, arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished.stderr.starts_with(&format!("error: {LINEAR_PROGRAM} {missing_message}\nhint: install")),
            "{finished:?}"
        );
    }
    assert!(
        run_plimsoll(&world, &program_folder, &["linear", "--help"]).expect_success().stdout.contains("sync")
    );

    let finished = run_with_two_notes(&world, &program_folder);
    let messages = delivery_failures(&finished);
    assert_eq!(messages.len(), 1, "{}", finished.stdout);
    assert!(
        messages[0].starts_with(LINEAR_PROGRAM) && messages[0].contains("install all programs"),
        "{messages:?}"
    );
    let failures = linear_journal_entries(&world);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert!(undelivered_count(&world) >= 2 && server.requests().is_empty());

    let doctor_codes = || -> Vec<String> {
        let doctor = run_plimsoll(&world, &program_folder, &["doctor", "--json"]).stdout_json();
        let findings = doctor["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect()
    };
    assert!(doctor_codes().contains(&"linear.no_program".to_owned()), "{:?}", doctor_codes());
    world.write_plimsoll_user_settings(&json!({}));
    let missing =
        doctor_codes().into_iter().find(|code| code == "linear.no_program" || code == "programs.missing");
    assert_eq!(missing, None, "only who has set an issue misses it");
    crate::linear::harness::write_issue_setting(&world, plimsoll_testkit::linear::ISSUE_IDENTIFIER);
    assert_delivered_once(&server, &world);
}

#[test]
fn a_linear_program_in_the_project_or_on_a_relative_path_is_not_started() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let trap_script = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", world.home().join("started").display());
    for place in ["plimsoll-linear", "bin/plimsoll-linear", "relative/plimsoll-linear"] {
        world.write_program(place, &trap_script);
    }
    let linked = world.home().join("linked");
    std::os::unix::fs::symlink(world.path("bin"), &linked).expect("a link");
    let (bin_folder, linked) = (world.path("bin").display().to_string(), linked.display().to_string());
    let program_folder = programs_without_linear(&mut world, &[&bin_folder, &linked, "relative", "", "."]);
    add_note(&world, "r1", 1, "waits");
    for arguments in
        [&["linear", "check"][..], &["linear", "sync"], &["linear", "sync", "--dry-run"], &["doctor"]]
    {
        run_plimsoll(&world, &program_folder, arguments);
    }
    let error_output = run_plimsoll(&world, &program_folder, &["linear", "sync"]).stderr;
    for path in [&bin_folder, &linked] {
        assert!(
            error_output.contains(&format!("{path}/{LINEAR_PROGRAM} is ignored: inside the project")),
            "{error_output}"
        );
    }
    assert!(
        error_output
            .contains(&format!("; relative/{LINEAR_PROGRAM} is ignored: a relative entry of the PATH")),
        "{error_output}"
    );
    run_with_two_notes(&world, &program_folder);
    assert!(!world.home().join("started").exists(), "{}", world.read(world.home().join("started")));
    assert!(server.requests().is_empty());

    // A copy next to `plimsoll` takes precedence over these, and one in a user's folder on the PATH is accepted too.
    std::fs::copy(find_or_build_bin_dir().join(LINEAR_PROGRAM), program_folder.join(LINEAR_PROGRAM))
        .expect("a copy");
    assert_eq!(run_plimsoll(&world, &program_folder, &["linear", "sync"]).code, Some(0));
    let user_folder = world.home().join("elsewhere");
    std::fs::create_dir_all(&user_folder).expect("a folder");
    std::fs::rename(program_folder.join(LINEAR_PROGRAM), user_folder.join(LINEAR_PROGRAM)).expect("a move");
    let path =
        format!("{bin_folder}:{}:relative:{}:/usr/bin:/bin", user_folder.display(), program_folder.display());
    world.set_env("PATH", path);
    assert_eq!(run_plimsoll(&world, &program_folder, &["linear", "check"]).code, Some(0));
    assert!(!world.home().join("started").exists());
}

#[test]
fn a_hanging_linear_program_is_killed_and_the_run_completes() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let hanging_script =
        "[ \"$1\" = deliver ] || exec REAL \"$@\"; echo $$ >> \"$HOME/hung\"; trap '' TERM; sleep 600";
    let program_folder = programs_with_linear_script(&mut world, hanging_script);
    // A draft that a killed process left; no process has this number.
    let draft =
        outbox::outbox_folder(&project_store(&world)).join(".r.comment.json.4194304.0.plimsoll-draft");
    world.write(&draft, "{");
    let started_at = Instant::now();
    let finished = run_with_two_notes(&world, &program_folder);
    assert_eq!(delivery_failures(&finished).len(), 1, "{}", finished.stdout);
    insta::assert_snapshot!(delivery_failures(&finished)[0], @"plimsoll-linear did not finish in time; Plimsoll retries by itself, or run `plimsoll linear sync`");
    assert!(started_at.elapsed() < Duration::from_secs(40), "{:?}", started_at.elapsed());
    let hung_pids = world.read(world.home().join("hung"));
    assert_eq!(hung_pids.lines().count(), 1, "after the first time it is left alone for a minute");
    assert!(!Path::new("/proc").join(hung_pids.trim()).exists(), "it is ended");
    assert!(!draft.exists(), "the next run clears up");
    assert_eq!(linear_journal_entries(&world).len(), 1);
    assert_delivered_once(&server, &world);
}

#[test]
fn a_linear_program_that_hangs_at_the_start_delays_the_run_only_once() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let program_folder = programs_with_linear_script(&mut world, "echo \"$1\" >> \"$HOME/hung\"; sleep 600");
    let finished = run_with_two_notes(&world, &program_folder);
    assert_eq!(
        delivery_failures(&finished),
        ["plimsoll-linear did not finish in time"],
        "{}",
        finished.stdout
    );
    assert_eq!(world.read(world.home().join("hung")), "ready\n");
    assert_delivered_once(&server, &world);
}

/// The program is killed after Linear has created the comment, before it has responded.
#[test]
fn a_linear_program_killed_during_delivery_loses_and_repeats_nothing() {
    let mut is_first = true;
    let server = LinearServer::start_with_faults(move |asked| {
        let is_creation = asked.operation == "commentCreate";
        (is_creation && std::mem::take(&mut is_first))
            .then_some(Fault::DelayedResponse(Duration::from_secs(30)))
    });
    let mut world = world_with_linear(&server);
    let killing_script = "[ \"$1\" = deliver ] || exec REAL \"$@\"\n\
        REAL \"$@\" & until [ -e \"$HOME/made\" ]; do sleep 0.05; done; kill -9 $!; kill -9 $$";
    let program_folder = programs_with_linear_script(&mut world, killing_script);
    let comment_marker = world.home().join("made");
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            world.wait_until(|| server.comments().len() == 1, "the comment is made");
            std::fs::write(&comment_marker, "").expect("the home is writable");
        });
        run_with_two_notes(&world, &program_folder)
    });
    assert_eq!(delivery_failures(&finished).len(), 1, "{}", finished.stdout);
    insta::assert_snapshot!(delivery_failures(&finished)[0], @"plimsoll-linear was ended by a signal; Plimsoll retries by itself, or run `plimsoll linear sync`");
    assert!(undelivered_count(&world) >= 2, "nobody has heard of it");
    assert_delivered_once(&server, &world);
    let is_update = |operation: &String| operation == "commentUpdate";
    assert!(server.requested_operations().iter().any(is_update), "the comment that nobody heard of is found");
}

#[test]
fn the_key_command_runs_once_and_no_argument_contains_the_key() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.set_env("LINEAR_API_KEY", "");
    let command = format!("echo x >> ~/asked; echo {API_KEY}");
    world.write_plimsoll_user_settings(&json!({ "linear": { "issue": "ENG-123", "key_command": command } }));
    let program_folder =
        programs_with_linear_script(&mut world, "echo \"$@\" >> \"$HOME/arguments\"; exec REAL \"$@\"");
    let finished = run_with_two_notes(&world, &program_folder);
    assert_eq!(delivery_failures(&finished), [""; 0], "{}", finished.stdout);
    assert_eq!(world.read(world.home().join("asked")), "x\n");
    let arguments = world.read(world.home().join("arguments"));
    assert_eq!(arguments, "ready linear.key_command\ndeliver ENG-123 4500\ndeliver ENG-123 4500\n");
    assert_eq!((server.comments().len(), undelivered_count(&world)), (1, 0));
}

#[test]
fn an_invalid_key_is_reported_at_the_start_with_its_source() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.set_env("LINEAR_API_KEY", "two words");
    let finished = run_scripted_sessions(&world, &[FINISH_ITEM_SESSION, PROMISE_SESSION]);
    insta::assert_snapshot!(delivery_failures(&finished).join("\n"), @"LINEAR_API_KEY has no valid key: it contains characters that no key has; export LINEAR_API_KEY with the key alone, such as lin_api_…");
    let messages = ["printf ''", "printf 'a\\0b'", "echo a; echo b"].map(|command| {
        let server = LinearServer::new();
        let mut world = world_with_linear(&server);
        world.set_env("LINEAR_API_KEY", "");
        world.write_plimsoll_user_settings(
            &json!({ "linear": { "issue": "ENG-123", "key_command": command } }),
        );
        let finished = run_scripted_sessions(&world, &[FINISH_ITEM_SESSION, PROMISE_SESSION]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!((undelivered_count(&world), server.requests().len()), (1, 0));
        delivery_failures(&finished).join("\n")
    });
    insta::assert_snapshot!(messages.join("\n"), @"
    linear.key_command printed no key: it is empty; let the command print the key alone, on one line
    linear.key_command printed no key: it contains characters that no key has; let the command print the key alone, on one line
    linear.key_command printed no key: it is 2 lines of text instead of one; let the command print the key alone, on one line
    ");
}

#[test]
fn the_linear_program_prints_its_version_and_rejects_unknown_arguments() {
    let world = World::without_plimsoll_files();
    let run_linear_program =
        |arguments: &[&str]| world.command(find_or_build_bin_dir().join(LINEAR_PROGRAM), arguments).run();
    let version = format!("{LINEAR_PROGRAM} {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run_linear_program(&["--version"]).expect_success().stdout, version);
    insta::assert_snapshot!(run_linear_program(&["--help"]).expect_success().stdout, @"
    Delivers the notes of Plimsoll's runs to Linear. `plimsoll linear --help` says more.

    Usage: plimsoll-linear check             check settings, key, network, issue and permissions
           plimsoll-linear sync [--dry-run]  deliver the notes that wait
           plimsoll-linear --version         print the version; with --json also target and commit
           plimsoll-linear --help            print this

    `plimsoll run` starts it to deliver a run's notes.
    ");
    let errors = [&[][..], &["sync", "--now"], &["ready", "elsewhere"]].map(|words| {
        let refused = run_linear_program(words);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        format!("{}\n", refused.stderr.lines().next().unwrap_or_default())
    });
    insta::assert_snapshot!(errors.concat(), @r#"
    error: a command is missing
    error: unknown arguments: sync --now
    error: unknown arguments: ready elsewhere
    "#);
}

/// The program next to ours is of another build.
#[test]
fn doctor_reports_a_linear_program_of_another_version() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let program_folder =
        programs_with_linear_script(&mut world, r#"echo '{"program":"plimsoll-linear","version":"0.0.1"}'"#);
    let run_doctor =
        |program_folder: &Path| run_plimsoll(&world, program_folder, &["doctor", "--json"]).stdout_json();
    let program_findings = |doctor: &Value| -> Vec<(String, String)> {
        let findings = doctor["findings"].as_array().cloned().unwrap_or_default();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let findings = findings.iter().filter(|finding| text(finding, "what").starts_with(LINEAR_PROGRAM));
        findings.map(|finding| (text(finding, "code"), text(finding, "where"))).collect()
    };
    let program_path = program_folder.join(LINEAR_PROGRAM).display().to_string();
    assert_eq!(
        program_findings(&run_doctor(&program_folder)),
        [("programs.other_version".to_owned(), program_path)]
    );
}
