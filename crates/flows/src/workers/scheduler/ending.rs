//! How a parallel run ends: by its board, or because it was asked to.

use super::{Closing, Scheduler};
use crate::our_files::is_ours;
use crate::run::Progress;
use crate::run::archive::archive;
use crate::run::branch::allowed_programs;
use crate::run::changed_checks::changed_checks;
use crate::run::notify::notify;
use crate::workers::WorkersError;
use crate::workers::board::{show, shown_plan};
use plimsoll_domain::board::{Aside, Stage};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::state::Deliver;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Status, TodoList, Verdict};
use plimsoll_launcher::branch::{Head, has_changes, head};
use plimsoll_launcher::{git, worktree};
use plimsoll_policy::todo_list::unclear_at_end;
use plimsoll_store::{Durability, clock, disk, journal, state_file};

/// As a shell reports an interrupt.
const INTERRUPTED: u8 = 130;

/// Everything is merged.
pub(super) fn done(run: &RunState, now: &Workers) -> Closing {
    match run.options.verify.iter().find(|command| !now.passed.contains(command)) {
        None => Closing::Stop(
            Status::Completed,
            match run.options.verify.len() {
                0 => format!("{} merged", counted(now.board.items.len(), "item")),
                many => format!(
                    "{} merged, {} passed",
                    counted(now.board.items.len(), "item"),
                    counted(many, "verify command")
                ),
            },
        ),
        Some(command) => Closing::Stop(
            Status::Blocked,
            format!("every item is merged, and `{}` does not pass on the branch", one_line(command)),
        ),
    }
}

/// What is left is set aside, or waits for what is.
pub(super) fn stuck(now: &Workers) -> Closing {
    let mut reasons = Vec::new();
    let mut is_stuck = false;
    for row in &now.board.items {
        let item = clip(&one_line(&row.text), 60);
        match &row.stage {
            Stage::Aside { reason: Aside::Question(question) } => {
                reasons.push(format!("{} (item \"{item}\")", clip(question, 200)));
            }
            Stage::Aside { reason: Aside::Tries } => {
                is_stuck = true;
                reasons.push(format!("\"{item}\" could not be merged: {}", clip(&row.note, 200)));
            }
            Stage::Aside { reason: Aside::Ended(why) } => {
                is_stuck = true;
                reasons.push(format!("\"{item}\" could not be done: {}", clip(why, 200)));
            }
            Stage::Open | Stage::Leased { .. } | Stage::Offered { .. } | Stage::Merged => {}
        }
    }
    if reasons.is_empty() {
        return Closing::Stop(
            Status::Blocked,
            "the open items wait for each other: see plimsoll plan".to_owned(),
        );
    }
    Closing::Stop(if is_stuck { Status::CircuitBreaker } else { Status::Blocked }, reasons.join("; "))
}

impl Scheduler<'_, '_> {
    /// Writes down how the run ends, and says where its work is.
    pub(super) fn finish(&mut self, closing: Closing) -> Result<u8, WorkersError> {
        self.leave_fleet()?;
        show(self.project, self.run, self.table)?;
        self.merge_notes(&closing);
        let closing = self.distrust_clone(closing);
        let closing = self.block_on_unclear_lines(closing);
        self.note_changed_checks()?;
        let _ = self.trees.remove_merger(self.table.shared.is_some());
        self.tell_kept();
        let code = match closing {
            Closing::Interrupted => self.wait_for_user()?,
            Closing::Cancelled => self.after_stop()?,
            Closing::Stop(status, reason) => {
                self.deliver();
                self.stop(&Verdict::Stop { status, reason })?
            }
            Closing::Pause(kind, reason) => {
                self.stop(&Verdict::Pause { kind, until: self.paused_until(), reason })?
            }
        };
        let state = state_file::load(self.project, Some(&self.run.run_id))?;
        self.watcher.tell(&Progress::Over { state: state.as_ref(), code });
        Ok(code)
    }

