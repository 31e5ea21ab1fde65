//! Both boards go through the same steps: first by a table, then in orders by chance, as the rules of the policy do. The fleet's rows
//! are in memory here; the tests of `plimsoll-fleet` hold the rows in a database to the same rules.

#[path = "../../../../policy/tests/interleavings/suite.rs"]
mod interleavings;

use super::fleet::tests::{remote_of, renew_leases, repository_with_branch, tell_results};
use super::*;
use crate::workers::connection::{BoardConnection, Ended, Look, Reserved, SharedItem, UsedUp};
use crate::workers::error::BoardError;
use crate::workers::target::RemoteTarget;
use interleavings::Kept;
use plimsoll_domain::Status;
use plimsoll_domain::board::{Aside, BoardItem, BoardState, Lease, Stage};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{ItemOutcome, ItemResult, Member, Work, Workers};
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::{self as rules, Fenced};
use plimsoll_store::Project;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    /// The one clock of a test.
    static NOW: Cell<Moment> = const { Cell::new(0) };
}

fn now() -> Moment {
    NOW.get()
}

fn commit(number: usize) -> String {
    format!("{number:040x}")
}

/// The rows of a fleet.
#[derive(Default)]
struct Fleet {
    state: BoardState,
    /// Where the next attempt at each item begins, and beyond which commit its own begin.
    begins: Vec<(String, String)>,
    passed: Vec<String>,
    is_draining: bool,
    used_up: Option<UsedUp>,
    ended: Option<Ended>,
    /// The last question that sessions asked of any item, with its answer.
    answered: Option<(String, String)>,
    /// What it says instead of an answer.
    trouble: Option<BoardError>,
}

/// A connection to these rows.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Fleet>>);

impl Memory {
    fn decide<T>(&self, decide: impl FnOnce(&mut Fleet) -> Result<T, Fenced>) -> Result<T, BoardError> {
        let mut fleet = self.0.lock().unwrap();
        if let Some(trouble) = &fleet.trouble {
            return Err(trouble.clone());
        }
        decide(&mut fleet).map_err(|Fenced| BoardError::Fenced)
    }

    fn change(&self, change: impl FnOnce(&mut Fleet)) {
        change(&mut self.0.lock().unwrap());
    }

    fn state(&self) -> BoardState {
        self.0.lock().unwrap().state.clone()
    }
}

impl Fleet {
    fn item(&self, place: usize) -> SharedItem {
        let (start, beyond) = self.begins[place].clone();
        let row = BoardItem { text: String::new(), landings: Vec::new(), ..self.state.items[place].clone() };
        SharedItem { row, start, beyond, answered: self.answered.clone() }
    }
}

