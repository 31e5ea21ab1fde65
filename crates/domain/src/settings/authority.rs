//! What a project's own settings file may do, key by key.
//!
//! Everything in a project's folder may have been written by the author of a clone or by an agent. So its
//! `.claude/plimsoll.json` states preferences. What starts a program, sends something out or lifts a bound comes
//! from the command line or from the user's own settings.

use super::Settings;
use serde_json::{Map, Value};

/// What a project's file may do with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// It says how things look or where they begin: its value holds.
    Prefer,
    /// A bound: its value holds where it is lower than the user's.
    Lower,
    /// A bound that 0 switches off: its value holds where it is lower than the user's, and is not 0.
    LowerNotZero,
    /// A bound that a larger value makes stricter: its value holds where it is higher than the user's.
    Raise,
    /// It starts a program, sends something out, deletes records or costs money: its value is ignored.
    Nothing,
}

/// Every key. `NAME` stands for any name; a key that is not here is never taken.
pub const TABLE: &[(&str, May)] = &[
    ("$schema", May::Prefer),
    ("levels.l1", May::Prefer),
    ("levels.l2", May::Prefer),
    ("levels.l3", May::Prefer),
    // How near to the auto-compact threshold a session may come.
    ("margins.l2", May::Raise),
    ("margins.l3", May::Raise),
    ("grace_batches", May::Prefer),
    ("windows", May::Prefer),
    // A model costs the user's money.
    ("models.trivial", May::Nothing),
    ("models.simple", May::Nothing),
    ("models.medium", May::Nothing),
    ("models.complex", May::Nothing),
    ("models.very_complex", May::Nothing),
    ("models.allowed", May::Nothing),
    // A hook waits this long.
    ("freshness_wait_ms", May::Lower),
    // The next session reads all of it.
    ("handoff_bytes", May::Lower),
    ("end_wait_seconds", May::Lower),
    ("background_wait_seconds", May::Lower),
    ("verify_timeout_seconds", May::Lower),
    // A project that could name paths could keep its own run from ever being completed.
    ("protect", May::Nothing),
    ("idle_timeout_seconds", May::LowerNotZero),
    ("tool_timeout_seconds", May::LowerNotZero),
    ("breaker.no_progress", May::LowerNotZero),
    ("breaker.same_error", May::LowerNotZero),
    ("breaker.refused", May::LowerNotZero),
    ("breaker.permission_denied", May::LowerNotZero),
    ("breaker.empty_reply", May::LowerNotZero),
    ("breaker.quick_failure", May::LowerNotZero),
    ("thrash.checkpoints", May::LowerNotZero),
    // The same number of checkpoints in a longer time is met sooner.
    ("thrash.minutes", May::Raise),
    // Where words of the session are sent.
    ("linear.issue", May::Nothing),
    // A shell runs it.
    ("linear.key_command", May::Nothing),
    // What is recorded goes for good.
    ("keep.days", May::Nothing),
    ("keep.megabytes", May::Nothing),
    ("keep.compress", May::Nothing),
    ("statusline.theme", May::Prefer),
    ("statusline.background", May::Prefer),
    ("statusline.separator", May::Prefer),
    ("statusline.lines", May::Prefer),
    ("statusline.segments.NAME.format", May::Prefer),
    ("statusline.segments.NAME.colour", May::Prefer),
    ("statusline.segments.NAME.min_columns", May::Prefer),
    ("statusline.segments.NAME.warn", May::Prefer),
    ("statusline.segments.NAME.alarm", May::Prefer),
    ("statusline.segments.NAME.pointer", May::Prefer),
    // The status line starts it.
    ("statusline.segments.NAME.command", May::Nothing),
    // Never above five seconds, whatever the file says.
    ("statusline.segments.NAME.timeout_ms", May::Prefer),
    // The user's own words about each project.
    ("projects", May::Nothing),
];

/// The object whose keys are names of the user's choice.
const NAMED: &str = "statusline.segments";

