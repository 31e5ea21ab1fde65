//! A session of the real client with the plugin.

use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::records_from_start;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::path::PathBuf;

pub(crate) fn plugin_folder() -> PathBuf {
    workspace_root().join("hooks-config/plugin")
}

/// Creates a world whose client uses this model.
pub(crate) fn world_with_model(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(model);
    world
}

/// Runs a headless session with the plugin, in the default permission mode.
pub(crate) fn run_plugin_session(world: &World, prompt: &str, arguments: &[&str]) -> FinishedProgram {
    run_session_with_plugin_folder(world, &plugin_folder().display().to_string(), prompt, arguments)
}

/// Runs a headless session with the plugin in this folder.
pub(crate) fn run_session_with_plugin_folder(
    world: &World,
    folder: &str,
    prompt: &str,
    arguments: &[&str],
) -> FinishedProgram {
    let common_arguments =
        ["-p", prompt, "--plugin-dir", folder, "--output-format", "stream-json", "--verbose"];
    world.claude(&[&common_arguments[..], &["--model", "opus"], arguments].concat()).run()
}

/// Starts a model that passes L1 and then is done.
pub(crate) fn model_that_passes_l1() -> ScriptedModel {
    let step = |number: u32| {
        Step::bash_call(format!("echo step-{number}")).with_delay(plimsoll_tests::LIFELIKE_DELAY)
    };
    ScriptedModel::start_with_steps_repeating_last(vec![
        step(1).with_input_tokens(20_000),
        step(2).with_input_tokens(720_000),
        step(3).with_input_tokens(721_000),
        Step::from_text("done").with_input_tokens(722_000).with_delay(plimsoll_tests::LIFELIKE_DELAY),
    ])
}

/// Returns the names of Plimsoll's tools in a request.
pub(crate) fn plimsoll_tools(request: &Request) -> Vec<&str> {
    request.tool_names().into_iter().filter(|name| name.contains("plimsoll")).collect()
}

/// Returns the kind of each record in the project's turn logs.
pub(crate) fn turn_log_kinds(world: &World) -> Vec<RecordKind> {
    let project = Project::with_local_files(&world.project());
    let names = plimsoll_store::disk::list_names(&project.turn_logs_folder());
    let sessions = names.iter().filter_map(|name| name.strip_suffix(".jsonl"));
    let mut kinds = Vec::new();
    for session in sessions {
        let log = TurnLog::for_session_where_started_or_current(&project, &SessionId::from(session))
            .expect("a plain id");
        let records = records_from_start(&log).expect("a log");
        kinds.extend(records.map(|record| record.expect("a record").header.kind));
    }
    kinds
}

/// Counts the records of this kind.
pub(crate) fn count_records(records: &[RecordKind], kind: RecordKind) -> usize {
    records.iter().filter(|found| **found == kind).count()
}

/// Returns the attachments of hooks in the transcripts: the kind and the JSON text of each.
pub(crate) fn hook_attachments(world: &World) -> Vec<(String, String)> {
    let lines: Vec<Value> = world
        .transcript_paths()
        .iter()
        .flat_map(|file| {
            world.read(file).lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()
        })
        .collect();
    let hooks = lines.into_iter().map(|line: Value| line["attachment"].clone());
    let kind_and_text =
        |attachment: Value| Some((attachment["type"].as_str()?.to_owned(), attachment.to_string()));
    hooks.filter_map(kind_and_text).filter(|(kind, _)| kind.starts_with("hook_")).collect()
}
