//! A world with one version of the client, and hooks that only write down what they are told.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// A window of 200,000 tokens for every client and for us: L1 at 64 %, L2 at 74 %, L3 at 79 %.
pub(crate) const MODEL: &str = "claude-sonnet-4-6";
pub(crate) const ID: &str = "11111111-1111-4111-8111-111111111111";
/// The computer may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// A project with a plan and a file to work on, and this version of the client on the PATH.
pub(crate) fn world(version: &str, model: &ScriptedModel) -> World {
    let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item three\n");
    world.use_model(model);
    world.use_client(version);
    world
}

/// A headless session that prints its result.
pub(crate) fn session(world: &World, prompt: &str, more: &[&str]) -> Launch {
    let usual = ["-p", prompt, "--output-format", "json", "--model", MODEL, "--session-id", ID];
    world.claude(&[&usual[..], more].concat()).timeout(TIMEOUT)
}

/// Sends a subagent; its tool had another name once.
pub(crate) fn agent(request: &Request, brief: &str) -> Step {
    let name = if request.tools().contains(&"Agent") { "Agent" } else { "Task" };
    let asked = json!({
        "subagent_type": "general-purpose", "description": "look", "prompt": brief, "run_in_background": false
    });
    Step::default().tool(name, asked)
}

/// All lines of all transcripts.
pub(crate) fn transcript_lines(world: &World) -> Vec<Value> {
    let texts =
        world.transcripts().into_iter().map(|path| std::fs::read_to_string(path).expect("a transcript"));
    texts
        .flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>())
        .collect()
}

/// What one start of a recorder wrote down.
pub(crate) struct Record {
    /// The recorder's name.
    pub(crate) by: String,
    /// Its arguments.
    pub(crate) arguments: String,
    /// What the client told it.
    pub(crate) payload: Value,
}

impl Record {
    pub(crate) fn event(&self) -> &str {
        self.payload["hook_event_name"].as_str().unwrap_or_default()
    }
}

/// Programs that write down their name, their arguments and their standard input, a file for each start.
pub(crate) struct Recorders<'a> {
    world: &'a World,
}

impl<'a> Recorders<'a> {
    pub(crate) fn new(world: &'a World) -> Recorders<'a> {
        std::fs::create_dir_all(world.home().join("told")).expect("a folder");
        Recorders { world }
    }

    /// A recorder at this path in the home.
    pub(crate) fn program(&self, path: &str) -> String {
        let path = self.world.home().join(path);
        let told = self.world.home().join("told");
        let writes = "{ printf '%s\\n%s\\n' \"${0##*/}\" \"$*\"; cat; }";
        let path =
            self.world.write_program(path, &format!("#!/bin/sh\n{writes} > '{}'/$$\n", told.display()));
        path.display().to_string()
    }

    pub(crate) fn told(&self) -> Vec<Record> {
        let files = std::fs::read_dir(self.world.home().join("told")).expect("a folder");
        files.filter_map(|file| record(file.ok()?.path())).collect()
    }
}

/// A record that was cut short is none.
fn record(path: PathBuf) -> Option<Record> {
    let text = std::fs::read_to_string(path).ok()?;
    let (by, rest) = text.split_once('\n')?;
    let (arguments, payload) = rest.split_once('\n')?;
    let payload = serde_json::from_str(payload).ok()?;
    Some(Record { by: by.to_owned(), arguments: arguments.to_owned(), payload })
}

/// A settings file in which each of these events starts a program.
pub(crate) fn settings(entries: &[(&str, &Value)]) -> String {
    let mut hooks = serde_json::Map::new();
    for (event, entry) in entries {
        let groups = hooks.entry((*event).to_owned()).or_insert_with(|| json!([]));
        groups.as_array_mut().expect("a list").push(json!({ "hooks": [entry] }));
    }
    json!({ "hooks": hooks }).to_string()
}
