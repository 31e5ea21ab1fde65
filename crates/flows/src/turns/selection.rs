//! Selects turns of a project's turn logs by session, tool, text, file, iteration or time.

use super::{LoggedRecord, TurnsError};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind};
use plimsoll_domain::turn::Turn;
use plimsoll_store::{Project, StoreError, TurnLog, clock};
use serde_json::Value;
use std::cmp::Reverse;
use std::path::Path;

/// The conditions that a turn must meet. The default selects all turns of the main streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnSelection {
    /// Only sessions whose id has this prefix.
    pub session_id_prefix: Option<String>,
    /// Also the turns of subagents.
    pub include_subagents: bool,
    /// Only turns that failed.
    pub only_failures: bool,
    /// Only turns that called this tool.
    pub tool_name: Option<String>,
    /// Only turns with this text in the response, its calls or their results.
    pub contained_text: Option<String>,
    /// Only turns with a call whose path argument is this path or ends with it.
    pub file_path: Option<String>,
    /// Only turns of this iteration of a run.
    pub iteration: Option<u64>,
    /// Only turns recorded at or after this time, RFC 3339 UTC.
    pub earliest_time: Option<Timestamp>,
}

impl TurnSelection {
    /// Returns true if only the session and the streams are restricted, so that all their turns are selected.
    pub fn includes_all_turns_of_sessions(&self) -> bool {
        let TurnSelection { session_id_prefix: id_prefix, include_subagents: with_subagents, .. } =
            self.clone();
        *self
            == TurnSelection {
                session_id_prefix: id_prefix,
                include_subagents: with_subagents,
                ..TurnSelection::default()
            }
    }

    /// Returns the selected logs, the most recently written first.
    pub fn selected_logs(&self, project: &Project) -> Result<Vec<TurnLog>, TurnsError> {
        self.filter_by_session_id_prefix_newest_first(
            TurnLog::one_per_session_oldest_modified_first(project),
            project,
        )
    }

    /// Returns the selected logs, including a second log of the same session if both folders of the project's
    /// files have one.
    pub fn selected_logs_with_copies(&self, project: &Project) -> Result<Vec<TurnLog>, TurnsError> {
        self.filter_by_session_id_prefix_newest_first(
            TurnLog::all_in_both_locations_oldest_modified_first(project),
            project,
        )
    }

    fn filter_by_session_id_prefix_newest_first(
        &self,
        mut turn_logs: Vec<TurnLog>,
        project: &Project,
    ) -> Result<Vec<TurnLog>, TurnsError> {
        turn_logs.reverse();
        let Some(id_prefix) = &self.session_id_prefix else {
            let has_logs = !turn_logs.is_empty();
            return if has_logs { Ok(turn_logs) } else { Err(TurnsError::NoLog(project.root().to_owned())) };
        };
        turn_logs.retain(|turn_log| turn_log.session_id().starts_with(id_prefix.as_str()));
        if turn_logs.is_empty() { Err(TurnsError::NoSession(id_prefix.clone())) } else { Ok(turn_logs) }
    }

    /// Returns the last `max_count` selected turns, oldest first. Each log is read only as far back as
    /// necessary.
    pub fn last_matching_turns_oldest_first(
        &self,
        project: &Project,
        max_count: usize,
    ) -> Result<Vec<LoggedRecord>, TurnsError> {
        let mut turns: Vec<LoggedRecord> = Vec::new();
        for turn_log in self.selected_logs(project)? {
            let oldest_needed_time = if turns.len() < max_count {
                None
            } else {
                turns.last().map(|turn| turn.header.recorded_at.clone())
            };
            let modified_at =
                turn_log.modified_at().map(|modified| clock::to_millis_timestamp(modified.into()));
            if oldest_needed_time
                .as_ref()
                .zip(modified_at.as_ref())
                .is_some_and(|(oldest_needed_time, modified_at)| modified_at < oldest_needed_time)
            {
                break;
            }
            self.add_last_turns_of_log(&turn_log, max_count, oldest_needed_time.as_ref(), &mut turns)?;
            turns.sort_by_key(|turn| Reverse(turn.header.recorded_at.clone()));
            turns.truncate(max_count);
        }
        turns.reverse();
        Ok(turns)
    }

