//! Why a call failed: what the model reads, and what it can do better.

use plimsoll_domain::memory::ApplyError;
use plimsoll_flows::turns::TurnsError;
use plimsoll_store::StoreError;
use plimsoll_store::confined_folder::ConfinedError;
use plimsoll_store::memory::MemoryError;

/// Why a call failed. The model reads what is displayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// An argument will not do, or is unknown.
    #[error("{tool}: {fault}. Nothing was done.")]
    Argument { tool: &'static str, fault: String },
    /// An argument is required.
    #[error("{tool}: {name} is missing: {about}. Nothing was done.")]
    Missing { tool: &'static str, name: &'static str, about: &'static str },
    /// The memory's own rules.
    #[error("{0}. Nothing was written.")]
    Refused(ApplyError),
    /// The disk.
    #[error("{0}\nhint: {hint}", hint = .0.hint())]
    Store(#[from] StoreError),
    /// No turn is like that.
    #[error(transparent)]
    Turns(TurnsError),
    /// The turn is in the log, and does not parse.
    #[error("{name} cannot be read: {why}")]
    BrokenTurn { name: String, why: String },
    /// The log has something else under that number.
    #[error("{0} is no turn: name one as turns_list does")]
    NotATurn(u64),
    /// The path leads out, or there is nothing to read.
    #[error(transparent)]
    Confined(#[from] ConfinedError),
    /// A file with bytes that no text has.
    #[error("{path} is not text: {size} bytes, some of them zero. Inspect it with a program")]
    NotText { path: String, size: u64 },
    /// A command failed: how it ended, and what it printed.
    #[error("{0}")]
    Command(String),
    /// We are at fault.
    #[error("internal error of the server in this call: try again")]
    Server,
}

impl From<MemoryError> for ToolError {
    fn from(error: MemoryError) -> ToolError {
        match error {
            MemoryError::Refused(refusal) => ToolError::Refused(refusal),
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