    /// Writes down which files that check the work differ on the run's branch.
    fn note_changed_checks(&self) -> Result<(), WorkersError> {
        let target = self.table.now().target_branch().ok();
        let end = target.and_then(|target| worktree::end_of(&self.trees.ground.repository, &target));
        let Some(end) = end else { return Ok(()) };
        let changed = changed_checks(self.project, self.run, Some(&end));
        state_file::update(self.project, Some(&self.run.run_id), Durability::Lazy, |state| {
            state.outcomes.changed_checks = changed;
        })?;
        Ok(())
    }

    /// Merges notes of items that are not merged. Where every item is, their notes came with them, and a run that is to go on brings
    /// them with the next one.
    fn merge_notes(&mut self, closing: &Closing) {
        let ends_early = match closing {
            Closing::Stop(status, _) => !matches!(status, Status::Completed | Status::Cancelled),
            Closing::Interrupted | Closing::Cancelled | Closing::Pause(..) => false,
        };
        let give_up = self.give_up();
        if ends_early && self.merger(&give_up).merge_notes().unwrap_or(false) {
            let words = "the notes of items that are not merged were added to the plan on the branch";
            self.watcher.tell(&Progress::Note(words.to_owned()));
        }
    }

    /// Everything was verified in a repository of ours, and the user has the clone. If that is not the same, the run is not
    /// completed, and nothing is delivered.
    fn distrust_clone(&mut self, closing: Closing) -> Closing {
        let is_completed = matches!(closing, Closing::Stop(Status::Completed, _));
        if !is_completed || self.table.shared.is_some() {
            return closing;
        }
        self.tell_hidden_history();
        match self.difference_to_clone() {
            Some(why) => Closing::Stop(Status::Blocked, why),
            None => closing,
        }
    }

    /// A run is not completed while lines of its plan look like items and are none. They came into the plan since it began.
    fn block_on_unclear_lines(&self, closing: Closing) -> Closing {
        if !matches!(closing, Closing::Stop(Status::Completed, _)) || self.table.shared.is_some() {
            return closing;
        }
        let now = self.table.now();
        let plans = [
            shown_plan(self.project, &now).ok(),
            disk::read(&self.project.root().join(&now.plan)).ok().flatten(),
        ];
        let unclear = plans.into_iter().flatten().find_map(|plan| {
            let unclear = TodoList::parse(&String::from_utf8_lossy(&plan)).unclear;
            // The ticks of the user's own file are behind those of the run, so only the lines count here.
            unclear_at_end(&TodoList { unclear, ..TodoList::default() }, &now.plan)
        });
        unclear.map_or(closing, |reason| Closing::Stop(Status::Blocked, reason))
    }

    /// What of the clone's branch is not what was verified.
    fn difference_to_clone(&self) -> Option<String> {
        let now = self.table.now();
        let branch = one_line(&now.target);
        let end = now
            .target_branch()
            .ok()
            .and_then(|target| worktree::end_of(&self.trees.ground.repository, &target));
        let Some(end) = end else { return Some(format!("the branch `{branch}` is gone")) };
        let landings = now.board.items.iter().flat_map(|row| &row.landings);
        if !landings.chain([&now.began_at]).any(|commit| commit == end.as_str()) {
            return Some(format!(
                "every item is merged, and something other than this run moved `{branch}` to {end}, which was not verified: look at it (git log {branch})"
            ));
        }
        let began = clock::moment(&self.run.at_start.started_at)?;
        let checked = self.trees.merge.own().check_clone_since(began.into());
        checked.err().map(|error| format!("every item is merged and verified, and {error}; see git fsck"))
    }

    /// Says what git shows in this clone, and in no other.
    fn tell_hidden_history(&mut self) {
        for words in worktree::local_views(&self.trees.ground.repository) {
            self.watcher.tell(&Progress::Note(words));
        }
    }

    pub(super) fn paused_until(&self) -> Option<plimsoll_domain::Timestamp> {
        let until = clock::at(self.table.paused_until() / 1_000)?;
        (until > clock::now()).then(|| clock::stamp(until))
    }

