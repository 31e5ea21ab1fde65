//! Measurements rather than tests: unattended runs and resumes with a simulated agent. The results are on
//! pages in `docs/`.

pub mod handoffs;
pub mod handovers;
pub mod nights;
