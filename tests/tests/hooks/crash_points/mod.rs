//! Every program is killed before each of its writes, syncs, renames and locks, and each of these calls is made to fail. Then the
//! next step runs, and the result must be the same as without the fault. `strace` injects the faults, so the tested programs are
//! the ones that users get.

mod commands;
mod disk_checks;
mod hooks;
mod install;
pub(crate) mod prepared_projects;
pub(crate) mod prepared_world;
mod scenario;
pub(crate) mod syscall_trace;
mod system_faults;
