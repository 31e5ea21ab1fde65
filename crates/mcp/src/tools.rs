//! Every tool: its name, its description, its arguments, and the function that runs it.

use crate::arguments::{self, Argument, Given};
use crate::call::{Answer, Call};
use crate::tool_error::ToolError;
use crate::{memory, turns, workspace};
use plimsoll_domain::memory::{
    MAX_CHUNK_NAME_UTF16_UNITS, MAX_CHUNK_UTF16_UNITS, MAX_DESCRIPTION_CHARS, MAX_FRAME_NAME_CHARS, Register,
};
use rmcp::model::{MetaObject, Tool as Described, ToolAnnotations};
use serde_json::{Map, Value, json};

/// One tool.
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) arguments: Vec<Argument>,
    /// The function that runs it.
    pub(crate) run: fn(&Call) -> Answer,
    title: &'static str,
    pub(crate) about: &'static str,
    hints: Hints,
}

/// What a tool does to the world.
#[derive(Clone, Copy)]
enum Hints {
    /// Nothing.
    Reads,
    /// It adds.
    Adds,
    /// It replaces or removes; the same again changes nothing more.
    Replaces,
    /// It replaces or removes, and again each time.
    Removes,
    /// Anything, anywhere, for as long as it takes.
    Anything,
}

impl Hints {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let (reads, destroys, is_idempotent, is_open) = match self {
            Hints::Reads => (true, false, true, false),
            Hints::Adds => (false, false, false, false),
            Hints::Replaces => (false, true, true, false),
            Hints::Removes => (false, true, false, false),
            Hints::Anything => (false, true, false, true),
        };
        ToolAnnotations::with_title(title)
            .read_only(reads)
            .destructive(destroys)
            .idempotent(is_idempotent)
            .open_world(is_open)
    }
}

impl Tool {
    /// As the client lists it.
    pub(crate) fn described(&self) -> Described {
        let mut meta = Map::new();
        // Otherwise the model would have to search for it first.
        meta.insert("anthropic/alwaysLoad".to_owned(), Value::from(true));
        Described::new(self.name, self.about, arguments::schema(&self.arguments))
            .with_title(self.title)
            .with_annotations(self.hints.annotations(self.title))
            .with_meta(MetaObject(meta))
    }

    /// True for one that may take long: others need not wait for it.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.hints, Hints::Anything)
    }

    /// Does a call; what was given is checked first.
    pub(crate) fn check(&self, given: Map<String, Value>) -> Result<Given, ToolError> {
        Given::check(self.name, &self.arguments, given)
    }
}

/// The tools; with a workspace also those for files and commands.
pub(crate) fn all(with_workspace: bool) -> Vec<Tool> {
    let mut all = vec![update_registers()];
    all.extend(frames());
    all.extend(heap());
    all.extend(reading());
    if with_workspace {
        all.extend(in_workspace());
    }
    all
}

fn update_registers() -> Tool {
    let about = |register| match register {
        Register::Goal => "The objective; rarely changes",
        Register::Plan => "The steps that remain",
        Register::Next => "What you do in this step; written before you act",
        Register::Phase => "A label such as reading, implementing, testing",
        Register::Constraints => "What must hold: requirements, contracts",
        Register::Assumptions => "What you take for true and have not verified",
        Register::OpenQuestions => "What you do not know yet; cleared when resolved",
        Register::Status => "What came of the last step",
    };
    let mut arguments: Vec<Argument> =
        Register::ALL.into_iter().map(|register| Argument::register(register, about(register))).collect();
    arguments.push(Argument::flag("strict", "Refuse a value that is too long, instead of cutting it"));
    Tool {
        name: "update_registers",
        title: "Update registers",
        about: "Writes registers of the present frame. Give only those that change, terse; \"\" clears one. Call it in every step, beside the action.",
        arguments,
        run: memory::update_registers,
        hints: Hints::Replaces,
    }
}

/// A brief that is longer than these is no brief.
const OBJECTIVE: usize = 4_000;
const CONTEXT: usize = 10_000;
const RETURN_SPEC: usize = 2_000;
const RESULT: usize = 10_000;

fn frames() -> [Tool; 2] {
    [
        Tool {
            name: "push_frame",
            title: "Push a frame",
            about: "Begins a sub-task as a frame of its own; frames nest five deep. It sees registers, heap and what you give here, nothing of your conversation. Where there is an agent \"frame\" or \"plimsoll:frame\", start it then: Agent with that subagent_type and the frame's name as description.",
            arguments: vec![
                Argument::text("name", MAX_FRAME_NAME_CHARS, "A short label, one line").required(),
                Argument::text(
                    "objective",
                    OBJECTIVE,
                    "What to produce, in which files, how to verify it; makes sense on its own",
                )
                .required(),
                Argument::text(
                    "context",
                    CONTEXT,
                    "What it must know that is neither on the heap nor in registers",
                )
                .required(),
                Argument::text(
                    "return_spec",
                    RETURN_SPEC,
                    "What to report: files, test results, problems; no code",
                )
                .required(),
            ],
            run: memory::push_frame,
            hints: Hints::Adds,
        },
        Tool {
            name: "pop_frame",
            title: "Pop the frame",
            about: "Ends the present frame once its objective is met. In the root frame it says that the whole task is done.",
            arguments: vec![
                Argument::text(
                    "result",
                    RESULT,
                    "All that the parent will see: what was done, found and decided; no code, no long output",
                )
                .required(),
            ],
            run: memory::pop_frame,
            hints: Hints::Removes,
        },
    ]
}

