//! Taking over a state that another program wrote: first what would be taken, then the taking.

use super::create::{NewRun, begin, state, task, todo, write_first_files};
use super::newest::nameless;
use super::{StartError, records};
use crate::run::{branch, protect};
use plimsoll_domain::handoff::{Handoff, Notes};
use plimsoll_domain::promise::PromiseWord;
use plimsoll_domain::state::Checkpoint;
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, Settings, TodoList};
use plimsoll_policy::adopt::{Ground, Row, adopt, handoff_of};
use plimsoll_policy::foreign;
use plimsoll_store::{Durability, Project, clock, config, disk, state_file};
use serde_json::Value;
use std::path::PathBuf;

/// What the command line says beside the new run: only what is given outranks the file.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `--max-iterations`.
    pub max_iterations: Option<u32>,
    /// `--promise`, where it is not the usual word.
    pub promise: Option<PromiseWord>,
}

/// What would be taken.
#[derive(Debug)]
pub struct Offer {
    /// The file, relative to the project.
    pub file: String,
    /// What a run of ours has and the file lacks.
    pub missing: Vec<&'static str>,
    /// Its fields.
    pub rows: Vec<Row>,
    /// What the user should know before agreeing.
    pub careful: Vec<String>,
    document: Value,
    state: RunState,
    task: Vec<u8>,
    list: Option<TodoList>,
    lacks_handoff: bool,
}

/// The heading under which the scripts of such loops put a checkpoint into PROMPT.md.
const RESUME_HEADING: &str = "CONTEXT CHECKPOINT RESUME";

/// Looks at what is there; nothing is written.
pub fn look(project: &Project, new: &NewRun, given: &Given) -> Result<Offer, StartError> {
    let file = project.relative(project.state());
    let document = match state_file::foreign(project)? {
        Some(document) => Some(document),
        None => nameless(project)?,
    };
    let Some(document) = document else { return Err(nothing_to_adopt(project, &file)?) };
    let objective = document.get("objective").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (text, prompt_made, has_task) = match (task(project, new, None), objective) {
        (Err(StartError::NoTask), Some(objective)) => (objective.as_bytes().to_vec(), true, false),
        (found, _) => found.map(|(text, made)| (text, made, true))?,
    };
    let (todo_file, todo) = todo(project, new)?;
    if let Some(name) = &new.branch {
        branch::check(project, name)?;
    }
    let has_handoff = handoff_of(&document).is_some_and(|file| disk::is_file(&project.root().join(file)));
    let ground = Ground {
        new: state(project, new, &text, prompt_made, todo_file, &todo),
        named: new.name.is_some(),
        max_iterations: given.max_iterations,
        usual_iterations: new.max_iterations,
        promise: given.promise.clone(),
        has_task,
        default_list: DEFAULT_PLAN,
        has_handoff,
    };
    let offer = adopt(&document, &ground);
    refuse_finished(&file, &offer.state)?;
    let prompt = String::from_utf8_lossy(&text);
    let mut careful = Vec::new();
    if has_task && let Some(line) = prompt.lines().position(|line| line.contains(RESUME_HEADING)) {
        careful.push(format!("PROMPT.md has a section \"{RESUME_HEADING}\" in line {}: every session reads it until you remove it", line + 1));
    }
    Ok(Offer {
        missing: foreign::missing_marks(&document),
        rows: offer.rows,
        careful,
        file,
        document,
        state: offer.state,
        task: text,
        list: offer.list,
        lacks_handoff: offer.lacks_handoff,
    })
}

fn nothing_to_adopt(project: &Project, file: &str) -> Result<StartError, StartError> {
    Ok(StartError::Foreign(match state_file::load(project, None)? {
        Some(run) => {
            format!(
                "the run \"{}\" in {file} is Plimsoll's own: continue with `plimsoll run --resume`",
                plimsoll_domain::text::one_line(&run.options.task_name)
            )
        }
        None => format!("there is no state to adopt: {file} is missing; `plimsoll start` begins a new run"),
    }))
}

