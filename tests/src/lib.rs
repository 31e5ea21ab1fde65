//! Tests of the whole live in `tests/`; this crate is only their home.