fn heap() -> [Tool; 3] {
    let name = || Argument::text("name", MAX_CHUNK_NAME_UTF16_UNITS, "Letters, digits or -_./:").required();
    let content =
        || Argument::text("content", MAX_CHUNK_UTF16_UNITS, "What it holds; only what decides").required();
    [
        Tool {
            name: "heap_alloc",
            title: "Allocate a chunk",
            about: "Puts a new named chunk on the heap, where every frame sees it until it is freed; it costs tokens as long.",
            arguments: vec![
                name(),
                content(),
                Argument::text("description", MAX_DESCRIPTION_CHARS, "What it is for, in a few words"),
            ],
            run: memory::heap_alloc,
            hints: Hints::Adds,
        },
        Tool {
            name: "heap_write",
            title: "Rewrite a chunk",
            about: "Replaces the content of a chunk that is stale, incomplete or wrong.",
            arguments: vec![name(), content()],
            run: memory::heap_write,
            hints: Hints::Replaces,
        },
        Tool {
            name: "heap_free",
            title: "Free a chunk",
            about: "Takes a chunk off the heap that no later step needs.",
            arguments: vec![name()],
            run: memory::heap_free,
            hints: Hints::Replaces,
        },
    ]
}

fn reading() -> [Tool; 3] {
    [
        Tool {
            name: "memory_show",
            title: "Show the working memory",
            about: "The present frame, its registers, and the heap with its contents, as they stand now.",
            arguments: Vec::new(),
            run: memory::show,
            hints: Hints::Reads,
        },
        Tool {
            name: "turns_list",
            title: "List turns",
            about: "The last responses of the model in this project, one a line: name, time, outcome, calls.",
            arguments: vec![
                Argument::count("last", turns::MOST, "How many; 20 if left out"),
                Argument::flag("failures", "Only those that failed"),
                Argument::text("tool", 128, "Only those that called this tool"),
                Argument::text("text", 500, "Only those with this text in words, calls or results"),
                Argument::text("session", 64, "Only this session: the beginning of its id"),
            ],
            run: turns::list,
            hints: Hints::Reads,
        },
        Tool {
            name: "turns_show",
            title: "Show a turn",
            about: "One turn: words, calls, results.",
            arguments: vec![
                Argument::text("turn", 200, "Its name as turns_list shows it, SESSION:NUMBER").required(),
            ],
            run: turns::show,
            hints: Hints::Reads,
        },
    ]
}

fn in_workspace() -> [Tool; 4] {
    let path = |about| Argument::text("path", 4_096, about);
    [
        Tool {
            name: "read_file",
            title: "Read a file",
            about: "The first 10,000 characters of a text file of the project.",
            arguments: vec![path("Relative to the project's folder").required()],
            run: workspace::read_file,
            hints: Hints::Reads,
        },
        Tool {
            name: "write_file",
            title: "Write a file",
            about: "Writes a file of the project, whole; makes the folders it needs.",
            arguments: vec![
                path("Relative to the project's folder").required(),
                Argument::text("content", 1_000_000, "All that it will hold").required(),
            ],
            run: workspace::write_file,
            hints: Hints::Replaces,
        },
        Tool {
            name: "list_files",
            title: "List a folder",
            about: "The entries of a folder of the project: folders end in /, links in @.",
            arguments: vec![path("Relative to the project's folder; that folder itself if left out")],
            run: workspace::list_files,
            hints: Hints::Reads,
        },
        Tool {
            name: "run_command",
            title: "Run a command",
            about: "Runs a shell command line in the project's folder, for at most 30 seconds. It is not confined: it can do whatever the user can.",
            arguments: vec![Argument::text("command", 20_000, "For sh -c").required()],
            run: workspace::run_command,
            hints: Hints::Anything,
        },
    ]
}

/// A tool of the workspace, for who asks for one without `--workspace`.
pub(crate) fn is_in_workspace(name: &str) -> bool {
    in_workspace().iter().any(|tool| tool.name == name)
}

/// The arguments of a call that are no object.
pub(crate) fn no_object() -> Value {
    json!({"content": [{"type": "text", "text": "the arguments are not a JSON object: give one, with the names that tools/list shows. Nothing was done."}], "isError": true})
}
