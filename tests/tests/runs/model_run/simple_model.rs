//! A simple model of a run: the order in which the gate decides (`crates/flows/src/run/README.md`), and nothing else of
//! the program.

use super::random_runs::{
    ContextUsage, Interruption, RunScenario, ScriptedSession, SessionEnding, SessionWork,
};

const IDLE_SESSION: ScriptedSession = ScriptedSession {
    work: SessionWork::Nothing,
    fill: ContextUsage::Low,
    end: SessionEnding::PlainMessage,
    accident: Interruption::None,
};

/// Expected state of a run, as far as the design specifies it.
pub struct RunModel {
    scenario: RunScenario,
    open_items: Vec<String>,
    done_items: Vec<String>,
    removed_items: Vec<String>,
    iteration: u32,
    session_count: usize,
    unchanged_count: u32,
    refused_count: u32,
    /// Consecutive sessions that lacked only the promise and should have made it.
    missing_promise_count: u32,
    /// An item was ticked in this iteration, perhaps by a session that was not counted.
    has_ticked: bool,
    /// A session that was not counted has changed something, which counts as the work of the iteration.
    has_uncounted_change: bool,
    is_cancelled: bool,
    pub is_over: bool,
    /// The item for which a file was changed.
    unfinished_item: Option<String>,
    /// Items that wait for an answer, which nobody gives in these runs.
    parked_items: Vec<String>,
}

/// Consecutive sessions without progress, or with a refused promise, at which the breaker opens.
pub const BREAKER_LIMIT: u32 = 3;

impl RunModel {
    pub fn for_scenario(scenario: &RunScenario) -> RunModel {
        RunModel {
            open_items: (1..=scenario.items).map(|number| format!("Item {number}")).collect(),
            scenario: scenario.clone(),
            done_items: Vec::new(),
            removed_items: Vec::new(),
            iteration: 0,
            session_count: 0,
            unchanged_count: 0,
            refused_count: 0,
            missing_promise_count: 0,
            has_ticked: false,
            has_uncounted_change: false,
            is_cancelled: false,
            is_over: false,
            unfinished_item: None,
            parked_items: Vec::new(),
        }
    }

    /// Returns true if every open item waits for an answer.
    fn is_every_open_item_parked(&self) -> bool {
        !self.open_items.is_empty() && self.open_items.iter().all(|item| self.parked_items.contains(item))
    }

    /// Parks the item of a blocked session, or the next one if that is done. Returns false if no item is open.
    fn park_item(&mut self, item: &str) -> bool {
        let named_item = self.open_items.iter().find(|open| *open == item);
        let next_unparked_item = || self.open_items.iter().find(|open| !self.parked_items.contains(open));
        let parked_item = named_item.or_else(next_unparked_item).cloned();
        self.parked_items.extend(parked_item);
        !self.open_items.is_empty()
    }

    /// Returns the items that the prompt may name.
    pub fn open_items(&self) -> &[String] {
        &self.open_items
    }

    /// Returns the open items as the run knows them. An emptied plan counts as missing and proves nothing.
    pub fn open_items_known_to_run(&self) -> &[String] {
        let last = self.removed_items.len().saturating_sub(1);
        if self.is_plan_emptied() { &self.removed_items[last..] } else { &self.open_items }
    }

    fn is_plan_emptied(&self) -> bool {
        self.open_items.is_empty() && self.done_items.is_empty()
    }

    /// Restores an emptied plan, as the run does before a session and before it judges one.
    pub fn restore_emptied_plan(&mut self) {
        if self.is_plan_emptied() {
            self.open_items.extend(self.removed_items.pop());
        }
    }

    /// Returns true if this item is open and a file was changed for it.
    pub fn is_item_started(&self, item: &str) -> bool {
        self.unfinished_item.as_deref() == Some(item) && self.open_items.iter().any(|open| open == item)
    }

    pub fn done_items(&self) -> &[String] {
        &self.done_items
    }

