//! What came back: the data of a GraphQL answer with its warnings, or what went wrong. Foreign bytes: a field of the
//! wrong type is missing, and nothing more.

use super::error::{GraphError, LinearError, Wait};
use super::key::Key;
use serde_json::Value;
use std::time::Duration;

/// An HTTP answer.
pub(crate) struct Received {
    pub(crate) status: u16,
    /// A header's value by its name.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What an operation was answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) data: Value,
    /// Errors beside the data.
    pub(crate) errors: Vec<GraphError>,
}

/// How much of an answer that is no JSON is shown.
const SHOWN: usize = 200;
/// A reset further away than this is a fault of a clock.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Reads an answer.
pub(crate) fn read(received: &Received, host: &str, key: &Key) -> Result<Answer, LinearError> {
    let document: Value = serde_json::from_str(&received.body).unwrap_or_default();
    let errors: Vec<GraphError> =
        document["errors"].as_array().into_iter().flatten().map(|error| graph_error(error, key)).collect();
    let has_code = |codes: &[&str]| errors.iter().any(|error| codes.contains(&error.code.as_str()));
    let host = host.to_owned();
    let said = || match errors.first() {
        Some(error) => error.to_string(),
        None => shown(&received.body, key),
    };
    match received.status {
        429 => return Err(LinearError::Limited { wait: wait(&received.headers) }),
        _ if has_code(&["RATELIMITED"]) => {
            return Err(LinearError::Limited { wait: wait(&received.headers) });
        }
        401 => return Err(LinearError::Unauthorized { said: said() }),
        _ if has_code(&["AUTHENTICATION_ERROR", "UNAUTHENTICATED"]) => {
            return Err(LinearError::Unauthorized { said: said() });
        }
        300..=399 => {
            return Err(LinearError::Strange { host, what: "a redirect, which is not followed".to_owned() });
        }
        _ => {}
    }
    let data = document["data"].clone();
    let is_usable = data.as_object().is_some_and(|fields| fields.values().any(|value| !value.is_null()));
    match received.status {
        // GraphQL gives data and errors together: what is there is used, and the errors become warnings.
        200 if is_usable => Ok(Answer { data, errors }),
        403 => Err(LinearError::Forbidden { said: said() }),
        _ if has_code(&["FORBIDDEN"]) => Err(LinearError::Forbidden { said: said() }),
        500.. => Err(LinearError::Server { host, status: received.status, said: said() }),
        _ if !errors.is_empty() => Err(LinearError::Refused { errors }),
        status if document.is_object() => {
            Err(LinearError::Strange { host, what: format!("status {status}, neither data nor errors") })
        }
        status => Err(LinearError::Strange {
            host,
            what: format!("status {status}: {}", shown(&received.body, key)),
        }),
    }
}

fn graph_error(error: &Value, key: &Key) -> GraphError {
    let extensions = &error["extensions"];
    let words = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let message = words(&error["message"]).unwrap_or_else(|| "an error without a message".to_owned());
    // What Linear means for people says more than the message, which is often only a class.
    let message = match words(&extensions["userPresentableMessage"]) {
        Some(said) if !message.contains(&said) => format!("{message}: {said}"),
        _ => message,
    };
    let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    let path = error["path"].as_array().into_iter().flatten().map(step).collect::<Vec<_>>().join(".");
    GraphError {
        message: line(&key.taken_out_of(&message)),
        code: words(&extensions["code"]).unwrap_or_default(),
        path: line(&path),
    }
}

fn shown(body: &str, key: &Key) -> String {
    line(&key.taken_out_of(body))
}