impl BoardConnection for Memory {
    fn look(&mut self) -> Result<Look, BoardError> {
        self.decide(|fleet| {
            let is_open = |place: &usize| fleet.state.items[*place].stage != Stage::Merged;
            let places = (0..fleet.state.items.len()).filter(is_open);
            Ok(Look {
                now: now(),
                whole: BoardState { items: Vec::new(), ..fleet.state.clone() },
                items: places.map(|place| (place, fleet.item(place))).collect(),
                passed: fleet.passed.clone(),
                is_draining: fleet.is_draining,
                used_up: fleet.used_up,
                ended: fleet.ended,
            })
        })
    }
    fn claim(&mut self, worker: &str) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        self.decide(|fleet| {
            let claim = rules::claim(&mut fleet.state, worker, now());
            Ok(claim.map(|claim| (claim, fleet.item(claim.item))))
        })
    }
    fn renew(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.decide(|fleet| rules::renew(&mut fleet.state, claim, now()))
    }
    fn tell(&mut self, result: &ItemResult) -> Result<(), BoardError> {
        self.decide(|fleet| {
            let claim = Claim { item: result.item, epoch: result.epoch };
            let board = &mut fleet.state;
            match &result.outcome {
                ItemOutcome::Offered => rules::offer(board, claim, &result.start)?,
                ItemOutcome::Failed(reason) => rules::fail(board, claim, reason)?,
                ItemOutcome::Asked(question) => {
                    rules::set_aside(board, claim, Aside::Question(question.clone()))?;
                }
                ItemOutcome::GivenBack => rules::give_back(board, claim)?,
                ItemOutcome::Kept => return Ok(()),
            }
            fleet.begins[result.item] = (result.start.clone(), result.beyond.clone());
            Ok(())
        })
    }
    fn pause(&mut self, length: Duration) -> Result<(), BoardError> {
        let until = now() + u64::try_from(length.as_millis()).unwrap();
        self.decide(|fleet| {
            rules::pause(&mut fleet.state, until);
            Ok(())
        })
    }
    fn become_merger(&mut self, name: &str) -> Result<Option<u64>, BoardError> {
        self.decide(|fleet| Ok(rules::become_merger(&mut fleet.state, name, now())))
    }
    fn renew_merger(&mut self, merger: u64) -> Result<(), BoardError> {
        self.decide(|fleet| rules::renew_merger(&mut fleet.state, merger, now()))
    }
    fn step_down(&mut self, merger: u64) -> Result<(), BoardError> {
        self.decide(|fleet| rules::step_down(&mut fleet.state, merger))
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), BoardError> {
        self.decide(|fleet| rules::land(&mut fleet.state, merger, item, commit))
    }
    fn found(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        self.decide(|fleet| {
            fleet.state.items[item].landings.push(commit.to_owned());
            Ok(())
        })
    }
    fn refuse(&mut self, refused: &Refused) -> Result<(), BoardError> {
        self.decide(|fleet| {
            rules::refuse(&mut fleet.state, refused.merger, refused.item, &refused.note)?;
            fleet.begins[refused.item] = (refused.start.clone(), refused.beyond.clone());
            Ok(())
        })
    }
    fn settle(&mut self, is_in_target: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError> {
        self.decide(|fleet| Ok(rules::settle(&mut fleet.state, is_in_target)))
    }
    fn note_passed(&mut self, commands: &[String]) -> Result<(), BoardError> {
        self.decide(|fleet| {
            fleet.passed.extend(commands.iter().cloned());
            Ok(())
        })
    }
    fn reserve(&mut self, _: &WorkerNews, _: u32, _: f64) -> Result<Reserved, BoardError> {
        self.decide(|_| Ok(Reserved::Share { usd: Some(1.0), sessions: Some(3) }))
    }
    fn report(&mut self, _: &WorkerNews) -> Result<(), BoardError> {
        self.decide(|_| Ok(()))
    }
    fn end(&mut self) -> Result<(), BoardError> {
        self.decide(|_| Ok(()))
    }
}

/// What a session has left.
struct Left(usize);

impl UnfinishedWork for Left {
    fn head(&self) -> Option<String> {
        Some(commit(self.0))
    }
    fn commit_all(&self) -> Option<String> {
        Some(commit(self.0 + 1))
    }
}

const NOBODY_GIVES_UP: &dyn Fn() -> bool = &|| false;

/// A record of a machine with this board.
fn record(state: &BoardState, member: Option<&str>) -> Workers {
    let member = member.map(|name| Member { name: name.to_owned(), ..Member::default() });
    let works = vec![Work::default(); state.items.len()];
    Workers { board: state.clone(), works, member, ..Workers::default() }
}

fn local(folder: &Path, state: &BoardState) -> LocalBoard {
    let table = Table::at(folder.join("local.json"), record(state, None));
    LocalBoard::new(table, &Project::at(folder), folder.to_owned()).with_clock(now)
}

fn machine(folder: &Path, name: &str, memory: &Memory, target: &RemoteTarget) -> FleetBoard {
    let table = Table::at(folder.join(format!("{name}.json")), record(&memory.state(), Some(name)));
    let (connection, heartbeat) = (Box::new(memory.clone()), Box::new(memory.clone()));
    FleetBoard::new(table, connection, heartbeat, target.clone(), Duration::from_secs(1))
}

fn fleet(items: &[Item]) -> Memory {
    let state = rules::board(items);
    let begins = vec![(String::new(), String::new()); state.items.len()];
    Memory(Arc::new(Mutex::new(Fleet { state, begins, ..Fleet::default() })))
}

fn items(texts: &[&str]) -> Vec<Item> {
    let item = |text: &&str| Item { text: (*text).to_owned(), done: false, lines: None, model: None };
    texts.iter().map(item).collect()
}

/// Both boards of a plan with two items, one after the other. The board's machine tells its results after each step.
fn with_both(check: impl Fn(&dyn Board, &dyn Fn() -> BoardState, &str)) {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let plan = items(&["one", "two"]);
    let board = local(folder.path(), &rules::board(&plan));
    check(&board, &|| board.table().now().board, "local");
    let memory = fleet(&plan);
    let board = machine(folder.path(), "a", &memory, &remote_of(folder.path()));
    board.look().unwrap();
    let state = || {
        tell_results(&board);
        board.look().unwrap();
        memory.state()
    };
    check(&board, &state, "fleet");
}

