//! Tests what a fleet's board does over its two connections.

use super::*;
use crate::workers::connection::{BoardSnapshot, SharedItem};
use plimsoll_domain::git_names::BranchName;
use plimsoll_domain::workers::ItemResult;
use plimsoll_launcher::remote_repository::Remote;
use std::path::Path;
use std::sync::{Arc, mpsc};

#[expect(clippy::disallowed_types, reason = "a test may start git")]
pub(in super::super) fn git(folder: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git").current_dir(folder).args(arguments).status();
    assert!(status.expect("git").success(), "{arguments:?}");
}

/// Creates a repository with one commit on a branch of this name. Returns the commit.
pub(in super::super) fn repository_with_branch(folder: &Path, branch: &str) -> String {
    git(folder, &["init", "-q", "-b", branch]);
    git(
        folder,
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
    );
    plimsoll_launcher::git::head_commit(folder).expect("a commit").into()
}

/// Returns a target on a remote that cannot be reached.
pub(in super::super) fn unreachable_remote_target(folder: &Path) -> RemoteTarget {
    git(folder, &["init", "-q"]);
    git(folder, &["remote", "add", "origin", "nowhere"]);
    let remote = Remote::open(folder, "origin", &folder.join("own")).unwrap();
    RemoteTarget::new(remote, "night", "1", &BranchName::parse("main").unwrap())
}

/// Reports the queued results to the board, as if every branch were on the remote. Results that cannot be
/// reported stay queued.
pub(in super::super) fn report_queued_results(board: &FleetBoard) {
    let queued_results =
        board.workers_file.workers_state().fleet_member.map(|member| member.outbox).unwrap_or_default();
    for result in queued_results {
        delivery::report_result_and_return_if_dequeued(board, &result, &result).unwrap();
    }
}

/// Checks the items that the board lists as merged against these commits of a target without a repository.
pub(in super::super) fn check_merged_items_against(board: &FleetBoard, target_commits: &[String]) {
    let items = board.lock_cached_state().merge_checks.items_not_confirmed();
    let items_and_commits =
        board.call_board(|connection| connection.read_merge_commits_of_merged_items(&items)).unwrap();
    let is_missing = |(_, commits): &&(usize, Vec<String>)| {
        !commits.is_empty() && !commits.iter().any(|commit| target_commits.contains(commit))
    };
    let missing_items = items_and_commits.iter().filter(is_missing).map(|(item, _)| *item).collect();
    board.record_merge_check_results(&items, &missing_items);
}

/// Renews the leases of the board's claims.
pub(in super::super) fn renew_leases(board: &FleetBoard) {
    heartbeat::renew_leases_and_mark_lost_claims(board);
}

