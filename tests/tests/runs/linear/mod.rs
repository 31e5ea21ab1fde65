//! Notes in Linear, tested against a loopback server that validates each operation against Linear's schema, with faults
//! of the network, the key and crashes.

mod delivery_faults;
mod harness;
mod linear_check;
mod linear_program;
mod no_secret_leaves;
mod official_sdk;
mod whole_runs;