/// Claims an item for each of these workers.
fn claim_all(board: &dyn Board, workers: &[usize]) -> Vec<Claim> {
    let mut held = Vec::new();
    for worker in workers {
        let claim = board.claim(*worker, &held, &|_| false).unwrap();
        held.extend(claim);
    }
    held
}

fn claim(board: &dyn Board) -> Claim {
    board.claim(1, &[], &|_| false).unwrap().expect("an item")
}

fn parse(commit: &str) -> CommitId {
    CommitId::parse(commit).unwrap()
}

#[test]
fn each_worker_gets_an_item_of_its_own_until_there_is_none() {
    with_both(|board, state, name| {
        assert!(board.can_claim(&[]), "{name}");
        let held = claim_all(board, &[1, 2, 3]);
        assert_eq!(board.claims_to_recover(), held, "{name}");
        assert_eq!(held, [Claim { item: 0, epoch: 1 }, Claim { item: 1, epoch: 1 }], "{name}");
        assert!(!board.can_claim(&held), "{name}");
        assert!(held.iter().all(|claim| board.is_held(*claim)), "{name}");
        let workers: Vec<usize> = board.table().now().works.iter().map(|work| work.worker).collect();
        assert_eq!(workers, [1, 2], "{name}");
        assert!(state().items.iter().all(|row| matches!(row.stage, Stage::Leased { .. })), "{name}");
    });
}

#[test]
fn what_is_offered_lands_once_it_was_written_down_and_is_in_the_target() {
    with_both(|board, state, name| {
        let taken = claim(board);
        board.offer(taken, &commit(7)).unwrap();
        assert_eq!(state().items[0].stage, Stage::Offered { commit: commit(7) }, "{name}");
        assert_eq!(board.items_to_merge(false), [0], "{name}");
        let merger = board.become_merger(NOBODY_GIVES_UP).unwrap().expect("the only one");
        let landed = parse(&commit(8));
        board.land(merger, &[(0, &landed)], NOBODY_GIVES_UP).unwrap();
        assert_eq!(state().items[0].landings, [commit(8)], "{name}");
        board.settle(&|_| false, &[], NOBODY_GIVES_UP).unwrap();
        assert_ne!(state().items[0].stage, Stage::Merged, "{name}");
        board.settle(&|known| known == commit(8), &[], NOBODY_GIVES_UP).unwrap();
        assert_eq!(state().items[0].stage, Stage::Merged, "{name}");
        assert_eq!(board.table().now().board.items[0].stage, Stage::Merged, "{name}: the record");
    });
}

#[test]
fn an_item_that_fails_again_and_again_is_set_aside_and_begins_where_it_ended() {
    with_both(|board, state, name| {
        for attempt in 1..=rules::TRIES {
            let taken = claim(board);
            assert_eq!((taken.item, taken.epoch), (0, u64::from(attempt)), "{name}");
            let is_set_aside = board.fail(taken, "stuck", Some(commit(9))).unwrap();
            assert_eq!(is_set_aside, attempt == rules::TRIES, "{name}");
            let row = state().items[0].clone();
            assert_eq!((row.tries, row.note.as_str()), (attempt, "stuck"), "{name}");
            assert_eq!(board.table().now().works[0].start, commit(9), "{name}");
        }
        assert_eq!(state().items[0].stage, Stage::Aside { reason: Aside::Ended("stuck".into()) }, "{name}");
    });
}

#[test]
fn a_parked_item_waits_and_goes_on_where_its_work_is() {
    with_both(|board, state, name| {
        let taken = claim(board);
        board.park(taken, "Which port?", &Left(3)).unwrap();
        let question = Stage::Aside { reason: Aside::Question("Which port?".to_owned()) };
        assert_eq!(state().items[0].stage, question, "{name}");
        // What others may go on with is committed; here nobody but this machine does.
        let expected = if name == "fleet" { commit(4) } else { commit(3) };
        assert_eq!(board.table().now().works[0].start, expected, "{name}");
        assert_eq!(board.table().now().works[0].pid, None, "{name}");
    });
}

#[test]
fn what_is_released_stays_with_its_machine_or_goes_back_to_the_others() {
    with_both(|board, state, name| {
        let taken = claim(board);
        board.release(taken, &Left(3)).unwrap();
        // Also before the board has heard it.
        assert_eq!(board.table().now().board.items[0].stage == Stage::Open, name == "fleet", "{name}");
        let is_open = state().items[0].stage == Stage::Open;
        assert_eq!(is_open, name == "fleet", "{name}");
        assert_eq!(board.is_held(taken), name == "local", "{name}");
        assert_eq!(board.claims_to_recover().len(), usize::from(name == "local"), "{name}");
    });
}

