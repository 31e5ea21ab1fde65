//! A board that several machines share, over two connections, and what this machine knows of it meanwhile.
//!
//! The record of this machine ([`Table`]) mirrors it, so that everything that looks at a parallel run finds what it knows. What becomes
//! of an item here is written into the record first, as a result ([`plimsoll_domain::workers::ItemResult`]), and told once its branch is
//! on the remote ([`delivery`]): the board may be away, and this process may be killed. Repeated, a result is fenced. Claims and all
//! that a merger does are said at once, or not done, and the record follows.

mod delivery;
mod heartbeat;
#[cfg(test)]
pub(super) mod tests;

use super::{Board, Orders, Pause, UnfinishedWork, local_moment, record_landing, record_next_start};
use crate::run::Interrupt;
use crate::workers::closing::Closing;
use crate::workers::connection::{BoardConnection, Ended, Refused, Reserved, UsedUp, WorkerNews};
use crate::workers::error::{BoardError, MergeError};
use crate::workers::means::{LEAST_USD, Means};
use crate::workers::retry::retry;
use crate::workers::table::Table;
use crate::workers::target::RemoteTarget;
use plimsoll_domain::Status;
use plimsoll_domain::board::{Aside, BoardItem, Moment, Stage};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::text::counted;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{ItemOutcome, Workers};
use plimsoll_policy::workers::{
    Claim, Outlook, fail, give_back, offer, offered, outlook, pause, refuse, set_aside,
};
use plimsoll_store::StoreError;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one item's run may take of a fleet's sessions: one that takes more has lost its way, however many sessions all may have.
const SESSIONS: u32 = 50;
/// How often the shared board is asked for an item that others may have got by now.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);
/// How often what could not be merged is tried again.
const MERGE_INTERVAL: Duration = Duration::from_secs(2);
/// So long one question of the merger is asked again while the board is away.
const ASKED_FOR: Duration = Duration::from_secs(10);
/// How long a last word may take. What was not heard then is told by the next `join`.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long a machine that closes waits for the merger of another one, which merges every two seconds.
const MERGER_FAREWELL: Duration = Duration::from_secs(5);
/// What is away for less than this is not worth a word.
const NOTICED: Duration = Duration::from_secs(3);

/// The board of a fleet, on one of its machines.
pub(in super::super) struct FleetBoard {
    table: Table,
    connection: Mutex<Box<dyn BoardConnection>>,
    /// A second connection: what keeps leases waits for nothing else.
    heartbeat: Mutex<Box<dyn BoardConnection>>,
    target: RemoteTarget,
    /// How long this machine waits for a board or a remote that is away.
    patience: Duration,
    known: Mutex<Known>,
    /// Held while news of workers are on their way, by either connection: the news of an idle worker, taken before its item began
    /// and written after money was set aside for it, would free that money again.
    reporting: Mutex<()>,
    since: Mutex<Since>,
}

/// What this machine knows beside its record.
#[derive(Debug, Default)]
struct Known {
    /// The board's clock before this machine's, in milliseconds.
    ahead: i64,
    /// True once it has been looked at.
    is_draining: bool,
    used_up: Option<UsedUp>,
    ended: Option<Ended>,
    /// Claims that are no longer ours.
    fenced: BTreeSet<(usize, u64)>,
    /// What leases are kept for.
    held: Vec<Claim>,
    merger: Option<u64>,
    news: Vec<WorkerNews>,
    /// Since when it has been away, by each connection: what only looks may be answered where nothing can be written.
    board_away: Option<(Instant, String)>,
    heartbeat_away: Option<(Instant, String)>,
    /// What no waiting helps against.
    fault: Option<String>,
}

/// Since when this machine does or waits for something.
#[derive(Debug, Default)]
struct Since {
    /// When the board was asked for an item last, and what it gave was none.
    claimed: Option<Instant>,
    /// When a round of merging began last.
    merged: Option<Instant>,
    /// Since when this process, which closes, waits for another machine's merger.
    left_merging: Option<Instant>,
    /// When it was asked to end at once.
    hurried: Option<Instant>,
    /// True once it was said that the board or the remote is waited for.
    is_waiting: bool,
}

