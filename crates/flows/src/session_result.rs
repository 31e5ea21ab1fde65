//! The result of a session that has ended, from the client's result or from the hooks' records.

use chrono::{DateTime, Utc};
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::fatal_error::{FatalError, FatalErrorKind};
use plimsoll_domain::limits::SubscriptionQuotas;
use plimsoll_domain::record::FailureEvidence;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{ProcessExit, SessionEnding, SessionRecord, Timestamp};
use plimsoll_policy::reset_clock::{self, ResetTime};
use plimsoll_policy::session_ending::classify_ending;
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_protocol::event::StopFailure;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_protocol::user_request;
use plimsoll_store::{clock, tail};
use std::path::Path;

/// How many characters are kept of a session's last message, whose last line may be the promise, and of an
/// error message.
pub(crate) const MAX_MESSAGE_CHARS: usize = 4_000;

/// The result of a session that has ended.
#[derive(Debug, Clone, Default)]
pub struct SessionResult {
    pub ending: SessionEnding,
    /// When the session ended; `None` means now.
    pub ended_at: Option<DateTime<Utc>>,
    pub result_text: Option<String>,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub limit_resets_at: Option<Timestamp>,
    /// The cost; `None` while it is unknown.
    pub cost: Option<Cost>,
    /// The usage that the client's output shows; `None` if the output is not available.
    pub output_usage: Option<SessionUsage>,
    /// The tokens used, as the client counts them.
    pub tokens: u64,
    /// The client's quotas, as reported in this session.
    pub quota: Option<SubscriptionQuotas>,
    /// The tools that the client refused to run, without duplicates.
    pub denied_tools: Vec<String>,
}

impl SessionResult {
    /// Creates the result from the client's result and its exit. `ended_at` is the end of the session; `None`
    /// means now.
    pub fn from_client_result(
        result: Option<&ClientResult>,
        exit: ProcessExit,
        ended_at: Option<DateTime<Utc>>,
    ) -> SessionResult {
        let Some(client_result) = result else {
            return SessionResult {
                ending: classify_ending(None, exit),
                ended_at,
                ..SessionResult::default()
            };
        };
        SessionResult {
            ending: classify_ending(result, exit),
            ended_at,
            result_text: client_result.result.clone(),
            // A fallback: parsed from the client's message.
            limit_resets_at: client_result
                .result
                .as_deref()
                .and_then(|message| parse_reset_time(message, ended_at)),
            cost: reported_cost(client_result),
            output_usage: None,
            tokens: client_result.total_tokens(),
            quota: None,
            denied_tools: distinct_denied_tools(client_result),
        }
    }

    /// Creates the result from the hooks' records alone: in a shell loop the client's result is not
    /// available.
    pub fn from_session_record(record: &SessionRecord) -> SessionResult {
        // A session that a hook ended is checked first: after `continue:false` the client fires no Stop, so
        // `stop` is from an earlier turn.
        let ending = if record.end.is_canceled && record.end.hook_end_reason.is_some() {
            SessionEnding::Canceled
        } else if record.end.hook_end_reason.is_some() {
            SessionEnding::HookStopped
        } else if let Some(failure) = &record.end.failure {
            ending_from_failure(&StopFailure {
                error: Some(failure.error_kind.clone()),
                error_details: Some(failure.details.clone()),
                last_assistant_message: None,
            })
        } else if record.end.stop.is_some() {
            SessionEnding::Completed
        } else {
            SessionEnding::Unknown
        };
        let failed_at =
            record.end.failure.as_ref().and_then(|failure| clock::parse_timestamp(&failure.failed_at));
        let ended_at = record.end.ended_at.as_ref().and_then(clock::parse_timestamp).or(failed_at);
        SessionResult {
            limit_resets_at: limit_reset_time(&ending, failed_at.or(ended_at)),
            ending,
            ended_at,
            ..SessionResult::default()
        }
    }
}

/// Returns the API error that ended a session; `None` if the last message of its transcript is no API error.
/// The transcript contains what StopFailure reports, even if the client did not wait for that hook (2.1.329,
/// headless).
pub fn api_failure_at_transcript_end(transcript: &Path) -> Option<FailureEvidence> {
    let last_entry = last_user_or_assistant_entry(transcript).filter(|entry| entry.is_api_error_message)?;
    let message =
        last_entry.message.blocks().iter().find_map(|block| block.text.as_deref()).unwrap_or_default();
    Some(FailureEvidence {
        failed_at: Timestamp::from(last_entry.timestamp.as_deref().unwrap_or_default()),
        error_kind: last_entry.error.clone().unwrap_or_default(),
        details: truncate_end(message, MAX_MESSAGE_CHARS),
    })
}

/// Returns true if the transcript ends with an interruption by the user.
pub(crate) fn ends_with_interruption(transcript: &Path) -> bool {
    last_user_or_assistant_entry(transcript).is_some_and(|line| user_request::is_interruption(&line))
}

