//! The working memory as conversations see it: all of it at their start and after a compaction, then only what others
//! changed. What the model writes itself is in its own calls.

use crate::hook_invocation::HookInvocation;
use crate::turns::catch_up;
use plimsoll_domain::log_line::MAIN;
use plimsoll_domain::memory::{Memory, Op, Owner, render};
use plimsoll_domain::state::Phase;
use plimsoll_domain::text::clip;
use plimsoll_domain::{RunState, SessionId};
use plimsoll_launcher::process::{self, Identity};
use plimsoll_policy::frames::{self, Caller};
use plimsoll_protocol::event::Source;
use plimsoll_store::memory::{self, Held, Seen, SeenRevision};
use plimsoll_store::{Project, StoreError, environment, ledger, lock, sessions, state_file};
use std::path::Path;
use std::time::Duration;

/// A lock is held for a few milliseconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);
/// What the hooks themselves change is theirs.
pub(crate) const BY: &str = "hook";
/// How much of a task's text is the root's objective, as of any frame.
const LONGEST_OBJECTIVE: usize = 4_000;
/// After this many calls of the model, all registers are shown again.
const BLOCK_CALLS: u32 = 25;

/// The number of an entry of SessionStart among those that together show the memory: the client cuts a text that is too long for
/// one hook. The first is the briefing's, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputNumber(usize);

impl OutputNumber {
    /// The entry that shows the registers.
    pub const FIRST: OutputNumber = OutputNumber(1);

    /// The number that the word in a hook's entry names: `part-2` … `part-5`.
    pub fn from_argument(word: &str) -> Option<OutputNumber> {
        let number = word.strip_prefix("part-")?.parse::<usize>().ok()?;
        (2..=render::OUTPUTS).contains(&number).then_some(OutputNumber(number))
    }
}

/// An agent may have cleaned the memory away in the middle of its session: a run has a copy.
pub(crate) fn bring_back(call: &HookInvocation) {
    if ledger::run_of_environment().is_some() {
        // Without it nothing is shown now; the next iteration tries again.
        let _ = memory::bring_back(&call.project);
    }
}

/// The key of a conversation in the record of what has been shown.
pub(crate) fn stream(call: &HookInvocation) -> &str {
    call.hook.agent_id.as_deref().unwrap_or(MAIN)
}

/// What a conversation is told when it begins, resumes or has been compacted.
pub(crate) fn at_start(
    call: &HookInvocation,
    source: Source,
    number: OutputNumber,
    room: usize,
) -> Result<Option<String>, StoreError> {
    let agent = call.hook.agent_id.as_deref();
    if number == OutputNumber::FIRST && agent.is_none() && source != Source::Compact {
        memory::sweep_seen(&call.project);
        recover(call, true)?;
    }
    let memory = memory::load(&call.project)?;
    let Some(depth) = memory.depth_of(agent) else { return Ok(None) };
    let seen = memory::seen(&call.project, &call.session_id).of(stream(call));
    let knows = |seen: SeenRevision| seen.kept() >= memory.rev && seen.rev <= memory.rev;
    // What a resumed conversation was told is still in it.
    if memory.is_empty() || (source == Source::Resume && seen.is_some_and(knows)) {
        return Ok(None);
    }
    // Each hook's context is bounded by itself (2.1.329), so several entries show what one could not.
    let opening = render::opening(&memory, depth, room);
    let text = opening.outputs.into_iter().nth(number.0 - 1);
    if text.is_some() {
        note_start(call, number, (memory.rev, opening.shown_to))?;
    }
    Ok(text)
}

/// Records what an entry of SessionStart has shown. All entries run at once, in any order: each must see the revision from
/// before the start, and a change that the slowest has not shown counts as new.
fn note_start(
    call: &HookInvocation,
    number: OutputNumber,
    (rev, shown_to): (u64, u64),
) -> Result<(), StoreError> {
    let held = memory::hold(&call.project, TIMEOUT)?;
    held.note_seen(&call.session_id, |seen| {
        let before = seen.of(stream(call)).unwrap_or_default();
        let least = Some(before.least.unwrap_or(shown_to).min(shown_to));
        let mut after = SeenRevision { before_start: Some(before.kept()), least, ..before };
        if number == OutputNumber::FIRST {
            (after.rev, after.calls) = (rev, 0);
        }
        // The entries run at once: what they have told together, the first batch looks up.
        seen.told = None;
        seen.note(stream(call), after);
    })
}

/// This session, and its client.
pub(crate) fn owner(call: &HookInvocation) -> Owner {
    // The client names its process to hooks; one that does not is known by its session alone.
    let pid = environment::number("CLAUDE_PID").map(|pid| pid as u32);
    let process_started = pid.and_then(process::identity).map(|identity| identity.started);
    Owner { session: call.session_id.clone(), pid, process_started }
}

