//! From the files to the report.

use super::contents::{At, Commit, Cost, Filling, Moment, Report, RunSession, Worker};
use super::entry::RunLine;
use super::filling::{Fill, read_turns};
use super::next::{Scene, steps, with_handoff};
use super::standing::standing;
use super::which::Chosen;
use super::{handoffs, items, moments, pauses, run_sessions, troubles, workers};
use crate::render::redact::RedactedText;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::{RunState, Status, Timestamp};
use plimsoll_flows::context::measure::{Question, thresholds};
use plimsoll_flows::run_figures::{RunSnapshot, complete_snapshot};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Project, StoreError, clock, config, journal, sessions};

/// Everything that is known of a run.
pub(super) fn gather(project: &Project, chosen: &Chosen) -> Result<Report, StoreError> {
    let state = &chosen.state;
    let mut gaps = Vec::new();
    if let Err(error) = catch_up::sync(project, CaptureLimits::USER) {
        gaps.push(format!("The newest turns may be missing: {error}"));
    }
    let journal = journal::read(project)?;
    let entries = RunLine::of_run(&journal, &state.run_id);
    if entries.is_empty() {
        gaps.push(
            "The journal has no entries of this run: sessions, pauses and problems are unknown.".to_owned(),
        );
    }
    let gathered = Gathered::of(project, state, &entries)?;
    let snapshot = complete_snapshot(project, state, chosen.is_present)?;
    let mut report = Report {
        gaps: gaps.iter().map(|gap| RedactedText::line(gap, 300)).collect(),
        items: items::items(state, &gathered.sessions),
        pauses: pauses::pauses(&entries, state.lifecycle.status() == Status::Paused),
        troubles: troubles::troubles(&entries),
        merges: workers::merges(&entries),
        levels: moments::levels(&entries).or_else(|| estimated_levels(project, &gathered.sessions)),
        handoffs: handoffs::handoffs(project, state, &entries),
        steps: steps(&scene(chosen, &snapshot, &entries)),
        ..bare(project, chosen, &snapshot, gathered)
    };
    if chosen.is_present {
        with_handoff(&mut report);
    }
    Ok(report)
}

/// The part of the report that needs only the state and the sessions.
fn bare(project: &Project, chosen: &Chosen, snapshot: &RunSnapshot, gathered: Gathered) -> Report {
    let state = &chosen.state;
    let moment = |stamp: Option<&Timestamp>| stamp.and_then(clock::moment);
    Report {
        name: RedactedText::line(&state.options.task_name, 80),
        objective: RedactedText::line(&state.options.objective, 400),
        run_id: RedactedText::line(&state.run_id, 60),
        status: state.lifecycle.status(),
        standing: standing(state, chosen.is_present, &crate::run_status::standing(project, snapshot)),
        started: moment(Some(&state.at_start.started_at)),
        ended: if state.lifecycle.is_over() { moment(state.lifecycle.ended_at()) } else { None },
        is_live: chosen.is_present && (snapshot.is_run_active || snapshot.figures.sessions_running > 0),
        looked: clock::now(),
        counted: snapshot.figures.sessions_started,
        max_sessions: state.options.max_iterations,
        cost: cost(state, &snapshot.figures),
        verified: state.spent.verify_seconds,
        sessions: gathered.sessions,
        moments: gathered.moments,
        workers: gathered.workers,
        filling: Filling { delegated: state.delegated_now(), ..gathered.filling },
        ..Report::default()
    }
}

/// The sessions, what is marked on their load lines, and what filled their windows.
struct Gathered {
    sessions: Vec<RunSession>,
    moments: Vec<Moment>,
    workers: Vec<Worker>,
    filling: Filling,
}