/// Returns the transcript's last entry of the user or the model; skips those of subagents.
fn last_user_or_assistant_entry(transcript: &Path) -> Option<TranscriptEntry> {
    /// How many bytes at the end of the transcript are read.
    const MAX_TAIL_BYTES: u64 = 512 * 1024;
    let is_message = |entry: &TranscriptEntry| {
        matches!(entry.kind.as_deref(), Some("assistant" | "user")) && !entry.is_sidechain
    };
    tail::read_last_entries(transcript, MAX_TAIL_BYTES).ok()?.into_iter().rfind(is_message)
}

fn reported_cost(result: &ClientResult) -> Option<Cost> {
    let usd = result.total_cost_usd.filter(|usd| usd.is_finite() && *usd >= 0.0)?;
    Some(Cost { usd, basis: CostBasis::Reported })
}

fn distinct_denied_tools(result: &ClientResult) -> Vec<String> {
    let mut tools = Vec::new();
    for tool in result.permission_denials.iter().filter_map(|denial| denial.tool_name.clone()) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    tools
}

/// Returns when the limit that ended a session resets, parsed from the client's message. `None` for other
/// endings. `message_time` is when the message was written; `None` means now.
pub(crate) fn limit_reset_time(
    ending: &SessionEnding,
    message_time: Option<DateTime<Utc>>,
) -> Option<Timestamp> {
    match ending {
        SessionEnding::Limit(message) => parse_reset_time(message, message_time),
        _ => None,
    }
}

fn parse_reset_time(message: &str, message_time: Option<DateTime<Utc>>) -> Option<Timestamp> {
    let reset_time = match reset_clock::parse_reset_time(message)? {
        ResetTime::UnixSeconds(seconds) => clock::from_unix_seconds(seconds),
        ResetTime::ClockTime { hour, minute, month_day, is_utc: utc } => {
            let message_time = message_time.unwrap_or_else(clock::now);
            clock::just_passed_or_next_time_of_day(message_time, (hour, minute), month_day, utc)
        }
    };
    reset_time.map(clock::to_timestamp)
}

/// Returns the message that the client shows to the user; for a limit only this message contains the reset
/// time.
pub(crate) fn failure_message(failure: &StopFailure) -> &str {
    let candidates = [&failure.last_assistant_message, &failure.error_details];
    let first_nonempty_text = candidates.into_iter().flatten().find(|text| !text.trim().is_empty());
    first_nonempty_text.map_or("", String::as_str)
}

/// Returns the ending for the `error` of a StopFailure.
pub(crate) fn ending_from_failure(failure: &StopFailure) -> SessionEnding {
    let message = failure_message(failure).to_owned();
    match failure.error.as_deref().unwrap_or_default() {
        "authentication_failed" => {
            SessionEnding::Fatal(FatalError::new(FatalErrorKind::Credentials, &message))
        }
        "billing_error" => SessionEnding::Fatal(FatalError::new(FatalErrorKind::Billing, &message)),
        "model_not_found" => SessionEnding::Fatal(FatalError::new(FatalErrorKind::Model, &message)),
        "rate_limit" => SessionEnding::Limit(message),
        "server_error" => SessionEnding::Overloaded(message),
        "invalid_request" if message.to_lowercase().contains("too long") => {
            SessionEnding::WindowFull("prompt_too_long".to_owned())
        }
        error => SessionEnding::Failed(format!("{error}: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "2026-01-07T04:16:31Z";

    /// Returns the reset times, from the client's result and from the record, of a limit that a session hit
    /// at `THEN`.
    fn reset_times(message: &str) -> (Option<Timestamp>, Option<Timestamp>) {
        let result = ClientResult { is_error: true, result: Some(message.into()), ..ClientResult::default() };
        let from_client = SessionResult::from_client_result(
            Some(&result),
            ProcessExit::default(),
            clock::parse_rfc3339(THEN),
        );
        let failure = FailureEvidence {
            failed_at: THEN.into(),
            error_kind: "rate_limit".into(),
            details: message.into(),
        };
        let mut record = SessionRecord::default();
        record.end.failure = Some(failure);
        let from_record = SessionResult::from_session_record(&record);
        assert_eq!(from_record.ending, SessionEnding::Limit(message.into()));
        (from_client.limit_resets_at, from_record.limit_resets_at)
    }

    #[test]
    fn a_reset_time_is_relative_to_the_message_and_not_to_now() {
        for (message, expected) in [
            ("You've hit your session limit · resets 6:10am (UTC)", "2026-01-07T06:10:00Z"),
            ("You've hit your session limit · resets 4:16am (UTC)", "2026-01-07T04:16:00Z"),
            ("You've hit your weekly limit · resets Jan 9, 3pm (UTC)", "2026-01-09T15:00:00Z"),
        ] {
            let expected = Some(Timestamp::from(expected));
            assert_eq!(reset_times(message), (expected.clone(), expected), "{message}");
        }
    }
}
