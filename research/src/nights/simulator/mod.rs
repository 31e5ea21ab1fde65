//! A simulation: the work, an agent that knows only the content of its request, token usage from the real
//! size of each request, faults, and a clock on which a usage limit lasts hours. Everything follows from one
//! seed, so that different loops can be compared in the same simulation.

mod agent;
mod clock;
mod commands;
mod faults;
mod knowledge;
mod persona;
pub mod price;
mod rules;
mod score;
mod task;

pub use clock::WaitMode;
pub(crate) use faults::usage_limit_response;
pub use faults::{Fault, FaultSchedule};
pub use knowledge::{FileProgress, Knowledge, NotesLocation};
pub use persona::{AgentPersona, Behavior, FailureReaction};
pub use rules::{Rule, find_rules};
pub use score::SimulationScore;
pub use task::{MarkedLineCounts, TEST_COMMAND, Task, TaskItem};

use agent::Agent;
use clock::Clock;
use plimsoll_testkit::SeededRng;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use price::{AnsweredRequest, PromptCache};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A real model thinks longer than the delay of the client's transcript writer.
const THINKING_TIME: Duration = Duration::from_millis(120);
/// The end of the simulation, in hours after its start. A loop that a fault has ended gets no answers
/// until then.
const SIMULATION_END_HOURS: f64 = 10.0;

/// The parameters of a simulation.
pub struct SimulationPlan {
    pub task: Task,
    pub persona: AgentPersona,
    pub rng: SeededRng,
    /// How the loop's waits are measured.
    pub wait_mode: WaitMode,
    /// The estimated number of answers in the simulation. Faults are distributed among them.
    pub estimated_answers: u32,
}

/// A handle to a simulation, during it and after its end.
#[derive(Clone)]
pub struct SimulationHandle {
    state: Arc<Mutex<SimulationState>>,
}

/// The agent, the clock, the faults and the prompt cache.
struct SimulationState {
    agent: Agent,
    clock: Clock,
    faults: FaultSchedule,
    prompt_cache: PromptCache,
    session_id: String,
    /// True until the first answer of the session.
    is_new_session: bool,
}

impl SimulationHandle {
    /// Starts a model that works on the plan's task in the world's project.
    pub fn start_model(plan: SimulationPlan, world: &World) -> (ScriptedModel, SimulationHandle) {
        let faults = FaultSchedule::random(plan.rng, plan.estimated_answers);
        let clock = Clock::new(plan.wait_mode, &world.home());
        let agent = Agent::new(plan.task, plan.persona.behavior(), plan.rng);
        let state = SimulationState {
            agent,
            clock,
            faults,
            prompt_cache: PromptCache::default(),
            session_id: String::new(),
            is_new_session: true,
        };
        let handle = SimulationHandle { state: Arc::new(Mutex::new(state)) };
        let model_handle = handle.clone();
        let model = ScriptedModel::start_for_all_requests(move |request| {
            model_handle
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .answer_main_or_compaction_request(request)
        });
        (model, handle)
    }

    /// Returns the score of the simulation, including what the project's files show.
    pub fn compute_score(&self, world: &World) -> SimulationScore {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now_seconds = state.clock.add_logged_waits_and_tests_and_get_seconds();
        let mut score = state.agent.score.clone();
        score.test_runs = state.clock.test_count();
        score.hours = now_seconds / 3_600.0;
        score.hours_without_answers =
            state.faults.seconds_without_answers_until(SIMULATION_END_HOURS * 3_600.0) / 3_600.0;
        score.faults = state.faults.occurred_count;
        score.count_passing_items_and_false_ticks(&state.agent.task, world);
        score
    }
}

impl SimulationState {
    fn answer_main_or_compaction_request(&mut self, request: &Request) -> Option<Step> {
        let step = match request.kind {
            RequestKind::Compaction => self.agent.answer_compaction_and_begin_conversation(
                &conversation_with_only_hook_and_git_reminders(request),
            ),
            RequestKind::Main => {
                self.begin_conversation_if_session_is_new(request);
                let text = conversation_with_only_hook_and_git_reminders(request);
                // Before the fault, because the agent has read the request even if it is not answered.
                self.agent.record_facts_in_request(&text);
                if let Some(fault_step) = self.faults.take_due_or_ongoing_fault_response(&mut self.clock) {
                    return Some(
                        fault_step
                            .with_input_tokens(request.body_bytes() as u64 / 4)
                            .with_delay(THINKING_TIME),
                    );
                }
                if std::mem::replace(&mut self.is_new_session, false) {
                    self.agent.score.sessions += 1;
                }
                self.agent.choose_step_and_note_new_facts(&text, &request.text_since_last_assistant_message())
            }
            RequestKind::Subagent | RequestKind::Auxiliary => return None,
        };
        let answered_request = AnsweredRequest {
            session_id: &self.session_id,
            time_seconds: self.clock.add_logged_waits_and_tests_and_get_seconds(),
            request_bytes: request.body_bytes() as u64,
            system_and_tools_bytes: (request.body_bytes() as u64)
                .saturating_sub(request.body["messages"].to_string().len() as u64),
            answer_bytes: step.content_bytes() as u64,
        };
        let output_tokens = self
            .prompt_cache
            .add_request_tokens_and_get_output_tokens(&answered_request, &mut self.agent.score.tokens);
        self.clock.add_answer(output_tokens);
        Some(
            step.with_input_tokens(request.body_bytes() as u64 / 4)
                .with_output_tokens(output_tokens)
                .with_delay(THINKING_TIME),
        )
    }

    fn begin_conversation_if_session_is_new(&mut self, request: &Request) {
        let session_id = request.body["metadata"]["user_id"].to_string();
        if self.session_id != session_id {
            self.session_id = session_id;
            self.is_new_session = true;
            self.agent.begin_conversation();
            self.clock.add_session_start();
        }
    }
}

/// Returns the text that the agent reads: the conversation without what the client adds in every loop (its system
/// prompt and reminders) and without filler text. Git's status and the output of hooks are kept.
fn conversation_with_only_hook_and_git_reminders(request: &Request) -> String {
    let text = request.full_text().split_off(request.system_text().len()).replace(task::FILLER, "");
    let mut parts = text.split("<system-reminder>");
    let mut visible_text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (reminder, remaining) = part.split_once("</system-reminder>").unwrap_or((part, ""));
        if reminder.contains("# gitStatus")
            || reminder.contains("hook") && !reminder.contains("skills are available")
        {
            visible_text.push_str(reminder);
        }
        visible_text.push_str(remaining);
    }
    visible_text
}
