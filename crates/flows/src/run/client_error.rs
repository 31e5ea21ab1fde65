//! Reasons why a client cannot be used for a run.

use plimsoll_policy::client::{UPDATE_ADVICE, format_version};
use plimsoll_policy::read_only::FIRST_RESTRICTED_VERSION;
use plimsoll_protocol::settings::{FIRST_MODERN_VERSION, InvalidSettings};
use plimsoll_store::StoreError;
use std::path::PathBuf;

/// Why a client cannot be used for a run, as it is or with the arguments that the user passes on to it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The program prints no version.
    #[error("{0} does not answer `--version`: is it Claude Code?")]
    NoVersionOutput(PathBuf),
    /// The program is not Claude Code.
    #[error("{program} answers `--version` with \"{version_output}\": is it Claude Code?")]
    OtherProgram {
        program: PathBuf,
        /// Its output for `--version`, shortened.
        version_output: String,
    },
    /// The client does not know the events of our hooks. The text is that of
    /// [`plimsoll_policy::client::unsupported_client_reason`].
    #[error("{0}: {UPDATE_ADVICE}")]
    TooOld(String),
    /// The client lacks the events that show the working memory.
    #[error(
        "--memory needs Claude Code {} or newer, and {program} says {version_output}",
        format_version(FIRST_MODERN_VERSION)
    )]
    TooOldForMemory {
        program: PathBuf,
        /// Its output for `--version`.
        version_output: String,
    },
    /// The client cannot confine a read-only session to the project.
    #[error(
        "{feature} needs Claude Code {} or newer, whose `--restricted` keeps a session inside the project, and {program} says {version_output}: update Claude Code",
        format_version(FIRST_RESTRICTED_VERSION)
    )]
    TooOldForRestrictedMode {
        /// The option that needs it.
        feature: &'static str,
        program: PathBuf,
        /// Its output for `--version`.
        version_output: String,
    },
    /// The user's own `--settings`, which are merged with ours, are invalid.
    #[error("Claude Code's --settings {argument}: {error}")]
    Settings {
        /// The argument: a file or JSON.
        argument: String,
        error: ClientSettingsError,
    },
    /// A flag that the client accepts once and that the working memory needs.
    #[error(
        "--memory passes {0} to Claude Code itself: run `plimsoll init --local --memory` once in this project, then give your own after `--`"
    )]
    FlagInUse(&'static str),
}

/// The error in settings that the user passes to the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientSettingsError {
    #[error("there is no such file")]
    Missing,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The text is not valid JSON settings.
    #[error(transparent)]
    Invalid(#[from] InvalidSettings),
}
