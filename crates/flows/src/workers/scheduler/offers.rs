//! What follows when an item's run has ended: its work is offered, or the item waits, is tried again, or set aside.

use super::followed::living;
use super::{Closing, Ended, Scheduler};
use crate::our_files::is_ours;
use crate::run::branch::allowed_programs;
use crate::run::notify::{notify, notify_of_questions};
use crate::run::{Progress, day};
use crate::workers::WorkersError;
use crate::workers::board::show;
use crate::workers::child::{self, Outcome};
use crate::workers::records;
use crate::workers::session_notes::carry_notes;
use crate::workers::shared::local_moment;
use crate::workers::slot::{Slot, Stage};
use plimsoll_domain::board::{Aside, Stage as BoardStage};
use plimsoll_domain::git_names::{CommitId, InvalidBranchName, InvalidCommitId};
use plimsoll_domain::journal::{JournalEvent, WorkerEnded};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{ItemOutcome, Workers};
use plimsoll_domain::{Exit, Status, Verdict};
use plimsoll_launcher::branch::{Head, head};
use plimsoll_launcher::wip::{Wip, commit_wip, uncommitted_files};
use plimsoll_launcher::{git, worktree};
use plimsoll_policy::workers::{Claim, give_back, offer, pause, set_aside};
use plimsoll_store::{Durability, Project, clock, state_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many files that a worktree stays for are named.
const MAX_NAMED_FILES: usize = 10;

/// Why the work of a run that is done cannot be taken.
#[derive(Debug, thiserror::Error)]
enum NotOffered {
    #[error("its worktree belongs to another repository by now")]
    OtherRepository,
    #[error("what it left uncommitted cannot be committed: {0}")]
    Uncommitted(String),
    #[error("its worktree stands on none of the item's commits")]
    Elsewhere,
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    BadBranch(#[from] InvalidBranchName),
}

impl<'scope> Scheduler<'scope, '_> {
    /// The item's run has ended.
    pub(super) fn ended(&mut self, slot: Slot<'scope>, exit: &Exit) -> Ended<'scope> {
        self.is_short_since = None;
        let item = slot.claim.item;
        let tree = self.trees.of_item(item);
        if self.trees.is_ours(&tree) {
            // A session that was ended in the middle of a commit.
            worktree::take_over(&tree);
        }
        carry_notes(self.project, &self.table.now(), self.trees, item)?;
        let project = self.trees.project(&tree);
        let epoch = slot.claim.epoch;
        let errors = child::files(self.project, self.run, item, epoch).errors;
        let earlier = self.table.now().works[item].earlier_run.clone();
        let outcome = child::outcome(&project, &earlier, exit, &errors);
        let used = child::used(&project, &earlier);
        self.table.change(|workers| {
            let work = &mut workers.works[item];
            work.now = used.beyond(work.counted);
        })?;
        self.tell_end(&slot, &outcome)?;
        if !self.table.is_held(slot.claim) {
            self.keep(&slot)?;
            return Ok(None);
        }
        let rest = match outcome {
            Outcome::Done => self.offer(&slot).map(|()| None),
            Outcome::Question(question) => self.ask(&slot, question).map(|()| None),
            Outcome::Limit { until, reason, pauses } => {
                let end = child::pause_end(until.as_ref(), pauses);
                self.pause(slot, PauseKind::Limit, end, &reason, pauses).map(Some)
            }
            // There may be more of it once others have ended.
            Outcome::Budget => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::OutOfTime => {
                self.close(&slot, Closing::Stop(Status::Deadline, "the deadline has come".to_owned()))
            }
            Outcome::OutOfSessions => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::Fatal(reason) => self.close(&slot, Closing::Stop(Status::FatalError, reason)),
            // By us: the item stays its worker's, and the next `--resume` goes on with it.
            Outcome::Interrupted if self.closing.is_some() => self.leave(&slot).map(|()| None),
            Outcome::Interrupted => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::Failed(_) if self.closing.is_some() => self.leave(&slot).map(|()| None),
            Outcome::Failed(reason) => self.failed(&slot, &reason).map(|()| None),
        };
        show(self.project, self.run, self.table)?;
        rest
    }

    /// Nothing new begins any more. Once the user has repaired what it was, the item's run goes on.
    fn close(&mut self, slot: &Slot<'_>, closing: Closing) -> Ended<'scope> {
        self.table.change(|workers| workers.works[slot.claim.item].pid = None)?;
        self.closing.get_or_insert(closing);
        self.leave(slot)?;
        Ok(None)
    }

    /// Nobody works on the item any more, and it is not done. On this machine alone it stays its worker's; where others could, it
    /// goes back, and the next one begins at what was done.
    pub(super) fn leave(&mut self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        self.hand_over(slot, ItemOutcome::GivenBack)
    }

    /// Somebody else has the item by now: what was done here is kept on its own branch.
    pub(super) fn keep(&mut self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        self.hand_over(slot, ItemOutcome::Kept)
    }

    fn hand_over(&mut self, slot: &Slot<'_>, outcome: ItemOutcome) -> Result<(), WorkersError> {
        if self.table.shared.is_none() {
            return Ok(());
        }
        let done = self.work_of(slot).ok();
        let Claim { item, epoch } = slot.claim;
        self.table.change(|workers| {
            workers.works[item].pid = None;
            if let Some(done) = done {
                workers.works[item].start = done;
            }
            if outcome == ItemOutcome::GivenBack {
                let _ = give_back(&mut workers.board, slot.claim);
            }
            workers.tell(item, epoch, outcome);
        })?;
        Ok(())
    }

    fn tell_end(&mut self, slot: &Slot<'_>, outcome: &Outcome) -> Result<(), WorkersError> {
        let now = self.table.now();
        let (row, work) = (&now.board.items[slot.claim.item], &now.works[slot.claim.item]);
        let project = self.trees.project(&self.trees.of_item(slot.claim.item));
        let how = match outcome {
            Outcome::Done => "is done".to_owned(),
            Outcome::Question(question) => format!("waits for an answer: {}", clip(&one_line(question), 200)),
            Outcome::Limit { reason, .. } => format!("paused: {}", clip(reason, 200)),
            Outcome::Budget => "has used its share of the budget".to_owned(),
            Outcome::OutOfTime => "was ended at the deadline".to_owned(),
            Outcome::OutOfSessions => "has used all sessions".to_owned(),
            Outcome::Fatal(reason) => format!("cannot go on: {}", clip(reason, 200)),
            Outcome::Interrupted => "was asked to end".to_owned(),
            Outcome::Failed(reason) => format!("failed: {}", clip(reason, 200)),
        };
        self.note(JournalEvent::WorkerEnded(WorkerEnded {
            worker: slot.worker,
            item: row.text.clone(),
            how,
            cost_usd: work.before.cost_usd + work.now.cost_usd,
            cost_basis: work.before.cost_basis.max(work.now.cost_basis),
            sessions: work.before.sessions + work.now.sessions,
            item_run_id: child::run_id(&project, &work.earlier_run),
        }))
    }

    /// Offers what the run has done, with what it left uncommitted.
    fn offer(&mut self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        match self.work_of(slot) {
            Ok(commit) => {
                self.table.change(|workers| {
                    workers.works[slot.claim.item].pid = None;
                    // Fenced: it has landed meanwhile.
                    let _ = offer(&mut workers.board, slot.claim, &commit);
                    if workers.member.is_some() {
                        workers.works[slot.claim.item].start = commit;
                    }
                    workers.tell(slot.claim.item, slot.claim.epoch, ItemOutcome::Offered);
                })?;
                self.learn_cost(slot)
            }
            Err(why) => self.failed(slot, &why.to_string()),
        }
    }

    /// What the item took, for later estimates.
    fn learn_cost(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        let project = self.trees.project(&self.trees.of_item(slot.claim.item));
        let cost = state_file::load(&project, None)?.and_then(|state| state.items.growth.last().cloned());
        if let Some(cost) = cost {
            state_file::update(self.project, Some(&self.run.run_id), Durability::Lazy, |state| {
                state.note_growth(cost);
            })?;
        }
        Ok(())
    }

    /// The end of the item's commits, which its branch names: a kill after this finds them there.
    fn work_of(&self, slot: &Slot<'_>) -> Result<String, NotOffered> {
        let now = self.table.now();
        let item = slot.claim.item;
        let tree = self.trees.of_item(item);
        let project = self.trees.project(&tree);
        let repository = &self.trees.ground.repository;
        if !self.trees.is_ours(&tree) {
            return Err(NotOffered::OtherRepository);
        }
        let message = format!(
            "plimsoll: what was left uncommitted of {}",
            clip(&one_line(&now.board.items[item].text), 60)
        );
        let allowed = allowed_programs(self.run.options.commit_hooks);
        if let Wip::Refused { why } = commit_wip(project.root(), &message, &is_ours, allowed) {
            return Err(NotOffered::Uncommitted(why));
        }
        let end = git::head(&tree).ok_or(NotOffered::Elsewhere)?;
        let branch = now.attempt_branch(item, slot.claim.epoch)?;
        let beyond = CommitId::parse(&now.works[item].beyond)?;
        if !worktree::contains(repository, &end, &beyond) {
            return Err(NotOffered::Elsewhere);
        }
        // A session may have begun a branch of its own: its work is this one's.
        let is_on_it = head(&tree).is_ok_and(|head| head == Head::Branch(branch.to_string()));
        let before = worktree::end_of(repository, &branch);
        if !is_on_it && !worktree::move_branch(repository, &branch, before.as_ref(), &end) {
            return Err(NotOffered::Elsewhere);
        }
        Ok(end.into())
    }

    /// The item waits for the user.
    fn ask(&mut self, slot: &Slot<'_>, question: String) -> Result<(), WorkersError> {
        let item = slot.claim.item;
        // Another machine may go on with it.
        let done = self.table.shared.as_ref().and_then(|_| self.work_of(slot).ok());
        self.table.change(|workers| {
            workers.works[item].pid = None;
            // What it has done so far is where it goes on.
            let _ = set_aside(&mut workers.board, slot.claim, Aside::Question(question.clone()));
        })?;
        let head = done.or_else(|| git::head(&self.trees.of_item(item)).map(String::from));
        self.table.change(|workers| {
            workers.works[item].start = head.unwrap_or_default();
            workers.tell(item, slot.claim.epoch, ItemOutcome::Asked(plimsoll_secrets::without(&question)));
        })?;
        show(self.project, self.run, self.table)?;
        let text = self.table.now().board.items[item].text.clone();
        let asked = OpenQuestion { item: text, question, iteration: 0, told: true };
        self.watcher.tell(&Progress::Parked { question: &asked });
        self.record(JournalEvent::Parked { item: asked.item.clone(), question: asked.question.clone() })?;
        if let Some(state) = state_file::load(self.project, Some(&self.run.run_id))? {
            notify_of_questions(self.project, &state, &[asked]);
        }
        Ok(())
    }

    /// What all runs of the user may spend on this day is spent.
    pub(super) fn wait_for_next_day(
        &mut self,
        slot: Slot<'scope>,
        reason: &str,
    ) -> Result<Slot<'scope>, WorkersError> {
        let end = clock::end_of_day(clock::now()).timestamp_millis();
        self.pause(slot, PauseKind::Quota, u64::try_from(end).unwrap_or_default(), reason, 1)
    }

    /// A limit that one has met holds for all until this moment, and costs nobody a try.
    fn pause(
        &mut self,
        mut slot: Slot<'scope>,
        kind: PauseKind,
        end: u64,
        reason: &str,
        pauses: u32,
    ) -> Result<Slot<'scope>, WorkersError> {
        self.proven.clear();
        let is_new = end > self.table.paused_until();
        let is_of_day = day::is_spent(self.project, self.run).is_some() || kind == PauseKind::Quota;
        let of_board = self.table.shared.as_ref().map_or(end, |shared| shared.of_board(end));
        self.table.change(|workers| {
            match &mut workers.member {
                // What this machine's user may spend on a day holds up nobody else.
                Some(member) if is_of_day => member.paused_until = member.paused_until.max(end),
                _ => pause(&mut workers.board, of_board),
            }
            if is_new {
                workers.waits_for_next_day = is_of_day;
            }
        })?;
        if let (Some(shared), false) = (&self.table.shared, is_of_day) {
            // By length: the clocks differ. Where the board is away, others meet the limit themselves.
            let length = Duration::from_millis(end.saturating_sub(local_moment()));
            let _ = shared.ask(|board| board.pause(length));
        }
        if !self.options.wait {
            self.closing.get_or_insert(Closing::Pause(kind, reason.to_owned()));
        } else if is_new && let Some(until) = clock::at(end / 1_000) {
            let seconds = u64::try_from((until - clock::now()).num_seconds()).unwrap_or_default();
            self.watcher.tell(&Progress::Pause { until, seconds, reason });
            let verdict =
                Verdict::Pause { kind, until: Some(clock::stamp(until)), reason: reason.to_owned() };
            self.is_paused = true;
            let state =
                state_file::update(self.project, Some(&self.run.run_id), Durability::Durable, |state| {
                    state.lifecycle.wait_for(&verdict);
                    state.clone()
                })?;
            if let (Some(state), true) = (state, pauses <= 1) {
                notify(self.project, &state, &verdict);
            }
        }
        (slot.stage, slot.asked) = (Stage::Waiting, 0);
        Ok(slot)
    }

    /// Takes away the worktrees of what is merged: their records first. One that has to stay is named.
    pub(super) fn tidy(&mut self) -> Result<(), WorkersError> {
        let now = self.table.now();
        for (item, row) in now.board.items.iter().enumerate() {
            let tree = self.trees.of_item(item);
            // What was never taken here has no worktree here.
            let is_of_others = now.member.is_some() && now.works[item].epoch == 0;
            let is_due = row.stage == BoardStage::Merged && !is_of_others && !self.kept.contains(&item);
            if !is_due || !plimsoll_store::disk::exists(&tree) {
                continue;
            }
            let project = self.trees.project(&tree);
            // Work that was landed by another attempt: the late one ends before its folder goes.
            if living(&project, &now.works[item]).is_some() {
                continue;
            }
            // A client that outlived its run may have written since.
            carry_notes(self.project, &now, self.trees, item)?;
            let moved = records::move_to(&project, self.project).map_err(|error| error.to_string());
            let removed = moved
                .and_then(|()| self.describe_uncommitted(&project, &tree).map_or(Ok(()), Err))
                .and_then(|()| self.trees.remove(&tree).map_err(|error| error.to_string()));
            match removed {
                Ok(()) => self.remove_branches(&now, item),
                Err(why) => {
                    let words = format!(
                        "the worktree of \"{}\" stays at {}: {why}",
                        one_line(&row.text),
                        tree.display()
                    );
                    self.watcher.tell(&Progress::Note(words));
                    self.kept.insert(item);
                }
            }
        }
        Ok(())
    }

    /// Names the files of a worktree that no commit has, because they look like secrets, are large, or are under a filter that may
    /// not run; `None` if there is no such file. The plan is not among them: what sessions wrote into it was carried over.
    fn describe_uncommitted(&self, project: &Project, tree: &Path) -> Option<String> {
        let allowed = allowed_programs(self.run.options.commit_hooks);
        let plans: Vec<PathBuf> =
            self.trees.plan_files.all().iter().map(|plan| tree.join(plan.as_str())).collect();
        let is_known = |name: &str| is_ours(name) || plans.contains(&project.root().join(name));
        let Some(files) = uncommitted_files(project.root(), &is_known, allowed) else {
            return Some("git does not say what is uncommitted there".to_owned());
        };
        let named: Vec<&str> = files.iter().take(MAX_NAMED_FILES).map(String::as_str).collect();
        let more = files.len() - named.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        (!files.is_empty())
            .then(|| format!("these files are not committed: {}{more}", one_line(&named.join(", "))))
    }

    /// The branches of an item that is merged. Of an earlier attempt it stays if anything of it is not on the run's branch: what
    /// was done anew after a conflict may have lost a line.
    fn remove_branches(&self, now: &Workers, item: usize) {
        let repository = &self.trees.ground.repository;
        let of_run = || worktree::end_of(repository, &now.target_branch().ok()?);
        let target = self.table.shared.as_ref().map_or_else(of_run, |shared| shared.target.seen());
        let (own, plan_files) = (self.trees.merge.own(), self.trees.plan_files.all());
        for epoch in 1..=now.board.items[item].epoch {
            let Ok(branch) = now.attempt_branch(item, epoch) else { continue };
            let Some(end) = worktree::end_of(repository, &branch) else { continue };
            let is_all_merged = || {
                let target = target.as_ref().filter(|_| own.take(&end).is_ok());
                target.is_some_and(|target| own.is_all_on(target, &end, &plan_files))
            };
            if epoch == now.board.items[item].epoch || is_all_merged() {
                worktree::remove_branch(repository, &branch, &end);
            }
        }
    }
}
