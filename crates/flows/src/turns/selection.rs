//! Which turns are meant.

use super::{Recorded, TurnsError};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{Header, MAIN, RecordKind};
use plimsoll_domain::turn::Turn;
use plimsoll_store::{Project, StoreError, TurnLog, clock};
use serde_json::Value;
use std::cmp::Reverse;

/// Which turns are meant; all of the main streams where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this session: the beginning of its id.
    pub session: Option<String>,
    /// Also the turns of subagents.
    pub all_streams: bool,
    /// Only turns that failed.
    pub failures: bool,
    /// Only turns that called this tool.
    pub tool: Option<String>,
    /// Only turns with this text in words, calls or results.
    pub text: Option<String>,
    /// Only turns whose calls name this file: its path, or the end of it.
    pub file: Option<String>,
    /// Only turns of this iteration of a run.
    pub iteration: Option<u64>,
    /// Only turns since then, RFC 3339 UTC.
    pub since: Option<Timestamp>,
}

impl Selection {
    /// True if no turn of a session is left out.
    pub fn is_of_whole_sessions(&self) -> bool {
        let Selection { session, all_streams, .. } = self.clone();
        *self == Selection { session, all_streams, ..Selection::default() }
    }

    /// The logs that are meant, the one that was written last first.
    pub fn logs(&self, project: &Project) -> Result<Vec<TurnLog>, TurnsError> {
        self.select_logs(TurnLog::all(project), project)
    }

    /// The same with a second log of a session, where there is one in each folder of the project's files.
    pub fn all_logs(&self, project: &Project) -> Result<Vec<TurnLog>, TurnsError> {
        self.select_logs(TurnLog::all_copies(project), project)
    }

    fn select_logs(&self, mut logs: Vec<TurnLog>, project: &Project) -> Result<Vec<TurnLog>, TurnsError> {
        logs.reverse();
        let Some(beginning) = &self.session else {
            let is_recorded = !logs.is_empty();
            return if is_recorded { Ok(logs) } else { Err(TurnsError::NoLog(project.root().to_owned())) };
        };
        logs.retain(|log| log.session_id().starts_with(beginning.as_str()));
        if logs.is_empty() { Err(TurnsError::NoSession(beginning.clone())) } else { Ok(logs) }
    }

    /// The last turns that are meant, oldest first. From each log no more is read than is needed.
    pub fn last(&self, project: &Project, most: usize) -> Result<Vec<Recorded>, TurnsError> {
        let mut found: Vec<Recorded> = Vec::new();
        for log in self.logs(project)? {
            let oldest =
                if found.len() < most { None } else { found.last().map(|turn| turn.header.at.clone()) };
            let written = log.modified().map(|at| clock::fine_stamp(at.into()));
            if oldest.as_ref().zip(written.as_ref()).is_some_and(|(oldest, written)| written < oldest) {
                break;
            }
            self.last_of(&log, most, oldest.as_ref(), &mut found)?;
            found.sort_by_key(|turn| Reverse(turn.header.at.clone()));
            found.truncate(most);
        }
        found.reverse();
        Ok(found)
    }

    fn last_of(
        &self,
        log: &TurnLog,
        most: usize,
        oldest: Option<&Timestamp>,
        found: &mut Vec<Recorded>,
    ) -> Result<(), StoreError> {
        let mut taken = 0;
        for line in log.backwards()? {
            let line = line?;
            let Some(header) = super::header(&line) else { continue };
            let is_older = oldest.is_some_and(|oldest| header.at < *oldest) || !self.is_since(&header.at);
            if taken >= most || is_older {
                break;
            }
            if !self.may_mean(&header) {
                continue;
            }
            if let Some(turn) = super::recorded(log, &line).filter(|turn| self.means(turn)) {
                found.push(turn);
                taken += 1;
            }
        }
        Ok(())
    }

    fn is_since(&self, at: &Timestamp) -> bool {
        self.since.as_ref().is_none_or(|since| at >= since)
    }

    /// What the header alone shows.
    pub fn may_mean(&self, header: &Header) -> bool {
        (self.all_streams || header.stream == MAIN)
            && header.kind == RecordKind::Turn
            && (!self.failures || header.success == Some(false))
            && self.is_since(&header.at)
    }

    /// True for a turn that is meant.
    pub fn means(&self, recorded: &Recorded) -> bool {
        let needs_content =
            self.tool.is_some() || self.text.is_some() || self.file.is_some() || self.iteration.is_some();
        let Some(turn) = recorded.turn() else { return !needs_content };
        let calls = turn.tool_calls();
        self.tool.as_ref().is_none_or(|tool| calls.iter().any(|call| call.name.eq_ignore_ascii_case(tool)))
            && self.iteration.is_none_or(|number| turn.ext().get("iteration") == Some(&Value::from(number)))
            && self.file.as_ref().is_none_or(|file| files(turn).iter().any(|known| is_file(known, file)))
            && self.text.as_ref().is_none_or(|text| places(turn).iter().any(|(_, said)| said.contains(text)))
    }
}

fn is_file(known: &str, asked: &str) -> bool {
    known == asked || known.strip_suffix(asked).is_some_and(|before| before.ends_with('/'))
}

/// The files that the calls name.
pub fn files(turn: &Turn) -> Vec<String> {
    let named = |args: &Value| {
        let key = ["file_path", "notebook_path", "path"].into_iter().find_map(|key| args.get(key)?.as_str());
        key.map(str::to_owned)
    };
    turn.tool_calls().iter().filter_map(|call| named(&call.args)).collect()
}

/// All text of a turn, and where it is.
pub fn places(turn: &Turn) -> Vec<(&'static str, String)> {
    let mut places = vec![("text", turn.text())];
    places.extend(turn.program().map(|program| ("program", program.to_owned())));
    places.extend(turn.failure_of().map(|failure| ("failure", failure.message)));
    places.extend(turn.tool_calls().iter().map(|call| ("result", call.result_text().into_owned())));
    places.extend(turn.prints().iter().map(|text| ("prints", text.clone())));
    places
}
