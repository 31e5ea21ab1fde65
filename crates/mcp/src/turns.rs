//! The tools of the turn log.

use crate::call::{Answer, Call};
use crate::tool_error::ToolError;
use plimsoll_domain::memory::render::safe;
use plimsoll_domain::text::{clip, clip_middle, one_line};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_flows::turns::words::{outcome, what, whole};
use plimsoll_flows::turns::{Body, Recorded, Selection, find};
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
    let which = Selection {
        session: given.text("session"),
        failures: given.flag("failures"),
        tool: given.text("tool"),
        text: given.text("text"),
        ..Selection::default()
    };
    let found = which.last(&call.project, given.count("last").unwrap_or(USUAL))?;
    if found.is_empty() {
        return Ok("no turn matches".to_owned());
    }
    Ok(found.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(turn: &Recorded) -> String {
    let header = &turn.header;
    let at = clock::moment(&header.at).map(clock::for_people).unwrap_or_default();
    let outcome = outcome(turn);
    safe(&clip(&one_line(&format!("{} {at} {outcome} {}", turn.name(), what(turn))), LINE))
}

pub(crate) fn show(call: &Call) -> Answer {
    bring_up_to_date(call);
    let (_, found) = find(&call.project, call.given.words("turn").trim(), None)?;
    match &found.body {
        Body::Turn(turn) => Ok(safe(&clip_middle(&whole(&found, turn), WHOLE))),
        Body::Erased => Ok(format!("{} [erased]", found.name())),
        Body::DecodeError(why) => Err(ToolError::BrokenTurn { name: found.name(), why: why.clone() }),
        Body::Event(_) => Err(ToolError::NotATurn(found.header.seq)),
    }
}

/// The newest turns may be in the transcript alone; what cannot be read now is in the list a call later.
fn bring_up_to_date(call: &Call) {
    let _ = catch_up::sync(&call.project, CaptureLimits::USER);
}
