//! `plimsoll plan`: what the open items will probably take, and an order that saves a session or puts what waits behind.

mod table;

use crate::whose::Whose;
use crate::{fail, say};
use clap::Args;
use flows::growth::lines_named;
use flows::measure::{Question, measure};
use policy::plan::{Item, Plan, Room, plan};
use session::TodoList;
use std::process::ExitCode;
use store::{Project, config, disk, state_file, tail};
use table::View;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll plan
  plimsoll plan --json | jq .better

In the to-do list:
  - [ ] Parse the dates (medium)            trivial, simple, medium, complex, very complex
  - [ ] Convert the files (after: 1)        waits for the first item of the list";

/// A window of which nobody has said anything, as the client assumes it.
const ASSUMED_WINDOW: u64 = 1_000_000;
/// What a fresh session holds before any work (observed: 17k to 30k with the usual tools), where none has been seen.
const ASSUMED_BASE: u64 = 25_000;

/// Shows it.
pub(crate) fn show(arguments: &PlanArguments) -> ExitCode {
    let project = Project::of_command();
    let state = match state_file::load(&project, None) {
        Ok(state) => state,
        Err(error) => return fail(error, 1),
    };
    let file = state.as_ref().and_then(|state| state.todo_file.clone()).unwrap_or("fix_plan.md".to_owned());
    let todo = match disk::read_text(&project.root().join(&file)) {
        Ok(Some(text)) => TodoList::parse(&text),
        Ok(None) => {
            return fail(format!("there is no to-do list: {file} (`- [ ] …` lines, one item each)"), 1);
        }
        Err(error) => return fail(error, 1),
    };
    let items: Vec<Item> = todo
        .items
        .iter()
        .map(|item| Item {
            text: item.text.clone(),
            done: item.done,
            lines: lines_named(&project, &item.text),
        })
        .collect();
    let growth = state.map(|state| state.growth).unwrap_or_default();
    let (room, is_assumed) = room(&project);
    let plan = plan(&items, &growth, room);
    say(if arguments.json {
        json(&plan, room)
    } else {
        View { plan: &plan, room, is_assumed, file: &file, done: todo.done().len() }.text()
    });
    ExitCode::SUCCESS
}

/// By the newest session's window and beginning, where one is known; and whether the window is only assumed.
fn room(project: &Project) -> (Room, bool) {
    let (settings, complaint) = config::load(project);
    if let Some(complaint) = complaint {
        crate::say_error(&complaint);
    }
    let whose = Whose::find(project).ok().flatten();
    let record = whose.as_ref().map(|whose| whose.record.clone()).unwrap_or_default();
    let transcript = whose.as_ref().and_then(Whose::transcript);
    let transcript = transcript.as_deref();
    let question = Question { project, settings: &settings, record: &record, transcript, calls: &[] };
    let measured = measure(&question).marks;
    let assumed = || {
        let window =
            session::Window { tokens: ASSUMED_WINDOW, source: session::reading::WindowSource::Assumed };
        flows::measure::marks(&question, &window, None)
    };
    let marks = measured.unwrap_or_else(assumed);
    let base = transcript.and_then(tail::first_fill).unwrap_or(ASSUMED_BASE);
    (Room { window: marks.window, base, l2: marks.l2 }, measured.is_none())
}

fn json(plan: &Plan, room: Room) -> String {
    let item = |item: &policy::plan::Planned| {
        serde_json::json!({
            "number": item.number,
            "item": item.text,
            "size": item.size.map(session::size::Size::word),
            "estimate_tokens": item.estimate.tokens,
            "estimate_source": item.estimate.source.words(),
            "sessions": item.sessions,
            "after": item.after,
            "split": item.split,
        })
    };
    serde_json::json!({
        "items": plan.items.iter().map(item).collect::<Vec<_>>(),
        "window": room.window,
        "room_tokens": room.tokens(),
        "one_by_one": plan.one_by_one,
        "packed": { "sessions": plan.sessions(&plan.in_order), "groups": plan.in_order },
        "better": plan.better.as_ref().map(|groups| {
            let lines: Vec<_> = plan
                .lines
                .iter()
                .map(|(number, line)| serde_json::json!({ "number": number, "line": line }))
                .collect();
            serde_json::json!({ "sessions": plan.sessions(groups), "groups": groups, "lines": lines })
        }),
        "complaints": plan.complaints,
    })
    .to_string()
}