#[test]
fn refused_work_goes_back_with_its_note_until_it_was_tried_too_often() {
    with_both(|board, state, name| {
        for attempt in 1..=rules::TRIES {
            let taken = claim(board);
            board.offer(taken, &commit(7)).unwrap();
            state();
            let merger = board.become_merger(NOBODY_GIVES_UP).unwrap().expect("the only one");
            let (start, beyond) = (commit(5), commit(6));
            let refused = Refused { merger, item: 0, note: "red".to_owned(), start, beyond };
            let is_set_aside = board.refuse(&refused, &[], NOBODY_GIVES_UP).unwrap();
            assert_eq!(is_set_aside, attempt == rules::TRIES, "{name}");
            assert_eq!(state().items[0].note, "red", "{name}");
            let work = board.table().now().works[0].clone();
            assert_eq!((work.start, work.beyond), (commit(5), commit(6)), "{name}");
        }
        assert_eq!(state().items[0].stage, Stage::Aside { reason: Aside::Tries }, "{name}");
    });
}

#[test]
fn a_pause_holds_all_workers_up_and_an_earlier_end_changes_nothing() {
    with_both(|board, state, name| {
        let until = if name == "local" { now() } else { local_moment() } + 60_000;
        let pause = |until| board.pause(&Pause { until, is_of_day: false }).unwrap();
        assert!(pause(until), "{name}");
        assert!(!pause(until - 1_000), "{name}");
        let left = state().paused_until - now();
        assert!((59_000..=60_000).contains(&left), "{name}: {left}");
        assert!(!board.can_claim(&[]), "{name}");
        // What one machine's user may spend on a day holds up no other machine.
        assert!(board.pause(&Pause { until: until + 60_000, is_of_day: true }).unwrap(), "{name}");
        assert_eq!(state().paused_until - now() > 61_000, name == "local", "{name}");
        assert!(board.paused_until() >= until + 59_000, "{name}");
        assert!(board.table().now().waits_for_next_day, "{name}");
    });
}

#[test]
fn what_passed_on_the_target_is_kept_once() {
    with_both(|board, state, name| {
        for commands in [["make"], ["make"]] {
            board.note_passed(&commands.map(str::to_owned), NOBODY_GIVES_UP).unwrap();
        }
        state();
        let passed = board.table().now().passed;
        assert!(passed.iter().all(|command| command == "make") && !passed.is_empty(), "{name}");
    });
}

/// What a merger says is not true before the board has heard it; what has become of an item here is kept until then.
#[test]
fn while_the_board_is_away_the_record_has_results_and_no_landing() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let memory = fleet(&items(&["one", "two"]));
    let board = machine(folder.path(), "a", &memory, &remote_of(folder.path()));
    board.look().unwrap();
    let [one, two] = claim_all(&board, &[1, 2])[..] else { panic!("two items") };
    board.offer(one, &commit(7)).unwrap();
    tell_results(&board);
    let merger = board.become_merger(NOBODY_GIVES_UP).unwrap().expect("the only one");
    memory.change(|fleet| fleet.trouble = Some(BoardError::Away("nobody answers".to_owned())));
    let before = board.table().now();
    let (gives_up, landed): (&dyn Fn() -> bool, _) = (&|| true, parse(&commit(8)));
    let refused =
        Refused { merger, item: 0, note: "red".to_owned(), start: String::new(), beyond: String::new() };
    assert!(board.land(merger, &[(0, &landed)], gives_up).is_err());
    assert!(board.settle(&|_| true, &[(0, landed.clone())], gives_up).is_err());
    assert!(board.refuse(&refused, &[], gives_up).is_err());
    assert!(board.note_passed(&["make".to_owned()], gives_up).is_err());
    assert_eq!(board.table().now(), before);
    board.offer(two, &commit(9)).unwrap();
    let now = board.table().now();
    assert_eq!(now.board.items[1].stage, Stage::Offered { commit: commit(9) });
    assert_eq!(now.member.unwrap().outbox.len(), 1);
    assert!(board.has_undelivered_results(None, false) && !board.has_undelivered_results(None, true));
    memory.change(|fleet| fleet.trouble = None);
    tell_results(&board);
    assert_eq!(memory.state().items[1].stage, Stage::Offered { commit: commit(9) });
    assert!(!board.has_undelivered_results(None, false));
}

/// A machine of a fleet whose plan has two items.
fn one_of_a_fleet(check: impl Fn(&FleetBoard, &Memory)) {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let memory = fleet(&items(&["one", "two"]));
    let board = machine(folder.path(), "a", &memory, &remote_of(folder.path()));
    board.look().unwrap();
    check(&board, &memory);
}

