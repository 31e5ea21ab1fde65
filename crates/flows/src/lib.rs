//! RULE: the use cases, once, for the hooks, the command and the server: observe (store, launcher), decide (policy), write
//! (store), respond (protocol's reply).
//!
//! [`hooks`] has one file per hook program, [`run`] the life of an unattended run, [`workers`] that of several workers who share a plan. [`context`] measures, [`checkpoint`] writes
//! handoffs, [`handoffs`] lists them, [`keeping`] removes old records, [`turns`] records, [`memory`] shows the working memory,
//! [`linear`] has notes delivered, [`telemetry`] spans and logs exported, [`install`] and [`doctor`] set up and check. Below them stand the hook's input ([`hook_invocation`]), its answer ([`hook_response`]) and a
//! session's end ([`session_result`]), so that hooks and runs share them without knowing each other's files.
//!
//! A fault of ours is a line on standard error and in the journal, and never the session's end. The order of writes is what
//! makes a kill harmless: the state is written before what follows from it (journal, archive, copies), and the process that
//! comes next makes up for what is missing.
//!
//! Limits: a flow holds no lock while it waits for git, a verify command or the client, so what it saw may have changed when it
//! writes; it looks again under the lock where that matters. A kill may repeat a line of the journal, never lose one.

pub mod checkpoint;
pub mod context;
pub mod doctor;
pub mod draft;
pub mod handoffs;
pub mod hook_invocation;
pub mod hook_response;
pub mod hooks;
pub mod install;
pub mod keeping;
pub mod linear;
pub mod memory;
pub mod optional_program;
mod our_files;
mod read_only;
pub mod run;
pub mod run_context;
pub mod run_figures;
pub mod session_result;
pub mod telemetry;
pub mod turns;
pub mod workers;

pub use plimsoll_policy::client;

pub use hook_response::HookResponse;
