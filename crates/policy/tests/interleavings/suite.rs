//! The rules against a simple model: workers and mergers that die, freeze and come back too late, in orders by chance.
//!
//! One suite for all boards: here for the rules themselves; the tests of `plimsoll-flows` take this file for both boards of a
//! scheduler, those of `plimsoll-fleet` for the rows in PostgreSQL.

use plimsoll_domain::board::{Aside, BoardItem, BoardState, Moment, Stage};
use plimsoll_domain::item_area::overlap;
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::*;

/// A board, wherever it is kept. The moment is the one clock of the board.
pub(crate) trait Kept {
    fn claim(&mut self, worker: &str, now: Moment) -> Option<Claim>;
    fn renew(&mut self, claim: Claim, now: Moment) -> Result<(), Fenced>;
    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), Fenced>;
    fn give_back(&mut self, claim: Claim) -> Result<(), Fenced>;
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), Fenced>;
    fn set_aside(&mut self, claim: Claim, reason: Aside) -> Result<(), Fenced>;
    fn become_merger(&mut self, name: &str, now: Moment) -> Option<u64>;
    fn settle(&mut self, target: &[String]) -> Vec<usize>;
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), Fenced>;
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), Fenced>;
    fn pause(&mut self, now: Moment, until: Moment);
    fn reopen(&mut self, item: usize) -> bool;
    /// All of it, as it is.
    fn board(&mut self) -> BoardState;
}

impl Kept for BoardState {
    fn claim(&mut self, worker: &str, now: Moment) -> Option<Claim> {
        claim(self, worker, now)
    }
    fn renew(&mut self, claim: Claim, now: Moment) -> Result<(), Fenced> {
        renew(self, claim, now)
    }
    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), Fenced> {
        offer(self, claim, commit)
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), Fenced> {
        give_back(self, claim)
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), Fenced> {
        fail(self, claim, reason)
    }
    fn set_aside(&mut self, claim: Claim, reason: Aside) -> Result<(), Fenced> {
        set_aside(self, claim, reason)
    }
    fn become_merger(&mut self, name: &str, now: Moment) -> Option<u64> {
        become_merger(self, name, now)
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        settle(self, |commit| target.iter().any(|known| known == commit))
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
        land(self, merger, item, commit)
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
        refuse(self, merger, item, note)
    }
    fn pause(&mut self, _now: Moment, until: Moment) {
        pause(self, until);
    }
    fn reopen(&mut self, item: usize) -> bool {
        reopen(self, item)
    }
    fn board(&mut self) -> BoardState {
        self.clone()
    }
}

/// The last commit of an attempt's branch, as long as an id of git's.
fn end_of_branch(claim: Claim) -> String {
    format!("b{:07x}{:032x}", claim.item, claim.epoch)
}

/// Numbers by chance, the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// What a merger is about to do. Between any two of these it may be stopped for as long as one likes.
#[derive(Clone, Debug, Default)]
enum Merger {
    #[default]
    Idle,
    /// It has the lease, has seen the target's end, and has settled what was in the target by then.
    Seen { epoch: u64, end: usize },
    /// It has written down the commits that it is about to push onto that end.
    Written { end: usize, commits: Vec<String> },
}

pub(crate) struct World<K> {
    chance: Chance,
    kept: K,
    /// What it was after the last step.
    board: BoardState,
    now: Moment,
    /// The target's commits.
    target: Vec<String>,
    workers: Vec<Option<Claim>>,
    /// Claims of workers that were given up for dead; they speak all the same.
    ghosts: Vec<Claim>,
    mergers: Vec<Merger>,
    commits: usize,
}

/// A plan by chance: items that need earlier ones, and that touch the same places.
fn items(chance: &mut Chance) -> Vec<Item> {
    let count = 4 + chance.below(8);
    let item = |place: usize| {
        let needs = (1..=place).filter(|_| chance.one_in(4)).map(|need| format!("after: {need}"));
        let needs: Vec<String> = needs.collect();
        let areas = ["src", "src/a", "docs"].iter().filter(|_| chance.one_in(4));
        let areas = areas.map(|area| format!("area: {area}"));
        let properties: Vec<String> = needs.into_iter().chain(areas).collect();
        let text = format!("item {place} ({})", properties.join(", "));
        Item { done: false, text, lines: None, model: None }
    };
    (0..count).map(item).collect()
}

impl<K: Kept> World<K> {
    pub(crate) fn new(seed: u64, keep: impl FnOnce(&[Item]) -> K) -> World<K> {
        let mut chance = Chance(seed);
        let mut kept = keep(&items(&mut chance));
        World {
            board: kept.board(),
            chance,
            kept,
            now: 0,
            target: vec!["first".to_owned()],
            workers: vec![None; 3],
            ghosts: Vec::new(),
            mergers: vec![Merger::default(); 2],
            commits: 0,
        }
    }

