//! A repository with a trap in every place where git starts a program that the repository names. Whatever of ours looks
//! at it springs none; the work-in-progress commit runs what the user has set up for it, in this repository alone.

mod planted_traps;
mod read_only_commands;
mod wip_commit;
