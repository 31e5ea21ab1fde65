//! Every program of ours is killed before each of its writes, syncs, renames and locks, and has each of them refused;
//! then comes what would come next, and all must be as if nothing had been. `strace` does it, so the programs are the
//! ones that users get.

mod commands;
mod files_afterwards;
mod hooks;
mod install;
pub(crate) mod prepared_projects;
pub(crate) mod prepared_world;
mod scenario;
pub(crate) mod syscall_trace;
mod system_faults;
