//! The results of a night.

use super::price::Tokens;
use super::task::Task;
use plimsoll_testkit::world::World;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of one night.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Score {
    /// Items that can be done: all but one that needs an answer.
    pub items: u32,
    /// Of these, those that pass the hidden check, ticked or not.
    pub passing: u32,
    /// Items that are ticked and do not pass it.
    pub false_ticks: u32,
    /// Of these, those that the project's own test finds.
    pub findable: u32,
    /// Items with a line that was converted more than once.
    pub twice: u32,
    /// Whether an item needs an answer, and whether its question stands in the plan.
    pub question: Option<bool>,
    /// Facts that the end of an item needed and an earlier conversation had found: those in sight, and all.
    pub facts: (u32, u32),
    /// Times when a decision or a dead end of an earlier conversation mattered, which stand in no file of the project: it was in
    /// sight, it was found by a search, and all.
    #[serde(default)]
    pub learned: (u32, u32, u32),
    /// True if the project's test is no longer as it was in the evening.
    #[serde(default)]
    pub is_test_changed: bool,
    /// Sessions that asked for an answer.
    pub sessions: u32,
    /// The client's own compactions.
    pub compactions: u32,
    /// Tokens of all answered requests.
    pub tokens: Tokens,
    /// Runs of the project's test.
    pub tests: u32,
    /// What went wrong on the way.
    pub troubles: u32,
    /// Hours from the evening to the end.
    pub hours: f64,
    /// Of these, from each trouble to the next answer.
    pub lost: f64,
    #[serde(skip)]
    found: BTreeMap<String, u32>,
}

impl Score {
    /// Records the facts that appear for the first time.
    pub(super) fn see(&mut self, facts: &BTreeMap<String, String>, epoch: u32) {
        for name in facts.keys() {
            self.found.entry(name.clone()).or_insert(epoch);
        }
    }

    /// An item's end needs facts: those found in an earlier conversation count.
    pub(super) fn needed(&mut self, needs: &[String], in_sight: &BTreeMap<String, String>, epoch: u32) {
        for name in needs.iter().filter(|name| self.found.get(*name).is_some_and(|found| *found < epoch)) {
            self.facts.1 += 1;
            self.facts.0 += u32::from(in_sight.contains_key(name));
        }
    }

    /// Records that a learned fact matters now. Returns true if an earlier conversation learned it and it is not in sight.
    pub(super) fn record_need(&mut self, name: &str, is_in_sight: bool, epoch: u32) -> bool {
        let is_earlier = self.found.get(name).is_some_and(|found| *found < epoch);
        self.learned.0 += u32::from(is_earlier && is_in_sight);
        self.learned.2 += u32::from(is_earlier);
        is_earlier && !is_in_sight
    }

    pub(super) fn look_at(&mut self, task: &Task, world: &World) {
        let project = world.project();
        self.is_test_changed = task.is_test_changed(&project);
        let (ticked, failing) = (task.ticked(&project), task.found_by_test(world));
        for item in &task.items {
            let passes = task.passes(&project, item);
            let is_false = !passes && ticked.iter().any(|one| one.file == item.file);
            self.items += u32::from(!item.asks);
            self.passing += u32::from(passes);
            self.false_ticks += u32::from(is_false);
            self.findable += u32::from(is_false && failing.contains(&item.file));
            self.twice += u32::from(task.standing(&project, item).doubled > 0);
            if item.asks {
                self.question = Some(task.is_asked(&project, item));
            }
        }
    }

    /// Whether every item that can be done passes, and no tick is false.
    pub fn is_right(&self) -> bool {
        self.passing == self.items && self.false_ticks == 0
    }
}
