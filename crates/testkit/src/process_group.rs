//! Starts programs so that they can be ended together with the processes that they started.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{kill_processes_with_home, start_in_own_group, terminate_process_group};
#[cfg(windows)]
pub(crate) use windows::{kill_processes_with_home, start_in_own_group, terminate_process_group};
