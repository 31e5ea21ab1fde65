//! Simulated runs with a harder task. They measure how well a session is told where the previous one stopped:
//! items of several steps in several files, agents with different habits, users who change files between two
//! sessions. The first request of every session is compared with what was really done.
//!
//! The agent knows which steps an item has. About the current state it knows only what its requests say: if
//! they name the wrong location, it works at the wrong location.

mod agent;
mod closing_messages;
mod file_changes;
mod ledger;
mod prompt_parser;
mod resume_score;
mod style;
#[cfg(test)]
mod tests;
mod work;

pub use ledger::UserChange;
pub use resume_score::ResumeScore;
pub use style::{AgentStyle, CommitTiming, EditTools, FolderKind, PromiseFlaw};
pub use work::SimulatedWork;

use agent::Agent;
use plimsoll_testkit::SeededRng;
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The delay of each answer. As with a real model, it is longer than the delay of the client's transcript
/// writer.
const THINKING_TIME: Duration = Duration::from_millis(150);

/// The results of a simulated run, apart from its resumes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SimulationResults {
    /// The number of items in the plan.
    pub items: u32,
    /// Items that are ticked and have every step made.
    pub done: u32,
    /// Items that are ticked although a step is missing.
    #[serde(rename = "ticked_undone")]
    pub ticked_with_missing_steps: u32,
    /// Steps that were made twice.
    #[serde(rename = "steps_twice")]
    pub repeated_steps: u32,
    /// Items that were begun again from their first step.
    #[serde(rename = "begun_twice")]
    pub restarted_items: u32,
    /// How often a session returned to a finished item.
    #[serde(rename = "reopened")]
    pub returns_to_finished_items: u32,
    /// Sessions that sent at least one request.
    pub sessions: u32,
}

/// A handle to a simulated run, during it and after its end.
#[derive(Clone)]
pub struct SimulationHandle {
    agent: Arc<Mutex<Agent>>,
}

impl SimulationHandle {
    /// Starts a model whose agent does this work in this project.
    pub fn start_model(
        work: SimulatedWork,
        style: AgentStyle,
        project: PathBuf,
        rng: SeededRng,
    ) -> (ScriptedModel, SimulationHandle) {
        let agent = Agent::new(work, style, project, rng);
        let handle = SimulationHandle { agent: Arc::new(Mutex::new(agent)) };
        let handle_for_model = handle.clone();
        let model = ScriptedModel::start_for_all_requests(move |request| match request.kind {
            RequestKind::Main => Some(
                handle_for_model.lock().answer_with_step_or_usage_limit(request).with_delay(THINKING_TIME),
            ),
            RequestKind::Compaction | RequestKind::Subagent | RequestKind::Auxiliary => None,
        });
        (model, handle)
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file in which the next session should continue, and whether its item also has steps left
    /// in other files.
    pub fn file_in_progress(&self) -> Option<(String, bool)> {
        let agent = self.lock();
        let truth = agent.ground_truth_for_next_session()?;
        let file = truth.last_edited_file?;
        let steps = &agent.work.items[truth.item].steps;
        let has_other_files = steps.iter().enumerate().any(|(step, operation)| {
            operation.affected_file() != file
                && agent.ledger.is_step_pending_and_possible(&agent.work, truth.item, step)
        });
        Some((file, has_other_files))
    }

    /// Records a change by the user, which the next session's prompt must mention.
    pub fn record_user_change(&self, change: UserChange) {
        let mut agent = self.lock();
        agent.user_changes.push(change.clone());
        agent.ledger.user_changes.push(change);
    }

    /// Returns true if an item is open.
    pub fn has_open_item(&self) -> bool {
        let agent = self.lock();
        agent.ledger.first_open_item(&agent.work).is_some()
    }

    /// Returns the score of each resumed session.
    pub fn resume_scores(&self) -> Vec<ResumeScore> {
        self.lock().resume_scores.clone()
    }

    /// Returns the results of the run so far.
    pub fn results(&self) -> SimulationResults {
        let agent = self.lock();
        let mut results = agent.results.clone();
        for item in (0..agent.work.items.len()).filter(|item| agent.ledger.is_item_ticked(&agent.work, *item))
        {
            let are_all_steps_done = (0..agent.work.items[item].steps.len())
                .all(|step| !agent.ledger.is_step_pending_and_possible(&agent.work, item, step));
            results.done += u32::from(are_all_steps_done);
            results.ticked_with_missing_steps += u32::from(!are_all_steps_done);
        }
        results
    }
}
