//! The other engine: jq 1.6 itself, through its C library. It is slower, tells what does not compile on standard
//! error by itself, and cannot read on: jq-rs gives it no way to ask for the next input.

use super::engine::{Answer, CompileError, Engine, Take};
use super::inputs::Inputs;
use super::plain;
use super::program::Program;
use jaq_json::{Val, read};
use jq_rs::JqProgram;
use std::ops::ControlFlow;

const NO_READING_ON: &str = "def input: error(\"this engine cannot read on\"); def inputs: input;";

/// A filter that libjq has compiled.
pub(super) struct Libjq {
    program: JqProgram,
}

impl Libjq {
    /// Compiles it.
    pub(super) fn compile(program: &Program) -> Result<Libjq, CompileError> {
        let variables: String =
            program.variables.iter().map(|(name, json)| format!("{json} as ${name} | ")).collect();
        let filter = &program.filter;
        let as_given = format!("{variables}{NO_READING_ON} {filter}");
        // jq-rs loses the answers before an error: the error is made the last answer. Only what is by itself is
        // put between parentheses, else a wrong filter might become a right one.
        let with_errors =
            format!("{variables}try ({NO_READING_ON} {filter}\n| {{value: .}}) catch {{error: .}}");
        let compile =
            |filter: &str| jq_rs::compile(filter).map_err(|error| CompileError::Filter(error.to_string()));
        compile(&as_given)?;
        Ok(Libjq { program: compile(&with_errors)? })
    }

    fn answers(&mut self, input: &str) -> Vec<Answer> {
        // A number needs something behind it to be whole.
        match self.program.run(&format!("{input}\n")) {
            Ok(lines) => lines.lines().map(answer).collect(),
            Err(error) => vec![Answer::Error(error.to_string())],
        }
    }
}

impl Engine for Libjq {
    fn run(&mut self, mut inputs: Inputs, null_input: bool, take: Take<'_>) {
        let mut ask = |input: String| self.answers(&input).into_iter().try_for_each(&mut *take);
        let _: ControlFlow<()> = if null_input { ask("null".to_owned()) } else { inputs.try_for_each(ask) };
    }
}

/// One line: an object with a value or an error in it.
fn answer(line: &str) -> Answer {
    let Ok(Val::Obj(entries)) = read::parse_single(line.as_bytes()) else {
        return Answer::Error(format!("libjq said {line}"));
    };
    match entries.first() {
        Some((key, value)) if *key == Val::utf8_str("value") => {
            plain::json(value.clone()).map_or_else(|| Answer::of_error(value.clone()), Answer::Value)
        }
        Some((_, value)) => Answer::of_error(value.clone()),
        None => Answer::Error(format!("libjq said {line}")),
    }
}
