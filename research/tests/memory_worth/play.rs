//! The same task, played by the scripted model in several ways of working.

use crate::figures::Figures;
use crate::task::{self, Call, FACTS, PHASES, Size, found_in, read};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// One session, and nothing of ours installed.
    Plain,
    /// The same, but what it needs and no longer sees it reads again.
    Rereads,
    /// The same, but it appends what it finds to a notes file, and reads that when it no longer sees what it needs.
    NotesFile,
    /// One session with `plimsoll init --memory`: registers at each step, facts on the heap.
    Memory,
    /// The same, with each phase in a frame.
    Frames,
}

/// How much the client lets a conversation grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    /// A million tokens: nothing compacts.
    Large,
    /// The smallest that the client lets one choose: 100,000 tokens.
    Small,
}

/// The worst summary there can be: it tells nothing that was found.
const FORGETFUL: &str =
    "<summary>The task has six phases; some of them are done. Go on with the next.</summary>";

/// A step, and what its author must know by then.
type Part = (Step, Vec<&'static str>);

/// The steps of each conversation, and what came of the needs.
#[derive(Default)]
struct Script {
    parts: BTreeMap<String, VecDeque<Part>>,
    /// Where each fact can be read, for an agent that does so.
    lookup: BTreeMap<&'static str, PathBuf>,
    has_looked: bool,
    at_hand: (usize, usize),
}

impl Script {
    fn answer(&mut self, request: &Request) -> Step {
        let (who, text) = (who(request), request.text());
        let parts = self.parts.get_mut(&who).unwrap_or_else(|| panic!("{who} has no part"));
        let (step, needs) = parts.pop_front().unwrap_or_else(|| panic!("no step is left for {who}"));
        let missing: Vec<_> = needs.iter().filter(|fact| !text.contains(**fact)).collect();
        let reads: BTreeSet<&PathBuf> = missing.iter().filter_map(|fact| self.lookup.get(**fact)).collect();
        if !reads.is_empty() && !self.has_looked {
            let all = reads.into_iter().fold(Step::default(), |all, path| read(all, path));
            parts.push_front((step, needs));
            self.has_looked = true;
            return all;
        }
        self.has_looked = false;
        self.at_hand.0 += needs.len() - missing.len();
        self.at_hand.1 += needs.len();
        step
    }
}

/// Plays the task once, and counts.
pub(crate) fn play(size: Size, window: Window, way: Way) -> Figures {
    // The script needs the paths of the world, and the world the address of the script.
    let script = Arc::new(Mutex::new(Script::default()));
    let model = ScriptedModel::start({
        let script = Arc::clone(&script);
        // The client decides by the true size of what it sent.
        move |request| script.lock().expect("no panic").answer(request).auto_usage()
    })
    .compaction_answer(Step::text(FORGETFUL).auto_usage());
    let has_memory = matches!(way, Way::Memory | Way::Frames);
    let mut world = if has_memory { World::new() } else { World::new().without_plimsoll() };
    world.use_model(&model);
    if has_memory {
        world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    }
    if window == Window::Small {
        world.set_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    }
    task::write_files(&world, size);
    let lookup = match way {
        Way::Rereads => task::places(&world, size),
        Way::NotesFile => FACTS.iter().map(|fact| (*fact, world.path(NOTES))).collect(),
        Way::Plain | Way::Memory | Way::Frames => BTreeMap::new(),
    };
    *script.lock().expect("no panic") =
        Script { parts: parts(&world, size, way), lookup, ..Script::default() };
    let prompt = "Work through the six phases: read each folder, keep what it tells, write its result.";
    let client = ["-p", prompt, "--output-format", "json", "--model", "opus", "--allowedTools"];
    let tools = ["Read", "Bash", "Write"];
    let finished = world.claude(&[&client[..], &tools].concat()).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.result()["result"], END, "{way:?}: {}", finished.stderr);
    assert!((0..PHASES).all(|phase| world.exists(format!("result-{phase}.txt"))), "{way:?}: work is missing");
    let script = script.lock().expect("no panic");
    assert!(script.parts.values().all(VecDeque::is_empty), "{way:?}: the whole script was played");
    Figures::of(&model.requests(), script.at_hand)
}

