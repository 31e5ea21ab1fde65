//! The life of a run outside its sessions: creating it, planning its iterations, resuming it, cancelling it.

mod cancel;
mod create;
mod newest;
mod plan;
mod records;
mod resume;

pub(crate) use crate::run::orphans::{end_left_behind, orphan, settings_of};
pub use crate::run::start_error::StartError;
pub use cancel::cancel;
pub use create::{NewRun, Shared, check, create, nothing_open, to_share};
pub use plan::plan;
pub use resume::{Changes, Remembered, Resumed, remembered, resume, return_to_branch};
