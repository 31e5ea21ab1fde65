//! The score of a simulation.

use super::price::TokenCounts;
use super::task::Task;
use plimsoll_testkit::world::World;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of one simulation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SimulationScore {
    /// Items that can be done: all except one that needs an answer.
    pub items: u32,
    /// Items that pass the hidden check, ticked or not.
    pub passing: u32,
    /// Items that are ticked and do not pass the hidden check.
    pub false_ticks: u32,
    /// False ticks that the project's own test finds.
    #[serde(rename = "findable")]
    pub false_ticks_found_by_test: u32,
    /// Items with a line that was converted more than once.
    #[serde(rename = "twice")]
    pub twice_converted_items: u32,
    /// True if the question of the item that needs an answer is in the plan; `None` if no item needs one.
    #[serde(rename = "question")]
    pub is_question_asked: Option<bool>,
    /// Facts that an item's result needed and that an earlier conversation had found: those still visible, and
    /// all.
    #[serde(rename = "facts")]
    pub needed_facts_visible_and_all: (u32, u32),
    /// Cases in which a decision or dead end of an earlier conversation was needed, which is in no file of the
    /// project: those in which it was still visible, those in which a search found it, and all.
    #[serde(default, rename = "learned")]
    pub learned_facts_visible_found_all: (u32, u32, u32),
    /// True if the project's test differs from its initial version.
    #[serde(default)]
    pub is_test_changed: bool,
    /// Sessions with at least one answer.
    pub sessions: u32,
    /// Compactions by the client.
    pub compactions: u32,
    /// Tokens of all answered requests.
    pub tokens: TokenCounts,
    /// Runs of the project's test.
    #[serde(rename = "tests")]
    pub test_runs: u32,
    /// Faults that occurred.
    #[serde(rename = "troubles")]
    pub faults: u32,
    /// Hours from the start of the simulation to its end.
    pub hours: f64,
    /// Hours from each fault to the next answer.
    #[serde(rename = "lost")]
    pub hours_without_answers: f64,
    #[serde(skip)]
    first_conversation_by_fact: BTreeMap<String, u32>,
}

impl SimulationScore {
    /// Records the first conversation that contained each fact.
    pub(super) fn record_first_conversation_of_facts(
        &mut self,
        facts: &BTreeMap<String, String>,
        conversation_number: u32,
    ) {
        for name in facts.keys() {
            self.first_conversation_by_fact.entry(name.clone()).or_insert(conversation_number);
        }
    }

    /// Counts the facts that an item's result needs, and those of them that are visible. Ignores facts that no
    /// earlier conversation found.
    pub(super) fn count_needed_facts_found_earlier(
        &mut self,
        fact_names: &[String],
        visible_facts: &BTreeMap<String, String>,
        conversation_number: u32,
    ) {
        for name in fact_names.iter().filter(|name| {
            self.first_conversation_by_fact
                .get(*name)
                .is_some_and(|first_conversation| *first_conversation < conversation_number)
        }) {
            self.needed_facts_visible_and_all.1 += 1;
            self.needed_facts_visible_and_all.0 += u32::from(visible_facts.contains_key(name));
        }
    }

    /// Counts a learned fact that is needed now. Returns true if an earlier conversation learned it and it is no
    /// longer visible.
    pub(super) fn count_learned_fact_and_check_if_lost(
        &mut self,
        name: &str,
        is_visible: bool,
        conversation_number: u32,
    ) -> bool {
        let was_learned_earlier = self
            .first_conversation_by_fact
            .get(name)
            .is_some_and(|first_conversation| *first_conversation < conversation_number);
        self.learned_facts_visible_found_all.0 += u32::from(was_learned_earlier && is_visible);
        self.learned_facts_visible_found_all.2 += u32::from(was_learned_earlier);
        was_learned_earlier && !is_visible
    }

    pub(super) fn count_passing_items_and_false_ticks(&mut self, task: &Task, world: &World) {
        let project = world.project();
        self.is_test_changed = task.is_test_changed(&project);
        let (ticked_items, failing_files) = (task.ticked_items(&project), task.files_failing_test(world));
        for item in &task.items {
            let passes = task.is_converted_once_and_result_correct(&project, item);
            let is_false_tick =
                !passes && ticked_items.iter().any(|ticked_item| ticked_item.file == item.file);
            self.items += u32::from(!item.needs_answer);
            self.passing += u32::from(passes);
            self.false_ticks += u32::from(is_false_tick);
            self.false_ticks_found_by_test += u32::from(is_false_tick && failing_files.contains(&item.file));
            self.twice_converted_items +=
                u32::from(task.count_marked_lines_in_item_file(&project, item).double_marked_lines > 0);
            if item.needs_answer {
                self.is_question_asked = Some(task.is_question_in_plan(&project, item));
            }
        }
    }

    /// Returns true if every item that can be done passes and no tick is false.
    pub fn is_fully_correct(&self) -> bool {
        self.passing == self.items && self.false_ticks == 0
    }
}
