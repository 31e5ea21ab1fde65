//! What follows when an item's run has ended: its work is offered, or the item waits, is tried again, or set aside.

use super::item_work::ItemWork;
use super::{Closing, Scheduler};
use crate::run::notify::{notify, notify_of_questions};
use crate::run::{Progress, day};
use crate::workers::WorkersError;
use crate::workers::board::Pause;
use crate::workers::child::{self, Outcome};
use crate::workers::slot::{Slot, Stage};
use plimsoll_domain::journal::{JournalEvent, WorkerEnded};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{Exit, Status, Verdict};
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::Claim;
use plimsoll_store::{clock, state_file};

/// What a worker does once its item's run has ended; none for nothing.
type Ended<'scope> = Result<Option<Slot<'scope>>, WorkersError>;

impl<'scope> Scheduler<'scope, '_> {
    /// The item's run has ended.
    pub(super) fn handle_end_of_run(&mut self, slot: Slot<'scope>, exit: &Exit) -> Ended<'scope> {
        self.is_short_since = None;
        let Claim { item, epoch } = slot.claim;
        let tree = self.run.trees.of_item(item);
        if self.run.trees.is_ours(&tree) {
            // A session that was ended in the middle of a commit.
            worktree::take_over(&tree);
        }
        self.run.target.carry_notes(item)?;
        let project = self.run.trees.project(&tree);
        let errors = child::files(self.run.context.project, self.run.state, item, epoch).errors;
        let earlier = self.run.record().works[item].earlier_run.clone();
        let outcome = child::outcome(&project, &earlier, exit, &errors);
        let used = child::used(&project, &earlier);
        self.run.change(|workers| {
            let work = &mut workers.works[item];
            work.now = used.beyond(work.counted);
        })?;
        self.report_end_of_run(&slot, &outcome)?;
        if !self.run.board.is_held(slot.claim) {
            self.keep_branch(&slot)?;
            return Ok(None);
        }
        let rest = self.handle_outcome(slot, outcome);
        self.run.show()?;
        rest
    }

    fn handle_outcome(&mut self, slot: Slot<'scope>, outcome: Outcome) -> Ended<'scope> {
        match outcome {
            Outcome::Done => self.offer_work(&slot).map(|()| None),
            Outcome::Question(question) => self.park_item(&slot, question).map(|()| None),
            Outcome::Limit { until, reason, pauses } => {
                let end = child::pause_end(until.as_ref(), pauses);
                self.pause_all(slot, PauseKind::Limit, end, &reason, pauses).map(Some)
            }
            // There may be more of it once others have ended.
            Outcome::Budget => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::OutOfTime => self.close_and_release(
                &slot,
                Closing::Stop(Status::Deadline, "the deadline has come".to_owned()),
            ),
            Outcome::OutOfSessions => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::Fatal(reason) => {
                self.close_and_release(&slot, Closing::Stop(Status::FatalError, reason))
            }
            // By us: the item stays its worker's, and the next `--resume` goes on with it.
            Outcome::Interrupted if self.closing.is_some() => self.release(&slot).map(|()| None),
            Outcome::Interrupted => Ok(Some(Slot { stage: Stage::Waiting, ..slot })),
            Outcome::Failed(_) if self.closing.is_some() => self.release(&slot).map(|()| None),
            Outcome::Failed(reason) => self.record_failure(&slot, &reason).map(|()| None),
        }
    }

    /// Nothing new begins any more. Once the user has repaired what it was, the item's run goes on.
    fn close_and_release(&mut self, slot: &Slot<'_>, closing: Closing) -> Ended<'scope> {
        self.run.change(|workers| workers.works[slot.claim.item].pid = None)?;
        self.closing.get_or_insert(closing);
        self.release(slot)?;
        Ok(None)
    }

    /// Nobody works on the item any more, and it is not done.
    pub(super) fn release(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        Ok(self.run.board.release(slot.claim, &self.work_of(slot))?)
    }

    /// Somebody else has the item by now.
    pub(super) fn keep_branch(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        Ok(self.run.board.keep_branch(slot.claim, &self.work_of(slot))?)
    }

    fn work_of(&self, slot: &Slot<'_>) -> ItemWork<'_> {
        ItemWork { run: self.run, claim: slot.claim }
    }

    fn report_end_of_run(&mut self, slot: &Slot<'_>, outcome: &Outcome) -> Result<(), WorkersError> {
        let now = self.run.record();
        let (row, work) = (&now.board.items[slot.claim.item], &now.works[slot.claim.item]);
        let project = self.run.project_of(slot.claim.item);
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
        self.reporter.note(JournalEvent::WorkerEnded(WorkerEnded {
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
    fn offer_work(&mut self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        match self.work_of(slot).commit() {
            Ok(commit) => {
                self.run.board.offer(slot.claim, &commit)?;
                self.learn_cost(slot)
            }
            Err(why) => self.record_failure(slot, &why.to_string()),
        }
    }

    /// What the item took, for later estimates.
    fn learn_cost(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        let project = self.run.project_of(slot.claim.item);
        let cost = state_file::load(&project, None)?.and_then(|state| state.items.growth.last().cloned());
        if let Some(cost) = cost {
            self.run.context.update_lazily(|state| state.note_growth(cost))?;
        }
        Ok(())
    }

    /// The item waits for the user.
    fn park_item(&mut self, slot: &Slot<'_>, question: String) -> Result<(), WorkersError> {
        self.run.board.park(slot.claim, &question, &self.work_of(slot))?;
        self.run.show()?;
        let item = self.run.record().board.items[slot.claim.item].text.clone();
        let asked = OpenQuestion { item, question, iteration: 0, told: true };
        self.reporter.tell(&Progress::Parked { question: &asked });
        let event = JournalEvent::Parked { item: asked.item.clone(), question: asked.question.clone() };
        self.reporter.record(event)?;
        if let Some(state) = self.run.context.load_state()? {
            notify_of_questions(self.run.context.project, &state, &[asked]);
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
        self.pause_all(slot, PauseKind::Quota, u64::try_from(end).unwrap_or_default(), reason, 1)
    }

    /// A limit that one has met holds for all until this moment, and costs nobody a try.
    fn pause_all(
        &mut self,
        mut slot: Slot<'scope>,
        kind: PauseKind,
        end: u64,
        reason: &str,
        pauses: u32,
    ) -> Result<Slot<'scope>, WorkersError> {
        self.turns.reset();
        let is_of_day =
            day::is_spent(self.run.context.project, self.run.state).is_some() || kind == PauseKind::Quota;
        let is_new = self.run.board.pause(&Pause { until: end, is_of_day })?;
        if !self.run.options.wait {
            self.closing.get_or_insert(Closing::Pause(kind, reason.to_owned()));
        } else if is_new && let Some(until) = clock::at(end / 1_000) {
            let seconds = u64::try_from((until - clock::now()).num_seconds()).unwrap_or_default();
            self.reporter.tell(&Progress::Pause { until, seconds, reason });
            let verdict =
                Verdict::Pause { kind, until: Some(clock::stamp(until)), reason: reason.to_owned() };
            self.is_paused = true;
            let state = self.run.context.update(|state| {
                state.lifecycle.wait_for(&verdict);
                state.clone()
            })?;
            if let (Some(state), true) = (state, pauses <= 1) {
                notify(self.run.context.project, &state, &verdict);
            }
        }
        (slot.stage, slot.asked) = (Stage::Waiting, None);
        Ok(slot)
    }
}
