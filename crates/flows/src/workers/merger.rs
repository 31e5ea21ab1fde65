//! Puts results together: rebased onto the branch's end in a worktree that nobody works in, verified there, and landed by
//! moving the branch from where it was seen. It runs in a thread of its own, because verify commands take long.

mod refusal;

use crate::run::verify::verify;
use crate::workers::board::{shown_plan, ticks};
use crate::workers::ground::ITEM_PLAN;
use crate::workers::returned;
use crate::workers::session_notes::with_shown_notes;
use crate::workers::shared::{BoardError, Refused, Shared, SharedBoard, look};
use crate::workers::table::Table;
use crate::workers::tree::Trees;
use plimsoll_domain::board::{BoardItem, Stage};
use plimsoll_domain::format::Format;
use plimsoll_domain::git_names::{CommitId, InvalidBranchName, InvalidCommitId};
use plimsoll_domain::journal::{JournalEvent, Landed, SentBack};
use plimsoll_domain::receipt::{Receipt, ReceiptItem, trailers, with_trailers};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Settings, TodoList, plan_edit};
use plimsoll_launcher::branch::check_worktrees;
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::own_repository::OwnRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree::{self, Rebased, WorktreeError};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::workers::queue::{self, Bench};
use plimsoll_policy::workers::{
    become_merger, items_to_merge, land, note_writes, refuse, send_back_conflict, settle,
};
use plimsoll_store::{Durability, Project, StoreError, clock, disk, receipts, records};
use refusal::Refusal;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The one merger of a local board.
const NAME: &str = "merger";
/// So long one question is asked again while the board is away.
const ASKED_FOR: Duration = Duration::from_secs(10);
/// How much of git's words, or of a command's output, stands in its notes.
const NOTE: usize = 350;

/// Why nothing can be merged now.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] WorktreeError),
    #[error("the branch {0} is gone")]
    NoTarget(String),
    #[error("the branch {0} is checked out, and would move under its files: git switch another one")]
    CheckedOut(String),
    #[error("it was given up")]
    GivenUp,
    #[error(transparent)]
    Own(#[from] OwnRepositoryError),
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    BadBranch(#[from] InvalidBranchName),
    /// What is shared with others: it is tried again, here or elsewhere.
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error("the branch {0}: {1}")]
    Remote(String, RemoteError),
}

impl MergeError {
    /// True for what waiting may end, and for what another machine goes on with.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            MergeError::Board(BoardError::Away(_) | BoardError::Fenced)
                | MergeError::Remote(_, RemoteError::Away(_))
        )
    }
}

