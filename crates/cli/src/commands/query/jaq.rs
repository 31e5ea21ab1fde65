//! The default engine: jaq, an implementation of jq in Rust.

use super::compile_errors::{render_load_errors, render_undefined_names};
use super::engine::{CompileError, Engine, FilterOutput, OutputHandler};
use super::inputs::Inputs;
use super::json_values;
use super::program::Program;
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::native::{Fun, run};
use jaq_core::{Compiler, Ctx, DataT, Exn, Filter, Lut, ValX, Vars, data};
use jaq_json::{Map, Val, read};
use jaq_std::input::{self, RcIter};
use plimsoll_store::environment;
use std::ops::ControlFlow;

/// jq definitions that jaq's libraries do not include.
const EXTRA_DEFINITIONS: &str = r#"
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
    /// Compiles the filter, with `$ENV` and the program's variables. An error message shows the position of the error.
    pub(super) fn compile(program: &Program) -> Result<Jaq, CompileError> {
        let mut variable_names = vec!["$ENV".to_owned()];
        let mut variables = vec![environment_value()];
        for (name, json) in &program.variables {
            variable_names.push(format!("${name}"));
            variables.push(
                parse_value(json).map_err(|error| CompileError::Variable { name: name.clone(), error })?,
            );
        }
        Ok(Jaq { filter: compile_filter(&program.filter, &variable_names)?, variables })
    }
}

impl Engine for Jaq {
    fn run(&mut self, inputs: Inputs, null_input: bool, on_output: OutputHandler<'_>) {
        let parsed_inputs =
            RcIter::new(inputs.map(|text| parse_value(&text).map_err(|error| error.to_string())));
        let shared_inputs: input::Inputs<'_, Val> = &parsed_inputs;
        let data = FilterData { lookup_table: &self.filter.lut, inputs: shared_inputs };
        let context = Ctx::<QueryData>::new(data, Vars::new(self.variables.iter().cloned()));
        let mut run_on_input = |input| match input {
            Ok(value) => emit_until_first_error(
                self.filter.id.run((context.clone(), value)).map(to_filter_output),
                on_output,
            ),
            Err(message) => on_output(FilterOutput::Error(message)),
        };
        // The filter itself may read inputs, so the iterator must not be borrowed while the filter runs.
        let mut remaining_inputs = shared_inputs;
        let _ = if null_input {
            run_on_input(Ok(Val::Null))
        } else {
            remaining_inputs.try_for_each(run_on_input)
        };
    }
}

/// Passes outputs to the callback, up to and including the first error. jaq would continue after an error, but jq does not. Returns
/// `Break` only if the callback does.
fn emit_until_first_error(
    outputs: impl Iterator<Item = FilterOutput>,
    on_output: OutputHandler<'_>,
) -> ControlFlow<()> {
    for output in outputs {
        let is_error = matches!(output, FilterOutput::Error(_));
        on_output(output)?;
        if is_error {
            break;
        }
    }
    ControlFlow::Continue(())
}

fn compile_filter(code: &str, variables: &[String]) -> Result<Filter<QueryData>, CompileError> {
    let arena = Arena::default();
    let file = File { code, path: () };
    let to_compile_error = |errors| CompileError::Filter(render_load_errors(code, errors));
    let modules = Loader::new(all_definitions()).load(&arena, file).map_err(to_compile_error)?;
    let compiler = Compiler::default().with_funs(native_functions());
    let compiler = compiler.with_global_vars(variables.iter().map(String::as_str));
    compiler.compile(modules).map_err(|errors| CompileError::Filter(render_undefined_names(code, &errors)))
}

fn parse_value(text: &str) -> Result<Val, read::Error> {
    read::parse_single(text.as_bytes())
}

fn to_filter_output(result: ValX<'_, Val>) -> FilterOutput {
    let error = match result.map(json_values::to_json_if_keys_are_strings) {
        Ok(Some(value)) => return FilterOutput::Value(value),
        Ok(None) => return FilterOutput::Error("object keys must be strings".to_owned()),
        Err(error) => error,
    };
    match error.get_err().map_err(Exn::get_halt) {
        Ok(error) => FilterOutput::from_error_value(error.into_val()),
        Err(Ok(code)) => FilterOutput::Halt(code),
        Err(Err(_)) => FilterOutput::Error("break".to_owned()),
    }
}

fn environment_value() -> Val {
    let to_value = |text: String| Val::utf8_str(text);
    Val::obj(
        environment::all_variables().map(|(name, value)| (to_value(name), to_value(value))).collect::<Map>(),
    )
}

fn all_definitions() -> impl Iterator<Item = parse::Def<&'static str>> {
    let extra_definitions = parse(EXTRA_DEFINITIONS, |parser| parser.defs()).unwrap_or_default();
    jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(extra_definitions)
}

fn native_functions() -> impl Iterator<Item = Fun<QueryData>> {
    let input_functions = input::funs::<QueryData>().into_vec().into_iter().map(run::<QueryData>);
    jaq_core::funs::<QueryData>()
        .chain(jaq_std::funs::<QueryData>())
        .chain(jaq_json::funs())
        .chain(input_functions)
}

/// Tells jaq which value and data types the filters use.
struct QueryData;

impl DataT for QueryData {
    type V<'a> = Val;
    type Data<'a> = FilterData<'a>;
}

#[derive(Clone)]
struct FilterData<'a> {
    lookup_table: &'a Lut<QueryData>,
    inputs: input::Inputs<'a, Val>,
}

impl<'a> data::HasLut<'a, QueryData> for FilterData<'a> {
    fn lut(&self) -> &'a Lut<QueryData> {
        self.lookup_table
    }
}

impl<'a> input::HasInputs<'a, Val> for FilterData<'a> {
    fn inputs(&self) -> input::Inputs<'a, Val> {
        self.inputs
    }
}
