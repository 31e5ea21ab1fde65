//! `plimsoll plan`: what the open items will probably take.

mod draft;
mod fix;
mod table;

use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::plan_remarks::plan_remarks;
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, Settings, TodoList};
use plimsoll_flows::context::item_cost::lines_named;
use plimsoll_flows::context::measure::{Question, measure};
use plimsoll_policy::models;
use plimsoll_policy::plan::{Item, Plan, Room, plan};
use plimsoll_policy::todo_list::{Unfit, unfit_list, words};
use plimsoll_store::layout::Beginning;
use plimsoll_store::{Project, config, disk, state_file, tail};
use plimsoll_terminal::console;
use plimsoll_terminal::console::fail;
use plimsoll_terminal::markdown;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use table::View;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// The plan [default: the run's plan, else fix_plan.md; with --fix and --draft, fix_plan.md]
    #[arg(long, value_name = "FILE")]
    todo: Option<String>,
    /// Make items of lines that look like items: `- [] x` and `[ ] x` become `- [ ] x`, and so does `1. x` if the plan has no box.
    /// A mark such as `[-]` becomes a question to you. Shows the change and asks before writing
    #[arg(long, conflicts_with = "json", group = "writes")]
    fix: bool,
    /// Let the client draft items from a specification (`-` reads standard input), in a session that can only read; shows them
    /// and asks before it appends them to the plan
    #[arg(long, value_name = "SPEC", conflicts_with = "json", group = "writes")]
    draft: Option<String>,
    /// With --draft: the client [default: claude]
    #[arg(long, value_name = "PATH", requires = "draft")]
    client: Option<String>,
    /// With --fix or --draft: write without asking
    #[arg(long, requires = "writes")]
    yes: bool,
    /// With --draft: arguments for the client, such as `--model opus`
    #[arg(last = true, value_name = "CLIENT ARGS", requires = "draft")]
    client_arguments: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll plan
  plimsoll plan --json | jq .complaints
  plimsoll plan --fix              make items of `- [] …` or `1. …` lines
  plimsoll plan --draft SPEC.md    let Claude Code propose the items

In the plan:
  - [ ] Parse the dates (medium)            trivial, simple, …, very complex
  - [ ] Convert the files (after: 1)        depends on the plan's first item
  - [ ] Rename the page (area: docs)        one worker at a time works there
  - [ ] Read leap days (verify: make test)  its check, for `run --plan-verify`
  - [ ] Rename the flag (model: haiku)      if your settings allow that model";

/// The client's default for an unknown window.
const ASSUMED_WINDOW: u64 = 1_000_000;
/// What a fresh session holds before any work (observed: 17k to 30k with the usual tools), where none has been seen.
const ASSUMED_BASE: u64 = 25_000;

/// Shows it.
pub(crate) fn show(arguments: &PlanArguments) -> ExitCode {
    if arguments.fix {
        return fix_list(arguments);
    }
    let project = project_of(arguments);
    if let Some(spec) = &arguments.draft {
        return draft::draft(&project, arguments, spec);
    }
    let state = match state_file::load(&project, None) {
        Ok(state) => state,
        Err(error) => return fail(error),
    };
    let of_run = || state.as_ref().and_then(|state| state.options.todo_file.clone());
    let file = arguments.todo.clone().or_else(of_run).unwrap_or(DEFAULT_PLAN.to_owned());
    let text = match disk::read_text(&project.root().join(&file)) {
        Ok(Some(text)) => text,
        Ok(None) if arguments.todo.is_none() => {
            if arguments.json {
                console::json(Value::Null);
            }
            return console::nothing_to_show(no_list(&file));
        }
        Ok(None) => return fail(no_list(&file)),
        Err(error) => return fail(error),
    };
    let todo = TodoList::parse(&text);
    let unfit = unfit_list(&todo, &text).filter(|unfit| !matches!(unfit, Unfit::AllTicked(_)));
    if let Some(unfit) = unfit.filter(|_| todo.items.is_empty()) {
        return fail(words(&unfit, &file, file != DEFAULT_PLAN));
    }
    let state = state.unwrap_or_default();
    let mut figures = Figures::of(&project, &state, &todo);
    figures.plan.complaints.extend(plan_remarks(&text).words());
    if arguments.json {
        console::json(json(&figures.plan, figures.room, &todo.parked()));
    } else {
        markdown::show(&figures.view(&file, &todo).text(), arguments.markdown);
    }
    ExitCode::SUCCESS
}

/// The project of the run; without one, where a run would begin.
fn project_of(arguments: &PlanArguments) -> Project {
    let of_run = Project::of_command();
    let beginning = Beginning::find(arguments.todo.as_deref());
    beginning.words().iter().for_each(console::say_error);
    if disk::exists(of_run.state()) { of_run } else { beginning.known() }
}

