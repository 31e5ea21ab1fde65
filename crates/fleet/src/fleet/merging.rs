//! What the merger does, what holds for the whole plan, and what has landed.

use super::{Change, Fleet, Rows};
use crate::fault::FleetError;
use crate::rows::commit;
use plimsoll_domain::board::Moment;
use plimsoll_policy::workers;
use postgres::types::Type;
use std::collections::HashSet;
use std::time::Duration;

const DOING: &str = "count items as merged";
const LANDINGS: &str = "
    select distinct unnest(landings) as sha from plimsoll.item where plan = $1 and stage <> 'merged' and landings <> '{}'";

impl Fleet {
    /// Makes one merger of several: the epoch with which it says everything.
    pub fn become_merger(&mut self, name: &str) -> Result<Option<u64>, FleetError> {
        let change = Change { doing: "become the merger", kind: "merger", detail: name };
        self.decide(change, Rows::Plan, |part, now| Ok(workers::become_merger(&mut part.board, name, now)))
    }

    /// Writes down the commit by which an offered item is about to land. Only then may the target move.
    pub fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), FleetError> {
        let change = Change { doing: "write down a landing", kind: "landing", detail: commit };
        self.decide(change, Rows::PlanAnd(item), |part, _| {
            let place = part.place_of(item);
            workers::land(&mut part.board, merger, place, commit)
        })
    }

    /// Every commit by which somebody was about to land what is not merged.
    pub fn landings(&mut self) -> Result<Vec<String>, FleetError> {
        self.database.read(DOING, LANDINGS, &[(&self.plan, Type::INT8)], |row| commit(row, "sha"))
    }

    /// Counts as merged whatever has one of these commits.
    pub fn settle_landed(&mut self, landed: &HashSet<String>) -> Result<Vec<usize>, FleetError> {
        if landed.is_empty() {
            return Ok(Vec::new());
        }
        let change = Change { doing: DOING, kind: "merged", detail: "" };
        self.decide(change, Rows::Landing, |part, _| {
            let settled = workers::settle(&mut part.board, |commit| landed.contains(commit));
            Ok(settled.into_iter().map(|place| part.places[place]).collect())
        })
    }

    /// Holds everything for a time from now: the clock of the machine that met the limit may be wrong. A later end counts.
    pub fn pause(&mut self, length: Duration) -> Result<(), FleetError> {
        let length = Moment::try_from(length.as_millis()).unwrap_or(Moment::MAX);
        let change = Change { doing: "pause the plan", kind: "paused", detail: "" };
        self.decide(change, Rows::Plan, |part, now| {
            workers::pause(&mut part.board, now.saturating_add(length));
            Ok(())
        })
    }
}