/// Gives up the frames of sessions that are no more, and of this one where it starts again: no agent will return from them.
/// Answers with the memory as it then is.
pub(crate) fn recover(call: &HookInvocation, begins: bool) -> Result<Memory, StoreError> {
    let memory = memory::load(&call.project)?;
    let Some(first) = memory.frames.get(1) else { return Ok(memory) };
    let owner = match &first.started {
        Some(started) => Some(started.owner.clone()),
        None => first.pushed_by.as_ref().and_then(|call_id| memory::pusher(&call.project, call_id)),
    };
    let is_over = owner.is_none_or(|owner| {
        let is_own = owner.session == call.session_id;
        if is_own { begins } else { is_gone(call, &owner) }
    });
    // A client that names no calls cannot be asked; the user can end such a frame.
    if !is_over || (first.started.is_none() && first.pushed_by.is_none()) {
        return Ok(memory);
    }
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    let left = held.memory().depth();
    abandon(&mut held, left);
    held.close()
}

/// True for another session that has ended, or whose client has: a client works for one session at a time.
fn is_gone(call: &HookInvocation, owner: &Owner) -> bool {
    let record = sessions::load(&call.project, &owner.session);
    let has_ended =
        record.end.ended_at.is_some() || (owner.pid.is_some() && owner.pid == self::owner(call).pid);
    has_ended
        || match (owner.pid, owner.process_started) {
            (Some(pid), Some(started)) => process::life(Identity { pid, started }).is_gone(),
            (Some(pid), None) => process::life_of(pid).is_gone(),
            (None, _) => record.start.transcript_path.is_none_or(|path| catch_up::is_quiet(Path::new(&path))),
        }
}

/// A run with the working memory begins: its root frame is the run.
pub(crate) fn begin_run(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.options.memory {
        return Ok(());
    }
    // The copy of an earlier run's memory must not come back over this one's. A kill before the new copy leaves none;
    // `open_for` makes it.
    memory::forget_copy(project)?;
    let mut held = memory::hold(project, TIMEOUT)?;
    // An agent that works in a frame of the project is told that it is over.
    let left = held.memory().depth();
    abandon(&mut held, left);
    // A run's beginning is never refused.
    let _ = held.change("run", &Op::BeginRun { objective: objective_of(run) });
    held.close()?;
    memory::keep(project)
}

fn objective_of(run: &RunState) -> String {
    clip(run.options.objective.trim(), LONGEST_OBJECTIVE)
}

/// The active run of this project with the working memory.
pub fn run_at_work(project: &Project) -> Result<Option<RunState>, StoreError> {
    let run = state_file::load(project, None)?.filter(|run| run.options.memory && !run.lifecycle.is_over());
    // A shell loop holds no lock, and its client's pid is unknown.
    let is_in_shell_loop =
        |run: &RunState| run.iteration_record.phase == Phase::Spawned && run.iteration_record.pid.is_none();
    Ok(run.filter(|run| is_in_shell_loop(run) || lock::is_run_held(project)))
}

/// True next to an active run with the working memory: its root frame is the run,
/// and an ordinary session neither ends a run nor takes its word back.
pub(crate) fn is_beside_a_run(call: &HookInvocation) -> Result<bool, StoreError> {
    let Some(run) = run_at_work(&call.project)? else { return Ok(false) };
    Ok(run.session_id.as_ref() != Some(&call.session_id))
}

/// An iteration begins: no agent works in the frames of the previous one, and a root that has popped continues.
pub(crate) fn open_for(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.options.memory {
        return Ok(());
    }
    memory::keep(project)?;
    let mut held = memory::hold(project, TIMEOUT)?;
    let left = held.memory().depth();
    abandon(&mut held, left);
    if held.memory().done.is_some() {
        // Reopening is never refused.
        let _ = held.change("run", &Op::Reopen);
    }
    // A run that was given its memory later, or has lost it.
    if held.memory().frames[0].objective != objective_of(run) {
        let _ = held.change("run", &Op::BeginRun { objective: objective_of(run) });
    }
    held.close().map(drop)
}

/// A session is over: no agent returns from its frames.
pub fn leave(project: &Project, session_id: &SessionId) -> Result<(), StoreError> {
    if !memory::exists(project) {
        return Ok(());
    }
    let mut held = memory::hold(project, TIMEOUT)?;
    held.note_seen(session_id, Seen::end)?;
    abandon_own(&mut held, project, session_id);
    held.close().map(drop)
}

