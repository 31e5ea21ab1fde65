//! The alternative engine: jq 1.6 through its C library. It is slower, prints compile errors to standard error itself, and has no
//! `input`, because jq-rs offers no way to request the next input.

use super::engine::{CompileError, Engine, FilterOutput, OutputHandler};
use super::inputs::Inputs;
use super::json_values;
use super::program::Program;
use jaq_json::{Val, read};
use jq_rs::JqProgram;
use std::ops::ControlFlow;

const INPUT_DEFINITIONS: &str = "def input: error(\"this engine cannot read on\"); def inputs: input;";

/// A filter that libjq has compiled.
pub(super) struct Libjq {
    program: JqProgram,
}

impl Libjq {
    pub(super) fn compile(program: &Program) -> Result<Libjq, CompileError> {
        let variables: String =
            program.variables.iter().map(|(name, json)| format!("{json} as ${name} | ")).collect();
        let filter = &program.filter;
        let filter_with_definitions = format!("{variables}{INPUT_DEFINITIONS} {filter}");
        // jq-rs loses the outputs before an error, so the error is turned into the last output. The filter is compiled
        // on its own first, because the parentheses could turn an invalid filter into a valid one.
        let error_catching_filter =
            format!("{variables}try ({INPUT_DEFINITIONS} {filter}\n| {{value: .}}) catch {{error: .}}");
        let compile_filter =
            |filter: &str| jq_rs::compile(filter).map_err(|error| CompileError::Filter(error.to_string()));
        compile_filter(&filter_with_definitions)?;
        Ok(Libjq { program: compile_filter(&error_catching_filter)? })
    }

    fn run_on_input(&mut self, input: &str) -> Vec<FilterOutput> {
        // Without a newline at the end, jq would not recognize a number as complete.
        match self.program.run(&format!("{input}\n")) {
            Ok(lines) => lines.lines().map(parse_value_or_error_object).collect(),
            Err(error) => vec![FilterOutput::Error(error.to_string())],
        }
    }
}

impl Engine for Libjq {
    fn run(&mut self, mut inputs: Inputs, null_input: bool, on_output: OutputHandler<'_>) {
        let mut run_on_input =
            |input: String| self.run_on_input(&input).into_iter().try_for_each(&mut *on_output);
        let _: ControlFlow<()> =
            if null_input { run_on_input("null".to_owned()) } else { inputs.try_for_each(run_on_input) };
    }
}

/// Parses one output line: an object with a value or an error.
fn parse_value_or_error_object(line: &str) -> FilterOutput {
    let Ok(Val::Obj(entries)) = read::parse_single(line.as_bytes()) else {
        return FilterOutput::Error(format!("libjq reports {line}"));
    };
    match entries.first() {
        Some((key, value)) if *key == Val::utf8_str("value") => {
            json_values::to_json_if_keys_are_strings(value.clone())
                .map_or_else(|| FilterOutput::from_error_value(value.clone()), FilterOutput::Value)
        }
        Some((_, value)) => FilterOutput::from_error_value(value.clone()),
        None => FilterOutput::Error(format!("libjq reports {line}")),
    }
}
