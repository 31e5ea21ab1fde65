//! A board that several machines share: what is asked of it, and what this machine knows of it meanwhile.
//!
//! The record of this machine ([`super::table`]) mirrors it, so that everything that looks at a parallel run finds what it knows.
//! What becomes of an item here is written into the record first, as a result ([`plimsoll_domain::workers::ItemResult`]), and told once
//! its branch is on the remote ([`delivery`]): the board may be away, and this process may be killed. Repeated, a result is
//! fenced. Claims and all that a merger does are said at once, or not done.

mod delivery;
mod heartbeat;
mod target;

pub(super) use delivery::deliver_outbox;
pub(super) use heartbeat::{beat, look};
pub use target::RemoteTarget;

use plimsoll_domain::board::{BoardItem, BoardState, Moment};
use plimsoll_domain::workers::{ItemResult, Workers};
use plimsoll_policy::workers::Claim;
use plimsoll_store::clock;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why the shared board did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// Somebody else has it.
    #[error("somebody else has taken it over meanwhile")]
    Fenced,
    /// It cannot be reached; waiting may help.
    #[error("{0}")]
    Away(String),
    /// It will not, however often it is asked.
    #[error("{0}")]
    Refused(String),
}

impl BoardError {
    /// True for what waiting may end.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, BoardError::Away(_))
    }
}

/// An item as the shared board has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedItem {
    /// Its row.
    pub row: BoardItem,
    /// Where the next attempt begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
    /// Its last question and the user's answer.
    pub answered: Option<(String, String)>,
}

/// The shared board at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// By the board's clock.
    pub now: Moment,
    /// What holds for all; without items.
    pub whole: BoardState,
    /// The items that are not merged, by their places.
    pub items: Vec<(usize, SharedItem)>,
    /// Verify commands that have passed on the target.
    pub passed: Vec<String>,
    /// Nothing new is begun.
    pub is_draining: bool,
    /// Why nothing may be begun any more.
    pub used_up: Option<UsedUp>,
    /// Why it is over.
    pub ended: Option<Ended>,
}

/// Why a fleet is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything is merged.
    Done,
    /// Somebody stopped it.
    Stopped,
}

/// What a worker may still use of what the plan may.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reserved {
    /// So many dollars and sessions more; none where the plan has no limit.
    Share {
        /// US dollars.
        usd: Option<f64>,
        /// Sessions of its present item.
        sessions: Option<u32>,
    },
    /// The rest is others' until they end.
    Later,
    /// Nothing is left.
    Nothing(UsedUp),
}

/// What a fleet has used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsedUp {
    /// So many dollars are spent of so many.
    Money(f64, f64),
    /// So many sessions have begun.
    Sessions(u64),
}

/// Why an offered item goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The merger's epoch.
    pub merger: u64,
    /// The item.
    pub item: usize,
    /// What its next session is told.
    pub note: String,
    /// Where its next attempt begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
}

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerNews {
    /// From 1, on this machine.
    pub worker: usize,
    /// At work on this item.
    pub item: Option<usize>,
    /// The session.
    pub session: String,
    /// How full it is.
    pub percent: Option<u64>,
    /// What it has cost from its beginning on.
    pub cost_usd: f64,
}

