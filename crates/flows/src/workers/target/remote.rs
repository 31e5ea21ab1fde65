//! Where the work of several machines comes together: a branch of the remote. Only refs of the remote are written, and of the clone
//! one of our own.

use super::{CompletionCheck, Target};
use crate::workers::error::MergeError;
use crate::workers::returned;
use crate::workers::session_notes::carry_notes_to_item_plan;
use crate::workers::table::Table;
use crate::workers::tree::{TreeError, Trees, Wanted};
use plimsoll_domain::board::Stage;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::plan_edit;
use plimsoll_domain::workers::{ItemResult, Workers};
use plimsoll_launcher::own_repository::{OwnRepository, OwnRepositoryError};
use plimsoll_launcher::remote_repository::{Lease, Push, Remote, RemoteError};
use plimsoll_policy::workers::Claim;
use plimsoll_store::StoreError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The target of a fleet, as this machine reaches it.
#[derive(Debug, Clone)]
pub struct RemoteTarget {
    remote: Remote,
    /// The fleet's name.
    fleet: String,
    /// What tells it from an earlier one of its name, whose words may still be on the remote.
    instance: String,
    /// The branch.
    branch: BranchName,
    /// Since when the remote does not answer, and what it says instead.
    away: Arc<Mutex<Option<(Instant, String)>>>,
}

/// What a refused item's next session reads, and what is written below an item: names at the end of a reference.
const REFUSED: &str = "refused";
const NOTES: &str = "notes";
/// Where the next attempt begins.
const START: &str = "start";

impl RemoteTarget {
    /// The target of a fleet.
    pub fn new(remote: Remote, fleet: &str, instance: &str, branch: &BranchName) -> RemoteTarget {
        let [fleet, instance] = [fleet, instance].map(str::to_owned);
        RemoteTarget { remote, fleet, instance, branch: branch.clone(), away: Arc::default() }
    }

    /// The repository of ours in which everything comes together.
    pub(in super::super) fn own(&self) -> &OwnRepository {
        self.remote.own()
    }

    /// Since when the remote does not answer; none if it does.
    pub(in super::super) fn away(&self) -> Option<(Instant, String)> {
        self.lock_away().clone()
    }

    /// Notes whether the remote answers.
    pub(in super::super) fn note_away(&self, why: Option<String>) {
        let mut away = self.lock_away();
        let since = away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *away = why.map(|why| (since, why));
    }