/// The session's turn is over: no agent returns from the frames that it has pushed.
pub(crate) fn abandon_own(held: &mut Held<'_>, project: &Project, session_id: &SessionId) {
    let seen = memory::seen(project, session_id);
    let who = Caller { agent: None, pushed: seen.pushed_call() };
    let left = frames::left_behind(held.memory(), who, session_id);
    abandon(held, left);
}

/// This many frames, from the current one down, were left by their subagents.
pub(crate) fn abandon(held: &mut Held<'_>, count: usize) {
    for _ in 0..count {
        let op = frames::abandon(held.memory());
        // There is a frame: it cannot be refused.
        let _ = held.change(BY, &op);
    }
}

/// What a conversation is told with a prompt. The client's own prompts mention background tasks; the user's makes a memory whose root is done continue.
pub(crate) fn at_prompt(call: &HookInvocation, prompt: &str) -> Result<Option<String>, StoreError> {
    if call.hook.in_subagent() {
        return Ok(None);
    }
    // UserPromptSubmit also comes for a background task that is done (2.1.329): nobody has typed that.
    let is_persons = !prompt.starts_with("<task-notification>");
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    if is_persons {
        abandon_own(&mut held, &call.project, &call.session_id);
        held.note_seen(&call.session_id, |seen| seen.done = false)?;
        if held.memory().done.is_some() && !is_beside_a_run(call)? {
            // Reopening is never refused.
            let _ = held.change(BY, &Op::Reopen);
        }
    }
    let text = tell(&held, call, 0, render::ENTRY_UNITS)?;
    held.close()?;
    Ok(text)
}

/// The changes by others since this conversation was last shown any; recorded as shown.
pub(crate) fn tell(
    held: &Held<'_>,
    call: &HookInvocation,
    depth: usize,
    room: usize,
) -> Result<Option<String>, StoreError> {
    let (text, sight) = news(held, call, (depth, room), &[])?;
    held.note_seen(&call.session_id, |seen| seen.note(stream(call), sight))?;
    Ok(text)
}

/// The changes by others, and the record to write. `ids` are the conversation's own calls.
fn news(
    held: &Held<'_>,
    call: &HookInvocation,
    (depth, room): (usize, usize),
    ids: &[&str],
) -> Result<(Option<String>, SeenRevision), StoreError> {
    let before = memory::seen(&call.project, &call.session_id).of(stream(call)).unwrap_or_default();
    // A memory that is younger than what the conversation was told is another one.
    let since = Some(before.knows()).filter(|rev| *rev <= held.memory().rev).unwrap_or(0);
    let own = if held.memory().rev > since && !ids.is_empty() {
        memory::made_by(&call.project, since, ids)?
    } else {
        Vec::new()
    };
    let delta = render::delta_within(held.memory(), depth, since, &own, room);
    Ok((delta.text, SeenRevision { rev: delta.shown_to, calls: before.calls, ..SeenRevision::default() }))
}

/// What a conversation is told after a batch of tools: in as many units as there are, and without waiting longer for the lock.
pub(crate) fn after_batch(
    call: &HookInvocation,
    room: usize,
    timeout: Duration,
) -> Result<Option<String>, StoreError> {
    let is_sessions_own = stream(call) == MAIN;
    let ids: Vec<&str> =
        call.event().tool_calls().iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let mut held = memory::hold(&call.project, timeout)?;
    let Some(depth) = held.memory().depth_of(call.hook.agent_id.as_deref()) else { return Ok(None) };
    let left = frames::over(held.memory(), &ids);
    abandon(&mut held, left);
    let (mut text, mut sight) = news(&held, call, (depth, room), &ids)?;
    sight.calls += 1;
    if is_sessions_own {
        sight.calls +=
            memory::seen(&call.project, &call.session_id).calls_since_told(&call.project, &call.session_id);
    }
    held.answered(&call.session_id);
    if text.is_none() && sight.calls >= BLOCK_CALLS {
        text = render::overview_within(held.memory(), depth, room);
        // Without the room for it they are shown with the next call.
        sight.calls = if text.is_some() { 0 } else { sight.calls };
    }
    // In a frame the next batch may end it: that is looked up each time.
    let is_all = is_sessions_own && held.memory().depth() == 0 && sight.rev == held.memory().rev;
    let told = if is_all { held.told() } else { None };
    held.note_seen(&call.session_id, |seen| {
        if is_sessions_own {
            seen.told = told;
        }
        seen.note(stream(call), sight);
    })?;
    held.close()?;
    Ok(text)
}

/// True if a batch has nothing to tell its conversation, which is seen without reading the memory; its answer is counted.
pub(crate) fn is_as_told(call: &HookInvocation) -> bool {
    stream(call) == MAIN
        && memory::is_as_told(&call.project, || call.memory(), (&call.session_id, MAIN), BLOCK_CALLS)
}
