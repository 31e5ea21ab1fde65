//! RULE: nouns. Plain data with its parsing and rendering: no disk, no clock, no decision.
//!
//! The types here are what the files hold: the run's state ([`state`]), a session's record ([`record`]), the journal
//! ([`journal`]), the plan ([`todo`]), handoffs, turns, the working memory, settings. Parsing never fails on a field that
//! another version wrote: what is unknown is kept where a file is written back, and is [`journal::JournalEvent::Unknown`] in
//! the journal. What is absent is absent, never guessed. An enum has its words in one place, and its readers match on all of
//! it, so a new variant does not compile until each reader has a word for it.
//!
//! Files that are rewritten bear the number of their [`format`]: what a newer version wrote is refused, not misread.
//!
//! Limits: it does not promise that what a file says is true. The files are in the project, where an agent can write them;
//! [`authority`] says which fields a project's copy may set.
//!
//! ```
//! use plimsoll_domain::TodoList;
//! use plimsoll_domain::journal::{JournalEntry, JournalEvent, Line};
//!
//! let plan = TodoList::parse("- [x] Parse the file\n- [ ] Convert it\n  > the header has 12 bytes\n");
//! assert_eq!(plan.open(), ["Convert it"]);
//! assert_eq!(plan.items[1].notes, ["the header has 12 bytes"]);
//!
//! let line = JournalEntry::new(JournalEvent::SetAside { item: "Convert it".into() }).to_line();
//! assert!(matches!(&Line::read(line.as_bytes())[..], [Line::Entry(entry)] if entry.event.name() == "set_aside"));
//! assert!(matches!(&Line::read(b"an agent wrote this")[..], [Line::Foreign(_)]));
//! ```

pub mod added_notes;
pub mod board;
pub mod breaker;
pub mod build;
pub mod changed_check;
pub mod checkbox;
pub mod claims;
mod continue_kind;
pub mod cost;
pub mod digest;
pub mod exit_status;
pub mod fatal;
pub mod fault;
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
pub mod last_judgement;
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
pub mod resume;
pub mod review;
pub mod run_figures;
pub mod settings;
pub mod size;
pub mod state;
pub mod status;
pub mod statusline;
pub mod subagent_usage;
pub mod taken_back;
pub mod text;
pub mod time;
pub mod todo;
pub mod todo_without_boxes;
pub mod turn;
pub mod verdict;
pub mod workers;

pub use fault::Fault;
pub use ids::{RunId, SessionId};
pub use level::{Level, Thresholds};
pub use marker::Marker;
pub use reading::{Reading, Window};
pub use record::SessionRecord;
pub use settings::Settings;
pub use state::RunState;
pub use status::Status;
pub use time::Timestamp;
pub use todo::TodoList;
pub use turn::Turn;
pub use verdict::{Ending, Exit, Verdict};