    fn add_last_turns_of_log(
        &self,
        turn_log: &TurnLog,
        max_count: usize,
        oldest_needed_time: Option<&Timestamp>,
        turns: &mut Vec<LoggedRecord>,
    ) -> Result<(), StoreError> {
        let mut added_count = 0;
        for line in turn_log.backward_lines()? {
            let line = line?;
            let Some(header) = super::record_header(&line) else { continue };
            let is_too_old = oldest_needed_time
                .is_some_and(|oldest_needed_time| header.recorded_at < *oldest_needed_time)
                || !self.is_at_or_after_earliest_time(&header.recorded_at);
            if added_count >= max_count || is_too_old {
                break;
            }
            if !self.header_matches(&header) {
                continue;
            }
            if let Some(turn) = super::decode_record_keeping_error_in_body(turn_log, &line)
                .filter(|turn| self.content_matches(turn))
            {
                turns.push(turn);
                added_count += 1;
            }
        }
        Ok(())
    }

    fn is_at_or_after_earliest_time(&self, timestamp: &Timestamp) -> bool {
        self.earliest_time.as_ref().is_none_or(|earliest_time| timestamp >= earliest_time)
    }

    /// Returns false if the header alone shows that the record is not selected.
    pub fn header_matches(&self, header: &RecordHeader) -> bool {
        (self.include_subagents || header.stream == MAIN_STREAM)
            && header.kind == RecordKind::Turn
            && (!self.only_failures || header.succeeded == Some(false))
            && self.is_at_or_after_earliest_time(&header.recorded_at)
    }

    /// Returns true if the turn meets the conditions on its content: tool, iteration, file and text. A turn
    /// that cannot be decoded matches only if there are no such conditions.
    pub fn content_matches(&self, record: &LoggedRecord) -> bool {
        let needs_content = self.tool_name.is_some()
            || self.contained_text.is_some()
            || self.file_path.is_some()
            || self.iteration.is_some();
        let Some(turn) = record.turn() else { return !needs_content };
        let calls = turn.tool_calls();
        self.tool_name
            .as_ref()
            .is_none_or(|tool| calls.iter().any(|tool_call| tool_call.name.eq_ignore_ascii_case(tool)))
            && self.iteration.is_none_or(|number| turn.ext().get("iteration") == Some(&Value::from(number)))
            && self.file_path.as_ref().is_none_or(|file| {
                file_paths_in_calls(turn).iter().any(|path| Path::new(path).ends_with(file))
            })
            && self
                .contained_text
                .as_ref()
                .is_none_or(|text| labeled_texts(turn).iter().any(|(_, text_part)| text_part.contains(text)))
    }
}

/// Returns the path argument of each call that has one.
pub fn file_paths_in_calls(turn: &Turn) -> Vec<String> {
    let path_argument = |args: &Value| {
        let path_text =
            ["file_path", "notebook_path", "path"].into_iter().find_map(|key| args.get(key)?.as_str());
        path_text.map(str::to_owned)
    };
    turn.tool_calls().iter().filter_map(|tool_call| path_argument(&tool_call.args)).collect()
}

/// Returns all texts of a turn, each with a label of its origin.
pub fn labeled_texts(turn: &Turn) -> Vec<(&'static str, String)> {
    let mut texts = vec![("text", turn.joined_text())];
    texts.extend(turn.program().map(|program| ("program", program.to_owned())));
    texts.extend(turn.parsed_failure().map(|failure| ("failure", failure.message)));
    texts.extend(turn.tool_calls().iter().map(|tool_call| ("result", tool_call.result_text().into_owned())));
    texts.extend(turn.prints().iter().map(|text| ("prints", text.clone())));
    texts
}
