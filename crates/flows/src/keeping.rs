//! What the records of a project take, and which of them go when the user asks for it (`policy::prune`). The journal, the working
//! memory, settings and the plan always stay.

use crate::handoffs::waiting_names;
use plimsoll_domain::handoff::HandoffSummary;
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord, Settings};
use plimsoll_launcher::process::{self, Identity};
use plimsoll_policy::prune::{Bounds, KeptRecord, Needed, Pruning, RecordKind, prune};
use plimsoll_store::records::{self, Held};
use plimsoll_store::{Project, StoreError, TurnLog, disk, ledger, sessions, state_file};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const DAY: u64 = 24 * 60 * 60;
/// What is older than thirty days may go: what `status` and the doctor propose.
pub const A_MONTH: Bounds = Bounds { older_than: Some(30 * DAY), max_bytes: None };
/// A session that writes its record at this moment is none to be pruned.
const TIMEOUT: Duration = Duration::from_millis(100);

/// All records of a project.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Those that may go.
    pub kept: Vec<KeptRecord>,
    /// What the rest takes: journal, memory, drafts.
    pub unpruned: u64,
}

impl Records {
    /// What all of them take.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().fold(self.unpruned, |sum, record| sum.saturating_add(record.bytes))
    }

    /// What would go.
    pub fn pruning(&self, bounds: Bounds) -> Pruning {
        prune(&self.kept, self.unpruned, bounds)
    }
}

/// Looks at all of them; fails where the state cannot be read, which says what a run needs.
pub fn look(project: &Project) -> Result<Records, StoreError> {
    let needs = Needs { project, runs: open_runs(project)?, unread: waiting_names(project) };
    let (mut kept, mut open) = (Vec::new(), BTreeSet::new());
    for id in records::sessions(project) {
        let record = load_record(project, &id);
        let held = records::of_session(project, &id);
        let needed = needs.of_session(&record, held.age);
        if needed.is_some() {
            open.extend(record.checkpoint.handoff.as_deref().map(name_of));
        }
        kept.push(kept_record(held, RecordKind::Session, id.to_string(), needed));
    }
    for name in records::handoffs(project) {
        let held = records::of_handoff(project, &name);
        let needed = needs.of_handoff(&name, &open);
        kept.push(kept_record(held, RecordKind::Handoff, name, needed));
    }
    for id in records::runs(project) {
        let held = records::of_run(project, &id);
        let needed = needs.runs.iter().any(|run| run.run_id == id).then_some(Needed::ByRun);
        kept.push(kept_record(held, RecordKind::RunOutput, id.to_string(), needed));
    }
    let pruned = kept.iter().fold(0_u64, |sum, record| sum.saturating_add(record.bytes));
    Ok(Records { unpruned: records::bytes(project).saturating_sub(pruned), kept })
}

/// The runs that are not over: by the project's file, and by the ledger, which an agent's `git clean` does not take away.
fn open_runs(project: &Project) -> Result<Vec<RunState>, StoreError> {
    let mut runs: Vec<RunState> = state_file::load(project, None)?.into_iter().collect();
    for id in records::runs(project) {
        if !runs.iter().any(|run| run.run_id == id) {
            runs.extend(ledger::load(project, &id)?);
        }
    }
    runs.retain(|run| !run.lifecycle.is_over());
    Ok(runs)
}

/// Removes what the bounds say; answers with what went. A session that has come back meanwhile stays.
pub fn keep_within(project: &Project, bounds: Bounds) -> Result<(Records, Pruning), StoreError> {
    let found = look(project)?;
    let mut pruning = found.pruning(bounds);
    let mut gone = Vec::new();
    for at in std::mem::take(&mut pruning.going) {
        let record = &found.kept[at];
        let removed = match record.kind {
            RecordKind::Session => remove_session(project, &SessionId::from(record.name.as_str()))?,
            RecordKind::Handoff => records::remove_handoff(project, &record.name).map(|()| true)?,
            RecordKind::RunOutput => {
                records::remove_run(project, &RunId::from(record.name.as_str())).map(|()| true)?
            }
        };
        if removed {
            gone.push(at);
        } else {
            pruning.freed -= record.bytes;
            pruning.left += record.bytes;
        }
    }
    Ok((found, Pruning { going: gone, ..pruning }))
}

/// The same by the user's settings; nothing without any.
pub fn keep_as_set(project: &Project, settings: &Settings) -> Result<(), StoreError> {
    if settings.keep.is_everything() {
        return Ok(());
    }
    let (records, _) = keep_within(project, bounds_of(settings))?;
    if settings.keep.compress {
        // What could not be compressed stays, and `plimsoll prune` says why.
        pack_closed(project, &records, PackingLimits::HOOK);
    }
    Ok(())
}

/// What the settings say.
pub fn bounds_of(settings: &Settings) -> Bounds {
    Bounds {
        older_than: settings.keep.days.map(|days| days.saturating_mul(DAY)),
        max_bytes: settings.keep.megabytes.map(|megabytes| megabytes.saturating_mul(1_000_000)),
    }
}

/// How much may be compressed at a time.
#[derive(Debug, Clone, Copy)]
pub struct PackingLimits {
    /// No larger log.
    largest: u64,
    /// None is begun after this time.
    time: Duration,
}

