//! The target of a fleet: a branch of the remote. Only refs of the remote are written, and in the clone one
//! ref of our own.

use super::merged_items::{PlanOnTarget, TargetContents};
use super::offered_work::MissingWork;
use super::{CompletionCheck, OfferedWork, Target};
use crate::workers::error::MergeError;
use crate::workers::returned_work_store;
use crate::workers::session_notes::copy_notes_from_plan_copy_to_item_plan;
use crate::workers::workers_file::WorkersFile;
use crate::workers::worktrees::{WorktreeSetupError, WorktreeSpec, Worktrees};
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::plan_edit;
use plimsoll_domain::workers::{ItemResult, WorkersState};
use plimsoll_launcher::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use plimsoll_launcher::remote_repository::{PushLease, ReferenceUpdate, Remote, RemoteError};
use plimsoll_policy::workers::Claim;
use plimsoll_store::StoreError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The target branch of a fleet on the remote.
#[derive(Debug, Clone)]
pub struct RemoteTarget {
    remote: Remote,
    fleet_name: String,
    /// Distinguishes the fleet from an earlier one of the same name, whose texts may still be on the remote.
    instance_id: String,
    target_branch: BranchName,
    /// The plan on the branch, if git tracks it.
    plan: Option<PlanOnTarget>,
    /// Since when the remote has been unreachable, with the last error.
    outage: Arc<Mutex<Option<(Instant, String)>>>,
}

/// The names at the end of a reference for the reason why an item was sent back, and for the notes below an
/// item.
const REFUSAL_REF_NAME: &str = "refused";
const NOTES_REF_NAME: &str = "notes";
/// The name at the end of a reference for the commit at which the next attempt begins.
const START_REF_NAME: &str = "start";

impl RemoteTarget {
    pub fn new(
        remote: Remote,
        fleet_name: &str,
        instance_id: &str,
        target_branch: &BranchName,
    ) -> RemoteTarget {
        let [fleet_name, instance_id] = [fleet_name, instance_id].map(str::to_owned);
        RemoteTarget {
            remote,
            fleet_name,
            instance_id,
            target_branch: target_branch.clone(),
            plan: None,
            outage: Arc::default(),
        }
    }

    /// Sets the plan on the branch, whose ticks say which items the branch contains.
    pub fn with_plan(self, plan: Option<PlanOnTarget>) -> RemoteTarget {
        RemoteTarget { plan, ..self }
    }

    pub(super) fn plan(&self) -> Option<&PlanOnTarget> {
        self.plan.as_ref()
    }

    /// Returns our own repository, in which everything is merged.
    pub(in super::super) fn merge_repository(&self) -> &PlimsollRepository {
        self.remote.plimsoll_repository()
    }

    /// Returns since when the remote has been unreachable and why, or `None` if it is reachable.
    pub(in super::super) fn outage(&self) -> Option<(Instant, String)> {
        self.lock_outage().clone()
    }

    /// Records an outage of the remote with its error, or with `None` that the remote is reachable.
    pub(in super::super) fn record_outage(&self, error: Option<String>) {
        let mut outage = self.lock_outage();
        let unreachable_since = outage.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *outage = error.map(|error| (unreachable_since, error));
    }

