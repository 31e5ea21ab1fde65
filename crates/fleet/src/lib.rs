//! RULE: the only crate that connects to PostgreSQL. It builds `plimsoll-fleet`, an optional program; nothing else links it.
//!
//! A fleet is one plan on several machines: the board is in a database, and the work itself travels by git. [`Fleet`] has the same
//! operations as [`plimsoll_policy::workers`]. They are functions of the database (`schema/*.sql`), because a member may have no
//! other way to change the board; tests check that they decide as the policy does.
//!
//! Locks are taken in this order: the plan's row, then items by their places. All timestamps come from the database, so the clocks
//! of the machines do not matter.
//!
//! Limits: an operation whose connection is cut may have happened. Every operation can be repeated: a claim that nobody knows about
//! expires with its lease, repeating an offer that has arrived fails with a stale epoch, and no other operation has an
//! effect twice. [`Fleet`] waits without limit for a server that acknowledges packets and never answers;
//! [`run_with_settings_and_timeout`] sets a timeout, and the commands use it.

mod commands;
mod database;
mod database_error;
mod fleet;
mod fleet_name;
mod rows;
mod schema;
pub mod settings;
mod settings_loader;
mod size_limited_stream;
mod timeout;
mod tls;

pub use commands::main;
pub use database::Database;
pub use database_error::{DatabaseError, FleetError};
pub use fleet::Fleet;
pub use fleet::database_inspection::inspect_server_and_rights;
pub use fleet::fleet_status::{
    AllStatuses, FleetStatus, ItemCounts, ItemStatus, WorkerStatus, read_all_statuses,
};
pub use fleet::journal::FleetEvent;
pub use fleet::members::{Member, WorkerReport};
pub use fleet::plan::{NewPlan, check_fleet_can_be_created, hash_objective};
pub use fleet_name::{FleetName, InvalidFleetName};
pub use schema::SCHEMA_VERSION;
pub use settings_loader::{URL_VARIABLE, load_settings_from_environment, load_settings_with_lookup};
pub use timeout::{DATABASE_TIMEOUT, run_with_settings_and_timeout};
pub use tls::TrustError;
