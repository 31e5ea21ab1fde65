//! `plimsoll memory`: the agent's working memory, for the user.

mod page;

use crate::record_json::memory_json;
use clap::{Args, Subcommand};
use plimsoll_domain::memory::{AbnormalEnd, ChangeReport, MemoryOp, Register, RegisterValues};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_policy::messages::{HIDDEN_MEMORY_FIX, HIDDEN_MEMORY_WARNING, MOVED_INTO_PROJECT_NOTICE};
use plimsoll_store::memory::{MemoryChange, MemoryError};
use plimsoll_store::{Project, WritableProject, clock, copy_data_folder_into_project_if_unwritable, memory};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with_store_error, print_text, print_warning};
use plimsoll_terminal::markdown;
use plimsoll_terminal::standard_input::text_or_stdin_if_dash;
use plimsoll_terminal::value_parsers;
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `plimsoll memory`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MemoryArguments {
    #[command(subcommand)]
    command: Option<MemoryCommand>,
}

const EXAMPLES: &str = "Examples:
  plimsoll memory                                  registers and heap
  plimsoll memory set R4 'Keep the public API.'    seen at the agent's next step
  plimsoll memory alloc api-spec - < spec.md       a chunk that every frame sees
  plimsoll memory free api-spec
  plimsoll query --on memory '.frames'             the tasks of all frames
  plimsoll memory history                          who wrote what, and when";

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// The registers of the current frame, and the heap with its contents
    Show(ShowArguments),
    /// Write a register
    Set {
        /// R0 … R7, R0_GOAL … R7_STATUS, or goal … status
        #[arg(value_parser = value_parsers::register)]
        register: Register,
        /// The value; `-` reads standard input; an empty one clears it
        text: String,
    },
    /// Put a new chunk on the heap
    Alloc {
        /// Its name
        name: String,
        /// Its content; `-` reads standard input
        content: String,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
    },
    /// Replace a chunk's content
    Write {
        /// Its name
        name: String,
        /// Its new content; `-` reads standard input
        content: String,
    },
    /// Take a chunk off the heap
    Free {
        /// Its name
        name: String,
    },
    /// Close a frame that nobody will return from
    #[command(subcommand)]
    Frame(FrameCommand),
    /// Every change, newest at the end
    History {
        /// The last N of them
        #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = value_parsers::whole_number::<usize>)]
        last: usize,
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `plimsoll memory show`.
#[derive(Debug, Default, Args)]
struct ShowArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Runs the requested memory command. Without a command, shows the memory.
pub(crate) fn run_memory_command(arguments: &MemoryArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    // In a read-only project no snapshot can be saved, so this fails. The commands below then report
    // that the log is too long.
    let _ = memory::replay_log_and_save_snapshot_if_too_long(&project);
    let op = match &arguments.command {
        None => return print_memory(&project, &ShowArguments::default()),
        Some(MemoryCommand::Show(show_arguments)) => return print_memory(&project, show_arguments),
        Some(MemoryCommand::History { last, json }) => return print_history(&project, *last, *json),
        Some(MemoryCommand::Set { register, text }) => {
            text_or_stdin_if_dash(text).map(|text| MemoryOp::UpdateRegisters {
                values: RegisterValues::from([(*register, text)]),
                // A text that does not fit is refused, so that the user can shorten it.
                strict: true,
                in_all_frames: true,
            })
        }
        Some(MemoryCommand::Alloc { name, content, description }) => {
            text_or_stdin_if_dash(content).map(|content| MemoryOp::HeapAlloc {
                name: name.clone(),
                content,
                description: description.clone(),
            })
        }
        Some(MemoryCommand::Write { name, content }) => {
            text_or_stdin_if_dash(content).map(|content| MemoryOp::HeapWrite { name: name.clone(), content })
        }
        Some(MemoryCommand::Free { name }) => Ok(MemoryOp::HeapFree { name: name.clone() }),
        Some(MemoryCommand::Frame(FrameCommand::Close)) => {
            let last_message = "the user has closed it".to_owned();
            Ok(MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::Abandoned, last_message })
        }
    };
    match op {
        Ok(op) => apply_and_print_change(project, &op),
        Err(error) => fail(error),
    }
}

fn apply_and_print_change(project: Project, op: &MemoryOp) -> ExitCode {
    let WritableProject { project, was_moved } = match copy_data_folder_into_project_if_unwritable(project) {
        Ok(writable) => writable,
        Err(error) => return fail_with_store_error(&error),
    };
    match reopen_if_done_outside_run_and_apply_change(&project, op) {
        Ok(report) => {
            print_text(render_applied_change(&report));
            if was_moved {
                print_text(MOVED_INTO_PROJECT_NOTICE);
            }
            ExitCode::SUCCESS
        }
        Err(MemoryError::Refused(refusal)) => fail(refusal),
        Err(MemoryError::Store(error)) => fail_with_store_error(&error),
    }
}

