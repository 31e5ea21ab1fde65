//! Frames of the working memory with the real client: `plimsoll init --memory`, the client's Agent tool, and a model
//! that plays each conversation by its own script.

mod deaths;
mod interruptions;
mod nesting;
mod returns;
mod rules;
mod sessions;
pub(crate) mod stage;
mod trace;
