//! The list of all tools, with their names, descriptions, arguments and functions.

use crate::arguments::{self, Argument, CheckedArguments};
use crate::call::{ToolCall, ToolResult};
use crate::tool_error::ToolError;
use crate::{memory, turns, workspace};
use plimsoll_domain::memory::{
    MAX_CHUNK_NAME_UTF16_UNITS, MAX_CHUNK_UTF16_UNITS, MAX_DESCRIPTION_CHARS, MAX_FRAME_NAME_CHARS, Register,
};
use rmcp::model::{MetaObject, Tool as McpTool, ToolAnnotations};
use serde_json::{Map, Value, json};

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) run: fn(&ToolCall) -> ToolResult,
    title: &'static str,
    pub(crate) description: &'static str,
    effect: ToolEffect,
}

/// The effect of a tool, from which its MCP annotations are derived.
#[derive(Clone, Copy)]
enum ToolEffect {
    ReadsOnly,
    Adds,
    /// Replaces or removes something; a repeated call has no further effect.
    Replaces,
    /// Removes something; a repeated call removes something else.
    Removes,
    /// May have any effect, also outside the project, and may run long.
    Unrestricted,
}

impl ToolEffect {
    fn to_mcp_annotations(self, title: &str) -> ToolAnnotations {
        let (is_read_only, is_destructive, is_idempotent, is_open_world) = match self {
            ToolEffect::ReadsOnly => (true, false, true, false),
            ToolEffect::Adds => (false, false, false, false),
            ToolEffect::Replaces => (false, true, true, false),
            ToolEffect::Removes => (false, true, false, false),
            ToolEffect::Unrestricted => (false, true, false, true),
        };
        ToolAnnotations::with_title(title)
            .read_only(is_read_only)
            .destructive(is_destructive)
            .idempotent(is_idempotent)
            .open_world(is_open_world)
    }
}

impl Tool {
    /// Converts the tool to its entry in the result of `tools/list`.
    pub(crate) fn to_always_loaded_mcp_tool(&self) -> McpTool {
        let mut meta = Map::new();
        // Without this, Claude Code defers the tool and the model has to search for it first.
        meta.insert("anthropic/alwaysLoad".to_owned(), Value::from(true));
        McpTool::new(self.name, self.description, arguments::build_json_schema_of_arguments(&self.arguments))
            .with_title(self.title)
            .with_annotations(self.effect.to_mcp_annotations(self.title))
            .with_meta(MetaObject(meta))
    }

    /// Returns true if a call may run long, so that later calls do not wait for it.
    pub(crate) fn may_run_long(&self) -> bool {
        matches!(self.effect, ToolEffect::Unrestricted)
    }

    pub(crate) fn check_arguments(&self, values: Map<String, Value>) -> Result<CheckedArguments, ToolError> {
        CheckedArguments::check_values_against_arguments(self.name, &self.arguments, values)
    }
}

/// Returns all tools; those for files and commands only if `has_workspace_tools` is true.
pub(crate) fn all_tools(has_workspace_tools: bool) -> Vec<Tool> {
    let mut tools = vec![update_registers_tool()];
    tools.extend(frame_tools());
    tools.extend(heap_tools());
    tools.extend(read_only_tools());
    if has_workspace_tools {
        tools.extend(workspace_tools());
    }
    tools
}

fn update_registers_tool() -> Tool {
    let description = |register| match register {
        Register::Goal => "The objective; rarely changes",
        Register::Plan => "The steps that remain",
        Register::Next => "What you do in this step; written before you act",
        Register::Phase => "A label such as reading, implementing, testing",
        Register::Constraints => "What must hold: requirements, contracts",
        Register::Assumptions => "What you assume and have not verified",
        Register::OpenQuestions => "What you do not know yet; cleared when resolved",
        Register::Status => "The result of the last step",
    };
    let mut arguments: Vec<Argument> = Register::ALL
        .into_iter()
        .map(|register| Argument::register(register, description(register)))
        .collect();
    arguments.push(Argument::flag("strict", "Refuse a value that is too long instead of cutting it"));
    Tool {
        name: "update_registers",
        title: "Update registers",
        description: "Writes registers of the current frame. Give only those that change, in few words; \"\" clears one. Call it in every step, together with the action.",
        arguments,
        run: memory::update_registers,
        effect: ToolEffect::Replaces,
    }
}

/// Maximum lengths of a frame's texts, in characters. A sub-task needs a short brief, and its parent a short result.
const MAX_OBJECTIVE_CHARS: usize = 4_000;
const MAX_CONTEXT_CHARS: usize = 10_000;
const MAX_RETURN_SPEC_CHARS: usize = 2_000;
const MAX_RESULT_CHARS: usize = 10_000;

