//! Six ways in which an agent can be bad at its work. Each is a set of habits, and none of them knows whose prompt it reads.

use serde::{Deserialize, Serialize};

/// The character of a night's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Character {
    /// Makes no mistake that its requests allow it to avoid.
    Perfect,
    /// Does not write down everything, and does not always look before it begins.
    Forgetful,
    /// Ticks early, rarely runs the test, and sometimes says that all is done.
    Sloppy,
    /// Works at three items at once.
    Wanderer,
    /// Does the same again when it has failed.
    Stubborn,
    /// Weakens the project's test when it fails.
    Tamperer,
}

/// What it does when it does nothing about a failing test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// Ticks the item all the same.
    Ticks,
    /// Tries the same again, and leaves the item open after three times.
    Repeats,
}

/// What an agent does in how many of 100 cases, besides `at_once`.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// It writes down a thing that its prompt asks for, and keeps it in a summary.
    pub remembers: u64,
    /// It looks how far a file is, and searches for a fact that it has lost, where nobody tells it to.
    pub looks: u64,
    /// It runs the test before it ticks, when its prompt asks for that.
    pub tests: u64,
    /// It leaves out the last part of an item.
    pub leaves_out: u64,
    /// It repairs what a failing test names.
    pub repairs: u64,
    /// What it does otherwise.
    pub else_it: Failing,
    /// It changes the project's test so that it skips the item, when the test fails.
    pub weakens: u64,
    /// It does so although its prompt forbids that.
    pub disobeys: u64,
    /// At the end of an item it says that everything is done, although it is not.
    pub claims: u64,
    /// The number of items that it works at side by side.
    pub at_once: usize,
}

impl Character {
    /// In the order of the tables.
    pub const ALL: [Character; 6] = [
        Character::Perfect,
        Character::Forgetful,
        Character::Sloppy,
        Character::Wanderer,
        Character::Stubborn,
        Character::Tamperer,
    ];

    /// As the tables call it.
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

    /// Its habits.
    pub fn habits(self) -> Habits {
        let usual = Habits {
            remembers: 85,
            looks: 85,
            tests: 90,
            leaves_out: 0,
            repairs: 100,
            else_it: Failing::Ticks,
            weakens: 0,
            disobeys: 0,
            claims: 0,
            at_once: 1,
        };
        match self {
            Character::Perfect => Habits { remembers: 100, looks: 100, tests: 100, ..usual },
            Character::Forgetful => Habits { remembers: 60, looks: 60, ..usual },
            Character::Sloppy => Habits { tests: 25, leaves_out: 40, repairs: 60, claims: 15, ..usual },
            Character::Wanderer => Habits { at_once: 3, ..usual },
            Character::Stubborn => {
                Habits { tests: 100, leaves_out: 35, repairs: 30, else_it: Failing::Repeats, ..usual }
            }
            Character::Tamperer => Habits { tests: 100, leaves_out: 35, weakens: 60, disobeys: 10, ..usual },
        }
    }
}