/// One short line of foreign words.
fn line(words: &str) -> String {
    let words: String = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// Linear counts requests and their complexity, for all and for one kind of operation. What is used up says when it
/// is there again; where nothing says that it is used up, the last of the moments holds.
fn wait(headers: &[(String, String)]) -> Wait {
    let number = |name: &str| {
        let value =
            headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let kinds = ["Requests", "Complexity", "Endpoint-Requests"];
    let resets: Vec<(bool, u64)> = kinds
        .into_iter()
        .filter_map(|kind| {
            let is_used_up = number(&format!("X-RateLimit-{kind}-Remaining")) == Some(0);
            Some((is_used_up, milliseconds(number(&format!("X-RateLimit-{kind}-Reset"))?)))
        })
        .collect();
    let used_up = resets.iter().filter(|(is_used_up, _)| *is_used_up).map(|(_, reset)| *reset).max();
    match (used_up.or(resets.iter().map(|(_, reset)| *reset).max()), number("Retry-After")) {
        (Some(reset), _) => Wait::Until(reset),
        (None, Some(seconds)) => Wait::For(Duration::from_secs(seconds).min(LONGEST_WAIT)),
        (None, None) => Wait::Unknown,
    }
}

/// Linear's moments are milliseconds; a gateway's may be seconds.
fn milliseconds(moment: u64) -> u64 {
    const SECONDS_END: u64 = 100_000_000_000;
    if moment < SECONDS_END { moment * 1_000 } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Answer, LinearError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = Key::new("lin_api_secret").unwrap();
        read(&Received { status, headers, body: body.to_owned() }, "host", &key)
    }

    #[test]
    fn data_with_errors_beside_it_is_an_answer_with_warnings() {
        let answer = received(
            200,
            &[],
            r#"{"data":{"a":{"b":1},"c":null},"errors":[{"message":"c is away","path":["c",0],"extensions":{"code":"X"}}]}"#,
        )
        .unwrap();
        assert_eq!(answer.data["a"]["b"], 1);
        assert_eq!(answer.errors[0].to_string(), "c is away (X, at c.0)");
    }

    #[test]
    fn each_trouble_has_its_name() {
        let named = |status, body: &str| received(status, &[], body).unwrap_err();
        let errors = |code: &str| {
            format!(r#"{{"errors":[{{"message":"no","extensions":{{"code":"{code}"}}}}],"data":null}}"#)
        };
        assert!(matches!(named(401, "{}"), LinearError::Unauthorized { .. }));
        assert!(matches!(named(400, &errors("AUTHENTICATION_ERROR")), LinearError::Unauthorized { .. }));
        assert!(matches!(named(429, ""), LinearError::Limited { wait: Wait::Unknown }));
        assert!(matches!(named(400, &errors("RATELIMITED")), LinearError::Limited { .. }));
        assert!(matches!(named(200, &errors("FORBIDDEN")), LinearError::Forbidden { .. }));
        assert!(matches!(named(400, &errors("INPUT_ERROR")), LinearError::Refused { .. }));
        assert!(matches!(named(200, &errors("")), LinearError::Refused { .. }));
        assert!(matches!(named(502, "<html>"), LinearError::Server { status: 502, .. }));
        assert!(matches!(named(302, ""), LinearError::Strange { .. }));
        assert!(matches!(named(200, "<html>hello"), LinearError::Strange { .. }));
        assert!(matches!(named(200, r#"{"data":null}"#), LinearError::Strange { .. }));
        assert!(matches!(named(200, r#"{"data":{"viewer":null}}"#), LinearError::Strange { .. }));
    }

    #[test]
    fn what_is_not_found_is_known_and_no_answer_tells_the_key() {
        let body = r#"{"errors":[{"message":"Entity not found: Issue","extensions":{"code":"INPUT_ERROR","userPresentableMessage":"lin_api_secret\u001b[31m is no issue"}}]}"#;
        let error = received(400, &[], body).unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(
            error.to_string(),
            "Linear refuses: Entity not found: Issue: (key) [31m is no issue (INPUT_ERROR)"
        );
        let page = received(200, &[], "who sends lin_api_secret here?").unwrap_err();
        assert!(!page.to_string().contains("secret"), "{page}");
    }

    #[test]
    fn the_wait_is_until_what_is_used_up_is_there_again() {
        let wait_of = |headers: &[(&str, &str)]| match received(429, headers, "") {
            Err(LinearError::Limited { wait }) => wait,
            other => panic!("{other:?}"),
        };
        let requests = ("x-ratelimit-requests-reset", "1767786300000");
        let complexity = ("X-RateLimit-Complexity-Reset", "1767789900000");
        assert_eq!(wait_of(&[requests]), Wait::Until(1_767_786_300_000));
        assert_eq!(wait_of(&[requests, complexity]), Wait::Until(1_767_789_900_000));
        assert_eq!(
            wait_of(&[requests, complexity, ("X-RateLimit-Requests-Remaining", "0")]),
            Wait::Until(1_767_786_300_000)
        );
        assert_eq!(wait_of(&[("X-RateLimit-Requests-Reset", "1767786300")]), Wait::Until(1_767_786_300_000));
        assert_eq!(wait_of(&[("Retry-After", "30")]), Wait::For(Duration::from_secs(30)));
        assert_eq!(wait_of(&[("Retry-After", "soon")]), Wait::Unknown);
    }
}
