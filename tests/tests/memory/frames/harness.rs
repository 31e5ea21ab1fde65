//! A project with the working memory, and a model that knows which conversation it plays.

use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The result of a played session.
pub(crate) struct PlayedSession {
    pub(crate) world: World,
    pub(crate) requests: Vec<Request>,
    pub(crate) finished: FinishedProgram,
}

/// Plays one session. Each conversation has its own steps: `main`, each frame by its name, and any other subagent whose
/// first message begins with that word.
pub(crate) fn play_session(steps_by_conversation: &[(&str, Vec<Step>)]) -> PlayedSession {
    play_prepared_session(steps_by_conversation, |_| {}, &[])
}

/// Plays one session in a project that is prepared first, with more arguments for the client.
pub(crate) fn play_prepared_session(
    steps_by_conversation: &[(&str, Vec<Step>)],
    prepare: impl FnOnce(&mut World),
    arguments: &[&str],
) -> PlayedSession {
    let mut remaining_steps: BTreeMap<String, std::vec::IntoIter<Step>> = steps_by_conversation
        .iter()
        .map(|(name, steps)| ((*name).to_owned(), steps.clone().into_iter()))
        .collect();
    let model = ScriptedModel::start(move |request| {
        let conversation = conversation_of(request);
        let key = remaining_steps
            .keys()
            .find(|name| conversation == **name || conversation.starts_with(&format!("{name} ")))
            .cloned();
        let step = key.and_then(|key| remaining_steps.get_mut(&key)).and_then(Iterator::next);
        step.unwrap_or_else(|| Step::from_text(format!("[no step is left for {conversation}]")))
    });
    let mut world = world_with_memory(&model);
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "1");
    prepare(&mut world);
    let base_arguments = ["-p", "Build the calculator.", "--output-format", "json", "--model", "opus"];
    let finished = world.claude(&[&base_arguments[..], arguments].concat()).run();
    PlayedSession { requests: model.requests(), world, finished }
}

/// Returns a project in which `plimsoll init --memory` was run.
pub(crate) fn world_with_memory(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(model);
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    world
}

/// Returns whose request it is: `main`, the name of a frame, or the first words of another subagent.
pub(crate) fn conversation_of(request: &Request) -> String {
    if request.kind == RequestKind::Main {
        return "main".to_owned();
    }
    let text = request.full_text();
    let frame =
        |text: &str| Some(text.split_once("You work in the frame \"")?.1.split_once('"')?.0.to_owned());
    let prompt_line =
        || request.first_message_text().trim_start().lines().last().unwrap_or_default().to_owned() + " ";
    frame(&text).unwrap_or_else(prompt_line)
}

impl PlayedSession {
    /// Returns the requests of one conversation in order, without those for summaries.
    pub(crate) fn requests_of(&self, name: &str) -> Vec<&Request> {
        let is_turn = |request: &&Request| matches!(request.kind, RequestKind::Main | RequestKind::Subagent);
        self.requests
            .iter()
            .filter(is_turn)
            .filter(|request| conversation_of(request).starts_with(name))
            .collect()
    }

    /// Returns the last request of a conversation.
    pub(crate) fn last_request_of(&self, name: &str) -> &Request {
        self.requests_of(name)
            .last()
            .copied()
            .unwrap_or_else(|| panic!("no request of {name}: {:?}", self.finished))
    }

    pub(crate) fn memory(&self) -> Value {
        self.world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json()
    }

    pub(crate) fn history(&self) -> Vec<Value> {
        let arguments = ["memory", "history", "--json", "-n", "1000"];
        let history = self.world.plimsoll(&arguments).run().expect_success().stdout_json();
        history.as_array().expect("a list").clone()
    }

    /// Returns the results of the tools that a conversation has received, oldest first.
    pub(crate) fn tool_results_of(&self, name: &str) -> Vec<String> {
        self.last_request_of(name).all_tool_results().into_iter().map(|(_, text)| text).collect()
    }
}

/// Adds a call that writes registers: `("R1_PLAN", "…")`.
pub(crate) fn with_register_update(step: Step, values: &[(&str, &str)]) -> Step {
    let values: serde_json::Map<String, Value> =
        values.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    step.with_tool_call("mcp__plimsoll__update_registers", Value::Object(values))
}

pub(crate) fn register_update_step(values: &[(&str, &str)]) -> Step {
    with_register_update(Step::default(), values)
}

/// Adds a call that pushes a frame, as the example does, but does not start it.
pub(crate) fn with_frame_push(step: Step, name: &str) -> Step {
    let objective = format!("Create {name}.py. Verify: python3 {name}.py");
    let brief = json!({"name": name, "objective": objective, "context": format!("CONTEXT-OF-{name}"),
        "return_spec": "Report: files, results"});
    step.with_tool_call("mcp__plimsoll__push_frame", brief)
}

/// Adds a call that starts a subagent for a frame.
pub(crate) fn with_frame_start(step: Step, name: &str) -> Step {
    let call = json!({"subagent_type": "frame", "description": name, "prompt": format!("PARENTS-PROMPT for {name}")});
    step.with_tool_call("Agent", call)
}

/// Returns a step that pushes a frame and starts it.
pub(crate) fn push_and_start_step(name: &str) -> Step {
    with_frame_start(with_frame_push(Step::default(), name), name)
}

pub(crate) fn pop_frame_step(result: &str) -> Step {
    Step::default().with_tool_call("mcp__plimsoll__pop_frame", json!({"result": result}))
}

pub(crate) fn final_step() -> Step {
    Step::from_text("done")
}
