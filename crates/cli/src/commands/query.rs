//! `plimsoll query`: jq programs over what Plimsoll has written.

mod aside;
mod complaint;
mod document;
mod engine;
mod inputs;
mod jaq;
#[cfg(feature = "libjq")]
mod libjq;
mod plain;
mod printer;
mod program;
mod tally;

use clap::Args;
use document::Document;
use engine::{Answer, CompileError, Engine};
use inputs::Inputs;
use plimsoll_store::Project;
use plimsoll_terminal::console::{fail_with, say_error};
use printer::{Printer, Style};
use program::Program;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::process::ExitCode;
use tally::{NOT_COMPILED, Tally, UNUSABLE};

/// What is asked, of which document, and how the answers are printed.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct QueryArguments {
    /// The jq program
    filter: String,
    /// The document to query
    #[arg(long, value_enum, value_name = "DOCUMENT", default_value_t = Document::State, hide_possible_values = true)]
    on: Document,
    /// Print strings as they are, without quotes
    #[arg(short, long)]
    raw_output: bool,
    /// Print each answer on one line
    #[arg(short, long)]
    compact_output: bool,
    /// Give the filter all values at once, as one array
    #[arg(short, long)]
    slurp: bool,
    /// Give the filter null; `input` and `inputs` read the document
    #[arg(short, long)]
    null_input: bool,
    /// Exit with 1 if the last answer was false or null, with 4 if there was none
    #[arg(short, long)]
    exit_status: bool,
    /// $NAME is this text (any number of times)
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true)]
    arg: Vec<String>,
    /// $NAME is this JSON value (any number of times)
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"], allow_hyphen_values = true)]
    argjson: Vec<String>,
    /// What runs the filter
    #[cfg(feature = "libjq")]
    #[arg(long, value_enum, default_value_t = engine::Choice::Jaq, hide = true)]
    engine: engine::Choice,
}

const AFTER_HELP: &str = "\
Documents:
  state    the run's state, .claude/ralph-state.json
  journal  every decision with its numbers, one value after another (-s: one array)
  turns    every turn of the sessions, one value after another
  memory   the working memory: frames with their registers, heap

Examples:
  plimsoll query -r '.todo_items[]'
  plimsoll query -r '.context_history[] | [.iteration, .peak_percent] | @tsv'
  plimsoll query --on journal -c 'select(.event == \"checkpoint\") | .percent'
  plimsoll query --on journal \\
    -s 'group_by(.event) | map({(.[0].event): length}) | add'
  plimsoll query -e '.status == \"completed\"' >/dev/null && echo done

Exit codes:
  0  answered
  1  with -e: the last answer was false or null
  2  wrong usage, no such document, or something in it is not JSON
  3  the filter does not compile
  4  with -e: there was no answer
  5  an error in the filter; the values after it were still processed";

/// Answers; the exit codes are jq's.
pub(crate) fn query(arguments: &QueryArguments) -> ExitCode {
    let program = match Program::read(&arguments.filter, &arguments.arg, &arguments.argjson) {
        Ok(program) => program,
        Err(error) => return fail_with(error, UNUSABLE),
    };
    let mut engine = match compile(arguments, &program) {
        Ok(engine) => engine,
        Err(error) => return fail_with(format!("the filter does not compile: {error}"), NOT_COMPILED),
    };
    let inputs = match arguments.on.open(&Project::of_command()) {
        Ok(inputs) if arguments.slurp => inputs.slurped(),
        Ok(inputs) => inputs,
        // Nothing may ever be asked of the document.
        Err(error) if arguments.null_input => Inputs::missing(format!("{error}\nhint: {}", error.hint())),
        Err(error) => return fail_with(format!("{error}\nhint: {}", error.hint()), UNUSABLE),
    };
    aside::listen();
    ExitCode::from(ask(engine.as_mut(), inputs, arguments))
}

#[cfg(not(feature = "libjq"))]
fn compile(_: &QueryArguments, program: &Program) -> Result<Box<dyn Engine>, CompileError> {
    Ok(Box::new(jaq::Jaq::compile(program)?))
}

#[cfg(feature = "libjq")]
fn compile(arguments: &QueryArguments, program: &Program) -> Result<Box<dyn Engine>, CompileError> {
    Ok(match arguments.engine {
        engine::Choice::Jaq => Box::new(jaq::Jaq::compile(program)?),
        engine::Choice::Libjq => Box::new(libjq::Libjq::compile(program)?),
    })
}

fn ask(engine: &mut dyn Engine, inputs: Inputs, arguments: &QueryArguments) -> u8 {
    let progress = inputs.progress();
    let mut tally = Tally::default();
    let mut printer = Printer::new(Style { raw: arguments.raw_output, compact: arguments.compact_output });
    engine.run(inputs, arguments.null_input, &mut |answer| {
        tally.count(&answer);
        match answer {
            Answer::Value(value) => printer.print(&value),
            Answer::Error(words) => {
                say_error(&format!("error{}: {words}", progress.place()));
                ControlFlow::Continue(())
            }
            Answer::Halt(_) => ControlFlow::Break(()),
        }
    });
    match printer.finish() {
        Ok(()) => tally.exit_code(arguments.exit_status, progress.is_faulty()),
        // A reader that has gone away is a normal end.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => 0,
        Err(error) => {
            say_error(&format!("cannot write the answers: {error}"));
            UNUSABLE
        }
    }
}
