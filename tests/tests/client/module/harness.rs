//! A session of the real client with the hooks and the module of `plimsoll init`.

use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The usage at which the client compacts a window of a million tokens.
pub(crate) const FULL: u64 = 970_000;
pub(crate) const SUMMARY: &str = "THE CLIENT'S SUMMARY";
pub(crate) const MARKER: &str = "[Plimsoll handoff, in place of a summary]";
pub(crate) const FRESH_MARKER: &str = "[Plimsoll handoff, for a fresh conversation]";

pub(crate) fn module_folder(world: &World) -> PathBuf {
    world.home().join(".claude/skills/plimsoll")
}

/// Creates a world with the hooks and the module of `plimsoll init`, and these settings of the user.
pub(crate) fn world_with_module(model: &ScriptedModel, settings: &Value) -> World {
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(model);
    world.plimsoll(&["init", "--user", "--module"]).run().expect_success();
    world.write_plimsoll_user_settings(settings);
    world
}

/// Lets the installed module start the programs of this folder.
pub(crate) fn use_programs_of(world: &World, folder: &str) {
    let line = format!("const PROGRAM_FOLDER: string = {};", json!(folder));
    replace_line_of_module(world, "const PROGRAM_FOLDER", &line);
}

/// Lets a question wait for 2 seconds instead of 60.
pub(crate) fn shorten_question(world: &World) {
    replace_line_of_module(world, "const ANSWER_TIMEOUT_MS", "const ANSWER_TIMEOUT_MS = 2_000;");
}

fn replace_line_of_module(world: &World, start: &str, new_line: &str) {
    let file = module_folder(world).join("hooks/plimsoll.ts");
    let text = world.read(&file);
    assert_eq!(text.lines().filter(|line| line.starts_with(start)).count(), 1, "{start} in\n{text}");
    let lines = text.lines().map(|line| if line.starts_with(start) { new_line } else { line });
    world.write(&file, &lines.map(|line| format!("{line}\n")).collect::<String>());
}

/// Starts a model that runs one command, has filled the window with the next one, and then is done.
pub(crate) fn model_that_fills_the_window() -> ScriptedModel {
    ScriptedModel::start(|request| {
        let text = request.full_text();
        match (text.contains(MARKER), request.assistant_message_count()) {
            _ if text.contains(SUMMARY) => Step::from_text("after the summary").with_input_tokens(30_000),
            (false, 0) => Step::bash_call("echo step-1").with_input_tokens(20_000),
            (false, _) => Step::bash_call("echo step-2").with_input_tokens(FULL),
            (true, 0) => Step::bash_call("echo step-3").with_input_tokens(30_000),
            (true, _) => Step::from_text("after the handoff").with_input_tokens(31_000),
        }
    })
    .with_compaction_step(Step::from_text(format!("<summary>{SUMMARY}</summary>")))
}

/// Runs a headless session with this prompt.
pub(crate) fn run_session(world: &World, prompt: &str, arguments: &[&str]) -> FinishedProgram {
    let common = ["-p", prompt, "--output-format", "json", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&[&common[..], arguments].concat()).run()
}

/// Returns how many summaries the client asked the model for.
pub(crate) fn summary_count(model: &ScriptedModel) -> usize {
    model.requests_of_kind(RequestKind::Compaction).len()
}

/// Returns the text of the first message of a request that is a handoff.
pub(crate) fn handoff_text(request: &Request) -> String {
    let messages = request.body["messages"].as_array().expect("messages");
    let blocks =
        messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    let texts = blocks.filter_map(|block| block["text"].as_str().map(str::to_owned));
    texts.into_iter().find(|text| text.starts_with("[Plimsoll handoff")).unwrap_or_default()
}