    fn lock_away(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a commit that was fetched into the clone. False if nobody has pushed it.
    pub(in super::super) fn bring_to_clone(&self, commit: &CommitId) -> bool {
        self.own().has(commit) && self.own().give(commit).is_ok()
    }

    /// Where the remote keeps what is no branch.
    fn there(&self) -> String {
        format!("refs/plimsoll/{}/{}", self.fleet, self.instance)
    }

    /// Its reference in the clone, and in our own repository.
    pub(in super::super) fn reference(&self) -> String {
        format!("refs/plimsoll/{}/target", self.fleet)
    }

    fn whole(&self) -> String {
        self.branch.reference()
    }

    /// Its end as it was last seen here.
    pub(in super::super) fn seen(&self) -> Option<CommitId> {
        self.remote.seen(&self.reference())
    }

    /// Its end as it is now.
    pub(in super::super) fn fetch(&self, give_up: &dyn Fn() -> bool) -> Result<CommitId, RemoteError> {
        self.fetch_with(&[], give_up)
    }

    /// The same, with the branches and texts of these items.
    pub(in super::super) fn fetch_with(
        &self,
        items: &[usize],
        give_up: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        self.fetch_these(&[], items, give_up)
    }

    /// The same, with what has landed.
    pub(in super::super) fn fetch_to_merge(
        &self,
        items: &[usize],
        give_up: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        let landed = format!("+{}/landed/*:{}/*", self.there(), self.landed());
        self.fetch_these(&[landed], items, give_up)
    }

    /// Where our own repository keeps what the remote has of by which commit each item has landed: that is told in the push that moves
    /// the target.
    fn landed(&self) -> String {
        format!("refs/plimsoll/{}/landed", self.fleet)
    }

    /// The commits by which items were about to land, as they were last fetched.
    pub(in super::super) fn landings(&self) -> Vec<(usize, CommitId)> {
        let below = self.landed();
        let number = |name: &str| name.rsplit('/').next()?.parse::<usize>().ok()?.checked_sub(1);
        let found = self.remote.below(&below).into_iter();
        found.filter_map(|(name, commit)| Some((number(&name)?, commit))).collect()
    }

    fn fetch_these(
        &self,
        more: &[String],
        items: &[usize],
        give_up: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        let target = format!("+{}:{}", self.whole(), self.reference());
        let of_item = |item: &usize| {
            let (fleet, number) = (&self.fleet, item + 1);
            [
                format!(
                    "+refs/heads/plimsoll-items/{fleet}/{number}/*:refs/plimsoll/{fleet}/branches/{number}/*"
                ),
                format!("+{}/{number}/*:refs/plimsoll/{fleet}/texts/{number}/*", self.there()),
            ]
        };
        let refspecs: Vec<String> =
            [target].into_iter().chain(more.iter().cloned()).chain(items.iter().flat_map(of_item)).collect();
        self.remote.fetch(&refspecs.iter().map(String::as_str).collect::<Vec<_>>(), give_up)?;
        let end = self.seen().ok_or_else(|| RemoteError::Gone(self.whole()))?;
        self.remote.own().show_in_clone(&self.reference(), &end)?;
        Ok(end)
    }

    /// Moves it from where it was seen, with a word about each item that lands. False if it is elsewhere by now.
    pub(in super::super) fn advance(
        &self,
        from: &CommitId,
        to: &CommitId,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, RemoteError> {
        let whole = self.whole();
        let names: Vec<String> =
            landing.iter().map(|(item, _)| format!("{}/landed/{}", self.there(), item + 1)).collect();
        let of_items = names.iter().zip(landing).map(|(reference, (_, commit))| Push {
            object: Some(*commit),
            reference,
            lease: Lease::Any,
        });
        let target = Push { object: Some(to), reference: &whole, lease: Lease::At(from) };
        let pushes: Vec<Push<'_>> = [target].into_iter().chain(of_items).collect();
        let pushed = self.remote.push(&pushes, give_up);
        if let Err(error @ (RemoteError::Away(_) | RemoteError::GivenUp)) = pushed {
            return Err(error);
        }
        // By what is there: a host may take the target alone, and one that says that it has moved might say so for ever.
        let now = self.fetch(give_up)?;
        match pushed {
            Ok(()) => Ok(true),
            Err(_) if now == *to => Ok(true),
            Err(RemoteError::Moved) if now == *from => {
                Err(RemoteError::Rejected(format!("{whole} stands where it was, and cannot be moved")))
            }
            Err(RemoteError::Moved) => Ok(false),
            // The host may take no such words: then the target alone.
            Err(RemoteError::Rejected(_)) if !landing.is_empty() => self.advance(from, to, &[], give_up),
            Err(error) => Err(error),
        }
    }

    /// Pushes the branch of one attempt, which is nobody else's, and what its sessions noted.
    pub(in super::super) fn push_work(
        &self,
        result: &ItemResult,
        branch: &BranchName,
        notes: &[String],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), RemoteError> {
        let reference = branch.reference();
        let start =
            CommitId::parse(&result.start).map_err(|error| RemoteError::Rejected(error.to_string()))?;
        // What a session committed is in the clone.
        self.remote.own().take(&start)?;
        let push = Push { object: Some(&start), reference: &reference, lease: Lease::Any };
        self.remote.push(&[push], give_up)?;
        if !notes.is_empty() {
            self.push_text(result.item, result.epoch, NOTES, &notes.join("\n"), give_up);
        }
        Ok(())
    }

    /// Pushes why an item was refused, whole.
    pub(in super::super) fn push_refusal(
        &self,
        item: usize,
        epoch: u64,
        text: &str,
        give_up: &dyn Fn() -> bool,
    ) {
        self.push_text(item, epoch, REFUSED, text, give_up);
    }

    /// Pushes the commit at which the next attempt at an item begins. False where that could not be: then it begins at the target's
    /// end.
    pub(in super::super) fn push_start(
        &self,
        item: usize,
        epoch: u64,
        commit: &CommitId,
        give_up: &dyn Fn() -> bool,
    ) -> bool {
        let reference = format!("{}/{}/{epoch}/{START}", self.there(), item + 1);
        let push = Push { object: Some(commit), reference: &reference, lease: Lease::Any };
        self.remote.push(&[push], give_up).is_ok()
    }

    /// Without it the note in the board alone says why: a host may take no such reference.
    fn push_text(&self, item: usize, epoch: u64, name: &str, text: &str, give_up: &dyn Fn() -> bool) {
        let reference = format!("{}/{}/{epoch}/{name}", self.there(), item + 1);
        if let Ok(id) = self.remote.keep_text(text) {
            let push = Push { object: Some(&id), reference: &reference, lease: Lease::Any };
            let _ = self.remote.push(&[push], give_up);
        }
    }

    /// Why an item was refused last, as it was last fetched.
    pub(in super::super) fn refusal(&self, item: usize) -> Option<String> {
        self.newest_text(item, REFUSED)
    }

    /// What an item's sessions have noted, as it was last fetched.
    pub(in super::super) fn notes(&self, item: usize) -> Vec<String> {
        let text = self.newest_text(item, NOTES).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Of all attempts the last one's.
    fn newest_text(&self, item: usize, name: &str) -> Option<String> {
        let below = format!("refs/plimsoll/{}/texts/{}/", self.fleet, item + 1);
        let epoch = |reference: &str| -> Option<u64> {
            reference.strip_prefix(&below)?.strip_suffix(name)?.strip_suffix('/')?.parse().ok()
        };
        let found = self.remote.below(below.trim_end_matches('/')).into_iter();
        let (_, id) = found.filter_map(|(reference, id)| Some((epoch(&reference)?, id))).max()?;
        self.remote.text(&id)
    }

    /// Once everything is merged: removes what is left of the items where somebody died before that, and what the target has.
    pub(in super::super) fn sweep(&self, plan_files: &[RepoPath], give_up: &dyn Fn() -> bool) {
        let fleet = &self.fleet;
        let whole = format!("+{}:{}", self.whole(), self.reference());
        let branches = format!("+refs/heads/plimsoll-items/{fleet}/*:refs/plimsoll/{fleet}/branches/*");
        if self.remote.fetch(&[&whole, &branches], give_up).is_err() {
            return;
        }
        let below = format!("refs/plimsoll/{fleet}/branches/");
        let item = |(name, _): (String, CommitId)| {
            name.strip_prefix(&below)?.split('/').next()?.parse::<usize>().ok()?.checked_sub(1)
        };
        let left: BTreeSet<usize> =
            self.remote.below(below.trim_end_matches('/')).into_iter().filter_map(item).collect();
        for item in left {
            // No attempt has this number: each is asked whether the target has it all.
            self.clean(item, 0, plan_files, give_up);
        }
    }

    /// Removes the branches and texts of an item that is merged. What an earlier attempt has that the target has not stays, apart
    /// from changes of the plan.
    pub(in super::super) fn clean(
        &self,
        item: usize,
        epoch: u64,
        plan_files: &[RepoPath],
        give_up: &dyn Fn() -> bool,
    ) {
        let (fleet, number) = (&self.fleet, item + 1);
        let branches = self.remote.below(&format!("refs/plimsoll/{fleet}/branches/{number}"));
        let texts = self.remote.below(&format!("refs/plimsoll/{fleet}/texts/{number}"));
        let target = self.seen();
        let is_merged = |end: &CommitId| {
            target.as_ref().is_some_and(|target| self.own().is_all_on(target, end, plan_files))
        };
        let branch = |(known, end): &(String, CommitId)| {
            let attempt = known.rsplit('/').next()?;
            let is_over = attempt == epoch.to_string() || is_merged(end);
            is_over.then(|| (format!("refs/heads/plimsoll-items/{fleet}/{number}/{attempt}"), end.clone()))
        };
        let text = |(known, id): &(String, CommitId)| {
            let rest = known.strip_prefix(&format!("refs/plimsoll/{fleet}/texts/"))?;
            Some((format!("{}/{rest}", self.there()), id.clone()))
        };
        let gone: Vec<(String, CommitId)> =
            branches.iter().filter_map(branch).chain(texts.iter().filter_map(text)).collect();
        let pushes: Vec<Push<'_>> = gone
            .iter()
            .map(|(reference, end)| Push { object: None, reference, lease: Lease::At(end) })
            .collect();
        if !pushes.is_empty() {
            let _ = self.remote.push(&pushes, give_up);
        }
    }
}

/// The target of a fleet, on one of its machines.
pub(in super::super) struct FleetTarget<'a> {
    remote: &'a RemoteTarget,
    table: &'a Table,
    trees: &'a Trees,
}

impl<'a> FleetTarget<'a> {
    /// The target of the fleet that this record is about.
    pub(in super::super) fn new(
        remote: &'a RemoteTarget,
        table: &'a Table,
        trees: &'a Trees,
    ) -> FleetTarget<'a> {
        FleetTarget { remote, table, trees }
    }

    /// What came of asking the remote.
    fn answer<T>(&self, answer: Result<T, RemoteError>) -> Result<T, MergeError> {
        self.remote.note_away(match &answer {
            Err(RemoteError::Away(why)) => Some(why.clone()),
            _ => None,
        });
        let target = || self.table.now().target;
        answer.map_err(|error| match error {
            RemoteError::GivenUp => MergeError::GivenUp,
            RemoteError::Gone(_) => MergeError::NoTarget(target()),
            error => MergeError::Remote(target(), error),
        })
    }

    /// Why work on an item was refused, where its branch is.
    fn pushed_refusal(&self, item: usize) -> Option<ReturnedWork> {
        self.remote.refusal(item).as_deref().and_then(returned::parse)
    }
}

impl Target for FleetTarget<'_> {
    fn fetch_tip(&self, items: &[usize], give_up: &dyn Fn() -> bool) -> Result<CommitId, MergeError> {
        self.answer(self.remote.fetch_to_merge(items, give_up))
    }

