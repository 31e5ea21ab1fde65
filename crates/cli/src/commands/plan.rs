//! `plimsoll plan`: estimates the context and the sessions that the open items need.

mod draft;
mod fix;
mod table;

use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::plan_remarks::find_optional_items_and_unclear_lines;
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, Settings, TodoList};
use plimsoll_flows::context::item_cost::count_lines_of_named_files;
use plimsoll_flows::context::measure::{MeasureInput, measure_usage_waiting_near_threshold};
use plimsoll_policy::models;
use plimsoll_policy::plan::{EstimatedItem, SessionCapacity, SessionPlan, plan_sessions};
use plimsoll_policy::todo_list::{
    PlanProblem, find_unclear_lines_or_lack_of_open_items, render_plan_problem_with_fix,
};
use plimsoll_store::layout::ProjectRoot;
use plimsoll_store::{Project, config, disk, state_file, tail};
use plimsoll_terminal::console;
use plimsoll_terminal::console::fail;
use plimsoll_terminal::markdown;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use table::PlanTable;

/// Arguments of `plimsoll plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// The plan [default: the run's plan, else fix_plan.md]
    ///
    /// With --fix and --draft the default is fix_plan.md.
    #[arg(long, value_name = "FILE")]
    todo: Option<String>,
    /// Turn lines that look like items into items
    ///
    /// `- [] x` and `[ ] x` become `- [ ] x`, and so does `1. x` if the plan has no box. A mark such as `[-]` becomes a question
    /// to you. Shows the change and asks before writing.
    #[arg(long, conflicts_with = "json", group = "writes")]
    fix: bool,
    /// Let Claude Code propose items from a specification
    ///
    /// `-` reads standard input. The session can only read. Shows the items and asks before appending them to the plan.
    #[arg(long, value_name = "SPEC", conflicts_with = "json", group = "writes")]
    draft: Option<String>,
    /// With --draft: the path of Claude Code [default: claude]
    #[arg(long, value_name = "PATH", requires = "draft")]
    client: Option<String>,
    /// With --fix or --draft: write without asking
    #[arg(long, requires = "writes")]
    yes: bool,
    /// With --draft: arguments for Claude Code, such as `--model opus`
    #[arg(last = true, value_name = "CLAUDE ARGS", requires = "draft")]
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

/// The client's default window size, in tokens, used while the window is unknown.
const ASSUMED_WINDOW_TOKENS: u64 = 1_000_000;
/// Tokens in a fresh session before any work, used if no session was recorded here. Observed: 17k to 30k with the usual tools.
const ASSUMED_START_TOKENS: u64 = 25_000;

/// Prints the estimate for the open items, or runs `--fix` or `--draft`.
pub(crate) fn fix_draft_or_estimate_plan(arguments: &PlanArguments) -> ExitCode {
    if arguments.fix {
        return fix_plan_file(arguments);
    }
    let project = project_with_run_state_or_plan_project(arguments);
    if let Some(spec) = &arguments.draft {
        return draft::draft_plan(&project, arguments, spec);
    }
    let state = match state_file::load_state(&project, None) {
        Ok(state) => state,
        Err(error) => return fail(error),
    };
    let run_plan_file = || state.as_ref().and_then(|state| state.options.todo_file.clone());
    let plan_file = arguments.todo.clone().or_else(run_plan_file).unwrap_or(DEFAULT_PLAN.to_owned());
    let text = match disk::read_text(&project.root().join(&plan_file)) {
        Ok(Some(text)) => text,
        Ok(None) if arguments.todo.is_none() => {
            if arguments.json {
                console::print_json(Value::Null);
            }
            return console::print_nothing_to_show(missing_plan_message(&plan_file));
        }
        Ok(None) => return fail(missing_plan_message(&plan_file)),
        Err(error) => return fail(error),
    };
    let todo_list = TodoList::parse(&text);
    let problem = find_unclear_lines_or_lack_of_open_items(&todo_list, &text)
        .filter(|plan_problem| !matches!(plan_problem, PlanProblem::AllTicked(_)));
    if let Some(problem) = problem.filter(|_| todo_list.items.is_empty()) {
        return fail(render_plan_problem_with_fix(&problem, &plan_file, plan_file != DEFAULT_PLAN));
    }
    let state = state.unwrap_or_default();
    let mut estimate = PlanEstimate::for_plan(&project, &state, &todo_list);
    estimate.plan.problems.extend(find_optional_items_and_unclear_lines(&text).render_sentences());
    if arguments.json {
        console::print_json(plan_json(
            &estimate.plan,
            estimate.capacity,
            &todo_list.parked_items_with_questions(),
        ));
    } else {
        markdown::print_markdown(&estimate.to_table(&plan_file, &todo_list).render(), arguments.markdown);
    }
    ExitCode::SUCCESS
}