const NOTES: &str = "notes.md";
const END: &str = "All six phases are done.";

/// Whose request it is: `main`, or a frame's name.
pub(crate) fn who(request: &Request) -> String {
    let text = request.text();
    let frame = || Some(text.split_once("You work in the frame \"")?.1.split_once('"')?.0.to_owned());
    let is_main = request.kind == RequestKind::Main;
    if is_main { None } else { frame() }.unwrap_or_else(|| "main".to_owned())
}

fn parts(world: &World, size: Size, way: Way) -> BTreeMap<String, VecDeque<Part>> {
    let mut all: BTreeMap<String, VecDeque<Part>> = BTreeMap::new();
    for phase in 0..PHASES {
        let calls = task::calls(world, phase, size);
        let worker = if way == Way::Frames { name(phase) } else { "main".to_owned() };
        if way == Way::Frames {
            all.entry("main".to_owned()).or_default().push_back((delegate(phase), Vec::new()));
        }
        let steps = all.entry(worker).or_default();
        match way {
            Way::Plain | Way::Rereads => steps.extend(calls.into_iter().map(|call| (call.step, call.needs))),
            Way::NotesFile => {
                steps.extend(calls.into_iter().map(|call| (call.step, call.needs)));
                let write = format!("cat >> {NOTES} <<'END'\n{}\nEND", found_in(phase).join("\n"));
                // Before the result is written, when all has been read.
                steps.insert(steps.len() - 1, (Step::bash(write), Vec::new()));
            }
            Way::Memory => steps.extend(remembered(phase, calls)),
            Way::Frames => {
                steps.extend(remembered(phase, calls));
                steps.push_back((noted(pop(phase), phase, "the report"), Vec::new()));
                steps.push_back((Step::text("done"), Vec::new()));
            }
        }
    }
    all.entry("main".to_owned()).or_default().push_back((Step::text(END), Vec::new()));
    all
}

fn name(phase: usize) -> String {
    format!("phase-{phase}")
}

/// The calls of a phase by the rules of the memory: registers with every step, and what later phases need on the
/// heap, which is a step of its own.
fn remembered(phase: usize, calls: Vec<Call>) -> Vec<Part> {
    let content = found_in(phase).join("\n");
    let alloc =
        json!({ "name": format!("facts-{phase}"), "content": content, "description": "what it told" });
    let alloc = Step::default().tool("mcp__plimsoll__heap_alloc", alloc);
    let mut steps: Vec<Part> =
        calls.into_iter().map(|call| (noted(call.step, phase, &call.about), call.needs)).collect();
    // Before the result is written, when all has been read.
    steps.insert(steps.len() - 1, (noted(alloc, phase, "kept the facts"), Vec::new()));
    steps
}

/// The same step with the registers written alongside.
fn noted(step: Step, phase: usize, about: &str) -> Step {
    let mut values = Map::new();
    let mut set = |register: &str, text: String| values.insert(register.to_owned(), Value::String(text));
    set("R2_NEXT", format!("phase {phase}: the step after \"{about}\""));
    set("R7_STATUS", format!("phase {phase}: {about}; no problem so far"));
    step.tool("mcp__plimsoll__update_registers", Value::Object(values))
}

/// Pushes a frame for a phase and starts its subagent.
fn delegate(phase: usize) -> Step {
    let name = name(phase);
    let push = json!({
        "name": name,
        "objective": format!("Read all files of phase-{phase}/, put on the heap what later phases must know, write \
            result-{phase}.txt. Verify: the file exists."),
        "context": "Earlier phases have put what they found on the heap.",
        "return_spec": "Files read and written; what is open.",
    });
    let agent = json!({ "subagent_type": "frame", "description": name, "prompt": "Work in the frame." });
    noted(Step::default(), phase, "pushed its frame")
        .tool("mcp__plimsoll__push_frame", push)
        .tool("Agent", agent)
}

fn pop(phase: usize) -> Step {
    let result = format!(
        "Read all files of phase-{phase}/; wrote result-{phase}.txt; the facts are on the heap as \
        facts-{phase}. Nothing is open."
    );
    Step::default().tool("mcp__plimsoll__pop_frame", json!({ "result": result }))
}
