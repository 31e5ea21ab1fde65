//! The eight registers of a frame.

use serde::{Deserialize, Serialize};

/// One of the eight registers of a frame.
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
    /// The constraints of the task.
    #[serde(rename = "R4_CONSTRAINTS")]
    Constraints,
    /// The unverified assumptions.
    #[serde(rename = "R5_ASSUMPTIONS")]
    Assumptions,
    /// The open questions.
    #[serde(rename = "R6_OPEN_QUESTIONS")]
    OpenQuestions,
    /// The result of the last action.
    #[serde(rename = "R7_STATUS")]
    Status,
}

/// The registers whose changes in a child frame are not merged into its parent.
pub(super) const REGISTERS_NOT_MERGED: [Register; 2] = [Register::Constraints, Register::Assumptions];

impl Register {
    /// All registers, in order.
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

    /// Returns the number of the register.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the label for display, such as `R0 GOAL`.
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

    /// Returns the key that the tools and the command line use, such as `R0_GOAL`.
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

    /// Returns the maximum length of the value in Unicode scalar values, the unit of JSON Schema's
    /// `maxLength`.
    pub fn max_chars(self) -> usize {
        const LIMITS: [usize; 8] = [240, 980, 200, 60, 720, 480, 600, 300];
        LIMITS[self.index()]
    }

    /// Parses a key (`R3_PHASE`), a number (`R3`) or a name (`phase`), ignoring case.
    pub fn parse_key_number_or_name(text: &str) -> Option<Register> {
        let uppercase_text = text.to_uppercase();
        let is_named = |register: &Register| {
            let (number, name) = register.key().split_at(2);
            uppercase_text == register.key() || uppercase_text == number || uppercase_text == name[1..]
        };
        Register::ALL.into_iter().find(is_named)
    }
}
