//! The lifecycle of a run outside its sessions: creates it, plans its iterations, resumes and cancels it.

mod cancel;
mod create;
mod newest_run;
mod plan;
mod records;
mod resume;

pub(crate) use crate::run::orphans::{
    end_surviving_processes, find_live_client_of_current_iteration, session_environment_markers,
};
pub use crate::run::start_error::StartError;
pub use cancel::cancel_newest_run_and_end_orphaned_client;
pub use create::{
    NewRun, SharedWork, check_new_run, create_run, read_task_and_unfinished_plan_to_share,
    warning_if_no_open_items,
};
pub use plan::plan_iteration_or_end_if_all_parked;
pub use resume::{
    ResumeChanges, ResumeOutcome, StoredLaunchOptions, load_launch_options, resume_run,
    switch_back_with_notice_before_resume,
};