impl PackingLimits {
    /// What the user waits for.
    pub const COMMAND: PackingLimits = PackingLimits { largest: u64::MAX, time: Duration::MAX };
    /// The client ends a hook at a session's end after 1.5 s, unless its entry says more. What is left is compressed the next time.
    pub const HOOK: PackingLimits =
        PackingLimits { largest: 32 * 1024 * 1024, time: Duration::from_millis(300) };
}

/// What was compressed.
#[derive(Debug, Default)]
pub struct Packed {
    /// How many logs.
    pub count: usize,
    /// Bytes that this saved.
    pub saved: u64,
    /// What could not be, and why: it is as it was.
    pub troubles: Vec<(SessionId, StoreError)>,
}

/// Compresses the turn logs of sessions that are over and need nothing any more. One that is being written is passed over.
pub fn pack_closed(project: &Project, records: &Records, limits: PackingLimits) -> Packed {
    let mut packed = Packed::default();
    let started = Instant::now();
    let is_small = |log: &TurnLog| disk::size(&log.path()).is_some_and(|size| size <= limits.largest);
    for log in packable(project, records).into_iter().filter(is_small) {
        if started.elapsed() > limits.time {
            break;
        }
        // Not under the session's lock, for which a hook waits: a session that comes back meanwhile unpacks its log.
        if is_open(&load_record(project, log.session_id()), Some(DAY)) {
            continue;
        }
        match log.pack(TIMEOUT) {
            Ok(saved) => {
                packed.saved += saved;
                packed.count += usize::from(log.is_packed());
            }
            Err(StoreError::Busy { .. }) => {}
            Err(error) => packed.troubles.push((log.session_id().to_owned(), error)),
        }
    }
    packed
}

/// The turn logs that may be compressed and are not yet.
pub fn packable(project: &Project, records: &Records) -> Vec<TurnLog> {
    let closed = records.kept.iter().filter(|one| one.kind == RecordKind::Session && one.needed.is_none());
    let logs = closed.filter_map(|one| TurnLog::of(project, &SessionId::from(one.name.as_str())));
    logs.filter(TurnLog::is_plain).collect()
}

/// Under the session's lock, and only if its client has not come back.
fn remove_session(project: &Project, id: &SessionId) -> Result<bool, StoreError> {
    let lock = match sessions::lock(project, id, TIMEOUT) {
        Err(StoreError::Busy { .. }) => return Ok(false),
        lock => lock?,
    };
    if is_open(&load_record(project, id), Some(DAY)) {
        return Ok(false);
    }
    // Nor while its turns are written.
    let logs =
        TurnLog::all_of(project, id).iter().map(|log| log.hold(TIMEOUT)).collect::<Result<Vec<_>, _>>();
    let logs = match logs {
        Err(StoreError::Busy { .. }) => return Ok(false),
        logs => logs?,
    };
    let removed = records::remove_session(project, id);
    drop((lock, logs));
    removed.map(|()| true)
}

/// The record of a session, also of one that has its record where they were before the project had files of ours in it.
fn load_record(project: &Project, id: &SessionId) -> SessionRecord {
    let has_record = |place: &Project| place.session(id).is_some_and(|path| disk::exists(&path));
    if has_record(project) {
        return sessions::load(project, id);
    }
    let earlier = project.earlier().filter(has_record);
    sessions::load(earlier.as_ref().unwrap_or(project), id)
}

struct Needs<'a> {
    project: &'a Project,
    /// Those that are not over.
    runs: Vec<RunState>,
    /// Handoffs that no session has opened.
    unread: Vec<String>,
}

impl Needs<'_> {
    fn of_session(&self, record: &SessionRecord, age: Option<u64>) -> Option<Needed> {
        let of_run = |run: &RunState| {
            record.start.run_id.as_ref() == Some(&run.run_id)
                || run.session_id.as_ref() == Some(&record.session_id)
        };
        if self.runs.iter().any(of_run) {
            return Some(Needed::ByRun);
        }
        is_open(record, age).then_some(Needed::BySession)
    }

    fn of_handoff(&self, name: &str, open: &BTreeSet<String>) -> Option<Needed> {
        let path = self.project.handoffs().join(name);
        let of_run = || {
            let text = disk::read_text(&path).ok().flatten().unwrap_or_default();
            let words = HandoffSummary::parse(&text).run;
            words.is_some_and(|words| self.runs.iter().any(|run| words.contains(run.run_id.as_str())))
        };
        match () {
            () if self.unread.iter().any(|unread| unread == name) => Some(Needed::Unread),
            () if open.contains(name) => Some(Needed::BySession),
            () if !self.runs.is_empty() && of_run() => Some(Needed::ByRun),
            () => None,
        }
    }
}

/// True while its client lives, or may. One that named no process, or whose record is lost, is taken for open for a day after its last
/// word.
fn is_open(record: &SessionRecord, age: Option<u64>) -> bool {
    if record.end.ended_at.is_some() {
        return false;
    }
    match record.start.client {
        Some(client) => !process::life(Identity { pid: client.pid, started: client.started }).is_gone(),
        None => age.is_none_or(|age| age < DAY),
    }
}

fn kept_record(held: Held, kind: RecordKind, name: String, needed: Option<Needed>) -> KeptRecord {
    // Of an unknown age it counts as new.
    KeptRecord { kind, name, bytes: held.bytes, age: held.age.unwrap_or(0), needed }
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
