//! Sessions with the real client in which every request is checked against the stored memory when it arrives.

use crate::frames::harness::with_register_update;
use crate::memory_in_requests::independent_reader::{RequestReader, normalize_text};
use plimsoll_domain::memory::{Memory, MemoryOp};
use plimsoll_store::{Project, memory};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, Launch, World};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Reported usage at which the client compacts before the next request, because its window is full.
pub(crate) const FULL_WINDOW_TOKENS: u64 = 968_000;

/// A scripted response of the model, and what other writers do while the request waits for it.
#[derive(Clone)]
pub(crate) struct ScriptedResponse {
    concurrent_writes: Vec<Vec<String>>,
    /// Text that the memory must contain before this response is given; until then the model only calls `echo`.
    awaited_text: Option<&'static str>,
    step: Step,
}

impl From<Step> for ScriptedResponse {
    fn from(step: Step) -> ScriptedResponse {
        ScriptedResponse { concurrent_writes: Vec::new(), awaited_text: None, step }
    }
}

impl ScriptedResponse {
    /// Waits until another session has written this text.
    pub(crate) fn after_memory_contains(mut self, text: &'static str) -> ScriptedResponse {
        self.awaited_text = Some(text);
        self
    }

    /// While the request waits, another writer calls `plimsoll memory` with these arguments.
    pub(crate) fn with_concurrent_write(mut self, arguments: &[&str]) -> ScriptedResponse {
        self.concurrent_writes.push(arguments.iter().map(|argument| (*argument).to_owned()).collect());
        self
    }
}

/// A request together with the memory at the time of its arrival.
pub(crate) struct RecordedRequest {
    pub(crate) conversation: String,
    pub(crate) request: Request,
    /// The memory when the request arrived.
    pub(crate) memory: Memory,
    /// Depth of the frame that this conversation works in; `None` once it has returned.
    pub(crate) frame_depth: Option<usize>,
}

#[derive(Default)]
struct RequestWatcher {
    scripts: BTreeMap<String, VecDeque<ScriptedResponse>>,
    recorded: Vec<RecordedRequest>,
    errors: Vec<String>,
    /// Revision of the memory at the last request of each conversation.
    last_revs: BTreeMap<String, u64>,
    /// Set if other sessions write at any time. A request may then show the memory as it was when the last hook ran.
    allows_concurrent_writes: bool,
}

/// A project with the working memory, and a model with a script for each of its conversations.
pub(crate) struct ScriptedSessions {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
    watcher: Arc<Mutex<RequestWatcher>>,
}

impl ScriptedSessions {
    /// `main` is the session; the other scripts belong to frames, by their names.
    pub(crate) fn new(scripts: &[(&str, Vec<ScriptedResponse>)]) -> ScriptedSessions {
        let mut world = World::without_git();
        let watcher = Arc::new(Mutex::new(RequestWatcher::default()));
        let (project, command) = (Project::with_local_files(&world.project()), world.plimsoll(&["memory"]));
        let model = ScriptedModel::start({
            let watcher = Arc::clone(&watcher);
            move |request| watcher.lock().expect("no panic").respond_to(&project, &command, request)
        });
        world.put_client_on_path_with_model_and_settings(&model);
        world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
        let sessions = ScriptedSessions { world, model, watcher };
        sessions.append_scripts(scripts);
        sessions
    }

    /// Allows several sessions at once.
    pub(crate) fn allow_concurrent_writes(&self) {
        self.watcher.lock().expect("no panic").allows_concurrent_writes = true;
    }

    /// Appends responses for existing or new conversations.
    pub(crate) fn append_scripts(&self, scripts: &[(&str, Vec<ScriptedResponse>)]) {
        let mut watcher = self.watcher.lock().expect("no panic");
        for (conversation, responses) in scripts {
            watcher.scripts.entry((*conversation).to_owned()).or_default().extend(responses.iter().cloned());
        }
    }

    pub(crate) fn client_command(&self, prompt: &str, extra_arguments: &[&str]) -> Launch {
        let base_arguments = ["-p", prompt, "--output-format", "json", "--model", "opus"];
        self.world.claude(&[&base_arguments[..], extra_arguments].concat())
    }

    /// Runs a session to its end and asserts that every request so far showed the memory correctly.
    pub(crate) fn run_session(&self, prompt: &str, extra_arguments: &[&str]) -> FinishedProgram {
        let finished = self.client_command(prompt, extra_arguments).run();
        self.assert_requests_correct();
        finished
    }

