//! One turn by its name.

use super::{Recorded, TurnsError};
use plimsoll_domain::log_line::{MAIN, RecordKind};
use plimsoll_store::{Project, TurnLog};

/// `SESSION:NUMBER`, `SESSION/AGENT:NUMBER`, or only the number, of the newest (or the named) session: always the number of
/// a turn, as `plimsoll turns list` shows it. `record:NUMBER` is a record that need not be a turn.
pub fn find(project: &Project, name: &str, session: Option<&str>) -> Result<(TurnLog, Recorded), TurnsError> {
    let missing = || TurnsError::NoTurn(name.to_owned());
    let newest = session.unwrap_or_default();
    let (place, number) = name.rsplit_once(':').unwrap_or((newest, name));
    let by_record = place == "record";
    let place = if by_record { newest } else { place };
    let (session, stream) = place.split_once('/').unwrap_or((place, MAIN));
    let number: u64 = number.parse().map_err(|_| missing())?;
    let log = log_of(project, session)?;
    for line in log.backwards()? {
        let line = line?;
        let is_it = super::header(&line).is_some_and(|header| {
            if by_record {
                return header.seq == number;
            }
            header.kind == RecordKind::Turn
                && header.number == Some(number)
                && (header.stream == stream || stream != MAIN && header.stream.starts_with(stream))
        });
        if is_it {
            let found = super::recorded(&log, &line).ok_or_else(missing)?;
            return Ok((log, found));
        }
    }
    Err(missing())
}

fn log_of(project: &Project, beginning: &str) -> Result<TurnLog, TurnsError> {
    let logs = TurnLog::all(project);
    if logs.is_empty() {
        return Err(TurnsError::NoLog(project.root().to_owned()));
    }
    super::log_of(project, beginning).ok_or_else(|| TurnsError::NoSession(beginning.to_owned()))
}
