//! Plays the same task with the scripted model in several ways of working.

use crate::figures::PlayFigures;
use crate::task::{self, FACTS, PHASES, TaskCall, TaskSize, facts_of_phase, with_file_read};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkMode {
    /// One session without Plimsoll.
    WithoutMemory,
    /// One session without Plimsoll that reads a needed fact again if it is no longer visible.
    RereadsFiles,
    /// One session without Plimsoll that appends facts to a notes file and reads that if a needed fact is no
    /// longer visible.
    NotesFile,
    /// One session with `plimsoll init --memory`: registers at each step, facts on the heap.
    Memory,
    /// One session with the memory and with each phase in a frame.
    Frames,
}

/// The size to which the client lets a conversation grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    /// A million tokens: no conversation compacts.
    Large,
    /// The smallest window that the client accepts: 100,000 tokens.
    Small,
}

/// The worst possible summary: it contains none of the facts.
const SUMMARY_WITHOUT_FACTS: &str =
    "<summary>The task has six phases; some of them are done. Go on with the next.</summary>";

/// A step and the facts that the agent must know for it.
type ScriptedStep = (Step, Vec<&'static str>);

/// The remaining steps of each conversation, and the count of visible facts.
#[derive(Default)]
struct PlayScript {
    steps_by_conversation: BTreeMap<String, VecDeque<ScriptedStep>>,
    /// The file in which each fact can be looked up, for an agent that does so.
    lookup_files: BTreeMap<&'static str, PathBuf>,
    has_looked_up: bool,
    visible_when_needed: (usize, usize),
}

impl PlayScript {
    fn next_step(&mut self, request: &Request) -> Step {
        let (conversation, text) = (conversation_name(request), request.full_text());
        let steps = self
            .steps_by_conversation
            .get_mut(&conversation)
            .unwrap_or_else(|| panic!("{conversation} has no part"));
        let (step, needs) = steps.pop_front().unwrap_or_else(|| panic!("no step is left for {conversation}"));
        let missing_facts: Vec<_> = needs.iter().filter(|fact| !text.contains(**fact)).collect();
        let files_to_read: BTreeSet<&PathBuf> =
            missing_facts.iter().filter_map(|fact| self.lookup_files.get(**fact)).collect();
        if !files_to_read.is_empty() && !self.has_looked_up {
            let read_step =
                files_to_read.into_iter().fold(Step::default(), |all, path| with_file_read(all, path));
            steps.push_front((step, needs));
            self.has_looked_up = true;
            return read_step;
        }
        self.has_looked_up = false;
        self.visible_when_needed.0 += needs.len() - missing_facts.len();
        self.visible_when_needed.1 += needs.len();
        step
    }
}

/// Plays the task once and returns the figures.
pub(crate) fn play_task(size: TaskSize, window: Window, mode: WorkMode) -> PlayFigures {
    // The script needs the paths of the world, and the world needs the address of the model.
    let script = Arc::new(Mutex::new(PlayScript::default()));
    let model = ScriptedModel::start({
        let script = Arc::clone(&script);
        // The client decides about compaction by the true size of its requests.
        move |request| {
            script.lock().expect("no panic").next_step(request).with_input_tokens_from_request_size()
        }
    })
    .with_compaction_step(Step::from_text(SUMMARY_WITHOUT_FACTS).with_input_tokens_from_request_size());
    let has_memory = matches!(mode, WorkMode::Memory | WorkMode::Frames);
    let mut world = if has_memory { World::new() } else { World::new().without_plimsoll_programs() };
    world.put_client_on_path_with_model_and_settings(&model);
    if has_memory {
        world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    }
    if window == Window::Small {
        world.set_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    }
    task::write_files(&world, size);
    let lookup_files = match mode {
        WorkMode::RereadsFiles => task::fact_files(&world, size),
        WorkMode::NotesFile => FACTS.iter().map(|fact| (*fact, world.path(NOTES_FILE))).collect(),
        WorkMode::WithoutMemory | WorkMode::Memory | WorkMode::Frames => BTreeMap::new(),
    };
    *script.lock().expect("no panic") = PlayScript {
        steps_by_conversation: steps_by_conversation(&world, size, mode),
        lookup_files,
        ..PlayScript::default()
    };
    let prompt = "Work through the six phases: read each folder, keep what it tells, write its result.";
    let client_args = ["-p", prompt, "--output-format", "json", "--model", "opus", "--allowedTools"];
    let tools = ["Read", "Bash", "Write"];
    let finished = world.claude(&[&client_args[..], &tools].concat()).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.last_result()["result"], FINAL_TEXT, "{mode:?}: {}", finished.stderr);
    assert!(
        (0..PHASES).all(|phase| world.exists(format!("result-{phase}.txt"))),
        "{mode:?}: work is missing"
    );
    let script = script.lock().expect("no panic");
    assert!(
        script.steps_by_conversation.values().all(VecDeque::is_empty),
        "{mode:?}: the whole script was played"
    );
    PlayFigures::from_requests(&model.requests(), script.visible_when_needed)
}

