//! Six characters of agents. Each is a set of habits that do not depend on whose prompt the agent reads.

use serde::{Deserialize, Serialize};

/// The character of a night's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Character {
    /// Makes no mistake that its requests allow it to avoid.
    Perfect,
    /// Does not write everything down, and does not always look before it begins.
    Forgetful,
    /// Ticks early, rarely runs the test, and sometimes says that all is done.
    Sloppy,
    /// Works at three items at once.
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
    /// Repeats the test and leaves the item open after three times.
    RepeatTest,
}

/// How an agent behaves; the numbers are percentages of cases, except for `at_once`.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Writes down a fact when its prompt asks for that, and keeps it in a summary.
    pub remembers_percent: u64,
    /// Checks how far a file is, and searches for a lost fact, without being told to.
    pub looks_percent: u64,
    /// Runs the test before it ticks, when its prompt asks for that.
    pub tests_percent: u64,
    /// Leaves out the last part of an item.
    pub leaves_out_percent: u64,
    /// Repairs a failure that the test names.
    pub repairs_percent: u64,
    /// The reaction to a failure that it does not repair.
    pub failure_reaction: FailureReaction,
    /// Changes the project's test so that it skips the item, when the test fails.
    pub weakens_percent: u64,
    /// Weakens the test although its prompt forbids that.
    pub disobeys_percent: u64,
    /// Claims at the end of an item that everything is done, although it is not.
    pub claims_percent: u64,
    /// The number of items that it works on alternately.
    pub items_at_once: usize,
}

impl Character {
    /// All characters in the order of the tables.
    pub const ALL: [Character; 6] = [
        Character::Perfect,
        Character::Forgetful,
        Character::Sloppy,
        Character::Wanderer,
        Character::Stubborn,
        Character::Tamperer,
    ];

    /// Returns the name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Character::Perfect => "perfect",
            Character::Forgetful => "forgetful",
            Character::Sloppy => "sloppy",
            Character::Wanderer => "wanderer",
            Character::Stubborn => "stubborn",
            Character::Tamperer => "tamperer",
        }
    }

    /// Returns the habits of this character.
    pub fn habits(self) -> Habits {
        let default_habits = Habits {
            remembers_percent: 85,
            looks_percent: 85,
            tests_percent: 90,
            leaves_out_percent: 0,
            repairs_percent: 100,
            failure_reaction: FailureReaction::TickAnyway,
            weakens_percent: 0,
            disobeys_percent: 0,
            claims_percent: 0,
            items_at_once: 1,
        };
        match self {
            Character::Perfect => {
                Habits { remembers_percent: 100, looks_percent: 100, tests_percent: 100, ..default_habits }
            }
            Character::Forgetful => Habits { remembers_percent: 60, looks_percent: 60, ..default_habits },
            Character::Sloppy => Habits {
                tests_percent: 25,
                leaves_out_percent: 40,
                repairs_percent: 60,
                claims_percent: 15,
                ..default_habits
            },
            Character::Wanderer => Habits { items_at_once: 3, ..default_habits },
            Character::Stubborn => Habits {
                tests_percent: 100,
                leaves_out_percent: 35,
                repairs_percent: 30,
                failure_reaction: FailureReaction::RepeatTest,
                ..default_habits
            },
            Character::Tamperer => Habits {
                tests_percent: 100,
                leaves_out_percent: 35,
                weakens_percent: 60,
                disobeys_percent: 10,
                ..default_habits
            },
        }
    }
}
