//! Frames of the working memory with the real client: `plimsoll init --memory`, the client's Agent tool, and a model
//! that plays each conversation by its own script.

mod children_without_return;
mod example_trace;
mod frame_permissions;
pub(crate) mod harness;
mod interrupted_frames;
mod nested_frames;
mod returned_reports;
mod several_sessions;
