//! RULE: nouns. Plain data with its parsing and rendering; no disk, no clock, no decision.

pub mod breaker;
pub mod digest;
pub mod fault;
pub mod handoff;
pub mod journal;
pub mod level;
pub mod limits;
pub mod linear;
pub mod log_line;
pub mod marker;
pub mod memory;
pub mod promise;
pub mod prompt;
pub mod reading;
pub mod record;
pub mod settings;
pub mod size;
pub mod state;
pub mod status;
pub mod statusline;
pub mod text;
pub mod todo;
pub mod turn;
pub mod verdict;

pub use fault::Fault;
pub use level::{Level, Marks};
pub use marker::Marker;
pub use reading::{Reading, Window};
pub use record::SessionRecord;
pub use settings::Settings;
pub use state::RunState;
pub use status::Status;
pub use todo::TodoList;
pub use turn::Turn;
pub use verdict::{Ending, Exit, Verdict};