    fn commit(&mut self, item: usize) -> String {
        self.commits += 1;
        // As long as an id of git's: a database takes nothing else.
        format!("{item:08x}{:032x}", self.commits)
    }

    /// One thing happens, and everything that has to hold is looked at.
    pub(crate) fn step(&mut self, words: &str) {
        let before = self.board.clone();
        self.act();
        self.board = self.kept.board();
        self.hold(&before, words);
    }

    fn act(&mut self) {
        match self.chance.below(12) {
            0..4 => self.work(),
            4 => self.haunt(),
            5..9 => self.merge(),
            9 => self.now += self.chance.below(LEASE as usize) as Moment,
            10 if self.chance.one_in(6) => self.target.push("the user's".to_owned()),
            10 if self.chance.one_in(6) => self.kept.pause(self.now, self.now + LEASE),
            _ if self.chance.one_in(4) => {
                let item = self.chance.below(self.board.items.len());
                self.kept.reopen(item);
            }
            _ => {}
        }
    }

    fn work(&mut self) {
        let who = self.chance.below(self.workers.len());
        let Some(mine) = self.workers[who] else {
            self.workers[who] = self.kept.claim(&format!("worker {who}"), self.now);
            return;
        };
        let has_failed = self.chance.one_in(3);
        let kept = &mut self.kept;
        let said = match self.chance.below(10) {
            0..4 => kept.renew(mine, self.now),
            4..7 => {
                let branch = end_of_branch(mine);
                self.workers[who] = None;
                kept.offer(mine, &branch)
            }
            7 => {
                self.workers[who] = None;
                if has_failed { kept.fail(mine, "stuck") } else { kept.give_back(mine) }
            }
            8 => {
                self.workers[who] = None;
                kept.set_aside(mine, Aside::Question("which?".to_owned()))
            }
            // It is given up for dead, or it freezes: nobody hears of it until it comes back.
            _ => {
                self.ghosts.push(mine);
                self.workers[who] = None;
                Ok(())
            }
        };
        if said.is_err() {
            self.workers[who] = None;
        }
    }

    /// Somebody comes back late. It counts only while nobody has taken the item.
    fn haunt(&mut self) {
        if self.ghosts.is_empty() {
            return;
        }
        let ghost = self.ghosts[self.chance.below(self.ghosts.len())];
        let row = self.board.items[ghost.item].clone();
        let is_its_own = row.epoch == ghost.epoch && matches!(row.stage, Stage::Leased { .. });
        let how = self.chance.below(3);
        let said = match how {
            0 => self.kept.renew(ghost, self.now),
            1 => self.kept.offer(ghost, &end_of_branch(ghost)),
            _ => self.kept.give_back(ghost),
        };
        // What is its own it may not keep where somebody else has begun something in the same place.
        assert!(is_its_own || said.is_err(), "{ghost:?} {row:?}");
        assert!(!is_its_own || said.is_ok() || how == 0, "{ghost:?} {row:?}");
        if said.is_err() {
            assert_eq!(self.kept.board().items[ghost.item], row);
        }
    }

    fn merge(&mut self) {
        let who = self.chance.below(self.mergers.len());
        if self.chance.one_in(12) {
            self.mergers[who] = Merger::Idle;
        }
        self.mergers[who] = match std::mem::take(&mut self.mergers[who]) {
            Merger::Idle => self.observe(who),
            Merger::Seen { epoch, end } => self.write_down(epoch, end),
            Merger::Written { end, commits } => {
                // The lease of a forced push: only from the commit that it has seen.
                if self.target.len() == end {
                    self.target.extend(commits);
                }
                Merger::Idle
            }
        };
    }

    fn observe(&mut self, who: usize) -> Merger {
        let Some(epoch) = self.kept.become_merger(&format!("merger {who}"), self.now) else {
            return Merger::Idle;
        };
        self.kept.settle(&self.target);
        Merger::Seen { epoch, end: self.target.len() }
    }

    fn write_down(&mut self, epoch: u64, end: usize) -> Merger {
        let mut commits = Vec::new();
        for item in offered(&self.kept.board()) {
            match self.chance.below(8) {
                0 => drop(self.kept.refuse(epoch, item, "conflict")),
                _ => {
                    let commit = self.commit(item);
                    if self.kept.land(epoch, item, &commit).is_ok() {
                        commits.push(commit);
                    }
                }
            }
        }
        if commits.is_empty() { Merger::Idle } else { Merger::Written { end, commits } }
    }

    fn landed(&self, item: usize) -> Vec<usize> {
        let begins = format!("{item:08x}");
        (0..self.target.len()).filter(|place| self.target[*place].starts_with(&begins)).collect()
    }

