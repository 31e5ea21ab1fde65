//! `plimsoll status`: the run on one screen, its open questions, and the context usage of the session.

mod context;
mod screen;
#[cfg(test)]
mod tests;
mod watch;

use crate::answers::{self, QuestionList};
use crate::foreign_state;
use crate::run_status::{RunStatusView, build_status_view, status_text};
use clap::Args;
use context::{SessionContext, TitledRow};
use plimsoll_domain::{RunState, SessionRecord, Timestamp, text};
use plimsoll_flows::retention;
use plimsoll_flows::run_figures::{
    RunFiguresReader, RunSnapshot, read_run_snapshot_retrying_if_lock_changed,
};
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, disk, sessions};
use plimsoll_terminal::console::{
    fail, fail_with_store_error, line_width_from_columns_or_terminal, print_text,
};
use plimsoll_terminal::{console, markdown};
use serde_json::{Value, json};
use std::process::ExitCode;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArguments {
    /// Answer open question N; `-` reads standard input; repeatable
    #[arg(
        long,
        num_args = 2,
        value_names = ["N", "TEXT"],
        allow_negative_numbers = true,
        conflicts_with_all = ["watch", "json", "markdown", "exit_code"]
    )]
    answer: Vec<String>,
    /// Show it on the full screen until you press q
    #[arg(long, conflicts_with_all = ["json", "markdown", "exit_code"])]
    watch: bool,
    /// Print run and context usage as one JSON object
    #[arg(long)]
    json: bool,
    /// Print run and context usage as Markdown tables
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Exit with the level of the context usage, 0 to 3
    ///
    /// 0 normal or unknown, 1 warn, 2 checkpoint, 3 emergency.
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

/// Shows the status, or answers questions. Exits with 0 even if there is no run, and with the level for
/// `--exit-code`.
pub(crate) fn status(arguments: &StatusArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    if !arguments.answer.is_empty() {
        return answers::write_answers_and_print_next_step(&project, &arguments.answer);
    }
    if arguments.watch {
        return watch::watch_run(&project);
    }
    let mut reader = RunFiguresReader::default();
    // Read before the snapshot: if the state is written in between, the snapshot is newer and the difference
    // is noticed.
    let document = if arguments.json { read_state_json(&project) } else { Value::Null };
    let snapshot = match read_run_snapshot_retrying_if_lock_changed(&project, None, &mut reader) {
        Ok(snapshot) => snapshot,
        Err(error) => return fail_with_store_error(&error),
    };
    let context = match SessionContext::measure(&project) {
        Ok(context) => context,
        Err(error) => return fail(error),
    };
    match snapshot {
        None if arguments.json && context.has_session() => {
            console::print_json(json!({ "context": context.to_json() }));
        }
        None if arguments.json => print_text("null"),
        Some(snapshot) if arguments.json => {
            console::print_json(render_status_json(&project, document, snapshot, &context));
        }
        snapshot if arguments.markdown => {
            let rows =
                snapshot.map(|snapshot| run_rows(&build_status_view(&project, snapshot))).unwrap_or_default();
            markdown::print_markdown(&context.to_markdown(&rows), true);
        }
        None => lines_without_run(&project, &context).iter().for_each(print_text),
        Some(snapshot) => {
            let view = RunStatusView {
                disk_usage: describe_disk_usage(&project),
                context_usage: context.is_current().then(|| context.to_sentence()),
                ..build_status_view(&project, snapshot)
            };
            print_text(view.render_lines().join("\n"));
        }
    }
    ExitCode::from(if arguments.exit_code { context.level_number() } else { 0 })
}

/// Returns the lines for a project without a run: the session, and the questions in the plan.
fn lines_without_run(project: &Project, context: &SessionContext) -> Vec<String> {
    let no_run =
        || format!("There is no run in {}. Start one with `plimsoll run`.", project.root().display());
    let titled_rows = context.to_titled_rows();
    let session_lines = titled_rows.iter().flat_map(|(title, words)| {
        screen::wrap_titled_text(title, words, line_width_from_columns_or_terminal())
    });
    // A plan that cannot be read is reported by the commands that need it.
    let question_lines = QuestionList::read_from_plan(project)
        .map(|list| list.render_questions_and_answer_command())
        .unwrap_or_default();
    let run_line = foreign_state::describe_foreign_state(project).unwrap_or_else(no_run);
    let records_line = describe_disk_usage(project).map(|words| format!("Records: {words}."));
    session_lines.chain(question_lines).chain([run_line]).chain(records_line).collect()
}

/// Returns the run's rows for the table of `--markdown`.
fn run_rows(view: &RunStatusView) -> Vec<TitledRow> {
    let items = &view.figures.items;
    let questions = view.state.plan_items.parked_questions.iter().zip(1..);
    let question_rows =
        questions.map(|(open, number)| ("Question", crate::questions::question_line(number, open)));
    let rows = [
        ("Run", status_text::summarize_status(view).to_string()),
        ("Items", format!("{} of {} done", items.done, items.total)),
        ("Cost", view.cost_and_token_text()),
        ("Next", status_text::next_step_text(view)),
    ];
    rows.into_iter().chain(question_rows).collect()
}

/// Describes the disk usage of the records, and how much `prune` would free.
fn describe_disk_usage(project: &Project) -> Option<String> {
    let records = retention::list_records_with_reasons_to_keep(project)
        .ok()
        .filter(|records| !records.prunable.is_empty())?;
    let freeable_bytes = records.plan_pruning(retention::OLDER_THAN_30_DAYS).freed_bytes;
    let prune_hint = (freeable_bytes > 0).then(|| {
        format!("; `plimsoll prune --older-than 30d` would free {}", text::format_bytes(freeable_bytes))
    });
    Some(format!("{}{}", text::format_bytes(records.total_bytes()), prune_hint.unwrap_or_default()))
}

fn read_state_json(project: &Project) -> Value {
    let bytes = disk::read(project.state_path()).ok().flatten().unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn render_status_json(
    project: &Project,
    mut document: Value,
    snapshot: RunSnapshot,
    context: &SessionContext,
) -> String {
    let is_older = |document: &Value| document["revision"].as_u64() != Some(snapshot.state.revision);
    if is_older(&document) {
        document = read_state_json(project);
    }
    let record = load_session_record(project, &snapshot.state);
    document["session"] = serde_json::to_value(record).unwrap_or_default();
    document["context"] = context.to_json();
    document["at_work"] = snapshot.is_run_active.into();
    // The state file omits the list if it is empty; the JSON always has it.
    let changed_checks = &snapshot.state.outcomes.changed_checks;
    document["changed_checks"] = serde_json::to_value(changed_checks).unwrap_or_default();
    document["figures"] = serde_json::to_value(&snapshot.figures).unwrap_or_default();
    let activity = snapshot.activity.clone();
    let view = build_status_view(project, snapshot);
    document["activity"] = json!({
        "state": activity.json_name(),
        "until": waits_until(&activity),
        "continues_by_itself": activity.continues_by_itself(),
        "summary": status_text::summarize_status(&view).to_string(),
        "next": status_text::next_step_text(&view),
    });
    document.to_string()
}

fn waits_until(activity: &RunActivity) -> Option<&Timestamp> {
    match activity {
        RunActivity::Waiting { wait_ends_at: until }
        | RunActivity::WaitingWithoutRun { wait_ends_at: until } => until.as_ref(),
        _ => None,
    }
}

fn load_session_record(project: &Project, state: &RunState) -> Option<SessionRecord> {
    state.session_id.as_ref().map(|id| sessions::load_session_record(project, id))
}
