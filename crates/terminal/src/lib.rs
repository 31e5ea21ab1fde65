//! RULE: the common user interface of the programs: the only access to the terminal, tables, questions, amounts, command lines and
//! signals. `cli`, `fleet`, `linear` and `otel` depend on it, and not on one another.
//!
//! All output goes through [`console`], which escapes text from elsewhere so that it cannot control the terminal. The other modules
//! render lines for it, or parse what the user types.
//!
//! Limits: a program links only what it calls, so `plimsoll-linear` and `plimsoll-otel` stay small.

pub mod allowed_tools;
pub mod columns;
pub mod command_line;
pub mod console;
pub mod duration;
pub mod finding_page;
pub mod fleet_command_line;
pub mod help_layout;
pub mod markdown;
pub mod project_choice;
pub mod run_figure_text;
pub mod run_progress;
pub mod signals;
pub mod standard_input;
pub mod value_parsers;
pub mod worker_event_text;
