//! Where a run's spans and logs go, by the variables that OpenTelemetry gives every program:
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>. There is nothing else to set, and nothing inside a project
//! has a say.

use super::{ENABLED, is_on};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::time::Duration;

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// The journal.
    Logs,
}

impl Signal {
    /// The part of a variable's name.
    fn word(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Logs => "LOGS",
        }
    }

    /// What follows a common endpoint.
    fn path(self) -> &'static str {
        match self {
            Signal::Traces => "v1/traces",
            Signal::Logs => "v1/logs",
        }
    }
}

/// Where one signal goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The whole address.
    pub url: String,
    /// What is sent beside it: often a key.
    pub headers: Vec<(String, String)>,
    /// How long one request may take.
    pub timeout: Duration,
    /// A file of certificates (PEM) that are trusted instead of the computer's own.
    pub certificate: Option<String>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither headers nor address: both may hold a key.
        formatter.write_str("Target(…)")
    }
}

/// Both signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exporter {
    /// Where spans go; none if nowhere.
    pub traces: Option<Target>,
    /// Where the journal goes.
    pub logs: Option<Target>,
    /// What of the variables cannot be followed.
    pub unfit: Vec<UnfitVariable>,
}

/// A variable that cannot be followed; its value may hold a key, and is not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnfitVariable {
    /// It names gRPC.
    Grpc(String),
    /// It is no address.
    Endpoint(String),
    /// It is no list of headers.
    Headers(String),
}

impl std::fmt::Display for UnfitVariable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnfitVariable::Grpc(name) => write!(
                formatter,
                "{name} is grpc, which Plimsoll does not speak: its spans and logs are not exported (set http/protobuf, and the port for HTTP, usually 4318)"
            ),
            UnfitVariable::Endpoint(name) => {
                write!(
                    formatter,
                    "{name} must begin with http:// or https:// and name a host: nothing is exported to it"
                )
            }
            UnfitVariable::Headers(name) => {
                write!(
                    formatter,
                    "{name} must be a list such as name=value,name=value: nothing is exported without it"
                )
            }
        }
    }
}

impl Exporter {
    /// What the environment says; `variable` looks one up. Without the client's telemetry, or without an endpoint, nothing is
    /// exported.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Exporter {
        let set = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let is_true = |name: &str| set(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !set(ENABLED).as_deref().is_some_and(is_on) || is_true("OTEL_SDK_DISABLED") {
            return Exporter::default();
        }
        let mut exporter = Exporter::default();
        for signal in [Signal::Traces, Signal::Logs] {
            let target = target(signal, &set).unwrap_or_else(|unfit| {
                // What holds for both is said once.
                if !exporter.unfit.contains(&unfit) {
                    exporter.unfit.push(unfit);
                }
                None
            });
            match signal {
                Signal::Traces => exporter.traces = target,
                Signal::Logs => exporter.logs = target,
            }
        }
        exporter
    }

    /// True if there is anything to export.
    pub fn is_on(&self) -> bool {
        self.traces.is_some() || self.logs.is_some()
    }
}

/// As the specification has it, and no longer: a run ends, and what is behind it waits.
const TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a signal goes, or why it cannot; a variable of its own goes before the common one.
fn target(signal: Signal, set: &dyn Fn(&str) -> Option<String>) -> Result<Option<Target>, UnfitVariable> {
    // Unset, it is `otlp` by the specification.
    let exporters = set(&format!("OTEL_{}_EXPORTER", signal.word())).unwrap_or_else(|| "otlp".to_owned());
    if !exporters.split(',').any(|exporter| exporter.trim() == "otlp") {
        return Ok(None);
    }
    let named = |what: &str| {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.word());
        let common = format!("OTEL_EXPORTER_OTLP_{what}");
        set(&own).map(|value| (own, value)).or_else(|| set(&common).map(|value| (common, value)))
    };
    let Some((name, endpoint)) = named("ENDPOINT") else { return Ok(None) };
    if let Some((name, protocol)) = named("PROTOCOL")
        && protocol.eq_ignore_ascii_case("grpc")
    {
        return Err(UnfitVariable::Grpc(name));
    }
    let is_common = name == "OTEL_EXPORTER_OTLP_ENDPOINT";
    let url = address(&endpoint, is_common.then_some(signal.path()));
    let Some(url) = url else {
        return Err(UnfitVariable::Endpoint(name));
    };
    let headers = match named("HEADERS") {
        Some((name, list)) => headers(&list).ok_or(UnfitVariable::Headers(name))?,
        None => Vec::new(),
    };
    let timeout =
        named("TIMEOUT").and_then(|(_, value)| value.parse::<u64>().ok()).filter(|value| *value > 0);
    let timeout = timeout.map_or(TIMEOUT, Duration::from_millis).min(LONGEST_TIMEOUT);
    let certificate = named("CERTIFICATE").map(|(_, path)| path);
    Ok(Some(Target { url, headers, timeout, certificate }))
}

