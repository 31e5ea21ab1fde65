//! The command line of `plimsoll-linear`. `plimsoll` builds it, and `plimsoll-linear` parses it.

use super::key::KeySource;
use std::time::Duration;

/// A command for `plimsoll-linear`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinearCommand {
    /// Checks each part of the connection to Linear.
    Check,
    /// Delivers the notes in the outbox, at the user's request.
    Sync {
        /// True to print what would be sent, and send nothing.
        dry_run: bool,
    },
    /// For `plimsoll run`: checks whether address, key and certificates are valid, without a request to
    /// Linear.
    Ready {
        /// The source of the key in the environment.
        source: KeySource,
    },
    /// For `plimsoll run`: delivers the waiting notes of an issue, with the key in the environment.
    Deliver {
        /// The issue from the user's settings.
        issue: String,
        /// The time limit for the whole delivery.
        time_limit: Duration,
    },
}

const CHECK: &str = "check";
const SYNC: &str = "sync";
const DRY_RUN: &str = "--dry-run";
const READY: &str = "ready";
const DELIVER: &str = "deliver";

impl LinearCommand {
    /// Returns the command-line arguments of this command.
    pub fn to_arguments(&self) -> Vec<String> {
        let to_strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        match self {
            LinearCommand::Check => to_strings(&[CHECK]),
            LinearCommand::Sync { dry_run: false } => to_strings(&[SYNC]),
            LinearCommand::Sync { dry_run: true } => to_strings(&[SYNC, DRY_RUN]),
            LinearCommand::Ready { source } => to_strings(&[READY, source.name()]),
            LinearCommand::Deliver { issue, time_limit } => {
                to_strings(&[DELIVER, issue, &time_limit.as_millis().to_string()])
            }
        }
    }

    /// Parses the arguments. Returns `None` if they are not a valid command.
    pub fn parse(arguments: &[String]) -> Option<LinearCommand> {
        let argument_texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match argument_texts.as_slice() {
            [CHECK] => Some(LinearCommand::Check),
            [SYNC] => Some(LinearCommand::Sync { dry_run: false }),
            [SYNC, DRY_RUN] => Some(LinearCommand::Sync { dry_run: true }),
            [READY, source] => Some(LinearCommand::Ready { source: KeySource::from_name(source)? }),
            [DELIVER, issue, milliseconds] => {
                let time_limit = Duration::from_millis(milliseconds.parse().ok()?);
                Some(LinearCommand::Deliver { issue: (*issue).to_owned(), time_limit })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_parsed_as_it_was_written() {
        for command in [
            LinearCommand::Check,
            LinearCommand::Sync { dry_run: false },
            LinearCommand::Sync { dry_run: true },
            LinearCommand::Ready { source: KeySource::Variable },
            LinearCommand::Ready { source: KeySource::Command },
            LinearCommand::Deliver { issue: "ENG-1".to_owned(), time_limit: Duration::from_millis(4_500) },
        ] {
            assert_eq!(LinearCommand::parse(&command.to_arguments()), Some(command));
        }
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for command_line in [
            "",
            "sync --dry",
            "check check",
            "ready",
            "ready elsewhere",
            "deliver ENG-1",
            "deliver ENG-1 soon",
        ] {
            let arguments: Vec<String> = command_line.split(' ').map(str::to_owned).collect();
            assert_eq!(LinearCommand::parse(&arguments), None, "{arguments:?}");
        }
    }
}
