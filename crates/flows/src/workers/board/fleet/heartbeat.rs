//! Keeps this machine's leases, and its picture of the board. By a thread of its own, which waits for nothing else.

use super::{FleetBoard, Known, is_leased_by, local_moment};
use crate::workers::connection::Look;
use crate::workers::error::BoardError;
use plimsoll_domain::board::{Aside, Stage};
use plimsoll_domain::workers::{ItemOutcome, ItemResult, Workers};
use plimsoll_policy::workers::{Claim, fail, give_back, offer, set_aside};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A sixth of a lease: it takes several lost ones.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(15);
/// How often the board is looked at; a long one more rarely, for its rows are many.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const ITEMS_PER_SECOND: usize = 1_000;

/// Until it is told to end.
pub(super) fn beat(board: &FleetBoard, ends: &AtomicBool) {
    let mut renewed: Option<Instant> = None;
    let mut looked: Option<Instant> = None;
    let (mut told, mut is_stale) = (Vec::new(), true);
    while !ends.load(Ordering::Relaxed) {
        let is_due = renewed.is_none_or(|at| at.elapsed() >= RENEWAL_INTERVAL);
        if is_due {
            renewed = Some(Instant::now());
            renew(board);
            is_stale = true;
        }
        let pace =
            LOOK_INTERVAL * u32::try_from(1 + board.table.count() / ITEMS_PER_SECOND).unwrap_or(u32::MAX);
        if looked.is_none_or(|at| at.elapsed() >= pace) {
            // What went wrong is noted where it is asked.
            is_stale = !report(board, &mut told, is_stale);
            let _ = look(board);
            looked = Some(Instant::now());
        }
        std::thread::sleep(LOOK_INTERVAL / 4);
    }
}

/// Renews the leases of what is at work here.
pub(super) fn renew(board: &FleetBoard) {
    let (held, merger) = {
        let known = board.known();
        (known.held.clone(), known.merger)
    };
    for claim in held {
        match board.ask_beside(|connection| connection.renew(claim)) {
            Err(BoardError::Fenced) => _ = board.known().fenced.insert((claim.item, claim.epoch)),
            Err(BoardError::Away(_) | BoardError::Refused(_)) => return,
            Ok(()) => {}
        }
    }
    // A merger that is fenced hears it where it says something.
    if let Some(merger) = merger {
        let _ = board.ask_beside(|connection| connection.renew_merger(merger));
    }
}

/// Reports what workers do, as soon as they do something else, and how full they are, now and then. False if it has to be done again:
/// money is being set aside for a worker, and leases wait for nothing.
pub(super) fn report(board: &FleetBoard, told: &mut Vec<(usize, Option<usize>)>, is_due: bool) -> bool {
    let Ok(_reporting) = board.reporting.try_lock() else { return false };
    let news = board.known().news.clone();
    let now: Vec<(usize, Option<usize>)> = news.iter().map(|news| (news.worker, news.item)).collect();
    if !is_due && *told == now {
        return true;
    }
    let said = news.iter().try_for_each(|news| board.ask_beside(|connection| connection.report(news)));
    if said.is_ok() {
        *told = now;
    }
    true
}

/// Looks at the board, and takes what is there into the record.
pub(super) fn look(board: &FleetBoard) -> Result<(), BoardError> {
    let before = board.table.changes();
    let asked = local_moment();
    let look = board.ask_beside(|connection| connection.look())?;
    let mut known = board.known();
    known.ahead = i64::try_from(look.now).unwrap_or(i64::MAX).saturating_sub_unsigned(asked);
    (known.is_draining, known.ended, known.used_up) = (look.is_draining, look.ended, look.used_up);
    board.table.touch_unless_changed(before, |workers| mirror(workers, look, &known));
    Ok(())
}

/// The record with what was seen, and with what is still to be told.
fn mirror(workers: &mut Workers, look: Look, known: &Known) {
    let Look { whole, items, passed, .. } = look;
    (workers.board.paused_until, workers.board.merger, workers.board.merger_epoch) =
        (whole.paused_until, whole.merger, whole.merger_epoch);
    workers.passed = passed;
    // What is not named is merged.
    workers.board.items.iter_mut().for_each(|row| row.stage = Stage::Merged);
    for (place, item) in items {
        let Some(row) = workers.board.items.get_mut(place) else { continue };
        let text = std::mem::take(&mut row.text);
        *row = item.row;
        row.text = text;
        let epoch = row.epoch;
        let is_ours = is_leased_by(workers, place) == Some(epoch) && !known.fenced.contains(&(place, epoch));
        let work = &mut workers.works[place];
        work.answered = item.answered;
        // Of an item that is at work here, this machine knows where it began.
        if !is_ours || work.start.is_empty() {
            (work.start, work.beyond) = (item.start, item.beyond);
        }
    }
    let results = workers.member.as_ref().map(|member| member.outbox.clone()).unwrap_or_default();
    results.iter().for_each(|result| overlay(workers, result));
}

/// What a result will do once it is heard.
fn overlay(workers: &mut Workers, result: &ItemResult) {
    let claim = Claim { item: result.item, epoch: result.epoch };
    let board = &mut workers.board;
    // Fenced: it is somebody else's by now.
    let _ = match &result.outcome {
        ItemOutcome::Offered => offer(board, claim, &result.start),
        ItemOutcome::Failed(reason) => fail(board, claim, reason),
        ItemOutcome::Asked(question) => set_aside(board, claim, Aside::Question(question.clone())),
        ItemOutcome::GivenBack => give_back(board, claim),
        ItemOutcome::Kept => Ok(()),
    };
    if result.outcome != ItemOutcome::Kept && workers.board.items[result.item].epoch == result.epoch {
        let work = &mut workers.works[result.item];
        (work.start, work.beyond) = (result.start.clone(), result.beyond.clone());
    }
}
