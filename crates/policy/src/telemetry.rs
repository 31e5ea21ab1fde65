//! What the client's own telemetry is labelled with in a run: then cost and tokens per run, iteration and item are labels in every
//! dashboard for Claude Code, and all sessions of a run are one trace. Only if the user has turned the client's telemetry on.
//!
//! [`trace`] has the ids that sessions and the spans of the run share, [`exporter`] what the user's environment says of where
//! spans and logs go. Nothing is sent here.

pub mod exporter;
pub mod trace;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunId, SessionId};
use trace::Trace;

/// Turns the client's telemetry on (2.1.329).
pub const ENABLED: &str = "CLAUDE_CODE_ENABLE_TELEMETRY";
/// The labels of everything that the client exports, by OpenTelemetry's specification.
pub const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// The span below which the client's spans hang, by W3C Trace Context.
pub const PARENT: &str = "TRACEPARENT";

/// The label of a run.
pub const RUN_ID: &str = "plimsoll.run_id";
/// The label with its name.
pub const RUN_NAME: &str = "plimsoll.run_name";

/// The characters that are percent-encoded in a label's value. The specification asks for commas and everything outside ASCII.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'/');

/// How much of a run's name or an item is a label: dashboards list them.
const CLIPPED: usize = 80;

/// What the user's environment says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The value of [`ENABLED`].
    pub enabled: Option<String>,
    /// The value of [`ATTRIBUTES`].
    pub attributes: Option<String>,
    /// The value of [`PARENT`].
    pub parent: Option<String>,
    /// True if the run's own spans are exported: then its sessions are below them, and they below a parent of the user's.
    pub has_spans: bool,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labelled<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// Its name.
    pub run_name: &'a str,
    /// Its iteration.
    pub iteration: u32,
    /// The session.
    pub session_id: &'a SessionId,
    /// The item that it begins with.
    pub item: Option<&'a str>,
}

/// The variables that the session's client gets; none where its telemetry is off. Labels of the user's own stay, and so does
/// a parent of theirs: if there are spans of ours, they are between it and the session.
pub fn variables(user: &Environment, session: Labelled<'_>) -> Vec<(&'static str, String)> {
    if !user.is_on() {
        return Vec::new();
    }
    let iteration = session.iteration.to_string();
    let labels = [
        (RUN_ID, Some(session.run_id.as_str())),
        (RUN_NAME, Some(session.run_name)),
        ("plimsoll.iteration", Some(iteration.as_str())),
        ("plimsoll.item", session.item),
    ];
    let mut variables = vec![(ATTRIBUTES, attributes(user.attributes.as_deref(), &labels))];
    if user.has_spans || user.parent.as_deref().unwrap_or_default().is_empty() {
        let trace = Trace::of(session.run_id, user.parent.as_deref());
        variables.push((PARENT, trace.header(&trace::session(session.run_id, session.session_id))));
    }
    variables
}

/// The variables that a worker's `plimsoll run` gets for an item of a parallel run: its sessions and spans are labelled with
/// the parallel run, and below the item's span if there is one.
pub fn of_worker(
    user: &Environment,
    run_id: &RunId,
    item: usize,
    attempt: u64,
) -> Vec<(&'static str, String)> {
    if !user.is_on() {
        return Vec::new();
    }
    let labels = [("plimsoll.parent_run_id", Some(run_id.as_str()))];
    let mut variables = vec![(ATTRIBUTES, attributes(user.attributes.as_deref(), &labels))];
    if user.has_spans {
        let trace = Trace::of(run_id, user.parent.as_deref());
        variables.push((PARENT, trace.header(&trace::item(run_id, item, attempt))));
    }
    variables
}

impl Environment {
    fn is_on(&self) -> bool {
        self.enabled.as_deref().is_some_and(is_on)
    }
}