    fn lock_outage(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a fetched commit into the clone. Returns false if no machine has pushed it.
    pub(in super::super) fn copy_commit_to_clone(&self, commit: &CommitId) -> bool {
        self.merge_repository().has_commit(commit)
            && self.merge_repository().transfer_commit_to_clone_without_reference(commit).is_ok()
    }

    /// Returns the prefix of the fleet's references on the remote that are no branches.
    fn remote_ref_prefix(&self) -> String {
        format!("refs/plimsoll/{}/{}", self.fleet_name, self.instance_id)
    }

    /// Returns the reference of the target in the clone and in our own repository.
    pub(in super::super) fn local_target_ref(&self) -> String {
        format!("refs/plimsoll/{}/target", self.fleet_name)
    }

    fn target_branch_ref(&self) -> String {
        self.target_branch.full_ref_name()
    }

    /// Fetches the target and returns its last commit. The fetch has a local reference of its own, because git
    /// fails if another fetch, for example that of a merge round, writes the same reference at the same time.
    pub(super) fn fetch_target_for_check(
        &self,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        let local_ref = format!("refs/plimsoll/{}/checked-target", self.fleet_name);
        let refspec = format!("+{}:{local_ref}", self.target_branch_ref());
        self.remote.fetch_with_object_checks_and_prune(&[&refspec], should_cancel)?;
        self.remote
            .object_of_local_reference(&local_ref)
            .ok_or_else(|| RemoteError::ReferenceMissing(self.target_branch_ref()))
    }

    /// Returns the last commit of the target as it was last fetched.
    pub(in super::super) fn last_seen_target_tip(&self) -> Option<CommitId> {
        self.remote.object_of_local_reference(&self.local_target_ref())
    }

    /// Fetches the target and returns its last commit.
    pub(in super::super) fn fetch_target(
        &self,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        self.fetch_target_and_items(&[], should_cancel)
    }

    /// Fetches the target and the branches and texts of these items. Returns the last commit of the target.
    pub(in super::super) fn fetch_target_and_items(
        &self,
        items: &[usize],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        self.fetch_refspecs_and_items(&[], items, should_cancel)
    }

    /// Fetches the target, the branches and texts of these items, and the recorded landings. Returns the last
    /// commit of the target.
    pub(in super::super) fn fetch_target_items_and_landings(
        &self,
        items: &[usize],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        let landings_refspec = format!(
            "+{}/landed/*:{}/*",
            self.remote_ref_prefix(),
            self.local_ref_prefix_of_merge_candidates()
        );
        self.fetch_refspecs_and_items(&[landings_refspec], items, should_cancel)
    }

    /// Returns the prefix under which our own repository has the commits with which items were merged. They
    /// are recorded on the remote in the push that moves the target.
    fn local_ref_prefix_of_merge_candidates(&self) -> String {
        format!("refs/plimsoll/{}/landed", self.fleet_name)
    }

    /// Returns the commits with which items were about to be merged, as they were last fetched.
    pub(in super::super) fn fetched_merge_candidates(&self) -> Vec<(usize, CommitId)> {
        let prefix = self.local_ref_prefix_of_merge_candidates();
        let item_index = |name: &str| name.rsplit('/').next()?.parse::<usize>().ok()?.checked_sub(1);
        let refs = self.remote.local_references_below(&prefix).into_iter();
        refs.filter_map(|(name, commit)| Some((item_index(&name)?, commit))).collect()
    }

    fn fetch_refspecs_and_items(
        &self,
        more_refspecs: &[String],
        items: &[usize],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, RemoteError> {
        let target_refspec = format!("+{}:{}", self.target_branch_ref(), self.local_target_ref());
        let item_refspecs = |item: &usize| {
            let (fleet_name, item_number) = (&self.fleet_name, item + 1);
            [
                format!(
                    "+refs/heads/plimsoll-items/{fleet_name}/{item_number}/*:refs/plimsoll/{fleet_name}/branches/{item_number}/*"
                ),
                format!(
                    "+{}/{item_number}/*:refs/plimsoll/{fleet_name}/texts/{item_number}/*",
                    self.remote_ref_prefix()
                ),
            ]
        };
        let refspecs: Vec<String> = [target_refspec]
            .into_iter()
            .chain(more_refspecs.iter().cloned())
            .chain(items.iter().flat_map(item_refspecs))
            .collect();
        self.remote.fetch_with_object_checks_and_prune(
            &refspecs.iter().map(String::as_str).collect::<Vec<_>>(),
            should_cancel,
        )?;
        let target_tip = self
            .last_seen_target_tip()
            .ok_or_else(|| RemoteError::ReferenceMissing(self.target_branch_ref()))?;
        self.remote
            .plimsoll_repository()
            .transfer_commit_and_set_clone_reference(&self.local_target_ref(), &target_tip)?;
        Ok(target_tip)
    }

    /// Moves the target from one commit to another and records each landing in the same push. Returns false
    /// if the target has moved meanwhile.
    pub(in super::super) fn move_target_forward(
        &self,
        from: &CommitId,
        to: &CommitId,
        item_commits: &[(usize, &CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, RemoteError> {
        let target_ref = self.target_branch_ref();
        let landing_refs: Vec<String> = item_commits
            .iter()
            .map(|(item, _)| format!("{}/landed/{}", self.remote_ref_prefix(), item + 1))
            .collect();
        let landing_pushes = landing_refs.iter().zip(item_commits).map(|(reference, (_, commit))| {
            ReferenceUpdate { new_object: Some(*commit), reference, lease: PushLease::AnyValue }
        });
        let target_push =
            ReferenceUpdate { new_object: Some(to), reference: &target_ref, lease: PushLease::Object(from) };
        let pushes: Vec<ReferenceUpdate<'_>> = [target_push].into_iter().chain(landing_pushes).collect();
        let push_result = self.remote.push_references_with_leases(&pushes, should_cancel);
        if let Err(error @ (RemoteError::Unreachable(_) | RemoteError::Canceled)) = push_result {
            return Err(error);
        }
        // The result is read from the remote, because a host may accept only a part of the push, or keep
        // reporting that the target has moved.
        let current_tip = self.fetch_target(should_cancel)?;
        match push_result {
            Ok(()) => Ok(true),
            Err(_) if current_tip == *to => Ok(true),
            Err(RemoteError::ReferenceMoved) if current_tip == *from => {
                Err(RemoteError::Rejected(format!("{target_ref} stands where it was, and cannot be moved")))
            }
            Err(RemoteError::ReferenceMoved) => Ok(false),
            // The host may reject such references. Then only the target is pushed.
            Err(RemoteError::Rejected(_)) if !item_commits.is_empty() => {
                self.move_target_forward(from, to, &[], should_cancel)
            }
            Err(error) => Err(error),
        }
    }

    /// Pushes the branch of one attempt, which no other machine writes, and the notes of its sessions.
    pub(in super::super) fn push_work_and_notes(
        &self,
        result: &ItemResult,
        branch: &BranchName,
        notes: &[String],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), RemoteError> {
        let reference = branch.full_ref_name();
        let work_commit = CommitId::parse(&result.start_commit_id)
            .map_err(|error| RemoteError::Rejected(error.to_string()))?;
        // The commits of sessions are in the clone.
        self.remote.plimsoll_repository().fetch_and_verify_commit_from_clone(&work_commit)?;
        let push = ReferenceUpdate {
            new_object: Some(&work_commit),
            reference: &reference,
            lease: PushLease::AnyValue,
        };
        self.remote.push_references_with_leases(&[push], should_cancel)?;
        if !notes.is_empty() {
            self.push_text_ref(result.item, result.epoch, NOTES_REF_NAME, &notes.join("\n"), should_cancel);
        }
        Ok(())
    }

    /// Pushes the full reason why an item was sent back.
    pub(in super::super) fn push_refusal(
        &self,
        item: usize,
        epoch: u64,
        text: &str,
        should_cancel: &dyn Fn() -> bool,
    ) {
        self.push_text_ref(item, epoch, REFUSAL_REF_NAME, text, should_cancel);
    }

    /// Pushes the commit at which the next attempt at an item begins. Returns false if that fails; then the
    /// attempt begins at the end of the target.
    pub(in super::super) fn push_start(
        &self,
        item: usize,
        epoch: u64,
        commit: &CommitId,
        should_cancel: &dyn Fn() -> bool,
    ) -> bool {
        let reference = format!("{}/{}/{epoch}/{START_REF_NAME}", self.remote_ref_prefix(), item + 1);
        let push =
            ReferenceUpdate { new_object: Some(commit), reference: &reference, lease: PushLease::AnyValue };
        self.remote.push_references_with_leases(&[push], should_cancel).is_ok()
    }

    /// Pushes a text as a reference. Errors are ignored, because a host may reject such references. Then only
    /// the note on the board says why.
    fn push_text_ref(
        &self,
        item: usize,
        epoch: u64,
        ref_name: &str,
        text: &str,
        should_cancel: &dyn Fn() -> bool,
    ) {
        let reference = format!("{}/{}/{epoch}/{ref_name}", self.remote_ref_prefix(), item + 1);
        if let Ok(blob_id) = self.remote.store_text_as_local_blob(text) {
            let push = ReferenceUpdate {
                new_object: Some(&blob_id),
                reference: &reference,
                lease: PushLease::AnyValue,
            };
            let _ = self.remote.push_references_with_leases(&[push], should_cancel);
        }
    }

    /// Returns the last reason why an item was sent back, as it was last fetched.
    pub(in super::super) fn newest_refusal_text(&self, item: usize) -> Option<String> {
        self.newest_text(item, REFUSAL_REF_NAME)
    }

    /// Returns the notes of an item's sessions, as they were last fetched.
    pub(in super::super) fn newest_notes(&self, item: usize) -> Vec<String> {
        let text = self.newest_text(item, NOTES_REF_NAME).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the text of the last attempt that has one of this name.
    fn newest_text(&self, item: usize, ref_name: &str) -> Option<String> {
        let prefix = format!("refs/plimsoll/{}/texts/{}/", self.fleet_name, item + 1);
        let parse_epoch = |reference: &str| -> Option<u64> {
            reference.strip_prefix(&prefix)?.strip_suffix(ref_name)?.strip_suffix('/')?.parse().ok()
        };
        let refs = self.remote.local_references_below(prefix.trim_end_matches('/')).into_iter();
        let (_, blob_id) = refs.filter_map(|(reference, id)| Some((parse_epoch(&reference)?, id))).max()?;
        self.remote.read_local_blob_as_text(&blob_id)
    }

    /// Removes branches and texts that machines left behind when they died, after everything is merged.
    /// Branches with work that the target does not have are kept.
    pub(in super::super) fn remove_leftover_merged_branches(
        &self,
        plan_files: &[RepoPath],
        should_cancel: &dyn Fn() -> bool,
    ) {
        let fleet_name = &self.fleet_name;
        let target_refspec = format!("+{}:{}", self.target_branch_ref(), self.local_target_ref());
        let branches_refspec =
            format!("+refs/heads/plimsoll-items/{fleet_name}/*:refs/plimsoll/{fleet_name}/branches/*");
        if self
            .remote
            .fetch_with_object_checks_and_prune(&[&target_refspec, &branches_refspec], should_cancel)
            .is_err()
        {
            return;
        }
        let prefix = format!("refs/plimsoll/{fleet_name}/branches/");
        let item_of_branch = |(name, _): (String, CommitId)| {
            name.strip_prefix(&prefix)?.split('/').next()?.parse::<usize>().ok()?.checked_sub(1)
        };
        let leftover_items: BTreeSet<usize> = self
            .remote
            .local_references_below(prefix.trim_end_matches('/'))
            .into_iter()
            .filter_map(item_of_branch)
            .collect();
        for leftover_item in leftover_items {
            // No attempt has the epoch 0, so each branch is compared with the target.
            self.remove_merged_item_refs(leftover_item, 0, plan_files, should_cancel);
        }
    }

    /// Removes the branches and texts of a merged item. The branch of an earlier attempt is kept if the
    /// target does not have all of its work, apart from changes of the plan.
    pub(in super::super) fn remove_merged_item_refs(
        &self,
        item: usize,
        landed_epoch: u64,
        plan_files: &[RepoPath],
        should_cancel: &dyn Fn() -> bool,
    ) {
        let (fleet_name, item_number) = (&self.fleet_name, item + 1);
        let branch_refs =
            self.remote.local_references_below(&format!("refs/plimsoll/{fleet_name}/branches/{item_number}"));
        let text_refs =
            self.remote.local_references_below(&format!("refs/plimsoll/{fleet_name}/texts/{item_number}"));
        let target_tip = self.last_seen_target_tip();
        let is_merged = |branch_tip: &CommitId| {
            target_tip.as_ref().is_some_and(|target_end| {
                self.merge_repository()
                    .target_contains_all_changes_of_commit(target_end, branch_tip, plan_files)
            })
        };
        let removable_branch = |(ref_name, branch_tip): &(String, CommitId)| {
            let attempt = ref_name.rsplit('/').next()?;
            let can_be_removed = attempt == landed_epoch.to_string() || is_merged(branch_tip);
            can_be_removed.then(|| {
                (
                    format!("refs/heads/plimsoll-items/{fleet_name}/{item_number}/{attempt}"),
                    branch_tip.clone(),
                )
            })
        };
        let remote_text_ref = |(ref_name, blob_id): &(String, CommitId)| {
            let rest = ref_name.strip_prefix(&format!("refs/plimsoll/{fleet_name}/texts/"))?;
            Some((format!("{}/{rest}", self.remote_ref_prefix()), blob_id.clone()))
        };
        let refs_to_remove: Vec<(String, CommitId)> = branch_refs
            .iter()
            .filter_map(removable_branch)
            .chain(text_refs.iter().filter_map(remote_text_ref))
            .collect();
        let pushes: Vec<ReferenceUpdate<'_>> = refs_to_remove
            .iter()
            .map(|(reference, object_id)| ReferenceUpdate {
                new_object: None,
                reference,
                lease: PushLease::Object(object_id),
            })
            .collect();
        if !pushes.is_empty() {
            let _ = self.remote.push_references_with_leases(&pushes, should_cancel);
        }
    }
}

/// The target of a fleet, with the record and the worktrees of this machine.
pub(in super::super) struct FleetTarget<'a> {
    remote_target: &'a RemoteTarget,
    workers_file: &'a WorkersFile,
    worktrees: &'a Worktrees,
    missing_work: MissingWork,
}

impl<'a> FleetTarget<'a> {
    /// Returns the target of the fleet that this record belongs to.
    pub(in super::super) fn new(
        remote_target: &'a RemoteTarget,
        workers_file: &'a WorkersFile,
        worktrees: &'a Worktrees,
    ) -> FleetTarget<'a> {
        FleetTarget { remote_target, workers_file, worktrees, missing_work: MissingWork::default() }
    }

    /// Records whether the remote was reachable, and converts its error.
    fn record_outage_and_convert_error<T>(&self, result: Result<T, RemoteError>) -> Result<T, MergeError> {
        self.remote_target.record_outage(match &result {
            Err(RemoteError::Unreachable(error)) => Some(error.clone()),
            _ => None,
        });
        let target_name = || self.workers_file.workers_state().target_branch_name;
        result.map_err(|error| match error {
            RemoteError::Canceled => MergeError::Aborted,
            RemoteError::ReferenceMissing(_) => MergeError::TargetBranchMissing(target_name()),
            error => MergeError::Remote(target_name(), error),
        })
    }

    /// Returns the reason why work on an item was sent back that was pushed beside its branch.
    fn load_pushed_refusal(&self, item: usize) -> Option<ReturnedWork> {
        self.remote_target.newest_refusal_text(item).as_deref().and_then(returned_work_store::from_json)
    }
}

impl Target for FleetTarget<'_> {
    fn fetch_target_tip(
        &self,
        items: &[usize],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, MergeError> {
        self.record_outage_and_convert_error(
            self.remote_target.fetch_target_items_and_landings(items, should_cancel),
        )
    }

    fn target_tip_without_fetch(&self) -> Option<CommitId> {
        self.remote_target.last_seen_target_tip()
    }

    fn recorded_merge_candidates(&self) -> Vec<(usize, CommitId)> {
        self.remote_target.fetched_merge_candidates()
    }

    fn read_contents(
        &self,
        start_commit: &CommitId,
        target_tip: &CommitId,
    ) -> Result<TargetContents, PlimsollRepositoryError> {
        self.remote_target.read_contents(start_commit, target_tip)
    }

    /// Fetches the work again if this round's fetch did not bring it.
    fn copy_work_into_merge_repository(
        &self,
        item: usize,
        commit: &CommitId,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<OfferedWork, MergeError> {
        let is_available = self.record_outage_and_convert_error(self.remote_target.fetch_work_if_missing(
            item,
            commit,
            should_cancel,
        ))?;
        Ok(self.missing_work.record_and_classify(commit, is_available, Instant::now()))
    }

    fn move_target_forward(
        &self,
        from: &CommitId,
        to: &CommitId,
        item_commits: &[(usize, &CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        self.record_outage_and_convert_error(self.remote_target.move_target_forward(
            from,
            to,
            item_commits,
            should_cancel,
        ))
    }

    fn remove_branches_of_merged_items(
        &self,
        merged_items: &[(usize, u64)],
        should_cancel: &dyn Fn() -> bool,
    ) {
        let plan_files = self.worktrees.plan_files.all_paths();
        for (item, epoch) in merged_items {
            self.remote_target.remove_merged_item_refs(*item, *epoch, &plan_files, should_cancel);
        }
    }

    fn add_work_pushed_to_remote(
        &self,
        mut worktree_spec: WorktreeSpec,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<WorktreeSpec, WorktreeSetupError> {
        let target_tip =
            self.remote_target.fetch_target_and_items(&[worktree_spec.item_index], should_cancel)?;
        // If no machine has pushed the commit, or if it is gone from the remote, the worktree begins at the
        // end of the target.
        let is_start_available = worktree_spec
            .start_commit
            .as_ref()
            .is_some_and(|commit| self.remote_target.copy_commit_to_clone(commit));
        if !is_start_available {
            worktree_spec.start_commit = Some(target_tip.clone());
            self.workers_file.update_and_write_file(|workers| {
                let item_progress = &mut workers.item_progress[worktree_spec.item_index];
                (item_progress.start_commit_id, item_progress.base_commit_id) =
                    (target_tip.to_string(), target_tip.into());
            })?;
        }
        worktree_spec.plan_item.notes.extend(self.remote_target.newest_notes(worktree_spec.item_index));
        worktree_spec.returned_work =
            self.load_pushed_refusal(worktree_spec.item_index).or(worktree_spec.returned_work);
        Ok(worktree_spec)
    }

    fn record_outage(&self, error: &RemoteError) {
        // A fetch that was given up says nothing about the remote.
        if !matches!(error, RemoteError::Canceled) {
            self.remote_target.record_outage(Some(error.to_string()));
        }
    }

    fn load_returned_work(&self, item: usize) -> Option<ReturnedWork> {
        let work_from_note = || {
            returned_work_store::note_as_unfinished_work_unless_empty(
                &self.workers_file.workers_state().board.items[item].next_session_note,
            )
        };
        self.load_pushed_refusal(item).or_else(work_from_note)
    }

    /// Pushes both, because another machine may take the next attempt, which begins at a commit that was made
    /// here.
    fn save_returned_work_and_start_commit(
        &self,
        Claim { item_index: item, epoch }: Claim,
        returned_work: &ReturnedWork,
        start_commit: Option<CommitId>,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError> {
        self.remote_target.push_refusal(
            item,
            epoch,
            &returned_work_store::to_json(returned_work),
            should_cancel,
        );
        Ok(start_commit
            .filter(|saved_commit| self.remote_target.push_start(item, epoch, saved_commit, should_cancel)))
    }

    /// Does nothing: the commits are here, and the branch is on the remote.
    fn publish_work(&self, _: &CommitId) -> bool {
        true
    }

    fn branch_or_commit_of_work(&self, workers_state: &WorkersState, item: usize, _: &CommitId) -> String {
        match &workers_state.board.items[item].stage {
            ItemStage::ReadyToMerge { commit } => commit.clone(),
            ItemStage::Open | ItemStage::Leased { .. } | ItemStage::Merged | ItemStage::SetAside { .. } => {
                workers_state.attempt_branch_name(item, workers_state.board.items[item].epoch)
            }
        }
    }

    /// Adds the notes to the item's own plan, which travels with the item's branch.
    fn carry_over_session_notes(&self, item: usize) -> Result<(), StoreError> {
        copy_notes_from_plan_copy_to_item_plan(&self.workers_file.workers_state(), self.worktrees, item)
    }

    fn add_session_notes_to_plan(&self, plan: Vec<u8>, item: usize) -> Result<Vec<u8>, StoreError> {
        let item_notes = self.remote_target.newest_notes(item).into_iter();
        let item_notes: Vec<String> = item_notes.map(|note| plimsoll_secrets::redact(&note)).collect();
        let text = &self.workers_file.workers_state().board.items[item].text;
        Ok(plan_edit::add_new_notes_to_item(&plan, text, &item_notes).unwrap_or(plan))
    }

    fn read_plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    /// Checks nothing: what was verified was pushed, and every machine has fetched it from the remote.
    fn check_completed_run(&self) -> CompletionCheck {
        CompletionCheck::default()
    }
}
