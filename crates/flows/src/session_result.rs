//! What is known of a session that has ended, from the client's result or from the hooks' records.

use chrono::{DateTime, Utc};
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::fatal::{Fatal, FatalKind};
use plimsoll_domain::limits::Quota;
use plimsoll_domain::record::FailureEvidence;
use plimsoll_domain::text::clip;
use plimsoll_domain::{Ending, Exit, SessionRecord, Timestamp};
use plimsoll_policy::reset_clock::{self, ResetClock};
use plimsoll_policy::session_ending::session_ending;
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_protocol::event::StopFailure;
use plimsoll_protocol::result::RunResult;
use plimsoll_protocol::transcript::Line;
use plimsoll_protocol::user_request;
use plimsoll_store::{clock, tail};
use std::path::Path;

/// How much of a session's last message is kept: the promise is its last line. Of an error's words as much.
pub(crate) const WORDS_KEPT: usize = 4_000;

/// What is known of a session that has ended.
#[derive(Debug, Clone, Default)]
pub struct SessionResult {
    /// How.
    pub ending: Ending,
    /// When, if it is known to have been before now.
    pub at: Option<DateTime<Utc>>,
    /// The result's text.
    pub result_text: Option<String>,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub resets_at: Option<Timestamp>,
    /// What it cost; none while that is not known.
    pub cost: Option<Cost>,
    /// What the client's output shows of its usage; none if the output is not known.
    pub output_usage: Option<SessionUsage>,
    /// What it used, in tokens as the client counts them.
    pub tokens: u64,
    /// The client's quotas, as reported in this session.
    pub quota: Option<Quota>,
    /// The tools that the client refused to run, each once.
    pub denied_tools: Vec<String>,
}

impl SessionResult {
    /// What the client's result and its exit show; `at` is its time, if that was before now.
    pub fn of_result(result: Option<&RunResult>, exit: Exit, at: Option<DateTime<Utc>>) -> SessionResult {
        let Some(found) = result else {
            return SessionResult { ending: session_ending(None, exit), at, ..SessionResult::default() };
        };
        SessionResult {
            ending: session_ending(result, exit),
            at,
            result_text: found.result.clone(),
            // As last resort: the client's words.
            resets_at: found.result.as_deref().and_then(|words| reset_in(words, at)),
            cost: reported_cost(found),
            output_usage: None,
            tokens: found.tokens(),
            quota: None,
            denied_tools: denied_tools(found),
        }
    }

    /// What the hooks' records alone show of an ending: in a shell loop we do not see the client's result.
    pub fn by_record(record: &SessionRecord) -> SessionResult {
        // Ours first: after `continue:false` the client fires no Stop, so what `stop` says is of an earlier turn.
        let ending = if record.end.cancelled && record.end.ended_by_us.is_some() {
            Ending::Cancelled
        } else if record.end.ended_by_us.is_some() {
            Ending::HookStopped
        } else if let Some(failure) = &record.end.failure {
            ending_of(&StopFailure {
                error: Some(failure.error.clone()),
                error_details: Some(failure.details.clone()),
                last_assistant_message: None,
            })
        } else if record.end.stop.is_some() {
            Ending::Completed
        } else {
            Ending::Unknown
        };
        let failed_at = record.end.failure.as_ref().and_then(|failure| clock::moment(&failure.at));
        let at = record.end.ended_at.as_ref().and_then(clock::moment).or(failed_at);
        SessionResult {
            resets_at: reset_of(&ending, failed_at.or(at)),
            ending,
            at,
            ..SessionResult::default()
        }
    }
}

/// How a session ended if an error of the API ended it: what StopFailure says, of the transcript, which has it also where the
/// client has not waited for that hook (2.1.329, headless).
pub fn failure_in(transcript: &Path) -> Option<FailureEvidence> {
    let last = last_message(transcript).filter(|line| line.is_api_error_message)?;
    let words = last.message.blocks().iter().find_map(|block| block.text.as_deref()).unwrap_or_default();
    Some(FailureEvidence {
        at: Timestamp::from(last.timestamp.as_deref().unwrap_or_default()),
        error: last.error.clone().unwrap_or_default(),
        details: clip(words, WORDS_KEPT),
    })
}