fn is_on(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn attributes(own: Option<&str>, labels: &[(&str, Option<&str>)]) -> String {
    let ours = labels.iter().filter_map(|(name, value)| {
        let value = clipped((*value)?);
        (!value.is_empty()).then(|| format!("{name}={}", utf8_percent_encode(&value, RESERVED)))
    });
    let own = own.map(|own| own.trim().trim_matches(',').to_owned()).filter(|own| !own.is_empty());
    own.into_iter().chain(ours).collect::<Vec<_>>().join(",")
}

/// A value as it is a label.
pub fn clipped(value: &str) -> String {
    clip(&one_line(value), CLIPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(user: &Environment, name: &str, item: Option<&str>) -> Vec<(&'static str, String)> {
        let (run_id, session_id) = (RunId::from("r-1"), SessionId::from("s-1"));
        variables(
            user,
            Labelled { run_id: &run_id, run_name: name, iteration: 3, session_id: &session_id, item },
        )
    }

    fn on() -> Environment {
        Environment { enabled: Some("1".to_owned()), ..Environment::default() }
    }

    #[test]
    fn a_user_without_telemetry_gets_no_labels() {
        for enabled in [None, Some(""), Some("0"), Some("false"), Some("no")] {
            let user = Environment { enabled: enabled.map(str::to_owned), ..Environment::default() };
            assert_eq!(played(&user, "Dates", None), [], "{enabled:?}");
        }
    }

    #[test]
    fn labels_are_encoded_clipped_and_put_behind_the_users_own() {
        let first = |user: &Environment, name: &str, item| played(user, name, item)[0].clone();
        for (own, name, item, expected) in [
            (None, "Dates", None, "plimsoll.run_id=r-1,plimsoll.run_name=Dates,plimsoll.iteration=3"),
            (
                Some("team=a,"),
                "Größe, a=b",
                Some("one\ntwo"),
                "team=a,plimsoll.run_id=r-1,plimsoll.run_name=Gr%C3%B6%C3%9Fe%2C%20a%3Db,plimsoll.iteration=3,plimsoll.item=one%20two",
            ),
            (Some(" "), "", Some(""), "plimsoll.run_id=r-1,plimsoll.iteration=3"),
        ] {
            let user = Environment { attributes: own.map(str::to_owned), ..on() };
            assert_eq!(first(&user, name, item), (ATTRIBUTES, expected.to_owned()));
        }
        let (_, long) = first(&on(), &"x".repeat(10_000), None);
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn all_sessions_of_a_run_are_one_trace_unless_the_user_has_one() {
        let of = |run: &str, session: &str| {
            let (run_id, session_id) = (RunId::from(run), SessionId::from(session));
            let session =
                Labelled { run_id: &run_id, run_name: "", iteration: 1, session_id: &session_id, item: None };
            variables(&on(), session).into_iter().find(|(name, _)| *name == PARENT).map(|(_, value)| value)
        };
        let (one, two) = (of("r", "a").unwrap_or_default(), of("r", "b").unwrap_or_default());
        let is_hex = |part: &str| part.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f'));
        let parts: Vec<&str> = one.split('-').collect();
        assert_eq!(
            (parts.len(), parts[0], parts[1].len(), parts[2].len(), parts[3]),
            (4, "00", 32, 16, "01")
        );
        assert!(parts.iter().all(|part| is_hex(part)), "{one}");
        assert_eq!(one[..36], two[..36]);
        assert_ne!(one, two);
        assert_ne!(of("r2", "a").unwrap_or_default()[..36], one[..36]);
        let parent = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
        let user = Environment { parent: Some(parent.clone()), ..on() };
        assert!(played(&user, "", None).iter().all(|(name, _)| *name != PARENT));
        // With spans of our own in between, the session is below ours, in the user's trace.
        let between = played(&Environment { has_spans: true, ..user.clone() }, "", None);
        let (_, between) = between.iter().find(|(name, _)| *name == PARENT).unwrap();
        assert_eq!(between[..36], parent[..36]);
        assert_ne!(*between, parent);
    }

    #[test]
    fn a_workers_run_is_labelled_with_the_parallel_run_and_below_its_items_span() {
        let run_id = RunId::from("r-1");
        let own = Environment { attributes: Some("team=a".to_owned()), ..on() };
        let labels = |user: &Environment| of_worker(user, &run_id, 2, 1);
        assert_eq!(labels(&Environment::default()), []);
        let (name, value) = &labels(&own)[0];
        assert_eq!((*name, value.as_str()), (ATTRIBUTES, "team=a,plimsoll.parent_run_id=r-1"));
        assert_eq!(labels(&own).len(), 1, "without spans of ours there is none to be below");
        let spans = Environment { has_spans: true, ..own };
        let (name, value) = &labels(&spans)[1];
        assert_eq!(*name, PARENT);
        assert!(value.contains(&trace::item(&run_id, 2, 1)), "{value}");
        assert_ne!(labels(&spans), of_worker(&spans, &run_id, 2, 2), "each attempt has a span of its own");
    }
}
