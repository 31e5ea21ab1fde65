//! Takes away the worktrees of what is merged.

use super::followed::living;
use super::reporter::Reporter;
use crate::our_files::is_ours;
use crate::run::branch::allowed_programs;
use crate::workers::context::ParallelRun;
use crate::workers::records;
use plimsoll_domain::board::Stage;
use plimsoll_domain::text::one_line;
use plimsoll_domain::workers::Workers;
use plimsoll_launcher::wip::uncommitted_files;
use plimsoll_launcher::worktree;
use plimsoll_store::{Project, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So many files that a worktree stays for are named.
const MAX_NAMED_FILES: usize = 10;

/// The worktrees that have to stay.
#[derive(Debug, Default)]
pub(super) struct Cleanup {
    /// Items whose worktrees have to stay, and that were named.
    kept: BTreeSet<usize>,
}

impl Cleanup {
    /// Takes away the worktrees of what is merged, here or by another machine: their records first. One that has to stay is named. What
    /// a worker still has follows once its run has ended.
    pub(super) fn remove_merged(
        &mut self,
        run: ParallelRun<'_>,
        in_work: &[usize],
        reporter: &mut Reporter<'_>,
    ) -> Result<(), StoreError> {
        let now = run.record();
        for (item, row) in now.board.items.iter().enumerate() {
            let tree = run.trees.of_item(item);
            // What was never taken here has no worktree here.
            let is_of_others = now.works[item].worker == 0;
            let stays = is_of_others || in_work.contains(&item) || self.kept.contains(&item);
            if row.stage != Stage::Merged || stays || !disk::exists(&tree) {
                continue;
            }
            let project = run.trees.project(&tree);
            // Work that was landed by another attempt: the late one ends before its folder goes.
            if living(&project, &now.works[item]).is_some() {
                continue;
            }
            // A client that outlived its run may have written since.
            run.target.carry_notes(item)?;
            let moved = records::move_to(&project, run.context.project).map_err(|error| error.to_string());
            let removed = moved
                .and_then(|()| describe_uncommitted(run, &project, &tree).map_or(Ok(()), Err))
                .and_then(|()| run.trees.remove(&tree).map_err(|error| error.to_string()));
            match removed {
                Ok(()) => remove_branches(run, &now, item),
                Err(why) => {
                    reporter.tell_note(format!(
                        "the worktree of \"{}\" stays at {}: {why}",
                        one_line(&row.text),
                        tree.display()
                    ));
                    self.kept.insert(item);
                }
            }
        }
        Ok(())
    }
}

/// Names the files of a worktree that no commit has, because they look like secrets, are large, or are under a filter that may
/// not run; `None` if there is no such file. The plan is not among them: what sessions wrote into it was carried over.
fn describe_uncommitted(run: ParallelRun<'_>, project: &Project, tree: &Path) -> Option<String> {
    let allowed = allowed_programs(run.state.options.commit_hooks);
    let plans: Vec<PathBuf> =
        run.trees.plan_files.all().iter().map(|plan| tree.join(plan.as_str())).collect();
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

/// The branches of an item that is merged. Of an earlier attempt it stays if anything of it is not on the target: what was done
/// anew after a conflict may have lost a line.
fn remove_branches(run: ParallelRun<'_>, now: &Workers, item: usize) {
    let repository = &run.trees.ground.repository;
    let target = run.target.last_seen_tip();
    let (own, plan_files) = (run.trees.merge.own(), run.trees.plan_files.all());
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
