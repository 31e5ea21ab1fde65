//! A world with one version of the client, and hooks that only record their input.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Has a window of 200,000 tokens for every client and for Plimsoll: L1 at 64%, L2 at 74%, L3 at 79%.
pub(crate) const MODEL: &str = "claude-sonnet-4-6";
pub(crate) const SESSION_ID: &str = "11111111-1111-4111-8111-111111111111";
/// Long, because the computer may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// Creates a project with a plan and a file to work on, and puts this version of the client on the PATH.
pub(crate) fn world_with_client(version: &str, model: &ScriptedModel) -> World {
    let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    world.put_client_on_path_with_model_and_settings(model);
    world.use_client_version(version);
    world
}

/// Prepares a headless session that prints its result.
pub(crate) fn headless_session(world: &World, prompt: &str, arguments: &[&str]) -> Launch {
    let common_arguments =
        ["-p", prompt, "--output-format", "json", "--model", MODEL, "--session-id", SESSION_ID];
    world.claude(&[&common_arguments[..], arguments].concat()).timeout(TIMEOUT)
}

/// Calls a subagent; older clients have another name for the tool.
pub(crate) fn call_subagent(request: &Request, brief: &str) -> Step {
    let name = if request.tool_names().contains(&"Agent") { "Agent" } else { "Task" };
    let input = json!({
        "subagent_type": "general-purpose", "description": "look", "prompt": brief, "run_in_background": false
    });
    Step::default().with_tool_call(name, input)
}

/// Returns all lines of all transcripts.
pub(crate) fn transcript_lines(world: &World) -> Vec<Value> {
    let texts =
        world.transcript_paths().into_iter().map(|path| std::fs::read_to_string(path).expect("a transcript"));
    texts
        .flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>())
        .collect()
}

/// The recorded input of one start of a recorder.
pub(crate) struct HookRecord {
    /// The recorder's name.
    pub(crate) recorder: String,
    pub(crate) arguments: String,
    /// The JSON that the client wrote to its standard input.
    pub(crate) payload: Value,
}

impl HookRecord {
    pub(crate) fn event_name(&self) -> &str {
        self.payload["hook_event_name"].as_str().unwrap_or_default()
    }
}

/// Programs that record their name, their arguments and their standard input, in a file for each start.
pub(crate) struct HookRecorders<'a> {
    world: &'a World,
}

impl<'a> HookRecorders<'a> {
    pub(crate) fn new(world: &'a World) -> HookRecorders<'a> {
        std::fs::create_dir_all(world.home().join("told")).expect("a folder");
        HookRecorders { world }
    }

    /// Writes a recorder at this path in the home and returns its full path.
    pub(crate) fn write_recorder(&self, path: &str) -> String {
        let path = self.world.home().join(path);
        let records_folder = self.world.home().join("told");
        let write_command = "{ printf '%s\\n%s\\n' \"${0##*/}\" \"$*\"; cat; }";
        let path = self.world.write_program(
            path,
            &format!("#!/bin/sh\n{write_command} > '{}'/$$\n", records_folder.display()),
        );
        path.display().to_string()
    }

    pub(crate) fn read_records(&self) -> Vec<HookRecord> {
        let files = std::fs::read_dir(self.world.home().join("told")).expect("a folder");
        files.filter_map(|file| parse_record(file.ok()?.path())).collect()
    }
}

/// Parses a record. Returns `None` if it is incomplete.
fn parse_record(path: PathBuf) -> Option<HookRecord> {
    let text = std::fs::read_to_string(path).ok()?;
    let (recorder, rest) = text.split_once('\n')?;
    let (arguments, payload) = rest.split_once('\n')?;
    let payload = serde_json::from_str(payload).ok()?;
    Some(HookRecord { recorder: recorder.to_owned(), arguments: arguments.to_owned(), payload })
}

/// Returns a settings file in which each of these events starts a program.
pub(crate) fn settings_with_hooks(entries: &[(&str, &Value)]) -> String {
    let mut hooks = serde_json::Map::new();
    for (event, entry) in entries {
        let groups = hooks.entry((*event).to_owned()).or_insert_with(|| json!([]));
        groups.as_array_mut().expect("a list").push(json!({ "hooks": [entry] }));
    }
    json!({ "hooks": hooks }).to_string()
}