    fn hold(&self, before: &BoardState, words: &str) {
        for (item, row) in self.board.items.iter().enumerate() {
            let landed = self.landed(item);
            assert!(landed.len() <= 1, "{words}: item {item} has landed {landed:?}");
            let was_merged = before.items[item].stage == Stage::Merged;
            assert!(!was_merged || row.stage == Stage::Merged, "{words}: item {item} is no longer merged");
            if row.stage == Stage::Merged {
                assert!(landed.len() == 1, "{words}: item {item} is merged and lost");
            }
            for place in landed {
                assert!(
                    row.landings.contains(&self.target[place]),
                    "{words}: nobody can know of item {item}"
                );
                for need in &row.needs {
                    let is_before = self.landed(*need).first().is_some_and(|other| *other < place);
                    assert!(is_before, "{words}: item {item} before {need}");
                }
            }
        }
        let at_work =
            |row: &&BoardItem| matches!(&row.stage, Stage::Leased { lease } if lease.holds(self.now));
        let at_work: Vec<&BoardItem> = self.board.items.iter().filter(at_work).collect();
        for (place, one) in at_work.iter().enumerate() {
            let others = at_work[place + 1..].iter().filter(|other| overlap(&one.areas, &other.areas));
            assert_eq!(others.count(), 0, "{words}: two at work in one place");
        }
    }

    /// Without any further trouble everything comes to its end: how many items are merged, and how many set aside.
    pub(crate) fn end(&mut self, words: &str) -> (usize, usize) {
        let before = self.board.clone();
        self.finish();
        self.board = self.kept.board();
        self.hold(&before, words);
        let (mut merged, mut aside) = (0, 0);
        for (item, row) in self.board.items.iter().enumerate() {
            match &row.stage {
                Stage::Merged => merged += 1,
                Stage::Aside { .. } => aside += 1,
                Stage::Open => {
                    let waits = |need: &usize| self.board.items[*need].stage != Stage::Merged;
                    assert!(row.needs.iter().any(waits), "{words}: item {item} is left");
                }
                Stage::Leased { .. } | Stage::Offered { .. } => panic!("{words}: item {item} is left"),
            }
        }
        (merged, aside)
    }

    fn finish(&mut self) {
        for _ in 0..10_000 {
            self.now += 2 * LEASE;
            match outlook(&self.kept.board(), self.now) {
                Outlook::Done | Outlook::Stuck => return,
                Outlook::Free => {
                    let mine = self.kept.claim("last", self.now).expect("it is free");
                    self.kept.offer(mine, &end_of_branch(mine)).expect("nobody else is there");
                }
                Outlook::Busy => {
                    let Merger::Seen { epoch, .. } = self.observe(9) else { continue };
                    for item in offered(&self.kept.board()) {
                        let commit = self.commit(item);
                        self.kept.land(epoch, item, &commit).expect("the only merger");
                        self.target.push(commit);
                    }
                    self.observe(9);
                }
            }
        }
        panic!("it does not end: {:#?}", self.kept.board());
    }
}

/// So many plans, and so many steps with each: how many items were merged and how many set aside in all.
pub(crate) fn run<K: Kept>(plans: u64, steps: u32, mut keep: impl FnMut(&[Item]) -> K) -> (usize, usize) {
    let (mut merged, mut aside) = (0, 0);
    for seed in 0..plans {
        let mut world = World::new(seed, &mut keep);
        for step in 0..steps {
            world.step(&format!("seed {seed}, step {step}"));
        }
        let ended = world.end(&format!("seed {seed}, at the end"));
        (merged, aside) = (merged + ended.0, aside + ended.1);
    }
    (merged, aside)
}

#[test]
fn whatever_comes_between_each_item_lands_once_or_is_set_aside_and_nothing_hangs() {
    // A hundred thousand steps in all.
    let (merged, aside) = run(200, 500, board);
    assert!(merged > 500 && aside > 50, "the runs show nothing: {merged} merged, {aside} aside");
}

/// The model sees a landing that nobody wrote down, and one that was not settled before the next.
#[test]
fn the_model_notices_a_rule_that_is_broken() {
    for broken in [0, 1] {
        let mut world = World::new(1, board);
        let mine = world.kept.claim("w", 0).expect("an item");
        let [written, unwritten] = [(); 2].map(|()| world.commit(mine.item));
        world.kept.offer(mine, &end_of_branch(mine)).expect("mine");
        let merger = world.kept.become_merger("m", 0).expect("the only one");
        if broken == 1 {
            world.kept.land(merger, mine.item, &written).expect("the merger");
            world.target.push(written);
        }
        world.target.push(unwritten);
        let before = world.board.clone();
        world.board = world.kept.board();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.hold(&before, "broken")));
        assert!(seen.is_err(), "{broken}");
    }
}
