//! The ids of a run's trace: anybody can work them out from the journal, so the sessions' spans, which the client exports, and
//! the run's, which `plimsoll-otel` exports, are one tree though neither program asks the other.

use plimsoll_domain::digest::sha256;
use plimsoll_domain::{RunId, SessionId};

/// A trace, and what the run's span is below, by W3C Trace Context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub id: String,
    /// The span of the user's that the run is below, 16 hexadecimal digits; none if it has a trace of its own.
    pub parent: Option<String>,
    /// Two hexadecimal digits; the lowest bit says whether it is recorded.
    flags: String,
}

impl Trace {
    /// A run's: the user's own if their environment has one (what does not parse counts as none).
    pub fn of(run_id: &RunId, users: Option<&str>) -> Trace {
        users.and_then(Trace::parsed).unwrap_or_else(|| {
            let mut id = sha256(&[b"plimsoll trace ", run_id.as_str().as_bytes()]);
            id.truncate(32);
            Trace { id, parent: None, flags: "01".to_owned() }
        })
    }

    fn parsed(header: &str) -> Option<Trace> {
        let parts: Vec<&str> = header.trim().split('-').collect();
        let [version, id, parent, flags, ..] = parts.as_slice() else { return None };
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_some = |part: &str| part.bytes().any(|byte| byte != b'0');
        let is_it = is_hex(version, 2)
            && *version != "ff"
            && (*version != "00" || parts.len() == 4)
            && (is_hex(id, 32) && is_some(id))
            && (is_hex(parent, 16) && is_some(parent))
            && is_hex(flags, 2);
        is_it.then(|| Trace {
            id: (*id).to_owned(),
            parent: Some((*parent).to_owned()),
            flags: (*flags).to_owned(),
        })
    }

    /// False if the user's own trace is not recorded: then what is below it is not either.
    pub fn is_recorded(&self) -> bool {
        u8::from_str_radix(&self.flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }

    /// The value of `TRACEPARENT` for what is below a span.
    pub fn header(&self, span: &str) -> String {
        format!("00-{}-{span}-{}", self.id, self.flags)
    }
}

/// The span of a session, and of the iteration that it is.
pub fn session(run_id: &RunId, session_id: &SessionId) -> String {
    span(run_id, session_id.as_str())
}

/// The span of a run.
pub fn run(run_id: &RunId) -> String {
    span(run_id, "run")
}

/// The span of an attempt at an item of a parallel run; the item's number in the plan from 1.
pub fn item(run_id: &RunId, number: usize, attempt: u64) -> String {
    span(run_id, &format!("item {number} {attempt}"))
}

/// Any other span of a run: what it is must be said once a run.
pub fn span(run_id: &RunId, what: &str) -> String {
    let mut id = sha256(&[b"plimsoll span ", run_id.as_str().as_bytes(), b" ", what.as_bytes()]);
    id.truncate(16);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_trace_is_taken_and_what_is_none_is_not() {
        let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let run_id = RunId::from("r");
        let own = Trace::of(&run_id, None);
        for (header, expected) in [
            (format!("00-{id}-{parent}-01"), true),
            (format!(" 00-{id}-{parent}-00 "), true),
            (format!("01-{id}-{parent}-01-more"), true),
            (format!("00-{id}-{parent}-01-more"), false),
            (format!("ff-{id}-{parent}-01"), false),
            (format!("00-{}-{parent}-01", "0".repeat(32)), false),
            (format!("00-{id}-{}-01", "0".repeat(16)), false),
            (format!("00-{}-{parent}-01", id.to_uppercase()), false),
            (format!("00-{id}-{parent}"), false),
            ("00-ab-cd-01".to_owned(), false),
            (String::new(), false),
        ] {
            let trace = Trace::of(&run_id, Some(&header));
            assert_eq!(trace != own, expected, "{header:?}");
            assert_eq!(trace.parent.as_deref() == Some(parent), expected, "{header:?}");
        }
        let silent = Trace::of(&run_id, Some(&format!("00-{id}-{parent}-00")));
        assert!(!silent.is_recorded() && own.is_recorded());
        assert_eq!(silent.header("1234567890abcdef"), format!("00-{id}-1234567890abcdef-00"));
    }
}