/// How long nothing could be told, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    /// It may pass.
    Away(Duration, String),
    /// It will not.
    Fault(String),
}

impl FleetBoard {
    /// The board that these connections lead to.
    pub(in super::super) fn new(
        table: Table,
        connection: Box<dyn BoardConnection>,
        heartbeat: Box<dyn BoardConnection>,
        target: RemoteTarget,
        patience: Duration,
    ) -> FleetBoard {
        FleetBoard {
            table,
            connection: Mutex::new(connection),
            heartbeat: Mutex::new(heartbeat),
            target,
            patience,
            known: Mutex::default(),
            reporting: Mutex::default(),
            since: Mutex::default(),
        }
    }

    /// Keeps the leases, and the record a mirror of the board, until it is told to end. In a thread of its own.
    pub(in super::super) fn beat(&self, ends: &AtomicBool) {
        heartbeat::beat(self, ends);
    }

    /// Tells the board what has become of items, until it is told to end. In a thread of its own. `notes` has what the sessions of an
    /// item noted below it.
    pub(in super::super) fn deliver_results(
        &self,
        ends: &AtomicBool,
        give_up: &dyn Fn() -> bool,
        notes: &dyn Fn(usize) -> Vec<String>,
    ) {
        delivery::deliver_outbox(self, ends, give_up, notes);
    }

