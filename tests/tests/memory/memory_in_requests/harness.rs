//! A session with the real client in which every request is read when it arrives, and held against the store.

use crate::frames::harness::registers;
use crate::memory_in_requests::independent_reader::{Mind, plain};
use plimsoll_domain::memory::{Memory, MemoryOp};
use plimsoll_store::{Project, memory};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, Launch, World};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the client reports of a window that is full: it compacts before the next request.
pub(crate) const FULL: u64 = 968_000;

/// What happens while a request waits for its answer, and the answer.
#[derive(Clone)]
pub(crate) struct Act {
    foreign: Vec<Vec<String>>,
    /// What must be in the memory before this is played; until then the conversation looks about.
    awaited: Option<&'static str>,
    step: Step,
}

impl From<Step> for Act {
    fn from(step: Step) -> Act {
        Act { foreign: Vec::new(), awaited: None, step }
    }
}

impl Act {
    /// Not before another session has written this.
    pub(crate) fn once_told(mut self, words: &'static str) -> Act {
        self.awaited = Some(words);
        self
    }

    /// Meanwhile another writer calls `plimsoll memory` with these words.
    pub(crate) fn meanwhile(mut self, words: &[&str]) -> Act {
        self.foreign.push(words.iter().map(|word| (*word).to_owned()).collect());
        self
    }
}

/// A request as it was read when it came.
pub(crate) struct Seen {
    pub(crate) who: String,
    pub(crate) request: Request,
    /// The memory at that moment.
    pub(crate) memory: Memory,
    /// The depth of the frame that this conversation works in; none once it has returned.
    pub(crate) depth: Option<usize>,
}

#[derive(Default)]
struct Watch {
    parts: BTreeMap<String, VecDeque<Act>>,
    seen: Vec<Seen>,
    errors: Vec<String>,
    /// For each conversation the revision at the time of its last request.
    last: BTreeMap<String, u64>,
    /// Other sessions write whenever they like: then a request may tell what was so when the last hook ran.
    is_shared: bool,
}

/// A project with the working memory in it, and a model whose conversations each have their script.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
    watch: Arc<Mutex<Watch>>,
}

impl Stage {
    /// `main` is the session; the others are frames by their names.
    pub(crate) fn new(parts: &[(&str, Vec<Act>)]) -> Stage {
        let mut world = World::without_git();
        let watch = Arc::new(Mutex::new(Watch::default()));
        let (project, command) = (Project::with_local_files(&world.project()), world.plimsoll(&["memory"]));
        let model = ScriptedModel::start({
            let watch = Arc::clone(&watch);
            move |request| watch.lock().expect("no panic").take(&project, &command, request)
        });
        world.use_model(&model);
        world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
        let stage = Stage { world, model, watch };
        stage.then(parts);
        stage
    }

    /// Several sessions play at once.
    pub(crate) fn share(&self) {
        self.watch.lock().expect("no panic").is_shared = true;
    }

    /// More for the same conversations, or for new ones.
    pub(crate) fn then(&self, parts: &[(&str, Vec<Act>)]) {
        let mut watch = self.watch.lock().expect("no panic");
        for (name, acts) in parts {
            watch.parts.entry((*name).to_owned()).or_default().extend(acts.iter().cloned());
        }
    }

    pub(crate) fn client(&self, prompt: &str, more: &[&str]) -> Launch {
        let usual = ["-p", prompt, "--output-format", "json", "--model", "opus"];
        self.world.claude(&[&usual[..], more].concat())
    }

    /// Plays a session to its end; every request so far kept the promise.
    pub(crate) fn play(&self, prompt: &str, more: &[&str]) -> Finished {
        let finished = self.client(prompt, more).run();
        self.check();
        finished
    }

    /// Every request so far kept the promise, and nothing that a hook said was cut by the client.
    pub(crate) fn check(&self) {
        let watch = self.watch.lock().expect("the model's script did not panic");
        assert!(watch.errors.is_empty(), "{}", watch.errors.join("\n"));
        assert!(!watch.seen.is_empty(), "no request came");
    }