/// The whole address; none if it is not one for HTTP.
fn address(endpoint: &str, path: Option<&str>) -> Option<String> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let is_plain = endpoint.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_http || !is_plain || host.is_empty() {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    Some(match path {
        None => format!("{scheme}://{rest}"),
        Some(path) => format!("{scheme}://{}/{path}", rest.trim_end_matches('/')),
    })
}

/// `name=value,name=value`, values percent-encoded; none if a part is no header.
fn headers(list: &str) -> Option<Vec<(String, String)>> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim(), percent_decoded(value.trim())?);
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            let is_value = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            (is_name && is_value).then(|| (name.to_owned(), value))
        })
        .collect()
}

/// The attributes in `OTEL_RESOURCE_ATTRIBUTES`; one that is none is left out.
pub fn resource(list: &str) -> Vec<(String, String)> {
    let parts = list.split(',').filter_map(|part| part.split_once('='));
    let pairs = parts.map(|(name, value)| (name.trim().to_owned(), percent_decoded(value.trim())));
    pairs.filter_map(|(name, value)| Some((name, value?))).filter(|(name, _)| !name.is_empty()).collect()
}

/// Decodes a percent-encoded text. A `%` without two hexadecimal digits stays as it is. Returns `None` if the result is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Exporter {
        let on = [(ENABLED, "1")];
        Exporter::of(|name| {
            let found = variables.iter().chain(&on).find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    fn urls(exporter: &Exporter) -> (Option<&str>, Option<&str>) {
        fn url(target: &Target) -> &str {
            &target.url
        }
        (exporter.traces.as_ref().map(url), exporter.logs.as_ref().map(url))
    }

    #[test]
    fn each_signal_goes_where_the_variables_say() {
        let both = (Some("http://c:4318/v1/traces"), Some("http://c:4318/v1/logs"));
        for (variables, expected) in [
            (vec![], (None, None)),
            (vec![(ENDPOINT, "http://c:4318")], both),
            (vec![(ENDPOINT, "HTTP://c:4318/")], both),
            (vec![(ENDPOINT, "http://c:4318"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")], both),
            (
                vec![
                    (ENDPOINT, "https://c/otlp"),
                    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/api?x=1"),
                ],
                (Some("http://t:1/api?x=1"), Some("https://c/otlp/v1/logs")),
            ),
            (vec![("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l/")], (None, Some("http://l/"))),
            (vec![(ENDPOINT, "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")], (None, both.1)),
            (vec![(ENDPOINT, "http://c:4318"), ("OTEL_LOGS_EXPORTER", "console")], (both.0, None)),
            (vec![(ENDPOINT, "http://c:4318"), ("OTEL_LOGS_EXPORTER", "console, otlp")], both),
            (vec![(ENDPOINT, "http://c:4318"), ("OTEL_SDK_DISABLED", "true")], (None, None)),
            (vec![(ENDPOINT, "http://c:4318"), (ENABLED, "0")], (None, None)),
        ] {
            let exporter = of(&variables);
            assert_eq!(urls(&exporter), expected, "{variables:?}");
            assert_eq!(exporter.unfit, [], "{variables:?}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_said_once_and_without_values() {
        for (variables, words) in [
            (vec![(ENDPOINT, "http://c:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "is grpc"),
            (vec![(ENDPOINT, "c:4318")], "must begin with http"),
            (vec![(ENDPOINT, "http:///x")], "name a host"),
            (vec![(ENDPOINT, "http://c"), ("OTEL_EXPORTER_OTLP_HEADERS", "sesame")], "name=value"),
            (vec![(ENDPOINT, "http://c"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=sesame%0A")], "name=value"),
        ] {
            let exporter = of(&variables);
            assert_eq!(exporter.unfit.len(), 1, "{exporter:?}");
            let said = exporter.unfit[0].to_string();
            assert!(said.contains(words) && !said.contains("sesame"), "{said}");
            assert!(!format!("{exporter:?}").contains("sesame") && !exporter.is_on());
        }
    }

    #[test]
    fn headers_timeout_and_certificate_are_those_of_the_signal() {
        let exporter = of(&[
            (ENDPOINT, "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20YTpi, x-team = a=b,"),
            ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "k=v"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "never"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ]);
        let traces = exporter.traces.unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(traces.headers, [pair("Authorization", "Basic YTpi"), pair("x-team", "a=b")]);
        assert_eq!(
            (traces.timeout, traces.certificate.as_deref()),
            (Duration::from_millis(250), Some("/ca.pem"))
        );
        let logs = exporter.logs.unwrap();
        assert_eq!((logs.headers, logs.timeout), (vec![pair("k", "v")], TIMEOUT));
    }

    #[test]
    fn a_resource_is_decoded_and_what_is_none_left_out() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            resource("team=a%2Cb, x = 100% ,nothing,=y,bad=%FF"),
            [pair("team", "a,b"), pair("x", "100%")]
        );
    }
}
