//! A session of the real client with the plugin.

use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::records_from_start;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;
use std::path::PathBuf;

/// The plugin's folder.
pub(crate) fn folder() -> PathBuf {
    workspace_root().join("hooks-config/plugin")
}

/// A world whose client talks to this model.
pub(crate) fn world(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.use_model(model);
    world
}

/// One headless session with the plugin, in the permission mode that a user has by default.
pub(crate) fn session(world: &World, prompt: &str, more: &[&str]) -> Finished {
    let folder = folder().display().to_string();
    let usual = ["-p", prompt, "--plugin-dir", &folder, "--output-format", "stream-json", "--verbose"];
    world.claude(&[&usual[..], &["--model", "opus"], more].concat()).run()
}

/// A model that works past L1, and then is done.
pub(crate) fn past_the_first_level() -> ScriptedModel {
    let step = |number: u32| Step::bash(format!("echo step-{number}")).delay(plimsoll_tests::LIFELIKE);
    ScriptedModel::steps(vec![
        step(1).usage(20_000),
        step(2).usage(720_000),
        step(3).usage(721_000),
        Step::text("done").usage(722_000).delay(plimsoll_tests::LIFELIKE),
    ])
}

/// The names of our tools in a request.
pub(crate) fn tools(request: &Request) -> Vec<&str> {
    request.tools().into_iter().filter(|name| name.contains("plimsoll")).collect()
}

/// What each record of the project's turn logs is.
pub(crate) fn turn_log(world: &World) -> Vec<RecordKind> {
    let project = Project::with_local_files(&world.project());
    let names = plimsoll_store::disk::list_names(&project.turn_logs_folder());
    let sessions = names.iter().filter_map(|name| name.strip_suffix(".jsonl"));
    let mut kinds = Vec::new();
    for session in sessions {
        let log = TurnLog::for_session(&project, &SessionId::from(session)).expect("a plain id");
        let records = records_from_start(&log).expect("a log");
        kinds.extend(records.map(|record| record.expect("a record").header.kind));
    }
    kinds
}

/// How many of them are of this kind.
pub(crate) fn count(records: &[RecordKind], kind: RecordKind) -> usize {
    records.iter().filter(|found| **found == kind).count()
}

/// What the hooks have left in the transcripts: its kind, and what was said.
pub(crate) fn attachments(world: &World) -> Vec<(String, String)> {
    let lines: Vec<Value> = world
        .transcripts()
        .iter()
        .flat_map(|file| {
            world.read(file).lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()
        })
        .collect();
    let hooks = lines.into_iter().map(|line: Value| line["attachment"].clone());
    let pair = |attachment: Value| Some((attachment["type"].as_str()?.to_owned(), attachment.to_string()));
    hooks.filter_map(pair).filter(|(kind, _)| kind.starts_with("hook_")).collect()
}
