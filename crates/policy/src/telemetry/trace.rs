//! Derives the ids of a run's trace from ids in the journal. The client exports the sessions' spans and `plimsoll-otel` those of
//! the run; because both can compute the same ids, the spans form one tree without communication between the programs.

use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::{RunId, SessionId};

/// The trace of a run, as in the `traceparent` header of W3C Trace Context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace id: 32 hexadecimal digits.
    pub trace_id: String,
    /// The user's span that is the parent of the run: 16 hexadecimal digits. `None` if the run has its own trace.
    pub parent_span_id: Option<String>,
    /// Two hexadecimal digits; the lowest bit is set if the trace is sampled.
    flags: String,
}

impl TraceContext {
    /// Returns the trace of a run: the user's if the environment has a valid `traceparent`, otherwise one derived from the run id.
    pub fn from_valid_traceparent_or_run_id(run_id: &RunId, user_traceparent: Option<&str>) -> TraceContext {
        user_traceparent.and_then(TraceContext::parse_traceparent).unwrap_or_else(|| {
            let mut trace_id = sha256_hex(&[b"plimsoll trace ", run_id.as_str().as_bytes()]);
            trace_id.truncate(32);
            TraceContext { trace_id, parent_span_id: None, flags: "01".to_owned() }
        })
    }

    fn parse_traceparent(traceparent: &str) -> Option<TraceContext> {
        let parts: Vec<&str> = traceparent.trim().split('-').collect();
        let [version, trace_id, parent_span_id, flags, ..] = parts.as_slice() else { return None };
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_nonzero = |part: &str| part.bytes().any(|byte| byte != b'0');
        let is_valid = is_hex(version, 2)
            && *version != "ff"
            && (*version != "00" || parts.len() == 4)
            && (is_hex(trace_id, 32) && is_nonzero(trace_id))
            && (is_hex(parent_span_id, 16) && is_nonzero(parent_span_id))
            && is_hex(flags, 2);
        is_valid.then(|| TraceContext {
            trace_id: (*trace_id).to_owned(),
            parent_span_id: Some((*parent_span_id).to_owned()),
            flags: (*flags).to_owned(),
        })
    }

    /// Returns true if the trace is sampled. Child spans of a user's trace that is not sampled are not sampled either.
    pub fn is_sampled(&self) -> bool {
        u8::from_str_radix(&self.flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }

    /// Returns the value of `TRACEPARENT` for the children of a span.
    pub fn traceparent(&self, span_id: &str) -> String {
        format!("00-{}-{span_id}-{}", self.trace_id, self.flags)
    }
}

/// Returns the span id of a session, which is also that of its iteration.
pub fn session_span_id(run_id: &RunId, session_id: &SessionId) -> String {
    derive_span_id(run_id, session_id.as_str())
}

/// Returns the span id of a run.
pub fn run_span_id(run_id: &RunId) -> String {
    derive_span_id(run_id, "run")
}

/// Returns the span id of an attempt at an item of a parallel run. `number` is the position of the item in the plan,
/// counted from 1.
pub fn item_span_id(run_id: &RunId, number: usize, attempt: u64) -> String {
    derive_span_id(run_id, &format!("item {number} {attempt}"))
}

/// Derives a span id from the run id and `key`, which must be unique within the run.
pub fn derive_span_id(run_id: &RunId, key: &str) -> String {
    let mut span_id = sha256_hex(&[b"plimsoll span ", run_id.as_str().as_bytes(), b" ", key.as_bytes()]);
    span_id.truncate(16);
    span_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_traceparent_of_the_user_is_used_and_an_invalid_one_ignored() {
        let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let run_id = RunId::from("r");
        let default_trace = TraceContext::from_valid_traceparent_or_run_id(&run_id, None);
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
            let trace = TraceContext::from_valid_traceparent_or_run_id(&run_id, Some(&header));
            assert_eq!(trace != default_trace, expected, "{header:?}");
            assert_eq!(trace.parent_span_id.as_deref() == Some(parent), expected, "{header:?}");
        }
        let unrecorded =
            TraceContext::from_valid_traceparent_or_run_id(&run_id, Some(&format!("00-{id}-{parent}-00")));
        assert!(!unrecorded.is_sampled() && default_trace.is_sampled());
        assert_eq!(unrecorded.traceparent("1234567890abcdef"), format!("00-{id}-1234567890abcdef-00"));
    }
}
