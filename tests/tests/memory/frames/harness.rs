//! A project with the working memory in it, and a model that knows which conversation it plays.

use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What came of a play.
pub(crate) struct Played {
    pub(crate) world: World,
    pub(crate) requests: Vec<Request>,
    pub(crate) finished: Finished,
}

/// Plays one session: `main` and each frame by its name have their steps; so has any other subagent whose first
/// message begins with that word.
pub(crate) fn play(parts: &[(&str, Vec<Step>)]) -> Played {
    play_with(parts, |_| {}, &[])
}

/// The same in a project that was prepared first, with more arguments for the client.
pub(crate) fn play_with(
    parts: &[(&str, Vec<Step>)],
    prepare: impl FnOnce(&mut World),
    arguments: &[&str],
) -> Played {
    let mut left: BTreeMap<String, std::vec::IntoIter<Step>> =
        parts.iter().map(|(name, steps)| ((*name).to_owned(), steps.clone().into_iter())).collect();
    let model = ScriptedModel::start(move |request| {
        let who = who(request);
        let key = left.keys().find(|name| who == **name || who.starts_with(&format!("{name} "))).cloned();
        let step = key.and_then(|key| left.get_mut(&key)).and_then(Iterator::next);
        step.unwrap_or_else(|| Step::text(format!("[no step is left for {who}]")))
    });
    let mut world = world(&model);
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "1");
    prepare(&mut world);
    let usual = ["-p", "Build the calculator.", "--output-format", "json", "--model", "opus"];
    let finished = world.claude(&[&usual[..], arguments].concat()).run();
    Played { requests: model.requests(), world, finished }
}

/// A project in which `plimsoll init --memory` was called.
pub(crate) fn world(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.use_model(model);
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    world
}

/// Whose request it is: `main`, a frame's name, or the first words of another subagent.
pub(crate) fn who(request: &Request) -> String {
    if request.kind == RequestKind::Main {
        return "main".to_owned();
    }
    let text = request.text();
    let frame =
        |text: &str| Some(text.split_once("You work in the frame \"")?.1.split_once('"')?.0.to_owned());
    let plain = || request.first_text().trim_start().lines().last().unwrap_or_default().to_owned() + " ";
    frame(&text).unwrap_or_else(plain)
}

impl Played {
    /// The requests of one conversation, in order, without summarizers.
    pub(crate) fn of(&self, name: &str) -> Vec<&Request> {
        let is_turn = |request: &&Request| matches!(request.kind, RequestKind::Main | RequestKind::Subagent);
        self.requests.iter().filter(is_turn).filter(|request| who(request).starts_with(name)).collect()
    }

    /// What a conversation was told last.
    pub(crate) fn last_of(&self, name: &str) -> &Request {
        self.of(name).last().copied().unwrap_or_else(|| panic!("no request of {name}: {:?}", self.finished))
    }

    pub(crate) fn memory(&self) -> Value {
        self.world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json()
    }

    pub(crate) fn history(&self) -> Vec<Value> {
        let all = ["memory", "history", "--json", "-n", "1000"];
        let history = self.world.plimsoll(&all).run().expect_success().json();
        history.as_array().expect("a list").clone()
    }

    /// The answers of the tools that a conversation has seen, oldest first.
    pub(crate) fn answers(&self, name: &str) -> Vec<String> {
        self.last_of(name).tool_results().into_iter().map(|(_, text)| text).collect()
    }
}

/// Writes registers: `("R1_PLAN", "…")`.
pub(crate) fn registers(step: Step, values: &[(&str, &str)]) -> Step {
    let values: serde_json::Map<String, Value> =
        values.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    step.tool("mcp__plimsoll__update_registers", Value::Object(values))
}

pub(crate) fn note(values: &[(&str, &str)]) -> Step {
    registers(Step::default(), values)
}

/// Pushes a frame, as the example does, and does not start it.
pub(crate) fn push(step: Step, name: &str) -> Step {
    let objective = format!("Create {name}.py. Verify: python3 {name}.py");
    let brief = json!({"name": name, "objective": objective, "context": format!("CONTEXT-OF-{name}"),
        "return_spec": "Report: files, results"});
    step.tool("mcp__plimsoll__push_frame", brief)
}

/// Starts a subagent for a frame.
pub(crate) fn begin(step: Step, name: &str) -> Step {
    let call = json!({"subagent_type": "frame", "description": name, "prompt": format!("PARENTS-PROMPT for {name}")});
    step.tool("Agent", call)
}

/// Pushes a frame and starts it.
pub(crate) fn delegate(name: &str) -> Step {
    begin(push(Step::default(), name), name)
}

pub(crate) fn pop(result: &str) -> Step {
    Step::default().tool("mcp__plimsoll__pop_frame", json!({"result": result}))
}

pub(crate) fn done() -> Step {
    Step::text("done")
}
