//! What a fleet's board does over its two connections.

use super::*;
use crate::workers::connection::{Look, SharedItem};
use plimsoll_domain::git_names::BranchName;
use plimsoll_domain::workers::ItemResult;
use plimsoll_launcher::remote_repository::Remote;
use std::path::Path;
use std::sync::{Arc, mpsc};

#[expect(clippy::disallowed_types, reason = "a test may start git")]
fn git(folder: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git").current_dir(folder).args(arguments).status();
    assert!(status.expect("git").success(), "{arguments:?}");
}

/// A repository whose one commit a branch of this name has; returns the commit.
pub(in super::super) fn repository_with_branch(folder: &Path, branch: &str) -> String {
    git(folder, &["init", "-q", "-b", branch]);
    git(
        folder,
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
    );
    plimsoll_launcher::git::head(folder).expect("a commit").into()
}

/// A target on a remote that nobody reaches.
pub(in super::super) fn remote_of(folder: &Path) -> RemoteTarget {
    git(folder, &["init", "-q"]);
    git(folder, &["remote", "add", "origin", "nowhere"]);
    let remote = Remote::open(folder, "origin", &folder.join("own")).unwrap();
    RemoteTarget::new(remote, "night", "1", &BranchName::parse("main").unwrap())
}

/// Tells the board what has become of items, as if every branch were on the remote; what it does not hear is kept.
pub(in super::super) fn tell_results(board: &FleetBoard) {
    let results = board.table.now().member.map(|member| member.outbox).unwrap_or_default();
    for result in results {
        delivery::tell(board, &result, &result).unwrap();
    }
}

/// Renews what the board keeps leases for.
pub(in super::super) fn renew_leases(board: &FleetBoard) {
    heartbeat::renew(board);
}

/// What was told about workers, and the item in it.
type Told = Arc<Mutex<Vec<(&'static str, Option<usize>)>>>;

/// Writes down what it is told about workers.
struct WrittenBoard {
    told: Told,
    /// Of the first report, once it is on its way: it arrives when an answer comes.
    first: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

impl BoardConnection for WrittenBoard {
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
    let told = Told::default();
    let (on_its_way, began) = mpsc::channel();
    let (answer, arrives) = mpsc::channel();
    let board = |first| Box::new(WrittenBoard { told: Arc::clone(&told), first });
    let table = Table::at(folder.path().join("workers.json"), Workers::default());
    let (first, heartbeat) = (board(None), board(Some((on_its_way, arrives))));
    let target = remote_of(folder.path());
    let board = FleetBoard::new(table, first, heartbeat, target, Duration::from_secs(1));
    let idle = WorkerNews { worker: 1, ..WorkerNews::default() };
    board.known().news = vec![idle];
    let at_work = WorkerNews { worker: 1, item: Some(4), ..WorkerNews::default() };
    std::thread::scope(|scope| {
        let report = scope.spawn(|| heartbeat::report(&board, &mut Vec::new(), true));
        began.recv().expect("the report is on its way");
        let reserve = scope.spawn(|| board.set_money_aside(&at_work, 0));
        // Without order, it would be written first.
        std::thread::sleep(Duration::from_millis(50));
        let _ = answer.send(());
        assert!(report.join().expect("no panic"));
        assert_eq!(reserve.join().expect("no panic"), Ok(Reserved::Later));
    });
    assert!(heartbeat::report(&board, &mut Vec::new(), true));
    let expected = [("report", None), ("reserve", Some(4)), ("report", Some(4))];
    assert_eq!(*told.lock().expect("no panic"), expected);
    let _reserving = board.reporting.lock().expect("no panic");
    assert!(!heartbeat::report(&board, &mut Vec::new(), true), "it is done again");
}
