//! The tools of the turn log.

use crate::call::{ToolCall, ToolResult};
use crate::tool_error::ToolError;
use plimsoll_domain::memory::render::neutralize_tags_and_hidden_chars;
use plimsoll_domain::text::{to_safe_single_line, truncate_end, truncate_middle};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_flows::turns::rendering::{ok_or_failure_reason, render_summary, render_turn};
use plimsoll_flows::turns::{LoggedRecord, RecordBody, TurnSelection, find_turn_or_record_by_name};
use plimsoll_store::clock;

pub(crate) const MAX_LISTED_TURNS: u64 = 200;
const DEFAULT_LISTED_TURNS: usize = 20;
/// Maximum lengths of a line of the list and of a shown turn, in characters, to save space in the model's context window.
const MAX_LINE_CHARS: usize = 200;
const MAX_TURN_CHARS: usize = 20_000;

pub(crate) fn record_missing_and_list_turns(call: &ToolCall) -> ToolResult {
    record_missing_turns(call);
    let arguments = &call.arguments;
    let selection = TurnSelection {
        session_id_prefix: arguments.optional_text("session"),
        only_failures: arguments.flag_or_false("failures"),
        tool_name: arguments.optional_text("tool"),
        contained_text: arguments.optional_text("text"),
        ..TurnSelection::default()
    };
    let records = selection.last_matching_turns_oldest_first(
        &call.project,
        arguments.optional_count("last").unwrap_or(DEFAULT_LISTED_TURNS),
    )?;
    if records.is_empty() {
        return Ok("no turn matches".to_owned());
    }
    Ok(records.iter().map(render_turn_line).collect::<Vec<_>>().join("\n"))
}

fn render_turn_line(record: &LoggedRecord) -> String {
    let header = &record.header;
    let time = clock::parse_timestamp(&header.recorded_at)
        .map(clock::format_local_time_with_seconds)
        .unwrap_or_default();
    let outcome = ok_or_failure_reason(record);
    neutralize_tags_and_hidden_chars(&truncate_end(
        &to_safe_single_line(&format!(
            "{} {time} {outcome} {}",
            record.short_session_id_and_number(),
            render_summary(record)
        )),
        MAX_LINE_CHARS,
    ))
}

pub(crate) fn record_missing_and_show_turn(call: &ToolCall) -> ToolResult {
    record_missing_turns(call);
    let (_, record) =
        find_turn_or_record_by_name(&call.project, call.arguments.text_or_empty("turn").trim(), None)?;
    match &record.body {
        RecordBody::Turn(turn) => Ok(neutralize_tags_and_hidden_chars(&truncate_middle(
            &render_turn(&record, turn),
            MAX_TURN_CHARS,
        ))),
        RecordBody::Erased => Ok(format!("{} [erased]", record.short_session_id_and_number())),
        RecordBody::DecodeError(decode_error) => Err(ToolError::UnreadableTurn {
            name: record.short_session_id_and_number(),
            reason: decode_error.clone(),
        }),
        RecordBody::Event(_) => Err(ToolError::NotATurn(record.header.sequence_number)),
    }
}

/// Records turns that are still only in the transcripts. Errors are ignored, because a later call records the turns that
/// could not be read.
fn record_missing_turns(call: &ToolCall) {
    let _ =
        catch_up::record_missing_turns_of_all_sessions(&call.project, CaptureLimits::FOR_USER_COMMAND_OR_RUN);
}