fn frame_tools() -> [Tool; 2] {
    [
        Tool {
            name: "push_frame",
            title: "Push a frame",
            description: "Starts a sub-task in its own frame; frames nest five deep. The frame sees the registers, the heap and these arguments, but not your conversation. Then start the agent \"frame\" or \"plimsoll:frame\", if there is one: Agent with that subagent_type and the frame's name as description.",
            arguments: vec![
                Argument::text("name", MAX_FRAME_NAME_CHARS, "A short label, one line").required(),
                Argument::text(
                    "objective",
                    MAX_OBJECTIVE_CHARS,
                    "What to produce, in which files, how to verify it; complete on its own",
                )
                .required(),
                Argument::text(
                    "context",
                    MAX_CONTEXT_CHARS,
                    "What it must know that is not on the heap or in registers",
                )
                .required(),
                Argument::text(
                    "return_spec",
                    MAX_RETURN_SPEC_CHARS,
                    "What to report: files, test results, problems; no code",
                )
                .required(),
            ],
            run: memory::push_frame,
            effect: ToolEffect::Adds,
        },
        Tool {
            name: "pop_frame",
            title: "Pop the frame",
            description: "Ends the current frame when its objective is met. In the root frame it means that the whole task is done.",
            arguments: vec![
                Argument::text(
                    "result",
                    MAX_RESULT_CHARS,
                    "All that the parent sees: what was done, found and decided; no code, no long output",
                )
                .required(),
            ],
            run: memory::pop_frame,
            effect: ToolEffect::Removes,
        },
    ]
}

fn heap_tools() -> [Tool; 3] {
    let name_argument =
        || Argument::text("name", MAX_CHUNK_NAME_UTF16_UNITS, "Letters, digits or -_./:").required();
    let content_argument = || {
        Argument::text("content", MAX_CHUNK_UTF16_UNITS, "The content; only what matters later").required()
    };
    [
        Tool {
            name: "heap_alloc",
            title: "Allocate a chunk",
            description: "Adds a named chunk to the heap. Every frame sees it, and it costs tokens, until it is freed.",
            arguments: vec![
                name_argument(),
                content_argument(),
                Argument::text("description", MAX_DESCRIPTION_CHARS, "What it is for, in a few words"),
            ],
            run: memory::heap_alloc,
            effect: ToolEffect::Adds,
        },
        Tool {
            name: "heap_write",
            title: "Rewrite a chunk",
            description: "Replaces the content of a chunk that is stale, incomplete or wrong.",
            arguments: vec![name_argument(), content_argument()],
            run: memory::heap_write,
            effect: ToolEffect::Replaces,
        },
        Tool {
            name: "heap_free",
            title: "Free a chunk",
            description: "Removes a chunk that no later step needs.",
            arguments: vec![name_argument()],
            run: memory::heap_free,
            effect: ToolEffect::Replaces,
        },
    ]
}

fn read_only_tools() -> [Tool; 3] {
    [
        Tool {
            name: "memory_show",
            title: "Show the working memory",
            description: "Returns the current frame, its registers, and the heap with its contents.",
            arguments: Vec::new(),
            run: memory::show_memory,
            effect: ToolEffect::ReadsOnly,
        },
        Tool {
            name: "turns_list",
            title: "List turns",
            description: "Lists the model's last responses in this project, one per line: name, time, outcome, calls.",
            arguments: vec![
                Argument::count("last", turns::MAX_LISTED_TURNS, "How many; 20 if left out"),
                Argument::flag("failures", "Only those that failed"),
                Argument::text("tool", 128, "Only those that called this tool"),
                Argument::text("text", 500, "Only those with this text in messages, calls or results"),
                Argument::text("session", 64, "Only this session: the beginning of its id"),
            ],
            run: turns::record_missing_and_list_turns,
            effect: ToolEffect::ReadsOnly,
        },
        Tool {
            name: "turns_show",
            title: "Show a turn",
            description: "Returns one turn: messages, calls, results.",
            arguments: vec![
                Argument::text("turn", 200, "Its name as turns_list shows it, SESSION:NUMBER").required(),
            ],
            run: turns::record_missing_and_show_turn,
            effect: ToolEffect::ReadsOnly,
        },
    ]
}

fn workspace_tools() -> [Tool; 4] {
    let path_argument = |description| Argument::text("path", 4_096, description);
    [
        Tool {
            name: "read_file",
            title: "Read a file",
            description: "Returns the first 10,000 characters of a text file of the project.",
            arguments: vec![path_argument("Relative to the project's folder").required()],
            run: workspace::read_start_of_text_file,
            effect: ToolEffect::ReadsOnly,
        },
        Tool {
            name: "write_file",
            title: "Write a file",
            description: "Writes a whole file of the project, and creates missing folders.",
            arguments: vec![
                path_argument("Relative to the project's folder").required(),
                Argument::text("content", 1_000_000, "The whole content").required(),
            ],
            run: workspace::write_file,
            effect: ToolEffect::Replaces,
        },
        Tool {
            name: "list_files",
            title: "List a folder",
            description: "Lists a folder of the project: folders end in /, links in @.",
            arguments: vec![path_argument("Relative to the project's folder, which is the default")],
            run: workspace::list_folder_with_types_and_sizes,
            effect: ToolEffect::ReadsOnly,
        },
        Tool {
            name: "run_command",
            title: "Run a command",
            description: "Runs a shell command line in the project's folder, for at most 30 seconds. It is not sandboxed: it can do whatever the user can.",
            arguments: vec![Argument::text("command", 20_000, "For sh -c").required()],
            run: workspace::run_command_in_project_folder,
            effect: ToolEffect::Unrestricted,
        },
    ]
}

/// Returns true if this tool requires `--workspace`. Used for the hint in the error for an unknown tool.
pub(crate) fn is_workspace_tool(tool_name: &str) -> bool {
    workspace_tools().iter().any(|tool| tool.name == tool_name)
}

/// Returns the error result of a call whose arguments are not a JSON object.
pub(crate) fn arguments_not_an_object_result() -> Value {
    json!({"content": [{"type": "text", "text": "the arguments are not a JSON object: give one, with the names that tools/list shows. Nothing was done."}], "isError": true})
}
