//! An item is taken, its worktree prepared and its run started; or it could not be done.

use super::means::{LEAST_USD, Means, means};
use super::{Closing, STAGGER, Scheduler, followed};
use crate::run::day;
use crate::workers::board::item_plan;
use crate::workers::child::{self, Start};
use crate::workers::returned;
use crate::workers::session_notes::carry_notes;
use crate::workers::shared::{Reserved, Shared, SharedItem, UsedUp, WorkerNews, is_leased_by};
use crate::workers::slot::{Slot, Stage};
use crate::workers::table::Table;
use crate::workers::tree::{TreeError, Wanted};
use crate::workers::{WorkersError, task_path};
use plimsoll_domain::Status;
use plimsoll_domain::item_brief::{ItemBrief, ReturnReason, ReturnedWork};
use plimsoll_domain::journal::{JournalEvent, SentBack, WorkerBegan};
use plimsoll_domain::text::counted;
use plimsoll_domain::workers::{ItemOutcome, Workers};
use plimsoll_launcher::process::Identity;
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::{Claim, Outlook, claim, fail, outlook, renew};
use plimsoll_store::{Durability, state_file};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What one item's run may take of a fleet's sessions.
const SESSIONS: u32 = 50;
/// How often the shared board is asked for an item that others may have got by now.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);

impl<'scope, 'env> Scheduler<'scope, 'env> {
    /// True if a worker may begin now: then the next one waits.
    pub(super) fn takes_its_turn(&mut self, worker: usize) -> bool {
        if self.proven.contains(&worker) {
            return true;
        }
        let is_soon = self.begun.is_some_and(|begun| begun.elapsed() < STAGGER);
        if !is_soon {
            self.begun = Some(Instant::now());
            self.proven.insert(worker);
        }
        !is_soon
    }