#[test]
fn a_machine_hears_what_the_fleet_orders() {
    let stopped = || Closing::Stop(Status::Cancelled, "the fleet was stopped".to_owned());
    let spent = Closing::Stop(Status::Budget, "$2.00 of $2.00 spent by the whole fleet".to_owned());
    let used = Closing::Stop(Status::MaxIterations, "9 sessions used by the whole fleet".to_owned());
    let fault = Closing::Pause(PauseKind::Fault, "no such plan".to_owned());
    type Change = fn(&mut Fleet);
    let table: [(Change, Option<Closing>, Option<Closing>); 7] = [
        (|_| (), None, None),
        (|fleet| fleet.ended = Some(Ended::Stopped), None, Some(stopped())),
        // What is stopped ends at once, whatever else was about to end it.
        (|fleet| fleet.ended = Some(Ended::Stopped), Some(Closing::Interrupted), Some(stopped())),
        (|fleet| fleet.used_up = Some(UsedUp::Money(2.0, 2.0)), None, Some(spent)),
        (|fleet| fleet.used_up = Some(UsedUp::Sessions(9)), None, Some(used)),
        (|fleet| fleet.used_up = Some(UsedUp::Sessions(9)), Some(Closing::Interrupted), None),
        (|fleet| fleet.trouble = Some(BoardError::Refused("no such plan".to_owned())), None, Some(fault)),
    ];
    for (number, (change, closing, expected)) in table.into_iter().enumerate() {
        one_of_a_fleet(|board, memory| {
            memory.change(change);
            let _ = board.look();
            assert_eq!(
                board.orders(closing.as_ref()),
                Orders { words: None, closing: expected.clone() },
                "{number}"
            );
        });
    }
}

#[test]
fn what_drains_gives_nothing_out_and_closes_what_is_over() {
    one_of_a_fleet(|board, memory| {
        assert!(board.can_claim(&[]) && board.closing_when_drained().is_none());
        memory.change(|fleet| fleet.is_draining = true);
        board.look().unwrap();
        let drained = Closing::Stop(Status::Completed, "the fleet drains: 0 of 2 items merged".to_owned());
        assert_eq!(board.closing_when_drained(), Some(drained));
        assert!(!board.can_claim(&[]));
        memory.change(|fleet| fleet.state.items.iter_mut().for_each(|row| row.stage = Stage::Merged));
        board.look().unwrap();
        assert_eq!(board.closing_when_drained(), None, "it is done, and not drained");
    });
}

#[test]
fn a_claim_whose_answer_was_lost_is_taken_up_with_its_epoch() {
    one_of_a_fleet(|board, memory| {
        let lost = memory.clone().claim("a/1").unwrap().unwrap().0;
        board.look().unwrap();
        assert_eq!(claim(board), lost);
        assert_eq!(memory.state().items[lost.item].epoch, lost.epoch);
    });
}

#[test]
fn an_item_that_another_machine_has_taken_over_is_not_held_and_its_results_are_fenced() {
    one_of_a_fleet(|board, memory| {
        let late = claim(board);
        NOW.set(now() + rules::LEASE);
        let other = memory.clone().claim("b/1").unwrap().unwrap().0;
        assert_eq!((other.item, other.epoch), (late.item, late.epoch + 1));
        assert!(board.is_held(late), "it has not looked");
        board.look().unwrap();
        assert!(!board.is_held(late));
        let before = memory.state();
        board.keep_branch(late, &Left(1)).unwrap();
        tell_results(board);
        board.offer(late, &commit(7)).unwrap();
        tell_results(board);
        assert_eq!(memory.state(), before);
        assert!(!board.has_undelivered_results(None, false), "a fenced result is forgotten");
    });
}

#[test]
fn one_machine_merges_and_another_takes_over_when_it_is_gone() {
    one_of_a_fleet(|board, memory| {
        let other = memory.clone().become_merger("b").unwrap().unwrap();
        board.look().unwrap();
        assert!(!board.try_begin_merging() && board.waits_for_merging(false));
        assert_eq!(board.become_merger(NOBODY_GIVES_UP).unwrap(), None);
        let landed = parse(&commit(8));
        assert!(board.land(other + 1, &[(0, &landed)], NOBODY_GIVES_UP).is_err());
        memory.clone().step_down(other).unwrap();
        board.look().unwrap();
        assert!(board.try_begin_merging());
        assert!(!board.try_begin_merging(), "what is tried in vain is tried again after a moment");
        assert_eq!(board.become_merger(NOBODY_GIVES_UP).unwrap(), Some(other + 1));
        board.leave(&[], &|| true);
        assert_eq!(memory.state().merger.until, 0, "it steps down");
    });
}

