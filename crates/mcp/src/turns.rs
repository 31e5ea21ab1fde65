//! The tools of the turn log.

use crate::call::{Answer, Call};
use crate::tool_error::ToolError;
use plimsoll_domain::memory::render::neutralize_tags_and_hidden_chars;
use plimsoll_domain::text::{to_single_line, truncate_end, truncate_middle};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_flows::turns::rendering::{outcome_text, render_summary, render_turn};
use plimsoll_flows::turns::{LoggedRecord, RecordBody, TurnSelection, find_turn_by_name};
use plimsoll_store::clock;

/// How many turns are listed at most.
pub(crate) const MOST: u64 = 200;
const USUAL: usize = 20;
/// How many characters of a line of the list, and of a turn, are shown.
const LINE: usize = 200;
const WHOLE: usize = 20_000;

pub(crate) fn list(call: &Call) -> Answer {
    bring_up_to_date(call);
    let given = &call.given;
    let which = TurnSelection {
        session_id_prefix: given.text("session"),
        only_failures: given.flag("failures"),
        tool_name: given.text("tool"),
        contained_text: given.text("text"),
        ..TurnSelection::default()
    };
    let found = which.last_turns(&call.project, given.count("last").unwrap_or(USUAL))?;
    if found.is_empty() {
        return Ok("no turn matches".to_owned());
    }
    Ok(found.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(turn: &LoggedRecord) -> String {
    let header = &turn.header;
    let at = clock::parse_timestamp(&header.recorded_at)
        .map(clock::format_local_time_with_seconds)
        .unwrap_or_default();
    let outcome = outcome_text(turn);
    neutralize_tags_and_hidden_chars(&truncate_end(
        &to_single_line(&format!("{} {at} {outcome} {}", turn.display_name(), render_summary(turn))),
        LINE,
    ))
}

pub(crate) fn show(call: &Call) -> Answer {
    bring_up_to_date(call);
    let (_, found) = find_turn_by_name(&call.project, call.given.words("turn").trim(), None)?;
    match &found.body {
        RecordBody::Turn(turn) => {
            Ok(neutralize_tags_and_hidden_chars(&truncate_middle(&render_turn(&found, turn), WHOLE)))
        }
        RecordBody::Erased => Ok(format!("{} [erased]", found.display_name())),
        RecordBody::DecodeError(why) => {
            Err(ToolError::BrokenTurn { name: found.display_name(), why: why.clone() })
        }
        RecordBody::Event(_) => Err(ToolError::NotATurn(found.header.sequence_number)),
    }
}

/// The newest turns may be in the transcript alone; what cannot be read now is in the list a call later.
fn bring_up_to_date(call: &Call) {
    let _ = catch_up::record_missing_turns_of_all_sessions(&call.project, CaptureLimits::USER);
}
