//! What is known of a session that has ended, from the client's result or from the hooks' records.

use chrono::{DateTime, Utc};
use policy::ending::ending;
use policy::reset_clock::{self, ResetClock};
use protocol::result::RunResult;
use session::limits::Quota;
use session::{Ending, Exit, SessionRecord};
use store::clock;

/// What is known of a session that has ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// When, if it is known to have been before now.
    pub at: Option<DateTime<Utc>>,
    /// The result's text.
    pub result_text: Option<String>,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub resets_at: Option<String>,
    /// What it cost, US dollars.
    pub cost_usd: f64,
    /// What it used, in tokens as the client counts them.
    pub tokens: u64,
    /// The client's quotas, as it told them in this session.
    pub quota: Option<Quota>,
    /// The tools that the client refused to run, each once.
    pub denied_tools: Vec<String>,
}

impl Ended {
    /// What the client's result and its exit tell; `at` is when it said so, if that was before now.
    pub fn of_result(result: Option<&RunResult>, exit: Exit, at: Option<DateTime<Utc>>) -> Ended {
        let Some(found) = result else { return Ended { ending: ending(None, exit), at, ..Ended::default() } };
        Ended {
            ending: ending(result, exit),
            at,
            result_text: found.result.clone(),
            // As last resort: the client's words.
            resets_at: found.result.as_deref().and_then(|words| reset_in(words, at)),
            cost_usd: found.total_cost_usd.unwrap_or(0.0),
            tokens: found.tokens(),
            quota: None,
            denied_tools: denied_tools(found),
        }
    }

    /// What the hooks' records alone tell of an ending: in a shell loop nobody sees the client's result.
    pub fn by_record(record: &SessionRecord) -> Ended {
        let ending = if record.cancelled && record.ended_by_us.is_some() {
            Ending::Cancelled
        } else if record.ended_by_us.is_some() {
            Ending::HookStopped
        } else if let Some(failure) = &record.failure {
            crate::gate::ending_of(&protocol::event::StopFailure {
                error: Some(failure.error.clone()),
                error_details: Some(failure.details.clone()),
                last_assistant_message: None,
            })
        } else if record.stop.is_some() {
            Ending::Completed
        } else {
            Ending::Unknown
        };
        let failed_at = record.failure.as_ref().and_then(|failure| clock::parse(&failure.at));
        let at = record.ended_at.as_deref().and_then(clock::parse).or(failed_at);
        Ended { resets_at: reset_of(&ending, failed_at.or(at)), ending, at, ..Ended::default() }
    }
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
pub(crate) fn reset_of(ending: &Ending, then: Option<DateTime<Utc>>) -> Option<String> {
    match ending {
        Ending::Limit(words) => reset_in(words, then),
        _ => None,
    }
}

fn reset_in(words: &str, then: Option<DateTime<Utc>>) -> Option<String> {
    let reset = match reset_clock::find(words)? {
        ResetClock::Epoch(seconds) => clock::at(seconds),
        ResetClock::Time { hour, minute, month_day, utc } => {
            let then = then.unwrap_or_else(clock::now);
            clock::named_wall_clock(then, (hour, minute), month_day, utc)
        }
    };
    reset.map(clock::stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::record::FailureEvidence;

    const THEN: &str = "2026-01-07T04:16:31Z";

    /// When the limit resets that a session met then, whenever that is read.
    fn resets(words: &str) -> (Option<String>, Option<String>) {
        let result = RunResult { is_error: true, result: Some(words.into()), ..RunResult::default() };
        let of_result = Ended::of_result(Some(&result), Exit::default(), clock::parse(THEN));
        let failure = FailureEvidence { at: THEN.into(), error: "rate_limit".into(), details: words.into() };
        let by_record =
            Ended::by_record(&SessionRecord { failure: Some(failure), ..SessionRecord::default() });
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
            let expected = Some(expected.to_owned());
            assert_eq!(resets(words), (expected.clone(), expected), "{words}");
        }
    }
}
