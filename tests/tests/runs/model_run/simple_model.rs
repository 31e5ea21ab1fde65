//! A simple model of a run: the order in which the gate decides (`crates/flows/src/run/README.md`), and nothing else of the program.

use super::random_runs::{Accident, End, Fill, Night, Session, Work};

const QUIET: Session =
    Session { work: Work::Nothing, fill: Fill::Low, end: End::Says, accident: Accident::None };

/// What a run must be like, as far as the design says it.
pub struct Simple {
    night: Night,
    open: Vec<String>,
    done: Vec<String>,
    lost: Vec<String>,
    iteration: u32,
    sessions: usize,
    unchanged: u32,
    refused: u32,
    /// Sessions in a row after which only the promise was missing, and that should have made it.
    unpromised: u32,
    /// An item was ticked in this iteration, perhaps by a session that was not counted.
    has_ticked: bool,
    /// A session that was not counted has worked: that is the work of the iteration.
    has_moved_before: bool,
    is_cancelled: bool,
    pub is_over: bool,
    /// The item that a file was changed for.
    unfinished: Option<String>,
    /// Items that wait for an answer, which nobody gives.
    parked: Vec<String>,
}

/// Sessions in a row that the breaker bears.
pub const BORNE: u32 = 3;

impl Simple {
    pub fn of(night: &Night) -> Simple {
        Simple {
            open: (1..=night.items).map(|number| format!("Item {number}")).collect(),
            night: night.clone(),
            done: Vec::new(),
            lost: Vec::new(),
            iteration: 0,
            sessions: 0,
            unchanged: 0,
            refused: 0,
            unpromised: 0,
            has_ticked: false,
            has_moved_before: false,
            is_cancelled: false,
            is_over: false,
            unfinished: None,
            parked: Vec::new(),
        }
    }

    /// True if all that is open waits for an answer.
    fn is_stuck(&self) -> bool {
        !self.open.is_empty() && self.open.iter().all(|item| self.parked.contains(item))
    }

    /// A session that says it is blocked parks its item, or the next one if that is done.
    fn park(&mut self, item: &str) -> bool {
        let own = self.open.iter().find(|open| *open == item);
        let next = || self.open.iter().find(|open| !self.parked.contains(open));
        let parked = own.or_else(next).cloned();
        self.parked.extend(parked);
        !self.open.is_empty()
    }

    /// What its prompt may name.
    pub fn open(&self) -> &[String] {
        &self.open
    }

    /// The open items as the run knows them: a list that was emptied is as good as missing, and proves nothing.
    pub fn known_open(&self) -> &[String] {
        let last = self.lost.len().saturating_sub(1);
        if self.is_emptied() { &self.lost[last..] } else { &self.open }
    }

    fn is_emptied(&self) -> bool {
        self.open.is_empty() && self.done.is_empty()
    }

    /// A list that was emptied comes back: before a session, and before it is judged.
    pub fn prepare(&mut self) {
        if self.is_emptied() {
            self.open.extend(self.lost.pop());
        }
    }

    /// Is this item open, and begun?
    pub fn is_begun(&self, item: &str) -> bool {
        self.unfinished.as_deref() == Some(item) && self.open.iter().any(|open| open == item)
    }

    pub fn done(&self) -> &[String] {
        &self.done
    }