/// What is known of a plan.
struct Figures {
    plan: Plan,
    room: Room,
    is_assumed: bool,
    /// The model that the user passes to the client.
    usual_model: Option<String>,
}

impl Figures {
    fn of(project: &Project, state: &RunState, todo: &TodoList) -> Figures {
        let (settings, complaint) = config::load(project);
        if let Some(complaint) = complaint {
            console::say_error(&complaint);
        }
        let (_, usual_model) = models::without_option(&state.options.client_arguments, models::OPTION);
        let mut ignored = Vec::new();
        let item = |(number, item): (usize, &plimsoll_domain::todo::Item)| {
            let chosen = models::choose(&item.text, &settings.models, usual_model.as_deref());
            let words = chosen.ignored.filter(|_| !item.done).map(models::ignored_words);
            ignored.extend(words.map(|words| format!("item {number}: {words}")));
            Item {
                text: item.text.clone(),
                done: item.done,
                lines: lines_named(project, &item.text),
                model: chosen.model.map(str::to_owned),
            }
        };
        let items: Vec<Item> = (1..).zip(&todo.items).map(item).collect();
        let (room, is_assumed) = room(project, &settings);
        let mut plan = plan(&items, &state.items.growth, room);
        plan.complaints.extend(ignored);
        Figures { plan, room, is_assumed, usual_model }
    }

    fn view<'a>(&'a self, file: &'a str, todo: &'a TodoList) -> View<'a> {
        View {
            plan: &self.plan,
            room: self.room,
            is_assumed: self.is_assumed,
            file,
            done: todo.done().len(),
            parked: todo.parked(),
            usual_model: self.usual_model.as_deref(),
        }
    }
}

/// Which file is changed, only the command line says: a state in the project may have been written by anybody.
fn list_to_change(arguments: &PlanArguments) -> (PathBuf, &str) {
    let file = arguments.todo.as_deref().unwrap_or(DEFAULT_PLAN);
    let beginning = Beginning::find(arguments.todo.as_deref());
    beginning.words().iter().for_each(console::say_error);
    (beginning.folder.join(file), file)
}

fn fix_list(arguments: &PlanArguments) -> ExitCode {
    let (path, file) = list_to_change(arguments);
    let project = Beginning::find(arguments.todo.as_deref()).known();
    fix::fix(&project, &path, file, arguments.todo.is_some(), arguments.yes)
}

fn no_list(file: &str) -> String {
    format!("there is no plan: {file} (`- [ ] …` lines, one item each)")
}

/// By the newest session's window and beginning, where one is known; and whether the window is only assumed.
fn room(project: &Project, settings: &Settings) -> (Room, bool) {
    let whose = TargetSession::find(project).ok().flatten();
    let record = whose.as_ref().map(|whose| whose.record.clone()).unwrap_or_default();
    let transcript = whose.as_ref().and_then(TargetSession::transcript);
    let transcript = transcript.as_deref();
    let question = Question { project, settings, record: &record, transcript, calls: &[] };
    let measured = measure(&question).thresholds;
    let assumed = || {
        let window = plimsoll_domain::Window {
            tokens: ASSUMED_WINDOW,
            source: plimsoll_domain::reading::WindowSource::Assumed,
        };
        plimsoll_flows::context::measure::thresholds(&question, &window, None)
    };
    let thresholds = measured.unwrap_or_else(assumed);
    let base = transcript.and_then(tail::first_request).map_or(ASSUMED_BASE, |first| first.used);
    (Room { window: thresholds.window, base, l2: thresholds.l2 }, measured.is_none())
}

fn json(plan: &Plan, room: Room, parked: &[(&str, &str)]) -> String {
    // Where nothing fits, no number of sessions is true.
    let known = |sessions: u64| (!room.is_full_at_start()).then_some(sessions);
    // If items with the same words have questions, the first one is shown.
    let questions: HashMap<&str, &str> = parked.iter().rev().copied().collect();
    let item = |item: &plimsoll_policy::plan::Planned| {
        serde_json::json!({
            "number": item.number,
            "item": item.text,
            "size": item.size.map(plimsoll_domain::size::Size::word),
            "estimate_tokens": item.estimate.tokens,
            "estimate_source": item.estimate.source.words(),
            "sessions": known(item.sessions),
            "after": item.after,
            "split": item.split,
            "verify": item.check,
            "model": item.model,
            "question": questions.get(item.text.as_str()),
        })
    };
    serde_json::json!({
        "items": plan.items.iter().map(item).collect::<Vec<_>>(),
        "window": room.window,
        "room_tokens": room.tokens(),
        "one_by_one": known(plan.sessions(&plan.unpacked)),
        "packed": { "sessions": known(plan.sessions(&plan.in_order)), "groups": plan.in_order },
        "complaints": plan.complaints,
    })
    .to_string()
}
