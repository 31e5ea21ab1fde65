//! One call of a tool, and its answer.

use crate::arguments::Given;
use crate::tool_error::ToolError;
use plimsoll_store::Project;

/// What the model is told: `Err` is an error result, from which it can do better.
pub(crate) type Answer = Result<String, ToolError>;

/// One call, its arguments checked.
pub(crate) struct Call {
    /// Whose memory and files.
    pub(crate) project: Project,
    /// What was given.
    pub(crate) given: Given,
    /// The call as the client names it.
    pub(crate) id: Option<String>,
    /// True once the caller no longer waits for the answer.
    pub(crate) is_given_up: Box<dyn Fn() -> bool + Send + Sync>,
}
