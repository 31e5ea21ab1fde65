//! A tool call and its result.

use crate::arguments::CheckedArguments;
use crate::tool_error::ToolError;
use plimsoll_store::Project;

/// The text for the model. `Err` becomes an error result, which tells it what to correct.
pub(crate) type ToolResult = Result<String, ToolError>;

/// A tool call with checked arguments.
pub(crate) struct ToolCall {
    /// The project whose memory and files are used.
    pub(crate) project: Project,
    pub(crate) arguments: CheckedArguments,
    /// The client's id of the call.
    pub(crate) call_id: Option<String>,
    /// Returns true once the client has canceled the call.
    pub(crate) is_canceled: Box<dyn Fn() -> bool + Send + Sync>,
}
