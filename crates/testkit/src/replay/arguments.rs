//! The command line, as far as it was recorded.

use super::{Recorded, not_recorded};

/// How it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// The last text.
    #[default]
    Text,
    /// The result object.
    Json,
    /// Every event on a line of its own.
    Stream,
}

/// The arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub(super) prompt: Option<String>,
    pub(super) format: Format,
    pub(super) session: Option<String>,
    pub(super) settings: Option<String>,
    pub(super) allowed: Vec<String>,
    pub(super) skips_permissions: bool,
    pub(super) system_prompt: Option<String>,
    pub(super) budget: Option<f64>,
    pub(super) max_turns: Option<u64>,
    print: bool,
    verbose: bool,
}

/// The one model whose prices and window were recorded; its short name is `opus`.
pub(super) const MODEL: &str = "claude-opus-5-5";

impl Arguments {
    pub(super) fn parse(words: &[String]) -> Recorded<Arguments> {
        let mut arguments = Arguments::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let mut value = || match joined.clone().or_else(|| words.next().cloned()) {
                Some(value) => Ok(value),
                None => not_recorded(format!("{name} without a value")),
            };
            match name {
                "-p" | "--print" => arguments.print = true,
                "--verbose" => arguments.verbose = true,
                "--dangerously-skip-permissions" => arguments.skips_permissions = true,
                "--output-format" => arguments.format = format(&value()?)?,
                "--session-id" => arguments.session = Some(value()?),
                "--settings" => arguments.settings = Some(value()?),
                "--append-system-prompt" => arguments.system_prompt = Some(value()?),
                "--max-budget-usd" => arguments.budget = value()?.parse().ok(),
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
                    arguments.allow(&value()?)?;
                    while let Some(tool) = words.next_if(|word| !word.starts_with('-')) {
                        arguments.allow(tool)?;
                    }
                }
                _ if name.starts_with('-') => return not_recorded(format!("the argument {name}")),
                _ if arguments.prompt.is_none() => arguments.prompt = Some(word.clone()),
                _ => return not_recorded("a second prompt"),
            }
        }
        if !arguments.print {
            return not_recorded("a session on a terminal");
        }
        if arguments.format == Format::Stream && !arguments.verbose {
            return not_recorded("a stream without --verbose");
        }
        Ok(arguments)
    }

    fn allow(&mut self, names: &str) -> Recorded<()> {
        for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric()) {
                return not_recorded(format!("the permission {name}"));
            }
            self.allowed.push(name.to_owned());
        }
        Ok(())
    }
}

fn format(name: &str) -> Recorded<Format> {
    match name {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "stream-json" => Ok(Format::Stream),
        other => not_recorded(format!("the output format {other}")),
    }
}
