//! Parses Linear's responses into data with warnings, or an error. The bytes are untrusted: a field of the wrong type counts as
//! missing.

use super::error::{GraphqlError, LinearError, RequestedWait};
use super::key::ApiKey;
use serde_json::Value;
use std::time::Duration;

/// An HTTP response with its body decoded as text.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Pairs of name and value.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// The response to a GraphQL operation that returned data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GraphqlResponse {
    pub(crate) data: Value,
    /// Errors returned together with the data.
    pub(crate) errors: Vec<GraphqlError>,
}

/// Maximum length of server text in error messages.
const MAX_SERVER_TEXT_CHARS: usize = 200;
/// Upper limit for `Retry-After`. A longer wait is probably a clock error.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Parses a response. The HTTP status and the GraphQL error codes determine which error is returned.
pub(crate) fn parse_response(
    response: &HttpResponse,
    host: &str,
    key: &ApiKey,
) -> Result<GraphqlResponse, LinearError> {
    let response_json: Value = serde_json::from_str(&response.body).unwrap_or_default();
    let errors: Vec<GraphqlError> = response_json["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|error| parse_graphql_error(error, key))
        .collect();
    let has_code = |codes: &[&str]| errors.iter().any(|error| codes.contains(&error.code.as_str()));
    let host = host.to_owned();
    let error_message = || match errors.first() {
        Some(error) => error.to_string(),
        None => redacted_excerpt(&response.body, key),
    };
    match response.status {
        429 => {
            return Err(LinearError::RateLimited {
                requested_wait: parse_latest_reset_or_retry_after(&response.headers),
            });
        }
        _ if has_code(&["RATELIMITED"]) => {
            return Err(LinearError::RateLimited {
                requested_wait: parse_latest_reset_or_retry_after(&response.headers),
            });
        }
        401 => return Err(LinearError::Unauthorized { message: error_message() }),
        _ if has_code(&["AUTHENTICATION_ERROR", "UNAUTHENTICATED"]) => {
            return Err(LinearError::Unauthorized { message: error_message() });
        }
        300..=399 => {
            return Err(LinearError::UnexpectedResponse {
                host,
                problem: "a redirect, which is not followed".to_owned(),
            });
        }
        _ => {}
    }
    let data = response_json["data"].clone();
    let has_data = data.as_object().is_some_and(|fields| fields.values().any(|value| !value.is_null()));
    match response.status {
        // GraphQL can return data and errors together: the data is used, and the errors become warnings.
        200 if has_data => Ok(GraphqlResponse { data, errors }),
        403 => Err(LinearError::Forbidden { message: error_message() }),
        _ if has_code(&["FORBIDDEN"]) => Err(LinearError::Forbidden { message: error_message() }),
        500.. => Err(LinearError::ServerError { host, status: response.status, message: error_message() }),
        _ if !errors.is_empty() => Err(LinearError::Rejected { errors }),
        status if response_json.is_object() => Err(LinearError::UnexpectedResponse {
            host,
            problem: format!("status {status}, neither data nor errors"),
        }),
        status => Err(LinearError::UnexpectedResponse {
            host,
            problem: format!("status {status}: {}", redacted_excerpt(&response.body, key)),
        }),
    }
}

fn parse_graphql_error(error: &Value, key: &ApiKey) -> GraphqlError {
    let extensions = &error["extensions"];
    let non_empty_string = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let message =
        non_empty_string(&error["message"]).unwrap_or_else(|| "an error without a message".to_owned());
    // Linear's text for users says more than the message, which is often only an error class.
    let message = match non_empty_string(&extensions["userPresentableMessage"]) {
        Some(user_message) if !message.contains(&user_message) => format!("{message}: {user_message}"),
        _ => message,
    };
    let path_segment_to_string =
        |path_segment: &Value| path_segment.as_str().map_or_else(|| path_segment.to_string(), str::to_owned);
    let path = error["path"]
        .as_array()
        .into_iter()
        .flatten()
        .map(path_segment_to_string)
        .collect::<Vec<_>>()
        .join(".");
    GraphqlError {
        message: sanitize_and_truncate_to_line(&key.redact_from(&message)),
        code: non_empty_string(&extensions["code"]).unwrap_or_default(),
        path: sanitize_and_truncate_to_line(&path),
    }
}

fn redacted_excerpt(body: &str, key: &ApiKey) -> String {
    sanitize_and_truncate_to_line(&key.redact_from(body))
}

/// Converts untrusted text to one line without control characters, truncated to `MAX_SERVER_TEXT_CHARS`.
fn sanitize_and_truncate_to_line(text: &str) -> String {
    let printable: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SERVER_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns how long Linear asks the client to wait. Linear limits the number of requests and their complexity, in total and per
/// operation. The result is the latest reset of an exhausted limit, or the latest reset of all if none is marked as exhausted.
/// `Retry-After` is used only if there is no reset header.
fn parse_latest_reset_or_retry_after(headers: &[(String, String)]) -> RequestedWait {
    let numeric_header = |name: &str| {
        let value = headers
            .iter()
            .find(|(header_name, _)| header_name.eq_ignore_ascii_case(name))
            .map(|(_, value)| value);
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let limit_kinds = ["Requests", "Complexity", "Endpoint-Requests"];
    let reset_times: Vec<(bool, u64)> = limit_kinds
        .into_iter()
        .filter_map(|kind| {
            let is_exhausted = numeric_header(&format!("X-RateLimit-{kind}-Remaining")) == Some(0);
            Some((is_exhausted, to_unix_millis(numeric_header(&format!("X-RateLimit-{kind}-Reset"))?)))
        })
        .collect();
    let exhausted_reset_time =
        reset_times.iter().filter(|(is_exhausted, _)| *is_exhausted).map(|(_, reset)| *reset).max();
    match (
        exhausted_reset_time.or(reset_times.iter().map(|(_, reset)| *reset).max()),
        numeric_header("Retry-After"),
    ) {
        (Some(reset), _) => RequestedWait::UntilUnixMillis(reset),
        (None, Some(seconds)) => {
            RequestedWait::ForDuration(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
        }
        (None, None) => RequestedWait::Unspecified,
    }
}

/// Converts a reset time to milliseconds. Linear sends milliseconds; a gateway may send seconds.
fn to_unix_millis(seconds_or_millis: u64) -> u64 {
    // This value is the year 5138 in seconds and 1973 in milliseconds, so smaller values are seconds.
    const MIN_MILLIS: u64 = 100_000_000_000;
    if seconds_or_millis < MIN_MILLIS { seconds_or_millis * 1_000 } else { seconds_or_millis }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_test_response(
        status: u16,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<GraphqlResponse, LinearError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = ApiKey::parse("lin_api_secret").unwrap();
        parse_response(&HttpResponse { status, headers, body: body.to_owned() }, "host", &key)
    }

    #[test]
    fn data_together_with_errors_is_a_response_with_warnings() {
        let answer = parse_test_response(
            200,
            &[],
            r#"{"data":{"a":{"b":1},"c":null},"errors":[{"message":"c is away","path":["c",0],"extensions":{"code":"X"}}]}"#,
        )
        .unwrap();
        assert_eq!(answer.data["a"]["b"], 1);
        assert_eq!(answer.errors[0].to_string(), "c is away (X, at c.0)");
    }

    #[test]
    fn status_and_error_code_select_the_error() {
        let error_of_response = |status, body: &str| parse_test_response(status, &[], body).unwrap_err();
        let body_with_error_code = |code: &str| {
            format!(r#"{{"errors":[{{"message":"no","extensions":{{"code":"{code}"}}}}],"data":null}}"#)
        };
        assert!(matches!(error_of_response(401, "{}"), LinearError::Unauthorized { .. }));
        assert!(matches!(
            error_of_response(400, &body_with_error_code("AUTHENTICATION_ERROR")),
            LinearError::Unauthorized { .. }
        ));
        assert!(matches!(
            error_of_response(429, ""),
            LinearError::RateLimited { requested_wait: RequestedWait::Unspecified }
        ));
        assert!(matches!(
            error_of_response(400, &body_with_error_code("RATELIMITED")),
            LinearError::RateLimited { .. }
        ));
        assert!(matches!(
            error_of_response(200, &body_with_error_code("FORBIDDEN")),
            LinearError::Forbidden { .. }
        ));
        assert!(matches!(
            error_of_response(400, &body_with_error_code("INPUT_ERROR")),
            LinearError::Rejected { .. }
        ));
        assert!(matches!(error_of_response(200, &body_with_error_code("")), LinearError::Rejected { .. }));
        assert!(matches!(error_of_response(502, "<html>"), LinearError::ServerError { status: 502, .. }));
        assert!(matches!(error_of_response(302, ""), LinearError::UnexpectedResponse { .. }));
        assert!(matches!(error_of_response(200, "<html>hello"), LinearError::UnexpectedResponse { .. }));
        assert!(matches!(error_of_response(200, r#"{"data":null}"#), LinearError::UnexpectedResponse { .. }));
        assert!(matches!(
            error_of_response(200, r#"{"data":{"viewer":null}}"#),
            LinearError::UnexpectedResponse { .. }
        ));
    }

    #[test]
    fn not_found_is_detected_and_errors_never_contain_the_key() {
        let body = r#"{"errors":[{"message":"Entity not found: Issue","extensions":{"code":"INPUT_ERROR","userPresentableMessage":"lin_api_secret\u001b[31m is no issue"}}]}"#;
        let error = parse_test_response(400, &[], body).unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(
            error.to_string(),
            "Linear refuses: Entity not found: Issue: (key) [31m is no issue (INPUT_ERROR)"
        );
        let page = parse_test_response(200, &[], "who sends lin_api_secret here?").unwrap_err();
        assert!(!page.to_string().contains("secret"), "{page}");
    }

    #[test]
    fn wait_ends_at_the_reset_of_the_exhausted_limit() {
        let wait_of = |headers: &[(&str, &str)]| match parse_test_response(429, headers, "") {
            Err(LinearError::RateLimited { requested_wait: wait }) => wait,
            other => panic!("{other:?}"),
        };
        let requests = ("x-ratelimit-requests-reset", "1767786300000");
        let complexity = ("X-RateLimit-Complexity-Reset", "1767789900000");
        assert_eq!(wait_of(&[requests]), RequestedWait::UntilUnixMillis(1_767_786_300_000));
        assert_eq!(wait_of(&[requests, complexity]), RequestedWait::UntilUnixMillis(1_767_789_900_000));
        assert_eq!(
            wait_of(&[requests, complexity, ("X-RateLimit-Requests-Remaining", "0")]),
            RequestedWait::UntilUnixMillis(1_767_786_300_000)
        );
        assert_eq!(
            wait_of(&[("X-RateLimit-Requests-Reset", "1767786300")]),
            RequestedWait::UntilUnixMillis(1_767_786_300_000)
        );
        assert_eq!(wait_of(&[("Retry-After", "30")]), RequestedWait::ForDuration(Duration::from_secs(30)));
        assert_eq!(wait_of(&[("Retry-After", "soon")]), RequestedWait::Unspecified);
    }
}
