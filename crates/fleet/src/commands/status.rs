//! `plimsoll fleet status`: prints one line for each fleet in the database, or the details of one fleet.

use super::fleet_text::{
    count_u64_with_noun, describe_fleet_state, merge_command_if_on_separate_branch,
    redact_and_truncate_to_line, render_age, render_cost, render_item, render_item_counts,
    render_set_aside_or_merge_failure_reason,
};
use super::{CommandError, connect_and_run_with_timeout, open_fleet_and_run_with_timeout};
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::fleet_status::{
    AllStatuses, FleetStatus, ItemStatus, VerifyCommandsAndSessionLimit, WorkerStatus, read_all_statuses,
    to_utc,
};
use plimsoll_domain::cost::format_usd;
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
use plimsoll_store::clock;
use plimsoll_terminal::console::{print_json, print_text, print_warning};
use plimsoll_terminal::fleet_command_line::StatusArguments;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// Maximum number of lines under one title; `--json` prints all.
const MAX_LINES_PER_TITLE: usize = 20;
/// Column where the text after a title starts.
const TITLE_WIDTH: usize = 13;

/// Prints the status of one fleet, or of all.
pub(super) fn print_status(arguments: &StatusArguments) -> Result<ExitCode, CommandError> {
    match &arguments.name {
        Some(name) => print_fleet_details(name, arguments.json)?,
        None => print_line_for_each_fleet(arguments.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line_for_each_fleet(as_json: bool) -> Result<(), CommandError> {
    let AllStatuses { statuses: fleets, errors } =
        connect_and_run_with_timeout("list the fleets", read_all_statuses)?;
    errors.iter().for_each(print_warning);
    if as_json {
        print_json(json!({ "fleets": fleets }));
    } else if fleets.is_empty() {
        print_text(
            "There is no fleet in the database that this role may see. Create one with `plimsoll fleet create NAME`.",
        );
    } else {
        fleets.iter().map(render_fleet_line).for_each(print_text);
    }
    Ok(())
}

fn render_fleet_line(fleet: &FleetStatus) -> String {
    let workers_suffix = match fleet.active_workers {
        0 => String::new(),
        count => format!(
            "; {} on {}",
            count_u64_with_noun(count, "worker"),
            count_u64_with_noun(fleet.active_machines, "machine")
        ),
    };
    format!(
        "{}: {}; {}{workers_suffix}; {}",
        to_safe_single_line(&fleet.name),
        describe_fleet_state(fleet),
        render_item_counts(fleet),
        render_cost(fleet)
    )
}

/// The status of a fleet with its items and workers.
#[derive(Serialize)]
pub(super) struct FleetOverview {
    pub(super) fleet: FleetStatus,
    pub(super) items: Vec<ItemStatus>,
    pub(super) workers: Vec<WorkerStatus>,
    #[serde(skip)]
    pub(super) limits: VerifyCommandsAndSessionLimit,
}

/// Reads a fleet with its items and workers.
pub(super) fn read_overview(fleet_name: &str) -> Result<FleetOverview, CommandError> {
    Ok(open_fleet_and_run_with_timeout(fleet_name, "read the fleet", read_overview_of)?)
}

/// Reads an open fleet with its items and workers.
pub(super) fn read_overview_of(fleet: &mut Fleet) -> Result<FleetOverview, FleetError> {
    Ok(FleetOverview {
        fleet: fleet.read_status()?,
        items: fleet.read_item_statuses()?,
        workers: fleet.read_worker_statuses()?,
        limits: fleet.read_verify_commands_and_session_limit()?,
    })
}

fn print_fleet_details(fleet_name: &str, as_json: bool) -> Result<(), CommandError> {
    let overview = read_overview(fleet_name)?;
    if as_json {
        print_json(json!(overview));
    } else {
        print_text(render_fleet_details(&overview).join("\n"));
    }
    Ok(())
}

fn render_titled_line(title: &str, text: &str) -> String {
    format!("{title:<TITLE_WIDTH$}{text}").trim_end().to_owned()
}

/// Renders lines under one title, up to the limit. A last line counts those that are omitted.
fn render_titled_list_up_to_limit(title: &str, lines: &[String]) -> Vec<String> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    let omitted_count = lines.len().saturating_sub(MAX_LINES_PER_TITLE);
    let omitted_line = (omitted_count > 0)
        .then(|| render_titled_line("", &format!("and {omitted_count} more: --json has all")));
    lines
        .iter()
        .take(MAX_LINES_PER_TITLE)
        .zip(titles)
        .map(|(line, title)| render_titled_line(title, line))
        .chain(omitted_line)
        .collect()
}

fn render_fleet_details(overview: &FleetOverview) -> Vec<String> {
    let FleetOverview { fleet, items: item_statuses, workers, limits } = overview;
    let name = to_safe_single_line(&fleet.name);
    let usage_suffix = match fleet.session_count {
        0 => String::new(),
        session_count => format!(
            ", {}, {} tokens",
            count_u64_with_noun(session_count, "session"),
            format_tokens(fleet.token_count)
        ),
    };
    let mut lines = vec![
        render_titled_line("Fleet", &name),
        render_titled_line("Status", &describe_fleet_state(fleet)),
        render_titled_line("Items", &render_item_counts(fleet)),
        render_titled_line("Cost", &format!("{}{usage_suffix}", render_cost(fleet))),
    ];
    lines.extend(
        limits
            .max_sessions
            .map(|limit| render_titled_line("Sessions", &format!("{} of {limit}", fleet.session_count))),
    );
    lines.extend([
        render_titled_line("Created", &clock::format_local_time_with_seconds(to_utc(fleet.created_at))),
        render_titled_line("Remote", &to_safe_single_line(&fleet.remote_address)),
        render_titled_line("Branch", &render_branch_and_start_commit(fleet)),
    ]);
    let verify_commands: Vec<String> =
        limits.verify_commands.iter().map(|command| redact_and_truncate_to_line(command)).collect();
    lines.extend(render_titled_list_up_to_limit("Verify", &verify_commands));
    lines.extend(render_titled_list_up_to_limit(
        "Workers",
        &workers
            .iter()
            .filter_map(|worker| render_worker_if_active_or_leasing_item(fleet, item_statuses, worker))
            .collect::<Vec<_>>(),
    ));
    let render_matching_items = |is_included: &dyn Fn(&ItemStatus) -> bool,
                                 render: &dyn Fn(&ItemStatus) -> String| {
        item_statuses.iter().filter(|item| is_included(item)).map(render).collect::<Vec<_>>()
    };
    let is_question = |item: &ItemStatus| item.set_aside_kind.as_deref() == Some("question");
    lines.extend(render_titled_list_up_to_limit(
        "Open",
        &render_matching_items(&|item| item.stage == "open", &render_item),
    ));
    lines.extend(render_titled_list_up_to_limit(
        "To be merged",
        &render_matching_items(&|item| item.stage == "offered", &render_item),
    ));
    let render_set_aside_item = |item: &ItemStatus| {
        format!("{}: {}", render_item(item), render_set_aside_or_merge_failure_reason(item))
    };
    lines.extend(render_titled_list_up_to_limit(
        "Set aside",
        &render_matching_items(&|item| item.stage == "aside" && !is_question(item), &render_set_aside_item),
    ));
    let render_question = |item: &ItemStatus| {
        format!(
            "{}: {}",
            render_item(item),
            redact_and_truncate_to_line(item.set_aside_reason.as_deref().unwrap_or_default())
        )
    };
    lines.extend(render_titled_list_up_to_limit(
        "Questions",
        &render_matching_items(&is_question, &render_question),
    ));
    lines.extend(
        suggest_next_command(fleet, item_statuses).map(|command| render_titled_line("Next", &command)),
    );
    lines
}

fn render_branch_and_start_commit(fleet: &FleetStatus) -> String {
    let start_commit_suffix = match fleet.start_commit.get(..12) {
        Some(commit) => format!(", begun at {commit}"),
        None => String::new(),
    };
    format!("{}{start_commit_suffix}", to_safe_single_line(&fleet.target_branch))
}

/// Renders a worker that is active or still has an item leased. Returns `None` for others.
fn render_worker_if_active_or_leasing_item(
    fleet: &FleetStatus,
    items: &[ItemStatus],
    worker: &WorkerStatus,
) -> Option<String> {
    let is_leased_by_worker = |item: &&ItemStatus| item.worker_name.as_deref() == Some(&worker.name);
    let leased_item = items.iter().find(is_leased_by_worker);
    if !worker.is_active && leased_item.is_none() {
        return None;
    }
    let item_text = leased_item.map_or_else(|| "no item".to_owned(), render_item);
    let percent_text = worker.context_percent.map(|percent| format!("  {percent:.0}%")).unwrap_or_default();
    let last_report_label = if worker.is_active { "last report" } else { "INACTIVE, last report" };
    let age_text = render_age(fleet.read_at, worker.last_report_at);
    Some(format!(
        "{}  {item_text}{percent_text}  {}  {last_report_label} {age_text}",
        truncate_end(&to_safe_single_line(&worker.name), 40),
        format_usd(worker.cost_usd)
    ))
}

fn suggest_next_command(fleet: &FleetStatus, items: &[ItemStatus]) -> Option<String> {
    let name = to_safe_single_line(&fleet.name);
    let question = items.iter().find(|item| item.set_aside_kind.as_deref() == Some("question"));
    match (fleet.end_reason.as_deref(), question) {
        (None, Some(item)) => Some(format!("plimsoll fleet answer {name} {} TEXT", item.item_number)),
        (None, None) if fleet.is_draining => {
            Some(format!("plimsoll fleet resume {name}, to start new items again"))
        }
        (None, None) if fleet.active_workers == 0 => {
            Some(format!("in a clone: plimsoll fleet join {name} --workers N -- CLIENT ARGS"))
        }
        (None, None) => None,
        (Some(_), _) => merge_command_if_on_separate_branch(fleet),
    }
}
