//! A connection to the board that the machines of a fleet share: what is asked over it, and what is answered. [`FleetBoard`] asks;
//! the crate `fleet` answers, out of a database.
//!
//! [`FleetBoard`]: super::board::FleetBoard

use crate::workers::error::BoardError;
use plimsoll_domain::board::{BoardItem, BoardState, Moment};
use plimsoll_domain::workers::ItemResult;
use plimsoll_policy::workers::Claim;
use std::time::Duration;

/// An item as the shared board has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedItem {
    /// Its row.
    pub row: BoardItem,
    /// Where the next attempt begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
    /// Its last question and the user's answer.
    pub answered: Option<(String, String)>,
}

/// The shared board at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// By the board's clock.
    pub now: Moment,
    /// What holds for all; without items.
    pub whole: BoardState,
    /// The items that are not merged, by their places.
    pub items: Vec<(usize, SharedItem)>,
    /// Verify commands that have passed on the target.
    pub passed: Vec<String>,
    /// Nothing new is begun.
    pub is_draining: bool,
    /// Why nothing may be begun any more.
    pub used_up: Option<UsedUp>,
    /// Why it is over.
    pub ended: Option<Ended>,
}

/// Why a fleet is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything is merged.
    Done,
    /// Somebody stopped it.
    Stopped,
}

/// What a worker may still use of what the plan may.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reserved {
    /// So many dollars and sessions more; none where the plan has no limit.
    Share {
        /// US dollars.
        usd: Option<f64>,
        /// Sessions of its present item.
        sessions: Option<u32>,
    },
    /// The rest is others' until they end.
    Later,
    /// Nothing is left.
    Nothing(UsedUp),
}

/// What a fleet has used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsedUp {
    /// So many dollars are spent of so many.
    Money(f64, f64),
    /// So many sessions have begun.
    Sessions(u64),
}

/// Why an offered item goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The merger's epoch.
    pub merger: u64,
    /// The item.
    pub item: usize,
    /// What its next session is told.
    pub note: String,
    /// Where its next attempt begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
}

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerNews {
    /// From 1, on this machine.
    pub worker: usize,
    /// At work on this item.
    pub item: Option<usize>,
    /// The session.
    pub session: String,
    /// How full it is.
    pub percent: Option<u64>,
    /// What it has cost from its beginning on.
    pub cost_usd: f64,
}

/// A connection to a shared board. The board's moments are by its own clock.
pub trait BoardConnection: Send {
    /// How it is now.
    fn look(&mut self) -> Result<Look, BoardError>;
    /// The first item that this worker can begin, with how it is.
    fn claim(&mut self, worker: &str) -> Result<Option<(Claim, SharedItem)>, BoardError>;
    /// Keeps an item for its worker.
    fn renew(&mut self, claim: Claim) -> Result<(), BoardError>;
    /// Takes what has become of an item.
    fn tell(&mut self, result: &ItemResult) -> Result<(), BoardError>;
    /// Holds everything for so long.
    fn pause(&mut self, length: Duration) -> Result<(), BoardError>;
    /// Makes one merger of several.
    fn become_merger(&mut self, name: &str) -> Result<Option<u64>, BoardError>;
    /// Keeps the merger's lease.
    fn renew_merger(&mut self, merger: u64) -> Result<(), BoardError>;
    /// Lets another be the merger.
    fn step_down(&mut self, merger: u64) -> Result<(), BoardError>;
    /// Writes down the commit by which an item is about to land.
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), BoardError>;
    /// Writes down a commit by which an item has landed, where that was lost: the board is a backup's.
    fn found(&mut self, item: usize, commit: &str) -> Result<(), BoardError>;
    /// Gives an offered item back.
    fn refuse(&mut self, refused: &Refused) -> Result<(), BoardError>;
    /// Counts as merged what is in the target.
    fn settle(&mut self, is_in_target: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError>;
    /// Keeps which verify commands have passed on the target.
    fn note_passed(&mut self, commands: &[String]) -> Result<(), BoardError>;
    /// Keeps what a worker says of itself, and sets aside what it may use next, of what is left for all. Its item has taken so many
    /// sessions that were not told yet.
    fn reserve(&mut self, news: &WorkerNews, sessions: u32, least_usd: f64) -> Result<Reserved, BoardError>;
    /// Keeps what a worker says of itself.
    fn report(&mut self, news: &WorkerNews) -> Result<(), BoardError>;
    /// Says that everything is merged.
    fn end(&mut self) -> Result<(), BoardError>;
}
