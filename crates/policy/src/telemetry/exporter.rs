//! Reads the destinations of a run's spans and logs from the standard OpenTelemetry variables:
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>. There are no other settings, and files in a project cannot
//! change the destinations.

use super::{ENABLE_VARIABLE, is_truthy};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::time::Duration;

/// A kind of telemetry that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The spans of the run.
    Traces,
    /// The journal of the run.
    Logs,
}

impl Signal {
    /// Returns the part of the variable names that identifies this signal.
    fn variable_name_part(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Logs => "LOGS",
        }
    }

    /// Returns the path that is appended to an endpoint for all signals.
    fn endpoint_path(self) -> &'static str {
        match self {
            Signal::Traces => "v1/traces",
            Signal::Logs => "v1/logs",
        }
    }
}

/// The destination of one signal.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportTarget {
    pub url: String,
    /// Headers of every request. They often contain a key.
    pub headers: Vec<(String, String)>,
    /// The timeout of one request.
    pub timeout: Duration,
    /// A PEM file with the certificates that are trusted instead of the system's.
    pub certificate: Option<String>,
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Prints neither headers nor URL because both may contain a key.
        formatter.write_str("Target(…)")
    }
}

/// The destinations of both signals, and the variables that could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExporterConfig {
    /// The destination of spans; `None` if they are not exported.
    pub traces: Option<ExportTarget>,
    /// The destination of the journal; `None` if it is not exported.
    pub logs: Option<ExportTarget>,
    pub invalid_variables: Vec<InvalidVariable>,
}

/// A variable that cannot be used, by its name. The value is left out because it may contain a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidVariable {
    /// The protocol is gRPC, which is not supported.
    UnsupportedGrpc(String),
    /// The value is not an HTTP URL.
    InvalidEndpoint(String),
    /// The value is not a list of headers.
    InvalidHeaders(String),
}

impl std::fmt::Display for InvalidVariable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InvalidVariable::UnsupportedGrpc(name) => write!(
                formatter,
                "{name} is grpc, which Plimsoll does not speak: its spans and logs are not exported (set http/protobuf, and the port for HTTP, usually 4318)"
            ),
            InvalidVariable::InvalidEndpoint(name) => {
                write!(
                    formatter,
                    "{name} must begin with http:// or https:// and name a host: nothing is exported to it"
                )
            }
            InvalidVariable::InvalidHeaders(name) => {
                write!(
                    formatter,
                    "{name} must be a list such as name=value,name=value: nothing is exported without it"
                )
            }
        }
    }
}

impl ExporterConfig {
    /// Reads the configuration; `lookup` returns the value of an environment variable. Nothing is exported if the
    /// client's telemetry is off, or without an endpoint.
    pub fn from_variables_if_telemetry_enabled(lookup: impl Fn(&str) -> Option<String>) -> ExporterConfig {
        let lookup_non_empty =
            |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_true =
            |name: &str| lookup_non_empty(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !lookup_non_empty(ENABLE_VARIABLE).as_deref().is_some_and(is_truthy)
            || is_true("OTEL_SDK_DISABLED")
        {
            return ExporterConfig::default();
        }
        let mut config = ExporterConfig::default();
        for signal in [Signal::Traces, Signal::Logs] {
            let target = read_export_target(signal, &lookup_non_empty).unwrap_or_else(|invalid_variable| {
                // A variable that applies to both signals is reported once.
                if !config.invalid_variables.contains(&invalid_variable) {
                    config.invalid_variables.push(invalid_variable);
                }
                None
            });
            match signal {
                Signal::Traces => config.traces = target,
                Signal::Logs => config.logs = target,
            }
        }
        config
    }

    /// Returns true if at least one signal is exported.
    pub fn has_target(&self) -> bool {
        self.traces.is_some() || self.logs.is_some()
    }
}

/// The specification's default timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Caps the configured timeout, because the end of the run waits for the export.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the destination of a signal from its variables. A variable for the signal takes precedence over the one for all signals.
///
/// Returns `None` if the signal is not exported or has no endpoint, and an error if a variable cannot be used.
fn read_export_target(
    signal: Signal,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ExportTarget>, InvalidVariable> {
    // The specification's default is `otlp`.
    let exporters = lookup(&format!("OTEL_{}_EXPORTER", signal.variable_name_part()))
        .unwrap_or_else(|| "otlp".to_owned());
    if !exporters.split(',').any(|exporter| exporter.trim() == "otlp") {
        return Ok(None);
    }
    let lookup_for_signal = |suffix: &str| {
        let signal_variable = format!("OTEL_EXPORTER_OTLP_{}_{suffix}", signal.variable_name_part());
        let common_variable = format!("OTEL_EXPORTER_OTLP_{suffix}");
        lookup(&signal_variable)
            .map(|value| (signal_variable, value))
            .or_else(|| lookup(&common_variable).map(|value| (common_variable, value)))
    };
    let Some((endpoint_variable, endpoint)) = lookup_for_signal("ENDPOINT") else { return Ok(None) };
    if let Some((protocol_variable, protocol)) = lookup_for_signal("PROTOCOL")
        && protocol.eq_ignore_ascii_case("grpc")
    {
        return Err(InvalidVariable::UnsupportedGrpc(protocol_variable));
    }
    let applies_to_all_signals = endpoint_variable == "OTEL_EXPORTER_OTLP_ENDPOINT";
    let url = http_url_with_path(&endpoint, applies_to_all_signals.then_some(signal.endpoint_path()));
    let Some(url) = url else {
        return Err(InvalidVariable::InvalidEndpoint(endpoint_variable));
    };
    let headers = match lookup_for_signal("HEADERS") {
        Some((headers_variable, list)) => {
            parse_headers(&list).ok_or(InvalidVariable::InvalidHeaders(headers_variable))?
        }
        None => Vec::new(),
    };
    let timeout = lookup_for_signal("TIMEOUT")
        .and_then(|(_, value)| value.parse::<u64>().ok())
        .filter(|value| *value > 0);
    let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT);
    let certificate = lookup_for_signal("CERTIFICATE").map(|(_, path)| path);
    Ok(Some(ExportTarget { url, headers, timeout, certificate }))
}

/// Appends `path` to an endpoint and lowercases the scheme. Returns `None` if the endpoint is not an HTTP URL.
fn http_url_with_path(endpoint: &str, path: Option<&str>) -> Option<String> {
    let (scheme, host_and_path) = endpoint.split_once("://")?;
    let host = host_and_path.split(['/', '?', '#']).next().unwrap_or_default();
    let is_http = ["http", "https"].iter().any(|supported| scheme.eq_ignore_ascii_case(supported));
    let is_printable_ascii = endpoint.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_http || !is_printable_ascii || host.is_empty() {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    Some(match path {
        None => format!("{scheme}://{host_and_path}"),
        Some(path) => format!("{scheme}://{}/{path}", host_and_path.trim_end_matches('/')),
    })
}

/// Parses a list such as `name=value,name=value` with percent-encoded values. Returns `None` if a part is not a valid header.
fn parse_headers(list: &str) -> Option<Vec<(String, String)>> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim(), percent_decode(value.trim())?);
            let is_valid_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            let is_valid_value = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            (is_valid_name && is_valid_value).then(|| (name.to_owned(), value))
        })
        .collect()
}

