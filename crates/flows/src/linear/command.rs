//! What `plimsoll-linear` is asked to do, as its command line says it: written by `plimsoll`, read by `plimsoll-linear`.

use super::key::KeySource;
use std::time::Duration;

/// What `plimsoll-linear` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinearCommand {
    /// Checks each part of the way to Linear.
    Check,
    /// Delivers the notes in the outbox, at the user's request.
    Sync {
        /// True to print what would be sent, and send nothing.
        dry_run: bool,
    },
    /// For `plimsoll run`: says whether address, key and certificates can be used, without asking Linear.
    Ready {
        /// Where the key in the environment comes from.
        source: KeySource,
    },
    /// For `plimsoll run`: delivers what waits for an issue, with the key in the environment.
    Deliver {
        /// The issue of the user's settings.
        issue: String,
        /// The time for all of it.
        within: Duration,
    },
}

const CHECK: &str = "check";
const SYNC: &str = "sync";
const DRY_RUN: &str = "--dry-run";
const READY: &str = "ready";
const DELIVER: &str = "deliver";

impl LinearCommand {
    /// The words of its command line.
    pub fn arguments(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            LinearCommand::Check => words(&[CHECK]),
            LinearCommand::Sync { dry_run: false } => words(&[SYNC]),
            LinearCommand::Sync { dry_run: true } => words(&[SYNC, DRY_RUN]),
            LinearCommand::Ready { source } => words(&[READY, source.name()]),
            LinearCommand::Deliver { issue, within } => {
                words(&[DELIVER, issue, &within.as_millis().to_string()])
            }
        }
    }

    /// What these words ask for; none if they are no command of ours.
    pub fn of(arguments: &[String]) -> Option<LinearCommand> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [CHECK] => Some(LinearCommand::Check),
            [SYNC] => Some(LinearCommand::Sync { dry_run: false }),
            [SYNC, DRY_RUN] => Some(LinearCommand::Sync { dry_run: true }),
            [READY, source] => Some(LinearCommand::Ready { source: KeySource::named(source)? }),
            [DELIVER, issue, milliseconds] => {
                let within = Duration::from_millis(milliseconds.parse().ok()?);
                Some(LinearCommand::Deliver { issue: (*issue).to_owned(), within })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_read_as_it_was_written() {
        for command in [
            LinearCommand::Check,
            LinearCommand::Sync { dry_run: false },
            LinearCommand::Sync { dry_run: true },
            LinearCommand::Ready { source: KeySource::Variable },
            LinearCommand::Ready { source: KeySource::Command },
            LinearCommand::Deliver { issue: "ENG-1".to_owned(), within: Duration::from_millis(4_500) },
        ] {
            assert_eq!(LinearCommand::of(&command.arguments()), Some(command));
        }
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for words in [
            "",
            "sync --dry",
            "check check",
            "ready",
            "ready elsewhere",
            "deliver ENG-1",
            "deliver ENG-1 soon",
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(LinearCommand::of(&words), None, "{words:?}");
        }
    }
}