    /// Simulates one more session, which was given this item. Returns the iteration and the beginning of its verdict.
    pub fn simulate_session(&mut self, item: &str) -> (u32, &'static str) {
        assert!(!self.is_over, "a session of a run that is over");
        let session = self.scenario.sessions.get(self.session_count).copied().unwrap_or(IDLE_SESSION);
        self.session_count += 1;
        self.iteration += 1;
        let number = self.session_count;
        let has_finished_item = self.apply_work(session.work, item, number);
        self.unfinished_item = match session.work {
            SessionWork::ChangesFile | SessionWork::AddsItem => Some(item.to_owned()),
            SessionWork::Nothing => self.unfinished_item.take(),
            SessionWork::FinishesItem | SessionWork::RemovesItem => None,
        };
        self.is_cancelled |= session.accident == Interruption::Cancelled;
        // The session is judged by the restored plan; a run that has ended leaves everything as it is.
        if !self.is_cancelled {
            self.restore_emptied_plan();
        }
        let ends_blocked = session.fill != ContextUsage::Emergency && session.end == SessionEnding::Blocked;
        let has_parked_item = ends_blocked && self.park_item(item);
        let verdict = self.expected_verdict(&session, has_finished_item, has_parked_item);
        let iteration = self.iteration;
        if verdict.starts_with("RALPH_PAUSE") {
            self.iteration -= 1;
        }
        self.is_over = verdict.starts_with("RALPH_STOP");
        (iteration, verdict)
    }

    fn apply_work(&mut self, work: SessionWork, item: &str, number: usize) -> bool {
        let item_index = self.open_items.iter().position(|open| open == item);
        match (work, item_index) {
            (SessionWork::FinishesItem, Some(place)) => self.done_items.push(self.open_items.remove(place)),
            (SessionWork::RemovesItem, Some(place)) => self.removed_items.push(self.open_items.remove(place)),
            (SessionWork::AddsItem, _) => self.open_items.push(format!("Found in {number}")),
            _ => {}
        }
        work == SessionWork::FinishesItem && item_index.is_some()
    }

    fn expected_verdict(
        &mut self,
        session: &ScriptedSession,
        has_finished_item: bool,
        has_parked_item: bool,
    ) -> &'static str {
        // A session that the hook has ended sends no last message.
        let end =
            if session.fill == ContextUsage::Emergency { SessionEnding::PlainMessage } else { session.end };
        let has_changed = has_finished_item
            || matches!(
                session.work,
                SessionWork::ChangesFile | SessionWork::RemovesItem | SessionWork::AddsItem
            );
        let has_changed = std::mem::replace(&mut self.has_uncounted_change, false) || has_changed;
        let has_ticked = self.has_ticked || has_finished_item;
        self.has_ticked = end == SessionEnding::Overloaded && has_ticked;
        // An item that was added during the run may be removed again; one of the original plan may not.
        let is_item_missing = self.removed_items.iter().any(|item| !item.starts_with("Found in "));
        let may_complete = self.open_items.is_empty() && !is_item_missing;
        let ends_normally = session.fill != ContextUsage::Emergency
            && matches!(end, SessionEnding::PlainMessage | SessionEnding::WrongPromise);
        let is_wrong_promise = session.fill != ContextUsage::Emergency && end == SessionEnding::WrongPromise;
        let lacks_only_promise = may_complete && ends_normally;
        match (may_complete, lacks_only_promise) {
            (false, _) => self.missing_promise_count = 0,
            (true, true) => self.missing_promise_count += 1,
            (true, false) => {}
        }
        match end {
            _ if self.is_cancelled => return "RALPH_STOP|cancelled|",
            SessionEnding::Promise if may_complete => return "RALPH_STOP|completed|",
            _ if self.is_every_open_item_parked() => return "RALPH_STOP|blocked|no way (item \"",
            _ if lacks_only_promise && self.missing_promise_count >= 2 => {
                return "RALPH_STOP|blocked|every item";
            }
            SessionEnding::Blocked if !has_parked_item => return "RALPH_STOP|blocked|no way",
            SessionEnding::LoggedOut => return "RALPH_STOP|fatal_error|",
            SessionEnding::Overloaded => {
                self.has_uncounted_change = has_changed;
                return "RALPH_PAUSE|-|overloaded";
            }
            _ => {}
        }
        let is_refused = end == SessionEnding::Promise || is_wrong_promise;
        // A session that lacked only the promise had nothing to change. A finished item counts however the session
        // ends.
        if has_ticked || !lacks_only_promise && !has_parked_item {
            self.unchanged_count = if has_changed { 0 } else { self.unchanged_count + 1 };
            self.refused_count = if is_refused && !has_finished_item { self.refused_count + 1 } else { 0 };
        }
        if self.iteration >= self.scenario.max_iterations {
            "RALPH_STOP|max_iterations|"
        } else if self.unchanged_count >= BREAKER_LIMIT || self.refused_count >= BREAKER_LIMIT {
            "RALPH_STOP|circuit_breaker|"
        } else if has_parked_item {
            "RALPH_CONTINUE|next|"
        } else if is_refused {
            "RALPH_CONTINUE|refused|"
        } else if session.fill != ContextUsage::Low {
            "RALPH_CONTINUE|checkpoint|"
        } else {
            "RALPH_CONTINUE|"
        }
    }
}
