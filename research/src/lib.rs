//! What is measured rather than tested: unattended runs and resumes with a simulated agent. What came out is on pages in `docs/`.

pub mod handovers;
pub mod nights;
