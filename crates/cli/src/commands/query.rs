//! `plimsoll query`: runs jq programs on the files that Plimsoll has written.

mod compile_errors;
mod debug_output;
mod document;
mod engine;
mod exit_code;
mod inputs;
mod jaq;
mod json_values;
#[cfg(feature = "libjq")]
mod libjq;
mod printer;
mod program;

use clap::Args;
use document::Document;
use engine::{CompileError, Engine, FilterOutput};
use exit_code::{EXIT_COMPILE_ERROR, EXIT_USAGE_OR_INPUT_ERROR, OutputSummary};
use inputs::Inputs;
use plimsoll_store::Project;
use plimsoll_terminal::console::{fail_with, print_error};
use printer::{Printer, Style};
use program::Program;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Arguments of `plimsoll query`.
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
    /// Exit with 1 if the last answer was false or null, 4 if none
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

/// Runs the jq program on the document and prints its answers. The exit codes are those of jq.
pub(crate) fn run_query(arguments: &QueryArguments) -> ExitCode {
    let program = match Program::from_arguments(&arguments.filter, &arguments.arg, &arguments.argjson) {
        Ok(program) => program,
        Err(error) => return fail_with(error, EXIT_USAGE_OR_INPUT_ERROR),
    };
    let mut engine = match compile(arguments, &program) {
        Ok(engine) => engine,
        Err(error) => return fail_with(format!("the filter does not compile: {error}"), EXIT_COMPILE_ERROR),
    };
    let inputs = match arguments.on.open_as_inputs(&Project::find_upwards_from_current_dir()) {
        Ok(inputs) if arguments.slurp => inputs.into_single_array(),
        Ok(inputs) => inputs,
        // With --null-input a missing document is an error only if the filter reads it.
        Err(error) if arguments.null_input => {
            Inputs::for_missing_document_reported_on_read(format!("{error}\nhint: {}", error.hint()))
        }
        Err(error) => {
            return fail_with(format!("{error}\nhint: {}", error.hint()), EXIT_USAGE_OR_INPUT_ERROR);
        }
    };
    debug_output::install_logger();
    ExitCode::from(run_filter_and_print_outputs(engine.as_mut(), inputs, arguments))
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

fn run_filter_and_print_outputs(engine: &mut dyn Engine, inputs: Inputs, arguments: &QueryArguments) -> u8 {
    let progress = inputs.progress();
    let mut summary = OutputSummary::default();
    let mut printer = Printer::new(Style { raw: arguments.raw_output, compact: arguments.compact_output });
    engine.run(inputs, arguments.null_input, &mut |output| {
        summary.record(&output);
        match output {
            FilterOutput::Value(value) => printer.print(&value),
            FilterOutput::Error(message) => {
                print_error(&format!("{}{message}", progress.render_position_prefix()));
                ControlFlow::Continue(())
            }
            FilterOutput::Halt(_) => ControlFlow::Break(()),
        }
    });
    match printer.flush_or_return_earlier_write_error() {
        Ok(()) => summary.exit_code(arguments.exit_status, progress.has_input_error()),
        // A closed output, such as a pipe to `head`, is a normal end.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => 0,
        Err(error) => {
            print_error(&format!("cannot write the answers: {error}"));
            EXIT_USAGE_OR_INPUT_ERROR
        }
    }
}
