//! The results of a night.

use super::task::{Item, Task};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The figures of one night.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Score {
    /// Items in the list.
    pub items: u32,
    /// Ticked items whose file is converted from the first line to the last.
    pub done: u32,
    /// Ticked items with a part missing.
    pub ticked_undone: u32,
    /// Items with a part that was done more than once.
    pub twice: u32,
    /// Lines that were done more than once.
    pub lines_twice: u32,
    /// Items whose end was written with every fact right.
    pub right: u32,
    /// Facts of the current item that were found in an earlier conversation: those in the context when they were needed,
    /// and all.
    pub own: (u32, u32),
    /// Facts of an earlier item.
    pub common: (u32, u32),
    /// Facts that were not in the context although an agent had written them down.
    #[serde(default)]
    pub dropped: u32,
    /// Conversations that began in the middle of an item: those at the right file and line, and all.
    pub resumes: (u32, u32),
    /// Sessions that asked for an answer.
    pub sessions: u32,
    /// The client's own compactions.
    pub compactions: u32,
    /// Tokens sent in all answered requests, a token for four bytes.
    pub sent: u64,
    /// What went wrong on the way.
    pub troubles: u32,
    found: BTreeMap<String, u32>,
    #[serde(default)]
    written: BTreeSet<String>,
}

impl Score {
    /// Records the facts that appear for the first time, and returns their names.
    pub(super) fn see(&mut self, facts: &BTreeMap<String, String>, epoch: u32) -> Vec<String> {
        let new: Vec<String> = facts.keys().filter(|name| !self.found.contains_key(*name)).cloned().collect();
        self.found.extend(new.iter().map(|name| (name.clone(), epoch)));
        new
    }

    /// Records that a fact was written where a later conversation can find it.
    pub(super) fn write_down(&mut self, name: &str) {
        self.written.insert(name.to_owned());
    }

    /// True if the fact is already written down.
    pub(super) fn is_written(&self, name: &str) -> bool {
        self.written.contains(name)
    }

    /// Scores the start of a conversation: `begun` is where the work stopped, `at` where the agent continues.
    pub(super) fn resumed(&mut self, begun: Option<(&str, u32)>, at: (&str, u32)) {
        if let Some(begun) = begun {
            self.resumes.1 += 1;
            self.resumes.0 += u32::from(begun == at);
        }
    }

    /// An item's end needs facts: those found in an earlier conversation count.
    pub(super) fn needed(
        &mut self,
        needs: &[String],
        in_sight: &BTreeMap<String, String>,
        file: &str,
        epoch: u32,
    ) {
        let crossed = needs.iter().filter(|name| self.found.get(*name).is_some_and(|found| *found < epoch));
        for name in crossed {
            let is_kept = in_sight.contains_key(name);
            let count = if name.starts_with(file) { &mut self.own } else { &mut self.common };
            count.1 += 1;
            count.0 += u32::from(is_kept);
            self.dropped += u32::from(!is_kept && self.written.contains(name));
        }
    }

    pub(super) fn look_at(&mut self, task: &Task, project: &Path) {
        let ticked = task.ticked(project);
        self.items = task.items.len() as u32;
        for item in &task.items {
            let standing = task.standing(project, item);
            let is_ticked = ticked.iter().any(|one| one.file == item.file);
            let is_whole = standing.marked == item.lines;
            self.done += u32::from(is_ticked && is_whole);
            self.ticked_undone += u32::from(is_ticked && !is_whole);
            self.twice += u32::from(standing.doubled > 0);
            self.lines_twice += standing.doubled;
            self.right += u32::from(is_ticked && is_right(task, project, item));
        }
    }

    /// Whether the list was done from its first line to its last, and no line twice.
    pub fn is_whole(&self) -> bool {
        self.done == self.items
    }
}

fn is_right(task: &Task, project: &Path, item: &Item) -> bool {
    let result = std::fs::read_to_string(project.join(format!("result-{}", item.file))).unwrap_or_default();
    item.needs.iter().all(|name| result.contains(&format!("{name}={}\n", task.facts[name])))
}
