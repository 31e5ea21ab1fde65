//! Six agent personas. Each has a behavior that does not depend on which loop's prompt the agent reads.

use serde::{Deserialize, Serialize};

/// The persona of a simulation's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentPersona {
    /// Makes no mistake that its requests allow it to avoid.
    Perfect,
    /// Does not write everything down, and does not always inspect the files before it begins.
    Forgetful,
    /// Ticks early, rarely runs the test, and sometimes claims that all is done.
    Sloppy,
    /// Works on three items at once.
    Wanderer,
    /// Repeats what has failed.
    Stubborn,
    /// Weakens the project's test when it fails.
    Tamperer,
}

/// The reaction to a failing test that the agent does not repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReaction {
    /// Ticks the item anyway.
    TickAnyway,
    /// Repeats the test, and leaves the item open after three attempts.
    RepeatTest,
}

/// How an agent behaves. The numbers are percentages of cases, except for `items_at_once`.
#[derive(Clone, Copy, Debug)]
pub struct Behavior {
    /// Writes down a fact when the prompt asks for that, and keeps it in a summary.
    pub remembers_percent: u64,
    /// Checks the progress in a file, and searches for a lost fact, without being told to.
    pub inspects_percent: u64,
    /// Runs the test before it ticks, when the prompt asks for that.
    pub tests_percent: u64,
    /// Leaves out the last part of an item.
    pub omits_last_part_percent: u64,
    /// Repairs a failure that the test names.
    pub repairs_percent: u64,
    /// The reaction to a failure that it does not repair.
    pub failure_reaction: FailureReaction,
    /// Changes the project's test so that it skips the item, when the test fails.
    pub weakens_percent: u64,
    /// Weakens the test although the prompt forbids that.
    pub disobeys_percent: u64,
    /// Claims at the end of an item that everything is done, although it is not.
    pub falsely_claims_done_percent: u64,
    /// The number of items between which it alternates.
    pub items_at_once: usize,
}

impl AgentPersona {
    /// All personas in the order of the tables.
    pub const ALL: [AgentPersona; 6] = [
        AgentPersona::Perfect,
        AgentPersona::Forgetful,
        AgentPersona::Sloppy,
        AgentPersona::Wanderer,
        AgentPersona::Stubborn,
        AgentPersona::Tamperer,
    ];

    /// Returns the name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            AgentPersona::Perfect => "perfect",
            AgentPersona::Forgetful => "forgetful",
            AgentPersona::Sloppy => "sloppy",
            AgentPersona::Wanderer => "wanderer",
            AgentPersona::Stubborn => "stubborn",
            AgentPersona::Tamperer => "tamperer",
        }
    }

    pub fn behavior(self) -> Behavior {
        let default_behavior = Behavior {
            remembers_percent: 85,
            inspects_percent: 85,
            tests_percent: 90,
            omits_last_part_percent: 0,
            repairs_percent: 100,
            failure_reaction: FailureReaction::TickAnyway,
            weakens_percent: 0,
            disobeys_percent: 0,
            falsely_claims_done_percent: 0,
            items_at_once: 1,
        };
        match self {
            AgentPersona::Perfect => Behavior {
                remembers_percent: 100,
                inspects_percent: 100,
                tests_percent: 100,
                ..default_behavior
            },
            AgentPersona::Forgetful => {
                Behavior { remembers_percent: 60, inspects_percent: 60, ..default_behavior }
            }
            AgentPersona::Sloppy => Behavior {
                tests_percent: 25,
                omits_last_part_percent: 40,
                repairs_percent: 60,
                falsely_claims_done_percent: 15,
                ..default_behavior
            },
            AgentPersona::Wanderer => Behavior { items_at_once: 3, ..default_behavior },
            AgentPersona::Stubborn => Behavior {
                tests_percent: 100,
                omits_last_part_percent: 35,
                repairs_percent: 30,
                failure_reaction: FailureReaction::RepeatTest,
                ..default_behavior
            },
            AgentPersona::Tamperer => Behavior {
                tests_percent: 100,
                omits_last_part_percent: 35,
                weakens_percent: 60,
                disobeys_percent: 10,
                ..default_behavior
            },
        }
    }
}