#[test]
fn an_item_brings_where_it_begins_and_the_answer_to_its_question() {
    one_of_a_fleet(|board, memory| {
        let answered = ("Which port?".to_owned(), "8042".to_owned());
        memory.change(|fleet| {
            fleet.begins[0] = (commit(5), commit(6));
            fleet.answered = Some(answered.clone());
        });
        assert_eq!(claim(board).item, 0);
        let work = board.table().now().works[0].clone();
        assert_eq!((work.start, work.beyond, work.answered), (commit(5), commit(6), Some(answered)));
    });
}

/// A lease that is over is not renewed where another machine has begun something in the same place.
#[test]
fn a_claim_that_cannot_be_renewed_is_neither_held_nor_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let memory = fleet(&items(&["one (area: src)", "two (area: src)"]));
    let board = machine(folder.path(), "a", &memory, &remote_of(folder.path()));
    board.look().unwrap();
    let late = claim(&board);
    NOW.set(now() + rules::LEASE);
    memory.change(|fleet| {
        let lease = Lease { holder: "b/1".to_owned(), until: now() + rules::LEASE };
        fleet.state.items[1].stage = Stage::Leased { lease };
    });
    board.look().unwrap();
    assert!(board.is_held(late) && board.can_claim(&[]), "it has not been told");
    board.keep_leases(vec![late], false, &Vec::new);
    renew_leases(&board);
    assert!(!board.is_held(late) && !board.can_claim(&[]));
}

#[test]
fn the_mergers_lease_is_kept_while_it_merges_and_no_longer() {
    one_of_a_fleet(|board, memory| {
        board.become_merger(NOBODY_GIVES_UP).unwrap().expect("the only one");
        let mut renewed = |is_merging| {
            NOW.set(now() + 1_000);
            board.keep_leases(Vec::new(), is_merging, &Vec::new);
            renew_leases(board);
            memory.state().merger.until == now() + rules::LEASE
        };
        assert_eq!([true, false, true].map(&mut renewed), [true, false, false]);
    });
}

#[test]
fn what_was_seen_before_a_change_of_the_record_does_not_undo_it() {
    one_of_a_fleet(|board, _| {
        let table = board.table();
        let before = table.changes();
        table.touch_unless_changed(before, |workers| workers.plan = "seen".to_owned());
        assert_eq!(table.now().plan, "seen");
        table.change(|workers| workers.plan = "changed".to_owned()).unwrap();
        table.touch_unless_changed(before, |workers| workers.plan = "seen".to_owned());
        assert_eq!(table.now().plan, "changed");
    });
}

#[test]
fn on_one_machine_an_item_begins_at_the_targets_end_or_where_its_last_attempt_ended() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let tip = repository_with_branch(folder.path(), "work");
    let board = local(folder.path(), &rules::board(&items(&["one"])));
    board.table().change(|workers| workers.target = "work".to_owned()).unwrap();
    let first = claim(&board);
    let begins = || {
        let work = board.table().now().works[0].clone();
        (work.start, work.beyond)
    };
    assert_eq!(begins(), (tip.clone(), tip.clone()));
    board.fail(first, "stuck", Some(commit(9))).unwrap();
    assert_eq!(claim(&board).item, 0);
    assert_eq!(begins(), (commit(9), tip));
}

#[test]
fn a_landing_that_the_board_has_lost_is_found_in_the_target() {
    one_of_a_fleet(|board, memory| {
        let is_there = |known: &str| known == commit(8);
        board.settle(&is_there, &[(1, parse(&commit(8)))], NOBODY_GIVES_UP).unwrap();
        assert_eq!(memory.state().items[1].stage, Stage::Merged);
        assert_eq!(board.table().now().board.items[1].stage, Stage::Merged);
    });
}

#[test]
fn a_fleet_gives_an_item_its_share_of_what_is_left() {
    one_of_a_fleet(|board, memory| {
        let most = Means::Enough { cost_usd: Some(5.0), tokens: Some(7), sessions: 10 };
        let share = Means::Enough { cost_usd: Some(1.0), tokens: Some(7), sessions: 3 };
        assert_eq!(board.reserve(1, 0, most.clone()), share);
        let none = Means::Tomorrow("spent".to_owned());
        assert_eq!(board.reserve(1, 0, none.clone()), none);
        memory.change(|fleet| fleet.trouble = Some(BoardError::Away("nobody answers".to_owned())));
        assert_eq!(board.reserve(1, 0, most), Means::Later);
    });
}

/// The board of one machine, as the rules are tried on it.
struct OneMachine {
    board: LocalBoard,
    _folder: tempfile::TempDir,
}

