//! Finds one turn by the name that `plimsoll turns list` shows.

use super::{LoggedRecord, TurnsError};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_store::{Project, TurnLog};

/// Finds the turn with this name: `SESSION:NUMBER`, `SESSION/AGENT:NUMBER`, or only the number, which refers
/// to the session with `default_session_prefix`, or to the newest session without one. The number is a turn
/// number, as `plimsoll turns list` shows it. `SESSION#NUMBER`, as other lists show a record that is no turn, and
/// `record:NUMBER` refer to a record by its number.
pub fn find_turn_or_record_by_name(
    project: &Project,
    name: &str,
    default_session_prefix: Option<&str>,
) -> Result<(TurnLog, LoggedRecord), TurnsError> {
    let no_turn_error = || TurnsError::NoTurn(name.to_owned());
    let default_session = default_session_prefix.unwrap_or_default();
    let (session_and_stream, number_text, is_record_number) = match name.rsplit_once('#') {
        Some((session, number)) => (session, number, true),
        None => match name.rsplit_once(':') {
            Some(("record", number)) => (default_session, number, true),
            Some((session_and_stream, number)) => (session_and_stream, number, false),
            None => (default_session, name, false),
        },
    };
    let (session_prefix, stream) =
        session_and_stream.split_once('/').unwrap_or((session_and_stream, MAIN_STREAM));
    let number: u64 = number_text.parse().map_err(|_| no_turn_error())?;
    let turn_log = newest_turn_log_with_id_prefix(project, session_prefix)?;
    for line in turn_log.backward_lines()? {
        let line = line?;
        let is_match = super::record_header(&line).is_some_and(|header| {
            if is_record_number {
                return header.sequence_number == number;
            }
            header.kind == RecordKind::Turn
                && header.turn_number == Some(number)
                && (header.stream == stream || stream != MAIN_STREAM && header.stream.starts_with(stream))
        });
        if is_match {
            let recorded_turn =
                super::decode_record_keeping_error_in_body(&turn_log, &line).ok_or_else(no_turn_error)?;
            return Ok((turn_log, recorded_turn));
        }
    }
    Err(no_turn_error())
}

fn newest_turn_log_with_id_prefix(project: &Project, id_prefix: &str) -> Result<TurnLog, TurnsError> {
    let turn_logs = TurnLog::one_per_session_oldest_modified_first(project);
    if turn_logs.is_empty() {
        return Err(TurnsError::NoLog(project.root().to_owned()));
    }
    super::find_log_by_id_prefix(project, id_prefix)
        .ok_or_else(|| TurnsError::NoSession(id_prefix.to_owned()))
}
