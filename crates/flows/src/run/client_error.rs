//! Why a client cannot work for a run.

use plimsoll_policy::client::{UPDATE, dotted};
use plimsoll_policy::read_only::FIRST_CONFINED;
use plimsoll_protocol::settings::{FIRST_MODERN, Unreadable};
use plimsoll_store::StoreError;
use std::path::PathBuf;

/// Why a client cannot work for a run, as it is or with the arguments that the user passes on to it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It does not tell its version.
    #[error("{0} does not answer `--version`: is it Claude Code?")]
    Silent(PathBuf),
    /// It is another program.
    #[error("{program} answers `--version` with \"{answer}\": is it Claude Code?")]
    OtherProgram {
        /// The program.
        program: PathBuf,
        /// What it answered, in short.
        answer: String,
    },
    /// It does not know the events of our hooks; in the words of [`plimsoll_policy::client::too_old`].
    #[error("{0}: {UPDATE}")]
    TooOld(String),
    /// It has no events that show the working memory.
    #[error("--memory needs Claude Code {} or newer, and {program} says {answer}", dotted(FIRST_MODERN))]
    TooOldForMemory {
        /// The program.
        program: PathBuf,
        /// What it says of its version.
        answer: String,
    },
    /// It cannot confine a session that only reads to the project.
    #[error(
        "{what} needs Claude Code {} or newer, whose `--restricted` keeps a session inside the project, and {program} says {answer}: update Claude Code",
        dotted(FIRST_CONFINED)
    )]
    TooOldToConfine {
        /// What needs it.
        what: &'static str,
        /// The program.
        program: PathBuf,
        /// What it says of its version.
        answer: String,
    },
    /// The user's own `--settings`, with which ours are put together.
    #[error("the client's --settings {given}: {fault}")]
    Settings {
        /// What was given: a file, or JSON.
        given: String,
        /// What is wrong with it.
        fault: SettingsFault,
    },
    /// A flag that the client takes once, and the working memory needs.
    #[error(
        "--memory passes {0} to the client itself: run `plimsoll init --local --memory` once in this project, then give your own after `--`"
    )]
    FlagInUse(&'static str),
}

/// What is wrong with settings that the user gives the client.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFault {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// The file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They do not parse.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}