    /// One session more, which was told of this item. Answers with the iteration, and how its verdict begins.
    pub fn session(&mut self, item: &str) -> (u32, &'static str) {
        assert!(!self.is_over, "a session of a run that is over");
        let session = self.night.sessions.get(self.sessions).copied().unwrap_or(QUIET);
        self.sessions += 1;
        self.iteration += 1;
        let number = self.sessions;
        let has_finished = self.work(session.work, item, number);
        self.unfinished = match session.work {
            Work::Part | Work::Finds => Some(item.to_owned()),
            Work::Nothing => self.unfinished.take(),
            Work::Item | Work::Loses => None,
        };
        self.is_cancelled |= session.accident == Accident::Cancelled;
        // It is judged by the list that it should have left; a run that is over leaves everything as it is.
        if !self.is_cancelled {
            self.prepare();
        }
        let ends_blocked = session.fill != Fill::Emergency && session.end == End::Blocked;
        let has_asked = ends_blocked && self.park(item);
        let verdict = self.verdict(&session, has_finished, has_asked);
        let iteration = self.iteration;
        if verdict.starts_with("RALPH_PAUSE") {
            self.iteration -= 1;
        }
        self.is_over = verdict.starts_with("RALPH_STOP");
        (iteration, verdict)
    }

    fn work(&mut self, work: Work, item: &str, number: usize) -> bool {
        let place = self.open.iter().position(|open| open == item);
        match (work, place) {
            (Work::Item, Some(place)) => self.done.push(self.open.remove(place)),
            (Work::Loses, Some(place)) => self.lost.push(self.open.remove(place)),
            (Work::Finds, _) => self.open.push(format!("Found in {number}")),
            _ => {}
        }
        work == Work::Item && place.is_some()
    }

    fn verdict(&mut self, session: &Session, has_finished: bool, has_asked: bool) -> &'static str {
        // A session that the hook has ended says nothing more.
        let end = if session.fill == Fill::Emergency { End::Says } else { session.end };
        let has_moved = has_finished || matches!(session.work, Work::Part | Work::Loses | Work::Finds);
        let has_moved = std::mem::replace(&mut self.has_moved_before, false) || has_moved;
        let has_ticked = self.has_ticked || has_finished;
        self.has_ticked = end == End::Overloaded && has_ticked;
        // What was found on the way may be dropped again; what was there at the start may not.
        let is_missing = self.lost.iter().any(|item| !item.starts_with("Found in "));
        let may_complete = self.open.is_empty() && !is_missing;
        let ends_in_order =
            session.fill != Fill::Emergency && matches!(end, End::Says | End::PromisesWrongly);
        let is_missed = session.fill != Fill::Emergency && end == End::PromisesWrongly;
        let has_failed = may_complete && ends_in_order;
        match (may_complete, has_failed) {
            (false, _) => self.unpromised = 0,
            (true, true) => self.unpromised += 1,
            (true, false) => {}
        }
        match end {
            _ if self.is_cancelled => return "RALPH_STOP|cancelled|",
            End::Promises if may_complete => return "RALPH_STOP|completed|",
            _ if self.is_stuck() => return "RALPH_STOP|blocked|no way (item \"",
            _ if has_failed && self.unpromised >= 2 => return "RALPH_STOP|blocked|every item",
            End::Blocked if !has_asked => return "RALPH_STOP|blocked|no way",
            End::LoggedOut => return "RALPH_STOP|fatal_error|",
            End::Overloaded => {
                self.has_moved_before = has_moved;
                return "RALPH_PAUSE|-|overloaded";
            }
            _ => {}
        }
        let is_refused = end == End::Promises || is_missed;
        // One that only lacked the promise had nothing to move; whatever a session ends with, what it has finished counts.
        if has_ticked || !has_failed && !has_asked {
            self.unchanged = if has_moved { 0 } else { self.unchanged + 1 };
            self.refused = if is_refused && !has_finished { self.refused + 1 } else { 0 };
        }
        if self.iteration >= self.night.max_iterations {
            "RALPH_STOP|max_iterations|"
        } else if self.unchanged >= BORNE || self.refused >= BORNE {
            "RALPH_STOP|circuit_breaker|"
        } else if has_asked {
            "RALPH_CONTINUE|next|"
        } else if is_refused {
            "RALPH_CONTINUE|refused|"
        } else if session.fill != Fill::Low {
            "RALPH_CONTINUE|checkpoint|"
        } else {
            "RALPH_CONTINUE|"
        }
    }
}
