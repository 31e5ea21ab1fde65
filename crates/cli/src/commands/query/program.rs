//! The filter and its variables from the command line.

use serde_json::Value;

/// A jq program with the values of its variables.
#[derive(Debug)]
pub(super) struct Program {
    /// The source text of the filter.
    pub(super) filter: String,
    /// Variables by name, without `$`, each once, with JSON values.
    pub(super) variables: Vec<(String, String)>,
}

/// An invalid variable on the command line.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    /// The name cannot be a variable name in jq.
    #[error(
        "{option} {name}: a variable's name consists of letters, digits and _, and does not begin with a digit"
    )]
    InvalidName { option: &'static str, name: String },
    /// The value is not JSON.
    #[error("--argjson {name}: {value:?} is not JSON ({error}); for a text use --arg")]
    InvalidJson { name: String, value: String, error: serde_json::Error },
}

impl Program {
    /// Creates a program from the filter and the arguments of `--arg` and `--argjson`, in which names and values
    /// alternate. As in jq, the first value of a name is used and later ones are ignored.
    pub(super) fn from_arguments(
        filter: &str,
        string_arguments: &[String],
        json_arguments: &[String],
    ) -> Result<Program, ProgramError> {
        let mut program = Program { filter: filter.to_owned(), variables: Vec::new() };
        for (name, value) in name_value_pairs(string_arguments) {
            program.validate_and_add_variable_if_new("--arg", name, Value::from(value).to_string())?;
        }
        for (name, value) in name_value_pairs(json_arguments) {
            validate_json(value).map_err(|error| ProgramError::InvalidJson {
                name: name.to_owned(),
                value: value.to_owned(),
                error,
            })?;
            program.validate_and_add_variable_if_new("--argjson", name, value.to_owned())?;
        }
        Ok(program)
    }

    fn validate_and_add_variable_if_new(
        &mut self,
        option: &'static str,
        name: &str,
        json: String,
    ) -> Result<(), ProgramError> {
        let is_name_character = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if !name.chars().all(is_name_character)
            || name.is_empty()
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            return Err(ProgramError::InvalidName { option, name: name.to_owned() });
        }
        if self.variables.iter().all(|(existing, _)| existing != name) {
            self.variables.push((name.to_owned(), json));
        }
        Ok(())
    }
}

/// Returns an error if the text is not JSON. Inputs are checked before an engine parses them, because the engines also
/// accept other syntax and have no depth limit.
pub(super) fn validate_json(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Value>(text).map(drop)
}

fn name_value_pairs(arguments: &[String]) -> impl Iterator<Item = (&str, &str)> {
    arguments.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}
