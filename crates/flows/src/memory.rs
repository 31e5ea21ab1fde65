//! The working memory as conversations see it: told at their start and after a compaction, then only what others
//! changed. What the model writes itself stands in its own calls.

use crate::call::Call;
use crate::signal::Signal;
use policy::frames;
use protocol::Reply;
use protocol::event::{Event, Source};
use session::RunState;
use session::log_line::MAIN;
use session::memory::{Op, render};
use session::text::clip;
use std::time::Duration;
use store::memory::{self, Held, Seen, Sight};
use store::{Project, StoreError, sessions};

/// A lock is held for a few milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// What the hooks themselves change is theirs.
pub(crate) const BY: &str = "hook";
/// So much of a task's text is the root's objective, as of any frame.
const LONGEST_OBJECTIVE: usize = 4_000;
/// After so many calls of the model all registers are told again.
const BLOCK_CALLS: u32 = 25;

/// Which part of the memory an entry of SessionStart tells: the client cuts a text that is too long for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Registers and the heap's index.
    Overview,
    /// What a frame is to do: after a compaction its brief is gone.
    Task,
    /// The chunks, so many entries of them.
    Chunks(usize),
}

impl Part {
    /// By the word in the hook's entry: `overview`, `task`, `chunks-1` …
    pub fn named(word: &str) -> Option<Part> {
        match word {
            "overview" => Some(Part::Overview),
            "task" => Some(Part::Task),
            word => {
                let number = word.strip_prefix("chunks-")?.parse().ok()?;
                (1..=render::ENTRIES).contains(&number).then_some(Part::Chunks(number))
            }
        }
    }
}

/// SessionStart (with the part that this entry tells), UserPromptSubmit, PostToolBatch.
pub fn memory(input: &[u8], part: Option<Part>) -> Signal {
    let call = match Call::read(input) {
        Ok(call) => call,
        Err(complaint) => return Signal::fault(complaint),
    };
    if call.session_id.is_empty() || !memory::exists(&call.project) {
        return Signal::quiet();
    }
    let told = match (call.event(), part) {
        (Event::SessionStart(start), Some(part)) => at_start(&call, start.source, part),
        (Event::UserPromptSubmit { prompt }, _) => at_prompt(&call, prompt.as_deref().unwrap_or_default()),
        (Event::PostToolBatch(_), _) => after_batch(&call),
        _ => Ok(None),
    };
    match told {
        Ok(text) => {
            Signal::reply(&Reply::default().tell_model(call.event().name(), text.unwrap_or_default()))
        }
        // Whatever was not told now is told with the next event.
        Err(error) => Signal::fault(format!("working memory: {error}; {}", error.hint())),
    }
}

/// The name under which it is noted what a conversation has been told.
pub(crate) fn stream(call: &Call) -> &str {
    call.hook.agent_id.as_deref().unwrap_or(MAIN)
}

fn at_start(call: &Call, source: Source, part: Part) -> Result<Option<String>, StoreError> {
    let agent = call.hook.agent_id.as_deref();
    if part == Part::Overview && agent.is_none() && source != Source::Compact {
        recover(call)?;
    }
    let memory = memory::load(&call.project)?;
    let Some(depth) = memory.depth_of(agent) else { return Ok(None) };
    let seen = memory::seen(&call.project, &call.session_id).of(stream(call));
    let knows = |seen: Sight| seen.kept() >= memory.rev;
    if memory.is_empty() || (source == Source::Resume && seen.is_some_and(knows)) {
        return Ok(None);
    }
    let text = match part {
        Part::Overview => Some(render::overview(&memory, depth)),
        Part::Task => (depth > 0).then(|| render::task(&memory, depth)),
        Part::Chunks(number) => render::entries(&memory).into_iter().nth(number - 1),
    };
    if text.is_some() && part != Part::Task {
        note_start(call, part, memory.rev)?;
    }
    Ok(text)
}

/// All entries of a start run at once, in any order: each must see what had been told before, and what the slowest
/// does not know yet is news.
fn note_start(call: &Call, part: Part, rev: u64) -> Result<(), StoreError> {
    let held = memory::hold(&call.project, PATIENCE)?;
    held.note_seen(&call.session_id, |seen| {
        let before = seen.of(stream(call)).unwrap_or_default();
        let least = Some(before.least.unwrap_or(rev).min(rev));
        let mut after = Sight { before_start: Some(before.kept()), least, ..before };
        if part == Part::Overview {
            (after.rev, after.calls) = (rev, 0);
        }
        seen.note(stream(call), after);
    })
}

