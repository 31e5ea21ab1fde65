//! What the client's own telemetry is labelled with in a run: then cost and tokens per run, iteration and item are labels in every
//! dashboard for Claude Code, and all sessions of a run are one trace. Only if the user has turned the client's telemetry on;
//! we send nothing.

use plimsoll_domain::digest::sha256;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunId, SessionId};

/// Turns the client's telemetry on (2.1.329).
pub const ENABLED: &str = "CLAUDE_CODE_ENABLE_TELEMETRY";
/// The labels of everything that the client exports, by OpenTelemetry's specification.
pub const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// The span below which the client's spans hang, by W3C Trace Context.
pub const PARENT: &str = "TRACEPARENT";

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
/// a parent of theirs.
pub fn variables(user: &Environment, session: Labelled<'_>) -> Vec<(&'static str, String)> {
    if !user.enabled.as_deref().is_some_and(is_on) {
        return Vec::new();
    }
    let mut variables = vec![(ATTRIBUTES, attributes(user.attributes.as_deref(), session))];
    if user.parent.as_deref().unwrap_or_default().is_empty() {
        variables.push((PARENT, parent(session)));
    }
    variables
}

fn is_on(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn attributes(own: Option<&str>, session: Labelled<'_>) -> String {
    let iteration = session.iteration.to_string();
    let labels = [
        ("plimsoll.run_id", Some(session.run_id.as_str())),
        ("plimsoll.run_name", Some(session.run_name)),
        ("plimsoll.iteration", Some(iteration.as_str())),
        ("plimsoll.item", session.item),
    ];
    let ours = labels.into_iter().filter_map(|(name, value)| {
        let value = clip(&one_line(value?), CLIPPED);
        (!value.is_empty()).then(|| format!("{name}={}", encoded(&value)))
    });
    let own = own.map(|own| own.trim().trim_matches(',').to_owned()).filter(|own| !own.is_empty());
    own.into_iter().chain(ours).collect::<Vec<_>>().join(",")
}

/// Percent-encoded as the specification wants it: neither a comma nor anything outside ASCII is left.
fn encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    value
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The run is the trace, and the session a span of it: of ids that anybody can work out from the journal.
fn parent(session: Labelled<'_>) -> String {
    let trace = sha256(&[b"plimsoll trace ", session.run_id.as_str().as_bytes()]);
    let span = sha256(&[
        b"plimsoll span ",
        session.run_id.as_str().as_bytes(),
        b" ",
        session.session_id.as_str().as_bytes(),
    ]);
    format!("00-{}-{}-01", &trace[..32], &span[..16])
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
        let user = Environment { parent: Some("00-ab-cd-01".to_owned()), ..on() };
        assert!(played(&user, "", None).iter().all(|(name, _)| *name != PARENT));
    }
}