/// A fleet in which each worker is a machine of its own; the last one ends what the others leave.
struct Machines {
    memory: Memory,
    machines: Vec<FleetBoard>,
    /// Which machine has claimed an item, and which became the merger with an epoch.
    claims: Vec<(Claim, usize)>,
    mergers: Vec<(u64, usize)>,
    _folder: tempfile::TempDir,
}

/// What is said with a claim counts only while nobody else has the item.
fn check_claim(state: &BoardState, claim: Claim) -> Result<(), Fenced> {
    let row = &state.items[claim.item];
    let is_its_own = row.epoch == claim.epoch && matches!(row.stage, Stage::Leased { .. });
    if is_its_own { Ok(()) } else { Err(Fenced) }
}

fn question(reason: &Aside) -> &str {
    let Aside::Question(question) = reason else { panic!("a run sets aside what it asks about") };
    question
}

/// The number at the end of a worker's or merger's name.
fn number(name: &str) -> Option<usize> {
    name.rsplit(' ').next()?.parse().ok()
}

fn refused(merger: u64, item: usize, note: &str) -> Refused {
    Refused { merger, item, note: note.to_owned(), start: String::new(), beyond: String::new() }
}

impl Kept for OneMachine {
    fn claim(&mut self, worker: &str, at: Moment) -> Option<Claim> {
        NOW.set(at);
        self.board.claim(number(worker).map_or(9, |number| number + 1), &[], &|_| false).unwrap()
    }
    /// A lease is renewed with the next claim.
    fn renew(&mut self, claim: Claim, at: Moment) -> Result<(), Fenced> {
        self.board.table().change(|workers| rules::renew(&mut workers.board, claim, at)).unwrap()
    }
    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), Fenced> {
        let said = check_claim(&self.board(), claim);
        self.board.offer(claim, commit).unwrap();
        said
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), Fenced> {
        let said = check_claim(&self.board(), claim);
        self.board.release(claim, &Left(1)).unwrap();
        said
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), Fenced> {
        let said = check_claim(&self.board(), claim);
        self.board.fail(claim, reason, None).unwrap();
        said
    }
    fn set_aside(&mut self, claim: Claim, reason: Aside) -> Result<(), Fenced> {
        let said = check_claim(&self.board(), claim);
        self.board.park(claim, question(&reason), &Left(1)).unwrap();
        said
    }
    fn become_merger(&mut self, _: &str, at: Moment) -> Option<u64> {
        NOW.set(at);
        self.board.become_merger(NOBODY_GIVES_UP).unwrap()
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_there = |commit: &str| target.iter().any(|known| known == commit);
        self.board.settle(&is_there, &[], NOBODY_GIVES_UP).unwrap();
        Vec::new()
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
        self.board.land(merger, &[(item, &parse(commit))], NOBODY_GIVES_UP).unwrap();
        let is_there = self.board().items[item].landings.iter().any(|known| known == commit);
        if is_there { Ok(()) } else { Err(Fenced) }
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
        let before = self.board().items[item].tries;
        self.board.refuse(&refused(merger, item, note), &[], NOBODY_GIVES_UP).unwrap();
        if self.board().items[item].tries > before { Ok(()) } else { Err(Fenced) }
    }
    fn pause(&mut self, _: Moment, until: Moment) {
        self.board.pause(&Pause { until, is_of_day: false }).unwrap();
    }
    fn reopen(&mut self, item: usize) -> bool {
        self.board.table().change(|workers| rules::reopen(&mut workers.board, item)).unwrap()
    }
    fn board(&mut self) -> BoardState {
        self.board.table().now().board
    }
}

impl Machines {
    fn new(folder: tempfile::TempDir, target: &RemoteTarget, items: &[Item]) -> Machines {
        NOW.set(0);
        let memory = fleet(items);
        let machines = ["a", "b", "c", "d"].map(|name| machine(folder.path(), name, &memory, target));
        let (claims, mergers) = (Vec::new(), Vec::new());
        let mut fleet = Machines { memory, machines: machines.into(), claims, mergers, _folder: folder };
        fleet.hear();
        fleet
    }

    /// The board hears every result, and every machine looks at the board.
    fn hear(&mut self) {
        self.machines.iter().for_each(tell_results);
        for machine in &self.machines {
            machine.look().unwrap();
        }
    }

    fn machine_of(&self, claim: Claim) -> &FleetBoard {
        let (_, place) = self.claims.iter().rev().find(|(known, _)| *known == claim).expect("a claim");
        &self.machines[*place]
    }

