//! What the tests share: a project with the setting, a run whose sessions a stand-in plays, notes in the outbox.

use plimsoll_store::{Project, outbox};
use plimsoll_testkit::linear::{ISSUE, KEY, LinearServer};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_testkit::{bin_dir, workspace_root};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A project with the issue set, and a way to this server.
pub(crate) fn world(server: &LinearServer) -> World {
    let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    set_issue(&world, ISSUE);
    world.set_env("LINEAR_API_KEY", KEY);
    world.set_env("LINEAR_API_URL", server.url());
    world
}

pub(crate) fn set_issue(world: &World, issue: &str) {
    world.write_user_settings(&json!({ "linear": { "issue": issue } }));
}

/// Notes of a run, as hooks leave them.
pub(crate) fn note(world: &World, run_id: &str, iteration: u32, words: &str) {
    let note = plimsoll_domain::linear::LinearNote {
        recorded_at: format!("2026-01-07T0{iteration}:45:00Z").into(),
        run_id: run_id.into(),
        task_name: "Dates".into(),
        issue_name: ISSUE.into(),
        iteration_or_item_number: iteration,
        text: words.into(),
        ..plimsoll_domain::linear::LinearNote::default()
    };
    outbox::append_note(&project(world), &note).expect("the outbox is writable");
}

pub(crate) fn project(world: &World) -> Project {
    Project::with_local_files(&world.project()).with_runs_folder(&world.runs())
}

pub(crate) fn undelivered(world: &World) -> usize {
    outbox::undelivered_note_count_of_all_runs(&project(world))
}

pub(crate) fn sync(world: &World) -> Finished {
    world.plimsoll(&["linear", "sync"]).timeout(LIMIT).run()
}

/// The journal's lines about Linear.
pub(crate) fn told(world: &World) -> Vec<Value> {
    let journal = plimsoll_tests::journal(world);
    let is_it = |entry: &Value| entry["event"].as_str().is_some_and(|event| event.starts_with("linear_"));
    journal.into_iter().filter(is_it).collect()
}

/// A run whose sessions are these scripts, played by a stand-in for the client with our real hooks.
pub(crate) fn run(world: &World, sessions: &[&str]) -> Finished {
    run_by(world, &bin_dir(), sessions)
}

/// The same by the programs of another folder.
pub(crate) fn run_by(world: &World, programs: &Path, sessions: &[&str]) -> Finished {
    std::fs::create_dir_all(world.home().join("begun")).expect("a folder");
    for (number, session) in (1..).zip(sessions) {
        world.write(world.home().join(format!("sessions/{number}")), session);
    }
    let stand_in = workspace_root().join("tests/tests/runs/model_run/stand_in.sh");
    let stand_in = std::fs::read_to_string(stand_in).expect("the stand-in");
    let client = world.write_program(world.home().join("stand-in"), &stand_in).display().to_string();
    let words = ["run", "--objective", "Do the plan.", "--name", "Dates", "--no-wait", "--client", &client];
    world.command(programs.join("plimsoll"), &words).timeout(LIMIT).run()
}

/// A session that reaches L2, says how far it is, and leaves its item open.
pub(crate) const CHECKPOINTS: &str = "begin; answers 30000; echo part >> src/dates.txt; answers 870000\n\
     says 'Summary: half of them\\nProgress on the item: 50%\\nNext step: the rest'\n";
/// A session that finishes its item.
pub(crate) const FINISHES: &str =
    "begin; answers 30000; tick \"$item\"; echo \"$item\" >> work.txt; says 'The item is done.'\n";
/// A session that finishes the last item, and promises.
pub(crate) const PROMISES: &str = "begin; answers 30000; tick \"$item\"; echo \"$item\" >> work.txt\n\
     says \"All done.\\\\n\\\\n$promise\"\n";
