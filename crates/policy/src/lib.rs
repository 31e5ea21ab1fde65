//! RULE: verbs. Total, pure functions: no disk, no clock, no environment, no `Result`. Every number of taste
//! stands here (or in the settings' defaults) with its reason.

pub mod adopt;
pub mod allow;
pub mod attribution;
pub mod bounds;
pub mod breaker;
pub mod checks;
pub mod child_event;
pub mod client;
pub mod completion;
pub mod doctor;
pub mod ending;
pub mod explain;
pub mod fingerprint;
pub mod forecast;
pub mod foreign;
pub mod frames;
pub mod gate;
pub mod levels;
pub mod linear;
pub mod monitor;
pub mod pack;
pub mod pause;
pub mod pipe;
pub mod plan;
pub mod records;
pub mod reset_clock;
pub mod resume;
pub mod silence;
pub mod statusline;
pub mod step;
pub mod todo_list;
pub mod turns;
pub mod window;
pub mod words;
