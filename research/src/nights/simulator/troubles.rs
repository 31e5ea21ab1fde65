//! The faults of a night, and the answers at which they occur; both follow from the seed.

use super::clock::{Clock, Reset};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::{Dice, quota};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The API is overloaded for so many seconds.
    Overload(u32),
    /// The quota is used up for so many minutes.
    Limit(u32),
    /// The client is killed, with a change that nobody has committed.
    Crash,
    /// The model refuses once.
    Refusal,
    /// The connection is cut in the middle of an answer.
    Cut,
}

/// The troubles of one night.
#[derive(Debug)]
pub struct Troubles {
    coming: BTreeMap<u32, Trouble>,
    overloaded_until: f64,
    limit: Option<Reset>,
    answers: u32,
    /// Since when the work has stood still.
    standing_since: Option<f64>,
    /// Those that have come.
    pub come: u32,
    lost: f64,
}

impl Troubles {
    /// About three in a night of so many answers. A limit lasts from 90 minutes to five hours.
    pub fn new(dice: Dice, answers: u32) -> Troubles {
        let limit = 90 + dice.number("limit lasts", 211) as u32;
        let usual = [
            (Trouble::Overload(60), 60),
            (Trouble::Overload(360), 40),
            (Trouble::Limit(limit), 50),
            (Trouble::Crash, 50),
            (Trouble::Crash, 25),
            (Trouble::Refusal, 30),
            (Trouble::Cut, 40),
        ];
        let mut coming = BTreeMap::new();
        for (number, (trouble, percent)) in usual.into_iter().enumerate() {
            let at = 3 + dice.number(&format!("trouble {number} at"), u64::from(answers)) as u32;
            if dice.happens(&format!("trouble {number}"), percent) {
                coming.insert(at, trouble);
            }
        }
        Troubles {
            coming,
            overloaded_until: 0.0,
            limit: None,
            answers: 0,
            standing_since: None,
            come: 0,
            lost: 0.0,
        }
    }

    /// Seconds from each trouble to the next answer; if there was none, to the morning.
    pub fn lost_by(&self, morning: f64) -> f64 {
        self.lost + self.standing_since.map_or(0.0, |since| (morning - since).max(0.0))
    }

    /// The fault of the next answer, if any.
    pub fn befall(&mut self, clock: &mut Clock) -> Option<Step> {
        clock.ask_again(self.limit.is_some());
        if let Some(reset) = self.limit {
            if !clock.is_over(&reset) {
                return Some(usage_limit(reset.told));
            }
            self.limit = None;
        }
        let now = clock.read();
        if now < self.overloaded_until {
            clock.refuse();
            return Some(Step::error(529, "Overloaded"));
        }
        if let Some(since) = self.standing_since.take() {
            self.lost += now - since;
        }
        self.answers += 1;
        let due = self.coming.first_entry().filter(|entry| *entry.key() <= self.answers)?.remove();
        self.come += 1;
        self.standing_since = Some(now);
        match due {
            Trouble::Overload(seconds) => {
                self.overloaded_until = now + f64::from(seconds);
                clock.refuse();
                Some(Step::error(529, "Overloaded"))
            }
            Trouble::Limit(minutes) => {
                let reset = clock.limit(f64::from(minutes) * 60.0);
                self.limit = Some(reset);
                Some(usage_limit(reset.told))
            }
            Trouble::Crash => Some(Step::bash("kill -9 ${CLAUDE_PID:-$PPID}; /bin/sleep 5")),
            Trouble::Refusal => Some(Step::text("I cannot help with that.").stop_reason("refusal")),
            Trouble::Cut => Some(Step::text("I am on my way to").cut()),
        }
    }
}

/// The answer of an API whose five-hour quota is used up.
pub(crate) fn usage_limit(until: SystemTime) -> Step {
    quota::usage_limit(until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
