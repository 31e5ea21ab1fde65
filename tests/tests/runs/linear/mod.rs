//! Notes in Linear: against a server on loopback that holds each operation to Linear's schema, with all the faults that
//! a network, a key and a crash can have.

mod check;
mod faults;
mod judge;
mod night;
mod program;
mod secrets;
mod stage;
