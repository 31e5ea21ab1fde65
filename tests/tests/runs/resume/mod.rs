//! What a session is told when it takes over from another one, with the real client: item, file, line and next step,
//! held against what the scripted sessions did and against git.

mod credit;
mod place;
mod range;
mod stage;
mod stale;
mod ticked;
mod words;