/// Refuses a run that would end with its first session.
fn refuse_finished(file: &str, run: &RunState) -> Result<(), StartError> {
    let refuse = |why: String| Err(StartError::Foreign(why));
    if run.iteration >= run.options.max_iterations {
        return refuse(format!(
            "{file} is at iteration {} of {}: give --max-iterations with a larger number",
            run.iteration, run.options.max_iterations
        ));
    }
    if !run.items.known_items.is_empty() && run.items.todo_items.is_empty() {
        return refuse(format!("all items of {file} are completed, so there is nothing to do"));
    }
    Ok(())
}

/// Takes it over, if it is still what was shown.
pub fn carry_out(project: &Project, offer: Offer) -> Result<RunState, StartError> {
    let Offer { file, document, mut state, task, list, lacks_handoff, .. } = offer;
    records::refuse_unfit(project, &state.options.client_arguments)?;
    // The offer was made on the branch before: what the file and the plan are on the run's own is compared below.
    if let Some(name) = &state.options.branch {
        state.at_start.branch_before = branch::enter(project, name, state.options.commit_hooks)?;
    }
    let plan = state.options.todo_file.as_deref();
    let protected = protect::record_paths(project, &state.options.protect, plan, state.options.commit_hooks)?;
    state.options.protect.clone_from(&protected.paths);
    // Compared under the lock: the user has agreed to what was shown, and the loop's script may have written since.
    let lock = state_file::lock(project, state_file::TIMEOUT)?;
    let bytes = disk::read(project.state())?.unwrap_or_default();
    if serde_json::from_slice::<Value>(&bytes).ok().as_ref() != Some(&document) {
        return Err(StartError::Foreign(format!(
            "{file} has changed in the meantime: nothing was taken; run the command again"
        )));
    }
    // Kept before our own state is written over it: from then on this is the only copy of the other program's file.
    disk::replace(&kept_at(project), &bytes, Durability::Durable)?;
    if let Some(list) = &list {
        let path = project.root().join(DEFAULT_PLAN);
        if !disk::create_new(&path, list.render().as_bytes())? {
            let name = DEFAULT_PLAN;
            return Err(StartError::Foreign(format!(
                "{name} exists by now: nothing was taken; run the command again"
            )));
        }
    }
    if lacks_handoff {
        let (settings, _) = config::load(project);
        state.context_checkpoint.handoff_file = write_handoff(project, &settings, &state)?;
    }
    write_first_files(project, &state, &task, &protected)?;
    drop(lock);
    begin(project, &state)?;
    Ok(state)
}

/// The file as it was, where an agent's `git clean` does not reach.
pub fn kept_at(project: &Project) -> PathBuf {
    project.copies().join("ralph-state.json.adopted")
}

/// The checkpoint's own words as a handoff, where the one that it names is not there.
fn write_handoff(project: &Project, settings: &Settings, run: &RunState) -> Result<String, StartError> {
    let Checkpoint { level, percent_at_checkpoint, timestamp, files_in_progress, .. } =
        &run.context_checkpoint;
    let handoff = Handoff {
        level: *level,
        percent: *percent_at_checkpoint,
        written_at: timestamp.clone(),
        files: files_in_progress.clone(),
        current_item: Some(run.context_checkpoint.current_todo_item.clone()).filter(|item| !item.is_empty()),
        done: run.items.completed_items.clone(),
        open: run.items.todo_items.clone(),
        ..Handoff::default()
    };
    let notes = Notes {
        summary: run.context_checkpoint.resume_summary.clone(),
        progress: run.context_checkpoint.progress_on_item.clone(),
        next: String::new(),
    };
    let text = crate::checkpoint::handoff::document(&handoff, &notes, settings.handoff_bytes);
    let stem = clock::wall_clock(clock::now());
    let mut names =
        (1..).map(|number| if number == 1 { format!("{stem}.md") } else { format!("{stem}-{number}.md") });
    loop {
        let path = project.handoffs().join(names.next().unwrap_or_default());
        if disk::create_new(&path, text.as_bytes())? {
            return Ok(project.relative(&path));
        }
    }
}