/// Returns the project of the current run, or without a run the project where one would begin.
fn project_with_run_state_or_plan_project(arguments: &PlanArguments) -> Project {
    let run_project = Project::find_upwards_from_current_dir();
    let project_root = ProjectRoot::find_from_current_dir(arguments.todo.as_deref());
    project_root.render_notice_unless_current_dir().iter().for_each(console::print_notice);
    if disk::exists(run_project.state_path()) {
        run_project
    } else {
        project_root.project_with_session_files()
    }
}

/// The estimate for a plan, and the assumptions it is based on.
struct PlanEstimate {
    plan: SessionPlan,
    capacity: SessionCapacity,
    is_window_assumed: bool,
    /// The model that the user passes to the client.
    client_model: Option<String>,
}

impl PlanEstimate {
    fn for_plan(project: &Project, state: &RunState, todo_list: &TodoList) -> PlanEstimate {
        let (settings, settings_error) = config::load_settings(project);
        if let Some(settings_error) = settings_error {
            console::print_warning(&settings_error);
        }
        let (_, client_model) =
            models::split_off_option(&state.options.client_arguments, models::MODEL_OPTION);
        let mut ignored_models = Vec::new();
        let estimate_item = |(number, item): (usize, &plimsoll_domain::todo::PlanItem)| {
            let model_choice = models::choose_model_by_item_then_size_then_argument(
                &item.text,
                &settings.models,
                client_model.as_deref(),
            );
            let message = model_choice
                .ignored_model
                .filter(|_| !item.is_ticked)
                .map(models::render_ignored_model_warning);
            ignored_models.extend(message.map(|warning| format!("item {number}: {warning}")));
            EstimatedItem {
                text: item.text.clone(),
                is_done: item.is_ticked,
                file_lines: count_lines_of_named_files(project, &item.text),
                model: model_choice.model.map(str::to_owned),
            }
        };
        let items: Vec<EstimatedItem> = (1..).zip(&todo_list.items).map(estimate_item).collect();
        let (capacity, is_window_assumed) = session_capacity_and_is_window_assumed(project, &settings);
        let mut plan = plan_sessions(&items, &state.plan_items.item_costs, capacity);
        plan.problems.extend(ignored_models);
        PlanEstimate { plan, capacity, is_window_assumed, client_model }
    }

    fn to_table<'a>(&'a self, plan_file: &'a str, todo_list: &'a TodoList) -> PlanTable<'a> {
        PlanTable {
            plan: &self.plan,
            capacity: self.capacity,
            is_window_assumed: self.is_window_assumed,
            plan_file,
            done_count: todo_list.ticked_items().len(),
            parked_items: todo_list.parked_items_with_questions(),
            client_model: self.client_model.as_deref(),
        }
    }
}