    /// Looks at the requests of one conversation, oldest first; all of them for an empty name.
    pub(crate) fn seen<T>(&self, who: &str, look: impl FnOnce(&[&Seen]) -> T) -> T {
        let watch = self.watch.lock().expect("no panic");
        look(&watch.seen.iter().filter(|seen| who.is_empty() || seen.who == who).collect::<Vec<_>>())
    }

    /// The size of every change between two revisions that a conversation did not make itself, and hears of: of the heap,
    /// of its frame's registers, and of a frame that has returned to it.
    pub(crate) fn foreign_to(&self, who: &str, from: u64, to: u64) -> Vec<usize> {
        let history =
            memory::read_changes(&Project::with_local_files(&self.world.project())).expect("a history");
        let frame = if who.starts_with("main") { "" } else { who };
        let is_own = |change: &&memory::MemoryChange| change.author == "mcp" && change.frame == frame;
        let is_child = |name: &str| {
            let pushes = |change: &memory::MemoryChange| matches!(&change.op, MemoryOp::PushFrame { name: it, .. } if it == name);
            history.iter().any(|change| change.frame == frame && pushes(change))
        };
        let size = |change: &memory::MemoryChange| match &change.op {
            MemoryOp::UpdateRegisters { values, .. } if change.frame == frame => {
                Some(values.values().map(|text| text.chars().count()).sum())
            }
            MemoryOp::HeapAlloc { content, .. } | MemoryOp::HeapWrite { content, .. } => {
                Some(content.chars().count())
            }
            MemoryOp::HeapFree { .. } => Some(0),
            // R3, R6 and R7 of whoever had pushed it; R2 is empty then.
            MemoryOp::PopFrame { .. } | MemoryOp::CloseFrame { .. } if is_child(&change.frame) => {
                Some(60 + 600 + 300)
            }
            _ => None,
        };
        let is_pop = |change: &memory::MemoryChange| matches!(change.op, MemoryOp::PopFrame { .. });
        let between = history.iter().filter(|change| (from + 1..=to).contains(&change.rev));
        between.filter(|change| is_pop(change) || !is_own(change)).filter_map(size).collect()
    }

    /// Writes as another writer.
    pub(crate) fn write(&self, words: &[&str]) {
        self.world.plimsoll(&[&["memory"], words].concat()).run().expect_success();
    }

    pub(crate) fn memory(&self) -> Memory {
        memory::load_memory(&Project::with_local_files(&self.world.project())).expect("a memory")
    }
}

impl Watch {
    fn take(&mut self, project: &Project, command: &Launch, request: &Request) -> Step {
        let who = who(request);
        let now = memory::load_memory(project).expect("a memory");
        let depth = self.read(project, request, &who, &now);
        self.last.insert(who.clone(), now.revision);
        let told = json!(now).to_string();
        self.seen.push(Seen { who: who.clone(), request: request.clone(), memory: now, depth });
        let acts = self.parts.entry(who.clone()).or_default();
        if acts.front().and_then(|act| act.awaited).is_some_and(|awaited| !told.contains(awaited)) {
            return look().step.delay(Duration::from_millis(100));
        }
        let Some(act) = acts.pop_front() else {
            return Step::text(format!("[no act is left for {who}]"));
        };
        for words in &act.foreign {
            let done = words.iter().fold(command.clone(), |command, word| command.arg(word)).run();
            if done.code != Some(0) {
                self.errors.push(format!("memory {words:?}: {done:?}"));
            }
        }
        act.step
    }