/// The recorded calls about workers, each with its item.
type RecordedCalls = Arc<Mutex<Vec<(&'static str, Option<usize>)>>>;

/// A connection that records the calls about workers.
struct RecordingConnection {
    recorded_calls: RecordedCalls,
    /// Channels for the first report: it sends a signal when it begins, and ends when a signal arrives.
    first_report_channel: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

impl BoardConnection for RecordingConnection {
    fn report_worker(&mut self, worker_report: &LocalWorkerReport) -> Result<(), BoardError> {
        if let Some((sent_signal, release_signal)) = self.first_report_channel.take() {
            sent_signal.send(()).expect("the test waits for it");
            let _ = release_signal.recv_timeout(Duration::from_millis(500));
        }
        self.recorded_calls.lock().expect("no panic").push(("report", worker_report.item));
        Ok(())
    }

    fn record_report_and_reserve_budget(
        &mut self,
        worker_report: &LocalWorkerReport,
        _: u32,
        _: f64,
    ) -> Result<Reservation, BoardError> {
        self.recorded_calls.lock().expect("no panic").push(("reserve", worker_report.item));
        Ok(Reservation::WaitForOthers)
    }

    fn read_board(&mut self) -> Result<BoardSnapshot, BoardError> {
        unreachable!()
    }
    fn claim_item(&mut self, _: usize, _: &[usize]) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        unreachable!()
    }
    fn renew_claim(&mut self, _: Claim) -> Result<(), BoardError> {
        unreachable!()
    }
    fn report_item_result(&mut self, _: &ItemResult) -> Result<(), BoardError> {
        unreachable!()
    }
    fn pause_all_workers(&mut self, _: Duration) -> Result<(), BoardError> {
        unreachable!()
    }
    fn read_merge_commits_of_merged_items(
        &mut self,
        _: &[usize],
    ) -> Result<Vec<(usize, Vec<String>)>, BoardError> {
        unreachable!()
    }
    fn report_unconfirmed_merge(&mut self, _: usize) -> Result<(), BoardError> {
        unreachable!()
    }
    fn acquire_or_renew_merger_lease(&mut self) -> Result<Option<u64>, BoardError> {
        unreachable!()
    }
    fn renew_merger_lease(&mut self, _: u64) -> Result<(), BoardError> {
        unreachable!()
    }
    fn release_merger_lease(&mut self, _: u64) -> Result<(), BoardError> {
        unreachable!()
    }
    fn record_merge_candidate_commit(&mut self, _: u64, _: usize, _: &str) -> Result<(), BoardError> {
        unreachable!()
    }
    fn restore_merge_candidate_commit(&mut self, _: usize, _: &str) -> Result<(), BoardError> {
        unreachable!()
    }
    fn reject_item(&mut self, _: &RejectedItem) -> Result<(), BoardError> {
        unreachable!()
    }
    fn mark_items_in_target_as_merged(
        &mut self,
        _: &dyn Fn(usize, &str) -> bool,
    ) -> Result<Vec<usize>, BoardError> {
        unreachable!()
    }
    fn record_passed_commands(&mut self, _: &[String]) -> Result<(), BoardError> {
        unreachable!()
    }
    fn end_fleet_if_all_merged(&mut self) -> Result<(), BoardError> {
        unreachable!()
    }
}

#[test]
fn an_earlier_report_is_not_written_after_a_reservation() {
    let folder = tempfile::tempdir().unwrap();
    let recorded_calls = RecordedCalls::default();
    let (sent_signal, report_began) = mpsc::channel();
    let (release, release_signal) = mpsc::channel();
    let new_connection = |first_report_channel| {
        Box::new(RecordingConnection { recorded_calls: Arc::clone(&recorded_calls), first_report_channel })
    };
    let workers_file = WorkersFile::with_state(folder.path().join("workers.json"), WorkersState::default());
    let (connection, heartbeat) = (new_connection(None), new_connection(Some((sent_signal, release_signal))));
    let target = unreachable_remote_target(folder.path());
    let board = FleetBoard::new(workers_file, connection, heartbeat, target, Duration::from_secs(1));
    let idle_report = LocalWorkerReport { worker_number: 1, ..LocalWorkerReport::default() };
    board.lock_cached_state().worker_reports = vec![idle_report];
    let busy_report = LocalWorkerReport { worker_number: 1, item: Some(4), ..LocalWorkerReport::default() };
    std::thread::scope(|scope| {
        let report = scope
            .spawn(|| heartbeat::report_workers_and_return_if_lock_was_free(&board, &mut Vec::new(), true));
        report_began.recv().expect("the report is on its way");
        let reserve = scope.spawn(|| board.reserve_money_and_replace_report(&busy_report, 0));
        // Without the lock, the reservation would be written first.
        std::thread::sleep(Duration::from_millis(50));
        let _ = release.send(());
        assert!(report.join().expect("no panic"));
        assert_eq!(reserve.join().expect("no panic"), Ok(Reservation::WaitForOthers));
    });
    assert!(heartbeat::report_workers_and_return_if_lock_was_free(&board, &mut Vec::new(), true));
    let expected = [("report", None), ("reserve", Some(4)), ("report", Some(4))];
    assert_eq!(*recorded_calls.lock().expect("no panic"), expected);
    let _reporting_guard = board.reporting_lock.lock().expect("no panic");
    assert!(
        !heartbeat::report_workers_and_return_if_lock_was_free(&board, &mut Vec::new(), true),
        "it is done again"
    );
}
