//! Labels the client's telemetry within a run, if the user has turned it on. Every dashboard for Claude Code can then show
//! cost and tokens per run, iteration and item, and all sessions of a run form one trace.
//!
//! [`trace`] derives the ids that sessions and the spans of the run share. [`exporter`] reads from the user's environment where
//! spans and logs are sent. This module sends nothing.

pub mod exporter;
pub mod trace;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunId, SessionId};
use trace::TraceContext;

/// The variable that turns the client's telemetry on (2.1.329).
pub const ENABLE_VARIABLE: &str = "CLAUDE_CODE_ENABLE_TELEMETRY";
/// The variable with the attributes of everything that the client exports, defined by OpenTelemetry.
pub const RESOURCE_ATTRIBUTES_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// The variable with the parent of the client's spans, defined by W3C Trace Context.
pub const TRACEPARENT_VARIABLE: &str = "TRACEPARENT";

/// The label with the id of the run.
pub const RUN_ID_LABEL: &str = "plimsoll.run_id";
/// The label with the name of the run.
pub const RUN_NAME_LABEL: &str = "plimsoll.run_name";

/// The characters that are percent-encoded in a label's value. The specification requires this for commas and non-ASCII
/// characters.
const CHARACTERS_TO_PERCENT_ENCODE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'/');

/// The maximum length of a label's value, such as a run's name or an item. Dashboards show these values in lists.
const MAX_LABEL_CHARS: usize = 80;

/// The user's settings for telemetry, from environment variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetryEnvironment {
    /// The value of [`ENABLE_VARIABLE`].
    pub enable_telemetry: Option<String>,
    /// The value of [`RESOURCE_ATTRIBUTES_VARIABLE`].
    pub resource_attributes: Option<String>,
    /// The value of [`TRACEPARENT_VARIABLE`].
    pub traceparent: Option<String>,
    /// True if the run's spans are exported. They are then the parents of the session spans, and children of the user's
    /// span if there is one.
    pub exports_run_spans: bool,
}

/// The session whose telemetry is labeled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabeledSession<'a> {
    pub run_id: &'a RunId,
    pub run_name: &'a str,
    pub iteration: u32,
    pub session_id: &'a SessionId,
    /// The item that the session begins with.
    pub item: Option<&'a str>,
}

/// Returns the environment variables for a session's client, or nothing if telemetry is off.
///
/// The labels are appended to the user's. `TRACEPARENT` is set only if the run exports spans, which are then inserted
/// between the user's parent span and the session, or if the user has no parent span.
pub fn telemetry_variables_for_session_if_enabled(
    environment: &TelemetryEnvironment,
    session: LabeledSession<'_>,
) -> Vec<(&'static str, String)> {
    if !environment.is_enabled() {
        return Vec::new();
    }
    let iteration = session.iteration.to_string();
    let labels = [
        (RUN_ID_LABEL, Some(session.run_id.as_str())),
        (RUN_NAME_LABEL, Some(session.run_name)),
        ("plimsoll.iteration", Some(iteration.as_str())),
        ("plimsoll.item", session.item),
    ];
    let mut variables = vec![(
        RESOURCE_ATTRIBUTES_VARIABLE,
        append_encoded_labels_to_attributes(environment.resource_attributes.as_deref(), &labels),
    )];
    if environment.exports_run_spans || environment.traceparent.as_deref().unwrap_or_default().is_empty() {
        let trace = TraceContext::from_valid_traceparent_or_run_id(
            session.run_id,
            environment.traceparent.as_deref(),
        );
        variables.push((
            TRACEPARENT_VARIABLE,
            trace.traceparent(&trace::session_span_id(session.run_id, session.session_id)),
        ));
    }
    variables
}

/// Returns the environment variables for the `plimsoll run` of a worker in a parallel run. They label its sessions and spans with
/// the parallel run and, if that exports spans, make them children of the item's span. Returns nothing if telemetry is off.
pub fn telemetry_variables_for_worker_if_enabled(
    environment: &TelemetryEnvironment,
    run_id: &RunId,
    item_number: usize,
    attempt: u64,
) -> Vec<(&'static str, String)> {
    if !environment.is_enabled() {
        return Vec::new();
    }
    let labels = [("plimsoll.parent_run_id", Some(run_id.as_str()))];
    let mut variables = vec![(
        RESOURCE_ATTRIBUTES_VARIABLE,
        append_encoded_labels_to_attributes(environment.resource_attributes.as_deref(), &labels),
    )];
    if environment.exports_run_spans {
        let trace =
            TraceContext::from_valid_traceparent_or_run_id(run_id, environment.traceparent.as_deref());
        variables.push((
            TRACEPARENT_VARIABLE,
            trace.traceparent(&trace::item_span_id(run_id, item_number, attempt)),
        ));
    }
    variables
}

impl TelemetryEnvironment {
    fn is_enabled(&self) -> bool {
        self.enable_telemetry.as_deref().is_some_and(is_truthy)
    }
}