    /// Asserts that every request so far showed the memory correctly, and that the client cut no text of a hook.
    pub(crate) fn assert_requests_correct(&self) {
        let watcher = self.watcher.lock().expect("the model's script did not panic");
        assert!(watcher.errors.is_empty(), "{}", watcher.errors.join("\n"));
        assert!(!watcher.recorded.is_empty(), "no request came");
    }

    /// Passes the requests of one conversation, oldest first, to a closure; those of all conversations if the name is
    /// empty.
    pub(crate) fn inspect_requests<T>(
        &self,
        conversation: &str,
        inspect: impl FnOnce(&[&RecordedRequest]) -> T,
    ) -> T {
        let watcher = self.watcher.lock().expect("no panic");
        inspect(
            &watcher
                .recorded
                .iter()
                .filter(|recorded| conversation.is_empty() || recorded.conversation == conversation)
                .collect::<Vec<_>>(),
        )
    }

    /// Returns the size of each change between two revisions that a conversation did not make itself but is told:
    /// changes of the heap and of its frame's registers, and frames that returned to it.
    pub(crate) fn foreign_change_sizes(&self, conversation: &str, from_rev: u64, to_rev: u64) -> Vec<usize> {
        let history =
            memory::read_changes(&Project::with_local_files(&self.world.project())).expect("a history");
        let frame_name = if conversation.starts_with("main") { "" } else { conversation };
        let is_own = |change: &&memory::MemoryChange| change.author == "mcp" && change.frame == frame_name;
        let is_child = |name: &str| {
            let is_push = |change: &memory::MemoryChange| matches!(&change.op, MemoryOp::PushFrame { name: pushed_name, .. } if pushed_name == name);
            history.iter().any(|change| change.frame == frame_name && is_push(change))
        };
        let change_size = |change: &memory::MemoryChange| match &change.op {
            MemoryOp::UpdateRegisters { values, .. } if change.frame == frame_name => {
                Some(values.values().map(|text| text.chars().count()).sum())
            }
            MemoryOp::HeapAlloc { content, .. } | MemoryOp::HeapWrite { content, .. } => {
                Some(content.chars().count())
            }
            MemoryOp::HeapFree { .. } => Some(0),
            // A return writes R3, R6 and R7 of the parent (at most 60, 600 and 300 characters) and clears R2.
            MemoryOp::PopFrame { .. } | MemoryOp::CloseFrame { .. } if is_child(&change.frame) => {
                Some(60 + 600 + 300)
            }
            _ => None,
        };
        let is_pop = |change: &memory::MemoryChange| matches!(change.op, MemoryOp::PopFrame { .. });
        let changes_between = history.iter().filter(|change| (from_rev + 1..=to_rev).contains(&change.rev));
        changes_between.filter(|change| is_pop(change) || !is_own(change)).filter_map(change_size).collect()
    }

    /// Writes to the memory as another writer.
    pub(crate) fn write_as_other(&self, arguments: &[&str]) {
        self.world.plimsoll(&[&["memory"], arguments].concat()).run().expect_success();
    }

    pub(crate) fn memory(&self) -> Memory {
        memory::load_memory(&Project::with_local_files(&self.world.project())).expect("a memory")
    }
}

impl RequestWatcher {
    fn respond_to(&mut self, project: &Project, command: &Launch, request: &Request) -> Step {
        let conversation = conversation_of(request);
        let current_memory = memory::load_memory(project).expect("a memory");
        let depth = self.check_request(project, request, &conversation, &current_memory);
        self.last_revs.insert(conversation.clone(), current_memory.revision);
        let memory_json = json!(current_memory).to_string();
        self.recorded.push(RecordedRequest {
            conversation: conversation.clone(),
            request: request.clone(),
            memory: current_memory,
            frame_depth: depth,
        });
        let responses = self.scripts.entry(conversation.clone()).or_default();
        if responses.front().and_then(|act| act.awaited_text).is_some_and(|text| !memory_json.contains(text))
        {
            return echo_response().step.with_delay(Duration::from_millis(100));
        }
        let Some(response) = responses.pop_front() else {
            return Step::from_text(format!("[no act is left for {conversation}]"));
        };
        for arguments in &response.concurrent_writes {
            let finished = arguments.iter().fold(command.clone(), |command, word| command.arg(word)).run();
            if finished.code != Some(0) {
                self.errors.push(format!("memory {arguments:?}: {finished:?}"));
            }
        }
        response.step
    }

