//! RULE: nouns. Plain data with its parsing and rendering: no disk access, no clock, no decisions.
//!
//! The types here describe the contents of files: the run's state ([`state`]), a session's record
//! ([`record`]), the journal ([`journal`]), the plan ([`todo`]), handoffs, turns, the working memory,
//! settings. Parsing never fails on a field of another version: unknown fields are kept if the file is
//! written back, and an unknown event is a [`journal::JournalEvent::Unknown`]. Missing values stay missing
//! and are never guessed. Each enum defines its names in one place, and readers match all variants, so a new
//! variant does not compile until every reader handles it.
//!
//! Files that are rewritten contain a [`format`] number. A file from a newer version is refused rather than
//! misread.
//!
//! Limits: this crate does not guarantee that a file tells the truth. The files are in the project, where an
//! agent can write them; `plimsoll_store::authority` says which fields a project's copy may set.
//!
//! ```
//! use plimsoll_domain::TodoList;
//! use plimsoll_domain::journal::{JournalEntry, JournalEvent, JournalLine};
//!
//! let plan = TodoList::parse("- [x] Parse the file\n- [ ] Convert it\n  > the header has 12 bytes\n");
//! assert_eq!(plan.open_items(), ["Convert it"]);
//! assert_eq!(plan.items[1].notes, ["the header has 12 bytes"]);
//!
//! let line = JournalEntry::new(JournalEvent::SetAside { item: "Convert it".into() }).to_line();
//! assert!(matches!(
//!     &JournalLine::parse_line_and_appended_entry(line.as_bytes())[..],
//!     [JournalLine::Entry(entry)] if entry.event.name() == "set_aside"
//! ));
//! assert!(matches!(
//!     &JournalLine::parse_line_and_appended_entry(b"an agent wrote this")[..],
//!     [JournalLine::Foreign(_)]
//! ));
//! ```

pub mod added_notes;
pub mod board;
pub mod breaker;
pub mod build;
pub mod changed_check;
pub mod checkbox;
mod continue_kind;
pub mod cost;
pub mod digest;
pub mod exit_status;
pub mod fatal_error;
pub mod file_names;
pub mod forecast;
pub mod format;
pub mod git_names;
pub mod handoff;
pub mod ids;
pub mod item_area;
pub mod item_brief;
pub mod item_check;
pub mod item_model;
pub mod item_notes;
mod item_property;
pub mod item_set;
pub mod journal;
pub mod last_gate_judgment;
pub mod level;
pub mod limits;
pub mod linear;
pub mod log_line;
mod markdown_lines;
pub mod marker;
pub mod memory;
pub mod plan_edit;
pub mod plan_fix;
pub mod plan_remarks;
pub mod promise;
pub mod prompt;
pub mod protected;
pub mod question;
pub mod reading;
pub mod receipt;
pub mod record;
pub mod recorded_hook_failure;
pub mod remaining_work;
pub mod resume;
pub mod reverted_ticks;
pub mod review;
pub mod run_figures;
pub mod settings;
pub mod size;
pub mod state;
pub mod status;
pub mod statusline;
pub mod subagent_usage;
pub mod text;
pub mod time;
pub mod todo;
pub mod todo_without_boxes;
pub mod turn;
pub mod untrusted_text;
pub mod verdict;
pub mod workers;

pub use ids::{RunId, SessionId};
pub use level::{Level, Thresholds};
pub use marker::Marker;
pub use reading::{UsageReading, WindowSize};
pub use record::SessionRecord;
pub use recorded_hook_failure::RecordedHookFailure;
pub use settings::Settings;
pub use state::RunState;
pub use status::RunStatus;
pub use time::Timestamp;
pub use todo::TodoList;
pub use turn::Turn;
pub use verdict::{ProcessExit, SessionEnding, Verdict};