/// True if the transcript ends with the user's interruption.
pub(crate) fn ends_interrupted(transcript: &Path) -> bool {
    last_message(transcript).is_some_and(|line| user_request::is_interruption(&line))
}

/// The transcript's last line of the user or the model, without those of subagents.
fn last_message(transcript: &Path) -> Option<Line> {
    /// How much of the transcript's end is read.
    const END: u64 = 512 * 1024;
    let is_message =
        |line: &Line| matches!(line.kind.as_deref(), Some("assistant" | "user")) && !line.is_sidechain;
    tail::last_lines(transcript, END).ok()?.into_iter().rfind(is_message)
}

fn reported_cost(result: &RunResult) -> Option<Cost> {
    let usd = result.total_cost_usd.filter(|usd| usd.is_finite() && *usd >= 0.0)?;
    Some(Cost { usd, basis: CostBasis::Reported })
}

fn denied_tools(result: &RunResult) -> Vec<String> {
    let mut tools = Vec::new();
    for tool in result.permission_denials.iter().filter_map(|denial| denial.tool_name.clone()) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    tools
}

/// When the limit resets that ended a session, by the words in which the client said so then, or now.
pub(crate) fn reset_of(ending: &Ending, then: Option<DateTime<Utc>>) -> Option<Timestamp> {
    match ending {
        Ending::Limit(words) => reset_in(words, then),
        _ => None,
    }
}

fn reset_in(words: &str, then: Option<DateTime<Utc>>) -> Option<Timestamp> {
    let reset = match reset_clock::find(words)? {
        ResetClock::Epoch(seconds) => clock::at(seconds),
        ResetClock::Time { hour, minute, month_day, utc } => {
            let then = then.unwrap_or_else(clock::now);
            clock::named_wall_clock(then, (hour, minute), month_day, utc)
        }
    };
    reset.map(clock::stamp)
}

/// What the client shows the user; of a limit it says nothing else, and there it names the reset.
pub(crate) fn words_of(failure: &StopFailure) -> &str {
    let words = [&failure.last_assistant_message, &failure.error_details];
    let message = words.into_iter().flatten().find(|words| !words.trim().is_empty());
    message.map_or("", String::as_str)
}

/// The ending that the `error` of a StopFailure stands for.
pub(crate) fn ending_of(failure: &StopFailure) -> Ending {
    let words = words_of(failure).to_owned();
    match failure.error.as_deref().unwrap_or_default() {
        "authentication_failed" => Ending::Fatal(Fatal::new(FatalKind::Credentials, &words)),
        "billing_error" => Ending::Fatal(Fatal::new(FatalKind::Billing, &words)),
        "model_not_found" => Ending::Fatal(Fatal::new(FatalKind::Model, &words)),
        "rate_limit" => Ending::Limit(words),
        "server_error" => Ending::Overloaded(words),
        "invalid_request" if words.to_lowercase().contains("too long") => {
            Ending::WindowFull("prompt_too_long".to_owned())
        }
        error => Ending::Failed(format!("{error}: {words}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "2026-01-07T04:16:31Z";

    /// When the limit resets that a session met then, whenever that is read.
    fn resets(words: &str) -> (Option<Timestamp>, Option<Timestamp>) {
        let result = RunResult { is_error: true, result: Some(words.into()), ..RunResult::default() };
        let of_result = SessionResult::of_result(Some(&result), Exit::default(), clock::parse(THEN));
        let failure = FailureEvidence { at: THEN.into(), error: "rate_limit".into(), details: words.into() };
        let mut record = SessionRecord::default();
        record.end.failure = Some(failure);
        let by_record = SessionResult::by_record(&record);
        assert_eq!(by_record.ending, Ending::Limit(words.into()));
        (of_result.resets_at, by_record.resets_at)
    }

    #[test]
    fn a_reset_is_counted_from_when_it_was_named_and_not_from_when_it_is_read() {
        for (words, expected) in [
            ("You've hit your session limit · resets 6:10am (UTC)", "2026-01-07T06:10:00Z"),
            ("You've hit your session limit · resets 4:16am (UTC)", "2026-01-07T04:16:00Z"),
            ("You've hit your weekly limit · resets Jan 9, 3pm (UTC)", "2026-01-09T15:00:00Z"),
        ] {
            let expected = Some(Timestamp::from(expected));
            assert_eq!(resets(words), (expected.clone(), expected), "{words}");
        }
    }
}