/// One round over everything that waits.
pub(super) struct Merger<'a> {
    pub(super) table: &'a Table,
    pub(super) trees: &'a Trees,
    pub(super) run: &'a RunState,
    pub(super) settings: &'a Settings,
    pub(super) give_up: &'a (dyn Fn() -> bool + Sync),
    pub(super) news: Sender<JournalEvent>,
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
        table: &'a Table,
        trees: &'a Trees,
        run: &'a RunState,
        settings: &'a Settings,
        give_up: &'a (dyn Fn() -> bool + Sync),
        news: Sender<JournalEvent>,
        takes_all: bool,
    ) -> Merger<'a> {
        let (tip, end) = (trees.ground.commit.clone(), trees.ground.commit.clone());
        Merger {
            table,
            trees,
            run,
            settings,
            give_up,
            news,
            takes_all,
            epoch: 0,
            tip,
            end,
            stacked: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Lands what can be landed, and sends the rest back.
    pub(super) fn merge(&mut self) -> Result<(), MergeError> {
        let Some(epoch) = self.become_merger()? else { return Ok(()) };
        self.epoch = epoch;
        let items = items_to_merge(&self.table.now().board, self.takes_all);
        queue::merge(self, &items)
    }

    fn become_merger(&self) -> Result<Option<u64>, MergeError> {
        let Some(shared) = &self.table.shared else {
            let now = self.table.moment();
            return Ok(self.table.change(|workers| become_merger(&mut workers.board, NAME, now))?);
        };
        let name = self.table.now().member.unwrap_or_default().name;
        let taken = self.ask(shared, |board| board.become_merger(&name))?;
        shared.known().merger = taken;
        if taken.is_some() {
            // What others have offered since.
            look(self.table, shared)?;
        }
        Ok(taken)
    }

    /// Asks the board. A round has many questions: over a line that breaks often none would come to its end if each of them could end
    /// it.
    fn ask<T>(
        &self,
        shared: &Shared,
        question: impl FnMut(&mut dyn SharedBoard) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        shared.ask_again(ASKED_FOR, self.give_up, question)
    }

    /// The branch's end, as it is now; where others work on it, too, with the work on these items.
    fn end_of_target(&self, items: &[usize]) -> Result<CommitId, MergeError> {
        let now = self.table.now();
        match &self.table.shared {
            None => {
                let end = worktree::end_of(&self.trees.ground.repository, &now.target_branch()?);
                let end = end.ok_or(MergeError::NoTarget(now.target))?;
                self.merge_repository().own().take(&end)?;
                Ok(end)
            }
            Some(shared) => self.heard(&now, shared, shared.target.fetch_to_merge(items, self.give_up)),
        }
    }

    /// What came of asking the remote.
    fn heard<T>(
        &self,
        now: &Workers,
        shared: &Shared,
        answer: Result<T, RemoteError>,
    ) -> Result<T, MergeError> {
        shared.heard_of_remote(match &answer {
            Err(RemoteError::Away(why)) => Some(why.clone()),
            _ => None,
        });
        answer.map_err(|error| match error {
            RemoteError::GivenUp => MergeError::GivenUp,
            RemoteError::Gone(_) => MergeError::NoTarget(now.target.clone()),
            error => MergeError::Remote(now.target.clone(), error),
        })
    }

    /// Counts as merged what is on the branch by now; answers with the branch's end.
    pub(super) fn settle(&mut self) -> Result<CommitId, MergeError> {
        let tip = self.end_of_target(&[])?;
        self.settle_at(&tip)?;
        Ok(tip)
    }

    fn settle_at(&self, tip: &CommitId) -> Result<(), MergeError> {
        let repository = self.merge_repository();
        // Git is asked before the record is written: nobody else moves a stage on.
        let is_in =
            |commit: &str| CommitId::parse(commit).is_ok_and(|commit| repository.contains(tip, &commit));
        let Some(shared) = &self.table.shared else {
            self.table.change(|workers| settle(&mut workers.board, is_in))?;
            return Ok(());
        };
        let now = self.table.now();
        let began_at = CommitId::parse(&now.began_at)?;
        let is_open = |item: usize| now.board.items.get(item).is_some_and(|row| row.stage != Stage::Merged);
        // What was there when the fleet began is none of its work.
        let is_of_fleet =
            |commit: &CommitId| repository.contains(tip, commit) && !repository.contains(&began_at, commit);
        let lost = shared.target.landings().into_iter();
        for (item, commit) in lost.filter(|(item, commit)| is_open(*item) && is_of_fleet(commit)) {
            self.ask(shared, |board| board.found(item, commit.as_str()))?;
        }
        let landed = self.ask(shared, |board| board.settle(&is_in))?;
        self.table.change(|workers| {
            landed.iter().for_each(|item| workers.board.items[*item].stage = Stage::Merged);
        })?;
        Ok(())
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
        let known = self.table.now().passed;
        if passed.iter().all(|command| known.contains(command)) {
            return Ok(());
        }
        if let Some(shared) = &self.table.shared {
            self.ask(shared, |board| board.note_passed(passed))?;
        }
        Ok(self.table.change(|workers| note_passed(workers, passed))?)
    }

    /// What is run on a result, and what of it must pass: what has passed on the branch, and the checks that the user allowed of
    /// items that are merged or are in the result.
    fn commands(&self) -> (Vec<String>, Vec<String>) {
        let now = self.table.now();
        let is_in = |(place, row): &(usize, &BoardItem)| {
            row.stage == Stage::Merged || self.stacked.iter().any(|one| one.item == *place)
        };
        let items = now.board.items.iter().enumerate().filter(is_in);
        let checks: Vec<String> =
            items.filter_map(|(_, row)| Some(self.run.check_of(&row.text)?.command.clone())).collect();
        let mut commands = self.run.options.verify.clone();
        commands.extend(checks.iter().filter(|check| !self.run.options.verify.contains(check)).cloned());
        commands.dedup();
        (commands, now.passed.into_iter().chain(checks).collect())
    }

    fn merge_repository(&self) -> &MergeRepository {
        &self.trees.merge
    }

    fn project(&self) -> Project {
        self.trees.project(&self.trees.of_merger())
    }

    /// Moves the target to what was stacked. False if it has moved meanwhile.
    fn advance(&self, now: &Workers, landing: &[(usize, &CommitId)]) -> Result<bool, MergeError> {
        if let Some(shared) = &self.table.shared {
            let moved = shared.target.advance(&self.tip, &self.end, landing, self.give_up);
            return self.heard(now, shared, moved);
        }
        let repository = &self.trees.ground.repository;
        if check_worktrees(repository, &now.target_branch()?).is_err() {
            return Err(MergeError::CheckedOut(now.target.clone()));
        }
        self.merge_repository().own().give(&self.end)?;
        Ok(worktree::move_branch(repository, &now.target_branch()?, Some(&self.tip), &self.end))
    }

    fn put(&mut self, item: usize) -> Result<bool, MergeError> {
        let now = self.table.now();
        let (row, work) = (&now.board.items[item], &now.works[item]);
        let Stage::Offered { commit } = &row.stage else { return Ok(false) };
        let (commit, beyond) = (CommitId::parse(commit)?, CommitId::parse(&work.beyond)?);
        let repository = self.merge_repository();
        // A fleet's work was fetched with its branch.
        let taken = if self.table.shared.is_none() { repository.own().take(&commit) } else { Ok(()) };
        // The user's plan is changed by the merger alone, and the plan of the item's own run is in no commit.
        let files = self.trees.plan_files.all();
        let work = taken.and_then(|()| repository.own().without_files(&beyond, &commit, &files));
        if let Ok(work) = &work {
            let written = repository.changed_files(&beyond, work);
            self.table.change(|workers| note_writes(&mut workers.board, item, &written))?;
        }
        if !items_to_merge(&self.table.now().board, self.takes_all).contains(&item) {
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
                let is_here =
                    |work: &CommitId| self.table.shared.is_some() || repository.own().give(work).is_ok();
                let work = work.ok().filter(is_here).unwrap_or(commit);
                let back =
                    Refusal::conflict(repository, &now, item, [&work, &beyond, &self.end], &files, &words);
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
        let trailers = trailers(&self.run.run_id, &texts, verified);
        let before = self.end.clone();
        let end = repository.reword(&before, &with_trailers(&repository.message(), &trailers))?;
        for one in self.stacked.iter_mut().filter(|one| one.commit == before) {
            one.commit.clone_from(&end);
        }
        self.end.clone_from(&end);
        let item = |item: &usize| {
            let (used, project) = (&now.works[*item], self.trees.project(&self.trees.of_item(*item)));
            ReceiptItem {
                text: now.board.items[*item].text.clone(),
                sessions: records::sessions(&project),
                cost_usd: used.before.cost_usd + used.now.cost_usd,
            }
        };
        let receipt = Receipt {
            format: Format,
            at: clock::stamp(clock::now()),
            run_id: self.run.run_id.clone(),
            commit: end,
            tree,
            commands: self.passed.clone(),
            items: items.iter().map(item).collect(),
        };
        Ok(receipts::keep(&self.project(), &self.run.run_id, &receipt)?)
    }

    /// Sets the boxes of the plan as the board has them, whoever has changed them, in the last commit of the item's work, which
    /// ends here and gets the item's trailers; returns the new end.
    fn tick(&self, now: &Workers, item: usize, end: &CommitId) -> Result<CommitId, MergeError> {
        let repository = self.merge_repository();
        let text = &now.board.items[item].text;
        let trailers = trailers(&self.run.run_id, &[text], None);
        // An item without a commit of its own ends where the one before it does.
        let has_commit = *end != self.end;
        let unticked = || match has_commit {
            true => repository.reword(end, &with_trailers(&repository.message(), &trailers)),
            false => repository.head(),
        };
        let file = self.trees.plan_files.plan.as_ref().filter(|_| now.plan_is_tracked);
        let Some(file) = file else { return Ok(unticked()?) };
        let path = repository.work_tree().join(file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let is_here = |place: usize| place == item || self.stacked.iter().any(|one| one.item == place);
        let ticked = plan_edit::with_ticks(&plan, &ticks(now, is_here)).unwrap_or_else(|| plan.clone());
        let ticked = match &self.table.shared {
            None => with_shown_notes(&ticked, &shown_plan(self.trees.main_project(), now)?),
            Some(shared) => {
                let known = shared.target.notes(item).into_iter();
                let known: Vec<String> = known.map(|note| plimsoll_secrets::without(&note)).collect();
                plan_edit::with_notes(&ticked, text, &known).unwrap_or(ticked)
            }
        };
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
        let now = self.table.now();
        let file = self.trees.plan_files.plan.clone().filter(|_| now.plan_is_tracked);
        // A fleet's notes travel with items.
        let (Some(file), None) = (file, &self.table.shared) else { return Ok(false) };
        self.tip = self.settle()?;
        self.stacked.clear();
        let repository = self.merge_repository();
        repository.check_out(&self.tip)?;
        let path = repository.work_tree().join(file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let noted = with_shown_notes(&plan, &shown_plan(self.trees.main_project(), &now)?);
        if noted == plan {
            return Ok(false);
        }
        disk::replace(&path, &noted, Durability::Lazy)?;
        let message = with_trailers("Note what sessions found", &trailers(&self.run.run_id, &[], None));
        self.end = repository.commit_file(&file, &message)?;
        Ok(self.verify()?.is_none() && self.advance(&now, &[])?)
    }

    fn send_back(
        &self,
        now: &Workers,
        item: usize,
        refusal: &Refusal,
        mut start: Option<(CommitId, CommitId)>,
    ) -> Result<(), MergeError> {
        if let Some(shared) = &self.table.shared {
            // Whoever takes it up next may be elsewhere, and begins at a commit that was made here.
            let epoch = now.board.items[item].epoch;
            shared.target.push_refusal(item, epoch, &returned::render(&refusal.work), self.give_up);
            let is_pushed = |(start, _): &(CommitId, CommitId)| {
                shared.target.push_start(item, epoch, start, self.give_up)
            };
            start = start.filter(is_pushed);
            let refused = Refused {
                merger: self.epoch,
                item,
                note: refusal.reason.clone(),
                start: start.clone().map_or(String::new(), |(start, _)| start.into()),
                beyond: start.clone().map_or(String::new(), |(_, beyond)| beyond.into()),
            };
            self.ask(shared, |board| board.refuse(&refused))?;
        } else {
            if let Some((start, _)) = &start {
                // The item's next worktree begins there.
                self.merge_repository().own().give(start)?;
            }
            // Before the record: whoever takes the item up next looks here.
            returned::keep(self.trees.main_project(), self.run, item, &refusal.work)?;
        }
        let (start, beyond) = start.map(|(start, beyond)| (start.into(), beyond.into())).unwrap_or_default();
        let is_set_aside = self.table.change(|workers| {
            // One that was fenced has landed, or is somebody else's by now.
            let (board, reason) = (&mut workers.board, &refusal.reason);
            // The rows of a fleet do not keep the files, so nothing but the tries bounds its conflicts.
            let _ = if refusal.conflicts.is_empty() || self.table.shared.is_some() {
                refuse(board, self.epoch, item, reason)
            } else {
                send_back_conflict(board, self.epoch, item, reason, &refusal.conflicts)
            };
            (workers.works[item].start, workers.works[item].beyond) = (start, beyond);
            matches!(workers.board.items[item].stage, Stage::Aside { .. })
        })?;
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

fn note_passed(workers: &mut Workers, passed: &[String]) {
    for command in passed {
        if !workers.passed.contains(command) {
            workers.passed.push(command.clone());
        }
    }
}

impl Bench for Merger<'_> {
    type Error = MergeError;

    fn stack(&mut self, items: &[usize]) -> Result<Vec<usize>, MergeError> {
        self.tip = self.end_of_target(items)?;
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
        let outcomes = verify(&self.project(), self.settings, self.run, &commands, &self.give_up);
        if outcomes.len() < commands.len() || outcomes.iter().any(|outcome| outcome.is_undecided) {
            return Err(MergeError::GivenUp);
        }
        // What the user wants of every item; an item's check is run for its own tick, and here.
        let is_of_all = |outcome: &&VerifyOutcome| self.run.options.verify.contains(&outcome.command);
        let passed = outcomes.iter().filter(|outcome| outcome.passed).filter(is_of_all);
        self.passed = passed.map(|outcome| outcome.command.clone()).collect();
        let red = outcomes.iter().find(|outcome| !outcome.passed && must.contains(&outcome.command));
        Ok(red.map(|outcome| format!("`{}` {}", one_line(&outcome.command), outcome.words)))
    }

    fn land(&mut self, items: &[usize]) -> Result<bool, MergeError> {
        let now = self.table.now();
        self.add_receipt(&now, items)?;
        let here: Vec<&Stacked> = self.stacked.iter().filter(|one| items.contains(&one.item)).collect();
        // The record first: a kill after it finds by these commits whether the branch was moved.
        if let Some(shared) = &self.table.shared {
            // Whoever is not the merger any more, or has an item that somebody landed, moves nothing.
            for one in &here {
                self.ask(shared, |board| board.land(self.epoch, one.item, one.commit.as_str()))?;
            }
        }
        self.table.change(|workers| {
            for one in &here {
                let _ = land(&mut workers.board, self.epoch, one.item, one.commit.as_str());
            }
        })?;
        let landing: Vec<(usize, &CommitId)> = here.iter().map(|one| (one.item, &one.commit)).collect();
        if self.end != self.tip && !self.advance(&now, &landing)? {
            return Ok(false);
        }
        let passed = self.passed.clone();
        let texts = here.iter().map(|one| now.board.items[one.item].text.clone()).collect();
        let commit = self.end.to_string();
        // From here on it is told, whatever the board says to it.
        let _ = self.news.send(JournalEvent::Landed(Landed { items: texts, commit }));
        self.settle_at(&self.end)?;
        self.note_passed(&passed)?;
        if let Some(shared) = &self.table.shared {
            let files = self.trees.plan_files.all();
            for one in &here {
                shared.target.clean(one.item, now.board.items[one.item].epoch, &files, self.give_up);
            }
        }
        Ok(true)
    }

    fn refuse(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let now = self.table.now();
        let bare = self.stacked.iter().find(|one| one.item == item).map(|one| one.bare.clone());
        let end = bare.as_ref().unwrap_or(&self.end);
        let refusal = Refusal::red(self.merge_repository(), &self.tip, end, output);
        let start = bare.map(|bare| (bare, self.tip.clone()));
        self.send_back(&now, item, &refusal, start)
    }

    fn flaky(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let now = self.table.now();
        let words = format!(
            "a verify command failed and then passed on the same commit (\"{}\"): {}",
            one_line(&now.board.items[item].text),
            clip(&one_line(output), NOTE)
        );
        let _ = self.news.send(JournalEvent::Note { words });
        Ok(())
    }
}