/// Frames of this session, which has just begun, and of sessions that are no more: nobody will return from them.
fn recover(call: &Call) -> Result<(), StoreError> {
    let memory = memory::load(&call.project)?;
    let pushed = memory::seen(&call.project, &call.session_id).pushed;
    let is_own = frames::left_behind(&memory, None, &call.session_id, pushed.as_deref()) > 0;
    let started = memory.frames.get(1).and_then(|frame| frame.started.clone());
    let is_dead = started.is_some_and(|started| {
        let has_ended = || sessions::load(&call.project, &started.session).ended_at.is_some();
        started.pid.is_some_and(|pid| !launcher::process::has_pid(pid)) || has_ended()
    });
    if !is_own && !is_dead {
        return Ok(());
    }
    let mut held = memory::hold(&call.project, PATIENCE)?;
    let left = held.memory().depth();
    abandon(&mut held, left);
    held.close().map(drop)
}

/// A run with the working memory begins: its root frame is the run.
pub(crate) fn begin_run(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.memory {
        return Ok(());
    }
    memory::forget_copy(project)?;
    let mut held = memory::hold(project, PATIENCE)?;
    // A run's beginning is never refused.
    let _ = held.change("run", &Op::BeginRun { objective: objective_of(run) });
    held.close().map(drop)
}

fn objective_of(run: &RunState) -> String {
    clip(run.objective.trim(), LONGEST_OBJECTIVE)
}

/// An iteration begins: nobody works in the frames of the one before, and a root that has popped goes on.
pub(crate) fn open_for(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.memory {
        return Ok(());
    }
    memory::keep(project)?;
    let mut held = memory::hold(project, PATIENCE)?;
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

/// A session is over: nobody returns from its frames.
pub fn leave(project: &Project, session_id: &str) -> Result<(), StoreError> {
    if !memory::exists(project) {
        return Ok(());
    }
    let mut held = memory::hold(project, PATIENCE)?;
    held.note_seen(session_id, Seen::end)?;
    let pushed = memory::seen(project, session_id).pushed;
    let left = frames::left_behind(held.memory(), None, session_id, pushed.as_deref());
    abandon(&mut held, left);
    held.close().map(drop)
}

/// So many frames, from the present one down, are left by their subagents.
pub(crate) fn abandon(held: &mut Held<'_>, count: usize) {
    for _ in 0..count {
        let op = frames::abandon(held.memory());
        // There is a frame: it cannot be refused.
        let _ = held.change(BY, &op);
    }
}

/// The client's own prompts tell of background tasks; a person's makes a memory whose root is done go on.
fn at_prompt(call: &Call, prompt: &str) -> Result<Option<String>, StoreError> {
    if call.hook.in_subagent() {
        return Ok(None);
    }
    let is_persons = !prompt.starts_with("<task-notification>");
    let mut held = memory::hold(&call.project, PATIENCE)?;
    if is_persons {
        let pushed = memory::seen(&call.project, &call.session_id).pushed;
        let left = frames::left_behind(held.memory(), None, &call.session_id, pushed.as_deref());
        abandon(&mut held, left);
        if held.memory().done.is_some() && !call.is_beside_a_run_with_memory()? {
            // Reopening is never refused.
            let _ = held.change(BY, &Op::Reopen);
        }
    }
    let text = tell(&held, call, 0)?;
    held.close()?;
    Ok(text)
}

/// What others have changed since this conversation was told last; noted as told.
pub(crate) fn tell(held: &Held<'_>, call: &Call, depth: usize) -> Result<Option<String>, StoreError> {
    let (text, sight) = news(held, call, depth, &[])?;
    held.note_seen(&call.session_id, |seen| seen.note(stream(call), sight))?;
    Ok(text)
}

/// What others have changed, and what is to be noted of it. `ids` are the calls of its own that it knows of.
fn news(
    held: &Held<'_>,
    call: &Call,
    depth: usize,
    ids: &[&str],
) -> Result<(Option<String>, Sight), StoreError> {
    let before = memory::seen(&call.project, &call.session_id).of(stream(call)).unwrap_or_default();
    let since = before.knows();
    let own = match held.memory().rev > since && !ids.is_empty() {
        true => memory::made_by(&call.project, since, ids)?,
        false => Vec::new(),
    };
    let delta = render::delta(held.memory(), depth, since, &own);
    Ok((delta.text, Sight { rev: delta.told, calls: before.calls, ..Sight::default() }))
}

fn after_batch(call: &Call) -> Result<Option<String>, StoreError> {
    let ids: Vec<&str> =
        call.event().tool_calls().iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let mut held = memory::hold(&call.project, PATIENCE)?;
    let Some(depth) = held.memory().depth_of(call.hook.agent_id.as_deref()) else { return Ok(None) };
    let left = frames::over(held.memory(), &ids);
    abandon(&mut held, left);
    held.step();
    let (mut text, mut sight) = news(&held, call, depth, &ids)?;
    sight.calls += 1;
    if text.is_none() && sight.calls >= BLOCK_CALLS {
        text = Some(render::overview(held.memory(), depth));
        sight.calls = 0;
    }
    held.note_seen(&call.session_id, |seen| seen.note(stream(call), sight))?;
    held.close()?;
    Ok(text)
}
