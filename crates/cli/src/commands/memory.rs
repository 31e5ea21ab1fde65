//! `plimsoll memory`: the agent's working memory, for the user.

mod page;

use crate::record_json::memory_json;
use clap::{Args, Subcommand};
use plimsoll_domain::memory::{Closing, Op, Register, Report, Values};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_policy::words::{HIDDEN_MEMORY, MOVED_INTO_PROJECT, SHOW_HIDDEN_MEMORY};
use plimsoll_store::memory::{Change, MemoryError};
use plimsoll_store::{Project, WritableProject, clock, memory, writable_project};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, refused, say, say_error};
use plimsoll_terminal::markdown;
use plimsoll_terminal::standard_input::text_of;
use plimsoll_terminal::value_parsers;
use serde_json::json;
use std::process::ExitCode;

/// What is asked of the memory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MemoryArguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

const EXAMPLES: &str = "Examples:
  plimsoll memory                                  registers and heap
  plimsoll memory set R4 'Keep the public API.'    seen at the agent's next step
  plimsoll memory alloc api-spec - < spec.md       a chunk that every frame sees
  plimsoll memory free api-spec
  plimsoll query --on memory '.frames'             the tasks of all frames
  plimsoll memory history                          who wrote what, and when";

#[derive(Debug, Subcommand)]
enum Verb {
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
    Frame(FrameVerb),
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

/// How to show it.
#[derive(Debug, Default, Args)]
struct ShowArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Does what is asked.
pub(crate) fn memory(arguments: &MemoryArguments) -> ExitCode {
    let project = Project::of_command();
    // A snapshot cannot be written in a read-only project. The commands below then name the long log.
    let _ = memory::fold_whole(&project);
    let op =
        match &arguments.verb {
            None => return show(&project, &ShowArguments::default()),
            Some(Verb::Show(how)) => return show(&project, how),
            Some(Verb::History { last, json }) => return history(&project, *last, *json),
            Some(Verb::Set { register, text }) => text_of(text).map(|text| Op::UpdateRegisters {
                values: Values::from([(*register, text)]),
                // The user sees what does not fit, and shortens it.
                strict: true,
                everywhere: true,
            }),
            Some(Verb::Alloc { name, content, description }) => text_of(content).map(|content| {
                Op::HeapAlloc { name: name.clone(), content, description: description.clone() }
            }),
            Some(Verb::Write { name, content }) => {
                text_of(content).map(|content| Op::HeapWrite { name: name.clone(), content })
            }
            Some(Verb::Free { name }) => Ok(Op::HeapFree { name: name.clone() }),
            Some(Verb::Frame(FrameVerb::Close)) => {
                let words = "the user has closed it".to_owned();
                Ok(Op::CloseFrame { how: Closing::Abandoned, words })
            }
        };
    match op {
        Ok(op) => change(project, &op),
        Err(error) => fail(error),
    }
}

fn change(project: Project, op: &Op) -> ExitCode {
    let WritableProject { project, has_moved } = match writable_project(project) {
        Ok(writable) => writable,
        Err(error) => return refused(&error),
    };
    match with_a_persons_word(&project, op) {
        Ok(report) => {
            say(done(&report));
            if has_moved {
                say(MOVED_INTO_PROJECT);
            }
            ExitCode::SUCCESS
        }
        Err(MemoryError::Refused(refusal)) => fail(refusal),
        Err(MemoryError::Store(error)) => refused(&error),
    }
}

/// The user speaks: a memory whose root is done continues, unless its run is active.
fn with_a_persons_word(project: &Project, op: &Op) -> Result<Report, MemoryError> {
    let is_done = memory::load(project)?.done.is_some();
    if is_done && plimsoll_flows::memory::run_at_work(project)?.is_none() {
        return memory::change(project, "command", &[Op::Reopen, op.clone()]);
    }
    memory::change(project, "command", std::slice::from_ref(op))
}

/// `ok r41`, and what is to be known.
fn done(report: &Report) -> String {
    let notes: String = report.notes.iter().map(|note| format!("\n{note}")).collect();
    format!("ok r{}{notes}", report.rev)
}

fn show(project: &Project, how: &ShowArguments) -> ExitCode {
    if let Some(folder) = memory::hidden_memory(project) {
        say_error(&format!("{HIDDEN_MEMORY} ({})\nhint: {SHOW_HIDDEN_MEMORY}", folder.display()));
    }
    let memory = match memory::load(project) {
        Ok(memory) => memory,
        Err(error) => return refused(&error),
    };
    if how.json {
        console::json(memory_json(&memory));
    } else if memory.is_empty() {
        return say_empty();
    } else {
        markdown::show(&page::page(&memory), how.markdown);
    }
    ExitCode::SUCCESS
}

fn say_empty() -> ExitCode {
    console::nothing_to_show(
        "The working memory is empty: the agent writes it after `plimsoll init --memory`, or in `plimsoll run --memory`.",
    )
}

fn history(project: &Project, last: usize, as_json: bool) -> ExitCode {
    let changes = match memory::history(project) {
        Ok(changes) => changes,
        Err(error) => return refused(&error),
    };
    let newest = &changes[changes.len().saturating_sub(last)..];
    if as_json {
        console::json(json!(newest));
    } else if changes.is_empty() {
        return say_empty();
    } else {
        newest.iter().for_each(|change| say(line(change)));
    }
    ExitCode::SUCCESS
}

fn line(change: &Change) -> String {
    let at = clock::moment(&change.at).map(clock::for_people).unwrap_or_default();
    let what = match &change.change {
        Op::UpdateRegisters { values, .. } => {
            let told = |(register, text): (&Register, &String)| {
                format!("{} = {}", register.key(), clip(&one_line(text), 60))
            };
            values.iter().map(told).collect::<Vec<_>>().join("; ")
        }
        Op::PushFrame { name, objective, .. } => format!("push {name}: {}", clip(&one_line(objective), 60)),
        Op::BeginRun { objective } => format!("a run begins: {}", clip(&one_line(objective), 60)),
        Op::StartFrame { owner, .. } => format!("the frame was started in session {}", owner.session),
        Op::EnterFrame { agent } => format!("subagent {agent} works in the frame"),
        Op::PopFrame { result } => format!("pop: {}", clip(&one_line(result), 60)),
        Op::CloseFrame { how, .. } => format!("frame closed ({how:?})").to_lowercase(),
        Op::HeapAlloc { name, content, .. } => format!("alloc {name} ({} chars)", content.chars().count()),
        Op::HeapWrite { name, content } => format!("write {name} ({} chars)", content.chars().count()),
        Op::HeapFree { name } => format!("free {name}"),
        Op::Step => "step".to_owned(),
        Op::Reopen => "the user has written again".to_owned(),
    };
    let frame = if change.frame.is_empty() { "root" } else { &change.frame };
    format!(
        "r{:<4} {at}  step {:<4} {:<8} {:<12} {what}",
        change.rev,
        change.step,
        change.by,
        clip(frame, 12)
    )
}

#[derive(Debug, Subcommand)]
enum FrameVerb {
    /// End the current frame if no agent will return from it: its status, questions and plan go to its parent
    Close,
}
