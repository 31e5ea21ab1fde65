//! The filter and its variables, as the command line gives them.

use serde_json::Value;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Program {
    /// The jq program.
    pub(super) filter: String,
    /// Variables by name, without `$`, each once, with JSON values.
    pub(super) variables: Vec<(String, String)>,
}

/// Why the command line gives no program.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    /// A name that no filter could use.
    #[error("{option} {name}: a variable's name has letters, digits and _, and begins with no digit")]
    Name {
        /// The option that has it.
        option: &'static str,
        /// The name.
        name: String,
    },
    /// A value that is not JSON.
    #[error("--argjson {name}: {value:?} is not JSON ({why}); for a text use --arg")]
    Json {
        /// The variable.
        name: String,
        /// What was given.
        value: String,
        /// The parser's words.
        why: serde_json::Error,
    },
}

impl Program {
    /// The program with the variables of `--arg` and `--argjson`, names and values by turns. As with jq the first
    /// of a name counts.
    pub(super) fn read(filter: &str, arg: &[String], argjson: &[String]) -> Result<Program, ProgramError> {
        let mut program = Program { filter: filter.to_owned(), variables: Vec::new() };
        for (name, value) in pairs(arg) {
            program.set("--arg", name, Value::from(value).to_string())?;
        }
        for (name, value) in pairs(argjson) {
            is_json(value).map_err(|why| ProgramError::Json {
                name: name.to_owned(),
                value: value.to_owned(),
                why,
            })?;
            program.set("--argjson", name, value.to_owned())?;
        }
        Ok(program)
    }

    fn set(&mut self, option: &'static str, name: &str, json: String) -> Result<(), ProgramError> {
        let letter = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if !name.chars().all(letter)
            || name.is_empty()
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            return Err(ProgramError::Name { option, name: name.to_owned() });
        }
        if self.variables.iter().all(|(known, _)| known != name) {
            self.variables.push((name.to_owned(), json));
        }
        Ok(())
    }
}

/// The engines know more than JSON, and no limit to its depth: what they are given is looked at before.
pub(super) fn is_json(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Value>(text).map(drop)
}

fn pairs(flat: &[String]) -> impl Iterator<Item = (&str, &str)> {
    flat.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}
