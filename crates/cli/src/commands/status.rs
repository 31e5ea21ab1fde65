//! `plimsoll status`: the run on one screen, its open questions, and the context usage of the session.

mod context;
mod screen;
#[cfg(test)]
mod tests;
mod watch;

use crate::answers::{self, QuestionList};
use crate::foreign_state;
use crate::run_status::{View, view, words};
use clap::Args;
use context::{Row, SessionContext};
use plimsoll_domain::{RunState, SessionRecord, Timestamp, text};
use plimsoll_flows::keeping;
use plimsoll_flows::run_figures::{FiguresReader, RunSnapshot, read_snapshot};
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, disk, sessions};
use plimsoll_terminal::columns::width;
use plimsoll_terminal::console::{fail, refused, say};
use plimsoll_terminal::{console, markdown};
use serde_json::{Value, json};
use std::process::ExitCode;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArguments {
    /// Answer the open question N; `-` reads the text from standard input; repeatable
    #[arg(
        long,
        num_args = 2,
        value_names = ["N", "TEXT"],
        allow_negative_numbers = true,
        conflicts_with_all = ["watch", "json", "markdown", "exit_code"]
    )]
    answer: Vec<String>,
    /// Show it on the full screen and keep it up to date until you press q
    #[arg(long, conflicts_with_all = ["json", "markdown", "exit_code"])]
    watch: bool,
    /// Print the run's state, its figures, and the session's context usage as one JSON object
    #[arg(long)]
    json: bool,
    /// Print a Markdown table of the session's context usage, with thresholds and sources, and of the run
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Exit with the level of the context usage: 0 normal, 1 warn, 2 checkpoint, 3 emergency (0 when unknown)
    #[arg(long)]
    exit_code: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll status
  plimsoll status --answer 1 'Use port 8042'
  plimsoll status --answer 1 - < answer.txt
  plimsoll status --json    for scripts; null if there is no run and no session
  plimsoll status --exit-code >/dev/null || echo 'close to the load line'

An answer is written into the plan as a line `  ! …` below the question; you may write that line yourself. An active run
returns to the item when its turn comes; one that has ended continues with `plimsoll run --resume`.";

/// Shows it, or answers questions. The exit code is 0 also if there is no run, and the level with `--exit-code`.
pub(crate) fn status(arguments: &StatusArguments) -> ExitCode {
    let project = Project::of_command();
    if !arguments.answer.is_empty() {
        return answers::answer(&project, &arguments.answer);
    }
    if arguments.watch {
        return watch::watch(&project);
    }
    let mut reader = FiguresReader::default();
    // Before the snapshot, so that a state that was written in between is newer there.
    let document = if arguments.json { state_document(&project) } else { Value::Null };
    let snapshot = match read_snapshot(&project, None, &mut reader) {
        Ok(snapshot) => snapshot,
        Err(error) => return refused(&error),
    };
    let context = match SessionContext::measure(&project) {
        Ok(context) => context,
        Err(error) => return fail(error),
    };
    match snapshot {
        None if arguments.json && context.has_session() => {
            console::json(json!({ "context": context.to_json() }));
        }
        None if arguments.json => say("null"),
        Some(snapshot) if arguments.json => console::json(json(&project, document, snapshot, &context)),
        snapshot if arguments.markdown => {
            let rows = snapshot.map(|snapshot| run_rows(&view(&project, snapshot))).unwrap_or_default();
            markdown::show(&context.to_markdown(&rows), true);
        }
        None => lines_without_run(&project, &context).iter().for_each(say),
        Some(snapshot) => {
            let view = View {
                recorded: recorded(&project),
                context: context.is_current().then(|| context.to_sentence()),
                ..view(&project, snapshot)
            };
            say(view.lines().join("\n"));
        }
    }
    ExitCode::from(if arguments.exit_code { context.level_number() } else { 0 })
}

/// The lines for a project without a run: the session, and the questions in the plan.
fn lines_without_run(project: &Project, context: &SessionContext) -> Vec<String> {
    let no_run =
        || format!("There is no run in {}. Start one with `plimsoll run`.", project.root().display());
    let rows = context.to_lines();
    let session = rows.iter().flat_map(|(title, words)| screen::wrapped(title, words, width()));
    // A plan that cannot be read is the matter of the commands that need it.
    let questions = QuestionList::read(project).map(|list| list.to_lines()).unwrap_or_default();
    let run = foreign_state::words(project).unwrap_or_else(no_run);
    let records = recorded(project).map(|words| format!("Records: {words}."));
    session.chain(questions).chain([run]).chain(records).collect()
}

/// Rows about the run for the table of `--markdown`.
fn run_rows(view: &View) -> Vec<Row> {
    let items = &view.figures.items;
    let questions = view.state.items.parked.iter().zip(1..);
    let questions = questions.map(|(open, number)| ("Question", crate::questions::line(number, open)));
    let rows = [
        ("Run", words::standing(view).to_string()),
        ("Items", format!("{} of {} done", items.done, items.total)),
        ("Cost", view.cost()),
        ("Next", words::next(view)),
    ];
    rows.into_iter().chain(questions).collect()
}

/// What the records take, and what would help.
fn recorded(project: &Project) -> Option<String> {
    let records = keeping::look(project).ok().filter(|records| !records.kept.is_empty())?;
    let old = records.pruning(keeping::A_MONTH).freed;
    let help =
        (old > 0).then(|| format!("; `plimsoll prune --older-than 30d` would free {}", text::bytes(old)));
    Some(format!("{}{}", text::bytes(records.bytes()), help.unwrap_or_default()))
}

fn state_document(project: &Project) -> Value {
    let bytes = disk::read(project.state()).ok().flatten().unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn json(project: &Project, mut document: Value, snapshot: RunSnapshot, context: &SessionContext) -> String {
    let is_older = |document: &Value| document["revision"].as_u64() != Some(snapshot.state.revision);
    if is_older(&document) {
        document = state_document(project);
    }
    let record = session_record(project, &snapshot.state);
    document["session"] = serde_json::to_value(record).unwrap_or_default();
    document["context"] = context.to_json();
    document["at_work"] = snapshot.is_run_active.into();
    // The file leaves an empty list out.
    let changed_checks = &snapshot.state.outcomes.changed_checks;
    document["changed_checks"] = serde_json::to_value(changed_checks).unwrap_or_default();
    document["figures"] = serde_json::to_value(&snapshot.figures).unwrap_or_default();
    let activity = snapshot.activity.clone();
    let view = view(project, snapshot);
    document["activity"] = json!({
        "state": activity.word(),
        "until": until(&activity),
        "continues_by_itself": activity.continues_by_itself(),
        "summary": words::standing(&view).to_string(),
        "next": words::next(&view),
    });
    document.to_string()
}

fn until(activity: &RunActivity) -> Option<&Timestamp> {
    match activity {
        RunActivity::Waiting { until } | RunActivity::Unattended { until } => until.as_ref(),
        _ => None,
    }
}

fn session_record(project: &Project, state: &RunState) -> Option<SessionRecord> {
    state.session_id.as_ref().map(|id| sessions::load(project, id))
}
