//! One turn by its name.

use super::{Recorded, TurnsError};
use session::log_line::{Kind, MAIN};
use store::{Project, TurnLog};

/// `SESSION:NUMBER`, `SESSION/AGENT:NUMBER`, or the number of a record of the newest (or the named) session.
pub fn find(project: &Project, name: &str, session: Option<&str>) -> Result<(TurnLog, Recorded), TurnsError> {
    let missing = || TurnsError::NoTurn(name.to_owned());
    let (log, asked) = match name.rsplit_once(':') {
        Some((place, number)) => {
            let (session, stream) = place.split_once('/').unwrap_or((place, MAIN));
            let number = number.parse().map_err(|_| missing())?;
            (log_of(project, session)?, Asked::Number(stream.to_owned(), number))
        }
        None => {
            let seq = name.parse().map_err(|_| missing())?;
            (log_of(project, session.unwrap_or_default())?, Asked::Seq(seq))
        }
    };
    for line in log.backwards()? {
        let line = line?;
        let is_it = super::header(&line).is_some_and(|header| match &asked {
            Asked::Seq(seq) => header.seq == *seq,
            Asked::Number(stream, number) => {
                header.kind == Kind::Turn
                    && header.number == Some(*number)
                    && (header.stream == *stream
                        || *stream != MAIN && header.stream.starts_with(stream.as_str()))
            }
        });
        if is_it {
            let found = super::recorded(&log, &line).ok_or_else(missing)?;
            return Ok((log, found));
        }
    }
    Err(missing())
}

enum Asked {
    Seq(u64),
    Number(String, u64),
}

fn log_of(project: &Project, beginning: &str) -> Result<TurnLog, TurnsError> {
    let logs = TurnLog::all(project);
    if logs.is_empty() {
        return Err(TurnsError::NoLog(project.root().to_owned()));
    }
    super::log_of(project, beginning).ok_or_else(|| TurnsError::NoSession(beginning.to_owned()))
}
