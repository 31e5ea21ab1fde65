//! The lifecycle of a run outside its sessions: creates it, plans its iterations, resumes and cancels it.

mod cancel;
mod create;
mod newest_run;
mod plan;
mod records;
mod resume;

pub(crate) use crate::run::orphans::{
    end_surviving_processes, find_orphaned_client, session_environment_markers,
};
pub use crate::run::start_error::StartError;
pub use cancel::cancel_run;
pub use create::{NewRun, SharedWork, check_new_run, create_run, no_open_items_message, read_shared_work};
pub use plan::plan_iteration;
pub use resume::{
    ResumeChanges, ResumeOutcome, StoredLaunchOptions, load_launch_options, resume_run,
    return_to_run_branch_with_notice,
};
