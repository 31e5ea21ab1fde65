//! The eight registers.

use serde::{Deserialize, Serialize};

/// One of the eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Register {
    /// The current top-level objective.
    #[serde(rename = "R0_GOAL")]
    Goal,
    /// The steps that remain.
    #[serde(rename = "R1_PLAN")]
    Plan,
    /// The next action.
    #[serde(rename = "R2_NEXT")]
    Next,
    /// The current phase.
    #[serde(rename = "R3_PHASE")]
    Phase,
    /// What must hold.
    #[serde(rename = "R4_CONSTRAINTS")]
    Constraints,
    /// What is assumed and not verified.
    #[serde(rename = "R5_ASSUMPTIONS")]
    Assumptions,
    /// What is unknown.
    #[serde(rename = "R6_OPEN_QUESTIONS")]
    OpenQuestions,
    /// What has just happened.
    #[serde(rename = "R7_STATUS")]
    Status,
}

/// What a child frame may change and its parent does not get.
pub(super) const UNMERGED: [Register; 2] = [Register::Constraints, Register::Assumptions];

impl Register {
    /// All, in order.
    pub const ALL: [Register; 8] = [
        Register::Goal,
        Register::Plan,
        Register::Next,
        Register::Phase,
        Register::Constraints,
        Register::Assumptions,
        Register::OpenQuestions,
        Register::Status,
    ];

    /// Its number.
    pub fn index(self) -> usize {
        self as usize
    }

    /// `R0 GOAL`
    pub fn label(self) -> &'static str {
        const LABELS: [&str; 8] = [
            "R0 GOAL",
            "R1 PLAN",
            "R2 NEXT",
            "R3 PHASE",
            "R4 CONSTRAINTS",
            "R5 ASSUMPTIONS",
            "R6 OPEN_QUESTIONS",
            "R7 STATUS",
        ];
        LABELS[self.index()]
    }

    /// `R0_GOAL`, as tools and the command name it.
    pub fn key(self) -> &'static str {
        const KEYS: [&str; 8] = [
            "R0_GOAL",
            "R1_PLAN",
            "R2_NEXT",
            "R3_PHASE",
            "R4_CONSTRAINTS",
            "R5_ASSUMPTIONS",
            "R6_OPEN_QUESTIONS",
            "R7_STATUS",
        ];
        KEYS[self.index()]
    }

    /// The longest value, in Unicode scalar values: the unit of JSON Schema's `maxLength`.
    pub fn limit(self) -> usize {
        const LIMITS: [usize; 8] = [240, 980, 200, 60, 720, 480, 600, 300];
        LIMITS[self.index()]
    }

    /// By its key, its number (`R3`) or its name (`phase`).
    pub fn named(text: &str) -> Option<Register> {
        let text = text.to_uppercase();
        let is_it = |register: &Register| {
            let (number, name) = register.key().split_at(2);
            text == register.key() || text == number || text == name[1..]
        };
        Register::ALL.into_iter().find(is_it)
    }
}