/// Parses the attributes of `OTEL_RESOURCE_ATTRIBUTES`. Invalid ones are skipped.
pub fn parse_resource_attributes(list: &str) -> Vec<(String, String)> {
    let parts = list.split(',').filter_map(|part| part.split_once('='));
    let pairs = parts.map(|(name, value)| (name.trim().to_owned(), percent_decode(value.trim())));
    pairs.filter_map(|(name, value)| Some((name, value?))).filter(|(name, _)| !name.is_empty()).collect()
}

/// Decodes a percent-encoded text. A `%` without two hexadecimal digits stays as it is. Returns `None` if the result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exporter_with(variables: &[(&str, &str)]) -> ExporterConfig {
        let defaults = [(ENABLE_VARIABLE, "1")];
        ExporterConfig::from_variables_if_telemetry_enabled(|name| {
            let variable = variables.iter().chain(&defaults).find(|(key, _)| *key == name);
            variable.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    fn urls(exporter: &ExporterConfig) -> (Option<&str>, Option<&str>) {
        fn url(target: &ExportTarget) -> &str {
            &target.url
        }
        (exporter.traces.as_ref().map(url), exporter.logs.as_ref().map(url))
    }

    #[test]
    fn the_variables_determine_the_url_of_each_signal() {
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
            (vec![(ENDPOINT, "http://c:4318"), (ENABLE_VARIABLE, "0")], (None, None)),
        ] {
            let exporter = exporter_with(&variables);
            assert_eq!(urls(&exporter), expected, "{variables:?}");
            assert_eq!(exporter.invalid_variables, [], "{variables:?}");
        }
    }

    #[test]
    fn an_unusable_variable_is_reported_once_and_without_its_value() {
        for (variables, expected) in [
            (vec![(ENDPOINT, "http://c:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "is grpc"),
            (vec![(ENDPOINT, "c:4318")], "must begin with http"),
            (vec![(ENDPOINT, "http:///x")], "name a host"),
            (vec![(ENDPOINT, "http://c"), ("OTEL_EXPORTER_OTLP_HEADERS", "sesame")], "name=value"),
            (vec![(ENDPOINT, "http://c"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=sesame%0A")], "name=value"),
        ] {
            let exporter = exporter_with(&variables);
            assert_eq!(exporter.invalid_variables.len(), 1, "{exporter:?}");
            let message = exporter.invalid_variables[0].to_string();
            assert!(message.contains(expected) && !message.contains("sesame"), "{message}");
            assert!(!format!("{exporter:?}").contains("sesame") && !exporter.has_target());
        }
    }

    #[test]
    fn headers_timeout_and_certificate_of_the_signal_take_precedence() {
        let exporter = exporter_with(&[
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
        assert_eq!((logs.headers, logs.timeout), (vec![pair("k", "v")], DEFAULT_TIMEOUT));
    }

    #[test]
    fn resource_attributes_are_decoded_and_invalid_ones_skipped() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse_resource_attributes("team=a%2Cb, x = 100% ,nothing,=y,bad=%FF"),
            [pair("team", "a,b"), pair("x", "100%")]
        );
    }
}
