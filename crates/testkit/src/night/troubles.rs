//! The faults of a night, and the answers at which they occur; both follow from the seed.

use super::dice::Dice;
use crate::scripted_model::Step;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The duration of a usage limit for a run that waits for the reset; a simulated night is shorter than five hours.
const LIMIT: Duration = Duration::from_secs(6);
/// After this many requests before the reset, the limit never ends: a loop that does not wait would send thousands of them
/// in five hours.
const SPINNING: u32 = 12;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The API is overloaded for this many requests.
    Overload(u32),
    /// The five-hour quota is used up.
    Limit,
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
    overloaded: u32,
    limit: Option<Limit>,
    answers: u32,
    /// Those that have come.
    pub come: u32,
}

#[derive(Debug)]
struct Limit {
    until: SystemTime,
    asked: u32,
}

impl Troubles {
    /// About three in a night of a hundred answers.
    pub fn new(dice: Dice, answers: u32) -> Troubles {
        let usual = [
            (Trouble::Overload(2), 60),
            (Trouble::Overload(8), 40),
            (Trouble::Limit, 50),
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
        Troubles { coming, overloaded: 0, limit: None, answers: 0, come: 0 }
    }

    /// How many there are in all.
    pub fn number(&self) -> u32 {
        self.come + self.coming.len() as u32
    }

    /// The fault of the next answer, if any.
    pub fn befall(&mut self) -> Option<Step> {
        if self.overloaded > 0 {
            self.overloaded -= 1;
            return Some(Step::error(529, "Overloaded"));
        }
        if let Some(limit) = &mut self.limit {
            limit.asked += 1;
            if SystemTime::now() < limit.until || limit.asked > SPINNING {
                return Some(usage_limit(limit.until));
            }
            self.limit = None;
        }
        self.answers += 1;
        let due = self.coming.first_entry().filter(|entry| *entry.key() <= self.answers)?.remove();
        self.come += 1;
        match due {
            Trouble::Overload(requests) => {
                self.overloaded = requests - 1;
                Some(Step::error(529, "Overloaded"))
            }
            Trouble::Limit => {
                let until = SystemTime::now() + LIMIT;
                self.limit = Some(Limit { until, asked: 1 });
                Some(usage_limit(until))
            }
            Trouble::Crash => Some(Step::bash("kill -9 ${CLAUDE_PID:-$PPID}; sleep 5")),
            Trouble::Refusal => Some(Step::text("I cannot help with that.").stop_reason("refusal")),
            Trouble::Cut => Some(Step::text("I am on my way to").cut()),
        }
    }
}

/// The answer of an API whose five-hour quota is used up.
pub(crate) fn usage_limit(until: SystemTime) -> Step {
    let reset = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    Step::error(429, "This request would exceed your account's rate limit")
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", reset.clone())
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("anthropic-ratelimit-unified-5h-status", "rejected")
        .header("anthropic-ratelimit-unified-5h-utilization", "1.0")
        .header("anthropic-ratelimit-unified-5h-reset", reset)
}