/// A key of a project's file that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The key, such as `linear.key_command`.
    pub key: String,
    /// Why.
    pub why: Why,
}

/// Why a key does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It would start a program, send something out, delete records or cost money.
    Authority,
    /// It would lift a bound; this value holds.
    Bound(String),
}

impl Ignored {
    /// What does not hold, and why.
    pub fn words(&self) -> String {
        let key = &self.key;
        match &self.why {
            Why::Authority => format!(
                "{key} is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model or protect files"
            ),
            Why::Bound(holds) => {
                format!("{key} is ignored: a project's file may only make it stricter; {holds} applies")
            }
        }
    }
}

/// What the table says of a key, written as in the table.
pub fn may(key: &str) -> Option<May> {
    TABLE.iter().find(|(known, _)| *known == key).map(|(_, may)| *may)
}

/// Takes out of a project's settings what they may not say, beside the settings that hold without them.
pub fn restrict(project: &mut Value, without: &Value) -> Vec<Ignored> {
    let mut walk = Walk { without, defaults: None, ignored: Vec::new() };
    if let Value::Object(keys) = project {
        walk.object(keys, &KeyPath::default());
    }
    walk.ignored
}

/// The path of a key: as the user wrote it, and as the table names it.
#[derive(Default)]
struct KeyPath {
    written: Vec<String>,
    pattern: String,
}

impl KeyPath {
    fn below(&self, key: &str) -> KeyPath {
        let name = if self.pattern == NAMED { "NAME" } else { key };
        let dot = if self.pattern.is_empty() { "" } else { "." };
        let written = self.written.iter().cloned().chain([key.to_owned()]).collect();
        KeyPath { written, pattern: format!("{}{dot}{name}", self.pattern) }
    }
}

struct Walk<'a> {
    without: &'a Value,
    /// Made only where a bound is looked at.
    defaults: Option<Value>,
    ignored: Vec<Ignored>,
}

impl Walk<'_> {
    fn object(&mut self, keys: &mut Map<String, Value>, place: &KeyPath) {
        keys.retain(|key, value| {
            let place = place.below(key);
            match (may(&place.pattern), value) {
                (Some(may), value) => self.holds(may, value, &place),
                (None, Value::Object(inner)) => {
                    self.object(inner, &place);
                    true
                }
                (None, value) => self.holds(May::Nothing, value, &place),
            }
        });
    }

    fn holds(&mut self, may: May, value: &Value, place: &KeyPath) -> bool {
        let why = match may {
            May::Prefer => return true,
            May::Nothing => Some(Why::Authority),
            May::Lower | May::LowerNotZero | May::Raise => self.lifted(may, value, place),
        };
        let Some(why) = why else { return true };
        // Setting no limit is not stricter.
        if !value.is_null() {
            self.ignored.push(Ignored { key: place.written.join("."), why });
        }
        false
    }

    /// The bound that the value would lift.
    fn lifted(&mut self, may: May, value: &Value, place: &KeyPath) -> Option<Why> {
        let own = self.bound(place);
        // What 0 switches off is higher than every number.
        let height = |value: &Value| match (may, value.as_f64()) {
            (May::LowerNotZero, Some(0.0)) => Some(f64::INFINITY),
            (_, number) => number,
        };
        let (wanted, kept) = (height(value)?, height(&own)?);
        let is_lifted = if may == May::Raise { wanted < kept } else { wanted > kept };
        is_lifted.then(|| Why::Bound(own.to_string()))
    }

    fn bound(&mut self, place: &KeyPath) -> Value {
        let pointer: String = place.written.iter().map(|key| format!("/{key}")).collect();
        if let Some(own) = self.without.pointer(&pointer) {
            return own.clone();
        }
        let defaults = self
            .defaults
            .get_or_insert_with(|| serde_json::to_value(Settings::default()).unwrap_or_default());
        defaults.pointer(&pointer).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