    /// Looks at the board, and takes what is there into the record.
    pub(in super::super) fn look(&self) -> Result<(), BoardError> {
        heartbeat::look(self)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the board, and notes whether it answers.
    fn ask<T>(
        &self,
        question: impl FnOnce(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = question(connection.as_mut());
        drop(connection);
        self.note_answer(&answer, |known| &mut known.board_away);
        answer
    }

    /// The same, again and again while it is away: everything may be asked twice. A round of merging has many questions: over a
    /// line that breaks often none would come to its end if each of them could end it.
    fn ask_again<T>(
        &self,
        give_up: &dyn Fn() -> bool,
        mut question: impl FnMut(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        retry(ASKED_FOR, give_up, BoardError::is_away, || self.ask(&mut question))
    }

    /// The same as `ask`, over the second connection.
    fn ask_beside<T>(
        &self,
        question: impl FnOnce(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut connection = self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = question(connection.as_mut());
        drop(connection);
        self.note_answer(&answer, |known| &mut known.heartbeat_away);
        answer
    }

    fn note_answer<T>(
        &self,
        answer: &Result<T, BoardError>,
        away: impl FnOnce(&mut Known) -> &mut Option<(Instant, String)>,
    ) {
        let mut known = self.known();
        match answer {
            Ok(_) | Err(BoardError::Fenced) => *away(&mut known) = None,
            Err(BoardError::Away(why)) => {
                let away = away(&mut known);
                let since = away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                *away = Some((since, why.clone()));
            }
            Err(BoardError::Refused(why)) => _ = known.fault.get_or_insert_with(|| why.clone()),
        }
    }

    /// Notes what no waiting helps against.
    fn note_fault(&self, why: String) {
        self.known().fault.get_or_insert(why);
    }

    /// Sets aside what a worker may use for its item, and replaces the news of it that are still to be reported.
    fn set_money_aside(&self, news: &WorkerNews, sessions: u32) -> Result<Reserved, BoardError> {
        let _reporting = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        for known in self.known().news.iter_mut().filter(|known| known.worker == news.worker) {
            known.clone_from(news);
        }
        self.ask(|board| board.reserve(news, sessions, LEAST_USD))
    }

    /// What keeps this machine from telling and claiming.
    fn trouble(&self) -> Option<Trouble> {
        let known = self.known();
        let fault = known.fault.clone().map(Trouble::Fault);
        let of_remote = self.target.away();
        let away = [&known.board_away, &known.heartbeat_away, &of_remote].into_iter().flatten();
        let longest = away.max_by_key(|(since, _)| since.elapsed());
        fault.or_else(|| longest.map(|(since, why)| Trouble::Away(since.elapsed(), why.clone())))
    }

    /// True where only a question of the scheduler's or the merger's can show that all is well again: everything else answers, and
    /// nothing waits to be told.
    fn is_to_be_tried(&self) -> bool {
        let known = self.known();
        let answers = known.heartbeat_away.is_none() && self.target.away().is_none() && known.fault.is_none();
        drop(known);
        answers && !self.has_results()
    }

    /// True while what has become of items is still to be told.
    fn has_results(&self) -> bool {
        self.table.now().member.is_some_and(|member| !member.outbox.is_empty())
    }

    /// A moment of this machine by the board's clock.
    fn of_board(&self, moment: Moment) -> Moment {
        moment.saturating_add_signed(self.known().ahead)
    }

    /// A moment of the board by this machine's clock.
    fn of_machine(&self, moment: Moment) -> Moment {
        moment.saturating_add_signed(self.known().ahead.saturating_neg())
    }

    /// An item that the board has given to this machine in an answer that was lost on its way.
    fn lost_claim(&self, now: &Workers, held: &[Claim]) -> Option<Claim> {
        let is_at_work = |item: usize| held.iter().any(|claim| claim.item == item);
        (0..now.board.items.len())
            .find(|item| is_leased_by(now, *item).is_some() && !is_at_work(*item))
            .map(|item| Claim { item, epoch: now.board.items[item].epoch })
            .filter(|claim| self.is_held(*claim))
    }

    /// Keeps what has become of an item until the board has heard it. `done` is the end of what was done of it.
    fn record_result<T>(
        &self,
        claim: Claim,
        done: Option<String>,
        outcome: ItemOutcome,
        change: impl FnOnce(&mut Workers) -> T,
    ) -> Result<T, StoreError> {
        self.table.change(|workers| {
            workers.works[claim.item].pid = None;
            if let Some(done) = done {
                workers.works[claim.item].start = done;
            }
            let answer = change(workers);
            workers.tell(claim.item, claim.epoch, outcome);
            answer
        })
    }

    /// Returns true while another machine is the merger.
    fn is_merger_elsewhere(&self) -> bool {
        let now = self.table.now();
        let name = now.member.unwrap_or_default().name;
        now.board.merger.holds(self.moment()) && now.board.merger.holder != name
    }

    /// What the user is told once the board or the remote is waited for, and when that is over.
    fn waiting_words(&self, trouble: Option<&Trouble>) -> Option<String> {
        let mut since = self.since();
        let words = match (trouble, since.is_waiting) {
            (Some(Trouble::Away(long, why)), false) if *long >= NOTICED => {
                let most = self.patience.as_secs();
                format!("what is at work goes on, and nothing new begins, for up to {most} s: {why}")
            }
            (None, true) => "all is there again, and it goes on".to_owned(),
            _ => return None,
        };
        since.is_waiting = !since.is_waiting;
        Some(words)
    }
}

impl Board for FleetBoard {
    fn table(&self) -> &Table {
        &self.table
    }

    fn moment(&self) -> Moment {
        self.of_board(local_moment())
    }

    fn paused_until(&self) -> Moment {
        let now = self.table.now();
        let of_member = now.member.map_or(0, |member| member.paused_until);
        self.of_machine(now.board.paused_until).max(of_member)
    }

    fn pause(&self, Pause { until, is_of_day }: &Pause) -> Result<bool, StoreError> {
        let (is_new, of_board) = (*until > self.paused_until(), self.of_board(*until));
        self.table.change(|workers| {
            match &mut workers.member {
                Some(member) if *is_of_day => member.paused_until = member.paused_until.max(*until),
                _ => pause(&mut workers.board, of_board),
            }
            if is_new {
                workers.waits_for_next_day = *is_of_day;
            }
        })?;
        if !is_of_day {
            // By length: the clocks differ. Where the board is away, others meet the limit themselves.
            let length = Duration::from_millis(until.saturating_sub(local_moment()));
            let _ = self.ask(|board| board.pause(length));
        }
        Ok(is_new)
    }

    /// What is seen here says when it is worth asking.
    fn can_claim(&self, held: &[Claim]) -> bool {
        let now = self.table.now();
        let is_soon = self.since().claimed.is_some_and(|at| at.elapsed() < CLAIM_INTERVAL);
        let is_answered = self.trouble().is_none() || self.is_to_be_tried();
        let gives_items = {
            let known = self.known();
            !known.is_draining && known.ended.is_none()
        };
        is_answered
            && gives_items
            && !is_soon
            && (self.lost_claim(&now, held).is_some() || outlook(&now.board, self.moment()) == Outlook::Free)
    }

    fn claim(
        &self,
        worker: usize,
        held: &[Claim],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError> {
        let now = self.table.now();
        let lost = self.lost_claim(&now, held);
        self.since().claimed = Some(Instant::now());
        let name = format!("{}/{worker}", now.member.unwrap_or_default().name);
        let taken = self.ask(|board| {
            // A machine that slept may find its own leases free: they are its own first.
            for held in held {
                let _ = board.renew(*held);
            }
            match lost {
                Some(lost) => {
                    board.renew(lost)?;
                    Ok(Some((lost, None)))
                }
                None => Ok(board.claim(&name)?.map(|(claim, item)| (claim, Some(item)))),
            }
        });
        // What went wrong is noted, and looked at in each round.
        let Ok(Some((claim, item))) = taken else { return Ok(None) };
        self.since().claimed = None;
        let goes_on = goes_on(claim.item);
        self.table.change(|workers| {
            if let Some(item) = item {
                let text = std::mem::take(&mut workers.board.items[claim.item].text);
                workers.board.items[claim.item] = BoardItem { text, ..item.row };
                let work = &mut workers.works[claim.item];
                (work.start, work.beyond, work.answered) = (item.start, item.beyond, item.answered);
            }
            workers.count_before(claim.item, goes_on);
            let work = &mut workers.works[claim.item];
            (work.worker, work.epoch, work.pid) = (worker, claim.epoch, None);
        })?;
        Ok(Some(claim))
    }

    fn is_held(&self, claim: Claim) -> bool {
        let is_ours = is_leased_by(&self.table.now(), claim.item) == Some(claim.epoch);
        is_ours && !self.known().fenced.contains(&(claim.item, claim.epoch))
    }

    fn claims_to_recover(&self) -> Vec<Claim> {
        let now = self.table.now();
        let left = |item: usize| match is_leased_by(&now, item) {
            Some(epoch) => Some(Claim { item, epoch }),
            // What is somebody else's by now was ours with an earlier epoch: what is still at work here is ended.
            None => now.works[item].pid.is_some().then(|| Claim { item, epoch: now.works[item].epoch }),
        };
        (0..now.board.items.len()).filter_map(left).collect()
    }

    fn keep_leases(&self, held: Vec<Claim>, is_merging: bool, news: &dyn Fn() -> Vec<WorkerNews>) {
        let news = news();
        let mut known = self.known();
        (known.held, known.news) = (held, news);
        if !is_merging {
            known.merger = None;
        }
    }

    /// With what all machines together may use.
    fn reserve(&self, worker: usize, item: usize, found: Means) -> Means {
        let Means::Enough { cost_usd, tokens, sessions } = found else { return found };
        let now = self.table.now();
        let used = now.works[item].now;
        let news = WorkerNews {
            worker,
            item: Some(item),
            cost_usd: now.cost_of_worker(worker),
            ..WorkerNews::default()
        };
        let sessions = sessions.min(SESSIONS + used.sessions);
        match self.set_money_aside(&news, used.sessions) {
            Ok(Reserved::Share { usd, sessions: more }) => Means::Enough {
                cost_usd: usd.map(|share| used.cost_usd + share).into_iter().chain(cost_usd).reduce(f64::min),
                tokens,
                sessions: more.map_or(sessions, |more| sessions.min(used.sessions.saturating_add(more))),
            },
            Ok(Reserved::Nothing(used_up)) => {
                let (status, reason) = describe_used_up(used_up);
                Means::None(status, reason)
            }
            Ok(Reserved::Later) | Err(_) => Means::Later,
        }
    }

    fn offer(&self, claim: Claim, commit: &str) -> Result<(), StoreError> {
        self.record_result(claim, Some(commit.to_owned()), ItemOutcome::Offered, |workers| {
            // Fenced: it has landed meanwhile.
            let _ = offer(&mut workers.board, claim, commit);
        })
    }

    fn fail(&self, claim: Claim, reason: &str, end: Option<String>) -> Result<bool, StoreError> {
        self.record_result(claim, end, ItemOutcome::Failed(reason.to_owned()), |workers| {
            let _ = fail(&mut workers.board, claim, reason);
            matches!(workers.board.items[claim.item].stage, Stage::Aside { .. })
        })
    }

    /// Another machine may go on with it.
    fn park(&self, claim: Claim, question: &str, work: &dyn UnfinishedWork) -> Result<(), StoreError> {
        let done = work.commit_all().or_else(|| work.head()).unwrap_or_default();
        let told = plimsoll_secrets::without(question);
        self.record_result(claim, Some(done), ItemOutcome::Asked(told), |workers| {
            let _ = set_aside(&mut workers.board, claim, Aside::Question(question.to_owned()));
        })
    }

    /// It goes back, and the next one begins at what was done.
    fn release(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError> {
        self.record_result(claim, work.commit_all(), ItemOutcome::GivenBack, |workers| {
            let _ = give_back(&mut workers.board, claim);
        })
    }

    fn keep_branch(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError> {
        self.record_result(claim, work.commit_all(), ItemOutcome::Kept, |_| ())
    }

    /// They are given to the fleet.
    fn take_answers(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn orders(&self, closing: Option<&Closing>) -> Orders {
        let trouble = self.trouble();
        let words = self.waiting_words(trouble.as_ref());
        let (ended, used_up) = {
            let known = self.known();
            (known.ended, known.used_up)
        };
        if ended == Some(Ended::Stopped) {
            let stopped = Closing::Stop(Status::Cancelled, "the fleet was stopped".to_owned());
            return Orders { words, closing: Some(stopped) };
        }
        // Nothing is told about work that is over: only being stopped comes before what closes it anyway.
        let waited = match trouble {
            Some(Trouble::Fault(why)) => Some(Closing::Pause(PauseKind::Fault, why)),
            Some(Trouble::Away(long, why)) if long >= self.patience => {
                Some(Closing::Pause(PauseKind::Fault, format!("waited for {} s: {why}", long.as_secs())))
            }
            Some(Trouble::Away(..)) | None => None,
        };
        // No claim would say so: the board gives none any more.
        let used_up = || {
            let (status, reason) = describe_used_up(used_up?);
            Some(Closing::Stop(status, reason))
        };
        let closing = if closing.is_some() { None } else { waited.or_else(used_up) };
        Orders { words, closing }
    }

    fn has_undelivered_results(&self, interrupt: Option<Interrupt>, is_closing: bool) -> bool {
        // Whoever wants it to end now, as a system that shuts down does, waits this long for what others could go on with.
        let is_late = interrupt >= Some(Interrupt::Twice)
            && self.since().hurried.get_or_insert_with(Instant::now).elapsed() >= FAREWELL;
        // Before anything ends it, what is away is waited for, as long as the patience lasts.
        let may_be_heard = match self.trouble() {
            None => true,
            Some(Trouble::Away(..)) => !is_closing,
            Some(Trouble::Fault(_)) => false,
        };
        self.has_results() && may_be_heard && !is_late && interrupt < Some(Interrupt::Again)
    }

    fn closing_when_drained(&self) -> Option<Closing> {
        let board = self.table.now().board;
        let is_done = outlook(&board, self.moment()) == Outlook::Done;
        if !self.known().is_draining || is_done {
            return None;
        }
        let merged = board.items.iter().filter(|row| row.stage == Stage::Merged).count();
        let words = format!("the fleet drains: {merged} of {} merged", counted(board.items.len(), "item"));
        Some(Closing::Stop(Status::Completed, words))
    }

    fn leave(&self, plan_files: &[RepoPath], give_up: &dyn Fn() -> bool) {
        if outlook(&self.table.now().board, self.moment()) == Outlook::Done {
            // Nobody else may be there to say it.
            let _ = retry(FAREWELL, give_up, BoardError::is_away, || self.ask(|board| board.end()));
            self.target.sweep(plan_files, give_up);
        }
        let now = self.table.now();
        let is_merger = now.member.is_some_and(|member| member.name == now.board.merger.holder);
        if is_merger && now.board.merger.holds(self.moment()) {
            let merger = now.board.merger_epoch;
            let _ = self.ask(|board| board.step_down(merger));
        }
    }

    /// Others may work on the item that something waits for, so nothing waits.
    fn items_to_merge(&self, _: bool) -> Vec<usize> {
        offered(&self.table.now().board)
    }

    /// Another machine may be at it; and what is away is asked again after a moment.
    fn try_begin_merging(&self) -> bool {
        let is_soon = self.since().merged.is_some_and(|at| at.elapsed() < MERGE_INTERVAL);
        let is_away = self.trouble().is_some() && !self.is_to_be_tried();
        if self.is_merger_elsewhere() || is_soon || is_away {
            return false;
        }
        self.since().merged = Some(Instant::now());
        true
    }

    /// Once this machine closes, another that merges goes on alone. The other may be closing, too, and have seen nothing of the
    /// last offer: then this machine becomes the merger in a moment.
    fn waits_for_merging(&self, is_closing: bool) -> bool {
        let is_left_to_others = is_closing
            && self.is_merger_elsewhere()
            && self.since().left_merging.get_or_insert_with(Instant::now).elapsed() >= MERGER_FAREWELL;
        self.trouble().is_none() && !is_left_to_others
    }

    fn become_merger(&self, give_up: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError> {
        let name = self.table.now().member.unwrap_or_default().name;
        let taken = self.ask_again(give_up, |board| board.become_merger(&name))?;
        self.known().merger = taken;
        if taken.is_some() {
            // What others have offered since.
            self.look()?;
        }
        Ok(taken)
    }

    fn settle(
        &self,
        is_in_target: &dyn Fn(&str) -> bool,
        landed: &[(usize, CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        for (item, commit) in landed {
            self.ask_again(give_up, |board| board.found(*item, commit.as_str()))?;
        }
        let merged = self.ask_again(give_up, |board| board.settle(is_in_target))?;
        self.table.change(|workers| {
            merged.iter().for_each(|item| workers.board.items[*item].stage = Stage::Merged);
        })?;
        Ok(())
    }

    fn note_passed(&self, commands: &[String], give_up: &dyn Fn() -> bool) -> Result<(), MergeError> {
        self.ask_again(give_up, |board| board.note_passed(commands))?;
        Ok(self.table.change(|workers| workers.note_passed(commands))?)
    }

    /// Whoever is not the merger any more, or has an item that somebody landed, moves nothing.
    fn land(
        &self,
        merger: u64,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        for (item, commit) in landing {
            self.ask_again(give_up, |board| board.land(merger, *item, commit.as_str()))?;
        }
        Ok(record_landing(&self.table, merger, landing)?)
    }

    /// The rows of a fleet do not keep the files, so nothing but the tries bounds its conflicts.
    fn refuse(
        &self,
        refused: &Refused,
        _: &[String],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        self.ask_again(give_up, |board| board.refuse(refused))?;
        let Refused { merger, item, note, .. } = refused;
        Ok(self.table.change(|workers| {
            // One that was fenced is somebody else's by now.
            let _ = refuse(&mut workers.board, *merger, *item, note);
            record_next_start(workers, refused)
        })?)
    }
}

/// With which epoch this machine holds an item, if it does.
fn is_leased_by(workers: &Workers, item: usize) -> Option<u64> {
    workers.member.as_ref()?;
    let row = workers.board.items.get(item)?;
    workers.is_held_here(item).then_some(row.epoch)
}

/// Why a machine leaves a fleet that may begin nothing more.
fn describe_used_up(used_up: UsedUp) -> (Status, String) {
    match used_up {
        UsedUp::Money(spent, most) => {
            (Status::Budget, format!("${spent:.2} of ${most:.2} spent by the whole fleet"))
        }
        UsedUp::Sessions(used) => {
            let sessions = counted(used as usize, "session");
            (Status::MaxIterations, format!("{sessions} used by the whole fleet"))
        }
    }
}
