//! Puts results together: rebased onto the branch's end in a worktree that nobody works in, verified there, and landed by
//! moving the branch from where it was seen. It runs in a thread of its own, because verify commands take long.

mod refusal;

use crate::run::verify::verify;
use crate::workers::connection::Refused;
use crate::workers::context::ParallelRun;
use crate::workers::error::MergeError;
use crate::workers::ground::ITEM_PLAN;
use crate::workers::session_notes::with_shown_notes;
use crate::workers::shown_plan::ticks;
use crate::workers::tree::Trees;
use plimsoll_domain::board::{BoardItem, Stage};
use plimsoll_domain::format::Format;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::journal::{JournalEvent, Landed, SentBack};
use plimsoll_domain::receipt::{Receipt, ReceiptItem, trailers, with_trailers};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{TodoList, plan_edit};
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::worktree::{Rebased, WorktreeError};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::workers::queue::{self, Bench};
use plimsoll_policy::workers::{Claim, note_writes};
use plimsoll_store::{Durability, Project, clock, disk, receipts, records};
use refusal::Refusal;
use std::sync::mpsc::Sender;

/// How much of git's words, or of a command's output, stands in its notes.
const NOTE: usize = 350;

/// One round over everything that waits.
pub(super) struct Merger<'a> {
    run: ParallelRun<'a>,
    give_up: &'a (dyn Fn() -> bool + Sync),
    news: Sender<JournalEvent>,
    /// True to merge also what waits until an item that was sent back is merged.
    takes_all: bool,
    epoch: u64,
    tip: CommitId,
    /// The end of what was stacked last.
    end: CommitId,
    stacked: Vec<Stacked>,
    passed: Vec<String>,
}