/// Returns the path of the plan to change, and its name as `--todo` gives it. The project's state is not used here, because anybody
/// may have written it.
fn path_and_name_of_plan_to_change(arguments: &PlanArguments) -> (PathBuf, &str) {
    let plan_file = arguments.todo.as_deref().unwrap_or(DEFAULT_PLAN);
    let project_root = ProjectRoot::find_from_current_dir(arguments.todo.as_deref());
    project_root.render_notice_unless_current_dir().iter().for_each(console::print_notice);
    (project_root.folder.join(plan_file), plan_file)
}

fn fix_plan_file(arguments: &PlanArguments) -> ExitCode {
    let (path, plan_file) = path_and_name_of_plan_to_change(arguments);
    let project = ProjectRoot::find_from_current_dir(arguments.todo.as_deref()).project_with_session_files();
    fix::fix_and_write_plan(&project, &path, plan_file, arguments.todo.is_some(), arguments.yes)
}

fn missing_plan_message(plan_file: &str) -> String {
    format!("there is no plan: {plan_file} (`- [ ] …` lines, one item each)")
}

/// Returns the capacity of a session, from the newest session if one was recorded, and true if its window is only assumed.
fn session_capacity_and_is_window_assumed(project: &Project, settings: &Settings) -> (SessionCapacity, bool) {
    let target_session = TargetSession::find_current_or_run_or_latest(project).ok().flatten();
    let record =
        target_session.as_ref().map(|target_session| target_session.record.clone()).unwrap_or_default();
    let transcript = target_session.as_ref().and_then(TargetSession::transcript_path);
    let transcript = transcript.as_deref();
    let input =
        MeasureInput { project, settings, record: &record, transcript_path: transcript, pending_calls: &[] };
    let measured_thresholds = measure_usage_waiting_near_threshold(&input).thresholds;
    let assumed_thresholds = || {
        let window = plimsoll_domain::WindowSize {
            tokens: ASSUMED_WINDOW_TOKENS,
            source: plimsoll_domain::reading::WindowSource::Assumed,
        };
        plimsoll_flows::context::measure::compute_session_thresholds(&input, &window, None)
    };
    let thresholds = measured_thresholds.unwrap_or_else(assumed_thresholds);
    let start_tokens = transcript
        .and_then(tail::read_first_request_tokens_and_prompt_bytes)
        .map_or(ASSUMED_START_TOKENS, |first_request| first_request.input_tokens);
    (
        SessionCapacity { window_tokens: thresholds.window, start_tokens, l2_tokens: thresholds.l2 },
        measured_thresholds.is_none(),
    )
}

fn plan_json(
    plan: &SessionPlan,
    capacity: SessionCapacity,
    parked_items_with_questions: &[(&str, &str)],
) -> String {
    // If no item fits into a session, every number of sessions would be wrong.
    let if_items_fit = |sessions: u64| (!capacity.is_full_at_start()).then_some(sessions);
    // If several items with the same text have questions, the first question is shown.
    let questions: HashMap<&str, &str> = parked_items_with_questions.iter().rev().copied().collect();
    let item_json = |item: &plimsoll_policy::plan::PlannedItem| {
        serde_json::json!({
            "number": item.number,
            "item": item.text,
            "size": item.stated_size.map(plimsoll_domain::size::ItemSize::as_str),
            "estimate_tokens": item.estimate.tokens,
            "estimate_source": item.estimate.source.describe(),
            "sessions": if_items_fit(item.session_count),
            "after": item.dependencies,
            "split": item.should_split,
            "verify": item.verify_command,
            "model": item.model,
            "question": questions.get(item.text.as_str()),
        })
    };
    serde_json::json!({
        "items": plan.items.iter().map(item_json).collect::<Vec<_>>(),
        "window": capacity.window_tokens,
        "room_tokens": capacity.work_tokens(),
        "one_by_one": if_items_fit(plan.count_sessions(&plan.sessions_without_pack)),
        "packed": { "sessions": if_items_fit(plan.count_sessions(&plan.sessions_with_pack)), "groups": plan.sessions_with_pack },
        "complaints": plan.problems,
    })
    .to_string()
}