/// What is asked of a shared board. Its moments are by its own clock.
pub trait SharedBoard: Send {
    /// How it is now.
    fn look(&mut self) -> Result<Look, BoardError>;
    /// The first item that this worker can begin, with how it is.
    fn claim(&mut self, worker: &str) -> Result<Option<(Claim, SharedItem)>, BoardError>;
    /// Keeps an item for its worker.
    fn renew(&mut self, claim: Claim) -> Result<(), BoardError>;
    /// Takes what has become of an item.
    fn tell(&mut self, result: &ItemResult) -> Result<(), BoardError>;
    /// Holds everything for so long.
    fn pause(&mut self, length: Duration) -> Result<(), BoardError>;
    /// Makes one merger of several.
    fn become_merger(&mut self, name: &str) -> Result<Option<u64>, BoardError>;
    /// Keeps the merger's lease.
    fn renew_merger(&mut self, merger: u64) -> Result<(), BoardError>;
    /// Lets another be the merger.
    fn step_down(&mut self, merger: u64) -> Result<(), BoardError>;
    /// Writes down the commit by which an item is about to land.
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), BoardError>;
    /// Writes down a commit by which an item has landed, where that was lost: the board is a backup's.
    fn found(&mut self, item: usize, commit: &str) -> Result<(), BoardError>;
    /// Gives an offered item back.
    fn refuse(&mut self, refused: &Refused) -> Result<(), BoardError>;
    /// Counts as merged what is in the target.
    fn settle(&mut self, is_in_target: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError>;
    /// Keeps which verify commands have passed on the target.
    fn note_passed(&mut self, commands: &[String]) -> Result<(), BoardError>;
    /// Keeps what a worker says of itself, and sets aside what it may use next, of what is left for all. Its item has taken so many
    /// sessions that were not told yet.
    fn reserve(&mut self, news: &WorkerNews, sessions: u32, least_usd: f64) -> Result<Reserved, BoardError>;
    /// Keeps what a worker says of itself.
    fn report(&mut self, news: &WorkerNews) -> Result<(), BoardError>;
    /// Says that everything is merged.
    fn end(&mut self) -> Result<(), BoardError>;
}

/// The shared board of a parallel run.
pub(super) struct Shared {
    board: Mutex<Box<dyn SharedBoard>>,
    /// A second way to it: what keeps leases waits for nothing else.
    heartbeat: Mutex<Box<dyn SharedBoard>>,
    pub(super) target: RemoteTarget,
    /// How long this machine waits for a board or a remote that is away.
    pub(super) patience: Duration,
    known: Mutex<Known>,
    woken: Condvar,
    /// Held while news of workers are on their way, by either way: the news of an idle worker, taken before its item began and
    /// written after money was set aside for it, would free that money again.
    reporting: Mutex<()>,
}

/// What this machine knows beside its record.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The board's clock before this machine's, in milliseconds.
    ahead: i64,
    /// True once it has been looked at.
    pub(super) is_draining: bool,
    pub(super) used_up: Option<UsedUp>,
    pub(super) ended: Option<Ended>,
    /// One more with each change from here: a look that began before it is out of date.
    changes: u64,
    /// Claims that are no longer ours.
    fenced: BTreeSet<(usize, u64)>,
    /// What leases are kept for.
    pub(super) held: Vec<Claim>,
    pub(super) merger: Option<u64>,
    pub(super) news: Vec<WorkerNews>,
    /// Since when it has been away, by the first way and by the second: what only looks may be answered where nothing can be written.
    board_away: Option<(Instant, String)>,
    heartbeat_away: Option<(Instant, String)>,
    remote_away: Option<(Instant, String)>,
    /// What no waiting helps against.
    fault: Option<String>,
}

/// How long nothing could be told, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It may pass.
    Away(Duration, String),
    /// It will not.
    Fault(String),
}

impl Shared {
    pub(super) fn new(
        board: Box<dyn SharedBoard>,
        heartbeat: Box<dyn SharedBoard>,
        target: RemoteTarget,
        patience: Duration,
    ) -> Shared {
        Shared {
            board: Mutex::new(board),
            heartbeat: Mutex::new(heartbeat),
            target,
            patience,
            known: Mutex::default(),
            woken: Condvar::new(),
            reporting: Mutex::default(),
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the board, and notes whether it answers.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&mut dyn SharedBoard) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = question(board.as_mut());
        drop(board);
        self.heard(&answer, |known| &mut known.board_away);
        answer
    }

    /// The same, again and again while it is away: everything may be asked twice.
    pub(super) fn ask_again<T>(
        &self,
        limit: Duration,
        give_up: &dyn Fn() -> bool,
        mut question: impl FnMut(&mut dyn SharedBoard) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        insist(limit, give_up, BoardError::is_away, || self.ask(&mut question))
    }

    /// The same as `ask`, by the second way.
    fn ask_beside<T>(
        &self,
        question: impl FnOnce(&mut dyn SharedBoard) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut board = self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = question(board.as_mut());
        drop(board);
        self.heard(&answer, |known| &mut known.heartbeat_away);
        answer
    }