struct Stacked {
    item: usize,
    /// Its own last commit on the branch, without the tick.
    bare: CommitId,
    /// The last commit that belongs to it.
    commit: CommitId,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        run: ParallelRun<'a>,
        give_up: &'a (dyn Fn() -> bool + Sync),
        news: Sender<JournalEvent>,
        takes_all: bool,
    ) -> Merger<'a> {
        let (tip, end) = (run.trees.ground.commit.clone(), run.trees.ground.commit.clone());
        Merger { run, give_up, news, takes_all, epoch: 0, tip, end, stacked: Vec::new(), passed: Vec::new() }
    }

    /// Lands what can be landed, and sends the rest back.
    pub(super) fn merge(&mut self) -> Result<(), MergeError> {
        let Some(epoch) = self.run.board.become_merger(self.give_up)? else { return Ok(()) };
        self.epoch = epoch;
        let items = self.run.board.items_to_merge(self.takes_all);
        queue::merge(self, &items)
    }

    /// Counts as merged what is on the branch by now; returns the branch's end.
    pub(super) fn settle(&mut self) -> Result<CommitId, MergeError> {
        let tip = self.run.target.fetch_tip(&[], self.give_up)?;
        self.settle_at(&tip)?;
        Ok(tip)
    }

    fn settle_at(&self, tip: &CommitId) -> Result<(), MergeError> {
        let repository = self.merge_repository();
        // Git is asked before the record is written: nobody else moves a stage on.
        let is_in =
            |commit: &str| CommitId::parse(commit).is_ok_and(|commit| repository.contains(tip, &commit));
        let now = self.run.record();
        let is_open = |item: usize| now.board.items.get(item).is_some_and(|row| row.stage != Stage::Merged);
        let mut landed = self.run.target.landings();
        // Git is asked about what is open alone: a long plan has landed often.
        landed.retain(|(item, _)| is_open(*item));
        if !landed.is_empty() {
            // What was there when the run began is none of its work.
            let began_at = CommitId::parse(&now.began_at)?;
            landed.retain(|(_, commit)| {
                repository.contains(tip, commit) && !repository.contains(&began_at, commit)
            });
        }
        self.run.board.settle(&is_in, &landed, self.give_up)
    }

    /// Which verify commands pass on the branch as it is, before the first item.
    pub(super) fn learn(&mut self) -> Result<(), MergeError> {
        self.end = self.settle()?;
        self.merge_repository().check_out(&self.end)?;
        self.verify().map(drop)?;
        let passed = std::mem::take(&mut self.passed);
        self.note_passed(&passed)
    }

    fn note_passed(&self, passed: &[String]) -> Result<(), MergeError> {
        let known = self.run.record().passed;
        if passed.iter().all(|command| known.contains(command)) {
            return Ok(());
        }
        self.run.board.note_passed(passed, self.give_up)
    }

    /// What is run on a result, and what of it must pass: what has passed on the branch, and the checks that the user allowed of
    /// items that are merged or are in the result.
    fn commands(&self) -> (Vec<String>, Vec<String>) {
        let now = self.run.record();
        let is_in = |(place, row): &(usize, &BoardItem)| {
            row.stage == Stage::Merged || self.stacked.iter().any(|one| one.item == *place)
        };
        let items = now.board.items.iter().enumerate().filter(is_in);
        let checks: Vec<String> =
            items.filter_map(|(_, row)| Some(self.run.state.check_of(&row.text)?.command.clone())).collect();
        let mut commands = self.run.state.options.verify.clone();
        commands
            .extend(checks.iter().filter(|check| !self.run.state.options.verify.contains(check)).cloned());
        commands.dedup();
        (commands, now.passed.into_iter().chain(checks).collect())
    }

    fn merge_repository(&self) -> &MergeRepository {
        &self.run.trees.merge
    }

    fn project(&self) -> Project {
        self.run.trees.project(&self.run.trees.of_merger())
    }

    /// Moves the target to what was stacked. False if it has moved meanwhile.
    fn advance(&self, landing: &[(usize, &CommitId)]) -> Result<bool, MergeError> {
        self.run.target.advance(&self.tip, &self.end, landing, self.give_up)
    }

    fn put(&mut self, item: usize) -> Result<bool, MergeError> {
        let now = self.run.record();
        let (row, work) = (&now.board.items[item], &now.works[item]);
        let Stage::Offered { commit } = &row.stage else { return Ok(false) };
        let (commit, beyond) = (CommitId::parse(commit)?, CommitId::parse(&work.beyond)?);
        let repository = self.merge_repository();
        let taken = self.run.target.take_work(&commit);
        // The user's plan is changed by the merger alone, and the plan of the item's own run is in no commit.
        let files = self.run.trees.plan_files.all();
        let work = taken.and_then(|()| repository.own().without_files(&beyond, &commit, &files));
        if let Ok(work) = &work {
            let written = repository.changed_files(&beyond, work);
            self.run.change(|workers| note_writes(&mut workers.board, item, &written))?;
        }
        if !self.run.board.items_to_merge(self.takes_all).contains(&item) {
            return Ok(false);
        }
        let rebased = work.clone().map_err(WorktreeError::from);
        let rebased = rebased.and_then(|work| repository.rebase(&work, &beyond, &self.end));
        let bare = match rebased {
            Ok(Rebased::Onto(end)) => end,
            Ok(Rebased::Nothing) => {
                repository.check_out(&self.end)?;
                self.end.clone()
            }
            // With what is not on the branch yet: who began anew now would begin before it, and meet it again. The next round sees
            // what has landed.
            Ok(Rebased::Conflict { .. }) if self.end != self.tip => return Ok(false),
            Ok(Rebased::Conflict { files, words }) => {
                // The next session is led to the work without the changes of the plan, if its repository can have that.
                let work = work.ok().filter(|work| self.run.target.publish_work(work)).unwrap_or(commit);
                let name = self.run.target.work_name(&now, item, &work);
                let back = Refusal::conflict(repository, &name, [&work, &beyond, &self.end], &files, &words);
                self.send_back(&now, item, &back, None)?;
                return Ok(false);
            }
            Err(WorktreeError::Refused { why, .. }) => {
                let back = Refusal::by_git(&why, [&commit, &beyond]);
                self.send_back(&now, item, &back, None)?;
                return Ok(false);
            }
            Err(error @ WorktreeError::TookTooLong(_)) => return Err(error.into()),
        };
        let commit = self.tick(&now, item, &bare)?;
        self.end.clone_from(&commit);
        self.stacked.push(Stacked { item, bare, commit });
        Ok(true)
    }

    /// Says in the message of the last commit what passed on its tree, and keeps that outside the project. The tree is the one that
    /// was verified.
    fn add_receipt(&mut self, now: &Workers, items: &[usize]) -> Result<(), MergeError> {
        if self.end == self.tip {
            return Ok(());
        }
        let repository = self.merge_repository();
        let tree = repository.tree(&self.end)?;
        let texts: Vec<&str> = items.iter().map(|item| now.board.items[*item].text.as_str()).collect();
        let verified = Some((&tree, self.passed.len())).filter(|(_, count)| *count > 0);
        let trailers = trailers(&self.run.state.run_id, &texts, verified);
        let before = self.end.clone();
        let end = repository.reword(&before, &with_trailers(&repository.message(), &trailers))?;
        for one in self.stacked.iter_mut().filter(|one| one.commit == before) {
            one.commit.clone_from(&end);
        }
        self.end.clone_from(&end);
        let item = |item: &usize| {
            let (used, project) = (&now.works[*item], self.run.trees.project(&self.run.trees.of_item(*item)));
            ReceiptItem {
                text: now.board.items[*item].text.clone(),
                sessions: records::sessions(&project),
                cost_usd: used.before.cost_usd + used.now.cost_usd,
            }
        };
        let receipt = Receipt {
            format: Format,
            at: clock::stamp(clock::now()),
            run_id: self.run.state.run_id.clone(),
            commit: end,
            tree,
            commands: self.passed.clone(),
            items: items.iter().map(item).collect(),
        };
        Ok(receipts::keep(&self.project(), &self.run.state.run_id, &receipt)?)
    }

    /// Sets the boxes of the plan as the board has them, whoever has changed them, in the last commit of the item's work, which
    /// ends here and gets the item's trailers; returns the new end.
    fn tick(&self, now: &Workers, item: usize, end: &CommitId) -> Result<CommitId, MergeError> {
        let repository = self.merge_repository();
        let text = &now.board.items[item].text;
        let trailers = trailers(&self.run.state.run_id, &[text], None);
        // An item without a commit of its own ends where the one before it does.
        let has_commit = *end != self.end;
        let unticked = || match has_commit {
            true => repository.reword(end, &with_trailers(&repository.message(), &trailers)),
            false => repository.head(),
        };
        let file = self.run.trees.plan_files.plan.as_ref().filter(|_| now.plan_is_tracked);
        let Some(file) = file else { return Ok(unticked()?) };
        let path = repository.work_tree().join(file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let is_here = |place: usize| place == item || self.stacked.iter().any(|one| one.item == place);
        let ticked = plan_edit::with_ticks(&plan, &ticks(now, is_here)).unwrap_or_else(|| plan.clone());
        let ticked = self.run.target.add_notes(ticked, item)?;
        if ticked == plan {
            return Ok(unticked()?);
        }
        disk::replace(&path, &ticked, Durability::Lazy)?;
        if !has_commit {
            let message = format!("Tick {}", clip(&one_line(text), 60));
            return Ok(repository.commit_file(file, &with_trailers(&message, &trailers))?);
        }
        // One commit, so that whoever reverts the work reverts the tick.
        let message = with_trailers(&repository.message(), &trailers);
        Ok(repository.amend_with_file(file, &message)?)
    }

    /// Merges the notes that no item brought, because they came after the last one was merged. The result must pass what any
    /// result must; else they are only in the plan that the run shows. Returns whether there were any and they are merged.
    pub(super) fn merge_notes(&mut self) -> Result<bool, MergeError> {
        let now = self.run.record();
        let file = self.run.trees.plan_files.plan.clone().filter(|_| now.plan_is_tracked);
        let (Some(file), Some(shown)) = (file, self.run.target.plan_with_late_notes()?) else {
            return Ok(false);
        };
        self.tip = self.settle()?;
        self.stacked.clear();
        let repository = self.merge_repository();
        repository.check_out(&self.tip)?;
        let path = repository.work_tree().join(file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let noted = with_shown_notes(&plan, &shown);
        if noted == plan {
            return Ok(false);
        }
        disk::replace(&path, &noted, Durability::Lazy)?;
        let message = with_trailers("Note what sessions found", &trailers(&self.run.state.run_id, &[], None));
        self.end = repository.commit_file(&file, &message)?;
        Ok(self.verify()?.is_none() && self.advance(&[])?)
    }

    fn send_back(
        &self,
        now: &Workers,
        item: usize,
        refusal: &Refusal,
        start: Option<(CommitId, CommitId)>,
    ) -> Result<(), MergeError> {
        let (start, beyond) = start.unzip();
        let attempt = Claim { item, epoch: now.board.items[item].epoch };
        let start = self.run.target.keep_returned_work(attempt, &refusal.work, start, self.give_up)?;
        let beyond = beyond.filter(|_| start.is_some());
        let refused = Refused {
            merger: self.epoch,
            item,
            note: refusal.reason.clone(),
            start: start.map_or(String::new(), String::from),
            beyond: beyond.map_or(String::new(), String::from),
        };
        let is_set_aside = self.run.board.refuse(&refused, &refusal.conflicts, self.give_up)?;
        let (item, reason) = (now.board.items[item].text.clone(), refusal.reason.clone());
        let _ = self.news.send(JournalEvent::SentBack(SentBack { item, reason, is_set_aside }));
        Ok(())
    }
}

/// What the sessions of an item that was worked on here noted below it, as a fleet is told it.
pub(super) fn notes(trees: &Trees, item: usize) -> Vec<String> {
    let project = trees.project(&trees.of_item(item));
    let plan = disk::read_text(&project.root().join(ITEM_PLAN)).ok().flatten().unwrap_or_default();
    let notes = TodoList::parse(&plan).items.into_iter().flat_map(|known| known.notes);
    // They are committed.
    notes.map(|note| plimsoll_secrets::without(&note)).collect()
}

impl Bench for Merger<'_> {
    type Error = MergeError;

    fn stack(&mut self, items: &[usize]) -> Result<Vec<usize>, MergeError> {
        self.tip = self.run.target.fetch_tip(items, self.give_up)?;
        self.settle_at(&self.tip)?;
        self.end.clone_from(&self.tip);
        self.stacked.clear();
        let mut put = Vec::new();
        for item in items {
            if (self.give_up)() {
                return Err(MergeError::GivenUp);
            }
            if self.put(*item)? {
                put.push(*item);
            }
        }
        // What did not fit has been checked out meanwhile.
        self.merge_repository().check_out(&self.end)?;
        Ok(put)
    }

    fn verify(&mut self) -> Result<Option<String>, MergeError> {
        let (commands, must) = self.commands();
        let outcomes =
            verify(&self.project(), self.run.context.settings, self.run.state, &commands, &self.give_up);
        if outcomes.len() < commands.len() || outcomes.iter().any(|outcome| outcome.is_undecided) {
            return Err(MergeError::GivenUp);
        }
        // What the user wants of every item; an item's check is run for its own tick, and here.
        let is_of_all = |outcome: &&VerifyOutcome| self.run.state.options.verify.contains(&outcome.command);
        let passed = outcomes.iter().filter(|outcome| outcome.passed).filter(is_of_all);
        self.passed = passed.map(|outcome| outcome.command.clone()).collect();
        let red = outcomes.iter().find(|outcome| !outcome.passed && must.contains(&outcome.command));
        Ok(red.map(|outcome| format!("`{}` {}", one_line(&outcome.command), outcome.words)))
    }

    fn land(&mut self, items: &[usize]) -> Result<bool, MergeError> {
        let now = self.run.record();
        self.add_receipt(&now, items)?;
        let here: Vec<&Stacked> = self.stacked.iter().filter(|one| items.contains(&one.item)).collect();
        let landing: Vec<(usize, &CommitId)> = here.iter().map(|one| (one.item, &one.commit)).collect();
        // The record first: a kill after it finds by these commits whether the branch was moved.
        self.run.board.land(self.epoch, &landing, self.give_up)?;
        if self.end != self.tip && !self.advance(&landing)? {
            return Ok(false);
        }
        let passed = self.passed.clone();
        let texts = here.iter().map(|one| now.board.items[one.item].text.clone()).collect();
        let commit = self.end.to_string();
        // From here on it is told, whatever the board says to it.
        let _ = self.news.send(JournalEvent::Landed(Landed { items: texts, commit }));
        self.settle_at(&self.end)?;
        self.note_passed(&passed)?;
        let merged: Vec<(usize, u64)> =
            here.iter().map(|one| (one.item, now.board.items[one.item].epoch)).collect();
        self.run.target.remove_merged(&merged, self.give_up);
        Ok(true)
    }

    fn refuse(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let now = self.run.record();
        let bare = self.stacked.iter().find(|one| one.item == item).map(|one| one.bare.clone());
        let end = bare.as_ref().unwrap_or(&self.end);
        let refusal = Refusal::red(self.merge_repository(), &self.tip, end, output);
        let start = bare.map(|bare| (bare, self.tip.clone()));
        self.send_back(&now, item, &refusal, start)
    }

    fn flaky(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let now = self.run.record();
        let words = format!(
            "a verify command failed and then passed on the same commit (\"{}\"): {}",
            one_line(&now.board.items[item].text),
            clip(&one_line(output), NOTE)
        );
        let _ = self.news.send(JournalEvent::Note { words });
        Ok(())
    }
}
