//! Frames of the working memory with the real client: `plimsoll init --memory`, the client's Agent tool, and a model
//! that plays each conversation by its own script.

mod deaths;
mod nesting;
mod returns;
mod review;
mod review_hooks;
mod rules;
mod stage;
mod trace;
