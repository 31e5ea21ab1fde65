//! RULE: each use case exists once, for the hooks, the command and the server: observe (store, launcher),
//! decide (policy), write (store), respond (protocol's reply).
//!
//! [`hooks`] has one file per hook program, [`run`] the life of an unattended run, and [`workers`] that of
//! several workers who share a plan. [`context`] measures, [`checkpoint`] writes handoffs, [`compaction`]
//! puts one in the place of a conversation, [`handoffs`] lists them, [`retention`] removes old records, [`turns`] records, [`memory`] shows the working memory, [`linear`]
//! delivers notes, [`telemetry`] exports spans and logs, [`install`] and [`doctor`] set up and check. Below
//! them are the hook's input ([`hook_invocation`]), its response ([`hook_response`]) and the end of a session
//! ([`session_result`]), so that hooks and runs share them without depending on each other's files.
//!
//! A fault of ours is reported on standard error and in the journal, and never ends the session. The order of
//! writes makes a kill harmless: the state is written before everything that follows from it (journal,
//! archive, copies), and the next process completes what is missing.
//!
//! Limits: a flow holds no lock while it waits for git, a verify command or the client, so what it read may
//! have changed when it writes; where that matters, it reads again under the lock. A kill may repeat a line
//! of the journal, but never loses one.

pub mod checkpoint;
mod client_modules;
pub mod compaction;
pub mod context;
pub mod doctor;
pub mod draft;
pub mod handoffs;
pub mod hook_invocation;
pub mod hook_response;
pub mod hooks;
pub mod install;
pub mod linear;
pub mod memory;
pub mod optional_program;
mod plimsoll_files;
mod read_only;
pub mod retention;
pub mod run;
pub mod run_context;
mod run_duration;
pub mod run_figures;
pub mod session_result;
pub mod session_text;
pub mod telemetry;
pub mod turns;
pub mod workers;

pub use plimsoll_policy::client;

pub use hook_response::HookResponse;
