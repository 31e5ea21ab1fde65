//! A simulated night: the work, an agent that knows only what its request contains, token usage from the real size of each
//! request, faults, and a clock on which a limit lasts hours. Everything follows from one seed, so that different ways to run
//! the same night can be compared.

mod agent;
mod character;
mod clock;
mod commands;
mod knowledge;
pub mod price;
mod rules;
mod score;
mod task;
mod troubles;

pub use character::{Character, Failing, Habits};
pub use clock::Waits;
pub use knowledge::{Knowledge, Notes, Place};
pub use rules::{RULES, Rule, RuleOf, rules_in};
pub use score::Score;
pub use task::{Item, Standing, TEST, Task};
pub(crate) use troubles::usage_limit;
pub use troubles::{Trouble, Troubles};

use agent::Agent;
use clock::Clock;
use plimsoll_testkit::Dice;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use price::{Asked, Cache};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A real model thinks longer than the client's transcript writer lags.
const THINKING: Duration = Duration::from_millis(120);
/// The morning, in hours after the evening: a loop that a trouble has ended stands still until then.
const MORNING: f64 = 10.0;

/// What a night is made of.
pub struct Plan {
    /// The work.
    pub task: Task,
    /// The agent's character.
    pub character: Character,
    /// The dice of the seed.
    pub dice: Dice,
    /// How the loop's waits come to be known.
    pub waits: Waits,
    /// A night has about so many answers; its troubles lie among them.
    pub answers: u32,
}

/// A handle to a night, during it and after its end.
#[derive(Clone)]
pub struct Night {
    bench: Arc<Mutex<Bench>>,
}

/// The agent with everything around it.
struct Bench {
    agent: Agent,
    clock: Clock,
    troubles: Troubles,
    cache: Cache,
    session: String,
    /// The session has had no answer so far.
    is_new: bool,
}

impl Night {
    /// A model that works on this plan's task in the world's project.
    pub fn start(plan: Plan, world: &World) -> (ScriptedModel, Night) {
        let troubles = Troubles::new(plan.dice, plan.answers);
        let clock = Clock::new(plan.waits, &world.home());
        let agent = Agent::new(plan.task, plan.character.habits(), plan.dice);
        let bench =
            Bench { agent, clock, troubles, cache: Cache::default(), session: String::new(), is_new: true };
        let night = Night { bench: Arc::new(Mutex::new(bench)) };
        let asked = night.clone();
        let model = ScriptedModel::start_for_all(move |request| {
            asked.bench.lock().unwrap_or_else(PoisonError::into_inner).answer(request)
        });
        (model, night)
    }

    /// The figures, with what the files say.
    pub fn score(&self, world: &World) -> Score {
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        let now = bench.clock.read();
        let mut score = bench.agent.score.clone();
        score.tests = bench.clock.tests();
        score.hours = now / 3_600.0;
        score.lost = bench.troubles.lost_by(MORNING * 3_600.0) / 3_600.0;
        score.troubles = bench.troubles.come;
        score.look_at(&bench.agent.task, world);
        score
    }
}

impl Bench {
    fn answer(&mut self, request: &Request) -> Option<Step> {
        let step = match request.kind {
            RequestKind::Compaction => self.agent.summarize(&conversation(request)),
            RequestKind::Main => {
                self.notice_session(request);
                let text = conversation(request);
                // Also what it has read last before a trouble.
                self.agent.see(&text);
                if let Some(trouble) = self.troubles.befall(&mut self.clock) {
                    return Some(trouble.usage(request.bytes() as u64 / 4).delay(THINKING));
                }
                if std::mem::replace(&mut self.is_new, false) {
                    self.agent.score.sessions += 1;
                }
                self.agent.work(&text, &request.last_text())
            }
            RequestKind::Subagent | RequestKind::Side => return None,
        };
        let asked = Asked {
            session: &self.session,
            at: self.clock.read(),
            bytes: request.bytes() as u64,
            common: (request.bytes() as u64)
                .saturating_sub(request.body["messages"].to_string().len() as u64),
            answered: step.bytes() as u64,
        };
        let output = self.cache.book(&asked, &mut self.agent.score.tokens);
        self.clock.answer(output);
        Some(step.usage(request.bytes() as u64 / 4).output_tokens(output).delay(THINKING))
    }

    fn notice_session(&mut self, request: &Request) {
        let session = request.body["metadata"]["user_id"].to_string();
        if self.session != session {
            self.session = session;
            self.is_new = true;
            self.agent.begin_conversation();
            self.clock.start_session();
        }
    }
}

/// What the agent reads: the conversation, without what the client says of itself in every loop (its system prompt and
/// reminders) and without the words that tell nothing. Git's status and what hooks say stay.
fn conversation(request: &Request) -> String {
    let text = request.text().split_off(request.system_text().len()).replace(task::WORDS, "");
    let mut parts = text.split("<system-reminder>");
    let mut read = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (reminder, rest) = part.split_once("</system-reminder>").unwrap_or((part, ""));
        if reminder.contains("# gitStatus")
            || reminder.contains("hook") && !reminder.contains("skills are available")
        {
            read.push_str(reminder);
        }
        read.push_str(rest);
    }
    read
}
