//! Notes in Linear: against a server on loopback that holds each operation to Linear's schema, with all the faults that
//! a network, a key and a crash can have.

mod delivery_faults;
mod harness;
mod linear_check;
mod linear_program;
mod no_secret_leaves;
mod official_sdk;
mod whole_runs;