/// Applies an operation of the user. A memory whose root frame is done is reopened first, unless its run is active.
fn reopen_if_done_outside_run_and_apply_change(
    project: &Project,
    op: &MemoryOp,
) -> Result<ChangeReport, MemoryError> {
    let is_done = memory::load_memory(project)?.root_result.is_some();
    if is_done && plimsoll_flows::memory::active_run_with_working_memory(project)?.is_none() {
        return memory::apply_changes_atomically(project, "command", &[MemoryOp::Reopen, op.clone()]);
    }
    memory::apply_changes_atomically(project, "command", std::slice::from_ref(op))
}

/// Renders `ok r41` with the notes about the change.
fn render_applied_change(report: &ChangeReport) -> String {
    let notes: String = report.notes.iter().map(|note| format!("\n{note}")).collect();
    format!("ok r{}{notes}", report.rev)
}

fn print_memory(project: &Project, arguments: &ShowArguments) -> ExitCode {
    if let Some(folder) = memory::superseded_memory_folder(project) {
        print_warning(&format!("{HIDDEN_MEMORY_WARNING} ({})\nhint: {HIDDEN_MEMORY_FIX}", folder.display()));
    }
    let memory = match memory::load_memory(project) {
        Ok(memory) => memory,
        Err(error) => return fail_with_store_error(&error),
    };
    if arguments.json {
        console::print_json(memory_json(&memory));
    } else if memory.is_empty() {
        return print_empty_memory();
    } else {
        markdown::print_markdown(&page::render_page(&memory), arguments.markdown);
    }
    ExitCode::SUCCESS
}

fn print_empty_memory() -> ExitCode {
    console::print_nothing_to_show(
        "The working memory is empty: the agent writes it after `plimsoll init --memory`, or in `plimsoll run --memory`.",
    )
}

fn print_history(project: &Project, max_changes: usize, as_json: bool) -> ExitCode {
    let changes = match memory::read_changes(project) {
        Ok(changes) => changes,
        Err(error) => return fail_with_store_error(&error),
    };
    let newest_changes = &changes[changes.len().saturating_sub(max_changes)..];
    if as_json {
        console::print_json(json!(newest_changes));
    } else if changes.is_empty() {
        return print_empty_memory();
    } else {
        newest_changes.iter().for_each(|change| print_text(render_change(change)));
    }
    ExitCode::SUCCESS
}

fn render_change(change: &MemoryChange) -> String {
    let time =
        clock::parse_timestamp(&change.at).map(clock::format_local_time_with_seconds).unwrap_or_default();
    let description = match &change.op {
        MemoryOp::UpdateRegisters { values, .. } => {
            let render_register = |(register, text): (&Register, &String)| {
                format!("{} = {}", register.key(), truncate_end(&to_safe_single_line(text), 60))
            };
            values.iter().map(render_register).collect::<Vec<_>>().join("; ")
        }
        MemoryOp::PushFrame { name, objective, .. } => {
            format!("push {name}: {}", truncate_end(&to_safe_single_line(objective), 60))
        }
        MemoryOp::BeginRun { objective } => {
            format!("a run begins: {}", truncate_end(&to_safe_single_line(objective), 60))
        }
        MemoryOp::StartFrame { owner, .. } => {
            format!("the frame was started in session {}", owner.session_id)
        }
        MemoryOp::EnterFrame { agent } => format!("subagent {agent} works in the frame"),
        MemoryOp::PopFrame { result } => format!("pop: {}", truncate_end(&to_safe_single_line(result), 60)),
        MemoryOp::CloseFrame { abnormal_end, .. } => {
            format!("frame closed ({})", abnormal_end.as_str())
        }
        MemoryOp::HeapAlloc { name, content, .. } => {
            format!("alloc {name} ({} chars)", content.chars().count())
        }
        MemoryOp::HeapWrite { name, content } => format!("write {name} ({} chars)", content.chars().count()),
        MemoryOp::HeapFree { name } => format!("free {name}"),
        MemoryOp::Step => "step".to_owned(),
        MemoryOp::Reopen => "the user has written again".to_owned(),
    };
    let frame = if change.frame.is_empty() { "root" } else { &change.frame };
    format!(
        "r{:<4} {time}  step {:<4} {:<8} {:<12} {description}",
        change.rev,
        change.step,
        change.author,
        truncate_end(frame, 12)
    )
}

#[derive(Debug, Subcommand)]
enum FrameCommand {
    /// End the current frame; its status, questions and plan go to its parent
    Close,
}
