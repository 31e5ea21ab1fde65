//! The model of a test with its client. The replayed client needs Unix.

use crate::LIFELIKE_DELAY;
use plimsoll_testkit::scripted_agent::{AgentTurn, start_model_with_turn_script};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use std::time::Duration;

/// The model of a test: a function that answers each turn of each session. By default it answers without delay, and a
/// replayed client is used in place of the real one.
pub struct ScriptedAgent<F> {
    answer: F,
    delay: Option<Duration>,
    client: ClientChoice,
}

/// The client that plays the sessions of a test.
enum ClientChoice {
    Replayed,
    Real,
    /// Real in the sessions with these numbers, replayed in the others.
    RealInSessions(Vec<u32>),
}

impl<F: FnMut(&AgentTurn<'_>) -> Step + Send + 'static> ScriptedAgent<F> {
    pub fn new(answer: F) -> ScriptedAgent<F> {
        ScriptedAgent { answer, delay: None, client: ClientChoice::Replayed }
    }

    /// Answers as slowly as a real model, for tests in which the client must have written its transcript by the next turn.
    #[must_use]
    pub fn with_lifelike_delay(self) -> ScriptedAgent<F> {
        ScriptedAgent { delay: Some(LIFELIKE_DELAY), ..self }
    }

    /// Uses the real client, for tests about the client or about behavior that was never recorded.
    #[must_use]
    pub fn with_real_client(self) -> ScriptedAgent<F> {
        ScriptedAgent { client: ClientChoice::Real, ..self }
    }

    /// Uses the real client only in the sessions with these numbers.
    #[must_use]
    pub fn with_real_client_in(self, sessions: &[u32]) -> ScriptedAgent<F> {
        ScriptedAgent { client: ClientChoice::RealInSessions(sessions.to_vec()), ..self }
    }

    /// Starts the model's server and points the world's client at it.
    pub fn start(self, world: &mut World) -> ScriptedModel {
        let ScriptedAgent { mut answer, delay, client } = self;
        let model = start_model_with_turn_script(move |turn| {
            let step = answer(turn);
            match delay {
                Some(delay) => step.with_delay(delay),
                None => step,
            }
        });
        world.put_client_on_path_with_model_and_settings(&model);
        match client {
            ClientChoice::Replayed => world.use_replayed_client(),
            ClientChoice::Real => {}
            ClientChoice::RealInSessions(sessions) => world.use_real_client_in_sessions(&sessions),
        }
        model
    }
}
