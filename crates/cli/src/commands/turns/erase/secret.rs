//! `plimsoll turns erase --secrets`: finds the records that hold what looks like a secret, says where and of which kind,
//! and erases them. What was found is never printed.

use super::{NOTHING_ERASED, TIMEOUT, TRANSCRIPT};
use crate::commands::turns::export::Redactor;
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::text::counted;
use plimsoll_domain::turn::record::blobs_of;
use plimsoll_flows::turns::{self, Body, TurnsError};
use plimsoll_store::turn_log::{ErasureRequest, RawLine};
use plimsoll_store::{Project, StoreError, TurnLog, disk};
use plimsoll_terminal::console::{say, say_error};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

/// What was found in the logs of a project.
#[derive(Default)]
struct Tally {
    turns: usize,
    others: usize,
    files: usize,
    sessions: usize,
    kinds: BTreeMap<&'static str, usize>,
    /// Lines that are no record and hold something all the same: they are evidence, and stay.
    unreadable: usize,
}

/// What one log holds.
#[derive(Default)]
struct Holding {
    seqs: BTreeSet<u64>,
    files: Vec<PathBuf>,
}

pub(super) fn erase(project: &Project, session: Option<&str>, is_dry: bool) -> Result<ExitCode, TurnsError> {
    let mut logs = TurnLog::all_with_waiting(project);
    if let Some(beginning) = session {
        logs.retain(|log| log.session_id().starts_with(beginning));
        if logs.is_empty() {
            return Err(TurnsError::NoSession(beginning.to_owned()));
        }
    }
    // A project without logs gets no folder for this.
    let request =
        ErasureRequest { secrets: true, session: session.map(str::to_owned), ..ErasureRequest::default() };
    let request = Some(request).filter(|_| !is_dry && !logs.is_empty());
    if let Some(request) = &request {
        request.begin(project)?;
    }
    let mut tally = Tally::default();
    for log in &logs {
        // What waits has no number yet, and would come into the log after it had been searched.
        log.settle(TIMEOUT)?;
        let holding = tally.search(log)?;
        if !is_dry {
            log.erase(&holding.seqs, TIMEOUT)?;
            holding.files.iter().try_for_each(|path| log.drop_loose(path, TIMEOUT))?;
        }
    }
    if let Some(request) = &request {
        request.finish(project)?;
    }
    say(tally.words(is_dry));
    if tally.unreadable > 0 {
        let lines = counted(tally.unreadable, "line");
        say_error(&format!(
            "{lines} of a log cannot be read and hold what looks like a secret; nothing was changed there\nhint: `plimsoll turns verify` names them"
        ));
    }
    Ok(if tally.unreadable > 0 && !is_dry { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Tally {
    fn search(&mut self, log: &TurnLog) -> Result<Holding, StoreError> {
        let mut holding = Holding::default();
        if log.exists() {
            for line in log.forwards()? {
                self.line(log, &line?, &mut holding);
            }
        }
        for path in log.loose()? {
            let found = disk::read(&path)?.and_then(|bytes| plimsoll_secrets::kind_in(&bytes));
            if let Some(kind) = found {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                say(format!("{}, {name}: looks like {kind}", log.session_id()));
                *self.kinds.entry(kind).or_default() += 1;
                self.files += 1;
                holding.files.push(path);
            }
        }
        self.sessions += usize::from(!holding.seqs.is_empty() || !holding.files.is_empty());
        Ok(holding)
    }

    fn line(&mut self, log: &TurnLog, line: &RawLine, holding: &mut Holding) {
        let Some(record) = turns::recorded(log, line) else {
            self.unreadable += usize::from(plimsoll_secrets::kind_in(&line.bytes).is_some());
            return;
        };
        // What says that others went holds numbers, and stays.
        if record.header.kind == RecordKind::Erase || matches!(record.body, Body::Erased) {
            return;
        }
        let mut redactor = Redactor::default();
        redactor.record(&record);
        let mut places: Vec<(String, &'static str)> =
            redactor.places().iter().map(|place| (format!(", {}", place.field), place.kind)).collect();
        if matches!(record.body, Body::DecodeError(_)) {
            places.extend(as_it_is_written(log, line).map(|kind| (String::new(), kind)));
        }
        if places.is_empty() {
            return;
        }
        for (field, kind) in places {
            say(format!("{}{field}: looks like {kind}", record.name()));
            *self.kinds.entry(kind).or_default() += 1;
        }
        holding.seqs.insert(record.header.seq);
        *(if record.is_turn() { &mut self.turns } else { &mut self.others }) += 1;
    }

    /// Turns, kinds and what is left to do.
    fn words(&self, is_dry: bool) -> String {
        if self.sessions == 0 {
            return "Nothing in the turn log looks like a secret.".to_owned();
        }
        let parts = [(self.turns, "turn"), (self.others, "other record"), (self.files, "loose file")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| counted(count, what))
            .collect();
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        let end =
            if is_dry { NOTHING_ERASED.to_owned() } else { format!("Erased here permanently. {TRANSCRIPT}") };
        let sessions = counted(self.sessions, "session");
        format!(
            "{} of {sessions} held what looks like a secret: {}. {end}",
            parts.join(", "),
            kinds.join(", ")
        )
    }
}

/// What a record holds that cannot be put together: its line, and the large pieces that are there.
fn as_it_is_written(log: &TurnLog, line: &RawLine) -> Option<&'static str> {
    let content = LogLine::parse(&line.bytes)?.content;
    let pieces = || {
        blobs_of(content)
            .iter()
            .filter_map(|hash| log.blob(hash))
            .find_map(|it| plimsoll_secrets::kind_in(&it))
    };
    plimsoll_secrets::kind_in(content.as_bytes()).or_else(pieces)
}
