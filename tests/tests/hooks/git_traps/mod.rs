//! A repository with a trap in every place where git runs a program that the repository names. Our programs that read
//! the repository spring none of them; the work-in-progress commit runs only what the user has set up for it in this
//! repository.

mod planted_traps;
mod read_only_commands;
mod wip_commit;