    /// Sets aside what a worker may use for its item, and replaces the news of it that are still to be reported.
    pub(super) fn reserve(
        &self,
        news: &WorkerNews,
        sessions: u32,
        least_usd: f64,
    ) -> Result<Reserved, BoardError> {
        let _reporting = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        for known in self.known().news.iter_mut().filter(|known| known.worker == news.worker) {
            known.clone_from(news);
        }
        self.ask(|board| board.reserve(news, sessions, least_usd))
    }

    fn heard<T>(
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

    /// Notes whether the remote answers.
    pub(super) fn heard_of_remote(&self, why: Option<String>) {
        let mut known = self.known();
        let since = known.remote_away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        known.remote_away = why.map(|why| (since, why));
    }

    /// True while the remote does not answer: nobody else asks whether it is back.
    fn is_remote_away(&self) -> bool {
        self.known().remote_away.is_some()
    }

    /// What keeps this machine from telling and claiming.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let known = self.known();
        let fault = known.fault.clone().map(Trouble::Fault);
        let away = [&known.board_away, &known.heartbeat_away, &known.remote_away].into_iter().flatten();
        let longest = away.max_by_key(|(since, _)| since.elapsed());
        fault.or_else(|| longest.map(|(since, why)| Trouble::Away(since.elapsed(), why.clone())))
    }

    /// True where only a question of the scheduler's or the merger's can show that all is well again: everything else answers, and
    /// nothing waits to be told.
    pub(super) fn is_to_be_tried(&self, workers: &Workers) -> bool {
        let known = self.known();
        let answers = known.heartbeat_away.is_none() && known.remote_away.is_none() && known.fault.is_none();
        answers && workers.member.as_ref().is_none_or(|member| member.outbox.is_empty())
    }

    /// Now, by the board's clock.
    pub(super) fn moment(&self) -> Moment {
        self.of_board(local_moment())
    }

    /// A moment of this machine by the board's clock.
    pub(super) fn of_board(&self, moment: Moment) -> Moment {
        moment.saturating_add_signed(self.known().ahead)
    }

    /// A moment of the board by this machine's clock.
    pub(super) fn of_machine(&self, moment: Moment) -> Moment {
        moment.saturating_add_signed(self.known().ahead.saturating_neg())
    }

    /// True while an item is this machine's.
    pub(super) fn is_held(&self, workers: &Workers, claim: Claim) -> bool {
        !self.known().fenced.contains(&(claim.item, claim.epoch))
            && is_leased_by(workers, claim.item) == Some(claim.epoch)
    }

    /// Something was changed from here, and there may be something to tell.
    pub(super) fn wake(&self) {
        self.known().changes += 1;
        self.woken.notify_all();
    }

    /// Waits so long, or until something was changed from here.
    fn doze(&self, most: Duration) {
        let known = self.known();
        let before = known.changes;
        let _ = self.woken.wait_timeout_while(known, most, |known| known.changes == before);
    }
}

/// Asks again what may pass, for so long, or until nobody waits for it any more.
pub(super) fn insist<T, E>(
    limit: Duration,
    give_up: &dyn Fn() -> bool,
    may_pass: impl Fn(&E) -> bool,
    mut ask: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        match ask() {
            Err(error) if may_pass(&error) && begun.elapsed() < limit && !give_up() => {
                std::thread::sleep(ASKED_EVERY);
            }
            answer => return answer,
        }
    }
}

/// How long what is away is waited for before anything has begun: whoever joins with a wrong address should know it soon.
pub(super) const BEGINNING: Duration = Duration::from_secs(20);
/// How often what may pass is asked for again.
const ASKED_EVERY: Duration = Duration::from_millis(500);

/// With which epoch this machine holds an item, if it does.
pub(super) fn is_leased_by(workers: &Workers, item: usize) -> Option<u64> {
    workers.member.as_ref()?;
    let row = workers.board.items.get(item)?;
    workers.is_held_here(item).then_some(row.epoch)
}

