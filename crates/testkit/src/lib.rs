//! The test harness: the real client, a scripted model and a Linear server on loopback, temporary worlds
//! and a terminal.
//!
//! Its one rule: nothing leaves this computer and nothing outlives its test. Servers listen on 127.0.0.1
//! only, every program gets a cleared environment and its own HOME, every wait is bounded, and only processes
//! started here are ended.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "the test bench is the outside world: it makes the files, processes and sockets the others are tested with"
)]

pub mod client;
mod environment;
#[cfg(feature = "linear")]
pub mod linear;
#[cfg(unix)]
pub mod postgres;
mod process_group;
pub mod proxy;
pub mod quota;
#[cfg(all(unix, feature = "replay"))]
pub mod replay;
mod seeded_rng;
#[cfg(feature = "terminal")]
pub mod terminal;
mod tool;
mod workspace_paths;
pub mod world;

pub use plimsoll_scripted_model as scripted_model;
pub use plimsoll_scripted_model::scripted_agent;
pub use seeded_rng::SeededRng;
#[cfg(all(unix, feature = "replay"))]
pub use workspace_paths::find_or_build_replayed_client;
pub use workspace_paths::{find_or_build_bin_dir, fixtures_dir, target_dir, workspace_root};
