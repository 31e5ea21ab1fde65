//! RULE: what the programs have in common where they meet people: the only way to the terminal, tables, questions, how amounts are
//! written, command lines and signals. `cli`, `fleet`, `linear` and `otel` stand above it, and none of them above another.
//!
//! What is printed goes through [`console`], which lets no foreign word steer the terminal. Everything else makes lines for it, or
//! reads what the user has typed.
//!
//! Limits: a program links only what it calls, so that `plimsoll-linear` and `plimsoll-otel` stay small.

pub mod allowed_tools;
pub mod columns;
pub mod command_line;
pub mod console;
pub mod duration;
pub mod figure_words;
pub mod finding_page;
pub mod fleet_line;
pub mod markdown;
pub mod place;
pub mod run_progress;
pub mod signals;
pub mod standard_input;
pub mod value_parsers;
pub mod worker_words;