impl Gathered {
    fn of(project: &Project, state: &RunState, entries: &[RunLine<'_>]) -> Result<Gathered, StoreError> {
        let mut sessions = run_sessions::sessions(entries);
        let mut moments = moments::moments(entries);
        let mut fill = Fill::default();
        read_turns(project, &mut sessions, &mut moments, &mut fill)?;
        let workers = workers::workers(project, state, entries, &mut fill)?;
        moments.extend(sessions.iter().filter_map(moments::end));
        moments.sort_by_key(|moment| moment.at);
        place(&mut moments, &sessions);
        assign(&mut sessions, commits(project, state));
        Ok(Gathered { sessions, moments, workers, filling: fill.filling() })
    }
}

fn scene<'a>(chosen: &'a Chosen, snapshot: &RunSnapshot, entries: &[RunLine<'a>]) -> Scene<'a> {
    let until = chosen.state.lifecycle.paused_until().and_then(clock::moment);
    Scene {
        state: &chosen.state,
        activity: snapshot.activity.clone(),
        is_present: chosen.is_present,
        until: until.map(clock::for_people),
        refusal: chosen.state.items.set_aside.first().and_then(|item| refusal_of(entries, item)),
    }
}

/// Why the work on an item was last not merged, if the item was set aside for that.
fn refusal_of<'a>(entries: &[RunLine<'a>], item: &str) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match entry.event() {
        JournalEvent::SentBack(back) if back.is_set_aside && back.item == item => Some(back.reason.as_str()),
        _ => None,
    })
}

fn cost(state: &RunState, figures: &RunFigures) -> Cost {
    Cost {
        usd: figures.cost_usd,
        basis: figures.cost_basis,
        max_usd: state.options.limits.max_cost_usd,
        reviews: state.spent.review_count,
        review_usd: state.spent.review_cost_usd,
        tokens: figures.tokens,
        max_tokens: state.options.limits.max_tokens,
    }
}

/// Puts each mark that has no figure of its own where the load line was then.
fn place(moments: &mut [Moment], sessions: &[RunSession]) {
    for moment in moments.iter_mut().filter(|moment| moment.percent.is_none()) {
        let then = |session: &&RunSession| session.began.is_some_and(|began| began <= moment.at);
        let session = sessions.iter().rfind(then);
        let before = |session: &RunSession| {
            let mut points = session.trace.iter().flatten();
            points.rfind(|point| point.at <= moment.at).map(|point| point.percent)
        };
        moment.percent =
            session.and_then(|session| before(session).or_else(|| session.peak.map(|peak| peak as f64)));
    }
}

fn commits(project: &Project, state: &RunState) -> Vec<Commit> {
    let commit = |commit: plimsoll_launcher::git::Logged| {
        let at = u64::try_from(commit.at).ok().and_then(clock::at)?;
        Some(Commit { id: commit.id.into(), subject: RedactedText::line(&commit.subject, 120), at })
    };
    plimsoll_launcher::git::log_since(project.root(), state.at_start.started_at.as_str())
        .into_iter()
        .filter_map(commit)
        .collect()
}

/// A commit belongs to the session during which it was made: git counts whole seconds, and ours come before the verdict.
fn assign(sessions: &mut [RunSession], commits: Vec<Commit>) {
    for commit in commits {
        let second = |at: Option<At>| at.map(|at| at.timestamp());
        let at = commit.at.timestamp();
        let is_within = |session: &&mut RunSession| {
            let end = second(session.judged.or(session.ended)).unwrap_or(i64::MAX);
            let was_there = session.head.as_ref() == Some(&commit.id);
            second(session.began).is_some_and(|began| began <= at) && at <= end && !was_there
        };
        if let Some(session) = sessions.iter_mut().find(is_within) {
            session.commits.push(commit);
        }
    }
}

/// If no decision recorded them: as they would be in the last session's window.
fn estimated_levels(project: &Project, sessions: &[RunSession]) -> Option<super::contents::Levels> {
    let id = sessions.iter().rev().find_map(|session| session.window.and(session.session_id.as_ref()))?;
    let record = sessions::load(project, id);
    let reading = record.usage.reading.as_ref()?;
    let (settings, _) = config::load(project);
    let question = Question { project, settings: &settings, record: &record, transcript: None, calls: &[] };
    Some(moments::of_thresholds(&thresholds(&question, reading.window.as_ref()?, reading.model.as_deref())))
}
