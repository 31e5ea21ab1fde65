//! Shared helpers: a project with Linear configured, a run whose sessions are played by a stand-in client, and notes in
//! the outbox.

use plimsoll_store::{Project, outbox};
use plimsoll_testkit::linear::{API_KEY, ISSUE_IDENTIFIER, LinearServer};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a project with an issue and a key set, which sends to this server.
pub(crate) fn world_with_linear(server: &LinearServer) -> World {
    let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    write_issue_setting(&world, ISSUE_IDENTIFIER);
    world.set_env("LINEAR_API_KEY", API_KEY);
    world.set_env("LINEAR_API_URL", server.url());
    world
}

pub(crate) fn write_issue_setting(world: &World, issue: &str) {
    world.write_plimsoll_user_settings(&json!({ "linear": { "issue": issue } }));
}

/// Adds a note of a run to the outbox, as hooks do.
pub(crate) fn add_note(world: &World, run_id: &str, iteration: u32, text: &str) {
    let note = plimsoll_domain::linear::LinearNote {
        recorded_at: format!("2026-01-07T0{iteration}:45:00Z").into(),
        run_id: run_id.into(),
        task_name: "Dates".into(),
        issue_name: ISSUE_IDENTIFIER.into(),
        iteration_or_item_number: iteration,
        text: text.into(),
        ..plimsoll_domain::linear::LinearNote::default()
    };
    outbox::append_note_with_best_effort_lock(&project_store(world), &note).expect("the outbox is writable");
}

pub(crate) fn project_store(world: &World) -> Project {
    Project::with_local_files(&world.project()).with_runs_folder(&world.runs_folder())
}

pub(crate) fn undelivered_count(world: &World) -> usize {
    outbox::undelivered_note_count_of_all_runs(&project_store(world))
}

pub(crate) fn run_linear_sync(world: &World) -> FinishedProgram {
    world.plimsoll(&["linear", "sync"]).timeout(COMMAND_TIMEOUT).run()
}

/// Returns the journal's entries about Linear.
pub(crate) fn linear_journal_entries(world: &World) -> Vec<Value> {
    let journal = plimsoll_tests::read_journal(world);
    let is_linear_entry =
        |entry: &Value| entry["event"].as_str().is_some_and(|event| event.starts_with("linear_"));
    journal.into_iter().filter(is_linear_entry).collect()
}

/// Runs these session scripts with a stand-in client and our real hooks.
pub(crate) fn run_scripted_sessions(world: &World, session_scripts: &[&str]) -> FinishedProgram {
    run_scripted_sessions_with_programs(world, &find_or_build_bin_dir(), session_scripts)
}

/// Runs these session scripts with the programs of another folder.
pub(crate) fn run_scripted_sessions_with_programs(
    world: &World,
    program_folder: &Path,
    session_scripts: &[&str],
) -> FinishedProgram {
    std::fs::create_dir_all(world.home().join("begun")).expect("a folder");
    for (number, session) in (1..).zip(session_scripts) {
        world.write(world.home().join(format!("sessions/{number}")), session);
    }
    let stand_in = workspace_root().join("tests/tests/runs/model_run/stand_in.sh");
    let stand_in = std::fs::read_to_string(stand_in).expect("the stand-in");
    let client = world.write_program(world.home().join("stand-in"), &stand_in).display().to_string();
    let arguments =
        ["run", "--objective", "Do the plan.", "--name", "Dates", "--no-wait", "--client", &client];
    world.command(program_folder.join("plimsoll"), &arguments).timeout(COMMAND_TIMEOUT).run()
}

/// A session that reaches L2, reports its progress, and leaves its item open.
pub(crate) const CHECKPOINT_SESSION: &str = "begin; answers 30000; echo part >> src/dates.txt; answers 870000\n\
     says 'Summary: half of them\\nProgress on the item: 50%\\nNext step: the rest'\n";
/// A session that finishes its item.
pub(crate) const FINISH_ITEM_SESSION: &str =
    "begin; answers 30000; tick \"$item\"; echo \"$item\" >> work.txt; says 'The item is done.'\n";
/// A session that finishes the last item and promises completion.
pub(crate) const PROMISE_SESSION: &str = "begin; answers 30000; tick \"$item\"; echo \"$item\" >> work.txt\n\
     says \"All done.\\\\n\\\\n$promise\"\n";