    fn say(&mut self, claim: Claim, act: impl FnOnce(&FleetBoard)) -> Result<(), Fenced> {
        let said = check_claim(&self.memory.state(), claim);
        act(self.machine_of(claim));
        self.hear();
        said
    }

    fn merger(&self, epoch: u64) -> &FleetBoard {
        let (_, place) = self.mergers.iter().rev().find(|(known, _)| *known == epoch).expect("a merger");
        &self.machines[*place]
    }
}

/// What a merger was answered.
fn merged<T>(answer: Result<T, MergeError>) -> Result<T, Fenced> {
    answer.map_err(|error| match error {
        MergeError::Board(BoardError::Fenced) => Fenced,
        other => panic!("{other}"),
    })
}

impl Kept for Machines {
    fn claim(&mut self, worker: &str, at: Moment) -> Option<Claim> {
        NOW.set(at);
        self.hear();
        let place = number(worker).unwrap_or(3);
        let claim = self.machines[place].claim(1, &[], &|_| false).unwrap();
        self.claims.extend(claim.map(|claim| (claim, place)));
        claim
    }
    fn renew(&mut self, claim: Claim, at: Moment) -> Result<(), Fenced> {
        NOW.set(at);
        let row = |fleet: &Machines| fleet.memory.state().items[claim.item].clone();
        let (before, machine) = (row(self), self.machine_of(claim));
        machine.keep_leases(vec![claim], true, &Vec::new);
        renew_leases(machine);
        let is_renewed = row(self) != before || machine.is_held(claim);
        self.hear();
        if is_renewed { Ok(()) } else { Err(Fenced) }
    }
    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), Fenced> {
        self.say(claim, |machine| machine.offer(claim, commit).unwrap())
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), Fenced> {
        self.say(claim, |machine| machine.release(claim, &Left(1)).unwrap())
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), Fenced> {
        self.say(claim, |machine| _ = machine.fail(claim, reason, None).unwrap())
    }
    fn set_aside(&mut self, claim: Claim, reason: Aside) -> Result<(), Fenced> {
        self.say(claim, |machine| machine.park(claim, question(&reason), &Left(1)).unwrap())
    }
    fn become_merger(&mut self, name: &str, at: Moment) -> Option<u64> {
        NOW.set(at);
        let place = number(name).unwrap_or_default().min(2);
        let merger = self.machines[place].become_merger(NOBODY_GIVES_UP).unwrap();
        self.mergers.extend(merger.map(|epoch| (epoch, place)));
        merger
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_there = |commit: &str| target.iter().any(|known| known == commit);
        self.machines[0].settle(&is_there, &[], NOBODY_GIVES_UP).unwrap();
        self.hear();
        Vec::new()
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
        merged(self.merger(merger).land(merger, &[(item, &parse(commit))], NOBODY_GIVES_UP))
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
        let said = merged(self.merger(merger).refuse(&refused(merger, item, note), &[], NOBODY_GIVES_UP));
        self.hear();
        said.map(drop)
    }
    fn pause(&mut self, at: Moment, until: Moment) {
        let until = local_moment() + (until - at);
        self.machines[0].pause(&Pause { until, is_of_day: false }).unwrap();
    }
    fn reopen(&mut self, item: usize) -> bool {
        self.memory.decide(|fleet| Ok(rules::reopen(&mut fleet.state, item))).unwrap()
    }
    /// What every machine has seen of the board is the board.
    fn board(&mut self) -> BoardState {
        self.hear();
        let state = self.memory.state();
        for machine in &self.machines {
            let seen = machine.table().now().board;
            for (row, seen) in state.items.iter().zip(&seen.items) {
                assert_eq!(seen.stage, row.stage, "{}", row.text);
                assert!(row.stage == Stage::Merged || (seen.epoch, seen.tries) == (row.epoch, row.tries));
            }
        }
        state
    }
}

#[test]
fn the_rules_hold_on_both_boards_whatever_comes_between() {
    let one = |items: &[Item]| {
        let folder = tempfile::tempdir().unwrap();
        NOW.set(0);
        OneMachine { board: local(folder.path(), &rules::board(items)), _folder: folder }
    };
    let (merged, aside) = interleavings::run(12, 100, one);
    assert!(merged > 12 && aside > 0, "the runs show nothing: {merged} merged, {aside} aside");
    let remote = tempfile::tempdir().unwrap();
    let target = remote_of(remote.path());
    let (merged, aside) =
        interleavings::run(8, 100, |items| Machines::new(tempfile::tempdir().unwrap(), &target, items));
    assert!(merged > 12 && aside > 0, "the runs show nothing: {merged} merged, {aside} aside");
}