fn is_truthy(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Appends the labels, percent-encoded, to the existing attributes. Labels without a value are skipped.
fn append_encoded_labels_to_attributes(
    existing_attributes: Option<&str>,
    labels: &[(&str, Option<&str>)],
) -> String {
    let encoded_labels = labels.iter().filter_map(|(name, value)| {
        let value = clip_label_value((*value)?);
        (!value.is_empty())
            .then(|| format!("{name}={}", utf8_percent_encode(&value, CHARACTERS_TO_PERCENT_ENCODE)))
    });
    let existing_attributes = existing_attributes
        .map(|attributes| attributes.trim().trim_matches(',').to_owned())
        .filter(|attributes| !attributes.is_empty());
    existing_attributes.into_iter().chain(encoded_labels).collect::<Vec<_>>().join(",")
}

/// Shortens a value to one line of at most 80 characters, as it appears in a label.
pub fn clip_label_value(value: &str) -> String {
    truncate_end(&to_safe_single_line(value), MAX_LABEL_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables_of_session(
        user: &TelemetryEnvironment,
        name: &str,
        item: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let (run_id, session_id) = (RunId::from("r-1"), SessionId::from("s-1"));
        telemetry_variables_for_session_if_enabled(
            user,
            LabeledSession { run_id: &run_id, run_name: name, iteration: 3, session_id: &session_id, item },
        )
    }

    fn enabled_environment() -> TelemetryEnvironment {
        TelemetryEnvironment { enable_telemetry: Some("1".to_owned()), ..TelemetryEnvironment::default() }
    }

    #[test]
    fn a_user_without_telemetry_gets_no_labels() {
        for enabled in [None, Some(""), Some("0"), Some("false"), Some("no")] {
            let user = TelemetryEnvironment {
                enable_telemetry: enabled.map(str::to_owned),
                ..TelemetryEnvironment::default()
            };
            assert_eq!(variables_of_session(&user, "Dates", None), [], "{enabled:?}");
        }
    }

    #[test]
    fn labels_are_encoded_clipped_and_appended_to_the_users_own() {
        let first_variable =
            |user: &TelemetryEnvironment, name: &str, item| variables_of_session(user, name, item)[0].clone();
        for (existing, name, item, expected) in [
            (None, "Dates", None, "plimsoll.run_id=r-1,plimsoll.run_name=Dates,plimsoll.iteration=3"),
            (
                Some("team=a,"),
                "Größe, a=b",
                Some("one\ntwo"),
                "team=a,plimsoll.run_id=r-1,plimsoll.run_name=Gr%C3%B6%C3%9Fe%2C%20a%3Db,plimsoll.iteration=3,plimsoll.item=one%20two",
            ),
            (Some(" "), "", Some(""), "plimsoll.run_id=r-1,plimsoll.iteration=3"),
        ] {
            let user = TelemetryEnvironment {
                resource_attributes: existing.map(str::to_owned),
                ..enabled_environment()
            };
            assert_eq!(
                first_variable(&user, name, item),
                (RESOURCE_ATTRIBUTES_VARIABLE, expected.to_owned())
            );
        }
        let (_, long) = first_variable(&enabled_environment(), &"x".repeat(10_000), None);
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn all_sessions_of_a_run_are_one_trace_unless_the_user_has_one() {
        let traceparent_of = |run: &str, session: &str| {
            let (run_id, session_id) = (RunId::from(run), SessionId::from(session));
            let session = LabeledSession {
                run_id: &run_id,
                run_name: "",
                iteration: 1,
                session_id: &session_id,
                item: None,
            };
            telemetry_variables_for_session_if_enabled(&enabled_environment(), session)
                .into_iter()
                .find(|(name, _)| *name == TRACEPARENT_VARIABLE)
                .map(|(_, value)| value)
        };
        let (first, second) =
            (traceparent_of("r", "a").unwrap_or_default(), traceparent_of("r", "b").unwrap_or_default());
        let is_hex = |part: &str| part.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f'));
        let parts: Vec<&str> = first.split('-').collect();
        assert_eq!(
            (parts.len(), parts[0], parts[1].len(), parts[2].len(), parts[3]),
            (4, "00", 32, 16, "01")
        );
        assert!(parts.iter().all(|part| is_hex(part)), "{first}");
        assert_eq!(first[..36], second[..36]);
        assert_ne!(first, second);
        assert_ne!(traceparent_of("r2", "a").unwrap_or_default()[..36], first[..36]);
        let parent = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
        let user = TelemetryEnvironment { traceparent: Some(parent.clone()), ..enabled_environment() };
        assert!(variables_of_session(&user, "", None).iter().all(|(name, _)| *name != TRACEPARENT_VARIABLE));
        // If the run exports spans, the session is a child of the run's span within the user's trace.
        let between =
            variables_of_session(&TelemetryEnvironment { exports_run_spans: true, ..user.clone() }, "", None);
        let (_, between) = between.iter().find(|(name, _)| *name == TRACEPARENT_VARIABLE).unwrap();
        assert_eq!(between[..36], parent[..36]);
        assert_ne!(*between, parent);
    }

    #[test]
    fn a_workers_run_has_the_parallel_runs_label_and_its_items_span_as_parent() {
        let run_id = RunId::from("r-1");
        let with_attributes =
            TelemetryEnvironment { resource_attributes: Some("team=a".to_owned()), ..enabled_environment() };
        let worker_variables =
            |user: &TelemetryEnvironment| telemetry_variables_for_worker_if_enabled(user, &run_id, 2, 1);
        assert_eq!(worker_variables(&TelemetryEnvironment::default()), []);
        let (name, value) = &worker_variables(&with_attributes)[0];
        assert_eq!(
            (*name, value.as_str()),
            (RESOURCE_ATTRIBUTES_VARIABLE, "team=a,plimsoll.parent_run_id=r-1")
        );
        assert_eq!(
            worker_variables(&with_attributes).len(),
            1,
            "without spans of ours there is none to be below"
        );
        let spans = TelemetryEnvironment { exports_run_spans: true, ..with_attributes };
        let (name, value) = &worker_variables(&spans)[1];
        assert_eq!(*name, TRACEPARENT_VARIABLE);
        assert!(value.contains(&trace::item_span_id(&run_id, 2, 1)), "{value}");
        assert_ne!(
            worker_variables(&spans),
            telemetry_variables_for_worker_if_enabled(&spans, &run_id, 2, 2),
            "each attempt has a span of its own"
        );
    }
}