    fn last_seen_tip(&self) -> Option<CommitId> {
        self.remote.seen()
    }

    fn landings(&self) -> Vec<(usize, CommitId)> {
        self.remote.landings()
    }

    /// It was fetched with its branch.
    fn take_work(&self, _: &CommitId) -> Result<(), OwnRepositoryError> {
        Ok(())
    }

    fn advance(
        &self,
        from: &CommitId,
        to: &CommitId,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        self.answer(self.remote.advance(from, to, landing, give_up))
    }

    fn remove_merged(&self, merged: &[(usize, u64)], give_up: &dyn Fn() -> bool) {
        let files = self.trees.plan_files.all();
        for (item, epoch) in merged {
            self.remote.clean(*item, *epoch, &files, give_up);
        }
    }

    fn fetch_earlier_work(
        &self,
        mut wanted: Wanted,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Wanted, TreeError> {
        let tip = self.remote.fetch_with(&[wanted.item], give_up)?;
        // A commit that nobody has pushed after all, or that is gone there: then at the target's end.
        let is_there = wanted.begins_at.as_ref().is_some_and(|commit| self.remote.bring_to_clone(commit));
        if !is_there {
            wanted.begins_at = Some(tip.clone());
            self.table.change(|workers| {
                let work = &mut workers.works[wanted.item];
                (work.start, work.beyond) = (tip.to_string(), tip.into());
            })?;
        }
        wanted.plan.notes.extend(self.remote.notes(wanted.item));
        wanted.returned = self.pushed_refusal(wanted.item).or(wanted.returned);
        Ok(wanted)
    }

    fn note_away(&self, why: &RemoteError) {
        // Whoever gave up has heard nothing of the remote.
        if !matches!(why, RemoteError::GivenUp) {
            self.remote.note_away(Some(why.to_string()));
        }
    }

    fn returned_work(&self, item: usize) -> Option<ReturnedWork> {
        let note = || returned::from_note(&self.table.now().board.items[item].note);
        self.pushed_refusal(item).or_else(note)
    }

    /// Whoever takes it up next may be elsewhere, and begins at a commit that was made here.
    fn keep_returned_work(
        &self,
        Claim { item, epoch }: Claim,
        work: &ReturnedWork,
        start: Option<CommitId>,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError> {
        self.remote.push_refusal(item, epoch, &returned::render(work), give_up);
        Ok(start.filter(|start| self.remote.push_start(item, epoch, start, give_up)))
    }

    /// Its commits are here, and its branch is on the remote.
    fn publish_work(&self, _: &CommitId) -> bool {
        true
    }

    fn work_name(&self, now: &Workers, item: usize, _: &CommitId) -> String {
        match &now.board.items[item].stage {
            Stage::Offered { commit } => commit.clone(),
            Stage::Open | Stage::Leased { .. } | Stage::Merged | Stage::Aside { .. } => {
                now.branch(item, now.board.items[item].epoch)
            }
        }
    }

    /// They travel with the item's branch.
    fn carry_notes(&self, item: usize) -> Result<(), StoreError> {
        carry_notes_to_item_plan(&self.table.now(), self.trees, item)
    }

    fn add_notes(&self, plan: Vec<u8>, item: usize) -> Result<Vec<u8>, StoreError> {
        let known = self.remote.notes(item).into_iter();
        let known: Vec<String> = known.map(|note| plimsoll_secrets::without(&note)).collect();
        let text = &self.table.now().board.items[item].text;
        Ok(plan_edit::with_notes(&plan, text, &known).unwrap_or(plan))
    }

    fn plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    /// What was verified was pushed, and every machine has fetched it from there.
    fn check_completed(&self) -> CompletionCheck {
        CompletionCheck::default()
    }
}
