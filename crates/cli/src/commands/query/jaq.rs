//! The engine in Rust.

use super::complaint::{of_loading, of_names};
use super::engine::{Answer, CompileError, Engine, Take};
use super::inputs::Inputs;
use super::plain;
use super::program::Program;
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::native::{Fun, run};
use jaq_core::{Compiler, Ctx, DataT, Exn, Filter, Lut, ValX, Vars, data};
use jaq_json::{Map, Val, read};
use jaq_std::input::{self, RcIter};
use plimsoll_store::environment;
use std::ops::ControlFlow;

/// Definitions of jq that jaq's libraries leave to the program that uses them.
const DEFINITIONS: &str = r#"
def env: $ENV;
def row(text; $separator):
  map(if . == null then "" elif isstring then text elif . < [] then tojson else error("a row has no lists") end) | join($separator);
def @csv: row("\"" + (split("\"") | join("\"\"")) + "\""; ",");
def @tsv:
  def escape($what; $with): split($what) | join($with);
  row(escape("\\"; "\\\\") | escape("\t"; "\\t") | escape("\n"; "\\n") | escape("\r"; "\\r"); "\t");
"#;

/// A filter that jaq has compiled.
pub(super) struct Jaq {
    filter: Filter<QueryData>,
    variables: Vec<Val>,
}

impl Jaq {
    /// Compiles it, or says where it is wrong.
    pub(super) fn compile(program: &Program) -> Result<Jaq, CompileError> {
        let mut names = vec!["$ENV".to_owned()];
        let mut variables = vec![environment()];
        for (name, json) in &program.variables {
            names.push(format!("${name}"));
            variables.push(value(json).map_err(|why| CompileError::Variable { name: name.clone(), why })?);
        }
        Ok(Jaq { filter: compile(&program.filter, &names)?, variables })
    }
}

impl Engine for Jaq {
    fn run(&mut self, inputs: Inputs, null_input: bool, take: Take<'_>) {
        let inputs = RcIter::new(inputs.map(|text| value(&text).map_err(|error| error.to_string())));
        let inputs: input::Inputs<'_, Val> = &inputs;
        let data = Data { table: &self.filter.lut, inputs };
        let context = Ctx::<QueryData>::new(data, Vars::new(self.variables.iter().cloned()));
        let mut ask = |input| match input {
            Ok(value) => to_first_error(self.filter.id.run((context.clone(), value)).map(answer), take),
            Err(words) => take(Answer::Error(words)),
        };
        // The filter may read on: between two inputs the iterator is not borrowed.
        let mut to_ask = inputs;
        let _ = if null_input { ask(Ok(Val::Null)) } else { to_ask.try_for_each(ask) };
    }
}

/// With jaq a filter continues after an error, with jq it does not.
fn to_first_error(answers: impl Iterator<Item = Answer>, take: Take<'_>) -> ControlFlow<()> {
    for answer in answers {
        let is_error = matches!(answer, Answer::Error(_));
        take(answer)?;
        if is_error {
            break;
        }
    }
    ControlFlow::Continue(())
}

fn compile(code: &str, variables: &[String]) -> Result<Filter<QueryData>, CompileError> {
    let arena = Arena::default();
    let file = File { code, path: () };
    let wrong = |errors| CompileError::Filter(of_loading(code, errors));
    let modules = Loader::new(definitions()).load(&arena, file).map_err(wrong)?;
    let compiler = Compiler::default().with_funs(functions());
    let compiler = compiler.with_global_vars(variables.iter().map(String::as_str));
    compiler.compile(modules).map_err(|errors| CompileError::Filter(of_names(code, &errors)))
}

fn value(text: &str) -> Result<Val, read::Error> {
    read::parse_single(text.as_bytes())
}

fn answer(outcome: ValX<'_, Val>) -> Answer {
    let error = match outcome.map(plain::json) {
        Ok(Some(value)) => return Answer::Value(value),
        Ok(None) => return Answer::Error("object keys must be strings".to_owned()),
        Err(error) => error,
    };
    match error.get_err().map_err(Exn::get_halt) {
        Ok(error) => Answer::of_error(error.into_val()),
        Err(Ok(code)) => Answer::Halt(code),
        Err(Err(_)) => Answer::Error("break".to_owned()),
    }
}

fn environment() -> Val {
    let text = |text: String| Val::utf8_str(text);
    Val::obj(environment::all().map(|(name, value)| (text(name), text(value))).collect::<Map>())
}

fn definitions() -> impl Iterator<Item = parse::Def<&'static str>> {
    let more = parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default();
    jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(more)
}

fn functions() -> impl Iterator<Item = Fun<QueryData>> {
    let input = input::funs::<QueryData>().into_vec().into_iter().map(run::<QueryData>);
    jaq_core::funs::<QueryData>().chain(jaq_std::funs::<QueryData>()).chain(jaq_json::funs()).chain(input)
}

/// The kind of data that our filters work on.
struct QueryData;

impl DataT for QueryData {
    type V<'a> = Val;
    type Data<'a> = Data<'a>;
}

#[derive(Clone)]
struct Data<'a> {
    table: &'a Lut<QueryData>,
    inputs: input::Inputs<'a, Val>,
}

impl<'a> data::HasLut<'a, QueryData> for Data<'a> {
    fn lut(&self) -> &'a Lut<QueryData> {
        self.table
    }
}

impl<'a> input::HasInputs<'a, Val> for Data<'a> {
    fn inputs(&self) -> input::Inputs<'a, Val> {
        self.inputs
    }
}