    /// Checks the promise: the request shows the memory as it is now or, if other sessions write, as it was at a
    /// revision since the conversation's last request. Returns the depth of the conversation's frame.
    fn check_request(
        &mut self,
        project: &Project,
        request: &Request,
        conversation: &str,
        current_memory: &Memory,
    ) -> Option<usize> {
        if request.full_text().contains("<persisted-output>") {
            self.errors
                .push(format!("request {} of {conversation}: the client shows a preview", request.number));
        }
        // The model would not see its own writes if the API were asked to clear the calls that made them.
        if request.body["context_management"].to_string().contains("clear_tool") {
            self.errors.push(format!("request {} of {conversation}: its calls are cleared", request.number));
        }
        if conversation == "another" {
            self.errors.push(format!("request {}: a subagent without its task", request.number));
        }
        let depth = frame_depth_of(current_memory, conversation)?;
        let reader = RequestReader::from_request(request, depth);
        let errors = reader.find_differences(current_memory, depth);
        let last_rev = self.last_revs.get(conversation).copied().unwrap_or_default();
        // Another session may have written between the last hook and this request.
        let matches_earlier_revision = || {
            (last_rev..current_memory.revision).any(|rev| {
                let earlier_memory = memory_at_revision(project, rev);
                frame_depth_of(&earlier_memory, conversation)
                    .is_some_and(|depth| reader.find_differences(&earlier_memory, depth).is_empty())
            })
        };
        let is_correct = errors.is_empty() || (self.allows_concurrent_writes && matches_earlier_revision());
        if !is_correct {
            self.errors.push(format!(
                "request {} of {conversation} at r{}:\n  {}",
                request.number,
                current_memory.revision,
                errors.join("\n  ")
            ));
        }
        Some(depth)
    }
}

fn memory_at_revision(project: &Project, rev: u64) -> Memory {
    let changes = memory::read_changes(project).expect("a history");
    let ops: Vec<&MemoryOp> =
        changes.iter().filter(|change| change.rev <= rev).map(|change| &change.op).collect();
    Memory::replay(ops)
}

/// Returns the depth of a conversation's frame; a session works in the root frame.
fn frame_depth_of(memory: &Memory, conversation: &str) -> Option<usize> {
    if conversation.starts_with("main") {
        return Some(0);
    }
    memory.frames.iter().rposition(|frame| normalize_text(&frame.name).replace('"', "'") == conversation)
}

/// Returns the conversation of a request: `main` for a session (`main-b` if its prompt says so), or the name of a
/// frame. That name stands in the frame's brief and, after a compaction, in the task that is repeated to it.
fn conversation_of(request: &Request) -> String {
    if request.kind == RequestKind::Main {
        let is_named = |name: &&str| request.first_message_text().contains(*name);
        return ["main-a", "main-b"].into_iter().find(is_named).unwrap_or("main").to_owned();
    }
    let text = request.full_text();
    let name = text.split_once("You work in the frame \"").and_then(|(_, rest)| rest.split_once('"'));
    name.map_or_else(|| "another".to_owned(), |(name, _)| normalize_text(name))
}

/// A response that updates registers, given as `("R1_PLAN", "…")`.
pub(crate) fn update_registers_response(values: &[(&str, &str)]) -> ScriptedResponse {
    with_register_update(Step::default(), values).into()
}

pub(crate) fn with_heap_alloc(step: Step, name: &str, content: &str) -> Step {
    step.with_tool_call(
        "mcp__plimsoll__heap_alloc",
        json!({"name": name, "content": content, "description": "a chunk"}),
    )
}

pub(crate) fn with_heap_write(step: Step, name: &str, content: &str) -> Step {
    step.with_tool_call("mcp__plimsoll__heap_write", json!({"name": name, "content": content}))
}

pub(crate) fn with_heap_free(step: Step, name: &str) -> Step {
    step.with_tool_call("mcp__plimsoll__heap_free", json!({"name": name}))
}

pub(crate) fn with_frame_push(step: Step, name: &str) -> Step {
    let push_arguments =
        json!({"name": name, "objective": format!("Do {name}."), "context": "C", "return_spec": "R"});
    step.with_tool_call("mcp__plimsoll__push_frame", push_arguments)
}

pub(crate) fn with_frame_start(step: Step, name: &str) -> Step {
    step.with_tool_call("Agent", json!({"subagent_type": "frame", "description": name, "prompt": "p"}))
}

/// A response that pushes a frame and starts it.
pub(crate) fn push_and_start_response(name: &str) -> ScriptedResponse {
    with_frame_start(with_frame_push(Step::default(), name), name).into()
}

pub(crate) fn pop_frame_response(result: &str) -> ScriptedResponse {
    Step::default().with_tool_call("mcp__plimsoll__pop_frame", json!({"result": result})).into()
}

pub(crate) fn final_response() -> ScriptedResponse {
    Step::from_text("done").into()
}

pub(crate) fn echo_response() -> ScriptedResponse {
    Step::bash_call("echo looked").into()
}