    /// The promise: the request tells the memory of now, or of a moment after the same conversation's last request.
    fn read(&mut self, project: &Project, request: &Request, who: &str, now: &Memory) -> Option<usize> {
        if request.text().contains("<persisted-output>") {
            self.errors.push(format!("request {} of {who}: the client shows a preview", request.number));
        }
        // What the API is asked to leave out, the model would not see: the calls that are its own words.
        if request.body["context_management"].to_string().contains("clear_tool") {
            self.errors.push(format!("request {} of {who}: its calls are cleared", request.number));
        }
        if who == "another" {
            self.errors.push(format!("request {}: a subagent without its task", request.number));
        }
        let depth = depth_of(now, who)?;
        let mind = Mind::of(request, depth);
        let errors = mind.errors(now, depth);
        let since = self.last.get(who).copied().unwrap_or_default();
        // Between the last hook and this request another session may have written.
        let was_so = || {
            (since..now.revision).any(|rev| {
                let then = as_of(project, rev);
                depth_of(&then, who).is_some_and(|depth| mind.errors(&then, depth).is_empty())
            })
        };
        let is_so = errors.is_empty() || (self.is_shared && was_so());
        if !is_so {
            self.errors.push(format!(
                "request {} of {who} at r{}:\n  {}",
                request.number,
                now.revision,
                errors.join("\n  ")
            ));
        }
        Some(depth)
    }
}

fn as_of(project: &Project, rev: u64) -> Memory {
    let changes = memory::read_changes(project).expect("a history");
    let until: Vec<&MemoryOp> =
        changes.iter().filter(|change| change.rev <= rev).map(|change| &change.op).collect();
    Memory::replay(until)
}

/// The frame of a conversation: a session's is the root.
fn depth_of(memory: &Memory, who: &str) -> Option<usize> {
    if who.starts_with("main") {
        return Some(0);
    }
    memory.frames.iter().rposition(|frame| plain(&frame.name).replace('"', "'") == who)
}

/// Whose request it is: `main` (of a session whose prompt names it so, `main-b`), or the name of a frame, which is in
/// its brief, and after a compaction in the task that it is told again.
fn who(request: &Request) -> String {
    if request.kind == RequestKind::Main {
        let named = |name: &&str| request.first_text().contains(*name);
        return ["main-a", "main-b"].into_iter().find(named).unwrap_or("main").to_owned();
    }
    let text = request.text();
    let name = text.split_once("You work in the frame \"").and_then(|(_, rest)| rest.split_once('"'));
    name.map_or_else(|| "another".to_owned(), |(name, _)| plain(name))
}

/// Writes registers: `("R1_PLAN", "…")`.
pub(crate) fn note(values: &[(&str, &str)]) -> Act {
    registers(Step::default(), values).into()
}

pub(crate) fn alloc(step: Step, name: &str, content: &str) -> Step {
    step.tool(
        "mcp__plimsoll__heap_alloc",
        json!({"name": name, "content": content, "description": "a chunk"}),
    )
}

pub(crate) fn rewrite(step: Step, name: &str, content: &str) -> Step {
    step.tool("mcp__plimsoll__heap_write", json!({"name": name, "content": content}))
}

pub(crate) fn free(step: Step, name: &str) -> Step {
    step.tool("mcp__plimsoll__heap_free", json!({"name": name}))
}

pub(crate) fn push(step: Step, name: &str) -> Step {
    let brief = json!({"name": name, "objective": format!("Do {name}."), "context": "C", "return_spec": "R"});
    step.tool("mcp__plimsoll__push_frame", brief)
}

pub(crate) fn begin(step: Step, name: &str) -> Step {
    step.tool("Agent", json!({"subagent_type": "frame", "description": name, "prompt": "p"}))
}

/// Pushes a frame and starts it.
pub(crate) fn delegate(name: &str) -> Act {
    begin(push(Step::default(), name), name).into()
}

pub(crate) fn pop(result: &str) -> Act {
    Step::default().tool("mcp__plimsoll__pop_frame", json!({"result": result})).into()
}

pub(crate) fn done() -> Act {
    Step::text("done").into()
}

pub(crate) fn look() -> Act {
    Step::bash("echo looked").into()
}
