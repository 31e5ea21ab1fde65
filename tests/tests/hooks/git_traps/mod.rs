//! A repository with a trap in every place where git starts a program that the repository names. Whatever of ours looks
//! at it springs none; the work-in-progress commit runs what the user has set up for it, in this repository alone.

mod commit;
mod looking;
mod traps;
