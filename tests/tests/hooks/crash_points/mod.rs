//! Every program of ours is killed before each of its writes, syncs, renames and locks, and has each of them refused;
//! then comes what would come next, and all must be as if nothing had been. `strace` does it, so the programs are the
//! ones that users get.

mod commands;
mod hooks;
mod install;
mod remains;
mod scenario;
pub(crate) mod scenes;
pub(crate) mod stage;
pub(crate) mod trace;
mod trouble;
