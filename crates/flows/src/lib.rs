//! RULE: the use cases, once. What hooks and the command share: look (store, launcher), decide (policy),
//! write (store), say (protocol's reply). A fault of ours is a line for a person and never the session's end.

mod archive;
pub mod brief;
pub mod call;
pub mod capture;
pub mod checkpoint;
pub mod close;
pub mod compact;
pub mod context;
mod delegated;
pub mod doctor;
mod ended;
pub mod exclude;
pub mod facts;
pub mod faults;
pub mod foreign;
pub mod foresee;
pub mod frames;
pub mod gate;
pub mod growth;
mod handoff;
pub mod install;
pub mod iteration;
pub mod keep;
mod linear;
pub mod measure;
pub mod memory;
pub mod monitor;
pub mod notify;
pub mod observe;
mod pack;
pub mod plugin;
pub mod prompt;
pub mod run;
mod save;
pub mod session_end;
pub mod signal;
pub mod spent;
pub mod start;
pub mod statusline;
pub mod turns;
mod verify;
mod work;

pub use policy::client;

pub use signal::Signal;
