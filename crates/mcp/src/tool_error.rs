//! Errors of tool calls, with advice for the model.

use plimsoll_domain::memory::ApplyError;
use plimsoll_flows::turns::TurnsError;
use plimsoll_store::StoreError;
use plimsoll_store::confined_folder::ConfinedError;
use plimsoll_store::memory::MemoryError;

/// An error of a tool call. The model reads its `Display` text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// An argument is invalid or unknown.
    #[error("{tool_name}: {problem}. Nothing was done.")]
    InvalidArgument { tool_name: &'static str, problem: String },
    /// A required argument is missing.
    #[error("{tool_name}: {name} is missing: {description}. Nothing was done.")]
    MissingArgument { tool_name: &'static str, name: &'static str, description: &'static str },
    /// The memory's rules reject the change.
    #[error("{0}. Nothing was written.")]
    RejectedByMemory(ApplyError),
    #[error("{0}\nhint: {hint}", hint = .0.hint())]
    Store(#[from] StoreError),
    /// The turn was not found, or its name is invalid.
    #[error(transparent)]
    Turns(TurnsError),
    /// The turn is in the log but does not parse.
    #[error("{name} cannot be read: {reason}")]
    UnreadableTurn { name: String, reason: String },
    /// The record with this number is not a turn.
    #[error("{0} is no turn: name one as turns_list does")]
    NotATurn(u64),
    /// The path leads out of the project, or the file cannot be accessed.
    #[error(transparent)]
    Confined(#[from] ConfinedError),
    /// The file contains zero bytes, so it is binary.
    #[error("{path} is not text: {size} bytes, some of them zero. Inspect it with a program")]
    NotText { path: String, size: u64 },
    /// A command failed: its exit status and output.
    #[error("{0}")]
    CommandFailed(String),
    /// The call's thread panicked.
    #[error("internal error of the server in this call: try again")]
    Internal,
}

impl From<MemoryError> for ToolError {
    fn from(error: MemoryError) -> ToolError {
        match error {
            MemoryError::Refused(apply_error) => ToolError::RejectedByMemory(apply_error),
            MemoryError::Store(error) => ToolError::Store(error),
        }
    }
}

impl From<TurnsError> for ToolError {
    fn from(error: TurnsError) -> ToolError {
        match error {
            TurnsError::Store(error) => ToolError::Store(error),
            error => ToolError::Turns(error),
        }
    }
}
