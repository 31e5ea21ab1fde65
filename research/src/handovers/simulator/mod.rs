//! Harder nights, which measure how well a session is told where the previous one stopped: items of several steps in
//! several files, agents with different habits, users who change files in between. Every session's first request is
//! compared with what was really done.
//!
//! The agent knows which steps an item takes; about the current state it knows only what its requests say. If they name the
//! wrong place, it works at the wrong place.

mod agent;
mod deeds;
mod ledger;
mod style;
#[cfg(test)]
mod tests;
mod told;
mod verdict;
mod words;
mod work;

pub use ledger::ByPerson;
pub use style::{Commits, Folder, Hands, Sloppy, Style};
pub use verdict::Resume;
pub use work::Work;

use agent::Agent;
use plimsoll_testkit::Dice;
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A real model thinks longer than the client's transcript writer lags.
const THINKING: Duration = Duration::from_millis(150);

/// The results of a night, apart from its resumes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Morning {
    /// Items in the list.
    pub items: u32,
    /// Ticked, with every step made.
    pub done: u32,
    /// Ticked, and a step is missing.
    pub ticked_undone: u32,
    /// Steps that were made again.
    pub steps_twice: u32,
    /// Items that were begun again from their first step.
    pub begun_twice: u32,
    /// How often a session returned to a finished item.
    pub reopened: u32,
    /// Sessions that sent at least one request.
    pub sessions: u32,
}

/// A night while it is open and afterwards.
#[derive(Clone)]
pub struct Handover {
    agent: Arc<Mutex<Agent>>,
}

impl Handover {
    /// A model that does this work in this project.
    pub fn start(work: Work, style: Style, project: PathBuf, dice: Dice) -> (ScriptedModel, Handover) {
        let agent = Agent::new(work, style, project, dice);
        let handover = Handover { agent: Arc::new(Mutex::new(agent)) };
        let asked = handover.clone();
        let model = ScriptedModel::start_for_all(move |request| match request.kind {
            RequestKind::Main => Some(asked.lock().answer(request).delay(THINKING)),
            RequestKind::Compaction | RequestKind::Subagent | RequestKind::Side => None,
        });
        (model, handover)
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file in which the next session should continue; true if its item also has steps left in other files.
    pub fn file_in_progress(&self) -> Option<(String, bool)> {
        let agent = self.lock();
        let truth = agent.truth()?;
        let file = truth.file?;
        let steps = &agent.work.items[truth.item].steps;
        let others = steps
            .iter()
            .enumerate()
            .any(|(step, op)| op.file() != file && agent.ledger.is_left(&agent.work, truth.item, step));
        Some((file, others))
    }

    /// Records a change by the user, which the next session's prompt must mention.
    pub fn note_person(&self, deed: ByPerson) {
        let mut agent = self.lock();
        agent.people.push(deed.clone());
        agent.ledger.people.push(deed);
    }

    /// Whether an item is open.
    pub fn is_open(&self) -> bool {
        let agent = self.lock();
        agent.ledger.first_open(&agent.work).is_some()
    }

    /// How each session was told to continue.
    pub fn resumes(&self) -> Vec<Resume> {
        self.lock().resumes.clone()
    }

    /// The results.
    pub fn morning(&self) -> Morning {
        let agent = self.lock();
        let mut morning = agent.morning.clone();
        for item in (0..agent.work.items.len()).filter(|item| agent.ledger.is_ticked(&agent.work, *item)) {
            let is_whole = (0..agent.work.items[item].steps.len())
                .all(|step| !agent.ledger.is_left(&agent.work, item, step));
            morning.done += u32::from(is_whole);
            morning.ticked_undone += u32::from(!is_whole);
        }
        morning
    }
}