const NOTES_FILE: &str = "notes.md";
const FINAL_TEXT: &str = "All six phases are done.";

/// Returns the conversation of a request: `main`, or the name of a frame.
pub(crate) fn conversation_name(request: &Request) -> String {
    let text = request.full_text();
    let frame_name = || Some(text.split_once("You work in the frame \"")?.1.split_once('"')?.0.to_owned());
    let is_main = request.kind == RequestKind::Main;
    if is_main { None } else { frame_name() }.unwrap_or_else(|| "main".to_owned())
}

fn steps_by_conversation(
    world: &World,
    size: TaskSize,
    mode: WorkMode,
) -> BTreeMap<String, VecDeque<ScriptedStep>> {
    let mut steps_by_name: BTreeMap<String, VecDeque<ScriptedStep>> = BTreeMap::new();
    for phase in 0..PHASES {
        let calls = task::phase_calls(world, phase, size);
        let conversation = if mode == WorkMode::Frames { frame_name(phase) } else { "main".to_owned() };
        if mode == WorkMode::Frames {
            steps_by_name.entry("main".to_owned()).or_default().push_back((start_frame(phase), Vec::new()));
        }
        let steps = steps_by_name.entry(conversation).or_default();
        match mode {
            WorkMode::WithoutMemory | WorkMode::RereadsFiles => {
                steps.extend(calls.into_iter().map(|call| (call.step, call.needed_facts)))
            }
            WorkMode::NotesFile => {
                steps.extend(calls.into_iter().map(|call| (call.step, call.needed_facts)));
                let append_notes =
                    format!("cat >> {NOTES_FILE} <<'END'\n{}\nEND", facts_of_phase(phase).join("\n"));
                // Before the result is written, when everything has been read.
                steps.insert(steps.len() - 1, (Step::bash_call(append_notes), Vec::new()));
            }
            WorkMode::Memory => steps.extend(steps_with_memory(phase, calls)),
            WorkMode::Frames => {
                steps.extend(steps_with_memory(phase, calls));
                steps.push_back((with_register_update(pop_frame(phase), phase, "the report"), Vec::new()));
                steps.push_back((Step::from_text("done"), Vec::new()));
            }
        }
    }
    steps_by_name.entry("main".to_owned()).or_default().push_back((Step::from_text(FINAL_TEXT), Vec::new()));
    steps_by_name
}

fn frame_name(phase: usize) -> String {
    format!("phase-{phase}")
}

/// Returns the steps of a phase by the rules of the memory: registers with every step, and a separate step
/// that puts the facts for later phases on the heap.
fn steps_with_memory(phase: usize, calls: Vec<TaskCall>) -> Vec<ScriptedStep> {
    let facts = facts_of_phase(phase).join("\n");
    let heap_input =
        json!({ "name": format!("facts-{phase}"), "content": facts, "description": "what it told" });
    let heap_step = Step::default().with_tool_call("mcp__plimsoll__heap_alloc", heap_input);
    let mut steps: Vec<ScriptedStep> = calls
        .into_iter()
        .map(|call| (with_register_update(call.step, phase, &call.description), call.needed_facts))
        .collect();
    // Before the result is written, when everything has been read.
    steps.insert(steps.len() - 1, (with_register_update(heap_step, phase, "kept the facts"), Vec::new()));
    steps
}

/// Adds a call that updates the registers to a step.
fn with_register_update(step: Step, phase: usize, description: &str) -> Step {
    let mut values = Map::new();
    let mut set_register =
        |register: &str, text: String| values.insert(register.to_owned(), Value::String(text));
    set_register("R2_NEXT", format!("phase {phase}: the step after \"{description}\""));
    set_register("R7_STATUS", format!("phase {phase}: {description}; no problem so far"));
    step.with_tool_call("mcp__plimsoll__update_registers", Value::Object(values))
}

/// Returns a step that pushes a frame for a phase and starts its subagent.
fn start_frame(phase: usize) -> Step {
    let name = frame_name(phase);
    let push_input = json!({
        "name": name,
        "objective": format!("Read all files of phase-{phase}/, put on the heap what later phases must know, write \
            result-{phase}.txt. Verify: the file exists."),
        "context": "Earlier phases have put what they found on the heap.",
        "return_spec": "Files read and written; what is open.",
    });
    let agent_input =
        json!({ "subagent_type": "frame", "description": name, "prompt": "Work in the frame." });
    with_register_update(Step::default(), phase, "pushed its frame")
        .with_tool_call("mcp__plimsoll__push_frame", push_input)
        .with_tool_call("Agent", agent_input)
}

fn pop_frame(phase: usize) -> Step {
    let result = format!(
        "Read all files of phase-{phase}/; wrote result-{phase}.txt; the facts are on the heap as \
        facts-{phase}. Nothing is open."
    );
    Step::default().with_tool_call("mcp__plimsoll__pop_frame", json!({ "result": result }))
}
