//! RULE: verbs. Total, pure functions: no disk, no clock, no environment, no `Result`. Every number of taste
//! stands here (or in the settings' defaults) with its reason.

pub mod ending;
pub mod gate;
pub mod levels;
pub mod monitor;
pub mod resume;
pub mod statusline;
pub mod window;
pub mod words;
