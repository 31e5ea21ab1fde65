//! Parses the command-line options that have a recording and rejects all others.

use super::{ReplayResult, not_replayable_error};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// Only the final text.
    #[default]
    Text,
    /// One JSON object with the result.
    Json,
    /// One JSON object per event, each on its own line.
    StreamJson,
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

/// The only model with recorded prices and a recorded context window. Its short name is `opus`.
pub(super) const MODEL: &str = "claude-opus-5-5";

impl Arguments {
    pub(super) fn parse_rejecting_unsupported(args: &[String]) -> ReplayResult<Arguments> {
        let mut arguments = Arguments::default();
        let mut args = args.iter().peekable();
        while let Some(argument) = args.next() {
            let (name, inline_value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut require_value = || match inline_value.clone().or_else(|| args.next().cloned()) {
                Some(value) => Ok(value),
                None => not_replayable_error(format!("{name} without a value")),
            };
            match name {
                "-p" | "--print" => arguments.is_print_mode = true,
                "--verbose" => arguments.is_verbose = true,
                "--dangerously-skip-permissions" => arguments.skips_permissions = true,
                "--output-format" => arguments.output_format = parse_output_format(&require_value()?)?,
                "--session-id" => arguments.session_id = Some(require_value()?),
                "--settings" => arguments.settings = Some(require_value()?),
                "--append-system-prompt" => arguments.system_prompt = Some(require_value()?),
                "--max-budget-usd" => arguments.max_budget_usd = require_value()?.parse().ok(),
                "--max-turns" => arguments.max_turns = require_value()?.parse().ok(),
                "--permission-mode" => match require_value()?.as_str() {
                    "bypassPermissions" => arguments.skips_permissions = true,
                    "default" => {}
                    other => return not_replayable_error(format!("the permission mode {other}")),
                },
                "--model" => match require_value()?.as_str() {
                    "opus" | MODEL => {}
                    other => return not_replayable_error(format!("the model {other}")),
                },
                "--allowedTools" | "--allowed-tools" => {
                    arguments.add_allowed_tools_rejecting_patterns(&require_value()?)?;
                    while let Some(tool) = args.next_if(|next_argument| !next_argument.starts_with('-')) {
                        arguments.add_allowed_tools_rejecting_patterns(tool)?;
                    }
                }
                _ if name.starts_with('-') => return not_replayable_error(format!("the argument {name}")),
                _ if arguments.prompt.is_none() => arguments.prompt = Some(argument.clone()),
                _ => return not_replayable_error("a second prompt"),
            }
        }
        if !arguments.is_print_mode {
            return not_replayable_error("a session on a terminal");
        }
        if arguments.output_format == OutputFormat::StreamJson && !arguments.is_verbose {
            return not_replayable_error("a stream without --verbose");
        }
        Ok(arguments)
    }

    fn add_allowed_tools_rejecting_patterns(&mut self, names: &str) -> ReplayResult<()> {
        for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
            if !name.chars().all(|character| character.is_ascii_alphanumeric()) {
                return not_replayable_error(format!("the permission {name}"));
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
        "stream-json" => Ok(OutputFormat::StreamJson),
        other => not_replayable_error(format!("the output format {other}")),
    }
}
