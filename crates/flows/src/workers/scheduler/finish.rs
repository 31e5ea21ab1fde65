//! How a parallel run ends: by its board, or because it was asked to.

use super::reporter::Reporter;
use super::stop::Stop;
use crate::our_files::is_ours;
use crate::run::Progress;
use crate::run::archive::archive;
use crate::run::branch::allowed_programs;
use crate::run::changed_checks::changed_checks;
use crate::run::notify::notify;
use crate::workers::WorkersError;
use crate::workers::closing::Closing;
use crate::workers::context::ParallelRun;
use crate::workers::merger::Merger;
use plimsoll_domain::board::{Aside, Stage};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::state::Deliver;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Status, Timestamp, Verdict};
use plimsoll_launcher::branch::{Head, has_changes, head};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{clock, disk};

/// Everything is merged.
pub(super) fn closing_of_merged(run: &RunState, now: &Workers) -> Closing {
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
pub(super) fn closing_of_stuck(now: &Workers) -> Closing {
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

/// When the pause of all workers ends, if there is one.
pub(super) fn paused_until(run: ParallelRun<'_>) -> Option<Timestamp> {
    let until = clock::at(run.board.paused_until() / 1_000)?;
    (until > clock::now()).then(|| clock::stamp(until))
}

/// Writes down how the run ends, and says where its work is. Returns the exit code.
pub(super) fn finish(
    run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    stop: &Stop,
    closing: Closing,
) -> Result<u8, WorkersError> {
    run.board.leave(&run.trees.plan_files.all(), &stop.give_up());
    run.show()?;
    merge_notes(run, reporter, stop, &closing);
    let closing = check_completion(run, reporter, closing);
    note_changed_checks(run)?;
    let _ = run.trees.remove_merger();
    report_merged_items(run, reporter);
    let code = match closing {
        Closing::Interrupted => pause_for_user(run, reporter)?,
        Closing::Cancelled => Status::Cancelled.exit_code(),
        Closing::Stop(status, reason) => {
            move_users_branch_if_asked(run, reporter);
            record_verdict(run, reporter, &Verdict::Stop { status, reason })?
        }
        Closing::Pause(kind, reason) => {
            record_verdict(run, reporter, &Verdict::Pause { kind, until: paused_until(run), reason })?
        }
    };
    let state = run.context.load_state()?;
    reporter.tell(&Progress::Over { state: state.as_ref(), code });
    Ok(code)
}

/// Writes down which files that check the work differ on the run's branch.
fn note_changed_checks(run: ParallelRun<'_>) -> Result<(), WorkersError> {
    let target = run.record().target_branch().ok();
    let end = target.and_then(|target| worktree::end_of(&run.trees.ground.repository, &target));
    let Some(end) = end else { return Ok(()) };
    let changed = changed_checks(run.context.project, run.state, Some(&end));
    run.context.update_lazily(|state| state.outcomes.changed_checks = changed)?;
    Ok(())
}

/// Merges notes of items that are not merged. Where every item is, their notes came with them, and a run that is to go on brings
/// them with the next one.
fn merge_notes(run: ParallelRun<'_>, reporter: &mut Reporter<'_>, stop: &Stop, closing: &Closing) {
    let ends_early = match closing {
        Closing::Stop(status, _) => !matches!(status, Status::Completed | Status::Cancelled),
        Closing::Interrupted | Closing::Cancelled | Closing::Pause(..) => false,
    };
    let give_up = stop.give_up();
    let mut merger = Merger::new(run, &give_up, reporter.sender(), true);
    if ends_early && merger.merge_notes().unwrap_or(false) {
        reporter.tell_note("the notes of items that are not merged were added to the plan on the branch");
    }
}

/// A run is not completed, and nothing is delivered, if what the user has is not what was verified, or lines of its plan look like
/// items and are none.
fn check_completion(run: ParallelRun<'_>, reporter: &mut Reporter<'_>, closing: Closing) -> Closing {
    if !matches!(closing, Closing::Stop(Status::Completed, _)) {
        return closing;
    }
    let checked = run.target.check_completed();
    checked.notes.into_iter().for_each(|words| reporter.tell_note(words));
    checked.objection.map_or(closing, |reason| Closing::Stop(Status::Blocked, reason))
}

fn report_merged_items(run: ParallelRun<'_>, reporter: &mut Reporter<'_>) {
    let now = run.record();
    let merged = now.board.items.iter().filter(|row| row.stage == Stage::Merged).count();
    reporter.tell_note(format!("{merged} of {} merged", counted(now.board.items.len(), "item")));
    for (item, row) in now.board.items.iter().enumerate().filter(|(_, row)| row.stage != Stage::Merged) {
        let tree = run.trees.of_item(item);
        if disk::exists(&tree) {
            reporter.tell_note(format!(
                "the work on \"{}\" so far is in {}",
                clip(&one_line(&row.text), 60),
                tree.display()
            ));
        }
    }
}

fn pause_for_user(run: ParallelRun<'_>, reporter: &mut Reporter<'_>) -> Result<u8, WorkersError> {
    let reason = "stopped with Ctrl-C".to_owned();
    let verdict = Verdict::Pause { kind: PauseKind::Interrupted, until: None, reason };
    run.context.update(|state| state.lifecycle.wait_for(&verdict))?;
    reporter.tell_note("stopped, as requested with Ctrl-C");
    Ok(ExitStatus::Interrupted.code())
}

fn record_verdict(
    run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    verdict: &Verdict,
) -> Result<u8, WorkersError> {
    let now = clock::stamp(clock::now());
    let state = run.context.update(|state| {
        match verdict {
            Verdict::Stop { status, .. } => state.lifecycle.stop(*status, verdict, now),
            Verdict::Pause { .. } | Verdict::Continue { .. } => state.lifecycle.take(verdict),
        }
        state.clone()
    })?;
    let Some(state) = state else { return Ok(1) };
    let event = JournalEvent::Verdict(Box::new(VerdictReached::of(verdict)));
    run.context.note_of_run(&state, event)?;
    if state.lifecycle.is_over() {
        archive(run.context.project, &state)?;
    }
    reporter.tell(&Progress::Judged { state: &state, verdict });
    notify(run.context.project, &state, verdict);
    Ok(state.lifecycle.status().exit_code())
}

/// `--deliver merge`: moves the user's branch forward, where nothing of the user's is in the way.
fn move_users_branch_if_asked(run: ParallelRun<'_>, reporter: &mut Reporter<'_>) {
    let workers = run.state.options.workers.as_ref();
    if workers.is_none_or(|workers| workers.deliver != Deliver::Merge) {
        return;
    }
    let words = move_users_branch(run).unwrap_or_else(|why| format!("nothing was delivered: {why}"));
    reporter.tell_note(words);
}

fn move_users_branch(run: ParallelRun<'_>) -> Result<String, NotDelivered> {
    let now = run.record();
    let root = run.context.project.root();
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
    worktree::fast_forward(root, &end, allowed_programs(run.state.options.commit_hooks))?;
    Ok(format!("`{branch}` has everything that was merged"))
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
