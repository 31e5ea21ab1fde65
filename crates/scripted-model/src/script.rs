//! A script as a file: steps taken in turn, rules that look at the request first.

use super::request::{Request, RequestKind};
use super::step::Step;
use serde::Deserialize;
use serde_json::Value;

/// A script read from JSON: a list of steps, or an object with `steps`, `rules`, `side` and `compaction`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    steps: Vec<Step>,
    rules: Vec<Rule>,
    pub(super) side: Option<Step>,
    pub(super) compaction: Option<Step>,
}

/// An answer for requests that contain a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Plain text to look for, no pattern.
    #[serde(rename = "if", default)]
    contains: String,
    #[serde(rename = "where", default)]
    place: MatchScope,
    step: Option<Step>,
    #[serde(default)]
    steps: Vec<Step>,
    times: Option<usize>,
    /// Lets the rule match side requests and compactions as well.
    #[serde(default)]
    notmain: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MatchScope {
    #[default]
    Last,
    First,
    All,
    System,
    Model,
    /// Any request without tools, whatever it says.
    NoTools,
}

impl Script {
    /// Reads a script; the error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Script, serde_json::Error> {
        let value: Value = serde_json::from_str(text)?;
        if value.is_array() {
            let steps = serde_json::from_value(value)?;
            return Ok(Script { steps, ..Script::default() });
        }
        serde_json::from_value(value)
    }

    pub(super) fn into_answers(self) -> impl FnMut(&Request) -> Option<Step> + Send {
        let mut next = in_turn(self.steps);
        let mut rules: Vec<_> = self.rules.into_iter().map(Rule::into_answers).collect();
        move |request| {
            let turn = matches!(request.kind, RequestKind::Main | RequestKind::Subagent);
            rules.iter_mut().find_map(|rule| rule(request)).or_else(|| turn.then(&mut next))
        }
    }
}

impl Rule {
    fn into_answers(mut self) -> impl FnMut(&Request) -> Option<Step> + Send {
        let mut left = self.times;
        let mut steps = std::mem::take(&mut self.steps);
        steps.extend(self.step.take());
        let mut next = in_turn(steps);
        move |request| {
            if left == Some(0) || !self.matches(request) {
                return None;
            }
            left = left.map(|times| times - 1);
            Some(next())
        }
    }

    fn matches(&self, request: &Request) -> bool {
        let turn = matches!(request.kind, RequestKind::Main | RequestKind::Subagent);
        let place = match self.place {
            MatchScope::NoTools => return request.kind == RequestKind::Side,
            MatchScope::Last => request.last_text(),
            MatchScope::First => request.first_text(),
            MatchScope::All => request.text(),
            MatchScope::System => request.system_text(),
            MatchScope::Model => request.model.clone(),
        };
        (turn || self.notmain) && place.contains(&self.contains)
    }
}

/// Takes the steps one after another; the last one repeats, and none at all means "done".
pub(super) fn in_turn(steps: Vec<Step>) -> impl FnMut() -> Step + Send {
    let mut taken = 0;
    move || {
        let step = steps.get(taken).or(steps.last()).cloned();
        taken += 1;
        step.unwrap_or_else(|| Step::text("done"))
    }
}
