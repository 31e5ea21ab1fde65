//! Parses the command line, as far as the client was recorded with it.

use super::{ReplayResult, not_recorded};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// Only the last text.
    #[default]
    Text,
    /// One result object.
    Json,
    /// Each event on its own line.
    Stream,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub(super) prompt: Option<String>,
    pub(super) output_format: OutputFormat,
    pub(super) session_id: Option<String>,
    pub(super) settings: Option<String>,
    pub(super) allowed_tools: Vec<String>,
    pub(super) skips_permissions: bool,
    pub(super) system_prompt: Option<String>,
    pub(super) max_budget_usd: Option<f64>,
    pub(super) max_turns: Option<u64>,
    is_print_mode: bool,
    is_verbose: bool,
}

/// The only model whose prices and context window were recorded. Its short name is `opus`.
pub(super) const MODEL: &str = "claude-opus-5-5";

impl Arguments {
    pub(super) fn parse(args: &[String]) -> ReplayResult<Arguments> {
        let mut arguments = Arguments::default();
        let mut args = args.iter().peekable();
        while let Some(word) = args.next() {
            let (name, inline_value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let mut value = || match inline_value.clone().or_else(|| args.next().cloned()) {
                Some(value) => Ok(value),
                None => not_recorded(format!("{name} without a value")),
            };
            match name {
                "-p" | "--print" => arguments.is_print_mode = true,
                "--verbose" => arguments.is_verbose = true,
                "--dangerously-skip-permissions" => arguments.skips_permissions = true,
                "--output-format" => arguments.output_format = parse_output_format(&value()?)?,
                "--session-id" => arguments.session_id = Some(value()?),
                "--settings" => arguments.settings = Some(value()?),
                "--append-system-prompt" => arguments.system_prompt = Some(value()?),
                "--max-budget-usd" => arguments.max_budget_usd = value()?.parse().ok(),
                "--max-turns" => arguments.max_turns = value()?.parse().ok(),
                "--permission-mode" => match value()?.as_str() {
                    "bypassPermissions" => arguments.skips_permissions = true,
                    "default" => {}
                    other => return not_recorded(format!("the permission mode {other}")),
                },
                "--model" => match value()?.as_str() {
                    "opus" | MODEL => {}
                    other => return not_recorded(format!("the model {other}")),
                },
                "--allowedTools" | "--allowed-tools" => {
                    arguments.add_allowed_tools(&value()?)?;
                    while let Some(tool) = args.next_if(|word| !word.starts_with('-')) {
                        arguments.add_allowed_tools(tool)?;
                    }
                }
                _ if name.starts_with('-') => return not_recorded(format!("the argument {name}")),
                _ if arguments.prompt.is_none() => arguments.prompt = Some(word.clone()),
                _ => return not_recorded("a second prompt"),
            }
        }
        if !arguments.is_print_mode {
            return not_recorded("a session on a terminal");
        }
        if arguments.output_format == OutputFormat::Stream && !arguments.is_verbose {
            return not_recorded("a stream without --verbose");
        }
        Ok(arguments)
    }

    fn add_allowed_tools(&mut self, names: &str) -> ReplayResult<()> {
        for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric()) {
                return not_recorded(format!("the permission {name}"));
            }
            self.allowed_tools.push(name.to_owned());
        }
        Ok(())
    }
}

fn parse_output_format(name: &str) -> ReplayResult<OutputFormat> {
    match name {
        "text" => Ok(OutputFormat::Text),
        "json" => Ok(OutputFormat::Json),
        "stream-json" => Ok(OutputFormat::Stream),
        other => not_recorded(format!("the output format {other}")),
    }
}