    pub(super) fn prepare(&mut self, mut slot: Slot<'scope>) -> Result<Slot<'scope>, WorkersError> {
        let now = self.table.now();
        let Claim { item, epoch } = slot.claim;
        carry_notes(self.project, &now, self.trees, item)?;
        let wanted = Wanted {
            item,
            worker: slot.worker,
            branch: now.attempt_branch(item, epoch).map_err(|error| WorkersError::NoTarget(error.0))?,
            begins_at: now.works[item].start_commit().and_then(Result::ok),
            plan: item_plan(self.project, &now, item)?,
            keeps_plan: child::keeps_plan(&self.trees.project(&self.trees.of_item(item))),
            returned: self.returned(&now, item),
        };
        // No session is at work yet: the first Ctrl-C is enough.
        let (trees, table) = (self.trees, self.table);
        let (interrupts, cut) = (self.interrupts.clone(), Arc::clone(&self.cut));
        let give_up = move || interrupts.count() > 0 || cut.load(Ordering::Relaxed);
        let handle = self.scope.spawn(move || match &table.shared {
            Some(shared) => trees.prepare(&brought(table, shared, wanted, &give_up)?, &give_up),
            None => trees.prepare(&wanted, &give_up),
        });
        slot.stage = Stage::Preparing(handle);
        Ok(slot)
    }

    /// Why the last work on an item was sent back, as it is known here.
    fn returned(&self, now: &Workers, item: usize) -> Option<ReturnedWork> {
        match &self.table.shared {
            None => returned::load(self.project, self.run, now, item),
            Some(shared) => {
                let pushed = shared.target.refusal(item).as_deref().and_then(returned::parse);
                pushed.or_else(|| returned::from_note(&now.board.items[item].note))
            }
        }
    }

    /// The state says that the pause is over, as soon as a worker begins.
    fn end_pause(&mut self) -> Result<(), WorkersError> {
        if std::mem::take(&mut self.is_paused) {
            state_file::update(self.project, Some(&self.run.run_id), Durability::Durable, |state| {
                state.lifecycle.go_on();
            })?;
        }
        Ok(())
    }

    /// Starts the item's run, if there is money for it; one that waits for money comes again.
    pub(super) fn start(&mut self, slot: Slot<'scope>) -> Result<Option<Slot<'scope>>, WorkersError> {
        let now = self.table.now();
        let Claim { item, epoch } = slot.claim;
        // Whoever waits for money, too, holds none: two that left each other theirs would wait for ever.
        let at_work = self.slots.iter().flatten().filter(|slot| matches!(slot.stage, Stage::AtWork(_)));
        let others: Vec<usize> = at_work.map(|slot| slot.claim.item).collect();
        let today = day::left(self.project, self.run);
        let found = means(self.run, &now, item, &others, self.count(), today);
        let (cost_usd, tokens, sessions) = match self.shared_means(&slot, found) {
            Means::Enough { cost_usd, tokens, sessions } => (cost_usd, tokens, sessions),
            Means::Later => {
                self.is_short_since = Some(Instant::now());
                return Ok(Some(slot));
            }
            Means::Tomorrow(reason) => return self.wait_for_next_day(slot, &reason).map(Some),
            Means::None(status, reason) => {
                self.closing.get_or_insert(Closing::Stop(status, reason));
                return Ok(Some(slot));
            }
        };
        self.end_pause()?;
        let project = self.trees.project(&self.trees.of_item(item));
        let files = child::files(self.project, self.run, item, epoch);
        let task = task_path(self.project, self.run).unwrap_or_default();
        let start = Start {
            run: self.run,
            client: &self.options.client,
            project: &project,
            merge_repository: self.trees.merge.own().git_folder(),
            worker: slot.worker,
            item: &now.board.items[item].text,
            number: item + 1,
            attempt: epoch,
            has_spans: self.options.has_spans,
            verify: &now.passed,
            brief: &self.brief(&now, item),
            brief_file: &files.brief,
            task: &task,
            // Of its present run all counts, also what that had used in an earlier attempt.
            sessions: sessions.saturating_add(now.works[item].counted.sessions),
            cost_usd: cost_usd.map(|most| most + now.works[item].counted.cost_usd),
            tokens: tokens.map(|most| most.saturating_add(now.works[item].counted.tokens)),
            output: &files.output,
            errors: &files.errors,
        };
        // Before the process: a kill of both would leave a state that another attempt has brought to its end.
        let earlier_run = child::earlier_run(&project)?;
        self.table.change(|workers| workers.works[item].earlier_run = earlier_run)?;
        // A kill before the process is written down leaves one that holds the lock of its worktree: it is found by that.
        let (client, goes_on) = match start.start() {
            Ok(started) => started,
            Err(error) => return self.failed(&slot, &error.to_string()).map(|()| None),
        };
        self.write_down(&slot, client.identity(), cost_usd, goes_on)?;
        Ok(Some(Slot { stage: Stage::AtWork(client), asked: 0, ..slot }))
    }

    /// What an item's run is told of the whole plan.
    fn brief(&self, now: &Workers, item: usize) -> ItemBrief {
        let verify = &self.run.options.verify;
        let failing = verify.iter().filter(|command| !now.passed.contains(command));
        ItemBrief {
            plan: now.plan.clone(),
            worker_count: self.count(),
            verify: verify.clone(),
            failing: failing.cloned().collect(),
            returned: self.returned(now, item).map(|work| work.clipped()),
        }
    }

    /// The process of an item's run, by which a later one finds it.
    fn write_down(
        &mut self,
        slot: &Slot<'_>,
        known: Option<Identity>,
        allowance_usd: Option<f64>,
        goes_on: bool,
    ) -> Result<(), WorkersError> {
        let Claim { item, epoch } = slot.claim;
        let text = self.table.change(|workers| {
            let work = &mut workers.works[item];
            work.pid = known.map(|known| known.pid);
            work.process_started = known.map_or(0, |known| known.started);
            work.allowance_usd = allowance_usd;
            workers.board.items[item].text.clone()
        })?;
        self.note(JournalEvent::WorkerBegan(WorkerBegan {
            worker: slot.worker,
            item: text,
            number: item + 1,
            attempt: epoch,
            folder: self.trees.of_item(item).display().to_string(),
            goes_on,
        }))
    }

    /// The item's run could not do it: it is tried again, or set aside.
    pub(super) fn failed(&mut self, slot: &Slot<'_>, reason: &str) -> Result<(), WorkersError> {
        let item = slot.claim.item;
        let tree = self.trees.of_item(item);
        let is_ours = self.trees.is_ours(&tree);
        let earlier = self.table.now().works[item].earlier_run.clone();
        let head = is_ours.then(|| followed::keep_work(&self.trees.project(&tree), &earlier)).flatten();
        let work = ReturnedWork {
            reason: ReturnReason::Unfinished,
            base: self.table.now().works[item].beyond.clone(),
            end: head.clone().unwrap_or_default(),
            output: reason.to_owned(),
            ..ReturnedWork::default()
        };
        // Before the record: whoever takes the item up next looks here.
        returned::keep(self.project, self.run, item, &work)?;
        let is_set_aside = self.table.change(|workers| {
            let _ = fail(&mut workers.board, slot.claim, reason);
            workers.works[item].pid = None;
            // What it has committed is where the next attempt begins.
            if let Some(head) = head {
                workers.works[item].start = head;
            }
            workers.tell(item, slot.claim.epoch, ItemOutcome::Failed(reason.to_owned()));
            matches!(workers.board.items[item].stage, plimsoll_domain::board::Stage::Aside { .. })
        })?;
        let text = self.table.now().board.items[item].text.clone();
        let (item, reason) = (text, reason.to_owned());
        self.note(JournalEvent::SentBack(SentBack { item, reason, is_set_aside }))
    }

    /// Takes the next item, if a worker is free.
    pub(super) fn take_up(&mut self) -> Result<(), WorkersError> {
        let free = (0..self.count()).find(|place| self.slots[*place].is_none());
        let (Some(place), None) = (free, &self.closing) else { return Ok(()) };
        let moment = self.table.moment();
        if self.table.is_paused() {
            return Ok(());
        }
        if let Some(shared) = &self.table.shared {
            return self.take_up_shared(shared, place);
        }
        if outlook(&self.table.now().board, moment) != Outlook::Free || !self.takes_its_turn(place + 1) {
            return Ok(());
        }
        let held: Vec<Claim> = self.slots.iter().flatten().map(|slot| slot.claim).collect();
        let target = self.table.now().target_branch();
        let tip = target.ok().and_then(|target| worktree::end_of(&self.trees.ground.repository, &target));
        let tip = tip.map_or(String::new(), String::from);
        let goes_on = |item| child::goes_on_there(&self.trees.project(&self.trees.of_item(item)));
        let taken = self.table.change(|workers| {
            for held in held {
                // One that is fenced has landed: its run is ended when it is tidied up.
                let _ = renew(&mut workers.board, held, moment);
            }
            let claim = claim(&mut workers.board, &format!("worker {}", place + 1), moment)?;
            workers.count_before(claim.item, goes_on(claim.item));
            let work = &mut workers.works[claim.item];
            work.worker = place + 1;
            work.pid = None;
            if work.start.is_empty() {
                (work.start, work.beyond) = (tip.clone(), tip);
            }
            Some(claim)
        })?;
        let Some(claim) = taken else { return Ok(()) };
        let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: 0 };
        self.slots[place] = Some(self.prepare(slot)?);
        Ok(())
    }

    /// The same where others take items, too: what is seen here says when it is worth asking.
    fn take_up_shared(&mut self, shared: &'env Shared, place: usize) -> Result<(), WorkersError> {
        let now = self.table.now();
        // An answer that was lost on its way has given it to us.
        let is_at_work = |item: usize| self.slots.iter().flatten().any(|slot| slot.claim.item == item);
        let lost = (0..now.board.items.len())
            .find(|item| is_leased_by(&now, *item).is_some() && !is_at_work(*item))
            .map(|item| Claim { item, epoch: now.board.items[item].epoch })
            .filter(|claim| self.table.is_held(*claim));
        let is_free = outlook(&now.board, self.table.moment()) == Outlook::Free;
        let is_soon = self.claimed.is_some_and(|at| at.elapsed() < CLAIM_INTERVAL);
        let may = (shared.trouble().is_none() || shared.is_to_be_tried(&now)) && {
            let known = shared.known();
            !known.is_draining && known.ended.is_none()
        };
        if !may || is_soon || lost.is_none() && !is_free || !self.takes_its_turn(place + 1) {
            return Ok(());
        }
        self.claimed = Some(Instant::now());
        let held: Vec<Claim> = self.slots.iter().flatten().map(|slot| slot.claim).collect();
        let name = format!("{}/{}", now.member.unwrap_or_default().name, place + 1);
        let taken = shared.ask(|board| {
            // A machine that slept may find its own leases free: they are its own first.
            for held in held {
                let _ = board.renew(held);
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
        let Ok(Some((claim, item))) = taken else { return Ok(()) };
        self.claimed = None;
        self.take(place, claim, item)
    }

    fn take(&mut self, place: usize, claim: Claim, item: Option<SharedItem>) -> Result<(), WorkersError> {
        let goes_on = child::goes_on_there(&self.trees.project(&self.trees.of_item(claim.item)));
        self.table.change(|workers| {
            if let Some(item) = item {
                let text = std::mem::take(&mut workers.board.items[claim.item].text);
                workers.board.items[claim.item] = plimsoll_domain::board::BoardItem { text, ..item.row };
                let work = &mut workers.works[claim.item];
                (work.start, work.beyond, work.answered) = (item.start, item.beyond, item.answered);
            }
            workers.count_before(claim.item, goes_on);
            let work = &mut workers.works[claim.item];
            (work.worker, work.epoch, work.pid) = (place + 1, claim.epoch, None);
        })?;
        let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: 0 };
        self.slots[place] = Some(self.prepare(slot)?);
        Ok(())
    }

    /// What a run may use, with what all machines together may use.
    fn shared_means(&mut self, slot: &Slot<'_>, found: Means) -> Means {
        let (Some(shared), Means::Enough { cost_usd, tokens, sessions }) = (&self.table.shared, &found)
        else {
            return found;
        };
        let now = self.table.now();
        let used = now.works[slot.claim.item].now;
        let news = WorkerNews {
            worker: slot.worker,
            item: Some(slot.claim.item),
            cost_usd: now.cost_of_worker(slot.worker),
            ..WorkerNews::default()
        };
        // A run of one item that takes more has lost its way, however many sessions all may have.
        let sessions = (*sessions).min(SESSIONS + used.sessions);
        let (cost_usd, tokens) = (*cost_usd, *tokens);
        match shared.reserve(&news, used.sessions, LEAST_USD) {
            Ok(Reserved::Share { usd, sessions: more }) => Means::Enough {
                cost_usd: usd.map(|share| used.cost_usd + share).into_iter().chain(cost_usd).reduce(f64::min),
                tokens,
                sessions: more.map_or(sessions, |more| sessions.min(used.sessions.saturating_add(more))),
            },
            Ok(Reserved::Nothing(used_up)) => {
                let (status, reason) = used_up_by_fleet(used_up);
                Means::None(status, reason)
            }
            Ok(Reserved::Later) | Err(_) => Means::Later,
        }
    }
}

/// What an item begins at, with what its earlier sessions have left: others may have pushed it.
fn brought(
    table: &Table,
    shared: &Shared,
    mut wanted: Wanted,
    give_up: &dyn Fn() -> bool,
) -> Result<Wanted, TreeError> {
    let tip = shared.target.fetch_with(&[wanted.item], give_up)?;
    // A commit that nobody has pushed after all, or that is gone there: then at the target's end.
    let is_there = wanted.begins_at.as_ref().is_some_and(|commit| shared.target.bring_to_clone(commit));
    if !is_there {
        wanted.begins_at = Some(tip.clone());
        table.change(|workers| {
            let work = &mut workers.works[wanted.item];
            (work.start, work.beyond) = (tip.to_string(), tip.into());
        })?;
    }
    wanted.plan.notes.extend(shared.target.notes(wanted.item));
    if let Some(work) = shared.target.refusal(wanted.item).as_deref().and_then(returned::parse) {
        wanted.returned = Some(work);
    }
    Ok(wanted)
}

/// Why a machine leaves a fleet that may begin nothing more.
pub(super) fn used_up_by_fleet(used_up: UsedUp) -> (Status, String) {
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