/// Now, by this machine's clock.
pub(super) fn local_moment() -> Moment {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::git_names::BranchName;
    use plimsoll_launcher::remote_repository::Remote;
    use std::sync::{Arc, mpsc};

    #[expect(clippy::disallowed_types, reason = "a test may start git")]
    fn git(folder: &std::path::Path, arguments: &[&str]) {
        let status = std::process::Command::new("git").current_dir(folder).args(arguments).status();
        assert!(status.expect("git").success(), "{arguments:?}");
    }

    /// What was told about workers, and the item in it.
    type Told = Arc<Mutex<Vec<(&'static str, Option<usize>)>>>;

    /// Writes down what it is told about workers.
    struct WrittenBoard {
        told: Told,
        /// Of the first report, once it is on its way: it arrives when an answer comes.
        first: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
    }

    impl SharedBoard for WrittenBoard {
        fn report(&mut self, news: &WorkerNews) -> Result<(), BoardError> {
            if let Some((on_its_way, arrives)) = self.first.take() {
                on_its_way.send(()).expect("the test waits for it");
                let _ = arrives.recv_timeout(Duration::from_millis(500));
            }
            self.told.lock().expect("no panic").push(("report", news.item));
            Ok(())
        }

        fn reserve(&mut self, news: &WorkerNews, _: u32, _: f64) -> Result<Reserved, BoardError> {
            self.told.lock().expect("no panic").push(("reserve", news.item));
            Ok(Reserved::Later)
        }

        fn look(&mut self) -> Result<Look, BoardError> {
            unreachable!()
        }
        fn claim(&mut self, _: &str) -> Result<Option<(Claim, SharedItem)>, BoardError> {
            unreachable!()
        }
        fn renew(&mut self, _: Claim) -> Result<(), BoardError> {
            unreachable!()
        }
        fn tell(&mut self, _: &ItemResult) -> Result<(), BoardError> {
            unreachable!()
        }
        fn pause(&mut self, _: Duration) -> Result<(), BoardError> {
            unreachable!()
        }
        fn become_merger(&mut self, _: &str) -> Result<Option<u64>, BoardError> {
            unreachable!()
        }
        fn renew_merger(&mut self, _: u64) -> Result<(), BoardError> {
            unreachable!()
        }
        fn step_down(&mut self, _: u64) -> Result<(), BoardError> {
            unreachable!()
        }
        fn land(&mut self, _: u64, _: usize, _: &str) -> Result<(), BoardError> {
            unreachable!()
        }
        fn found(&mut self, _: usize, _: &str) -> Result<(), BoardError> {
            unreachable!()
        }
        fn refuse(&mut self, _: &Refused) -> Result<(), BoardError> {
            unreachable!()
        }
        fn settle(&mut self, _: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError> {
            unreachable!()
        }
        fn note_passed(&mut self, _: &[String]) -> Result<(), BoardError> {
            unreachable!()
        }
        fn end(&mut self) -> Result<(), BoardError> {
            unreachable!()
        }
    }

    #[test]
    fn no_earlier_report_comes_after_money_was_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q"]);
        git(folder.path(), &["remote", "add", "origin", "nowhere"]);
        let remote = Remote::open(folder.path(), "origin", &folder.path().join("own")).unwrap();
        let branch = BranchName::parse("main").unwrap();
        let target = RemoteTarget::new(remote, "night", "1", &branch);
        let told = Told::default();
        let (on_its_way, began) = mpsc::channel();
        let (answer, arrives) = mpsc::channel();
        let board = |first| Box::new(WrittenBoard { told: Arc::clone(&told), first });
        let shared =
            Shared::new(board(None), board(Some((on_its_way, arrives))), target, Duration::from_secs(1));
        let idle = WorkerNews { worker: 1, ..WorkerNews::default() };
        shared.known().news = vec![idle];
        let at_work = WorkerNews { worker: 1, item: Some(4), ..WorkerNews::default() };
        std::thread::scope(|scope| {
            let report = scope.spawn(|| heartbeat::report(&shared, &mut Vec::new(), true));
            began.recv().expect("the report is on its way");
            let reserve = scope.spawn(|| shared.reserve(&at_work, 0, 0.01));
            // Without order, it would be written first.
            std::thread::sleep(Duration::from_millis(50));
            let _ = answer.send(());
            assert!(report.join().expect("no panic"));
            assert_eq!(reserve.join().expect("no panic"), Ok(Reserved::Later));
        });
        assert!(heartbeat::report(&shared, &mut Vec::new(), true));
        let expected = [("report", None), ("reserve", Some(4)), ("report", Some(4))];
        assert_eq!(*told.lock().expect("no panic"), expected);
        let _reserving = shared.reporting.lock().expect("no panic");
        assert!(!heartbeat::report(&shared, &mut Vec::new(), true), "it is done again");
    }
}
