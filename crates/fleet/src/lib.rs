//! RULE: the only crate that speaks to PostgreSQL, and `plimsoll-fleet`, the optional program that is made of it. Nothing else links it.
//!
//! A fleet is one plan on several machines: its board is in a database, and the work itself travels by git. [`Fleet`] has the
//! operations of [`plimsoll_policy::workers`] under the same names. Where one row or the plan decides, rows are locked, the policy
//! decides on them, and what it changed is written, in one transaction. [`Fleet::claim`] and [`Fleet::renew`] are single
//! statements; the tests hold them to the policy.
//!
//! The order of locks is: the plan's row, then items' by their places. Moments are the database's: no machine's clock counts.
//!
//! Limits: an operation whose connection is cut may have happened. All of them can be asked for again: a claim that nobody knows of
//! ends with its lease, an offer that has arrived is fenced when it is repeated, everything else changes nothing twice. An answer
//! that never comes, from a server that still confirms what it is sent, is waited for without end by [`Fleet`]; [`within`] ends that
//! wait, and the commands use it.

mod commands;
mod database;
mod deadline;
mod fault;
mod fleet;
mod found;
mod guarded_stream;
mod rows;
mod schema;
pub mod settings;
mod tls;

pub use commands::main;
pub use database::Database;
pub use deadline::{ANSWER, within};
pub use fault::{Fault, FleetError};
pub use fleet::Fleet;
pub use fleet::examined::examine;
pub use fleet::journal::Event;
pub use fleet::members::WorkerReport;
pub use fleet::plan::{NewPlan, objective_hash, prepare};
pub use fleet::standing::{Counts, ItemStanding, Standing, WorkerStanding, standings};
pub use found::{URL, find_settings, find_settings_by};
pub use schema::VERSION;
pub use tls::TrustError;