    fn tell_kept(&mut self) {
        let now = self.table.now();
        let merged = now.board.items.iter().filter(|row| row.stage == Stage::Merged).count();
        let words = format!("{merged} of {} merged", counted(now.board.items.len(), "item"));
        self.watcher.tell(&Progress::Note(words));
        for (item, row) in now.board.items.iter().enumerate().filter(|(_, row)| row.stage != Stage::Merged) {
            let tree = self.trees.of_item(item);
            if disk::exists(&tree) {
                let words = format!(
                    "the work on \"{}\" so far is in {}",
                    clip(&one_line(&row.text), 60),
                    tree.display()
                );
                self.watcher.tell(&Progress::Note(words));
            }
        }
    }

    fn wait_for_user(&mut self) -> Result<u8, WorkersError> {
        let verdict = Verdict::Pause {
            kind: PauseKind::Interrupted,
            until: None,
            reason: "stopped with Ctrl-C".to_owned(),
        };
        state_file::update(self.project, Some(&self.run.run_id), Durability::Durable, |state| {
            state.lifecycle.wait_for(&verdict);
        })?;
        self.watcher.tell(&Progress::Note("stopped, as requested with Ctrl-C".to_owned()));
        Ok(INTERRUPTED)
    }

    fn after_stop(&mut self) -> Result<u8, WorkersError> {
        Ok(Status::Cancelled.exit_code())
    }

    fn stop(&mut self, verdict: &Verdict) -> Result<u8, WorkersError> {
        let now = clock::stamp(clock::now());
        let state = state_file::update(self.project, Some(&self.run.run_id), Durability::Durable, |state| {
            match verdict {
                Verdict::Stop { status, .. } => state.lifecycle.stop(*status, verdict, now),
                Verdict::Pause { .. } | Verdict::Continue { .. } => state.lifecycle.take(verdict),
            }
            state.clone()
        })?;
        let Some(state) = state else { return Ok(1) };
        let event = JournalEvent::Verdict(Box::new(VerdictReached::of(verdict)));
        journal::note(self.project, JournalEntry::of_run(&state, event))?;
        if state.lifecycle.is_over() {
            archive(self.project, &state)?;
        }
        self.watcher.tell(&Progress::Judged { state: &state, verdict });
        notify(self.project, &state, verdict);
        Ok(state.lifecycle.status().exit_code())
    }

    /// `--deliver merge`: moves the user's branch forward, where nothing of the user's is in the way.
    fn deliver(&mut self) {
        let workers = self.run.options.workers.as_ref();
        if workers.is_none_or(|workers| workers.deliver != Deliver::Merge) {
            return;
        }
        let words = self.delivered().unwrap_or_else(|why| format!("nothing was delivered: {why}"));
        self.watcher.tell(&Progress::Note(words));
    }

    fn delivered(&self) -> Result<String, NotDelivered> {
        let now = self.table.now();
        let root = self.project.root();
        let branch = now.users_branch.clone();
        let target = now.target_branch().map_err(|_| NotDelivered::Gone)?;
        let end = worktree::end_of(root, &target).ok_or(NotDelivered::Gone)?;
        if !head(root).is_ok_and(|head| head == Head::Branch(branch.clone())) {
            return Err(NotDelivered::Elsewhere(branch));
        }
        let at = git::head(root).ok_or(NotDelivered::Gone)?;
        if at != end && at.as_str() != now.began_at && !worktree::contains(root, &end, &at) {
            return Err(NotDelivered::Moved(branch));
        }
        if has_changes(root, &is_ours).unwrap_or(true) {
            return Err(NotDelivered::Dirty);
        }
        worktree::fast_forward(root, &end, allowed_programs(self.run.options.commit_hooks))?;
        Ok(format!("`{branch}` has everything that was merged"))
    }
}

/// Why the user's branch was not moved forward.
#[derive(Debug, thiserror::Error)]
enum NotDelivered {
    #[error("the run's branch is gone")]
    Gone,
    #[error("`{0}` is not checked out")]
    Elsewhere(String),
    #[error("`{0}` has moved since the run began")]
    Moved(String),
    #[error("there are uncommitted changes")]
    Dirty,
    #[error(transparent)]
    Git(#[from] worktree::WorktreeError),
}
